//! Does an answer match the schemas of its request, and can it be called complete?
//!
//! A document is compared with the schema of `response_format`, the arguments of a tool call with
//! the `parameters` of the tool. A violation keeps an answer from being complete where the schema is
//! strict, and where a tool call lacks a required member. Before that the model is asked once to
//! correct it, while nothing of it was sent to the client.

use std::sync::Arc;

use overlock_llm::assembler::PartState;
use overlock_llm::{Outcome, Reason};
use serde_json::{Value, json};

use super::context::RequestContext;
use super::continuation::{Cut, Joined, state_of};
use super::wish::Continues;
use crate::error::ApiError;
use crate::record::Recording;
use overlock_json::Comparison;

/// What comparing the parts of one answer with the schemas of the request found.
#[derive(Default)]
pub(super) struct Compliance {
    content: Comparison,
    calls: Comparison,
}

/// What a part of an answer is once it is compared with its schema.
pub(super) struct Compared {
    state: PartState,
    comparison: Comparison,
}

impl Compared {
    /// A part that has to match a schema and is not even JSON.
    pub(super) fn not_json(part: &str) -> Self {
        Self {
            state: PartState::Invalid,
            comparison: Comparison::Violates(format!("{part} is not one JSON document")),
        }
    }

    /// How it violates a schema that it has to match, if it does.
    pub(super) fn violation(&self) -> Option<&str> {
        let is_invalid = self.state == PartState::Invalid;
        self.comparison.violation().filter(|_| is_invalid)
    }
}

impl From<PartState> for Compared {
    /// A part that is not compared with anything.
    fn from(state: PartState) -> Self {
        let comparison = Comparison::Matches;
        Self { state, comparison }
    }
}

impl RequestContext {
    /// Compares a part of an answer with its schema: content with that of `response_format`,
    /// arguments with the parameters of the tool.
    pub(super) async fn compare(&self, cut: Cut<'_>, state: PartState, text: &str) -> Compared {
        match cut {
            Cut::Content => self.compare_content(state, text).await,
            Cut::Arguments(tool) => self.compare_arguments(state, tool, text).await,
        }
    }

    async fn compare_content(&self, state: PartState, document: &str) -> Compared {
        let schema = self.wish.schema.as_ref();
        let Some(schema) = schema.filter(|_| state == PartState::Complete) else {
            return Compared::from(state);
        };
        let (bounded, document) = (Arc::clone(&schema.bounded), document.to_owned());
        let comparisons = &self.gateway.comparisons;
        let compared = comparisons.compare(bounded, document, self.deadline);
        let comparison = Box::pin(compared).await;
        let is_invalid = schema.is_strict && comparison.violation().is_some();
        let state = if is_invalid {
            PartState::Invalid
        } else {
            state
        };
        Compared { state, comparison }
    }

    async fn compare_arguments(&self, state: PartState, tool: &str, arguments: &str) -> Compared {
        // Some servers leave out the arguments of a call that has none.
        let is_empty = arguments.trim().is_empty();
        let rules = self.wish.tools.iter().find(|rules| rules.name == tool);
        if !is_empty && state == PartState::Unclear && rules.is_some_and(|rules| rules.is_strict) {
            return Compared::not_json(&format!("the text of the arguments of a call of `{tool}`"));
        }
        let Some(rules) = rules.filter(|_| state == PartState::Complete || is_empty) else {
            return Compared::from(state);
        };
        let arguments = if is_empty { NO_ARGUMENTS } else { arguments }.to_owned();
        let (rules, is_strict) = (Arc::clone(rules), rules.is_strict);
        let comparisons = &self.gateway.comparisons;
        let compared = comparisons.decide(move || rules.compare(&arguments), self.deadline);
        let comparison = match Box::pin(compared).await {
            // Nobody asked for the comparison of a tool that is not strict.
            Comparison::Undecided(_) if !is_strict => Comparison::Matches,
            comparison => comparison,
        };
        let is_invalid = comparison.violation().is_some();
        let state = if is_invalid {
            PartState::Invalid
        } else {
            state
        };
        Compared { state, comparison }
    }

    /// Compares a document with its schema. One that has to match and does not is corrected by the
    /// model, with one more call, unless the client wants no more calls or a limit is reached.
    pub(super) async fn compare_or_correct(
        &self,
        cut: Cut<'_>,
        joined: &mut Joined,
        recording: Option<&mut Recording>,
    ) -> Result<Compared, ApiError> {
        let run = &joined.run;
        let compared = self.compare(cut, state_of(run), run.text()).await;
        let is_wanted = self.wish.continues != Continues::Nothing;
        let Some(violation) = compared.violation().filter(|_| is_wanted) else {
            return Ok(compared);
        };
        let mut corrected = None;
        let check = async |document: &str| {
            let compared = self.compare(cut, PartState::Complete, document).await;
            match &compared.comparison {
                Comparison::Matches => {
                    corrected = Some(compared);
                    Ok(())
                }
                Comparison::Undecided(why) | Comparison::Violates(why) => Err(why.clone()),
            }
        };
        let correction = self.correct(cut, joined, violation, check, recording);
        correction.await?;
        Ok(corrected.unwrap_or(compared))
    }
}

/// The arguments of a call that has none.
pub(super) const NO_ARGUMENTS: &str = "{}";

impl Compliance {
    /// Takes note of what comparing a part found; what the part is.
    pub(super) fn add(&mut self, cut: Cut<'_>, compared: Compared) -> PartState {
        let all = match cut {
            Cut::Content => &mut self.content,
            Cut::Arguments(_) => &mut self.calls,
        };
        *all = std::mem::take(all).and(compared.comparison);
        compared.state
    }

    /// What all comparisons together found.
    pub(super) fn comparison(&self) -> Comparison {
        self.content.clone().and(self.calls.clone())
    }

    /// Why the client gets an error instead of the answer, if the settings say so.
    pub(super) fn refusal(&self, context: &RequestContext) -> Option<String> {
        let is_refused = context.gateway.settings.strict_schema;
        let violation = self.content.violation().filter(|_| is_refused);
        violation.map(str::to_owned)
    }

    /// The `overlock` member of the final object or the last event. A complete answer has none, nor
    /// has one that is forwarded unchanged.
    pub(super) fn report(&self, is_strict: bool, outcome: &Outcome) -> Option<Value> {
        let of_document = self.content.violation().filter(|_| is_strict);
        let violation = of_document.or(self.calls.violation());
        let reason = outcome.reason();
        if matches!(reason, None | Some(Reason::NotContinued)) && violation.is_none() {
            return None;
        }
        let reason = reason.map(Reason::name);
        let mut report = json!({ "outcome": outcome.name(), "reason": reason });
        if let Some(violation) = violation {
            report["violation"] = json!(violation);
        }
        Some(report)
    }
}
