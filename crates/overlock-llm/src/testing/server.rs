//! Lets a scripted model be asked over HTTP, as a real one is.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::behaviour::Behaviour;
use super::dialect::{Dialect, Heading};
use super::manner::Manner;
use super::script::{Script, ScriptedModel};
use crate::backend::{Backend, Event};
use crate::http::PROBE_QUESTION;

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
    /// It is refused if it was begun for the model, as newer models do.
    RefusesPrefill,
    /// It is refused, and the refusal says the key back.
    TellsKey,
    /// The stream turns into an error in the middle.
    ErrorEvent,
    /// After so many bytes of the stream nothing comes but comments, for ever.
    KeepsAlive(usize),
    /// After so many bytes of the stream nothing comes but empty pieces, for ever.
    EmptyPieces(usize),
    /// It is an error whose body never ends.
    EndlessError,
    /// A whole answer comes and calls itself plain text.
    WholeAsText,
    /// The stream calls itself JSON.
    StreamAsJson,
    /// It is compressed, which nobody asked for.
    Compressed,
    /// It is elsewhere.
    Moved,
    /// Events of another kind come between the others.
    Pings,
    /// The model declines to answer.
    Declines,
    /// The answer ends, but nothing says that the stream does, and the connection stays open.
    StaysOpen,
    /// Characters that are escaped as two halves are torn: one half in an event, the other in the
    /// next.
    TornCharacters,
    /// The model writes white space up to its limit, so that its document does not begin.
    WritesWhiteSpace,
    /// Reasoning that is no part of the text takes all tokens of the answer.
    OnlyReasons,
}

impl Fault {
    /// The text of an answer that reaches its limit before its document begins.
    fn before_document(self) -> Option<&'static str> {
        match self {
            Self::WritesWhiteSpace => Some("\n    \n    \n     \t \t \t \t \t"),
            Self::OnlyReasons => Some(""),
            _ => None,
        }
    }
}

/// A server on this machine's own address. Dropping it stops it.
///
/// It speaks OpenAI's chat completions and raw completions, and Anthropic's messages. If a chat
/// request demands the call of a tool, the document is the arguments of that call.
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    models: Models,
    manner: Manner,
    /// What goes wrong with the calls to come, the next one last.
    faults: Mutex<Vec<Option<Fault>>>,
    /// What goes wrong with all calls after those.
    habit: Option<Fault>,
    asked: Mutex<Asked>,
    answers: Arc<Answers>,
}

/// The requests so far, of which the latest are kept: whoever asks for ever fills no memory.
#[derive(Default)]
struct Asked {
    calls: usize,
    latest: VecDeque<(usize, Value)>,
    /// The bytes of those that are kept.
    bytes: usize,
}

impl Asked {
    /// So many bytes of requests are kept.
    const MOST: usize = 64 << 20;

    /// Keeps a request of so many bytes; which one it is.
    fn keep(&mut self, request: Value, bytes: usize) -> usize {
        self.calls += 1;
        self.bytes += bytes;
        self.latest.push_back((bytes, request));
        while self.bytes > Self::MOST
            && let Some((bytes, _)) = self.latest.pop_front()
        {
            self.bytes -= bytes;
        }
        self.calls
    }
}

/// Who answers.
enum Models {
    /// The same one, whatever it is called.
    One(Box<ScriptedModel>),
    /// Each under its own name.
    Named(BTreeMap<String, ScriptedModel>),
}

/// What becomes of answers.
#[derive(Default)]
struct Answers {
    under_way: AtomicUsize,
    given_up: AtomicUsize,
    too_large: AtomicUsize,
}

/// An answer that is under way until this is dropped.
struct UnderWay {
    answers: Arc<Answers>,
    is_said: bool,
}

type Body = StreamBody<BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>>;

/// A request longer than this is not read.
const LONGEST_REQUEST: usize = 64 << 20;

impl ScriptedServer {
    /// Starts a server that plays a script; the first calls go wrong as told.
    pub async fn start(script: Script, faults: &[Option<Fault>]) -> std::io::Result<Self> {
        Self::start_as(Manner::Unknown, script, faults).await
    }

    /// The same with the manners of a product.
    pub async fn start_as(
        manner: Manner,
        script: Script,
        faults: &[Option<Fault>],
    ) -> std::io::Result<Self> {
        Self::listen(Shared {
            models: Models::One(Box::new(ScriptedModel::new(script))),
            manner,
            faults: Mutex::new(faults.iter().rev().copied().collect()),
            habit: None,
            asked: Mutex::default(),
            answers: Arc::default(),
        })
        .await
    }

    /// Starts a server with a model for each name, each of which plays a script of its own and
    /// pauses for so many milliseconds before every event.
    pub async fn start_named(
        scripts: impl IntoIterator<Item = (String, Script)>,
        pause: u64,
    ) -> std::io::Result<Self> {
        let models = scripts.into_iter();
        let models = models.map(|(name, script)| (name, ScriptedModel::new(script)));
        Self::listen(Shared {
            models: Models::Named(models.collect()),
            manner: Manner::Unknown,
            faults: Mutex::default(),
            habit: Some(Fault::Drip(pause)),
            asked: Mutex::default(),
            answers: Arc::default(),
        })
        .await
    }

    async fn listen(shared: Shared) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(shared);
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

    /// The requests it has had so far, or the latest of very many.
    pub fn asked(&self) -> Vec<Value> {
        let asked = locked(&self.shared.asked);
        asked
            .latest
            .iter()
            .map(|(_, request)| request.clone())
            .collect()
    }

    /// How many requests it has had so far.
    pub fn calls(&self) -> usize {
        locked(&self.shared.asked).calls
    }

    /// How many answers it is in the middle of.
    pub fn under_way(&self) -> usize {
        self.shared.answers.under_way.load(Ordering::Relaxed)
    }

    /// How many answers nobody waited for to their end.
    pub fn given_up(&self) -> usize {
        self.shared.answers.given_up.load(Ordering::Relaxed)
    }

    /// How many requests it has refused because they are too large.
    pub fn refused_for_size(&self) -> usize {
        self.shared.answers.too_large.load(Ordering::Relaxed)
    }

    /// What its models did at each call for a document that they answered.
    pub fn behaved(&self) -> Vec<Behaviour> {
        match &self.shared.models {
            Models::One(model) => model.behaved(),
            Models::Named(models) => models.values().flat_map(ScriptedModel::behaved).collect(),
        }
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
        let path = request.uri().path();
        if let Some(fact) = self.manner.fact(path) {
            return whole(StatusCode::OK, &fact);
        }
        let Some(dialect) = Dialect::at(path) else {
            let path = path.to_owned();
            return self.counted(&path, &all_of(request).await);
        };
        let headers = request.headers().clone();
        let body = all_of(request).await;
        let Ok(Value::Object(request)) = serde_json::from_slice(&body) else {
            return refusal(&dialect, 400, "the body is not a JSON object", None);
        };
        let dialect = dialect.answering(&request);
        if let Err((status, message)) = dialect.check(&headers, &request) {
            return refusal(&dialect, status, &message, None);
        }
        let Some(model) = self.models.called(&request) else {
            return refusal(&dialect, 404, "the model does not exist", None);
        };
        if is_probe(&request) {
            return self.probed(&dialect);
        }
        let number = locked(&self.asked).keep(Value::Object(request.clone()), body.len());
        let name = request.get("model").and_then(Value::as_str);
        let heading = Heading {
            number,
            model: name.unwrap_or("scripted").to_owned(),
        };
        if let Some(said) = self.manner.too_large(&request) {
            self.answers.too_large.fetch_add(1, Ordering::Relaxed);
            return whole(StatusCode::BAD_REQUEST, &said);
        }
        let under_way = UnderWay::new(&self.answers);
        let fault = locked(&self.faults).pop().unwrap_or(self.habit);
        let refuses_prefill =
            fault == Some(Fault::RefusesPrefill) || self.manner.refuses_prefill(&request);
        let refuses = refuses_prefill && is_begun(&request);
        if let Some(answer) = instead(fault, refuses, &dialect, &headers, &heading).await {
            return answer;
        }
        let is_whole = matches!(fault, Some(Fault::NotStreamed | Fault::WholeAsText));
        let streams = request.get("stream") == Some(&json!(true)) && !is_whole;
        let mut events = match fault.and_then(Fault::before_document) {
            Some(text) => vec![
                Event::Text(text.to_owned()),
                Event::Finish("length".to_owned()),
            ],
            None => self.events(model, &dialect, request).await,
        };
        if fault == Some(Fault::WrongFinish) {
            events = events.into_iter().map(with_wrong_finish).collect();
        }
        if streams {
            let answer = streamed(&heading, &events, &dialect, fault);
            return answer.map(|body| until_said(body, under_way));
        }
        if let Some(Fault::Drip(milliseconds)) = fault {
            let pauses = u64::try_from(events.len()).unwrap_or(u64::MAX);
            let pause = Duration::from_millis(milliseconds.saturating_mul(pauses));
            tokio::time::sleep(pause).await;
        }
        let mut answer = whole(StatusCode::OK, &dialect.whole(&heading, &events));
        if fault == Some(Fault::WholeAsText) {
            let kind = HeaderValue::from_static("text/plain");
            answer.headers_mut().insert(CONTENT_TYPE, kind);
        }
        answer.map(|body| until_said(body, under_way))
    }
}

/// What a server with this fault answers instead of an answer of the model, if it does.
async fn instead(
    fault: Option<Fault>,
    refuses_prefill: bool,
    dialect: &Dialect,
    headers: &HeaderMap,
    heading: &Heading,
) -> Option<Response<Body>> {
    Some(match fault {
        Some(Fault::Status(status, retry_after)) => {
            refusal(dialect, status, "the model is busy", retry_after)
        }
        Some(Fault::ErrorBody) => whole(StatusCode::OK, &dialect.error(529, "overloaded")),
        Some(Fault::TellsKey) => refusal(dialect, 400, &unknown_key(headers), None),
        _ if refuses_prefill => refusal(dialect, 400, NO_PREFILL, None),
        Some(Fault::NoAnswer) => std::future::pending().await,
        Some(Fault::EndlessError) => {
            let body = again_and_again("busy ".to_owned());
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
            let mut answer = refusal(dialect, 301, "moved", None);
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

async fn all_of(request: Request<Incoming>) -> Bytes {
    let body = Limited::new(request.into_body(), LONGEST_REQUEST);
    let body = body.collect().await;
    body.map(http_body_util::Collected::to_bytes)
        .unwrap_or_default()
}

impl Shared {
    /// What is said to somebody who counts a request, if this server does.
    fn counted(&self, path: &str, body: &[u8]) -> Response<Body> {
        let request = serde_json::from_slice(body).unwrap_or_default();
        if let Some(counted) = self.manner.counts(path, &request) {
            return whole(StatusCode::OK, &counted);
        }
        let message = format!("there is nothing at `{path}`");
        refusal(&Dialect::Chat, 404, &message, None)
    }

    /// What is said to somebody who finds out whether an answer can be begun.
    fn probed(&self, dialect: &Dialect) -> Response<Body> {
        let Some(text) = self.manner.goes_on() else {
            return refusal(dialect, 400, NO_PREFILL, None);
        };
        let message = json!({ "role": "assistant", "content": text });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "length" });
        whole(StatusCode::OK, &json!({ "choices": [choice] }))
    }

    /// What the model says to a request, as a server with these manners passes it on.
    async fn events(
        &self,
        model: &ScriptedModel,
        dialect: &Dialect,
        request: Map<String, Value>,
    ) -> Vec<Event> {
        let has_format = request.contains_key("response_format");
        let mut call = dialect.call(request);
        if has_format && self.manner.restarts_grammar() {
            call.prefill = None;
        }
        if has_format && self.manner.begins_again() {
            // Without the words of the prompt the model does not know where it had stopped.
            call.request.remove("messages");
        }
        let echo = call.prefill.clone().filter(|_| self.manner.echoes());
        let said = match model.call(call).await {
            Ok(events) => events.filter_map(async |event| event.ok()).collect().await,
            Err(_) => Vec::new(),
        };
        echo.into_iter().map(Event::Text).chain(said).collect()
    }
}

impl Models {
    /// The model that a request is for.
    fn called(&self, request: &Map<String, Value>) -> Option<&ScriptedModel> {
        match self {
            Self::One(model) => Some(model),
            Self::Named(models) => models.get(request.get("model")?.as_str()?),
        }
    }
}

impl UnderWay {
    fn new(answers: &Arc<Answers>) -> Self {
        answers.under_way.fetch_add(1, Ordering::Relaxed);
        Self {
            answers: Arc::clone(answers),
            is_said: false,
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.answers.under_way.fetch_sub(1, Ordering::Relaxed);
        if !self.is_said {
            self.answers.given_up.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A body that is under way until all of it is said. Nobody has to wait for what follows the word
/// that ends a stream.
fn until_said(body: Body, under_way: UnderWay) -> Body {
    let frames = stream::unfold((body, under_way), |(mut body, mut under_way)| async {
        let frame = body.next().await;
        let data = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref());
        under_way.is_said |= frame.is_none() || data.is_some_and(|data| data.ends_with(DONE));
        Some((frame?, (body, under_way)))
    });
    StreamBody::new(frames.boxed())
}

/// The last event of a stream.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Whether a request only finds out what the server can do. It is none of those that are counted.
fn is_probe(request: &Map<String, Value>) -> bool {
    let messages = request.get("messages").and_then(Value::as_array);
    let first = messages.and_then(|messages| messages.first());
    first.is_some_and(|message| message["content"] == PROBE_QUESTION)
}

fn with_wrong_finish(event: Event) -> Event {
    match event {
        Event::Finish(reason) if reason == "length" => Event::Finish("stop".to_owned()),
        Event::Finish(_) => Event::Finish("length".to_owned()),
        other => other,
    }
}

/// What is said of a key by somebody who should not say it.
fn unknown_key(headers: &HeaderMap) -> String {
    let told = ["authorization", "x-api-key"].map(|name| headers.get(name));
    let told = told.into_iter().flatten();
    let told = told.filter_map(|key| key.to_str().ok());
    told.fold("this key is not known:".to_owned(), |text, key| {
        format!("{text} {key}")
    })
}

/// What newer models say to an answer that was begun for them.
const NO_PREFILL: &str = "This model does not support assistant message prefill.";

/// Whether the answer to a request was begun for the model.
fn is_begun(request: &Map<String, Value>) -> bool {
    let messages = request.get("messages").and_then(Value::as_array);
    let last = messages.and_then(|messages| messages.last());
    last.is_none_or(|last| last["role"] == "assistant")
}

fn streamed(
    heading: &Heading,
    events: &[Event],
    dialect: &Dialect,
    fault: Option<Fault>,
) -> Response<Body> {
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
                // What was said before is on its way only when nothing follows at once.
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
            stream::iter(first).chain(again_and_again(empty)).boxed()
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

/// A stream in which every character that is escaped as two halves is torn between them.
fn torn(heading: &Heading, dialect: &Dialect, events: &[Event]) -> Vec<String> {
    // Stands for a half until the event is written: no text can hold one.
    const HALF: char = '\u{e000}';
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
    let mut halves = halves.into_iter();
    let written = |chunk: String| {
        chunk.split(HALF).map(str::to_owned).reduce(|text, rest| {
            let half = halves.next().unwrap_or_default();
            format!("{text}\\u{half:04x}{rest}")
        })
    };
    let chunks = dialect.stream(heading, &pieces).into_iter();
    chunks.filter_map(written).collect()
}

/// The same text for ever, with a short pause before each.
fn again_and_again(text: String) -> BoxStream<'static, Result<Frame<Bytes>, std::io::Error>> {
    stream::repeat(Bytes::from(text))
        .then(|text| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(Frame::data(text))
        })
        .boxed()
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

fn refusal(
    dialect: &Dialect,
    status: u16,
    message: &str,
    retry_after: Option<u64>,
) -> Response<Body> {
    let body = dialect.error(status, message);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = whole(status, &body);
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
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
