//! What goes back over the wire.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::error::ApiError;
use crate::settings::Limits;

/// Why the body of a reply broke off.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a reply, whole or as it comes.
pub(crate) type Body = UnsyncBoxBody<Bytes, BodyError>;

/// What a client gets.
pub(crate) type Reply = Response<Body>;

/// Reads the body of a request, which must be text.
pub(crate) async fn read_text(body: Incoming, limits: &Limits) -> Result<String, ApiError> {
    let most = limits.body_bytes;
    let too_long = || {
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            format!("the request is longer than {most} bytes"),
        )
        .with_code("request_too_large")
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_long());
    }
    let collected = timeout(limits.body_time, Limited::new(body, most).collect()).await;
    let bytes = match collected {
        Err(_) => {
            return Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "invalid_request_error",
                "the request took too long to arrive",
            ));
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_long()),
        Ok(Err(_)) => return Err(ApiError::invalid("the request broke off")),
        Ok(Ok(collected)) => collected.to_bytes(),
    };
    String::from_utf8(bytes.into()).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ApiError::invalid(format!("the request is not UTF-8: byte {at} is wrong"))
    })
}

/// A body that is there already.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// A body that somebody works on while it is read.
///
/// Who goes away stops the work, and who reads slowly slows it down: there is no task of its own.
/// After some silence a comment shows that there is life.
pub(crate) fn worked_on(
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
    // Work gives nothing itself: it is over when the sender is gone.
    let work = stream::once(work).filter_map(async |()| None);
    let both = stream::select(pieces, work).map(|piece| Ok(Frame::data(piece)));
    BodyExt::boxed_unsync(StreamBody::new(both))
}

/// A comment in a stream of events, which no client takes for one.
pub(crate) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// A reply of one kind of content.
pub(crate) fn reply(status: StatusCode, kind: &'static str, body: Body) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// A reply with a JSON value.
pub(crate) fn json_reply(status: StatusCode, value: &Value) -> Reply {
    reply(status, "application/json", whole(value.to_string()))
}
