//! Does an answer match the schemas of its request?
//!
//! A document is compared with the schema of `response_format`, the arguments of a tool call with
//! the `parameters` of the tool. A part that violates a strict schema, or a tool call without a
//! required member, is not complete. While nothing of it was sent, the model is asked once to
//! correct it.

use std::sync::Arc;

use overlock_json::Comparison;
use overlock_llm::assembler::PartState;
use overlock_llm::{Continuation, Outcome, Reason};
use serde_json::{Value, json};

use super::context::{AnswerPart, RequestContext};
use super::continuation::state_of;
use super::observer::PartCalls;
use crate::error::ApiError;

/// The comparisons of all parts of one answer.
#[derive(Default)]
pub(super) struct Compliance {
    content: Comparison,
    calls: Comparison,
}

/// A part after its comparison with its schema.
pub(super) struct Compared {
    state: PartState,
    comparison: Comparison,
}

impl Compared {
    /// A violation makes a part invalid only if it has to match.
    fn new(mut state: PartState, comparison: Comparison, must_match: bool) -> Self {
        if must_match && comparison.violation().is_some() {
            state = PartState::Invalid;
        }
        Self { state, comparison }
    }

    /// A part that has to match a schema and is not even JSON.
    pub(super) fn not_json(part: &str) -> Self {
        let violation = format!("{part} is not one JSON document");
        Self::new(PartState::Invalid, Comparison::Violates(violation), true)
    }

    /// The violation of a schema that the part has to match.
    pub(super) fn violation(&self) -> Option<&str> {
        let is_invalid = self.state == PartState::Invalid;
        self.comparison.violation().filter(|_| is_invalid)
    }
}

impl RequestContext {
    /// Compares a part of an answer with its schema.
    pub(super) async fn compare(
        &self,
        target: AnswerPart<'_>,
        state: PartState,
        text: &str,
    ) -> Compared {
        match target.tool {
            None => self.compare_content(state, text).await,
            Some(tool) => self.compare_arguments(state, tool, text).await,
        }
    }

    async fn compare_content(&self, state: PartState, document: &str) -> Compared {
        let schema = self.params.schema.as_ref();
        let Some(schema) = schema.filter(|_| state == PartState::Complete) else {
            return Compared::new(state, Comparison::Matches, false);
        };
        let (bounded, document) = (Arc::clone(&schema.bounded), document.to_owned());
        let comparisons = &self.gateway.comparisons;
        let compared = comparisons.compare(bounded, document, self.deadline);
        Compared::new(state, Box::pin(compared).await, schema.is_strict)
    }

    async fn compare_arguments(&self, state: PartState, tool: &str, arguments: &str) -> Compared {
        // Some servers leave out the arguments of a call that has none.
        let is_empty = arguments.trim().is_empty();
        let rules = self.params.tools.iter().find(|rules| rules.name == tool);
        if !is_empty && state == PartState::Unclear && rules.is_some_and(|rules| rules.is_strict) {
            return Compared::not_json(&format!("the text of the arguments of a call of `{tool}`"));
        }
        let Some(rules) = rules.filter(|_| state == PartState::Complete || is_empty) else {
            return Compared::new(state, Comparison::Matches, false);
        };
        let arguments = if is_empty { NO_ARGUMENTS } else { arguments }.to_owned();
        let (rules, is_strict) = (Arc::clone(rules), rules.is_strict);
        let comparisons = &self.gateway.comparisons;
        let compared = comparisons.decide(move || rules.compare(&arguments), self.deadline);
        let comparison = match Box::pin(compared).await {
            // The client did not ask for this comparison.
            Comparison::Undecided(_) if !is_strict => Comparison::Matches,
            comparison => comparison,
        };
        Compared::new(state, comparison, true)
    }
}

impl PartCalls<'_> {
    /// Compares a document with its schema. If it has to match and does not, the model corrects it
    /// with one more call, within the limits of the run.
    pub(super) async fn compare_or_correct(
        &mut self,
        run: &mut Continuation,
    ) -> Result<Compared, ApiError> {
        let (context, target) = (self.context, self.target);
        let compared = context.compare(target, state_of(run), run.text()).await;
        let violation = compared.violation().filter(|_| context.is_continued());
        let Some(violation) = violation else {
            return Ok(compared);
        };
        let mut corrected = None;
        let check = async |document: &str| {
            let compared = context.compare(target, PartState::Complete, document).await;
            match &compared.comparison {
                Comparison::Matches => {
                    corrected = Some(compared);
                    Ok(())
                }
                Comparison::Undecided(why) | Comparison::Violates(why) => Err(why.clone()),
            }
        };
        self.correct(run, violation, check).await?;
        Ok(corrected.unwrap_or(compared))
    }
}

/// The arguments of a call without any.
pub(super) const NO_ARGUMENTS: &str = "{}";

impl Compliance {
    /// Adds the comparison of a part. Returns the state of the part.
    pub(super) fn add(&mut self, target: AnswerPart<'_>, compared: Compared) -> PartState {
        let all = match target.tool {
            None => &mut self.content,
            Some(_) => &mut self.calls,
        };
        *all = std::mem::take(all).and(compared.comparison);
        compared.state
    }

    /// All comparisons together.
    pub(super) fn comparison(&self) -> Comparison {
        self.content.clone().and(self.calls.clone())
    }

    /// The error that the client gets instead of the answer, if the settings say so.
    pub(super) fn refusal(&self, context: &RequestContext) -> Option<String> {
        let is_refused = context.gateway.settings.strict_schema;
        let violation = self.content.violation().filter(|_| is_refused);
        violation.map(str::to_owned)
    }

    /// The `overlock` member of the completion or of the last event. Complete and unchanged answers
    /// have none.
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
