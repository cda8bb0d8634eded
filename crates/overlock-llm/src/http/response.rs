//! Reads a response, with a limit on every wait.

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
    /// What was read to see what comes, and is still to be given out.
    peeked: Option<Bytes>,
    /// How long the next word may be waited for, and how much of that is left: bytes that say
    /// nothing do not give it anew.
    patience: Duration,
    left: Duration,
    phase: Phase,
    silence: Duration,
    /// Whether the model has ended its answer.
    pub(super) is_ended: bool,
    /// When it has to be done, whatever comes.
    deadline: Option<Instant>,
}

/// A response with which a server refused a call.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as far as it is read. A key may be in it.
    pub body: Bytes,
}

/// What an answer turns out to be, whatever it calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Server-sent events.
    Stream,
    /// One JSON document.
    Whole,
}

/// Of an answer that does not come as a stream no more than this is read.
pub(super) const LONGEST_ANSWER: usize = 256 << 20;

/// Of what a server says about itself no more than this is read.
const LONGEST_INFORMATION: usize = 8 << 20;

/// Of an error's body no more than this is read.
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

    /// How it is packed, if it is. Nobody asks for that here, and nobody unpacks it.
    pub fn packing(&self) -> Option<&str> {
        packing(&self.headers)
    }

    /// Whether it calls itself a stream of events.
    pub fn is_event_stream(&self) -> bool {
        let kind = self.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
    }

    /// What comes, by its first byte that is not blank: what it calls itself is not always true.
    pub(super) async fn shape(&mut self) -> Result<Shape, BackendError> {
        let first = loop {
            let Some(bytes) = self.next_bytes().await? else {
                return Err(self.malformed("there is nothing in it"));
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
            b'{' => Ok(Shape::Whole),
            // `data`, `event`, `id`, `retry`, and a comment.
            b'd' | b'e' | b'i' | b'r' | b':' => Ok(Shape::Stream),
            _ => Err(self.malformed("it is neither JSON nor a stream of events")),
        }
    }

    /// Takes note that a word of the model has come, after which the next one is waited for.
    pub fn has_spoken(&mut self) {
        (self.patience, self.left) = (self.silence, self.silence);
        self.phase = Phase::NextByte;
    }

    /// Takes note that the model has ended its answer: what breaks off after that is not missed.
    pub fn has_ended(&mut self) {
        self.is_ended = true;
    }

    /// The next bytes; nothing at the end.
    pub async fn next_bytes(&mut self) -> Result<Option<Bytes>, BackendError> {
        match self.next_data().await {
            Err(error) if self.is_ended && error.is_passing() => Ok(None),
            next => next.map_err(|error| self.failed(error)),
        }
    }

    async fn next_data(&mut self) -> Result<Option<Bytes>, BackendError> {
        if let Some(bytes) = self.peeked.take() {
            return Ok(Some(bytes));
        }
        loop {
            // Only waiting counts: who reads may take its time.
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
                // Trailers are no part of the answer.
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The JSON that a short whole answer is.
    pub(super) async fn read_json(&mut self) -> Result<Value, BackendError> {
        let body = self.read_whole(LONGEST_INFORMATION).await?;
        serde_json::from_slice(&body).map_err(|error| self.malformed(&error.to_string()))
    }

    /// All of it, if it is no longer than `most_bytes`.
    pub async fn read_whole(&mut self, most_bytes: usize) -> Result<Bytes, BackendError> {
        let (mut first, mut all) = (Bytes::new(), Vec::new());
        while let Some(piece) = self.next_bytes().await? {
            if !piece.trim_ascii().is_empty() {
                self.has_spoken();
            }
            if piece.len() > most_bytes - first.len().max(all.len()) {
                return Err(self.failed(BackendError::TooLong { most_bytes }));
            }
            if first.is_empty() {
                first = piece;
                // Most answers are short and come in one piece, which is not copied.
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

    /// Why the server refused the call, with as much of the body as comes in the time for one
    /// silence.
    pub(super) async fn refused(mut self) -> CallFailure {
        self.has_spoken();
        let mut body = Vec::new();
        while let Ok(Some(piece)) = self.next_data().await {
            body.extend_from_slice(&piece);
            if body.len() > LONGEST_ERROR {
                break;
            }
        }
        let error = self.failed(self.refusal(&body));
        let refused = Some(Box::new(Refused {
            status: self.status,
            headers: self.headers,
            body: body.into(),
        }));
        CallFailure { error, refused }
    }

    fn refusal(&self, body: &[u8]) -> BackendError {
        let mut message = match self.packing() {
            Some(packing) => format!("something that is packed as `{packing}`"),
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
            message = format!("{message} (it refers to `{shown}`)");
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
                    response.has_spoken();
                    Some((Ok(Frame::data(piece?)), Some(response)))
                }
                // What was sent already cannot be unsaid: the client sees that it breaks off.
                Err(error) => Some((Err(error.into()), None)),
            }
        });
        BodyExt::boxed_unsync(StreamBody::new(pieces))
    }

    /// What is wrong with an answer that cannot be read, and what it says of itself.
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

    /// What the server says went wrong in what looks like an answer.
    pub fn error_in(&self, answer: &Value) -> Option<BackendError> {
        let error = error_in(answer, self.host())?;
        Some(self.failed(error))
    }

    /// Tells of a response with the status of an error that is not read here.
    pub fn note_status(&self) {
        self.failed(self.refusal(b""));
    }

    /// The stream ended although the model did not say that its answer had.
    pub fn ended_early(&self) -> BackendError {
        self.failed(BackendError::Broken {
            host: self.host().to_owned(),
            reason: "the stream ended before the answer did".to_owned(),
        })
    }

    /// An error of this response, in what a reader found in it.
    pub fn failed(&self, error: BackendError) -> BackendError {
        self.peer.failed(error)
    }

    pub(super) fn host(&self) -> &str {
        self.peer.name()
    }
}

fn packing(headers: &HeaderMap) -> Option<&str> {
    let packing = headers.get(header::CONTENT_ENCODING)?;
    let packing = packing.to_str().unwrap_or("something unknown").trim();
    (!packing.is_empty() && packing != "identity").then_some(packing)
}

/// How long a server asks to wait: so many seconds, or until a date. A date is compared with the
/// one that the server gives its answer, so that nobody's clock has to be right.
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

/// What a server says went wrong in what looks like an answer.
pub(super) fn error_in(answer: &Value, host: &str) -> Option<BackendError> {
    let error = answer.get("error").filter(|error| !error.is_null())?;
    Some(BackendError::Status {
        host: host.to_owned(),
        status: 200,
        message: error_message(error.to_string().as_bytes()).unwrap_or_default(),
        retry_after: None,
        size: None,
    })
}

/// What an error in one of the usual shapes says, or the beginning of any other text.
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

    /// What is read of a whole answer of ten bytes.
    async fn read_ten_bytes(most: usize) -> Result<Bytes, BackendError> {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a server");
        let address = listener.local_addr().expect("an address");
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            stream.read_exact(&mut [0])?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n[1, 2, 34]")?;
            // It stays open until the client has read what it wants.
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
    fn an_answer_that_is_too_long_is_called_so() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let read = |most| runtime.block_on(read_ten_bytes(most));
        assert_eq!(read(10), Ok(Bytes::from_static(b"[1, 2, 34]")));
        assert_eq!(read(9), Err(BackendError::TooLong { most_bytes: 9 }));
    }

    #[test]
    fn what_cannot_be_read_asks_for_nothing() {
        check_wait("soon", Some("Mon, 16 Nov 2026 05:59:50 GMT"), None);
        check_wait("-5", None, None);
        check_wait("NaN", None, None);
        check_wait("1e300", None, None);
        check_wait("Mon, 16 Nov 2026 06:00:20 GMT", None, None);
        check_wait("Mon, 16 Nov 2026 06:00:20 GMT", Some("today"), None);
    }
}
