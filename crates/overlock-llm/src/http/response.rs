//! Reads a response, with timeouts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::StatusCode;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::{self, HeaderMap};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::address::without_secrets;
use super::{Body, CallFailure, Peer, Timeouts, causes, earliest};
use crate::backend::{BackendError, Phase, RefusedSize};

/// A response while it arrives.
#[derive(Debug)]
pub struct Response {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    body: Incoming,
    peer: Arc<Peer>,
    /// Bytes that were read to determine the shape, to be returned next.
    peeked: Option<Bytes>,
    /// The timeout for the next output, and the rest of it: bytes without output do not reset it.
    patience: Duration,
    left: Duration,
    phase: Phase,
    silence: Duration,
    /// Whether the answer has ended.
    pub(super) is_ended: bool,
    /// When the response must end.
    deadline: Option<Instant>,
}

/// An error response.
#[derive(Clone, Debug)]
pub struct ErrorResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The start of its body. It may contain a key.
    pub body: Bytes,
}

/// The format of an answer, judged by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Server-sent events.
    Stream,
    /// One JSON document.
    Json,
}

/// The maximum length of an answer without streaming.
pub(super) const LONGEST_ANSWER: usize = 256 << 20;

/// The maximum length of a server's information about itself.
const LONGEST_INFORMATION: usize = 8 << 20;

/// The maximum length that is read of an error's body.
const LONGEST_ERROR: usize = 1 << 20;

impl Response {
    pub(super) fn new(
        response: hyper::Response<Incoming>,
        peer: &Arc<Peer>,
        timeouts: &Timeouts,
        left: Duration,
        deadline: Option<Instant>,
    ) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body,
            peer: Arc::clone(peer),
            peeked: None,
            patience: timeouts.first_byte,
            left,
            phase: Phase::FirstByte,
            silence: timeouts.silence,
            is_ended: false,
            deadline,
        }
    }

    /// Its content encoding, if any. The client asks for none and decodes none.
    pub fn content_encoding(&self) -> Option<&str> {
        content_encoding(&self.headers)
    }

    /// Whether its content type is an event stream.
    pub fn is_event_stream(&self) -> bool {
        let kind = self.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
    }

    /// The format, judged by the first byte that is not white space: content types are unreliable.
    pub(super) async fn shape(&mut self) -> Result<Shape, BackendError> {
        let first = loop {
            let Some(bytes) = self.next_bytes().await? else {
                return Err(self.malformed("the body is empty"));
            };
            let bytes = match bytes.strip_prefix("\u{feff}".as_bytes()) {
                Some(rest) => bytes.slice_ref(rest),
                None => bytes,
            };
            if let Some(first) = bytes.trim_ascii_start().first().copied() {
                self.peeked = Some(bytes);
                break first;
            }
        };
        match first {
            b'{' => Ok(Shape::Json),
            // `data`, `event`, `id`, `retry`, and a comment.
            b'd' | b'e' | b'i' | b'r' | b':' => Ok(Shape::Stream),
            _ => Err(self.malformed("neither JSON nor an event stream")),
        }
    }

    /// Records output of the model, which restarts the timeout between outputs.
    pub fn mark_active(&mut self) {
        (self.patience, self.left) = (self.silence, self.silence);
        self.phase = Phase::NextByte;
    }

    /// Records the end of the answer: an interrupted connection loses nothing after that.
    pub fn mark_ended(&mut self) {
        self.is_ended = true;
    }

    /// The next bytes; `None` at the end.
    pub async fn next_bytes(&mut self) -> Result<Option<Bytes>, BackendError> {
        match self.next_data().await {
            Err(error) if self.is_ended && error.is_transient() => Ok(None),
            next => next.map_err(|error| self.failed(error)),
        }
    }

    async fn next_data(&mut self) -> Result<Option<Bytes>, BackendError> {
        if let Some(bytes) = self.peeked.take() {
            return Ok(Some(bytes));
        }
        loop {
            // Only waiting for the server counts, not the time between reads.
            let begun = Instant::now();
            let until = begun + self.left;
            let frame = timeout_at(earliest(until, self.deadline), self.body.frame()).await;
            self.left = self.left.saturating_sub(begun.elapsed());
            let Ok(frame) = frame else {
                let (phase, after) = (self.phase, self.patience);
                return Err(self.peer.timed_out(phase, until, after, self.deadline));
            };
            match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(BackendError::Broken {
                        host: self.host().to_owned(),
                        reason: causes(&error),
                    });
                }
                // Ignore trailers.
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// A short response as JSON.
    pub(super) async fn read_json(&mut self) -> Result<Value, BackendError> {
        let body = self.read_whole(LONGEST_INFORMATION).await?;
        serde_json::from_slice(&body).map_err(|error| self.malformed(&error.to_string()))
    }

    /// The whole body; an error if it is longer than `most_bytes`.
    pub async fn read_whole(&mut self, most_bytes: usize) -> Result<Bytes, BackendError> {
        let (mut first, mut all) = (Bytes::new(), Vec::new());
        while let Some(piece) = self.next_bytes().await? {
            if !piece.trim_ascii().is_empty() {
                self.mark_active();
            }
            if piece.len() > most_bytes - first.len().max(all.len()) {
                return Err(self.failed(BackendError::TooLong { most_bytes }));
            }
            if first.is_empty() {
                first = piece;
                // Most answers are short and come in one piece, which avoids a copy.
                if self.body.is_end_stream() {
                    break;
                }
                continue;
            }
            if all.is_empty() {
                all.extend_from_slice(&first);
            }
            all.extend_from_slice(&piece);
        }
        Ok(if all.is_empty() { first } else { all.into() })
    }

    /// The failure of an error response, with as much of the body as arrives before a timeout.
    pub(super) async fn into_failure(mut self) -> CallFailure {
        self.mark_active();
        let mut body = Vec::new();
        while let Ok(Some(piece)) = self.next_data().await {
            body.extend_from_slice(&piece);
            if body.len() > LONGEST_ERROR {
                break;
            }
        }
        let error = self.failed(self.status_error(&body));
        let refused = Some(Box::new(ErrorResponse {
            status: self.status,
            headers: self.headers,
            body: body.into(),
        }));
        CallFailure { error, refused }
    }

    fn status_error(&self, body: &[u8]) -> BackendError {
        let mut message = match self.content_encoding() {
            Some(encoding) => format!("a body with the content encoding `{encoding}`"),
            None => error_message(body).unwrap_or_else(|| {
                self.status
                    .canonical_reason()
                    .unwrap_or("an error")
                    .to_owned()
            }),
        };
        let location = self.headers.get(header::LOCATION);
        if let Some(location) = location.and_then(|value| value.to_str().ok()) {
            let shown: String = without_secrets(location).chars().take(200).collect();
            message = format!("{message} (redirect to `{shown}`)");
        }
        let status = self.status.as_u16();
        let value = serde_json::from_slice(body).ok();
        let value: Option<Value> = value.filter(|_| matches!(status, 400 | 413 | 422));
        BackendError::Status {
            host: self.host().to_owned(),
            status,
            message,
            retry_after: retry_after(&self.headers),
            size: value.as_ref().and_then(RefusedSize::read),
        }
    }

    /// The body, to be forwarded as it arrives.
    pub fn into_body(self) -> Body {
        let pieces = stream::unfold(Some(self), async |response| {
            let mut response = response?;
            match response.next_bytes().await {
                Ok(piece) => {
                    response.mark_active();
                    Some((Ok(Frame::data(piece?)), Some(response)))
                }
                // The status was already sent, so the client gets an interrupted body.
                Err(error) => Some((Err(error.into()), None)),
            }
        });
        BodyExt::boxed_unsync(StreamBody::new(pieces))
    }

    /// An error for an invalid response, with its content type and encoding.
    pub fn malformed(&self, reason: &str) -> BackendError {
        let mut reason = reason.to_owned();
        for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING] {
            let value = self
                .headers
                .get(&name)
                .and_then(|value| value.to_str().ok());
            if let Some(value) = value {
                let shown: String = value.chars().take(100).collect();
                reason = format!("{reason}, `{name}: {shown}`");
            }
        }
        let host = self.host().to_owned();
        self.failed(BackendError::Malformed { host, reason })
    }

    /// The error in the JSON of an answer, if there is one.
    pub fn error_in(&self, answer: &Value) -> Option<BackendError> {
        let error = error_in(answer, self.host())?;
        Some(self.failed(error))
    }

    /// Reports an error status without reading the body.
    pub fn note_status(&self) {
        self.failed(self.status_error(b""));
    }

    /// The error of a stream that ended without a finish reason.
    pub fn ended_early(&self) -> BackendError {
        self.failed(BackendError::Broken {
            host: self.host().to_owned(),
            reason: "the stream ended before the answer did".to_owned(),
        })
    }

    /// Redacts and reports an error of this response.
    pub fn failed(&self, error: BackendError) -> BackendError {
        self.peer.failed(error)
    }

    pub(super) fn host(&self) -> &str {
        self.peer.name()
    }
}

fn content_encoding(headers: &HeaderMap) -> Option<&str> {
    let encoding = headers.get(header::CONTENT_ENCODING)?;
    let encoding = encoding.to_str().unwrap_or("unknown").trim();
    (!encoding.is_empty() && encoding != "identity").then_some(encoding)
}

/// The wait that a server asks for, in seconds or until a date. A date is compared with the `Date`
/// of the response, so that no clock has to be right.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let asked = text(header::RETRY_AFTER)?.trim();
    if let Ok(seconds) = asked.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    let now = httpdate::parse_http_date(text(header::DATE)?.trim()).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

/// The error in the JSON of an answer, if there is one.
pub(super) fn error_in(answer: &Value, host: &str) -> Option<BackendError> {
    let error = answer.get("error").filter(|error| !error.is_null())?;
    Some(BackendError::Status {
        host: host.to_owned(),
        status: messages_status(answer).unwrap_or(200),
        message: error_message(error.to_string().as_bytes()).unwrap_or_default(),
        retry_after: None,
        size: None,
    })
}

/// The HTTP status for the type of an error of Messages, which may arrive after the head of a stream.
fn messages_status(answer: &Value) -> Option<u16> {
    if answer["type"] != "error" {
        return None;
    }
    Some(match answer["error"]["type"].as_str()? {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

/// The message of an error in one of the usual formats, or the start of any other text.
pub(crate) fn error_message(body: &[u8]) -> Option<String> {
    const SHOWN: usize = 500;
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let error = value
        .as_ref()
        .map(|value| value.get("error").unwrap_or(value));
    let message = error.and_then(|error| {
        let message = error.get("message").unwrap_or(error);
        message.as_str().map(str::to_owned)
    });
    let text = message.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
    let shown: String = text.chars().take(SHOWN).collect();
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::super::Http;
    use super::super::address::Endpoint;
    use super::*;

    #[track_caller]
    fn check_wait(asked: &'static str, date: Option<&'static str>, seconds: Option<f64>) {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(asked));
        if let Some(date) = date {
            headers.insert(header::DATE, HeaderValue::from_static(date));
        }
        let wait = seconds.map(Duration::from_secs_f64);
        assert_eq!(retry_after(&headers), wait, "{asked} {date:?}");
    }

    #[test]
    fn a_server_asks_to_wait_in_seconds_or_until_a_date() {
        let date = Some("Mon, 16 Nov 2026 05:59:50 GMT");
        check_wait("7", date, Some(7.0));
        check_wait(" 0.5 ", None, Some(0.5));
        check_wait("Mon, 16 Nov 2026 06:00:20 GMT", date, Some(30.0));
        check_wait("Monday, 16-Nov-26 06:00:20 GMT", date, Some(30.0));
        check_wait("Mon Nov 16 06:00:20 2026", date, Some(30.0));
        check_wait("Mon, 16 Nov 2026 05:00:00 GMT", date, Some(0.0));
    }

    /// Reads an answer of ten bytes.
    async fn read_ten_bytes(most: usize) -> Result<Bytes, BackendError> {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a server");
        let address = listener.local_addr().expect("an address");
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            stream.read_exact(&mut [0])?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n[1, 2, 34]")?;
            // Keep the connection open until the client has read the answer.
            Ok::<_, std::io::Error>(stream)
        });
        let endpoint = Endpoint::new(&format!("http://{address}"), "/", &[], None)?;
        let http = Http::new(Timeouts::default())?;
        let mut answer = http.ask(&endpoint, Vec::new()).await?;
        let read = answer.read_whole(most).await;
        drop(served.join());
        read
    }

    #[test]
    fn rejects_an_answer_over_the_limit() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let read = |most| runtime.block_on(read_ten_bytes(most));
        assert_eq!(read(10), Ok(Bytes::from_static(b"[1, 2, 34]")));
        assert_eq!(read(9), Err(BackendError::TooLong { most_bytes: 9 }));
    }

    #[test]
    fn ignores_an_invalid_retry_after() {
        check_wait("soon", Some("Mon, 16 Nov 2026 05:59:50 GMT"), None);
        check_wait("-5", None, None);
        check_wait("NaN", None, None);
        check_wait("1e300", None, None);
        check_wait("Mon, 16 Nov 2026 06:00:20 GMT", None, None);
        check_wait("Mon, 16 Nov 2026 06:00:20 GMT", Some("today"), None);
    }
}
