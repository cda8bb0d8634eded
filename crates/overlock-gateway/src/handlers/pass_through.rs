//! All other paths below `/v1/`: forwarded to the upstream unchanged.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use http_body_util::BodyExt;
use hyper::Response;
use hyper::header::CONTENT_LENGTH;

use crate::body::LimitedBody;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::handlers::{Handled, RequestScope};
use crate::reply::whole;
use crate::upstream::without_connection;

/// The prefix of these paths. In the address of the upstream it is the end.
const VERSION: &str = "/v1";

/// The longest error reply of the upstream.
const LONGEST_ERROR: usize = 1 << 20;

pub(crate) async fn answer(
    State(gateway): State<Arc<Gateway>>,
    Extension(scope): Extension<RequestScope>,
    request: Request,
) -> Handled {
    let settings = &gateway.settings;
    let upstream = settings.upstream.address()?;
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("", |path| path.as_str());
    let path = path.strip_prefix(VERSION).unwrap_or(path);
    let key_is_ours = !settings.keys.is_empty();
    let client = &gateway.client;
    let headers = client.untouched_headers(&head.headers, key_is_ours);
    // The HTTP client owns the body meanwhile.
    let fault = Arc::new(OnceLock::new());
    let seen = Arc::clone(&fault);
    let body = LimitedBody::new(body, &settings.limits)?.map_err(move |fault| {
        // Only the first fault is reported.
        let _ = seen.set(fault);
        fault.into()
    });
    let request = client.request(head.method, (upstream, path), headers, body.boxed_unsync());
    let request = request.map_err(|_| ApiError::invalid("invalid path"))?;
    // Sent once without retries, since the body is not stored.
    let answer = client
        .http
        .send(&client.peer, request, Some(scope.deadline));
    // An error of the upstream call may be caused by the body of the client.
    let answer = answer.await;
    let mut answer = answer.map_err(|error| match fault.get() {
        Some(fault) => ApiError::from(*fault),
        None => error.into(),
    })?;
    let (status, mut headers) = (answer.status, answer.headers.clone());
    without_connection(&mut headers);
    let is_error = status.is_client_error() || status.is_server_error();
    // An error may quote the key, which is removed. A compressed error cannot be checked.
    if is_error {
        answer.note_status();
    }
    let body = if is_error && client.peer.has_key() && answer.content_encoding().is_none() {
        let text = answer.read_whole(LONGEST_ERROR).await?;
        headers.remove(CONTENT_LENGTH);
        match client.peer.hide(&String::from_utf8_lossy(&text)) {
            Cow::Owned(hidden) => whole(hidden),
            Cow::Borrowed(_) => whole(text),
        }
    } else {
        Body::new(answer.into_body())
    };
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    Ok(reply)
}
