//! Which responses does the upstream store otherwise than clients got them?
//!
//! The upstream stores only its own part of a response that the gateway continued. A request that
//! names such a response in `previous_response_id` gets the whole turn as input instead. The turns
//! are kept in memory. A response that this process does not know is read from the upstream: if the
//! gateway would have continued it, the request is rejected.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, StatusCode};
use overlock_llm::full_body;
use overlock_llm::wire::responses::{
    ResponsesTurn, may_have_been_joined, previous_response_id, stored_id,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::body::text_of;
use crate::error::ApiError;
use crate::keys::client_digest;
use crate::settings::Settings;
use crate::upstream::Client;

/// The most responses in the list.
const MOST: usize = 10_000;

/// The most bytes of all turns.
const MOST_BYTES: usize = 64 << 20;

/// The latest responses of this process.
#[derive(Default)]
pub(crate) struct JoinedResponses {
    state: Mutex<StoredResponses>,
}

#[derive(Default)]
struct StoredResponses {
    /// By a digest of the id and of the client.
    responses: HashMap<String, StoredResponse>,
    order: VecDeque<String>,
    bytes: usize,
}

/// What the upstream stores of a response.
#[derive(Clone)]
enum StoredResponse {
    /// The response that the client got.
    Same,
    /// Another one. The turn is missing if it cannot be sent as input.
    Other(Option<Arc<ResponsesTurn>>),
}

impl StoredResponse {
    fn size(&self) -> usize {
        match self {
            Self::Other(Some(turn)) => turn.size(),
            _ => 0,
        }
    }
}

impl JoinedResponses {
    /// Adds a response that a client got for a request.
    pub(crate) fn add(
        &self,
        headers: &HeaderMap,
        request: &Bytes,
        response: &Value,
        is_changed: bool,
    ) {
        let Ok(request) = text_of(request) else {
            return;
        };
        let Some(id) = stored_id(request, response) else {
            return;
        };
        let stored = if is_changed {
            StoredResponse::Other(ResponsesTurn::new(request, response).map(Arc::new))
        } else {
            StoredResponse::Same
        };
        let key = client_digest(headers, id.as_bytes());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes += stored.size();
        match state.responses.insert(key.clone(), stored) {
            Some(before) => state.bytes -= before.size(),
            None => state.order.push_back(key),
        }
        while state.order.len() > MOST || state.bytes > MOST_BYTES {
            let Some(oldest) = state.order.pop_front() else {
                return;
            };
            let removed = state.responses.remove(&oldest);
            state.bytes -= removed.map_or(0, |stored| stored.size());
        }
    }

    /// The request to make instead of one that continues a response.
    pub(crate) async fn resolve(
        &self,
        (settings, client): (&Settings, &Client),
        headers: &HeaderMap,
        request: Bytes,
        deadline: Instant,
    ) -> Result<Bytes, ApiError> {
        let text = text_of(&request)?;
        let Some(id) = previous_response_id(text) else {
            return Ok(request);
        };
        let key = client_digest(headers, id.as_bytes());
        let known = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.responses.get(&key).cloned()
        };
        match known {
            Some(StoredResponse::Same) => Ok(request),
            Some(StoredResponse::Other(turn)) => {
                let inlined = turn.and_then(|turn| turn.inlined(text));
                inlined.map(Bytes::from).ok_or_else(|| {
                    unavailable("the gateway changed that response and cannot send it as input")
                })
            }
            None => {
                let continues = headers
                    .get("x-overlock-continue")
                    .map(HeaderValue::as_bytes);
                if continues == Some(b"off") {
                    return Ok(request);
                }
                let upstream = (settings.upstream.address()?, client);
                let shown = client.headers(headers, !settings.keys.is_empty());
                let stored = read(upstream, shown, &id, deadline).await?;
                let are_texts_continued = continues == Some(b"text");
                if stored.is_none_or(|stored| !may_have_been_joined(&stored, are_texts_continued)) {
                    return Ok(request);
                }
                Err(unavailable(
                    "the upstream has only the part of that response before its cut, and this \
                     gateway has no record of the rest",
                ))
            }
        }
    }
}

/// Reads a response that the upstream stores. The upstream itself rejects an id that it does not
/// know.
async fn read(
    (base, client): (&str, &Client),
    mut headers: HeaderMap,
    id: &str,
    deadline: Instant,
) -> Result<Option<Value>, ApiError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if id.is_empty() || !id.bytes().all(is_plain) {
        return Err(
            ApiError::invalid("`previous_response_id` is not the id of a response")
                .with_param("previous_response_id"),
        );
    }
    headers.remove(hyper::header::CONTENT_TYPE);
    let path = format!("/responses/{id}");
    let request = client.request(Method::GET, (base, &path), headers, full_body(""))?;
    let mut answer = client
        .http
        .send(&client.peer, request, Some(deadline))
        .await?;
    match answer.status {
        StatusCode::OK => {
            let bytes = answer.read_whole(MOST_BYTES).await?;
            let value = serde_json::from_slice(&bytes);
            value
                .map(Some)
                .map_err(|_| answer.malformed("it is not JSON").into())
        }
        StatusCode::NOT_FOUND => Ok(None),
        status => Err(unavailable(&format!(
            "the upstream answered {status} when it was asked whether that response is complete"
        ))),
    }
}

fn unavailable(reason: &str) -> ApiError {
    ApiError::invalid(format!(
        "`previous_response_id` cannot be used: {reason}. Send the conversation as `input`."
    ))
    .with_code("previous_response_unavailable")
    .with_param("previous_response_id")
}
