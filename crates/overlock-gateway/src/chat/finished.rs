//! An answer that has ended, and the reply that carries it.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};
use overlock_llm::Outcome;
use overlock_llm::wire::chat::chunks;
use serde_json::Value;

use super::idempotency::Answered;
use super::refusal::pass_on;
use super::reported::{ending_comment, report};
use super::wish::Wish;
use crate::error::ApiError;
use crate::reply::{Reply, event_stream, reply, whole};
use overlock_json::Comparison;

/// An answer that has ended.
pub(super) struct FinishedAnswer {
    /// The completion.
    pub(super) value: Value,
    /// The same as it came, if nothing had to change.
    pub(super) bytes: Option<Bytes>,
    pub(super) is_changed: bool,
    /// The upstream's headers.
    pub(super) headers: HeaderMap,
    pub(super) outcome: Outcome,
    pub(super) continuations: u32,
    pub(super) comparison: Comparison,
}

impl FinishedAnswer {
    /// An answer that was recorded for an earlier request, or the error that was sent instead.
    pub(super) fn replayed(before: Answered) -> Result<Self, ApiError> {
        if let Some(refusal) = before.refusal {
            return Err(violated(refusal));
        }
        Ok(Self {
            value: before.completion,
            bytes: None,
            is_changed: false,
            headers: HeaderMap::new(),
            outcome: before.outcome,
            continuations: before.continuations,
            comparison: before.comparison,
        })
    }

    pub(super) fn completion(&self) -> &Value {
        &self.value
    }

    /// The reply to a request, streamed or not.
    pub(super) fn into_reply(self, wish: &Wish) -> Reply {
        let mut answer = if wish.streams {
            let events = chunks(&self.value).into_iter();
            let events = events.filter(|event| wish.wants_usage || event.get("usage").is_none());
            let events: Vec<String> = events.map(|event| format!("data: {event}\n\n")).collect();
            let end = ending_comment(&self.outcome, self.continuations, &self.comparison);
            event_stream(whole(events.concat() + &end))
        } else {
            let body = self.bytes.unwrap_or_else(|| self.value.to_string().into());
            let mut answer = reply(StatusCode::OK, "application/json", whole(body));
            let headers = answer.headers_mut();
            report(headers, &self.outcome, self.continuations);
            if let Some(name) = self.comparison.name() {
                headers.insert("x-overlock-schema", HeaderValue::from_static(name));
            }
            answer
        };
        pass_on(&self.headers, answer.headers_mut());
        answer
    }
}

/// The error instead of a document that must not violate its schema.
pub(super) fn violated(refusal: String) -> ApiError {
    ApiError::upstream(refusal).with_code("schema_violation")
}
