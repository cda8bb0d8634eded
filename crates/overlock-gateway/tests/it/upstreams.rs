use std::time::Duration;

use hyper::StatusCode;
use overlock_gateway::{Gateway, Settings, Upstream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::captured_log::CapturedLog;
use crate::door::{Door, TestResponse, ask, serve, serve_gateway};
use crate::fake::{Fake, FakeReply};

fn plain(stream: bool) -> Value {
    json!({
        "model": "gpt-4o", "stream": stream,
        "messages": [{ "role": "user", "content": "Tell me." }],
    })
}

fn chunks(got: &TestResponse) -> Vec<Value> {
    let data = got
        .body
        .split("\n\n")
        .filter_map(|it| it.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

/// A stream of these events.
fn events(events: &[Value]) -> FakeReply {
    let events = events.iter().map(|event| format!("data: {event}\n\n"));
    FakeReply {
        body: events.collect::<String>() + "data: [DONE]\n\n",
        ..FakeReply::stream(&[])
    }
}

fn chunk(id: &str, delta: &Value, finish: &Value) -> Value {
    json!({
        "id": id, "object": "chat.completion.chunk", "created": 1, "model": "m-1",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    })
}

/// An upstream whose answer repeats a piece without end.
async fn endless(kind: &'static str, piece: String) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut call, _)) = listener.accept().await {
            let piece = piece.clone();
            tokio::spawn(async move {
                let _ = call.read(&mut [0; 4096]).await;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n");
                let mut sent = call.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    sent = call.write_all(piece.as_bytes()).await;
                    sleep(Duration::from_millis(5)).await;
                }
            });
        }
    });
    base
}

#[tokio::test]
async fn an_endless_upstream_answer_ends_at_the_deadline() {
    let event = |delta: Value| format!("data: {}\n\n", chunk("a", &delta, &Value::Null));
    for (kind, piece) in [
        ("text/event-stream", ": still here\n\n".to_owned()),
        (
            "text/event-stream",
            event(json!({ "reasoning_content": "hm" })),
        ),
        ("text/event-stream", event(json!({ "content": "word " }))),
        ("application/json", " ".to_owned()),
    ] {
        let base = endless(kind, piece).await;
        let set = |settings: &mut Settings| settings.limits.run_time = Duration::from_millis(200);
        let door = Door {
            address: serve(&base, set).await,
            upstream: (),
        };
        let stream = kind != "application/json";
        let got = door.chat(&plain(stream), &[]).await;
        if stream {
            let last = chunks(&got).pop().expect("an event");
            assert_eq!(last["error"]["type"], "upstream_error", "{last}");
        } else {
            assert_eq!(got.status, StatusCode::GATEWAY_TIMEOUT);
        }
    }
}

#[tokio::test]
async fn keep_alive_comments_are_not_part_of_the_first_answer() {
    let empty = format!("data: {}\n\n", chunk("a", &json!({}), &Value::Null));
    for piece in [": still here\n\n".to_owned(), empty] {
        let base = endless("text/event-stream", piece).await;
        let set = |settings: &mut Settings| {
            settings.upstream.timeouts.first_byte = Duration::from_millis(100);
        };
        let door = Door {
            address: serve(&base, set).await,
            upstream: (),
        };
        let got = door.chat(&plain(true), &[]).await;
        assert!(got.body.contains("did not begin to answer"), "{}", got.body);
    }
}

#[tokio::test]
async fn the_size_limit_counts_content_and_not_its_framing() {
    let set = |settings: &mut Settings| settings.limits.answer_bytes = 10_000;
    let thought = chunk(
        "a",
        &json!({ "reasoning_content": "hm ".repeat(300) }),
        &Value::Null,
    );
    let mut comments = events(&[chunk("a", &json!({ "content": "x" }), &Value::Null)]);
    comments.body = format!("{}{}", ": still here\n\n".repeat(1000), comments.body);
    for mut endless in [events(&vec![thought; 50]), comments] {
        endless.body = endless.body.replace("data: [DONE]\n\n", "");
        let door = Door::to_fake_with(vec![endless], set).await;
        let last = chunks(&door.chat(&plain(true), &[]).await).pop();
        let message = &last.expect("an event")["error"]["message"];
        assert_eq!(*message, "the upstream's answer is too long");
    }
    let long = FakeReply::streamed_content(&"word ".repeat(1000), "stop");
    assert_eq!(long.body.len(), 141_161);
    let door = Door::to_fake_with(vec![long], set).await;
    let last = chunks(&door.chat(&plain(true), &[]).await).pop();
    assert_eq!(
        last.expect("an event")["choices"][0]["finish_reason"],
        "stop"
    );
}

#[tokio::test]
async fn an_answer_has_one_id_and_one_role() {
    let filter = json!({ "id": "", "model": "", "object": "", "created": 0, "choices": [],
                         "prompt_filter_results": [{ "prompt_index": 0 }] });
    let role = json!({ "role": "assistant", "content": "[1" });
    let first = events(&[
        filter.clone(),
        json!({ "type": "ping" }),
        chunk("a1", &role, &Value::Null),
        chunk(
            "a2",
            &json!({ "role": "assistant", "content": ", " }),
            &Value::Null,
        ),
        chunk("", &json!({ "content": "2" }), &Value::Null),
        chunk("a1", &json!({}), &json!("length")),
    ]);
    let nameless = events(&[
        chunk("", &json!({ "content": "[1, 2" }), &Value::Null),
        chunk("", &json!({}), &json!("length")),
    ]);
    for (first, is_named) in [(first, true), (nameless, false)] {
        let rest = FakeReply::streamed_content("[1, 2, 3]", "stop");
        let door = Door::to_fake(vec![first, rest]).await;
        let mut reported = chunks(&door.chat(&plain(true), &[]).await);
        if is_named {
            assert_eq!(reported.remove(0), filter);
            assert_eq!(reported.remove(0), json!({ "type": "ping" }));
        }
        let id = reported[0]["id"].as_str().expect("a name").to_owned();
        assert!(if is_named { id == "a1" } else { !id.is_empty() });
        let mut content = String::new();
        for (number, chunk) in reported.iter().enumerate() {
            assert_eq!((&chunk["id"], &chunk["model"]), (&json!(id), &json!("m-1")));
            let delta = &chunk["choices"][0]["delta"];
            assert_eq!(delta.get("role").is_some(), number == 0, "{reported:?}");
            content.push_str(delta["content"].as_str().unwrap_or_default());
        }
        assert_eq!(content, "[1, 2, 3]");
    }
}

#[tokio::test]
async fn passes_on_a_compressed_error() {
    let mut packed = FakeReply::json(429, &json!({}));
    packed.body = "\u{1f}packed\u{8}".to_owned();
    packed.headers.push(("content-encoding", "gzip".to_owned()));
    let door = Door::to_fake(vec![packed.clone()]).await;
    let got = door
        .chat(&plain(false), &[("accept-encoding", "gzip")])
        .await;
    assert_eq!(
        door.upstream.requests()[0].headers["accept-encoding"],
        "identity"
    );
    assert_eq!(got.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(got.header("content-encoding"), "");
    let message = got.json()["error"]["message"]
        .as_str()
        .expect("a text")
        .to_owned();
    assert!(
        message.contains("gzip") && !message.contains('\u{1f}'),
        "{message}"
    );

    packed.status = 200;
    let door = Door::to_fake(vec![packed]).await;
    let got = door.chat(&plain(false), &[]).await;
    assert_eq!(got.status, StatusCode::BAD_GATEWAY);
    assert!(got.body.contains("gzip"), "{}", got.body);
}

#[tokio::test]
async fn turns_an_unstreamed_answer_into_a_complete_stream() {
    let logprobs = json!({ "content": [{ "token": "Hello", "logprob": -0.1 }] });
    let message = json!({ "role": "assistant", "content": "Hello" });
    let mut said = FakeReply::choices(&json!([
        { "index": 0, "message": message, "finish_reason": "stop", "logprobs": logprobs },
    ]));
    said.headers.push(("x-request-id", "req-7".to_owned()));
    let door = Door::to_fake(vec![said]).await;
    let got = door.chat(&plain(true), &[]).await;
    assert_eq!(got.header("x-request-id"), "req-7");
    assert_eq!(got.header("content-type"), "text/event-stream");
    assert_eq!(chunks(&got)[0]["choices"][0]["logprobs"], logprobs);
}

const KEY: &str = "sk-up-secret/1";

/// What a client gets and what the log says of a request to an upstream that is shown a key.
async fn with_key(replies: Vec<FakeReply>, request: &Value) -> (TestResponse, Vec<Value>) {
    let upstream = Fake::start(replies).await;
    let mut settings = Settings::new(Upstream::new(&upstream.base));
    settings.upstream.key = Some(KEY.to_owned());
    settings.upstream.retries.first_wait = Duration::from_millis(1);
    let log = CapturedLog::start();
    let gateway = Gateway::new(settings, None).expect("a gateway");
    let address = serve_gateway(gateway).await;
    let got = Door { address, upstream }.chat(request, &[]).await;
    (got, log.lines())
}

#[tokio::test]
async fn redacts_a_key_echoed_by_the_upstream() {
    let message = format!("Incorrect key: Authorization: Bearer {KEY}");
    let error = json!({ "error": { "message": message, "type": "auth", "code": "bad" } });
    let html = FakeReply {
        body: message.clone(),
        ..FakeReply::json(502, &json!({}))
    };
    let escaped = FakeReply {
        body: error.to_string().replace('/', "\\/"),
        ..FakeReply::json(401, &json!({}))
    };
    let begun = json!({ "index": 0, "delta": { "content": "Hello" } });
    let mut turned = FakeReply::stream(&[begun]);
    turned.body = turned
        .body
        .replace("data: [DONE]", &format!("data: {error}"));
    let cut = FakeReply::streamed_content("[1, 2", "length");
    for (replies, stream) in [
        (vec![FakeReply::json(401, &error)], false),
        (vec![escaped], false),
        (vec![html], true),
        (vec![FakeReply::json(200, &error)], false),
        (vec![turned], true),
    ] {
        let (got, log) = with_key(replies, &plain(stream)).await;
        assert!(got.body.contains("Bearer [redacted]"), "{}", got.body);
        assert!(!got.body.contains(KEY), "{}", got.body);
        assert!(!format!("{log:?}").contains(KEY));
    }
    let (got, log) = with_key(vec![cut, FakeReply::json(401, &error)], &plain(true)).await;
    assert!(!got.body.contains(KEY) && !format!("{log:?}").contains(KEY));
}

#[tokio::test]
async fn logs_the_model_of_a_stream_that_ends_in_an_error() {
    let mut broken = FakeReply::stream(&[json!({ "index": 0, "delta": { "content": "Hello" } })]);
    broken.body = broken.body.replace("data: [DONE]\n\n", "");
    let mut request = plain(true);
    request["model"] = json!(format!("gpt\n\u{1b}[31m{}", "x".repeat(1000)));
    let (_, log) = with_key(vec![broken], &request).await;
    let [entry] = log.as_slice() else {
        panic!("{log:?}");
    };
    assert_eq!(
        (&entry["status"], &entry["outcome"], &entry["error"]),
        (&json!(200), &json!("failed"), &json!("upstream_error"))
    );
    let model = entry["model"].as_str().expect("a model");
    assert!(
        model.starts_with("gpt??[31mxx") && model.len() == 100,
        "{model}"
    );
    let (_, log) = with_key(vec![FakeReply::content("{}", "stop")], &ask(false)).await;
    assert_eq!(log[0]["model"], "gpt-4o");
}
