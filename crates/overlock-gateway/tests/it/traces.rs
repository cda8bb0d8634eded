use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use overlock_gateway::{Gateway, Settings, Upstream};
use overlock_llm::testing::{eventually, within_patience};
use overlock_runs::Traces;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::door::{Door, ask};
use crate::fake::{Fake, FakeReply};

/// A trace collector.
struct Collector {
    url: String,
    batches: mpsc::UnboundedReceiver<(HeaderMap, String)>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, batches) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let sender = sender.clone();
                    async move {
                        assert_eq!(request.uri().path(), "/v1/traces");
                        let (head, body) = request.into_parts();
                        let body = body.collect().await?.to_bytes();
                        let body = String::from_utf8(body.into()).expect("text");
                        let _ = sender.send((head.headers, body));
                        Ok::<_, hyper::Error>(Response::new(Full::<Bytes>::from("{}")))
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self {
            url: format!("http://{address}/v1/traces"),
            batches,
        }
    }

    /// All that has come.
    fn collected(&mut self) -> Collected {
        let mut collected = Collected::default();
        while let Ok((headers, body)) = self.batches.try_recv() {
            collected.add(&headers, &body);
        }
        collected
    }
}

/// The data that a collector received.
#[derive(Default)]
struct Collected {
    /// The received bytes.
    bytes: String,
    spans: Vec<Value>,
}

impl Collected {
    fn add(&mut self, headers: &HeaderMap, body: &str) {
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers["x-collector-key"], "collector-secret");
        let batch: Value = serde_json::from_str(body).expect("JSON");
        let resource = &batch["resourceSpans"][0];
        let service = attribute(&resource["resource"], "service.name");
        assert_eq!(service, &json!({ "stringValue": "the-gateway" }));
        let spans = resource["scopeSpans"][0]["spans"].as_array();
        self.spans.extend(spans.expect("spans").iter().cloned());
        self.bytes.push_str(body);
    }

    /// The span of the only request.
    #[track_caller]
    fn request(&self) -> &Value {
        let mut servers = self.spans.iter().filter(|span| span["kind"] == 2);
        let server = servers.next().expect("a span of a request");
        assert!(servers.next().is_none(), "{}", self.bytes);
        server
    }

    /// The spans of its calls.
    fn calls(&self) -> Vec<&Value> {
        let id = &self.request()["spanId"];
        let calls = self.spans.iter().filter(|span| span["kind"] == 3);
        let calls: Vec<_> = calls
            .inspect(|call| assert_eq!(&call["parentSpanId"], id))
            .collect();
        assert_eq!(calls.len() + 1, self.spans.len());
        calls
    }
}

/// What a span says under a name; null if nothing.
fn attribute<'a>(span: &'a Value, name: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().expect("attributes");
    let found = attributes.iter().find(|attribute| attribute["key"] == name);
    found.map_or(&Value::Null, |attribute| &attribute["value"])
}

#[track_caller]
fn check_texts(span: &Value, expected: &[(&str, Option<&str>)]) {
    for (name, text) in expected {
        assert_eq!(
            attribute(span, name)["stringValue"].as_str(),
            *text,
            "{name} of {span}"
        );
    }
}

#[track_caller]
fn check_numbers(span: &Value, expected: &[(&str, u64)]) {
    for (name, number) in expected {
        let number = number.to_string();
        assert_eq!(
            attribute(span, name)["intValue"],
            number,
            "{name} of {span}"
        );
    }
}

/// A gateway that can be stopped.
struct Served<U = Fake> {
    door: Door<U>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Served {
    async fn start(replies: Vec<FakeReply>, traces: Traces) -> Self {
        let upstream = Fake::start(replies).await;
        let base = upstream.base.clone();
        Self::before(upstream, &base, traces).await
    }
}

impl<U> Served<U> {
    /// Serves before any upstream, at this address.
    async fn before(upstream: U, base: &str, traces: Traces) -> Self {
        let mut settings = Settings::new(Upstream::new(base));
        settings.upstream.key = Some("upstream-secret".to_owned());
        settings.upstream.retries.retries = 0;
        settings.traces = Some(Traces {
            headers: vec![("x-collector-key".to_owned(), "collector-secret".to_owned())],
            service: "the-gateway".to_owned(),
            ..traces
        });
        let store = overlock_store::in_memory().expect("a store");
        let gateway = Gateway::new(settings, Some(store)).expect("a gateway");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(Arc::new(gateway).serve(listener, async {
            let _ = stopped.await;
        }));
        Self {
            door: Door { address, upstream },
            stop,
            serving,
        }
    }

    /// Stops the gateway, which has nothing left to say then.
    async fn stop(self) -> U {
        self.stop.send(()).expect("it is served");
        let served = within_patience("the gateway to stop", self.serving).await;
        served.expect("no panic").expect("served");
        self.door.upstream
    }
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// A document in three answers, of which the later ones begin anew.
fn replies(stream: bool) -> Vec<FakeReply> {
    let answers = [
        (r#"{"kept": "answer-text", "rows": [1, 2"#, "length"),
        (r#"{"kept": "answer-text", "rows": [1, 2, 30, 4"#, "length"),
        (r#"{"kept": "answer-text", "rows": [1, 2, 30, 40]}"#, "stop"),
    ];
    let said = if stream {
        FakeReply::streamed_content
    } else {
        FakeReply::content
    };
    answers.map(|(text, finish)| said(text, finish)).into()
}

#[track_caller]
fn check_request(request: &Value, run: &str) {
    assert_eq!(request["name"], "chat gpt-4o");
    assert_eq!(
        (&request["traceId"], &request["parentSpanId"]),
        (&json!(TRACE), &json!(PARENT))
    );
    assert_eq!(request["status"], json!({}));
    check_texts(
        request,
        &[
            ("gen_ai.operation.name", Some("chat")),
            ("gen_ai.provider.name", Some("openai")),
            ("gen_ai.request.model", Some("gpt-4o")),
            ("gen_ai.response.model", Some("gpt-4o")),
            ("http.request.method", Some("POST")),
            ("http.route", Some("/v1/chat/completions")),
            ("overlock.outcome", Some("complete")),
            ("overlock.run", Some(run)),
            ("error.type", None),
        ],
    );
    check_numbers(
        request,
        &[
            ("gen_ai.request.max_tokens", 1000),
            ("http.response.status_code", 200),
            ("overlock.continuations", 2),
        ],
    );
    let finishes = json!({ "values": [{ "stringValue": "stop" }] });
    let reported = attribute(request, "gen_ai.response.finish_reasons");
    assert_eq!(reported["arrayValue"], finishes);
}

#[track_caller]
fn check_calls(calls: &[&Value]) {
    let [first, second, third] = calls else {
        panic!("{calls:?}");
    };
    for (call, number) in calls.iter().zip(1..) {
        assert_eq!(call["name"], "chat gpt-4o");
        assert_eq!(call["traceId"], TRACE);
        check_numbers(call, &[("overlock.call", number)]);
        check_texts(
            call,
            &[
                ("gen_ai.request.model", Some("gpt-4o")),
                ("server.address", Some("127.0.0.1")),
                ("error.type", None),
            ],
        );
    }
    check_texts(
        first,
        &[("overlock.strategy", None), ("overlock.seam", None)],
    );
    for call in [second, third] {
        check_texts(
            call,
            &[
                ("overlock.strategy", Some("overlap")),
                ("overlock.seam", Some("overlap")),
            ],
        );
    }
}

#[track_caller]
fn check_tokens(span: &Value, input: u64, output: u64) {
    check_numbers(
        span,
        &[
            ("gen_ai.usage.input_tokens", input),
            ("gen_ai.usage.output_tokens", output),
        ],
    );
}

#[tokio::test]
async fn a_request_is_a_span_and_each_call_a_child_span() {
    for stream in [false, true] {
        let mut collector = Collector::start().await;
        let served = Served::start(replies(stream), Traces::new(&collector.url)).await;
        let parent = traceparent("01");
        let headers = [
            ("traceparent", parent.as_str()),
            ("tracestate", "state=of-the-client"),
            ("authorization", "Bearer client-secret"),
        ];
        let got = served.door.chat(&ask(stream), &headers).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.body);
        let run = got.header("x-overlock-run").to_owned();
        let upstream = served.stop().await;
        let collected = collector.collected();

        check_request(collected.request(), &run);
        let calls = collected.calls();
        check_calls(&calls);
        if !stream {
            // What each call says it took.
            check_tokens(collected.request(), 30, 15);
            for call in &calls {
                check_tokens(call, 10, 5);
            }
        }
        // Each call has its own span.
        let requests = upstream.requests();
        assert_eq!(requests.len(), 3);
        for (sent, call) in requests.iter().zip(&calls) {
            let id = call["spanId"].as_str().expect("text");
            assert_eq!(sent.headers["traceparent"], format!("00-{TRACE}-{id}-01"));
            assert_eq!(sent.headers["tracestate"], "state=of-the-client");
        }
        for unsaid in [
            "secret",
            "answer-text",
            "rows",
            "Write",
            "report",
            "of-the-client",
        ] {
            assert!(!collected.bytes.contains(unsaid), "{}", collected.bytes);
        }
    }
}

#[tokio::test]
async fn the_span_of_a_replay_has_the_outcome_and_no_usage() {
    for stream in [false, true] {
        let mut collector = Collector::start().await;
        let served = Served::start(replies(stream), Traces::new(&collector.url)).await;
        let key = [("idempotency-key", "one")];
        for _ in 0..2 {
            let got = served.door.chat(&ask(stream), &key).await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.body);
        }
        served.stop().await;
        let collected = collector.collected();
        let requests: Vec<_> = collected
            .spans
            .iter()
            .filter(|span| span["kind"] == 2)
            .collect();
        let [first, again] = requests[..] else {
            panic!("{}", collected.bytes);
        };
        check_numbers(first, &[("overlock.continuations", 2)]);
        check_texts(
            again,
            &[("overlock.outcome", Some("complete")), ("error.type", None)],
        );
        check_numbers(again, &[("overlock.continuations", 0)]);
        check_tokens(again, 0, 0);
        assert_eq!(collected.spans.len(), 2 + 3, "no call is repeated");
    }
}

#[tokio::test]
async fn spans_arrive_while_the_gateway_serves() {
    let mut collector = Collector::start().await;
    let served = Served::start(replies(false), Traces::new(&collector.url)).await;
    served.door.chat(&ask(false), &[]).await;
    served.door.get("/health").await;
    let mut collected = Collected::default();
    while collected.spans.len() < 4 {
        let batch = within_patience("four spans", collector.batches.recv()).await;
        let (headers, body) = batch.expect("it collects");
        collected.add(&headers, &body);
    }
    // Without a parent a trace begins, and only chats are traced.
    assert_eq!(collected.request().get("parentSpanId"), None);
    assert_eq!(collected.calls().len(), 3);
    served.stop().await;
    assert_eq!(collector.collected().spans.len(), 0);
}

#[tokio::test]
async fn spans_name_errors() {
    let refusal = json!({ "error": { "message": "answer-text", "type": "server_error" } });
    let cut = FakeReply::content(r#"{"rows": [1, 2"#, "length");
    let malformed = json!({ "messages": [{ "role": "user", "content": "Hello." }] });
    let mut unknown = ask(false);
    unknown["messages"] = json!("Hello.");
    // The request, the replies, and the errors in the spans of the request and of its calls.
    let cases = [
        (
            ask(false),
            vec![FakeReply::json(503, &refusal)],
            Some("503"),
            true,
            vec![Some("503")],
        ),
        (
            ask(false),
            vec![cut, FakeReply::json(500, &refusal)],
            None,
            false,
            vec![None, Some("500")],
        ),
        (
            ask(false),
            vec![FakeReply::json(200, &json!("nonsense"))],
            Some("upstream_error"),
            true,
            vec![Some("upstream_error")],
        ),
        (
            ask(true),
            vec![FakeReply {
                body: format!("data: {refusal}\n\n"),
                ..FakeReply::stream(&[])
            }],
            Some("upstream_error"),
            true,
            vec![Some("upstream_error")],
        ),
        (
            malformed,
            vec![FakeReply::content("", "stop")],
            Some("missing_required_parameter"),
            false,
            vec![],
        ),
        (
            unknown,
            vec![FakeReply::content("", "stop")],
            Some("invalid_request_error"),
            false,
            vec![],
        ),
    ];
    for (asked, replies, error, has_failed, calls) in cases {
        let mut collector = Collector::start().await;
        let served = Served::start(replies, Traces::new(&collector.url)).await;
        let status = served.door.chat(&asked, &[]).await.status;
        served.stop().await;
        let collected = collector.collected();
        let request = collected.request();
        check_texts(request, &[("error.type", error)]);
        check_numbers(
            request,
            &[("http.response.status_code", status.as_u16().into())],
        );
        assert_eq!(
            request["status"] == json!({ "code": 2 }),
            has_failed,
            "{request}"
        );
        let reported: Vec<_> = collected
            .calls()
            .into_iter()
            .map(|call| attribute(call, "error.type")["stringValue"].as_str())
            .collect();
        assert_eq!(reported, calls);
        assert!(!collected.bytes.contains("answer-text"));
    }
}

#[tokio::test]
async fn spans_report_a_client_disconnect() {
    let mut collector = Collector::start().await;
    // The upstream accepts and says nothing.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let served = Served::before(listener, &base, Traces::new(&collector.url)).await;
    let request = ask(false);
    let _asked = tokio::select! {
        _ = served.door.chat(&request, &[]) => panic!("it is never answered"),
        asked = served.door.upstream.accept() => asked.expect("the request goes on"),
    };
    served.stop().await;
    let collected = collector.collected();
    check_texts(collected.request(), &[("error.type", Some("client_left"))]);
    check_numbers(collected.request(), &[("http.response.status_code", 499)]);
    let [call] = collected.calls()[..] else {
        panic!("{}", collected.bytes);
    };
    check_texts(call, &[("error.type", Some("client_left"))]);
}

#[tokio::test]
async fn passes_on_an_unsampled_trace_unchanged() {
    let mut collector = Collector::start().await;
    let served = Served::start(replies(false), Traces::new(&collector.url)).await;
    let parent = traceparent("00");
    served
        .door
        .chat(&ask(false), &[("traceparent", &parent)])
        .await;
    let upstream = served.stop().await;
    assert_eq!(upstream.requests().len(), 3);
    for sent in upstream.requests() {
        assert_eq!(sent.headers["traceparent"], parent);
    }
    assert_eq!(collector.collected().spans.len(), 0);
}

#[tokio::test]
async fn an_unreachable_collector_does_no_harm() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!(
        "http://{}/v1/traces",
        listener.local_addr().expect("an address")
    );
    drop(listener);
    let served = Served::start(replies(false), Traces::new(url)).await;
    let got = served.door.chat(&ask(false), &[]).await;
    assert_eq!(got.status, StatusCode::OK);
    // It is counted as soon as the collector was looked for.
    let line = "overlock_spans_total{result=\"failed\"} 4";
    let look = async || served.door.get("/metrics").await.body;
    let is_told = |reported: &String| reported.lines().any(|reported| reported == line);
    eventually(line, look, is_told).await;
    served.stop().await;
}

#[tokio::test]
async fn a_silent_collector_does_no_harm() {
    // Connections are never accepted.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!(
        "http://{}/v1/traces",
        listener.local_addr().expect("an address")
    );
    let served = Served::start(replies(false), Traces::new(url)).await;
    for _ in 0..3 {
        let got = served.door.chat(&ask(false), &[]).await;
        assert_eq!(got.status, StatusCode::OK);
    }
    // It stops all the same, without the last words.
    served.stop().await;
}
