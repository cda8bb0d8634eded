use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::{Method, StatusCode};
use overlock_gateway::{Gateway, Keys, Settings, Upstream};
use overlock_llm::testing::{eventually, within_patience};
use overlock_runs::Record;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::captured_log::CapturedLog;
use crate::door::{Door, TestResponse, ask, open, serve, serve_with};
use crate::echo::{Echo, Event};
use crate::fake::FakeReply;

async fn door(set: impl FnOnce(&mut Settings)) -> Door<Echo> {
    let upstream = Echo::start().await;
    let address = serve(&upstream.base, set).await;
    Door { address, upstream }
}

#[track_caller]
fn check_error(got: &TestResponse, status: u16, code: &str) {
    assert_eq!(got.status, status, "{}", got.body);
    let error = &got.json()["error"];
    assert_eq!(error["code"], code, "{error}");
    assert!(error["message"].is_string() && error["type"].is_string());
    assert!(error.get("param").is_some());
}

#[tokio::test]
async fn unknown_urls_get_errors_in_the_format_of_openai() {
    let door = door(|_| {}).await;
    let got = door.get("/nothing/here").await;
    check_error(&got, 404, "unknown_url");
    let got = door.send(Method::DELETE, "/api/cut", &[], "").await;
    check_error(&got, 405, "method_not_allowed");
    assert_eq!(got.header("allow"), "OPTIONS, POST");
    let got = door.send(Method::OPTIONS, "/health", &[], "").await;
    assert_eq!(got.status, StatusCode::NO_CONTENT);
    assert_eq!(got.header("allow"), "GET, HEAD, OPTIONS");
    let got = door.send(Method::HEAD, "/health", &[], "").await;
    assert_eq!((got.status, &*got.body), (StatusCode::OK, ""));
    assert_eq!(door.upstream.requests(), 0);
}

#[tokio::test]
async fn forwards_other_paths_unchanged() {
    let door = door(|_| {}).await;
    let headers = [
        ("authorization", "Bearer client-key"),
        ("accept-encoding", "br"),
        ("x-own", "1"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("x-overlock-continue", "off"),
    ];
    let path = "/v1/models/meta%2Fllama?a=1&b=%20x";
    let got = door
        .send(Method::PUT, path, &headers, "not \u{1F680} JSON")
        .await;
    let forwarded = got.json();
    assert_eq!(forwarded["method"], "PUT");
    assert_eq!(forwarded["uri"], "/base/v1/models/meta%2Fllama?a=1&b=%20x");
    assert_eq!(forwarded["body"], "not \u{1F680} JSON");
    let headers_sent = &forwarded["headers"];
    assert_eq!(headers_sent["authorization"], "Bearer client-key");
    assert_eq!(headers_sent["accept-encoding"], "br");
    assert_eq!(headers_sent["x-own"], "1");
    assert_eq!(headers_sent["content-length"], "13");
    for kept_back in ["x-hop", "x-overlock-continue"] {
        assert!(headers_sent.get(kept_back).is_none(), "{headers_sent}");
    }
    assert_eq!(got.header("x-of-the-upstream"), "kept");
    assert_eq!(got.headers.get_all("set-cookie").iter().count(), 2);
    assert_eq!(got.header("x-of-the-hop"), "");
    let got = door.get("/v1/teapot").await;
    assert_eq!(got.status, StatusCode::IM_A_TEAPOT);
}

#[tokio::test]
async fn forwards_a_stream_piece_by_piece() {
    let mut door = door(|_| {}).await;
    let mut body = open(&door.address, "/v1/drip").await.into_body();
    let first = body.frame().await.expect("a piece").expect("no error");
    assert_eq!(first.into_data().expect("data"), "piece 0\n");
    assert_eq!(door.upstream.next().await, Event::Arrived);
    door.upstream.let_one_go();
    let rest = body.collect().await.expect("the rest").to_bytes();
    assert_eq!(rest, "piece 1\n");
}

#[tokio::test]
async fn a_client_disconnect_cancels_a_forwarded_request() {
    let mut door = door(|_| {}).await;
    let address = door.address.clone();
    let waiting = tokio::spawn(async move { open(&address, "/v1/wait").await });
    assert_eq!(door.upstream.next().await, Event::Arrived);
    waiting.abort();
    assert_eq!(door.upstream.next().await, Event::GivenUp);
    // In the middle of a body too.
    let mut body = open(&door.address, "/v1/drip").await.into_body();
    body.frame().await.expect("a piece").expect("no error");
    assert_eq!(door.upstream.next().await, Event::Arrived);
    drop(body);
    assert_eq!(door.upstream.next().await, Event::GivenUp);
}

#[tokio::test]
async fn health_reports_recording_and_keys() {
    let store = || Some(overlock_store::in_memory().expect("a store"));
    for (record, store, reported) in [
        (Record::Full, store(), ("full", true)),
        (Record::Off, store(), ("off", true)),
        (Record::Full, None, ("off", false)),
    ] {
        let set = |settings: &mut Settings| settings.record = record;
        let address = serve_with("http://127.0.0.1:1/v1", store, set).await;
        let door = Door {
            address,
            upstream: (),
        };
        let health = door.get("/health").await.json();
        assert_eq!(health["key"], "not-needed");
        assert_eq!(
            (health["record"].as_str(), health["has_store"].as_bool()),
            (Some(reported.0), Some(reported.1))
        );
    }
}

#[tokio::test]
async fn requires_keys_and_does_not_forward_them() {
    let door = door(|settings| settings.keys = Keys::new(["right-key".to_owned()])).await;
    for path in [
        "/v1/files",
        "/v1/models",
        "/api/runs",
        "/metrics",
        "/openapi.json",
        "/nowhere",
    ] {
        for shown in [None, Some("Bearer wrong-key"), Some("right-key")] {
            let headers: Vec<_> = shown
                .map(|shown| ("authorization", shown))
                .into_iter()
                .collect();
            let got = door.send(Method::GET, path, &headers, "").await;
            check_error(&got, 401, "invalid_api_key");
            assert!(!got.body.contains("right-key") && !got.body.contains("wrong-key"));
        }
    }
    assert_eq!(door.upstream.requests(), 0);
    for (shown, reported) in [
        (None, "missing"),
        (Some("Bearer wrong-key"), "wrong"),
        (Some("Bearer right-key"), "right"),
    ] {
        let headers: Vec<_> = shown
            .map(|key| ("authorization", key))
            .into_iter()
            .collect();
        let got = door.send(Method::GET, "/health", &headers, "").await;
        assert_eq!(got.status, StatusCode::OK);
        assert_eq!(got.json()["key"], reported);
        assert!(!got.body.contains("-key"), "{}", got.body);
    }
    for header in [
        ("authorization", "Bearer right-key"),
        ("x-api-key", "right-key"),
    ] {
        let got = door.send(Method::GET, "/v1/files", &[header], "").await;
        assert_eq!(got.status, StatusCode::OK);
        assert!(!got.body.contains("right-key"), "{}", got.body);
    }
}

#[tokio::test]
async fn replaces_the_key_of_the_client_by_that_of_the_upstream() {
    let door = door(|settings| settings.upstream.key = Some("upstream-key".to_owned())).await;
    let header = ("authorization", "Bearer client-key");
    let got = door.send(Method::GET, "/v1/files", &[header], "").await;
    assert_eq!(
        got.json()["headers"]["authorization"],
        "Bearer upstream-key"
    );
    assert!(!got.body.contains("client-key"));
}

fn ids(list: &Value) -> Vec<&str> {
    let models = list["data"].as_array().expect("a list");
    models
        .iter()
        .filter_map(|model| model["id"].as_str())
        .collect()
}

#[tokio::test]
async fn the_models_are_the_upstreams_and_one_more() {
    let list = json!({ "object": "list", "data": [{ "id": "gpt-4o", "object": "model" }] });
    let door = Door::to_fake(vec![FakeReply::json(200, &list)]).await;
    let got = door.get("/v1/models").await.json();
    assert_eq!(ids(&got), ["gpt-4o", "overlock-demo"]);
    assert_eq!(got["data"][1]["owned_by"], "overlock");
}

#[tokio::test]
async fn lists_only_the_demo_model_without_an_upstream() {
    // No server listens there.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let gone = format!("http://{}/v1", listener.local_addr().expect("an address"));
    drop(listener);
    let unreachable = serve(&gone, |_| {}).await;
    let nobody = serve(&gone, |settings| settings.upstream = Upstream::none()).await;
    for address in [unreachable, nobody] {
        let door = Door {
            address,
            upstream: (),
        };
        assert_eq!(ids(&door.get("/v1/models").await.json()), ["overlock-demo"]);
        let got = door.chat(&ask(false), &[]).await;
        assert!(matches!(got.status.as_u16(), 502 | 503), "{}", got.body);
        let mut request = ask(false);
        request["model"] = json!("overlock-demo");
        assert_eq!(door.chat(&request, &[]).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn passes_on_an_error_of_the_model_list() {
    let refusal = json!({ "error": { "message": "no key", "type": "invalid_request_error" } });
    let door = Door::to_fake(vec![FakeReply::json(401, &refusal)]).await;
    let got = door.get("/v1/models").await;
    assert_eq!(got.status, StatusCode::UNAUTHORIZED);
    assert_eq!(got.json()["error"]["message"], "no key");
}

#[tokio::test]
async fn requests_fail_without_an_upstream() {
    let door = Door {
        address: serve("http://127.0.0.1:1/v1", |settings| {
            settings.upstream = Upstream::none();
        })
        .await,
        upstream: (),
    };
    for got in [
        door.chat(&ask(false), &[]).await,
        door.get("/v1/files").await,
    ] {
        check_error(&got, 503, "no_upstream");
        assert!(got.body.contains("--upstream"), "{}", got.body);
    }
}

#[tokio::test]
async fn rejects_requests_while_the_queue_is_full() {
    let mut door = door(|settings| {
        settings.limits.concurrent = 1;
        settings.limits.queue = 1;
        settings.limits.queue_time = Duration::from_mins(1);
    })
    .await;
    let address = door.address.clone();
    let first = tokio::spawn(async move { open(&address, "/v1/wait").await.status() });
    assert_eq!(door.upstream.next().await, Event::Arrived);
    let address = door.address.clone();
    let second = tokio::spawn(async move { open(&address, "/v1/wait").await.status() });
    // The metrics need no permit, and show when the queue is full.
    let look = async || door.get("/metrics").await.body;
    let is_queued = |reported: &String| reported.contains("overlock_requests_queued 1\n");
    let reported = eventually("a queued request", look, is_queued).await;
    assert!(
        reported.contains("overlock_requests_in_progress 1\n"),
        "{reported}"
    );
    let third = door.get("/v1/files").await;
    check_error(&third, 429, "overloaded");
    assert_eq!(third.header("retry-after"), "60");
    assert_eq!(door.get("/health").await.status, StatusCode::OK);
    door.upstream.let_one_go();
    assert_eq!(first.await.expect("no panic"), StatusCode::OK);
    door.upstream.let_one_go();
    assert_eq!(second.await.expect("no panic"), StatusCode::OK);
    assert_eq!(door.get("/v1/files").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_stream_holds_its_permit_until_its_end() {
    let mut door = door(|settings| {
        settings.limits.concurrent = 1;
        settings.limits.queue_time = Duration::from_millis(1);
    })
    .await;
    let mut body = open(&door.address, "/v1/drip").await.into_body();
    body.frame().await.expect("a piece").expect("no error");
    assert_eq!(door.upstream.next().await, Event::Arrived);
    let got = door.get("/v1/files").await;
    check_error(&got, 503, "overloaded");
    assert_eq!(got.header("retry-after"), "1");
    // A disconnect releases the permit.
    drop(body);
    assert_eq!(door.upstream.next().await, Event::GivenUp);
    assert_eq!(door.get("/v1/files").await.status, StatusCode::OK);
}

#[tokio::test]
async fn running_requests_finish_at_shutdown() {
    let mut upstream = Echo::start().await;
    let gateway = Gateway::new(Settings::new(Upstream::new(&upstream.base)), None);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel();
    let serving = tokio::spawn(
        Arc::new(gateway.expect("a gateway")).serve(listener, async {
            let _ = stopped.await;
        }),
    );
    let base = format!("http://{address}");
    let running = tokio::spawn(async move { open(&base, "/v1/wait").await.status() });
    assert_eq!(upstream.next().await, Event::Arrived);
    stop.send(()).expect("it is served");
    // New connections are refused.
    let look = async || TcpStream::connect(address).await.is_ok();
    eventually("the port to be closed", look, |is_open| !is_open).await;
    upstream.let_one_go();
    assert_eq!(running.await.expect("no panic"), StatusCode::OK);
    let served = within_patience("the gateway to stop", serving).await;
    served.expect("no panic").expect("served");
}

#[tokio::test]
async fn health_names_the_upstream() {
    let door = door(|_| {}).await;
    let health = door.get("/health").await.json();
    let expected = json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "upstream": "127.0.0.1",
        "findings": [],
        "key": "not-needed",
        "record": "off",
        "has_store": false,
        "body_bytes": 32 << 20,
    });
    assert_eq!(health, expected);
}

#[tokio::test]
async fn metrics_count_requests_and_tokens() {
    let door = Door::to_fake(vec![FakeReply::content("{\"a\": 1}", "stop")]).await;
    assert_eq!(door.chat(&ask(false), &[]).await.status, StatusCode::OK);
    door.get("/some/secret/path").await;
    let got = door.get("/metrics").await;
    assert!(
        got.header("content-type")
            .starts_with("application/openmetrics-text")
    );
    for line in [
        "overlock_requests_total{route=\"/v1/chat/completions\",status=\"200\"} 1",
        "overlock_requests_total{route=\"none\",status=\"404\"} 1",
        "overlock_answers_total{outcome=\"complete\"} 1",
        "overlock_tokens_total{direction=\"output\",call=\"first\"} 5",
        "overlock_requests_in_progress 0",
    ] {
        assert!(
            got.body.lines().any(|reported| reported == line),
            "{line}\n{}",
            got.body
        );
    }
    assert!(!got.body.contains("secret") && !got.body.contains("gpt-4o"));
}

#[tokio::test]
async fn logs_each_request_without_text() {
    let upstream = crate::fake::Fake::start(vec![FakeReply::content("{\"a\": 1}", "stop")]).await;
    let log = CapturedLog::start();
    let gateway = Gateway::new(Settings::new(Upstream::new(&upstream.base)), None);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(Arc::new(gateway.expect("a gateway")).serve(listener, std::future::pending()));
    let door = Door {
        address,
        upstream: (),
    };
    let key = ("authorization", "Bearer secret-key");
    door.chat(&ask(false), &[key]).await;
    door.get("/secret/path?secret=query").await;
    let reported = log.lines();
    let [chat, nowhere] = reported.as_slice() else {
        panic!("{reported:?}");
    };
    for (line, expected) in [
        (
            chat,
            json!({
                "method": "POST", "route": "/v1/chat/completions", "status": 200,
                "input_tokens": 10, "output_tokens": 5, "outcome": "complete",
                "continuations": 0, "left": false,
            }),
        ),
        (
            nowhere,
            json!({ "route": "none", "status": 404, "left": false }),
        ),
    ] {
        for (name, value) in expected.as_object().expect("fields") {
            assert_eq!(line[name], *value, "{name}: {line}");
        }
    }
    let lines = format!("{reported:?}");
    for secret in ["secret", "report"] {
        assert!(!lines.contains(secret), "{lines}");
    }
}
