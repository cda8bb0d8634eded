//! The faults of a scripted server.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use hyper::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use super::dialect::{Dialect, Heading};
use crate::backend::Event;

/// A fault of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error with this status, and an optional `Retry-After` in seconds.
    Status(u16, Option<u64>),
    /// The connection is reset after this many bytes of the stream.
    Reset(usize),
    /// A pause in milliseconds before every event.
    Drip(u64),
    /// The stream stalls after this many bytes, and the connection stays open.
    Silence(usize),
    /// No answer at all.
    NoAnswer,
    /// An event in the middle is not JSON.
    MalformedEvent,
    /// The status is 200, but the body is an error.
    ErrorBody,
    /// The answer is not streamed although the request asks for it.
    NotStreamed,
    /// The content type of the stream is plain text.
    WrongContentType,
    /// The answer never ends.
    Endless,
    /// The finish reasons `stop` and `length` are exchanged.
    WrongFinish,
    /// A request with a prefill is rejected, as by newer models.
    RefusesPrefill,
    /// An error that contains the client's key.
    TellsKey,
    /// An error event in the middle of the stream.
    ErrorEvent,
    /// After this many bytes of the stream, endless comments.
    KeepsAlive(usize),
    /// After this many bytes of the stream, endless empty pieces.
    EmptyPieces(usize),
    /// An error whose body never ends.
    EndlessError,
    /// The answer is not streamed, and its content type is plain text.
    WholeAsText,
    /// The content type of the stream is JSON.
    StreamAsJson,
    /// The body is compressed although the client did not ask for it.
    Compressed,
    /// A redirect.
    Moved,
    /// Unknown events between the others.
    Pings,
    /// The model declines to answer.
    Declines,
    /// The answer ends, but the stream does not, and the connection stays open.
    StaysOpen,
    /// Escaped surrogate pairs are split between two events.
    TornCharacters,
    /// The model writes white space up to its limit, so that no document begins.
    WritesWhiteSpace,
    /// Reasoning uses up all tokens of the answer.
    OnlyReasons,
}

impl Fault {
    /// The text of an answer that reaches its limit before its document begins.
    pub(super) fn before_document(self) -> Option<&'static str> {
        match self {
            Self::WritesWhiteSpace => Some("\n    \n    \n     \t \t \t \t \t"),
            Self::OnlyReasons => Some(""),
            _ => None,
        }
    }
}

pub(super) type ScriptedBody = StreamBody<Frames>;

type Frames = BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>;

/// The answer of a server with this fault, if it does not call the model.
pub(super) async fn without_model(
    fault: Option<Fault>,
    rejects_prefill: bool,
    dialect: &Dialect,
    headers: &HeaderMap,
    heading: &Heading,
) -> Option<Response<ScriptedBody>> {
    Some(match fault {
        Some(Fault::Status(status, retry_after)) => {
            error_response(dialect, status, "the model is busy", retry_after)
        }
        Some(Fault::ErrorBody) => json_response(StatusCode::OK, &dialect.error(529, "overloaded")),
        Some(Fault::TellsKey) => error_response(dialect, 400, &unknown_key(headers), None),
        _ if rejects_prefill => error_response(dialect, 400, NO_PREFILL, None),
        Some(Fault::NoAnswer) => std::future::pending().await,
        Some(Fault::EndlessError) => {
            let body = endless("busy ".to_owned());
            response(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", body)
        }
        Some(Fault::Compressed) => {
            let body = stream::iter([Ok(Frame::data(Bytes::from_static(b"\x1f\x8b\x08")))]);
            let mut answer = response(StatusCode::OK, "application/json", body.boxed());
            let gzip = HeaderValue::from_static("gzip");
            answer.headers_mut().insert(CONTENT_ENCODING, gzip);
            answer
        }
        Some(Fault::Moved) => {
            let mut answer = error_response(dialect, 301, "moved", None);
            let place = HeaderValue::from_static("https://elsewhere.example/v1?key=hunter2");
            answer.headers_mut().insert(LOCATION, place);
            answer
        }
        Some(Fault::Declines) => {
            let events = [
                Event::Refusal("I would rather not.".to_owned()),
                Event::Finish("content_filter".to_owned()),
            ];
            streamed(heading, &events, dialect, fault)
        }
        _ => return None,
    })
}

pub(super) fn with_wrong_finish(event: Event) -> Event {
    match event {
        Event::Finish(reason) if reason == "length" => Event::Finish("stop".to_owned()),
        Event::Finish(_) => Event::Finish("length".to_owned()),
        other => other,
    }
}

/// An error message that contains the client's keys.
fn unknown_key(headers: &HeaderMap) -> String {
    let keys = ["authorization", "x-api-key"].map(|name| headers.get(name));
    let keys = keys.into_iter().flatten();
    let keys = keys.filter_map(|key| key.to_str().ok());
    keys.fold("this key is not known:".to_owned(), |text, key| {
        format!("{text} {key}")
    })
}

/// The error of newer models for a prefill.
pub(super) const NO_PREFILL: &str = "This model does not support assistant message prefill.";

/// A streamed answer with this fault.
pub(super) fn streamed(
    heading: &Heading,
    events: &[Event],
    dialect: &Dialect,
    fault: Option<Fault>,
) -> Response<ScriptedBody> {
    let mut chunks = faulty_chunks(heading, events, dialect, fault);
    let kind = match fault {
        Some(Fault::WrongContentType) => "text/plain",
        Some(Fault::StreamAsJson) => "application/json",
        _ => "text/event-stream",
    };
    let frame = |chunk: String| Ok(Frame::data(Bytes::from(chunk)));
    let body = match fault {
        Some(Fault::Reset(bytes)) => {
            let first: Vec<_> = first_bytes(chunks, bytes).map(frame).collect();
            let reset = stream::once(async {
                // The first bytes are sent only if the stream yields before the error.
                tokio::task::yield_now().await;
                Err(std::io::Error::other("the script says so"))
            });
            stream::iter(first).chain(reset).boxed()
        }
        Some(Fault::StaysOpen) => {
            chunks.pop();
            stream::iter(chunks)
                .map(frame)
                .chain(stream::pending())
                .boxed()
        }
        Some(Fault::Silence(bytes)) => {
            let first: Vec<_> = first_bytes(chunks, bytes).map(frame).collect();
            stream::iter(first).chain(stream::pending()).boxed()
        }
        Some(Fault::KeepsAlive(bytes) | Fault::EmptyPieces(bytes)) => {
            let first: Vec<_> = first_bytes(chunks, bytes).map(frame).collect();
            let empty = match fault {
                Some(Fault::EmptyPieces(_)) => dialect.chunk(heading, &Event::Text(String::new())),
                _ => ": keep-alive\n\n".to_owned(),
            };
            stream::iter(first).chain(endless(empty)).boxed()
        }
        Some(Fault::Drip(milliseconds)) => stream::iter(chunks)
            .then(move |chunk| async move {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                Ok(Frame::data(Bytes::from(chunk)))
            })
            .boxed(),
        Some(Fault::Endless) => {
            let again = dialect.chunk(heading, &Event::Text("blah ".repeat(200)));
            stream::iter(chunks.into_iter().take(1))
                .chain(stream::repeat(again))
                .map(frame)
                .boxed()
        }
        _ => stream::iter(chunks).map(frame).boxed(),
    };
    response(StatusCode::OK, kind, body)
}

/// The chunks of a stream, changed by faults of its content.
fn faulty_chunks(
    heading: &Heading,
    events: &[Event],
    dialect: &Dialect,
    fault: Option<Fault>,
) -> Vec<String> {
    let mut chunks = match fault {
        Some(Fault::TornCharacters) => torn(heading, dialect, events),
        _ => dialect.stream(heading, events),
    };
    let middle = chunks.len() / 2;
    match fault {
        Some(Fault::MalformedEvent) => {
            chunks.insert(middle, "data: {\"choices\": [oops\n\n".to_owned());
        }
        Some(Fault::Pings) => {
            chunks.insert(middle, "data: {\"type\": \"ping\"}\n\n".to_owned());
        }
        Some(Fault::ErrorEvent) => {
            chunks.truncate(middle);
            chunks.push(dialect.error_event("overloaded"));
        }
        _ => {}
    }
    chunks
}

/// A placeholder for one surrogate, which Rust strings cannot contain.
pub(super) const HALF: char = '\u{e000}';

/// A stream in which every surrogate pair is escaped and split between two events.
fn torn(heading: &Heading, dialect: &Dialect, events: &[Event]) -> Vec<String> {
    let mut halves = Vec::new();
    let mut pieces = Vec::new();
    for event in events {
        let Event::Text(text) = event else {
            pieces.push(event.clone());
            continue;
        };
        let mut piece = String::new();
        for character in text.chars() {
            if character.len_utf16() == 1 {
                piece.push(character);
                continue;
            }
            halves.extend_from_slice(character.encode_utf16(&mut [0; 2]));
            piece.push(HALF);
            pieces.push(Event::Text(std::mem::replace(&mut piece, HALF.to_string())));
        }
        pieces.push(Event::Text(piece));
    }
    let mut rest = halves.iter().copied();
    let written = |chunk: String| {
        // The last events of a response repeat the text from its beginning.
        let mut from_start = halves.iter().copied();
        let is_repeated = matches!(dialect, Dialect::Responses(_)) && !chunk.contains(".delta\"");
        let halves = if is_repeated {
            &mut from_start
        } else {
            &mut rest
        };
        chunk.split(HALF).map(str::to_owned).reduce(|text, rest| {
            let half = halves.next().unwrap_or_default();
            format!("{text}\\u{half:04x}{rest}")
        })
    };
    let chunks = dialect.stream(heading, &pieces).into_iter();
    chunks.filter_map(written).collect()
}

/// Repeats a text forever, with a short pause before each.
fn endless(text: String) -> Frames {
    stream::repeat(Bytes::from(text))
        .then(|text| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(Frame::data(text))
        })
        .boxed()
}

/// The first chunks, up to about this many bytes.
fn first_bytes(chunks: Vec<String>, bytes: usize) -> impl Iterator<Item = String> {
    let mut left = bytes;
    chunks.into_iter().take_while(move |chunk| {
        let is_taken = left > 0;
        left = left.saturating_sub(chunk.len());
        is_taken
    })
}

pub(super) fn error_response(
    dialect: &Dialect,
    status: u16,
    message: &str,
    retry_after: Option<u64>,
) -> Response<ScriptedBody> {
    let body = dialect.error(status, message);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(status, &body);
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

pub(super) fn json_response(status: StatusCode, value: &Value) -> Response<ScriptedBody> {
    let body = stream::iter([Ok(Frame::data(Bytes::from(value.to_string())))]);
    response(status, "application/json", body.boxed())
}

fn response(status: StatusCode, kind: &'static str, body: Frames) -> Response<ScriptedBody> {
    let mut response = Response::new(StreamBody::new(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
