//! A gateway in front of a scripted model, and a client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use overlock_gateway::{Gateway, Settings, Upstream};
use overlock_llm::testing::{
    Behaviour, Fault, Script, ScriptedServer, eventually, within_patience,
};
use overlock_pipeline::RecordedDefinitions;
use overlock_store::Store;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fake::{Fake, FakeReply};

/// A gateway and its upstream. Both end with the test.
pub(crate) struct Door<U = ScriptedServer> {
    pub(crate) address: String,
    pub(crate) upstream: U,
}

/// The response that a client gets.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl TestResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("plain text"))
    }
}

/// A report with sections of several kinds, of about this length in bytes.
pub(crate) fn report(bytes: usize) -> String {
    let mut text = String::from("{\"title\": \"Überblick – 概要\", \"sections\": [");
    for number in 0.. {
        let section = format!(
            "\n  {{\"id\": \"section-{number}\", \"rows\": [[\"a{number}\", {}, true], null], \
             \"note\": \"Zeile \\\"{number}\\\"\\n\\u00e9 \\ud83d\\ude80 🚀 {}\"}},",
            number * 7919,
            number * 31,
        );
        text.push_str(&section);
        if text.len() >= bytes {
            break;
        }
    }
    text.pop();
    text + "\n]}"
}

/// A model whose answers are cut off after this many bytes.
pub(crate) fn script(document: &str, breath: usize, behaviours: &[Behaviour]) -> Script {
    Script {
        document: document.to_owned(),
        breath: (breath, breath + breath / 2),
        behaviours: behaviours.to_vec(),
        seed: breath as u64,
    }
}

impl Door {
    pub(crate) async fn open(script: Script, faults: &[Option<Fault>]) -> Self {
        Self::open_with(script, faults, |_| {}).await
    }

    pub(crate) async fn open_with(
        script: Script,
        faults: &[Option<Fault>],
        set: impl FnOnce(&mut Settings),
    ) -> Self {
        let upstream = ScriptedServer::start(script, faults)
            .await
            .expect("a server");
        let address = serve(&upstream.base(), set).await;
        Self { address, upstream }
    }
}

impl Door<Fake> {
    pub(crate) async fn to_fake(replies: Vec<FakeReply>) -> Self {
        Self::to_fake_with(replies, |_| {}).await
    }

    pub(crate) async fn to_fake_with(
        replies: Vec<FakeReply>,
        set: impl FnOnce(&mut Settings),
    ) -> Self {
        let upstream = Fake::start(replies).await;
        let address = serve(&upstream.base, set).await;
        Self { address, upstream }
    }
}

/// Waits until a scripted upstream has had this many calls.
pub(crate) async fn until_called(upstream: &ScriptedServer, calls: usize) {
    let look = async || upstream.calls();
    eventually("an upstream call", look, |made| *made >= calls).await;
}

/// Serves in front of an upstream; returns the address of the gateway.
pub(crate) async fn serve(upstream: &str, set: impl FnOnce(&mut Settings)) -> String {
    serve_with(upstream, None, set).await
}

/// The same, recording in a store.
pub(crate) async fn serve_with(
    upstream: &str,
    store: Option<Arc<dyn Store>>,
    set: impl FnOnce(&mut Settings),
) -> String {
    let mut settings = Settings::new(Upstream::new(upstream));
    settings.upstream.retries.first_wait = Duration::from_millis(1);
    set(&mut settings);
    let gateway = Gateway::new(settings, store).expect("a gateway");
    serve_gateway(gateway.with_definitions(RecordedDefinitions)).await
}

/// Serves until the test ends; returns the address of the gateway.
pub(crate) async fn serve_gateway(gateway: Gateway) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(Arc::new(gateway).serve(listener, std::future::pending()));
    address
}

/// Requests a path, and reads only the head of the response.
pub(crate) async fn open(address: &str, path: &str) -> Response<Incoming> {
    open_with(address, path, &[]).await
}

/// The same with headers.
pub(crate) async fn open_with(
    address: &str,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Response<Incoming> {
    let mut builder = Request::get(format!("{address}{path}"));
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let request = builder.body(Full::<Bytes>::default()).expect("a request");
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = within_patience(path, client.request(request)).await;
    response.expect("an answer")
}

impl<U> Door<U> {
    /// Sends a chat request.
    pub(crate) async fn chat(
        &self,
        request: &Value,
        headers: &[(&'static str, &str)],
    ) -> TestResponse {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        let body = request.to_string();
        self.send(Method::POST, "/v1/chat/completions", &headers, &body)
            .await
    }

    /// Sends a chat request again until no other request uses its key.
    pub(crate) async fn chat_once_free(
        &self,
        request: &Value,
        headers: &[(&'static str, &str)],
    ) -> TestResponse {
        let ask = async || self.chat(request, headers).await;
        let is_free = |got: &TestResponse| got.status != StatusCode::CONFLICT;
        eventually("the key to be free", ask, is_free).await
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.send(Method::GET, path, &[], "").await
    }

    /// Sends any request.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> TestResponse {
        let mut builder = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address));
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let request = builder
            .body(Full::new(Bytes::from(body.to_owned())))
            .expect("a request");
        let client = Client::builder(TokioExecutor::new()).build_http();
        let answered = async {
            let response = client.request(request).await.expect("an answer");
            let (parts, body) = response.into_parts();
            (parts, body.collect().await.expect("all of it").to_bytes())
        };
        let (parts, body) = within_patience(path, answered).await;
        TestResponse {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(body.into()).expect("text"),
        }
    }
}

/// A request for the report as JSON.
pub(crate) fn ask(stream: bool) -> Value {
    json!({
        "model": "gpt-4o",
        "max_tokens": 1000,
        "stream": stream,
        "response_format": { "type": "json_object" },
        "messages": [{ "role": "user", "content": "Write the report as JSON." }],
    })
}
