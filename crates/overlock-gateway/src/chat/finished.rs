//! An answer that has ended, as a reply or as the last lines of a stream.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};
use overlock_json::Comparison;
use overlock_llm::wire::Protocol;
use overlock_llm::{Outcome, Reason};
use overlock_runs::to_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::params::ChatParams;
use crate::error::ApiError;
use crate::reply::{Reply, event_stream, reply, whole};
use crate::upstream::forward_headers;

/// An answer that has ended. With an idempotency key it is stored and sent again.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct FinishedAnswer {
    pub(super) completion: Value,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    /// The calls after the first.
    pub(super) continuations: u32,
    /// Why a document that was joined may lack something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) suspicious: Option<String>,
    /// The comparison with the schemas of the request.
    pub(super) comparison: Comparison,
    /// The error that the client gets instead of a document that violates its schema.
    pub(super) refusal: Option<String>,
    /// Whether the completion differs from the upstream's.
    #[serde(skip)]
    pub(super) is_changed: bool,
}

/// The stored answer for later requests with the same key. The steps are stored separately.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum IdempotentAnswer<'a> {
    /// The answer to the first call. The steps follow from it.
    First(Cow<'a, Value>),
    /// The answer that the client got.
    Answered(Cow<'a, FinishedAnswer>),
}

impl FinishedAnswer {
    /// The stored form for later requests with the same key.
    pub(super) fn stored(&self) -> String {
        to_json(&IdempotentAnswer::Answered(Cow::Borrowed(self)))
    }

    /// The reply, streamed or not, with these headers of the upstream. A completion that did not
    /// change is sent as the upstream wrote it.
    pub(super) fn into_reply(
        self,
        params: &ChatParams,
        original: Option<Bytes>,
        headers: &HeaderMap,
    ) -> Result<Reply, ApiError> {
        if let Some(refusal) = self.refusal {
            return Err(ApiError::upstream(refusal).with_code("schema_violation"));
        }
        let mut answer = if params.is_streamed {
            let protocol = params.protocol;
            let events = protocol.events(&self.completion, params.wants_usage);
            let events = events.iter().flat_map(|event| protocol.frame(event));
            let mut stream: Vec<u8> = events.collect();
            stream.extend(self.end_of_stream(protocol).into_bytes());
            event_stream(whole(stream))
        } else {
            let original = original.filter(|_| !self.is_changed);
            let body = original.unwrap_or_else(|| self.completion.to_string().into());
            let mut answer = reply(StatusCode::OK, "application/json", whole(body));
            self.set_headers(answer.headers_mut());
            answer
        };
        forward_headers(headers, answer.headers_mut());
        Ok(answer)
    }

    fn set_headers(&self, headers: &mut HeaderMap) {
        for (name, value) in [
            ("x-overlock-outcome", Some(self.outcome.name())),
            ("x-overlock-reason", self.outcome.reason().map(Reason::name)),
            ("x-overlock-schema", self.comparison.name()),
        ] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        let suspicious = self.suspicious.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(reason)) = suspicious {
            headers.insert("x-overlock-suspicious", reason);
        }
        let continuations = HeaderValue::from(self.continuations);
        headers.insert("x-overlock-continuations", continuations);
    }

    /// The last lines of a stream. Its headers were sent before its first byte, so a comment says
    /// the same.
    pub(super) fn end_of_stream(&self, protocol: Protocol) -> String {
        let (outcome, calls) = (self.outcome.name(), self.continuations);
        let reason = self
            .outcome
            .reason()
            .map(|it| format!(" reason={}", it.name()));
        let schema = self.comparison.name().map(|it| format!(" schema={it}"));
        let suspicious = self.suspicious.as_ref();
        let suspicious = suspicious.map(|reason| format!(" suspicious={reason}"));
        format!(
            ": overlock outcome={outcome} continuations={calls}{}{}{}\n\n{}",
            reason.unwrap_or_default(),
            schema.unwrap_or_default(),
            suspicious.unwrap_or_default(),
            protocol.end_of_stream()
        )
    }
}
