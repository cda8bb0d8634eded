//! Reads request bodies within the limits of size and time.

use std::pin::Pin;
use std::str::Utf8Error;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep, timeout};

use crate::error::ApiError;
use crate::reply::BodyError;
use crate::settings::Limits;

/// Reads the body of a request, which must be text.
pub(crate) async fn read_text(body: Incoming, limits: &Limits) -> Result<String, ApiError> {
    let bytes = read_bytes(body, limits).await?;
    String::from_utf8(bytes.into()).map_err(|error| not_utf8(error.utf8_error()))
}

/// The text of a body.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, ApiError> {
    str::from_utf8(bytes).map_err(not_utf8)
}

/// Reads the body of a request.
pub(crate) async fn read_bytes(body: Incoming, limits: &Limits) -> Result<Bytes, ApiError> {
    let most = limits.body_bytes;
    if body.size_hint().lower() > most as u64 {
        return Err(too_long(most));
    }
    let collected = timeout(limits.body_time, collected(body, most)).await;
    collected.unwrap_or_else(|_| Err(too_late()))
}

/// A whole body of at most `most` bytes. A body that arrives in one piece is not copied.
async fn collected(mut body: Incoming, most: usize) -> Result<Bytes, ApiError> {
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|_| incomplete())?;
        // Trailers are ignored.
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if piece.len() > most - first.len().max(all.len()) {
            return Err(too_long(most));
        }
        if first.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

/// The body of a request that is forwarded, under the same limits.
pub(crate) struct ForwardedBody {
    body: Incoming,
    left: u64,
    deadline: Pin<Box<Sleep>>,
    fault: Arc<OnceLock<BodyFault>>,
}

/// Why a body could not be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyFault {
    TooLong,
    TooLate,
    Incomplete,
}

/// Reports the fault of a forwarded body, which the HTTP client owns meanwhile.
pub(crate) struct ForwardedBodyFault {
    fault: Arc<OnceLock<BodyFault>>,
    most: usize,
}

impl ForwardedBody {
    /// Rejects a body whose announced length is over the limit.
    pub(crate) fn new(
        body: Incoming,
        limits: &Limits,
    ) -> Result<(Self, ForwardedBodyFault), ApiError> {
        let most = limits.body_bytes;
        if body.size_hint().lower() > most as u64 {
            return Err(too_long(most));
        }
        let fault = Arc::new(OnceLock::new());
        let forwarded = Self {
            body,
            left: most as u64,
            deadline: Box::pin(sleep(limits.body_time)),
            fault: Arc::clone(&fault),
        };
        Ok((forwarded, ForwardedBodyFault { fault, most }))
    }

    fn fail(&self, fault: BodyFault) -> BodyError {
        // Only the first fault is reported.
        let _ = self.fault.set(fault);
        "the body of the request could not be forwarded".into()
    }
}

impl ForwardedBodyFault {
    /// The error for the client, if its body had a fault.
    pub(crate) fn error(&self) -> Option<ApiError> {
        Some(match self.fault.get()? {
            BodyFault::TooLong => too_long(self.most),
            BodyFault::TooLate => too_late(),
            BodyFault::Incomplete => incomplete(),
        })
    }
}

impl HttpBody for ForwardedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(self.fail(BodyFault::TooLate))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(match frame {
            None => None,
            Some(Err(_)) => Some(Err(self.fail(BodyFault::Incomplete))),
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                match self.left.checked_sub(length) {
                    None => Some(Err(self.fail(BodyFault::TooLong))),
                    Some(left) => {
                        self.left = left;
                        Some(Ok(frame))
                    }
                }
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn not_utf8(error: Utf8Error) -> ApiError {
    let at = error.valid_up_to();
    ApiError::invalid(format!("the request is not valid UTF-8 at byte {at}"))
}

fn too_long(most: usize) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "invalid_request_error",
        format!("the request is longer than {most} bytes"),
    )
    .with_code("request_too_large")
}

pub(crate) fn too_late() -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        "invalid_request_error",
        "the request took too long to arrive",
    )
    .with_code("request_timeout")
}

fn incomplete() -> ApiError {
    ApiError::invalid("the connection closed before the end of the request")
}
