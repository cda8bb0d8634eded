//! An upstream with a list of replies.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use overlock_llm::testing::eventually;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// One reply.
#[derive(Clone)]
pub(crate) struct FakeReply {
    /// [`NEVER`] for no reply.
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    /// The bytes of a frame of the body, if it has several.
    pub(crate) frame: Option<usize>,
}

/// The status of a missing reply.
const NEVER: u16 = 0;

/// The status of a reply that never ends.
const HANGS: u16 = 1;

/// The status of a reply that breaks off.
const BREAKS: u16 = 2;

/// The status of a reply that repeats its body without end.
const FLOODS: u16 = 3;

/// A received request.
#[derive(Clone)]
pub(crate) struct FakeRequest {
    /// The method and the path.
    pub(crate) target: String,
    /// The query string.
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    /// The exact body.
    pub(crate) text: String,
}

pub(crate) struct Fake {
    pub(crate) base: String,
    requests: Arc<Mutex<Vec<FakeRequest>>>,
}

impl Fake {
    /// An upstream with these replies; the last one is repeated.
    pub(crate) async fn start(replies: Vec<FakeReply>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let replies = Arc::new(Mutex::new(VecDeque::from(replies)));
        let log = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (replies, log) = (Arc::clone(&replies), Arc::clone(&log));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (replies, log) = (Arc::clone(&replies), Arc::clone(&log));
                    async move { Ok::<_, Infallible>(answer(request, &replies, &log).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { base, requests }
    }

    pub(crate) fn requests(&self) -> Vec<FakeRequest> {
        self.requests.lock().expect("no panic").clone()
    }

    /// Waits until it has had this many calls.
    pub(crate) async fn until_called(&self, calls: usize) {
        let look = async || self.requests.lock().expect("no panic").len();
        eventually("an upstream call", look, |made| *made >= calls).await;
    }
}

async fn answer(
    request: Request<Incoming>,
    replies: &Mutex<VecDeque<FakeReply>>,
    log: &Mutex<Vec<FakeRequest>>,
) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    log.lock().expect("no panic").push(FakeRequest {
        target: format!("{} {}", head.method, head.uri.path()),
        query: head.uri.query().map(str::to_owned),
        headers: head.headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        text: String::from_utf8_lossy(&body).into_owned(),
    });
    let said = {
        let mut replies = replies.lock().expect("no panic");
        let first = replies.front().cloned().expect("a reply");
        if replies.len() > 1 {
            replies.pop_front();
        }
        first
    };
    if said.status == NEVER {
        std::future::pending::<()>().await;
    }
    let begins_well = matches!(said.status, HANGS | BREAKS | FLOODS);
    let mut response = Response::builder().status(if begins_well { 200 } else { said.status });
    for (name, value) in said.headers {
        response = response.header(name, value);
    }
    let body = Bytes::from(said.body);
    let body = if said.status == FLOODS {
        let pieces = stream::repeat_with(move || Ok(Frame::data(body.clone())));
        StreamBody::new(pieces).boxed_unsync()
    } else if begins_well {
        let end: BoxStream<'_, _> = if said.status == HANGS {
            stream::pending().boxed()
        } else {
            let breaks = async {
                // The beginning is sent only if nothing follows immediately.
                tokio::task::yield_now().await;
                Err(io::Error::other("it breaks off"))
            };
            stream::once(breaks).boxed()
        };
        let pieces = stream::iter([Ok(Frame::data(body))]).chain(end);
        StreamBody::new(pieces).boxed_unsync()
    } else if let Some(size) = said.frame {
        let frames = (0..body.len()).step_by(size);
        let frames = frames.map(move |at| body.slice(at..body.len().min(at + size)));
        StreamBody::new(stream::iter(frames.map(|frame| Ok(Frame::data(frame))))).boxed_unsync()
    } else {
        Full::new(body)
            .map_err(|never| match never {})
            .boxed_unsync()
    };
    response.body(body).expect("a response")
}

impl FakeReply {
    /// No reply at all.
    pub(crate) fn never() -> Self {
        Self {
            status: NEVER,
            headers: Vec::new(),
            body: String::new(),
            frame: None,
        }
    }

    /// The same in frames of this many bytes.
    pub(crate) fn in_frames(self, size: usize) -> Self {
        Self {
            frame: Some(size),
            ..self
        }
    }

    /// A stream that begins with this text and never ends.
    pub(crate) fn hanging(content: &str) -> Self {
        let said = Self::stream(&[json!({ "index": 0, "delta": { "content": content } })]);
        Self {
            status: HANGS,
            body: said.body.replace("data: [DONE]\n\n", ""),
            ..said
        }
    }

    /// A stream that breaks off after this text.
    pub(crate) fn breaking(content: &str) -> Self {
        let hanging = Self::hanging(content);
        Self {
            status: BREAKS,
            ..hanging
        }
    }

    /// A stream of text without an end.
    pub(crate) fn flooding() -> Self {
        let hanging = Self::hanging(&"word ".repeat(2000));
        Self {
            status: FLOODS,
            ..hanging
        }
    }

    /// The beginning of an answer that breaks off.
    pub(crate) fn broken(content: &str) -> Self {
        let said = Self::content(content, "stop");
        Self {
            status: BREAKS,
            body: said.body[..said.body.len() / 2].to_owned(),
            ..said
        }
    }

    pub(crate) fn json(status: u16, value: &Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body: value.to_string(),
            frame: None,
        }
    }

    /// A completion with these choices, not streamed.
    pub(crate) fn choices(choices: &Value) -> Self {
        Self::json(
            200,
            &json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o",
                "system_fingerprint": "fp_1", "choices": choices,
                "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
            }),
        )
    }

    /// A completion with this content.
    pub(crate) fn content(content: &str, finish: &str) -> Self {
        let message = json!({ "role": "assistant", "content": content });
        Self::choices(&json!([{ "index": 0, "message": message, "finish_reason": finish }]))
    }

    /// A stream of these choices of chunks.
    pub(crate) fn stream(choices: &[Value]) -> Self {
        let mut body = String::new();
        for choice in choices {
            let chunk = json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
                "model": "gpt-4o", "choices": [choice],
            });
            let event = format!("data: {chunk}\n\n");
            body.push_str(&event);
        }
        body.push_str("data: [DONE]\n\n");
        Self {
            status: 200,
            headers: vec![("content-type", "text/event-stream".to_owned())],
            body,
            frame: None,
        }
    }

    /// A stream of this text, in pieces of a few characters.
    pub(crate) fn streamed_content(content: &str, finish: &str) -> Self {
        let characters: Vec<char> = content.chars().collect();
        let mut choices: Vec<Value> = characters
            .chunks(5)
            .map(|piece| json!({ "index": 0, "delta": { "content": String::from_iter(piece) } }))
            .collect();
        choices.push(json!({ "index": 0, "delta": {}, "finish_reason": finish }));
        Self::stream(&choices)
    }
}
