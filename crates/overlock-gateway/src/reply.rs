//! Builds HTTP replies and their bodies.

use std::convert::Infallible;
use std::time::Duration;

pub(crate) use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A reply to a client.
pub(crate) type Reply = Response<Body>;

/// A body whose work is driven by reading it.
///
/// There is no background task: a client that disconnects cancels the work, and a slow client slows
/// it down. After `keep_alive` without data a comment is sent.
pub(crate) fn driven_body(
    pieces: mpsc::Receiver<Bytes>,
    work: impl Future<Output = ()> + Send + 'static,
    keep_alive: Duration,
) -> Body {
    let pieces = stream::unfold(pieces, move |mut pieces| async move {
        match timeout(keep_alive, pieces.recv()).await {
            Ok(piece) => Some((piece?, pieces)),
            Err(_) => Some((Bytes::from_static(KEEP_ALIVE), pieces)),
        }
    });
    // The work yields nothing itself; the body ends when the sender is dropped.
    let work = stream::once(work).filter_map(async |()| None);
    Body::from_stream(stream::select(pieces, work).map(Ok::<_, Infallible>))
}

/// A comment in an event stream, which clients ignore.
pub(crate) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// A body in one piece.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Body::from(bytes.into())
}

/// A reply with a content type.
pub(crate) fn reply(status: StatusCode, kind: &'static str, body: Body) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// A reply with server-sent events.
pub(crate) fn event_stream(body: Body) -> Reply {
    let mut reply = reply(StatusCode::OK, "text/event-stream", body);
    reply
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    reply
}

/// A reply with a JSON value.
pub(crate) fn json_reply(status: StatusCode, value: &Value) -> Reply {
    reply(status, "application/json", whole(value.to_string()))
}
