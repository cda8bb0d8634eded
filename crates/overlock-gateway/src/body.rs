//! Reads the body of a request within its limits.

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
    String::from_utf8(bytes.into()).map_err(|error| no_text(error.utf8_error()))
}

/// The text that a body is.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, ApiError> {
    str::from_utf8(bytes).map_err(no_text)
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

/// All of a body, if it is no longer than `most` bytes. Most come in one piece, which is not copied.
async fn collected(mut body: Incoming, most: usize) -> Result<Bytes, ApiError> {
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|_| broken_off())?;
        // Trailers are no part of the text.
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

/// The body of a request on its way to somebody else, under the same limits.
pub(crate) struct Passing {
    body: Incoming,
    left: u64,
    deadline: Pin<Box<Sleep>>,
    fault: Arc<OnceLock<Fault>>,
}

/// Why a body did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    TooLong,
    TooLate,
    BrokenOff,
}

/// Knows what went wrong with a body after it was given away.
pub(crate) struct Passed {
    fault: Arc<OnceLock<Fault>>,
    most: usize,
}

impl Passing {
    /// Refuses a body at once that says that it is too long.
    pub(crate) fn new(body: Incoming, limits: &Limits) -> Result<(Self, Passed), ApiError> {
        let most = limits.body_bytes;
        if body.size_hint().lower() > most as u64 {
            return Err(too_long(most));
        }
        let fault = Arc::new(OnceLock::new());
        let passing = Self {
            body,
            left: most as u64,
            deadline: Box::pin(sleep(limits.body_time)),
            fault: Arc::clone(&fault),
        };
        Ok((passing, Passed { fault, most }))
    }

    fn fail(&self, fault: Fault) -> BodyError {
        // The first fault is the one that counts.
        let _ = self.fault.set(fault);
        "the request did not get through".into()
    }
}

impl Passed {
    /// What is to blame on the client, if anything is.
    pub(crate) fn fault(&self) -> Option<ApiError> {
        Some(match self.fault.get()? {
            Fault::TooLong => too_long(self.most),
            Fault::TooLate => too_late(),
            Fault::BrokenOff => broken_off(),
        })
    }
}

impl HttpBody for Passing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(self.fail(Fault::TooLate))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(match frame {
            None => None,
            Some(Err(_)) => Some(Err(self.fail(Fault::BrokenOff))),
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                match self.left.checked_sub(length) {
                    None => Some(Err(self.fail(Fault::TooLong))),
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

fn no_text(error: Utf8Error) -> ApiError {
    let at = error.valid_up_to();
    ApiError::invalid(format!("the request is not UTF-8: byte {at} is wrong"))
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

fn broken_off() -> ApiError {
    ApiError::invalid("the request broke off")
}
