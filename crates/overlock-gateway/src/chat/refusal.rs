//! An error response of the upstream, and the headers that go on to the client.

use hyper::HeaderMap;
use hyper::header::{self, HeaderName};
use overlock_llm::{BackendError, CallFailure, Peer};
use serde_json::Value;

use crate::error::ApiError;
use crate::reply::{Reply, json_reply};

/// The reply to a request whose call of the upstream failed. An error that is in the shape that
/// clients know stays as it is.
pub(crate) fn failure_reply(peer: &Peer, failure: CallFailure) -> Reply {
    let Some(refused) = failure.refused else {
        return ApiError::from(failure.error).into_reply();
    };
    let value: Option<Value> = serde_json::from_slice(&refused.body).ok();
    let known = value.filter(|value| value.get("error").is_some_and(Value::is_object));
    let mut reply = if let Some(mut value) = known {
        peer.hide_in(&mut value);
        json_reply(refused.status, &value)
    } else {
        let said = match failure.error {
            BackendError::Status { message, .. } => message,
            error => error.to_string(),
        };
        let message = format!("the upstream answered {}: {said}", refused.status);
        ApiError::new(refused.status, "upstream_error", message).into_reply()
    };
    pass_on(&refused.headers, reply.headers_mut());
    reply
}

/// Puts what the upstream says about an answer beside what is said here.
pub(crate) fn pass_on(from: &HeaderMap, to: &mut HeaderMap) {
    static KEPT_BACK: [HeaderName; 9] = [
        header::CONNECTION,
        // Whatever could be read here is not packed any more.
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::TRANSFER_ENCODING,
        header::TRAILER,
        header::UPGRADE,
        header::DATE,
        header::SET_COOKIE,
    ];
    for (name, value) in from {
        if !KEPT_BACK.contains(name) && name != "keep-alive" {
            to.append(name.clone(), value.clone());
        }
    }
}
