//! A local HTTP server for scripted models.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::behaviour::Behaviour;
use super::dialect::{Dialect, Heading};
use super::fault::{
    Fault, NO_PREFILL, ScriptedBody, error_response, json_response, streamed, with_wrong_finish,
    without_model,
};
use super::manner::Manner;
use super::script::{Script, ScriptedModel};
use crate::backend::{Backend, Event, Usage};
use crate::http::PROBE_QUESTION;

/// A server on the loopback address. Dropping it stops it.
///
/// It serves OpenAI's chat completions, raw completions and Responses, and Anthropic's Messages. If a
/// request forces a tool call, the document is the arguments of that call.
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    models: Models,
    manner: Manner,
    /// The tool that the model calls if it can, in Messages.
    tool: Option<String>,
    /// The faults of the next calls, in reverse order.
    faults: Mutex<Vec<Option<Fault>>>,
    /// The fault of all calls after those.
    default_fault: Option<Fault>,
    requests: Mutex<RequestLog>,
    counters: Arc<AnswerCounters>,
}

/// The requests so far. Only the latest are stored, so that memory use is bounded.
#[derive(Default)]
struct RequestLog {
    calls: usize,
    latest: VecDeque<(usize, Value)>,
    /// The total size of the stored requests.
    bytes: usize,
}

impl RequestLog {
    /// The maximum total size of the stored requests.
    const MOST: usize = 64 << 20;

    /// Stores a request and returns its number.
    fn add(&mut self, request: Value, bytes: usize) -> usize {
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

/// The models of a server.
enum Models {
    /// One model for any name.
    One(Box<ScriptedModel>),
    /// Models by name.
    Named(BTreeMap<String, ScriptedModel>),
}

#[derive(Default)]
struct AnswerCounters {
    under_way: AtomicUsize,
    given_up: AtomicUsize,
    too_large: AtomicUsize,
}

/// Counts an answer as under way until it is dropped.
struct UnderWay {
    counters: Arc<AnswerCounters>,
    is_complete: bool,
}

/// The maximum length of a request.
const LONGEST_REQUEST: usize = 64 << 20;

impl ScriptedServer {
    /// Starts a server that plays a script; the faults apply to its first calls.
    pub async fn start(script: Script, faults: &[Option<Fault>]) -> std::io::Result<Self> {
        Self::start_as(Manner::Unknown, script, faults).await
    }

    /// The same, imitating a product.
    pub async fn start_as(
        manner: Manner,
        script: Script,
        faults: &[Option<Fault>],
    ) -> std::io::Result<Self> {
        Self::listen(Shared {
            models: Models::One(Box::new(ScriptedModel::new(script))),
            manner,
            tool: None,
            faults: Mutex::new(faults.iter().rev().copied().collect()),
            default_fault: None,
            requests: Mutex::default(),
            counters: Arc::default(),
        })
        .await
    }

    /// Starts a server of Messages whose model calls a tool whenever it can: the document is the input
    /// of the call.
    pub async fn start_calling(tool: &str, script: Script) -> std::io::Result<Self> {
        Self::listen(Shared {
            models: Models::One(Box::new(ScriptedModel::new(script))),
            manner: Manner::Unknown,
            tool: Some(tool.to_owned()),
            faults: Mutex::default(),
            default_fault: None,
            requests: Mutex::default(),
            counters: Arc::default(),
        })
        .await
    }

    /// Starts a server with a model for each name, and a pause in milliseconds before every event.
    pub async fn start_named(
        scripts: impl IntoIterator<Item = (String, Script)>,
        pause: u64,
    ) -> std::io::Result<Self> {
        let models = scripts.into_iter();
        let models = models.map(|(name, script)| (name, ScriptedModel::new(script)));
        Self::listen(Shared {
            models: Models::Named(models.collect()),
            manner: Manner::Unknown,
            tool: None,
            faults: Mutex::default(),
            default_fault: Some(Fault::Drip(pause)),
            requests: Mutex::default(),
            counters: Arc::default(),
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

    /// The base URL for clients.
    pub fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, or only the latest of very many.
    pub fn asked(&self) -> Vec<Value> {
        let log = locked(&self.shared.requests);
        let requests = log.latest.iter().map(|(_, request)| request.clone());
        requests.collect()
    }

    /// The number of requests so far.
    pub fn calls(&self) -> usize {
        locked(&self.shared.requests).calls
    }

    /// How many answers are under way.
    pub fn under_way(&self) -> usize {
        self.shared.counters.under_way.load(Ordering::Relaxed)
    }

    /// How many answers were cancelled by the client.
    pub fn given_up(&self) -> usize {
        self.shared.counters.given_up.load(Ordering::Relaxed)
    }

    /// How many requests were rejected for their size.
    pub fn refused_for_size(&self) -> usize {
        self.shared.counters.too_large.load(Ordering::Relaxed)
    }

    /// The behaviours of its models in each call for a document so far.
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
    // A client disconnect is not an error.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Response<ScriptedBody> {
        let path = request.uri().path();
        if let Some(information) = self.manner.information(path) {
            return json_response(StatusCode::OK, &information);
        }
        let Some(dialect) = Dialect::at(path) else {
            let path = path.to_owned();
            return self.count(&path, &read_body(request).await);
        };
        let headers = request.headers().clone();
        let body = read_body(request).await;
        let Ok(Value::Object(request)) = serde_json::from_slice(&body) else {
            return error_response(&dialect, 400, "the body is not a JSON object", None);
        };
        let dialect = dialect.answering(&request, self.tool.as_deref());
        if let Err((status, message)) = dialect.check(&headers, &request) {
            return error_response(&dialect, status, &message, None);
        }
        let Some(model) = self.models.for_request(&request) else {
            return error_response(&dialect, 404, "the model does not exist", None);
        };
        if is_probe(&request) {
            return self.probe(&dialect);
        }
        let number = locked(&self.requests).add(Value::Object(request.clone()), body.len());
        let name = request.get("model").and_then(Value::as_str);
        let heading = Heading {
            number,
            model: name.unwrap_or("scripted").to_owned(),
        };
        if let Some(error) = self.manner.size_error(&request) {
            self.counters.too_large.fetch_add(1, Ordering::Relaxed);
            return json_response(StatusCode::BAD_REQUEST, &error);
        }
        let under_way = UnderWay::new(&self.counters);
        let fault = locked(&self.faults).pop().unwrap_or(self.default_fault);
        let rejects_prefill =
            fault == Some(Fault::RefusesPrefill) || self.manner.refuses_prefill(&request);
        let rejects = rejects_prefill && has_prefill(&request);
        if let Some(answer) = without_model(fault, rejects, &dialect, &headers, &heading).await {
            return answer;
        }
        let never_streams = matches!(fault, Some(Fault::NotStreamed | Fault::WholeAsText));
        let streams = request.get("stream") == Some(&json!(true)) && !never_streams;
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
            return answer.map(|body| until_complete(body, under_way));
        }
        if let Some(Fault::Drip(milliseconds)) = fault {
            let pauses = u64::try_from(events.len()).unwrap_or(u64::MAX);
            let pause = Duration::from_millis(milliseconds.saturating_mul(pauses));
            tokio::time::sleep(pause).await;
        }
        let mut answer = json_response(StatusCode::OK, &dialect.complete(&heading, &events));
        if fault == Some(Fault::WholeAsText) {
            let kind = HeaderValue::from_static("text/plain");
            answer.headers_mut().insert(CONTENT_TYPE, kind);
        }
        answer.map(|body| until_complete(body, under_way))
    }
}

async fn read_body(request: Request<Incoming>) -> Bytes {
    let body = Limited::new(request.into_body(), LONGEST_REQUEST);
    let body = body.collect().await;
    body.map(http_body_util::Collected::to_bytes)
        .unwrap_or_default()
}

impl Shared {
    /// The answer to a request to count tokens.
    fn count(&self, path: &str, body: &[u8]) -> Response<ScriptedBody> {
        let request = serde_json::from_slice(body).unwrap_or_default();
        if let Some(counted) = self.manner.count(path, &request) {
            return json_response(StatusCode::OK, &counted);
        }
        let message = format!("not found: `{path}`");
        error_response(&Dialect::Chat, 404, &message, None)
    }

    /// The answer to a probe for prefill support.
    fn probe(&self, dialect: &Dialect) -> Response<ScriptedBody> {
        let Some(text) = self.manner.probe_answer() else {
            return error_response(dialect, 400, NO_PREFILL, None);
        };
        let message = json!({ "role": "assistant", "content": text });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "length" });
        json_response(StatusCode::OK, &json!({ "choices": [choice] }))
    }

    /// The model's answer to a request, as this product would send it.
    async fn events(
        &self,
        model: &ScriptedModel,
        dialect: &Dialect,
        request: Map<String, Value>,
    ) -> Vec<Event> {
        let has_format = request.contains_key("response_format");
        if self.tool.is_some() && dialect.has_nothing_to_call(&request) {
            return vec![
                Event::Text("Done.".to_owned()),
                Event::Finish("stop".to_owned()),
                Event::Usage(Usage::default()),
            ];
        }
        let mut call = dialect.call(request);
        if has_format && self.manner.restarts_grammar() {
            call.prefill = None;
        }
        if has_format && self.manner.restarts_document() {
            // Without the prompt the model does not know where it had stopped.
            call.request.remove("messages");
        }
        let echo = call.prefill.clone().filter(|_| self.manner.echoes());
        let answer = match model.call(call).await {
            Ok(events) => events.filter_map(async |event| event.ok()).collect().await,
            Err(_) => Vec::new(),
        };
        echo.into_iter().map(Event::Text).chain(answer).collect()
    }
}

impl Models {
    /// The model for a request.
    fn for_request(&self, request: &Map<String, Value>) -> Option<&ScriptedModel> {
        match self {
            Self::One(model) => Some(model),
            Self::Named(models) => models.get(request.get("model")?.as_str()?),
        }
    }
}

impl UnderWay {
    fn new(counters: &Arc<AnswerCounters>) -> Self {
        counters.under_way.fetch_add(1, Ordering::Relaxed);
        Self {
            counters: Arc::clone(counters),
            is_complete: false,
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.counters.under_way.fetch_sub(1, Ordering::Relaxed);
        if !self.is_complete {
            self.counters.given_up.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A body that is under way until it is sent completely. After the last event of a stream, the
/// client need not wait for its end.
fn until_complete(body: ScriptedBody, under_way: UnderWay) -> ScriptedBody {
    let frames = stream::unfold((body, under_way), |(mut body, mut under_way)| async {
        let frame = body.next().await;
        let data = frame
            .as_ref()
            .and_then(|frame| frame.as_ref().ok()?.data_ref());
        under_way.is_complete |= frame.is_none() || data.is_some_and(|data| data.ends_with(DONE));
        Some((frame?, (body, under_way)))
    });
    StreamBody::new(frames.boxed())
}

/// The last event of a stream.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Whether a request is a probe. Probes are not counted as calls.
fn is_probe(request: &Map<String, Value>) -> bool {
    let messages = request.get("messages").and_then(Value::as_array);
    let first = messages.and_then(|messages| messages.first());
    first.is_some_and(|message| message["content"] == PROBE_QUESTION)
}

/// Whether a request has a prefill.
fn has_prefill(request: &Map<String, Value>) -> bool {
    let messages = request.get("messages").and_then(Value::as_array);
    let last = messages.and_then(|messages| messages.last());
    last.is_none_or(|last| last["role"] == "assistant")
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
