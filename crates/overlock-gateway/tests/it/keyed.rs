use std::sync::Arc;
use std::time::Duration;

use hyper::{Method, StatusCode};
use overlock_gateway::{Gateway, Settings, Upstream};
use overlock_llm::testing::eventually;
use overlock_runs::Record;
use overlock_store::{Access, Store, StoreAddress, open};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::captured_log::CapturedLog;
use crate::door::{Door, TestResponse, serve_gateway, serve_with};
use crate::fake::{Fake, FakeReply};

/// An upstream behind several gateways with one store.
struct Shared {
    folder: TempDir,
    upstream: Fake,
}

impl Shared {
    async fn new(replies: Vec<FakeReply>) -> Self {
        Self {
            folder: TempDir::new().expect("a folder"),
            upstream: Fake::start(replies).await,
        }
    }

    fn store(&self) -> Arc<dyn Store> {
        let address = StoreAddress::Sqlite(self.folder.path().join("runs.db"));
        open(&address, Access::Create).expect("a store")
    }

    /// Another gateway.
    async fn door(&self, set: impl FnOnce(&mut Settings)) -> Door<()> {
        let address = serve_with(&self.upstream.base, Some(self.store()), set).await;
        Door {
            address,
            upstream: (),
        }
    }

    /// A client that disconnects after this many upstream calls.
    async fn disconnect(&self, request: &Value, calls: usize) {
        let door = self.door(|_| {}).await;
        tokio::select! {
            got = door.chat(request, &KEY) => panic!("it is never answered: {}", got.body),
            () = self.upstream.until_called(calls) => {}
        }
    }

    /// The response of a client that retries until the earlier request is known to have ended.
    async fn retry(&self, request: &Value, set: impl FnOnce(&mut Settings)) -> TestResponse {
        self.retry_with(request, &KEY, set).await
    }

    async fn retry_with(
        &self,
        request: &Value,
        headers: &[(&'static str, &str)],
        set: impl FnOnce(&mut Settings),
    ) -> TestResponse {
        self.door(set).await.chat_once_free(request, headers).await
    }

    /// The text of all files of the store.
    fn written(&self) -> String {
        let files = std::fs::read_dir(self.folder.path()).expect("a folder");
        let paths = files.map(|file| file.expect("a file").path());
        let texts = paths.filter(|path| path.is_file());
        let texts = texts.map(|path| std::fs::read(path).expect("bytes"));
        texts
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    }
}

const KEY: [(&str, &str); 1] = [("idempotency-key", "one")];

fn plain(stream: bool) -> Value {
    json!({
        "model": "gpt-4o", "stream": stream,
        "messages": [{ "role": "user", "content": "What is the weather?" }],
    })
}

/// A request for a document that must have a member `b`.
fn with_schema(stream: bool) -> Value {
    let mut request = plain(stream);
    let schema = json!({
        "type": "object", "required": ["b"], "description": "The words of a schema.",
    });
    request["response_format"] = json!({
        "type": "json_schema", "json_schema": { "name": "answer", "schema": schema },
    });
    request
}

/// An answer, streamed or not.
fn reply(stream: bool, content: &str, finish: &str) -> FakeReply {
    if stream {
        FakeReply::streamed_content(content, finish)
    } else {
        FakeReply::content(content, finish)
    }
}

/// The content, the tool call arguments and the finish reason of each choice, assembled from chunks
/// if the answer is streamed.
fn choices(got: &TestResponse, stream: bool) -> Value {
    let reported = if stream {
        let events = got.body.split("\n\n");
        let data = events.filter_map(|event| event.strip_prefix("data: "));
        let data = data.filter(|data| *data != "[DONE]");
        data.map(|data| serde_json::from_str(data).expect("JSON"))
            .collect()
    } else {
        vec![got.json()]
    };
    let at = if stream { "delta" } else { "message" };
    let mut choices = json!([]);
    let list = choices.as_array_mut().expect("a list");
    for choice in reported.iter().flat_map(|one: &Value| {
        let choices = one["choices"].as_array();
        choices.expect("choices").clone()
    }) {
        let index = choice["index"].as_u64().expect("an index");
        let index = usize::try_from(index).expect("a small one");
        while list.len() <= index {
            list.push(json!({ "content": "", "calls": [], "finish": null }));
        }
        let known = &mut list[index];
        let add = |place: &mut Value, text: &Value| {
            let text = text.as_str().unwrap_or_default();
            *place = json!(place.as_str().unwrap_or_default().to_owned() + text);
        };
        add(&mut known["content"], &choice[at]["content"]);
        for call in choice[at]["tool_calls"].as_array().into_iter().flatten() {
            let calls = known["calls"].as_array_mut().expect("a list");
            if let Some(id) = call.get("id") {
                let name = &call["function"]["name"];
                calls.push(json!({ "id": id, "name": name, "arguments": "" }));
            }
            let call_so_far = calls.last_mut().expect("a call");
            add(
                &mut call_so_far["arguments"],
                &call["function"]["arguments"],
            );
        }
        if !choice["finish_reason"].is_null() {
            known["finish"] = choice["finish_reason"].clone();
        }
    }
    choices
}

const CONTENT: &str = r#"{"note": "looking", "n": [1, 2, 3]}"#;
const ARGUMENTS: &str = r#"{"city": "Oslo", "days": [1, 2, 3]}"#;
const OTHER: &str = r#"{"other": "choice", "n": [4, 5, 6]}"#;

/// A first answer with three cut parts: a content, the arguments of a tool call in the same choice,
/// and the content of another choice.
fn three_cuts(stream: bool) -> FakeReply {
    let call = json!({ "index": 0, "id": "call_1", "type": "function",
        "function": { "name": "weather", "arguments": &ARGUMENTS[..20] } });
    let one = json!({ "role": "assistant", "content": &CONTENT[..25], "tool_calls": [call] });
    let two = json!({ "role": "assistant", "content": &OTHER[..25] });
    if stream {
        return FakeReply::stream(&[
            json!({ "index": 0, "delta": one }),
            json!({ "index": 1, "delta": two }),
            json!({ "index": 0, "delta": {}, "finish_reason": "length" }),
            json!({ "index": 1, "delta": {}, "finish_reason": "length" }),
        ]);
    }
    FakeReply::choices(&json!([
        { "index": 0, "message": one, "finish_reason": "length" },
        { "index": 1, "message": two, "finish_reason": "length" },
    ]))
}

#[tokio::test]
async fn a_key_can_be_retried_after_a_disconnect() {
    const CLIENTS: u64 = 60;
    let shared = Shared::new(vec![FakeReply::content("It rains.", "stop")]).await;
    let door = shared.door(|_| {}).await;
    let host = door.address.strip_prefix("http://").expect("an address");
    let body = plain(false).to_string();
    let keys: Vec<String> = (0..CLIENTS).map(|number| format!("key-{number}")).collect();
    for (number, key) in (0..).zip(&keys) {
        let mut stream = TcpStream::connect(host).await.expect("a connection");
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nidempotency-key: {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it is sent");
        // Each client disconnects at a different time.
        tokio::time::sleep(Duration::from_micros(number * 150)).await;
    }
    for key in &keys {
        let key = [("idempotency-key", &**key)];
        let got = door.chat_once_free(&plain(false), &key).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    }
}

#[tokio::test]
async fn a_run_is_answered_by_one_gateway_at_a_time() {
    let shared = Shared::new(vec![
        FakeReply::never(),
        FakeReply::content("It rains.", "stop"),
    ])
    .await;
    let [one, other] = [shared.door(|_| {}).await, shared.door(|_| {}).await];
    let request = plain(false);
    let got = tokio::select! {
        _ = one.chat(&request, &KEY) => panic!("it is never answered"),
        got = async {
            shared.upstream.until_called(1).await;
            other.chat(&request, &KEY).await
        } => got,
    };
    assert_eq!(got.status, StatusCode::CONFLICT, "{}", got.body);
    assert_eq!(got.header("retry-after"), "1");
    assert_eq!(shared.upstream.requests().len(), 1);
    // The client of the first request has disconnected.
    let got = shared.retry(&request, |_| {}).await;
    assert_eq!(got.status, StatusCode::OK);
    assert_eq!(shared.upstream.requests().len(), 2);
}

#[tokio::test]
async fn a_retry_returns_all_choices_and_repeats_no_call() {
    let whole = json!([
        { "content": CONTENT, "finish": "tool_calls",
          "calls": [{ "id": "call_1", "name": "weather", "arguments": ARGUMENTS }] },
        { "content": OTHER, "finish": "stop", "calls": [] },
    ]);
    let rests = [CONTENT, ARGUMENTS, OTHER];
    // For each continuation that is not answered.
    for (stream, unanswered) in [(false, 0), (false, 1), (false, 2), (true, 1), (true, 2)] {
        let mut replies = vec![three_cuts(stream)];
        for (number, rest) in rests.iter().enumerate() {
            if number == unanswered {
                replies.push(FakeReply::never());
            }
            replies.push(FakeReply::streamed_content(rest, "stop"));
        }
        let shared = Shared::new(replies).await;
        let mut request = plain(stream);
        request["n"] = json!(2);
        shared.disconnect(&request, unanswered + 2).await;

        let got = shared.retry(&request, |_| {}).await;
        assert_eq!(choices(&got, stream), whole, "{}", got.body);
        let requests = shared.upstream.requests();
        assert_eq!(requests.len(), 5, "no answered call is made again");
        assert_eq!(requests[unanswered + 2].body, requests[unanswered + 1].body);

        let door = shared.door(|_| {}).await;
        let again = door.chat(&request, &KEY).await;
        assert_eq!(choices(&again, stream), whole);
        assert_eq!(shared.upstream.requests().len(), 5);
        let run = got.header("x-overlock-run");
        assert_eq!(again.header("x-overlock-run"), run);
        for got in [&got, &again] {
            if stream {
                let reported = ": overlock outcome=complete continuations=3\n";
                assert!(got.body.contains(reported), "{}", got.body);
            } else {
                assert_eq!(got.header("x-overlock-continuations"), "3");
                assert_eq!(got.json()["id"], "chatcmpl-1");
            }
        }
        let shown = door.get(&format!("/api/runs/{run}")).await;
        assert_eq!(shown.status, StatusCode::OK, "{}", shown.body);
        let bytes: usize = rests.iter().map(|rest| rest.len()).sum();
        assert_eq!(shown.json()["bytes"], bytes, "of all parts");
    }
}

#[tokio::test]
async fn a_retry_continues_a_cut_text() {
    let first = "It was a dark and stormy night; ";
    let rest = "the rain fell in torrents.";
    for stream in [false, true] {
        let shared = Shared::new(vec![
            reply(stream, first, "length"),
            FakeReply::never(),
            FakeReply::streamed_content(rest, "stop"),
        ])
        .await;
        let headers = [KEY[0], ("x-overlock-continue", "text")];
        let door = shared.door(|_| {}).await;
        let request = plain(stream);
        tokio::select! {
            _ = door.chat(&request, &headers) => panic!("it is never answered"),
            () = shared.upstream.until_called(2) => {}
        }
        let got = shared.retry_with(&request, &headers, |_| {}).await;
        assert_eq!(
            choices(&got, stream)[0]["content"],
            json!(first.to_owned() + rest)
        );
        assert_eq!(shared.upstream.requests().len(), 3);
    }
}

#[tokio::test]
async fn a_replay_reports_the_same_schema_violation() {
    for (stream, strict) in [(false, false), (false, true), (true, false), (true, true)] {
        let set = |settings: &mut Settings| settings.strict_schema = strict;
        let shared = Shared::new(vec![reply(stream, r#"{"a": 1}"#, "stop")]).await;
        let request = with_schema(stream);
        let first = shared.door(set).await.chat(&request, &KEY).await;
        let again = shared.door(set).await.chat(&request, &KEY).await;
        // A correction is requested once, and only before any byte is sent.
        let corrections = usize::from(strict && !stream);
        assert_eq!(shared.upstream.requests().len(), 1 + corrections);
        check_violated(&first, stream, strict);
        check_violated(&again, stream, strict);
        if !stream {
            assert_eq!(first.json(), again.json());
        }
    }
}

#[tokio::test]
async fn a_resumed_document_is_validated() {
    for (stream, strict) in [(false, false), (false, true), (true, false)] {
        let set = |settings: &mut Settings| settings.strict_schema = strict;
        let shared = Shared::new(vec![
            reply(stream, &CONTENT[..25], "length"),
            FakeReply::never(),
            FakeReply::streamed_content(CONTENT, "stop"),
        ])
        .await;
        let request = with_schema(stream);
        shared.disconnect(&request, 2).await;
        for _ in 0..2 {
            let got = shared.retry(&request, set).await;
            check_violated(&got, stream, strict);
        }
        let corrections = usize::from(strict && !stream);
        assert_eq!(shared.upstream.requests().len(), 3 + corrections);
    }
}

#[track_caller]
fn check_violated(got: &TestResponse, stream: bool, strict: bool) {
    if stream {
        assert!(got.body.contains(" schema=violated\n"), "{}", got.body);
    } else if strict {
        assert_eq!(got.status, StatusCode::BAD_GATEWAY, "{}", got.body);
        assert_eq!(got.json()["error"]["code"], "schema_violation");
    } else {
        assert_eq!(got.status, StatusCode::OK, "{}", got.body);
        assert_eq!(got.header("x-overlock-schema"), "violated");
    }
    assert_ne!(got.header("x-overlock-run"), "");
}

#[tokio::test]
async fn an_idempotency_key_is_not_forwarded() {
    let shared = Shared::new(vec![
        FakeReply::content(&CONTENT[..25], "length"),
        FakeReply::streamed_content(CONTENT, "stop"),
    ])
    .await;
    let door = shared.door(|_| {}).await;
    door.chat(&plain(false), &KEY).await;
    door.send(Method::POST, "/v1/embeddings", &KEY, "{}").await;
    let requests = shared.upstream.requests();
    let keys = requests.iter().map(|sent| sent.headers.get(KEY[0].0));
    let keys: Vec<bool> = keys.map(|key| key.is_some()).collect();
    assert_eq!(keys, [false, false, true]);
}

#[tokio::test]
async fn idempotency_keys_are_separate_for_each_client() {
    let shared = Shared::new(vec![FakeReply::content("It rains.", "stop")]).await;
    let door = shared.door(|_| {}).await;
    let mut other = plain(false);
    other["messages"][0]["content"] = json!("What is the time?");
    let mut calls = 0;
    for name in [
        "authorization",
        "x-api-key",
        "api-key",
        "openai-organization",
    ] {
        for client in ["alice-of-wonderland", "bob-of-wonderland"] {
            for request in [&plain(false), &plain(false), &other] {
                let got = door.chat(request, &[KEY[0], (name, client)]).await;
                let is_other = request == &other;
                let status = if is_other { 422 } else { 200 };
                assert_eq!(got.status, status, "{name}: {}", got.body);
            }
            calls += 1;
            assert_eq!(shared.upstream.requests().len(), calls, "{name}: {client}");
        }
    }
    assert!(!shared.written().contains("of-wonderland"));
}

#[tokio::test]
async fn an_answer_that_fails_names_its_run() {
    for record in [Record::Metadata, Record::Full] {
        for key in [&[][..], &KEY[..]] {
            let shared = Shared::new(vec![FakeReply {
                status: 200,
                headers: vec![("content-type", "application/json".to_owned())],
                body: "no JSON".to_owned(),
                frame: None,
            }])
            .await;
            let mut settings = Settings::new(Upstream::new(&shared.upstream.base));
            settings.record = record;
            let log = CapturedLog::start();
            let gateway = Gateway::new(settings, Some(shared.store())).expect("a gateway");
            let door = Door {
                address: serve_gateway(gateway).await,
                upstream: (),
            };
            let got = door.chat(&plain(false), key).await;
            assert_eq!(got.status, StatusCode::BAD_GATEWAY);
            let run = got.header("x-overlock-run").to_owned();
            assert_ne!(run, "");
            let look = async || log.lines();
            let logged = eventually("a log line", look, |logged| !logged.is_empty()).await;
            let runs: Vec<_> = logged.iter().map(|line| &line["run"]).collect();
            assert_eq!(runs, [&json!(run)]);
        }
    }
}

#[tokio::test]
async fn a_schema_is_recorded_only_with_the_other_texts() {
    for (record, is_kept) in [(Record::Metadata, false), (Record::Full, true)] {
        let shared = Shared::new(vec![FakeReply::content(r#"{"b": 1}"#, "stop")]).await;
        let door = shared.door(|settings| settings.record = record).await;
        let got = door.chat(&with_schema(false), &[]).await;
        let path = format!("/api/runs/{}", got.header("x-overlock-run"));
        let look = async || door.get(&path).await.status;
        eventually("the run", look, |status| *status == StatusCode::OK).await;
        assert_eq!(shared.written().contains("The words of a schema"), is_kept);
    }
}

/// The data of the events of a stream.
fn events(got: &TestResponse) -> Vec<Value> {
    let data = got.body.split("\n\n");
    let data = data.filter_map(|event| event.strip_prefix("data: "));
    let data = data.filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

/// A stream of these choices of chunks, and its replay.
async fn said_twice(chunks: &[Value]) -> [TestResponse; 2] {
    let shared = Shared::new(vec![FakeReply::stream(chunks)]).await;
    let door = shared.door(|_| {}).await;
    let first = door.chat(&plain(true), &KEY).await;
    let again = door.chat(&plain(true), &KEY).await;
    assert_eq!(shared.upstream.requests().len(), 1);
    [first, again]
}

/// Checks the replay of a stream with these deltas and this finish reason.
async fn check_said_again(deltas: &[Value], finish: &str, message: &Value) {
    let delta = |delta| json!({ "index": 0, "delta": delta, "finish_reason": null });
    let mut chunks: Vec<Value> = deltas.iter().map(delta).collect();
    chunks.push(json!({ "index": 0, "delta": {}, "finish_reason": finish }));
    let [_, again] = said_twice(&chunks).await;
    let events = events(&again);
    assert_eq!(&events[0]["choices"][0]["delta"], message);
    assert_eq!(events[1]["choices"][0]["finish_reason"], finish);
}

#[tokio::test]
async fn replays_a_legacy_function_call() {
    let deltas = [
        json!({ "role": "assistant", "content": null,
            "function_call": { "name": "weather", "arguments": "" } }),
        json!({ "function_call": { "arguments": "{\"city\":" } }),
        json!({ "function_call": { "arguments": " \"Oslo\"}" } }),
    ];
    let call = json!({ "name": "weather", "arguments": "{\"city\": \"Oslo\"}" });
    let message = json!({ "role": "assistant", "content": null, "function_call": call });
    check_said_again(&deltas, "function_call", &message).await;
}

#[tokio::test]
async fn replays_a_custom_tool_call() {
    let call = |more: Value| json!({ "tool_calls": [more] });
    let deltas = [
        call(json!({ "index": 0, "id": "call_1", "type": "custom",
            "custom": { "name": "shell", "input": "" } })),
        call(json!({ "index": 0, "custom": { "input": "ls " } })),
        call(json!({ "index": 0, "custom": { "input": "-l" } })),
    ];
    let custom = json!({ "index": 0, "id": "call_1", "type": "custom",
        "custom": { "name": "shell", "input": "ls -l" } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [custom] });
    check_said_again(&deltas, "tool_calls", &message).await;
}

#[tokio::test]
async fn replays_a_repeated_call_name_once() {
    let piece = |arguments: &str| {
        let function = json!({ "name": "w", "arguments": arguments });
        json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function",
            "function": function, "extra_content": { "google": { "thought_signature": "s" } } }] })
    };
    let mut last = piece("1}");
    let members = last["tool_calls"][0].as_object_mut().expect("a call");
    members.remove("extra_content");
    let call = json!({ "index": 0, "id": "call_1", "type": "function",
        "function": { "name": "w", "arguments": "{\"a\":1}" },
        "extra_content": { "google": { "thought_signature": "s" } } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    check_said_again(&[piece("{\"a\":"), last], "tool_calls", &message).await;
}

#[tokio::test]
async fn two_calls_with_one_index_are_two_calls() {
    let piece = |id: Option<&str>, arguments: &str| {
        let mut call = json!({ "index": 0, "function": { "arguments": arguments } });
        if let Some(id) = id {
            call["id"] = json!(id);
            call["type"] = json!("function");
            call["function"]["name"] = json!("w");
        }
        json!({ "index": 0, "delta": { "tool_calls": [call] } })
    };
    let chunks = [
        piece(Some("call_1"), "{\"a\":"),
        piece(None, "1}"),
        piece(Some("call_2"), "{\"b\":"),
        piece(None, "2}"),
        json!({ "index": 0, "delta": {}, "finish_reason": "tool_calls" }),
    ];
    let said = said_twice(&chunks).await;
    for got in &said {
        assert_eq!(
            choices(got, true)[0]["calls"],
            json!([
                { "id": "call_1", "name": "w", "arguments": "{\"a\":1}" },
                { "id": "call_2", "name": "w", "arguments": "{\"b\":2}" },
            ])
        );
        let events = events(got);
        let calls = events.iter().flat_map(|event| {
            let calls = event["choices"][0]["delta"]["tool_calls"].as_array();
            calls.into_iter().flatten()
        });
        let named = calls.filter(|call| call.get("id").is_some());
        let numbers: Vec<&Value> = named.map(|call| &call["index"]).collect();
        assert_eq!(numbers, [0, 1], "{}", got.body);
    }
}

#[tokio::test]
async fn replays_all_members_of_a_message() {
    let cite = |at: u64| json!({ "type": "url_citation", "url_citation": { "start_index": at } });
    let deltas = [
        json!({ "role": "assistant", "content": "", "reasoning_content": "Let me " }),
        json!({ "role": "assistant", "reasoning_content": "see." }),
        json!({ "reasoning_details": [{ "index": 0, "type": "text", "text": "a" }] }),
        json!({ "reasoning_details": [{ "index": 0, "type": "text", "text": "b" }] }),
        json!({ "content": "It ", "annotations": [cite(1)] }),
        json!({ "content": "rains.", "annotations": [cite(2)], "refusal": null }),
    ];
    let message = json!({
        "role": "assistant", "content": "It rains.", "reasoning_content": "Let me see.",
        "reasoning_details": [{ "index": 0, "type": "text", "text": "ab" }],
        "annotations": [cite(1), cite(2)],
    });
    check_said_again(&deltas, "stop", &message).await;
    let deltas = [
        json!({ "role": "assistant", "refusal": "I " }),
        json!({ "refusal": "won't." }),
    ];
    let message = json!({ "role": "assistant", "content": null, "refusal": "I won't." });
    check_said_again(&deltas, "stop", &message).await;
}

#[tokio::test]
async fn replays_logprobs() {
    let piece = |token: &str| {
        let logprobs = json!({ "content": [{ "token": token, "logprob": -0.5 }], "refusal": null });
        json!({ "index": 0, "delta": { "content": token }, "logprobs": logprobs })
    };
    let end = json!({ "index": 0, "delta": {}, "logprobs": null, "finish_reason": "stop" });
    let [_, again] = said_twice(&[piece("It "), piece("rains."), end]).await;
    let tokens = json!([
        { "token": "It ", "logprob": -0.5 }, { "token": "rains.", "logprob": -0.5 },
    ]);
    assert_eq!(
        events(&again)[0]["choices"][0]["logprobs"]["content"],
        tokens
    );
}

#[tokio::test]
async fn a_resumed_answer_keeps_all_members_of_its_message() {
    let thought = json!({ "reasoning_content": "Let me see.", "content": &CONTENT[..25] });
    let shared = Shared::new(vec![
        FakeReply::stream(&[
            json!({ "index": 0, "delta": thought }),
            json!({ "index": 0, "delta": {}, "finish_reason": "length" }),
        ]),
        FakeReply::never(),
        FakeReply::streamed_content(CONTENT, "stop"),
    ])
    .await;
    shared.disconnect(&plain(true), 2).await;
    for _ in 0..2 {
        let got = shared.retry(&plain(true), |_| {}).await;
        let delta = &events(&got)[0]["choices"][0]["delta"];
        assert_eq!(delta["reasoning_content"], "Let me see.", "{}", got.body);
        assert_eq!(choices(&got, true)[0]["content"], CONTENT);
        // Usage was not requested and not reported.
        assert!(!got.body.contains("\"usage\""), "{}", got.body);
    }
}

#[tokio::test]
async fn replays_members_beside_the_finish_reason() {
    let filtered = json!({ "hate": { "filtered": false, "severity": "safe" } });
    let mut said = FakeReply::stream(&[
        json!({ "index": 0, "delta": { "content": "It " }, "content_filter_results": filtered }),
        json!({ "index": 0, "delta": { "content": "rains." }, "stop_reason": null }),
        json!({ "index": 0, "delta": {}, "finish_reason": "stop",
            "content_filter_results": filtered, "stop_reason": 42 }),
    ]);
    let end = "\"stop_reason\":42}]";
    assert!(said.body.contains(end));
    said.body = said.body.replace(
        end,
        "\"stop_reason\":42}],\"x_groq\":{\"id\":\"req_1\"},\"usage\":{\"prompt_tokens\":1}",
    );
    let shared = Shared::new(vec![said]).await;
    let door = shared.door(|_| {}).await;
    for _ in 0..2 {
        let got = door.chat(&plain(true), &KEY).await;
        let events = events(&got);
        let ends: Vec<&Value> = events
            .iter()
            .filter(|event| event["choices"][0]["finish_reason"] == "stop")
            .collect();
        assert_eq!(ends.len(), 1, "{}", got.body);
        let choice = &ends[0]["choices"][0];
        assert_eq!(choice["stop_reason"], 42);
        assert_eq!(choice["content_filter_results"], filtered);
        assert_eq!(choice["delta"], json!({}));
        assert_eq!(ends[0]["x_groq"]["id"], "req_1");
        assert_eq!(choices(&got, true)[0]["content"], "It rains.");
    }
    assert_eq!(shared.upstream.requests().len(), 1);
}

#[tokio::test]
async fn the_size_limit_covers_everything_kept_for_a_replay() {
    let numbers = |_| json!({ "content": "x", "notes": vec![1; 400] });
    let names = |number: usize| {
        let mut delta = json!({ "content": "x" });
        delta[format!("{number}{}", "n".repeat(400))] = json!(true);
        delta
    };
    let deltas: [Vec<Value>; 2] = [(0..50).map(numbers).collect(), (0..50).map(names).collect()];
    for deltas in deltas {
        let chunks = deltas.into_iter();
        let chunks = chunks.map(|delta| json!({ "index": 0, "delta": delta }));
        let mut said = FakeReply::stream(&chunks.collect::<Vec<_>>());
        said.body = said.body.replace("data: [DONE]\n\n", "");
        let shared = Shared::new(vec![said]).await;
        let set = |settings: &mut Settings| settings.limits.answer_bytes = 10_000;
        let got = shared.door(set).await.chat(&plain(true), &KEY).await;
        let last = events(&got).pop().expect("an event");
        let message = &last["error"]["message"];
        assert_eq!(*message, "the upstream's answer is too long");
    }
}

#[tokio::test]
async fn a_replay_says_how_many_messages_were_dropped() {
    let shared = Shared::new(vec![FakeReply::content("Yes.", "stop")]).await;
    let message = json!({ "role": "user", "content": "word ".repeat(500) });
    let request = json!({ "model": "unknown-model", "messages": vec![message; 40] });
    let dropped = |got: TestResponse| got.header("x-overlock-dropped-messages").to_owned();
    let first = dropped(shared.retry(&request, |_| {}).await);
    assert!(
        first.parse::<usize>().is_ok_and(|dropped| dropped > 0),
        "{first:?}"
    );
    assert_eq!(dropped(shared.retry(&request, |_| {}).await), first);
    assert_eq!(shared.upstream.requests().len(), 1);
}
