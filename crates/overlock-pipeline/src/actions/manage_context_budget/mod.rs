//! `manage_context_budget`: adds new texts to the context, all of them or none.
//!
//! It counts the joined text as it will be sent, because token counts of parts do not add up.

mod rules;

#[cfg(test)]
mod tests;

use std::cell::Cell;

use overlock_code::{Reason, classify, compact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use rules::{CompactCode, CompactLevel, Matching, Policy, Rule, RuleLanguage};

use super::{ActionError, KeyPath, Next, Perform, Target, Work};
use crate::context::{Block, can_divide, joined, shown_node, without_divider};
use crate::file::Findings;
use overlock_runs::{Mail, NodeText};
use rules::{Occasion, share_of};

/// Adds new texts to the context if they fit its budget.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ManageContextBudget {
    /// The next step once all texts are added.
    pub on_ok: String,
    /// The next step if they do not fit; nothing is changed then.
    pub on_over: String,
    /// The rules for compacting texts.
    pub compact_code: Option<CompactCode>,
    /// A line to put before the new texts.
    #[schemars(length(min = 1))]
    pub divide_new_content: Option<String>,
}

/// The trace of one text.
#[derive(Debug, Serialize)]
struct TextTrace<'a> {
    id: Option<&'a str>,
    path: Option<&'a str>,
    language: &'static str,
    policy: Option<&'static str>,
    compacted: bool,
    reason: &'static str,
    tokens_raw: u64,
    tokens_final: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<ThresholdTrace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<RepeatTrace>,
}

/// The trace of a threshold.
#[derive(Clone, Copy, Debug, Serialize)]
struct ThresholdTrace {
    /// The tokens above which the rule applies.
    limit: u64,
    /// The tokens of the context with the uncompacted text.
    tokens: u64,
}

/// The trace of a text that is already in the context.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct RepeatTrace {
    /// The number of its block, counted from 1.
    block: usize,
    /// Whether the block is identical; else it shows the same node in another form.
    same: bool,
}

impl RepeatTrace {
    fn of(block: &str, blocks: &[String]) -> Option<Self> {
        let position = |is: &dyn Fn(&str) -> bool| blocks.iter().position(|other| is(other));
        let same = position(&|other| other.trim() == block.trim());
        let node = shown_node(block);
        let found = same.or_else(|| position(&|other| node.is_some() && shown_node(other) == node));
        found.map(|at| Self {
            block: at + 1,
            same: same.is_some(),
        })
    }
}

impl Perform for ManageContextBudget {
    fn targets(&self) -> Vec<Target<'_>> {
        vec![
            Target::new("on_ok", &self.on_ok),
            Target::new("on_over", &self.on_over),
        ]
    }

    fn check(&self, findings: &mut Findings<'_>) {
        if let Some(divider) = &self.divide_new_content
            && !can_divide(divider)
        {
            findings.error(
                &KeyPath::of("divide_new_content"),
                "the divider must be one line that differs from the lines of a block's header",
                "write something like `divide_new_content: \"<<<New content\"`",
            );
        }
        if let Some(code) = &self.compact_code {
            code.check(findings);
        }
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let Some(max) = work.settings.max_context_tokens else {
            return Err(ActionError::MissingSetting {
                name: "max_context_tokens".to_owned(),
            });
        };
        let current = joined(work.state.context_blocks.iter().map(String::as_str));
        let current_tokens = work.world.counter.count(&current);
        work.note("max_context_tokens", max);
        work.note("current_context_tokens", current_tokens);
        work.note("counter", work.world.counter_name);
        work.note("provenance", work.world.provenance.name());
        if work.state.node_texts.is_empty() {
            if current_tokens > max {
                work.warn("the context alone exceeds its budget");
            }
            work.note("nodes", Vec::<TextTrace<'_>>::new());
            work.decide("on_ok");
            return Ok(Next::To(self.on_ok.clone()));
        }
        if let Some(divider) = &self.divide_new_content {
            work.note("divider", divider.trim());
        }
        let texts = std::mem::take(&mut work.state.node_texts);
        let batch = self.assess(&texts, work, max);
        work.note("nodes", &batch.traces);
        work.note("context_tokens", batch.tokens);
        if batch.tokens <= max {
            work.state.context_blocks = batch.blocks;
            work.decide("on_ok");
            return Ok(Next::To(self.on_ok.clone()));
        }
        let incoming = joined(batch.blocks[batch.older..].iter().map(String::as_str));
        let incoming_tokens = work.world.counter.count(&incoming);
        work.note("incoming_tokens", incoming_tokens);
        work.state.node_texts = texts;
        if incoming_tokens > max {
            return Err(ActionError::BudgetMisconfig {
                incoming_tokens,
                max,
            });
        }
        let again: Vec<Mail> = self.demands(work).cloned().collect();
        work.state.inbox.extend(again);
        work.decide("on_over");
        Ok(Next::To(self.on_over.clone()))
    }
}

/// The context with all new texts added.
struct Batch<'a> {
    blocks: Vec<String>,
    /// The number of older blocks.
    older: usize,
    tokens: u64,
    traces: Vec<TextTrace<'a>>,
}

impl ManageContextBudget {
    fn rules(&self) -> &[Rule] {
        self.compact_code.as_ref().map_or(&[], |code| &code.rules)
    }

    /// The mail that requests compaction.
    fn demands<'w>(&'w self, work: &'w Work<'_>) -> impl Iterator<Item = &'w Mail> {
        let mail = work.state.inbox_last_consumed.iter();
        mail.filter(|mail| {
            let waits = |rule: &Rule| rule.inbox_key.as_deref() == Some(&mail.topic);
            mail.target_step_id == work.step_id && self.rules().iter().any(waits)
        })
    }

    fn assess<'t>(&self, texts: &'t [NodeText], work: &Work<'_>, max: u64) -> Batch<'t> {
        let demanded: Vec<&str> = self.demands(work).map(|mail| mail.topic.as_str()).collect();
        let divider = self.divide_new_content.as_deref().map(str::trim);
        let counter = work.world.counter;
        let mut blocks = without_divider(&work.state.context_blocks, divider);
        let older = blocks.len();
        blocks.extend(divider.map(str::to_owned));
        let mut context = joined(blocks.iter().map(String::as_str));
        let mut traces = Vec::with_capacity(texts.len());
        for text in texts {
            let language = classify(&text.text).language;
            let (id, path) = (text.id.as_deref(), text.any_path());
            let shown = |text: &str, compact| {
                Block {
                    id,
                    path,
                    language: language.rule_name(),
                    compact,
                    text,
                }
                .format(divider)
            };
            let mut block = shown(&text.text, false);
            let tokens_raw = counter.count(&block);
            let context_tokens = Cell::new(0);
            let raw_tokens = || {
                context_tokens.set(counter.count(&joined([context.as_str(), &block])));
                context_tokens.get()
            };
            let occasion = Occasion {
                raw_tokens: &raw_tokens,
                max,
                demanded: &demanded,
            };
            let code = self.compact_code.as_ref();
            let rule = code.and_then(|code| code.rule_for(language, &occasion));
            let (mut compacted, mut tokens_final) = (false, tokens_raw);
            let reason = match rule {
                None => "no_rule",
                Some((rule, false)) => rule.policy.not_yet(),
                Some((rule, true)) => {
                    let smaller = compact(&text.text, language, &rule.options());
                    let other = shown(&smaller.text, true);
                    let other_tokens = counter.count(&other);
                    // Compacted text can have fewer bytes and still more tokens.
                    compacted = smaller.compacted && other_tokens < tokens_raw;
                    if compacted {
                        (block, tokens_final) = (other, other_tokens);
                    }
                    if smaller.compacted == compacted {
                        smaller.reason.name()
                    } else {
                        Reason::NoGain.name()
                    }
                }
            };
            let threshold = rule.and_then(|(rule, _)| rule.threshold);
            let threshold = threshold.map(|share| ThresholdTrace {
                limit: share_of(share, max),
                tokens: context_tokens.get(),
            });
            let repeats = RepeatTrace::of(&block, &blocks);
            context = joined([context.as_str(), &block]);
            blocks.push(block);
            traces.push(TextTrace {
                id,
                path,
                language: language.rule_name(),
                policy: rule.map(|(rule, _)| rule.policy.name()),
                compacted,
                reason,
                tokens_raw,
                tokens_final,
                threshold,
                repeats,
            });
        }
        Batch {
            blocks,
            older,
            tokens: counter.count(&context),
            traces,
        }
    }
}
