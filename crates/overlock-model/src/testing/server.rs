//! Lets a scripted model be asked over HTTP, as a real one is.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::behaviour::Behaviour;
use super::script::{Script, ScriptedModel};
use crate::backend::{Backend, Call, Event};

/// What goes wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused with a status, and perhaps with a word on how long to wait.
    Status(u16, Option<u64>),
    /// The connection breaks after so many bytes of the stream.
    Reset(usize),
    /// A pause of so many milliseconds comes before every event.
    Drip(u64),
    /// Nothing more comes after so many bytes of the stream, and the connection stays open.
    Silence(usize),
    /// Nothing comes at all.
    NoAnswer,
    /// An event in the middle is no JSON.
    MalformedEvent,
    /// The status is 200 and the body is an error.
    ErrorBody,
    /// A whole answer comes although a stream was asked for.
    NotStreamed,
    /// The stream calls itself plain text.
    WrongContentType,
    /// The answer never ends.
    Endless,
    /// It says that it is done where it was cut, and the other way round.
    WrongFinish,
}

/// A server on this machine's own address. Dropping it stops it.
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    model: ScriptedModel,
    /// What goes wrong with the calls to come, the next one last.
    faults: Mutex<Vec<Option<Fault>>>,
    asked: Mutex<Vec<Value>>,
}

type Body = StreamBody<BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>>;

/// A request longer than this is not read.
const LONGEST_REQUEST: usize = 64 << 20;

impl ScriptedServer {
    /// Starts a server that plays a script; the first calls go wrong as told.
    pub async fn start(script: Script, faults: &[Option<Fault>]) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            model: ScriptedModel::new(script),
            faults: Mutex::new(faults.iter().rev().copied().collect()),
            asked: Mutex::default(),
        });
        let served = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, Arc::clone(&served)));
            }
        });
        Ok(Self {
            address,
            shared,
            task,
        })
    }

    /// The base address that a client is given.
    pub fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests it has had so far.
    pub fn asked(&self) -> Vec<Value> {
        locked(&self.shared.asked).clone()
    }

    /// What its model did at each call that it answered.
    pub fn behaved(&self) -> Vec<Behaviour> {
        self.shared.model.behaved()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.answer(request).await) }
    });
    // A client that goes away in the middle is no news.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let is_raw = match request.uri().path() {
            "/v1/chat/completions" => false,
            "/v1/completions" => true,
            path => return refusal(404, &format!("there is nothing at `{path}`"), None),
        };
        let body = Limited::new(request.into_body(), LONGEST_REQUEST)
            .collect()
            .await;
        let body = body
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        let Ok(Value::Object(request)) = serde_json::from_slice(&body) else {
            return refusal(400, "the body is not a JSON object", None);
        };
        locked(&self.asked).push(Value::Object(request.clone()));
        let fault = locked(&self.faults).pop().flatten();
        match fault {
            Some(Fault::Status(status, retry_after)) => {
                return refusal(status, "the model is busy", retry_after);
            }
            Some(Fault::ErrorBody) => {
                return whole(
                    StatusCode::OK,
                    &json!({ "error": { "message": "overloaded" } }),
                );
            }
            Some(Fault::NoAnswer) => std::future::pending().await,
            _ => {}
        }
        let streams =
            request.get("stream") == Some(&json!(true)) && fault != Some(Fault::NotStreamed);
        let events = self.events(call(request, is_raw)).await;
        let events = if fault == Some(Fault::WrongFinish) {
            events.into_iter().map(with_wrong_finish).collect()
        } else {
            events
        };
        if streams {
            streamed(&events, is_raw, fault)
        } else {
            whole(StatusCode::OK, &completion(&events, is_raw))
        }
    }

    async fn events(&self, call: Call) -> Vec<Event> {
        match self.model.call(call).await {
            Ok(events) => events.filter_map(async |event| event.ok()).collect().await,
            Err(_) => Vec::new(),
        }
    }
}

fn with_wrong_finish(event: Event) -> Event {
    match event {
        Event::Finish(reason) if reason == "length" => Event::Finish("stop".to_owned()),
        Event::Finish(_) => Event::Finish("length".to_owned()),
        other => other,
    }
}

/// The call that a request makes: what a last message of the assistant says is put in its mouth.
fn call(mut request: Map<String, Value>, is_raw: bool) -> Call {
    if is_raw {
        let prompt = request.remove("prompt").unwrap_or_default();
        let prefill = prompt.as_str().map(str::to_owned);
        return Call { request, prefill };
    }
    let messages = request.get_mut("messages").and_then(Value::as_array_mut);
    let last =
        messages.and_then(|messages| messages.pop_if(|message| message["role"] == "assistant"));
    let prefill = last.and_then(|message| message["content"].as_str().map(str::to_owned));
    Call { request, prefill }
}

fn completion(events: &[Event], is_raw: bool) -> Value {
    let mut text = String::new();
    let mut value = json!({ "object": "chat.completion", "choices": [{ "index": 0 }] });
    for event in events {
        match event {
            Event::Text(piece) => text.push_str(piece),
            Event::Finish(reason) => value["choices"][0]["finish_reason"] = json!(reason),
            Event::Usage(usage) => {
                value["usage"] =
                    json!({ "prompt_tokens": usage.input, "completion_tokens": usage.output });
            }
        }
    }
    if is_raw {
        value["choices"][0]["text"] = json!(text);
    } else {
        value["choices"][0]["message"] = json!({ "role": "assistant", "content": text });
    }
    value
}

fn streamed(events: &[Event], is_raw: bool, fault: Option<Fault>) -> Response<Body> {
    let mut chunks: Vec<String> = events.iter().map(|event| chunk(event, is_raw)).collect();
    chunks.push("data: [DONE]\n\n".to_owned());
    if fault == Some(Fault::MalformedEvent) {
        chunks.insert(chunks.len() / 2, "data: {\"choices\": [oops\n\n".to_owned());
    }
    let kind = match fault {
        Some(Fault::WrongContentType) => "text/plain",
        _ => "text/event-stream",
    };
    let frame = |chunk: String| Ok(Frame::data(Bytes::from(chunk)));
    let body = match fault {
        Some(Fault::Reset(bytes)) => {
            let reset = Err(std::io::Error::other("the script says so"));
            stream::iter(first_bytes(chunks, bytes).map(frame).chain([reset])).boxed()
        }
        Some(Fault::Silence(bytes)) => {
            let first: Vec<_> = first_bytes(chunks, bytes).map(frame).collect();
            stream::iter(first).chain(stream::pending()).boxed()
        }
        Some(Fault::Drip(milliseconds)) => stream::iter(chunks)
            .then(move |chunk| async move {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                Ok(Frame::data(Bytes::from(chunk)))
            })
            .boxed(),
        Some(Fault::Endless) => {
            let again = chunk(&Event::Text("blah ".repeat(200)), is_raw);
            stream::iter(chunks.into_iter().take(1))
                .chain(stream::repeat(again))
                .map(frame)
                .boxed()
        }
        _ => stream::iter(chunks).map(frame).boxed(),
    };
    response(StatusCode::OK, kind, body)
}

fn chunk(event: &Event, is_raw: bool) -> String {
    let value = match event {
        Event::Text(text) if is_raw => json!({ "choices": [{ "index": 0, "text": text }] }),
        Event::Text(text) => json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }),
        Event::Finish(reason) => {
            json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
        }
        Event::Usage(usage) => json!({
            "choices": [],
            "usage": { "prompt_tokens": usage.input, "completion_tokens": usage.output },
        }),
    };
    format!("data: {value}\n\n")
}

/// The chunks up to about so many bytes.
fn first_bytes(chunks: Vec<String>, bytes: usize) -> impl Iterator<Item = String> {
    let mut left = bytes;
    chunks.into_iter().take_while(move |chunk| {
        let is_taken = left > 0;
        left = left.saturating_sub(chunk.len());
        is_taken
    })
}

fn refusal(status: u16, message: &str, retry_after: Option<u64>) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = whole(
        status,
        &json!({ "error": { "message": message, "type": "error" } }),
    );
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

fn whole(status: StatusCode, value: &Value) -> Response<Body> {
    let body = stream::iter([Ok(Frame::data(Bytes::from(value.to_string())))]);
    response(status, "application/json", body.boxed())
}

fn response(
    status: StatusCode,
    kind: &'static str,
    body: BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>,
) -> Response<Body> {
    let mut response = Response::new(StreamBody::new(body));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
