//! Reads request bodies within the limits of size and time.

use std::pin::Pin;
use std::str::Utf8Error;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::error::ApiError;
use crate::reply::Body;
use crate::settings::Limits;

/// The text of a body.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, ApiError> {
    str::from_utf8(bytes).map_err(not_utf8)
}

/// Reads the body of a request. A body that arrives in one piece is not copied.
pub(crate) async fn read_bytes(body: Body, limits: &Limits) -> Result<Bytes, ApiError> {
    let body = LimitedBody::new(body, limits)?.collect().await;
    Ok(body?.to_bytes())
}

/// The body of a request that ends with a fault at the limits of size and time.
pub(crate) struct LimitedBody {
    body: Body,
    most: usize,
    left: usize,
    deadline: Pin<Box<Sleep>>,
}

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    #[error("the request is longer than {0} bytes")]
    TooLong(usize),
    #[error("the request took too long to arrive")]
    TooLate,
    #[error("the connection closed before the end of the request")]
    Incomplete,
}

impl From<BodyFault> for ApiError {
    fn from(fault: BodyFault) -> Self {
        let (status, code) = match fault {
            BodyFault::TooLong(_) => (StatusCode::PAYLOAD_TOO_LARGE, "request_too_large"),
            BodyFault::TooLate => (StatusCode::REQUEST_TIMEOUT, "request_timeout"),
            BodyFault::Incomplete => return Self::invalid(fault.to_string()),
        };
        Self::new(status, "invalid_request_error", fault.to_string()).with_code(code)
    }
}

impl LimitedBody {
    /// Rejects a body whose announced length is over the limit.
    pub(crate) fn new(body: Body, limits: &Limits) -> Result<Self, BodyFault> {
        let most = limits.body_bytes;
        if body.size_hint().lower() > most as u64 {
            return Err(BodyFault::TooLong(most));
        }
        Ok(Self {
            body,
            most,
            left: most,
            deadline: Box::pin(sleep(limits.body_time)),
        })
    }
}

impl HttpBody for LimitedBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let late = self.deadline.as_mut().poll(context);
                return late.map(|()| Some(Err(BodyFault::TooLate)));
            }
        };
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(|_| BodyFault::Incomplete)?;
            let length = frame.data_ref().map_or(0, Bytes::len);
            let left = self.left.checked_sub(length);
            self.left = left.ok_or(BodyFault::TooLong(self.most))?;
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

pub(crate) fn not_utf8(error: Utf8Error) -> ApiError {
    let at = error.valid_up_to();
    ApiError::invalid(format!("the request is not valid UTF-8 at byte {at}"))
}
