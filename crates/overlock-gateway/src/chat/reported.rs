//! How the client learns how its answer ended, besides the answer.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use overlock_llm::Outcome;

use overlock_json::Comparison;

/// Sets the headers of an answer that is not streamed.
pub(super) fn report(headers: &mut HeaderMap, outcome: &Outcome, continuations: u32) {
    const OUTCOME: HeaderName = HeaderName::from_static("x-overlock-outcome");
    const REASON: HeaderName = HeaderName::from_static("x-overlock-reason");
    const CONTINUATIONS: HeaderName = HeaderName::from_static("x-overlock-continuations");
    headers.insert(OUTCOME, HeaderValue::from_static(outcome.name()));
    if let Some(reason) = outcome.reason() {
        headers.insert(REASON, HeaderValue::from_static(reason.name()));
    }
    headers.insert(CONTINUATIONS, HeaderValue::from(continuations));
}

/// The last lines of a stream. Its headers were sent with the first byte, so the same is said in a
/// comment.
pub(super) fn ending_comment(
    outcome: &Outcome,
    continuations: u32,
    comparison: &Comparison,
) -> String {
    let mut comment = format!(
        ": overlock outcome={} continuations={continuations}",
        outcome.name()
    );
    if let Some(reason) = outcome.reason() {
        comment.push_str(" reason=");
        comment.push_str(reason.name());
    }
    if let Some(name) = comparison.name() {
        comment.push_str(" schema=");
        comment.push_str(name);
    }
    comment + "\n\ndata: [DONE]\n\n"
}
