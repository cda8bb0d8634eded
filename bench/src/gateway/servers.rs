//! The servers: a scripted upstream, a bare proxy, and our gateway.

use std::convert::Infallible;
use std::hint::black_box;
use std::io::Read;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as HttpBody, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use overlock_budget::{ChatCounter, Extras, Models, PlanOptions, plan};
use overlock_gateway::{Gateway, Settings, Upstream};
use overlock_llm::wire::chat::ChatRequest;
use overlock_runs::Record;
use overlock_store::{Access, Store, StoreAddress};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::MODEL;

type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Answers every request immediately, streamed if requested.
pub(super) fn upstream() -> Result<()> {
    serve(|request| async move {
        let body = request.into_body().collect().await?.to_bytes();
        let streams = serde_json::from_slice::<Value>(&body)?["stream"] == true;
        let (kind, body) = if streams {
            ("text/event-stream", events())
        } else {
            ("application/json", whole(completion().to_string()))
        };
        let mut response = Response::new(body);
        let kind = HeaderValue::from_static(kind);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    })
}

/// Forwards everything unchanged.
pub(super) fn bare(upstream: &str) -> Result<()> {
    proxy(upstream, async |request| Ok(request))
}

/// The same, but plans every request without using the plan.
pub(super) fn counting(upstream: &str) -> Result<()> {
    let found = Models::default().find(MODEL);
    let options = PlanOptions::for_model(&found.model);
    let known = Arc::new((found, options));
    proxy(upstream, move |request: Request<Incoming>| {
        let known = Arc::clone(&known);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let request = ChatRequest::from_json(std::str::from_utf8(&body)?)?;
            let (found, options) = &*known;
            let counter = ChatCounter::for_model(found);
            black_box(plan(&request, &Extras::default(), &counter, options)?);
            Ok(Request::from_parts(head, Full::new(body)))
        }
    })
}

/// A proxy that does something with every request before it forwards it.
fn proxy<B, F, A>(upstream: &str, prepare: F) -> Result<()>
where
    B: HttpBody + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Result<Request<B>>> + Send,
{
    let runtime = Runtime::new()?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build::<_, B>(connector);
    let authority = upstream.to_owned();
    serve_in(&runtime, move |request: Request<Incoming>| {
        let (client, authority, prepare) = (client.clone(), authority.clone(), prepare.clone());
        async move {
            let mut request = prepare(request).await?;
            let path = request.uri().path_and_query().map_or("/", |it| it.as_str());
            *request.uri_mut() = format!("http://{authority}{path}").parse::<Uri>()?;
            request.headers_mut().remove(HOST);
            let response = client.request(request).await?;
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        }
    })
}

/// Our gateway as in `overlock serve`; it records if it has a store.
pub(super) fn ours(upstream: &str, store: Option<&str>) -> Result<()> {
    let runtime = Runtime::new()?;
    let mut settings = Settings::new(Upstream::new(format!("http://{upstream}/v1")));
    settings.record = if store.is_some() {
        Record::Metadata
    } else {
        Record::Off
    };
    let store = store.map(|path| -> Result<Arc<dyn Store>> {
        let address: StoreAddress = format!("sqlite://{path}").parse()?;
        Ok(overlock_store::open(&address, Access::Create)?)
    });
    let gateway = Arc::new(Gateway::new(settings, store.transpose()?)?);
    runtime.block_on(async {
        let listener = listener().await?;
        tokio::spawn(gateway.serve(listener, std::future::pending()));
        until_the_input_ends().await
    })
}

fn serve<F, A>(answer: F) -> Result<()>
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Result<Response<Body>>> + Send + 'static,
{
    serve_in(&Runtime::new()?, answer)
}

fn serve_in<F, A>(runtime: &Runtime, answer: F) -> Result<()>
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Result<Response<Body>>> + Send + 'static,
{
    runtime.block_on(async {
        let listener = listener().await?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                let service = service_fn(answer.clone());
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        until_the_input_ends().await
    })
}

/// Listens at a free port and prints the address.
async fn listener() -> Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    Ok(listener)
}

/// Waits until the parent process closes our input, or ends.
async fn until_the_input_ends() -> Result<()> {
    let read = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(read).await??;
    Ok(())
}

fn completion() -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_760_000_000, "model": "gpt-4o",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": WORDS.concat() },
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": 110, "completion_tokens": 20, "total_tokens": 130 },
    })
}

const WORDS: [&str; 20] = [
    "The", " R 40", " comes", " with", " an", " ash", " handle", " of", " 1.60", " m,", " and",
    " a", " longer", " one", " of", " 1.80", " m", " is", " 9.90", " more.",
];

/// The same word by word, each sent before the next is produced.
fn events() -> Body {
    let chunk = |delta: Value, finish: Option<&str>| {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000,
            "model": "gpt-4o",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        })
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
    events.extend(WORDS.map(|word| chunk(json!({ "content": word }), None)));
    events.push(chunk(json!({}), Some("stop")));
    let mut usage = completion();
    usage["choices"] = json!([]);
    usage["object"] = json!("chat.completion.chunk");
    events.push(usage);
    let mut lines: Vec<String> = events.iter().map(|it| format!("data: {it}\n\n")).collect();
    lines.push("data: [DONE]\n\n".to_owned());
    let events = futures_util::stream::iter(lines).then(async |event| {
        tokio::task::yield_now().await;
        Ok(Frame::data(Bytes::from(event)))
    });
    BodyExt::boxed_unsync(http_body_util::StreamBody::new(events))
}

fn whole(text: String) -> Body {
    let body = Full::new(Bytes::from(text));
    body.map_err(|never: Infallible| match never {})
        .boxed_unsync()
}
