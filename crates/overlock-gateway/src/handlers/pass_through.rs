//! All the rest below `/v1/`: the upstream's own answer, untouched.

use std::borrow::Cow;

use http_body_util::BodyExt;
use hyper::Response;
use hyper::header::CONTENT_LENGTH;

use crate::body::Passing;
use crate::error::ApiError;
use crate::handlers::{Call, Handled};
use crate::reply::whole;
use crate::upstream::without_connection;

/// What all paths of the upstream begin with here; there it is the end of its address.
const VERSION: &str = "/v1";

/// A refusal is no longer than this.
const LONGEST_REFUSAL: usize = 1 << 20;

pub(crate) async fn answer(call: Call) -> Handled {
    let settings = &call.gateway.settings;
    let upstream = settings.upstream.address()?;
    let (head, body) = call.request.into_parts();
    let path = head.uri.path_and_query().map_or("", |path| path.as_str());
    let path = path.strip_prefix(VERSION).unwrap_or(path);
    let key_is_ours = !settings.keys.is_empty();
    let client = &call.gateway.client;
    let headers = client.untouched_headers(&head.headers, key_is_ours);
    let (body, passed) = Passing::new(body, &settings.limits)?;
    let request = client.request(head.method, (upstream, path), headers, body.boxed_unsync());
    let request = request.map_err(|_| ApiError::invalid("the path is none"))?;
    // It is sent once: its body is not kept.
    let answer = client.http.send(&client.peer, request, Some(call.deadline));
    // What looks like a fault of the upstream may be one of the client.
    let answer = answer.await;
    let mut answer = answer.map_err(|error| passed.fault().unwrap_or_else(|| error.into()))?;
    let (status, mut headers) = (answer.status, answer.headers.clone());
    without_connection(&mut headers);
    let is_refused = status.is_client_error() || status.is_server_error();
    // A refusal may say the key back; what is packed cannot be looked into.
    if is_refused {
        answer.note_status();
    }
    let body = if is_refused && client.peer.has_key() && answer.content_encoding().is_none() {
        let said = answer.read_whole(LONGEST_REFUSAL).await?;
        headers.remove(CONTENT_LENGTH);
        match client.peer.hide(&String::from_utf8_lossy(&said)) {
            Cow::Owned(hidden) => whole(hidden),
            Cow::Borrowed(_) => whole(said),
        }
    } else {
        answer.into_body()
    };
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    Ok(reply)
}
