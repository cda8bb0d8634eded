use overlock_llm::testing::{Behaviour, ScriptedServer};
use overlock_llm::wire::Protocol;
use serde_json::{Value, json};

use crate::door::{Door, TestResponse, report, script, serve};
use crate::fake::{Fake, FakeReply};

/// A block of the upstream's answer.
#[derive(Clone)]
pub(crate) enum Block {
    Thinking,
    Text(String),
    /// A call with the text of its input.
    Call(String),
    /// A call of a tool that the provider runs.
    Search,
}

impl Block {
    /// The block at an index, with an input that is complete.
    fn value(&self, index: usize) -> Value {
        match self {
            Self::Thinking => json!({
                "type": "thinking", "thinking": "Let me see.", "signature": "EqQBCg==",
            }),
            Self::Text(text) => json!({ "type": "text", "text": text }),
            Self::Call(input) => json!({
                "type": "tool_use", "id": format!("toolu_{index}"), "name": "write",
                "input": serde_json::from_str(input).unwrap_or_else(|_| json!({})),
            }),
            Self::Search => json!({
                "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {},
            }),
        }
    }
}

/// A message with these blocks.
pub(crate) fn object(blocks: &[Block], stop_reason: &str) -> Value {
    let content: Vec<Value> = blocks
        .iter()
        .enumerate()
        .map(|(index, block)| block.value(index))
        .collect();
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {
            "input_tokens": 10, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3,
            "output_tokens": 5,
        },
    })
}

/// The same as a stream, with this many characters in a delta.
pub(crate) fn stream(blocks: &[Block], stop_reason: &str, piece: usize) -> FakeReply {
    let mut body = String::new();
    let mut push = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        let frame = format!("event: {kind}\ndata: {event}\n\n");
        body.push_str(&frame);
    };
    for event in Protocol::Messages.events(&object(blocks, stop_reason), false) {
        let index = event["index"]
            .as_u64()
            .and_then(|it| usize::try_from(it).ok());
        let (name, text) = match index.map(|index| &blocks[index]) {
            Some(Block::Text(text)) => ("text", text),
            Some(Block::Call(input)) => ("partial_json", input),
            _ => ("", &String::new()),
        };
        if event["delta"].get(name).is_none() {
            push(&event);
            continue;
        }
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(piece) {
            let mut event = event.clone();
            event["delta"][name] = json!(String::from_iter(piece));
            push(&event);
        }
        push(&json!({ "type": "ping" }));
    }
    FakeReply {
        status: 200,
        headers: vec![("content-type", "text/event-stream".to_owned())],
        body,
        frame: None,
    }
}

/// A later answer of the upstream.
fn later(text: &str) -> FakeReply {
    stream(&[Block::Text(text.to_owned())], "end_turn", 9)
}

/// The events of a stream, without comments.
fn events(body: &str) -> Vec<Value> {
    let events = body.split_terminator("\n\n").filter_map(|event| {
        let Some((name, data)) = event.split_once('\n') else {
            assert!(event.starts_with(':'), "{event}");
            return None;
        };
        let event: Value = serde_json::from_str(data.trim_start_matches("data: ")).expect("JSON");
        let kind = event["type"].as_str().expect("a type");
        assert_eq!(name, format!("event: {kind}"));
        Some(event)
    });
    events.collect()
}

/// The stream of a client, checked event by event. Returns the message that it makes.
#[track_caller]
pub(crate) fn checked(body: &str) -> Value {
    let events = events(body);
    let (mut message, mut texts) = (Value::Null, Vec::<String>::new());
    let (mut open, mut is_over, mut has_delta) = (None, false, false);
    for event in &events {
        assert!(!is_over, "nothing follows the last event: {event}");
        let index = event["index"]
            .as_u64()
            .map(|it| usize::try_from(it).expect("small"));
        match event["type"].as_str().expect("a type") {
            "message_start" => {
                assert!(message.is_null(), "one start: {event}");
                message = event["message"].clone();
                assert_eq!(message["content"], json!([]));
            }
            "content_block_start" => {
                assert_eq!(
                    (open, has_delta),
                    (None, false),
                    "one block at a time: {event}"
                );
                open = index;
                let content = message["content"].as_array_mut().expect("an array");
                assert_eq!(index, Some(content.len()), "no gap: {event}");
                content.push(event["content_block"].clone());
                texts.push(String::new());
            }
            "content_block_delta" => {
                assert!(index.is_some() && index == open, "{event}");
                let place = index.expect("an index");
                let (block, delta) = (&mut message["content"][place], &event["delta"]);
                match delta["type"].as_str().expect("a type") {
                    "text_delta" => texts[place].push_str(delta["text"].as_str().expect("text")),
                    "input_json_delta" => {
                        texts[place].push_str(delta["partial_json"].as_str().expect("text"));
                    }
                    "thinking_delta" => block["thinking"] = delta["thinking"].clone(),
                    "signature_delta" => block["signature"] = delta["signature"].clone(),
                    other => panic!("{other}"),
                }
            }
            "content_block_stop" => {
                assert!(index.is_some() && index == open, "{event}");
                open = None;
                let place = index.expect("an index");
                let block = &mut message["content"][place];
                let text = &texts[place];
                if block["type"] == "text" {
                    block["text"] = json!(text);
                } else if !text.is_empty() {
                    block["input"] = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
                }
            }
            "message_delta" => {
                assert_eq!((open, has_delta), (None, false), "{event}");
                has_delta = true;
                for name in ["stop_reason", "stop_sequence"] {
                    message[name] = event["delta"][name].clone();
                }
                let usage = event["usage"].as_object().expect("the usage");
                for (name, tokens) in usage {
                    message["usage"][name] = tokens.clone();
                }
            }
            "message_stop" => {
                assert!(has_delta, "{event}");
                is_over = true;
                if let Some(report) = event.get("overlock") {
                    message["overlock"] = report.clone();
                }
            }
            "ping" => {}
            other => panic!("{other}: {event}"),
        }
    }
    assert!(is_over, "an end: {body}");
    message
}

/// A request for an answer with these members.
fn request(is_streamed: bool, members: &Value) -> Value {
    let mut request = json!({
        "model": "claude-sonnet-4-5", "stream": is_streamed, "max_tokens": 1000,
        "messages": [{ "role": "user", "content": "Write the report." }],
    });
    for (name, value) in members.as_object().expect("an object") {
        request[name] = value.clone();
    }
    request
}

fn json_format() -> Value {
    let schema = json!({ "type": ["object", "array"] });
    json!({ "output_config": { "format": { "type": "json_schema", "schema": schema } } })
}

fn write_tool() -> Value {
    let schema = json!({ "type": "object", "properties": {} });
    json!({ "tools": [{ "name": "write", "input_schema": schema }] })
}

fn set_api(settings: &mut overlock_gateway::Settings) {
    settings.upstream.api = Protocol::Messages;
}

async fn door(replies: Vec<FakeReply>) -> Door<Fake> {
    Door::to_fake_with(replies, set_api).await
}

impl<U> Door<U> {
    /// Sends a Messages request.
    pub(crate) async fn message(
        &self,
        request: &Value,
        headers: &[(&'static str, &str)],
    ) -> TestResponse {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        let body = request.to_string();
        self.send(hyper::Method::POST, "/v1/messages", &headers, &body)
            .await
    }
}

/// The message that a client gets for these answers of the upstream, which is the same streamed and
/// not, and the requests to the upstream.
async fn message(
    members: &Value,
    headers: &[(&'static str, &str)],
    first: (&[Block], &str),
    rests: &[&str],
) -> (Value, Vec<Value>) {
    let mut messages = Vec::new();
    let mut requests = Vec::new();
    for is_streamed in [false, true] {
        let (blocks, stop_reason) = first;
        // With tools, the upstream always streams.
        let reply = if is_streamed || members.get("tools").is_some() {
            stream(blocks, stop_reason, 7)
        } else {
            FakeReply::json(200, &object(blocks, stop_reason))
        };
        let replies = std::iter::once(reply).chain(rests.iter().map(|rest| later(rest)));
        let door = door(replies.collect()).await;
        let got = door.message(&request(is_streamed, members), headers).await;
        assert_eq!(got.status, 200, "{}", got.body);
        messages.push(if is_streamed {
            checked(&got.body)
        } else {
            got.json()
        });
        let asked = door.upstream.requests().into_iter();
        requests = asked.map(|request| request.body).collect();
        assert!(!requests.is_empty());
    }
    assert_eq!(messages[0], messages[1]);
    (messages.remove(0), requests)
}

/// A continuation: the end of the first text, and the rest.
fn with_overlap(first: &str, rest: &str) -> String {
    [
        &first[first.floor_char_boundary(first.len().saturating_sub(200))..],
        rest,
    ]
    .concat()
}

#[tokio::test]
async fn continues_a_cut_document() {
    let document = report(1500);
    let (first, rest) = document.split_at(700);
    let blocks = [Block::Thinking, Block::Text(first.to_owned())];
    for stop_reason in ["max_tokens", "model_context_window_exceeded"] {
        let rest = with_overlap(first, rest);
        let (got, requests) = message(&json_format(), &[], (&blocks, stop_reason), &[&rest]).await;
        assert_eq!(got["content"][1]["text"], document);
        assert_eq!(got["content"][0], blocks[0].value(0));
        assert_eq!(got["stop_reason"], "end_turn");
        assert_eq!(
            got["usage"],
            json!({
                "input_tokens": 22, "cache_creation_input_tokens": 2,
                "cache_read_input_tokens": 6, "output_tokens": 10,
            })
        );
        assert_eq!(requests.len(), 2);
        assert!(requests[1].get("output_config").is_none());
    }
}

#[tokio::test]
async fn continues_the_input_of_a_cut_call() {
    let document = report(900);
    let (first, rest) = document.split_at(400);
    let whole = Block::Call("{\"a\": 1}".to_owned());
    let blocks = [
        Block::Text("I write two files.".to_owned()),
        whole.clone(),
        Block::Call(first.to_owned()),
    ];
    let rest = with_overlap(first, rest);
    let (got, requests) = message(&write_tool(), &[], (&blocks, "max_tokens"), &[&rest]).await;
    assert_eq!(got["content"][0], blocks[0].value(0));
    assert_eq!(got["content"][1], whole.value(1));
    assert_eq!(got["content"][2], Block::Call(document).value(2));
    assert_eq!(got["stop_reason"], "tool_use");
    assert_eq!(requests[1]["tool_choice"], json!({ "type": "none" }));
}

#[tokio::test]
async fn an_input_that_the_provider_closed_is_requested_again() {
    let blocks = [Block::Call(
        "{\"path\": \"a\", \"text\": \"half\"}".to_owned(),
    )];
    let reply = FakeReply::json(200, &object(&blocks, "max_tokens"));
    let whole = "{\"path\": \"a\", \"text\": \"all of it\"}";
    let door = door(vec![reply, later(whole)]).await;
    let got = door
        .message(&request(false, &write_tool()), &[])
        .await
        .json();
    assert_eq!(
        got["content"],
        json!([Block::Call(whole.to_owned()).value(0)])
    );
    assert_eq!(got["stop_reason"], "tool_use");
}

#[tokio::test]
async fn a_cut_call_that_is_not_continued_never_looks_complete() {
    let blocks = [Block::Call("{\"path\": \"a\", \"text\": \"ha".to_owned())];
    let no =
        json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no" } });
    for is_streamed in [false, true] {
        let door = door(vec![
            stream(&blocks, "max_tokens", 5),
            FakeReply::json(400, &no),
        ])
        .await;
        let got = door
            .message(&request(is_streamed, &write_tool()), &[])
            .await;
        let message = if is_streamed {
            checked(&got.body)
        } else {
            got.json()
        };
        assert_eq!(message["stop_reason"], "max_tokens");
        assert_eq!(message["content"][0]["input"], json!({}));
        assert_eq!(message["overlock"]["outcome"], "partial", "{message}");
    }
}

#[tokio::test]
async fn continues_a_text_only_on_request() {
    let first = "The river flows from the mountains to the sea, and on its way it pa";
    let rest = "sses through seven towns.";
    let blocks = [Block::Text(first.to_owned())];
    let (got, _) = message(&json!({}), &[], (&blocks, "max_tokens"), &[]).await;
    assert_eq!(got, object(&blocks, "max_tokens"));
    let headers = [("x-overlock-continue", "text")];
    let with_overlap = [&first[first.len() - 40..], rest].concat();
    // The model accepts a prefill, but not while it thinks.
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 1024 } });
    for (members, later, role) in [
        (json!({}), rest, "assistant"),
        (thinking, &with_overlap, "user"),
    ] {
        let cut = (&blocks[..], "max_tokens");
        let (got, requests) = message(&members, &headers, cut, &[later]).await;
        assert_eq!(got["content"][0]["text"], [first, rest].concat());
        assert_eq!(got["stop_reason"], "end_turn");
        let sent = requests[1]["messages"].as_array().expect("messages");
        assert_eq!(sent.last().expect("a message")["role"], role);
    }
}

#[tokio::test]
async fn an_answer_that_the_client_or_the_provider_ended_is_not_continued() {
    for stop_reason in ["refusal", "stop_sequence", "pause_turn"] {
        let blocks = [Block::Text("{\"rows\": [1, 2, \"a te".to_owned())];
        for (members, blocks) in [
            (json!({}), blocks.to_vec()),
            (json_format(), blocks.to_vec()),
            (write_tool(), vec![Block::Call("{\"a\": \"b".to_owned())]),
        ] {
            let (mut got, requests) = message(&members, &[], (&blocks, stop_reason), &[]).await;
            got.as_object_mut().expect("an object").remove("overlock");
            assert_eq!(got, object(&blocks, stop_reason));
            assert_eq!(requests.len(), 1);
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_all_thinking_is_requested_again() {
    let blocks = [Block::Thinking];
    let mut members = json_format();
    members["thinking"] = json!({ "type": "adaptive" });
    members["output_config"]["effort"] = json!("high");
    let cut = (&blocks[..], "max_tokens");
    let (got, requests) = message(&members, &[], cut, &["{\"a\": 1}"]).await;
    assert_eq!(requests[1]["max_tokens"], 4000);
    assert_eq!(requests[1].get("thinking"), None);
    assert_eq!(requests[1]["output_config"]["effort"], "low");
    assert_eq!(got["content"][0], blocks[0].value(0));
    assert_eq!(
        got["content"][1],
        json!({ "type": "text", "text": "{\"a\": 1}" })
    );
    assert_eq!(got["stop_reason"], "end_turn");
}

#[tokio::test]
async fn a_cut_call_of_a_tool_of_the_provider_is_not_continued() {
    let blocks = [Block::Text("{\"a\": 1}".to_owned()), Block::Search];
    let (got, requests) = message(&json!({}), &[], (&blocks, "max_tokens"), &[]).await;
    assert_eq!(got, object(&blocks, "max_tokens"));
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn forwards_a_request_and_a_complete_message_byte_for_byte() {
    let answer = object(
        &[Block::Thinking, Block::Text("Hello.".to_owned())],
        "end_turn",
    );
    let text = serde_json::to_string_pretty(&answer).expect("JSON");
    let mut reply = FakeReply::json(200, &answer);
    reply.body.clone_from(&text);
    let body = "{ \"model\":\"claude-sonnet-4-5\", \"temperature\": 1e0, \"max_tokens\": 9,\n \
                \"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\
                \"text\":\"\\u0041\",\"cache_control\":{\"type\":\"ephemeral\"}}]}] }";
    let headers = [("x-api-key", "sk-1"), ("anthropic-beta", "b-1")];
    let door = door(vec![reply]).await;
    let got = door
        .send(
            hyper::Method::POST,
            "/v1/messages?beta=true",
            &headers,
            body,
        )
        .await;
    assert_eq!(got.body, text);
    let sent = &door.upstream.requests()[0];
    assert_eq!(sent.text, body);
    assert_eq!(sent.query.as_deref(), Some("beta=true"));
    for (name, value) in [
        ("x-api-key", "sk-1"),
        ("anthropic-beta", "b-1"),
        ("anthropic-version", "2023-06-01"),
    ] {
        assert_eq!(sent.headers[name], value);
    }
}

#[tokio::test]
async fn edits_only_what_the_plan_changes() {
    let door = door(vec![FakeReply::json(200, &object(&[], "end_turn"))]).await;
    let long = "word ".repeat(300_000);
    let body = format!(
        "{{ \"model\":\"claude-sonnet-4-5\", \"temperature\": 1e0, \"max_tokens\": 100, \
         \"system\": \"\\u0042\", \"messages\": [\n{{\"role\":\"user\",\"content\":\"{long}\"}},\n \
         {{\"role\":\"assistant\",\"content\":\"Yes.\"}},\n \
         {{\"role\":\"user\",\"content\":\"\\u0041\"}} ] }}"
    );
    let got = door
        .send(hyper::Method::POST, "/v1/messages", &[], &body)
        .await;
    assert_eq!(got.status, 200, "{}", got.body);
    let sent = &door.upstream.requests()[0].text;
    assert!(sent.contains("\"temperature\": 1e0"), "{sent}");
    assert!(
        sent.contains("{\"role\":\"user\",\"content\":\"\\u0041\"}"),
        "{sent}"
    );
    assert!(!sent.contains("word"), "{sent}");
    assert_eq!(got.header("x-overlock-dropped-messages"), "2");
}

#[tokio::test]
async fn the_key_of_the_upstream_replaces_the_clients_key() {
    let replies = vec![FakeReply::json(200, &object(&[], "end_turn"))];
    let door = Door::to_fake_with(replies, |settings| {
        set_api(settings);
        settings.upstream.key = Some("sk-own".to_owned());
    })
    .await;
    let headers = [
        ("authorization", "Bearer sk-client"),
        ("x-api-key", "sk-client"),
    ];
    let got = door.message(&request(false, &json!({})), &headers).await;
    assert_eq!(got.status, 200, "{}", got.body);
    let sent = &door.upstream.requests()[0].headers;
    assert_eq!(sent["x-api-key"], "sk-own");
    assert!(sent.get("authorization").is_none());
}

#[tokio::test]
async fn errors_are_errors_of_the_messages_api() {
    let overloaded = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let begun = stream(&[Block::Text("Once".to_owned())], "end_turn", 9);
    let (start, _) = begun
        .body
        .split_once("event: content_block_stop")
        .expect("a block");
    let reply = FakeReply {
        body: format!("{start}event: error\ndata: {overloaded}\n\n"),
        ..begun.clone()
    };
    let door = door(vec![reply]).await;
    let got = door.message(&request(true, &json!({})), &[]).await;
    let events = events(&got.body);
    let last = events.last().expect("an event");
    assert_eq!(
        (&last["type"], &last["error"]["type"]),
        (&json!("error"), &json!("api_error"))
    );

    let got = door
        .message(&json!({ "model": "m", "messages": [] }), &[])
        .await;
    let error = got.json();
    assert_eq!(
        (got.status.as_u16(), &error["type"]),
        (400, &json!("error"))
    );
    assert_eq!(error["error"]["type"], "invalid_request_error");
    let message = error["error"]["message"].as_str().expect("a message");
    assert!(message.contains("messages"), "{message}");
    let hello = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello" }] });
    let got = door.message(&hello, &[]).await;
    let message = got.json()["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    assert!(message.contains("max_tokens"), "{message}");
    let long = "word ".repeat(300_000);
    let mut too_long = request(false, &json!({}));
    too_long["messages"][0]["content"] = json!(long);
    let got = door.message(&too_long, &[]).await;
    let message = got.json()["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    assert!(message.starts_with("prompt is too long"), "{message}");
}

#[tokio::test]
async fn the_same_key_gets_the_same_message() {
    for (members, blocks, stop_reason) in [
        (
            json_format(),
            [Block::Text("{\"a\": 1}".to_owned())],
            "end_turn",
        ),
        (
            write_tool(),
            [Block::Call("{\"a\": 1}".to_owned())],
            "tool_use",
        ),
    ] {
        for is_streamed in [false, true] {
            let reply = if is_streamed || members.get("tools").is_some() {
                stream(&blocks, stop_reason, 2)
            } else {
                FakeReply::json(200, &object(&blocks, stop_reason))
            };
            let upstream = Fake::start(vec![reply]).await;
            let store = overlock_store::in_memory().expect("a store");
            let address = crate::door::serve_with(&upstream.base, Some(store), set_api).await;
            let door = Door { address, upstream };
            let mut got = Vec::new();
            for _ in 0..2 {
                let headers = [("idempotency-key", "k-1")];
                let response = door
                    .message(&request(is_streamed, &members), &headers)
                    .await;
                assert_eq!(response.status, 200, "{}", response.body);
                got.push(if is_streamed {
                    checked(&response.body)
                } else {
                    response.json()
                });
            }
            assert_eq!(got[0], got[1]);
            assert_eq!(got[0], object(&blocks, stop_reason));
            assert_eq!(door.upstream.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn counts_tokens_if_the_upstream_does_not() {
    let hello = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello" }] });
    let missing = json!({ "type": "error", "error": { "type": "not_found_error", "message": "" } });
    for (reply, expected) in [
        (
            FakeReply::json(200, &json!({ "input_tokens": 42 })),
            Some(42),
        ),
        (FakeReply::json(404, &missing), None),
    ] {
        let door = door(vec![reply]).await;
        let headers = [("content-type", "application/json")];
        let path = "/v1/messages/count_tokens";
        let got = door
            .send(hyper::Method::POST, path, &headers, &hello.to_string())
            .await;
        assert_eq!(got.status, 200, "{}", got.body);
        let tokens = got.json()["input_tokens"].as_u64().expect("tokens");
        assert!(
            tokens > 0 && expected.is_none_or(|expected| tokens == expected),
            "{tokens}"
        );
    }
}

/// A conversation of three turns with thinking, as an agent has it: every call is cut, and each turn
/// returns all blocks of the one before.
#[tokio::test]
async fn signed_blocks_are_returned_as_they_were_received() {
    let document = report(1200);
    for is_streamed in [false, true] {
        let script = script(&document, 400, &[Behaviour::AsAsked]);
        let upstream = ScriptedServer::start_calling("write", script);
        let upstream = upstream.await.expect("a server");
        let address = serve(&upstream.base(), set_api).await;
        let door = Door { address, upstream };
        let mut members = write_tool();
        members["thinking"] = json!({ "type": "enabled", "budget_tokens": 1024 });
        members["max_tokens"] = json!(4000);
        let mut messages = json!([{ "role": "user", "content": "Write the report." }]);
        for turn in 0..3 {
            members["messages"] = messages.clone();
            let headers = [("x-api-key", "sk-1")];
            let got = door
                .message(&request(is_streamed, &members), &headers)
                .await;
            assert_eq!(got.status, 200, "{}", got.body);
            let message = if is_streamed {
                checked(&got.body)
            } else {
                got.json()
            };
            let content = &message["content"];
            assert_eq!(content[0]["type"], "thinking", "{message}");
            let next = messages.as_array_mut().expect("an array");
            next.push(json!({ "role": "assistant", "content": content }));
            if turn == 0 {
                assert_eq!(message["stop_reason"], "tool_use");
                let input: Value = serde_json::from_str(&document).expect("JSON");
                assert_eq!(content[1]["input"], input);
                next.push(json!({ "role": "user", "content": [{
                    "type": "tool_result", "tool_use_id": content[1]["id"], "content": "ok",
                }] }));
            } else {
                assert_eq!(content[1]["text"], "Done.");
                next.push(json!({ "role": "user", "content": "Thank you." }));
            }
        }
        // No continuation thinks, prefills or may call a tool.
        let asked = door.upstream.asked();
        let later: Vec<&Value> = asked
            .iter()
            .filter(|it| it.get("thinking").is_none())
            .collect();
        assert!(!later.is_empty());
        for request in later {
            let messages = request["messages"].as_array().expect("messages");
            assert_eq!(messages.last().expect("a message")["role"], "user");
            assert_eq!(request["tool_choice"], json!({ "type": "none" }));
        }
    }
}
