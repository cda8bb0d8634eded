//! `manage_context_budget`: lets new texts into the context, all of them or none.
//!
//! What is counted is what will be sent: the older context, the texts let in so far and the next
//! one, joined. Counts do not add up, so nothing else can be believed.

mod rules;

#[cfg(test)]
mod tests;

use std::cell::Cell;

use overlock_code::{CompactOptions, Reason, classify, compact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use rules::{CompactCode, CompactLevel, Matching, Policy, Rule, RuleLanguage};

use super::{ActionError, Next, Perform, Place, Target, Work};
use crate::context::{Block, can_divide, joined, shown_node, without_divider};
use crate::file::Findings;
use overlock_runs::{Mail, NodeText};
use rules::{Occasion, share_of};

/// Guards the budget of the context: what is there already, and what is to come in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ManageContextBudget {
    /// Where to go once all texts are in.
    pub on_ok: String,
    /// Where to go if they do not fit: nothing has changed then.
    pub on_over: String,
    /// Which texts are made smaller, and when.
    pub compact_code: Option<CompactCode>,
    /// A line that stands before what is new in the context.
    #[schemars(length(min = 1))]
    pub divide_new_content: Option<String>,
}

/// What the trace tells of a text.
#[derive(Debug, Serialize)]
struct NodeTold<'a> {
    id: Option<&'a str>,
    path: Option<&'a str>,
    language: &'static str,
    policy: Option<&'static str>,
    compacted: bool,
    reason: &'static str,
    tokens_raw: u64,
    tokens_final: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<ThresholdTold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<RepeatTold>,
}

/// What a threshold was held against.
#[derive(Clone, Copy, Debug, Serialize)]
struct ThresholdTold {
    /// The tokens above which the rule applies.
    limit: u64,
    /// What the context would have had with the text as it is.
    tokens: u64,
}

/// That a text is in the context already.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct RepeatTold {
    /// As which of its blocks, counted from 1.
    block: usize,
    /// Whether to the letter; else the same node is shown in another form.
    same: bool,
}

impl RepeatTold {
    fn of(block: &str, there: &[String]) -> Option<Self> {
        let place = |is: &dyn Fn(&str) -> bool| there.iter().position(|other| is(other));
        let same = place(&|other| other.trim() == block.trim());
        let node = shown_node(block);
        let found = same.or_else(|| place(&|other| node.is_some() && shown_node(other) == node));
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
                &Place::of("divide_new_content"),
                "the divider must be one line that no block begins with or has in its head",
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
        let current_tokens = work.counter.count(&current);
        work.note("max_context_tokens", max);
        work.note("current_context_tokens", current_tokens);
        work.note("counter", work.counter_name);
        work.note("provenance", work.provenance.name());
        if work.state.node_texts.is_empty() {
            if current_tokens > max {
                work.warn("the context alone is over its budget");
            }
            work.note("nodes", Vec::<NodeTold<'_>>::new());
            work.decide("on_ok");
            return Ok(Next::To(self.on_ok.clone()));
        }
        if let Some(divider) = &self.divide_new_content {
            work.note("divider", divider.trim());
        }
        let texts = std::mem::take(&mut work.state.node_texts);
        let batch = self.assess(&texts, work, max);
        work.note("nodes", &batch.told);
        work.note("context_tokens", batch.tokens);
        if batch.tokens <= max {
            work.state.context_blocks = batch.blocks;
            work.decide("on_ok");
            return Ok(Next::To(self.on_ok.clone()));
        }
        let incoming = joined(batch.blocks[batch.older..].iter().map(String::as_str));
        let incoming_tokens = work.counter.count(&incoming);
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

/// The context as it would be with all texts in it.
struct Batch<'a> {
    blocks: Vec<String>,
    /// How many of the blocks were there before.
    older: usize,
    tokens: u64,
    told: Vec<NodeTold<'a>>,
}

impl ManageContextBudget {
    fn rules(&self) -> &[Rule] {
        self.compact_code.as_ref().map_or(&[], |code| &code.rules)
    }

    /// The mail for this step that a rule waits for.
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
        let mut blocks = without_divider(&work.state.context_blocks, divider);
        let older = blocks.len();
        blocks.extend(divider.map(str::to_owned));
        let mut context = joined(blocks.iter().map(String::as_str));
        let mut told = Vec::with_capacity(texts.len());
        for text in texts {
            let language = classify(&text.text).language;
            let (id, path) = (text.id.as_deref(), text.any_path());
            let shown = |text: &str, compact| {
                let block = Block {
                    id,
                    path,
                    language: language.rule_name(),
                    compact,
                    text,
                };
                block.format(divider)
            };
            let mut block = shown(&text.text, false);
            let tokens_raw = work.counter.count(&block);
            let weighed = Cell::new(0);
            let whole = || {
                weighed.set(work.counter.count(&joined([context.as_str(), &block])));
                weighed.get()
            };
            let occasion = Occasion {
                raw_tokens: &whole,
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
                    let options = CompactOptions {
                        level: rule.level.into(),
                        ..CompactOptions::default()
                    };
                    let smaller = compact(&text.text, language, &options);
                    let other = shown(&smaller.text, true);
                    let other_tokens = work.counter.count(&other);
                    // Fewer bytes are not always fewer tokens.
                    compacted = smaller.compacted && other_tokens < tokens_raw;
                    if compacted {
                        (block, tokens_final) = (other, other_tokens);
                        smaller.reason.name()
                    } else if smaller.compacted {
                        Reason::NoGain.name()
                    } else {
                        smaller.reason.name()
                    }
                }
            };
            let threshold = rule.and_then(|(rule, _)| rule.threshold);
            let threshold = threshold.map(|share| ThresholdTold {
                limit: share_of(share, max),
                tokens: weighed.get(),
            });
            let repeats = RepeatTold::of(&block, &blocks);
            context = joined([context.as_str(), &block]);
            blocks.push(block);
            told.push(NodeTold {
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
        let tokens = work.counter.count(&context);
        Batch {
            blocks,
            older,
            tokens,
            told,
        }
    }
}
