use overlock_llm::PrefillStyle;
use overlock_llm::testing::{Behaviour, Fault};
use overlock_llm::wire::Protocol;
use serde_json::{Value, json};

use crate::door::{Door, TestResponse, report};
use crate::fake::{Fake, FakeReply};

/// An item of the upstream's output.
#[derive(Clone)]
pub(crate) enum Item {
    Reasoning,
    Commentary(String),
    Refusal(String),
    Text(String),
    Call(String),
    Custom(String),
}

impl Item {
    /// The item at an index of the output.
    fn value(&self, index: usize, is_cut: bool) -> Value {
        let status = if is_cut { "incomplete" } else { "completed" };
        match self {
            Self::Reasoning => json!({
                "id": format!("rs_{index}"), "type": "reasoning", "summary": [],
                "encrypted_content": "gAAAAB==",
            }),
            Self::Commentary(text) => {
                let mut message = Self::Text(text.clone()).value(index, is_cut);
                message["phase"] = json!("commentary");
                message
            }
            Self::Refusal(text) => {
                let mut message = Self::Text(String::new()).value(index, is_cut);
                message["content"] = json!([{ "type": "refusal", "refusal": text }]);
                message
            }
            Self::Text(text) => json!({
                "id": format!("msg_{index}"), "type": "message", "status": status,
                "role": "assistant",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }],
            }),
            Self::Call(arguments) => json!({
                "id": format!("fc_{index}"), "type": "function_call", "status": status,
                "call_id": format!("call_{index}"), "name": "write", "arguments": arguments,
            }),
            Self::Custom(input) => json!({
                "id": format!("ctc_{index}"), "type": "custom_tool_call", "status": status,
                "call_id": format!("call_{index}"), "name": "patch", "input": input,
            }),
        }
    }
}

/// A response with these items. The last one may be cut off at the limit, or only look complete.
pub(crate) fn object(items: &[Item], finish: &str) -> Value {
    let is_cut = finish != "stop";
    let reason = if finish == "length" {
        "max_output_tokens"
    } else {
        finish
    };
    let last = items.len().saturating_sub(1);
    let output = items.iter().enumerate();
    let output: Vec<Value> = output
        .map(|(index, item)| item.value(index, is_cut && index == last))
        .collect();
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-4o",
        "status": if is_cut { "incomplete" } else { "completed" }, "error": null,
        "incomplete_details": is_cut.then(|| json!({ "reason": reason })),
        "instructions": null, "metadata": {}, "parallel_tool_calls": true, "temperature": 1.0,
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "output": output,
        "usage": {
            "input_tokens": 10, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": 15,
        },
    })
}

/// The same as a stream, with this many characters in a delta.
pub(crate) fn stream(items: &[Item], finish: &str, piece: usize) -> FakeReply {
    let mut body = String::new();
    let mut number = 0;
    let mut push = |event: Value| {
        let deltas: Vec<Value> = match event["delta"].as_str() {
            Some(text) => {
                let characters: Vec<char> = text.chars().collect();
                let pieces = characters.chunks(piece).map(String::from_iter);
                let delta = |text| {
                    let mut event = event.clone();
                    event["delta"] = json!(text);
                    event
                };
                pieces.map(delta).collect()
            }
            None => vec![event],
        };
        for mut event in deltas {
            event["sequence_number"] = json!(number);
            number += 1;
            let kind = event["type"].as_str().unwrap_or_default();
            let frame = format!("event: {kind}\ndata: {event}\n\n");
            body.push_str(&frame);
        }
    };
    for event in Protocol::Responses.events(&object(items, finish), false) {
        push(event);
    }
    FakeReply {
        status: 200,
        headers: vec![("content-type", "text/event-stream".to_owned())],
        body,
        frame: None,
    }
}

/// A later answer of the upstream.
pub(crate) fn later(text: &str) -> FakeReply {
    stream(&[Item::Text(text.to_owned())], "stop", 9)
}

/// The stream of a client, checked event by event. Returns its last response.
#[track_caller]
pub(crate) fn checked(body: &str) -> Value {
    let mut items: Vec<(Value, bool)> = Vec::new();
    let (mut texts, mut open_parts) = (std::collections::BTreeMap::new(), 0_i32);
    let mut last = Value::Null;
    let mut number = 0;
    for event in body.split_terminator("\n\n") {
        let Some((name, data)) = event.split_once('\n') else {
            assert!(event.starts_with(':'), "{event}");
            continue;
        };
        let event: Value = serde_json::from_str(data.trim_start_matches("data: ")).expect("JSON");
        let kind = event["type"].as_str().expect("a type").to_owned();
        assert_eq!(name, format!("event: {kind}"));
        assert_eq!(event["sequence_number"], number, "{event}");
        number += 1;
        assert!(last.is_null(), "nothing follows the last event: {event}");
        let index = event["output_index"]
            .as_u64()
            .map(|it| usize::try_from(it).expect("small"));
        let key = (index, event["content_index"].as_u64());
        match kind.as_str() {
            "response.created" => assert_eq!(number, 1),
            "response.in_progress" => assert_eq!(number, 2),
            "response.output_item.added" => {
                assert!(
                    items.iter().all(|(_, is_done)| *is_done),
                    "one item at a time: {event}"
                );
                assert_eq!(index, Some(items.len()), "no gap");
                items.push((event["item"].clone(), false));
            }
            "response.content_part.added" => open_parts += 1,
            "response.output_text.delta" | "response.function_call_arguments.delta" => {
                let (item, is_done) = &items[index.expect("an index")];
                assert!(!is_done, "{event}");
                assert_eq!(event["item_id"], item["id"], "{event}");
                let text: &mut String = texts.entry(key).or_default();
                text.push_str(event["delta"].as_str().expect("text"));
            }
            "response.output_text.done" => {
                assert_eq!(event["text"], *texts.entry(key).or_default().as_str());
            }
            "response.function_call_arguments.done" => {
                assert_eq!(event["arguments"], *texts.entry(key).or_default().as_str());
            }
            "response.content_part.done" => {
                open_parts -= 1;
                let text = texts.entry(key).or_default().as_str();
                assert!(event["part"]["type"] == "refusal" || event["part"]["text"] == text);
            }
            "response.output_item.done" => {
                assert_eq!(open_parts, 0);
                let (item, is_done) = &mut items[index.expect("an index")];
                assert_eq!(item["id"], event["item"]["id"]);
                assert!(!*is_done, "{event}");
                (*item, *is_done) = (event["item"].clone(), true);
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                last = event["response"].clone();
            }
            _ => {}
        }
    }
    assert!(!last.is_null(), "an end: {body}");
    if last["status"] != "failed" {
        assert!(items.iter().all(|(_, is_done)| *is_done));
        let items: Vec<Value> = items.into_iter().map(|(item, _)| item).collect();
        assert_eq!(last["output"], Value::Array(items));
    }
    last
}

/// A request for an answer with these members.
pub(crate) fn request(is_streamed: bool, members: &Value) -> Value {
    let mut request = json!({
        "model": "gpt-4o", "stream": is_streamed, "max_output_tokens": 1000,
        "input": "Write the report.",
    });
    for (name, value) in members.as_object().expect("an object") {
        request[name] = value.clone();
    }
    request
}

fn json_format() -> Value {
    json!({ "text": { "format": { "type": "json_object" } } })
}

fn write_tool() -> Value {
    let parameters = json!({ "type": "object", "properties": {} });
    json!({ "tools": [{
        "type": "function", "name": "write", "parameters": parameters, "strict": false,
    }] })
}

pub(crate) async fn door(replies: Vec<FakeReply>) -> Door<Fake> {
    Door::to_fake_with(replies, |settings| {
        settings.upstream.api = Protocol::Responses;
    })
    .await
}

impl Door<Fake> {
    /// Sends a Responses request.
    pub(crate) async fn respond(
        &self,
        request: &Value,
        headers: &[(&'static str, &str)],
    ) -> TestResponse {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        let body = request.to_string();
        self.send(hyper::Method::POST, "/v1/responses", &headers, &body)
            .await
    }
}

/// The last response that a client gets for these answers of the upstream, which is the same
/// streamed and not.
async fn response(
    members: &Value,
    headers: &[(&'static str, &str)],
    first: (&[Item], &str),
    rests: &[&str],
) -> (Value, Vec<Value>) {
    let mut responses = Vec::new();
    let mut requests = Vec::new();
    for is_streamed in [false, true] {
        let (items, finish) = first;
        let reply = if is_streamed {
            stream(items, finish, 7)
        } else {
            FakeReply::json(200, &object(items, finish))
        };
        let replies = std::iter::once(reply).chain(rests.iter().map(|rest| later(rest)));
        let door = door(replies.collect()).await;
        let got = door.respond(&request(is_streamed, members), headers).await;
        assert_eq!(got.status, 200, "{}", got.body);
        responses.push(if is_streamed {
            checked(&got.body)
        } else {
            got.json()
        });
        let asked = door.upstream.requests().into_iter();
        requests = asked.map(|request| request.body).collect();
    }
    assert_eq!(responses[0], responses[1]);
    (responses.remove(0), requests)
}

#[tokio::test]
async fn continues_a_cut_document() {
    let document = report(1500);
    let (first, rest) = document.split_at(700);
    let items = [Item::Reasoning, Item::Text(first.to_owned())];
    // llama.cpp says `completed` for a cut answer.
    for finish in ["length", "stop"] {
        let tail = &first[first.floor_char_boundary(first.len() - 200)..];
        let later = [tail, rest].concat();
        let (got, requests) = response(&json_format(), &[], (&items, finish), &[&later]).await;
        assert_eq!(got["output"][1]["content"][0]["text"], document);
        assert_eq!(
            (&got["status"], &got["incomplete_details"]),
            (&json!("completed"), &Value::Null)
        );
        assert_eq!(got["output"][1]["status"], "completed");
        assert_eq!(got["output"][0], items[0].value(0, false));
        assert_eq!(got["usage"]["total_tokens"], 30);
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[1]["store"], false);
        assert!(requests[1]["text"].get("format").is_none());
    }
}

#[tokio::test]
async fn continues_the_arguments_of_a_cut_call() {
    let document = report(900);
    let (first, rest) = document.split_at(400);
    let tail = &first[first.floor_char_boundary(first.len() - 200)..];
    let later = [tail, rest].concat();
    let whole = Item::Call("{\"a\": 1}".to_owned());
    let items = [
        Item::Text("I write two files.".to_owned()),
        whole.clone(),
        Item::Call(first.to_owned()),
    ];
    let (got, requests) = response(&write_tool(), &[], (&items, "length"), &[&later]).await;
    assert_eq!(got["output"][0], items[0].value(0, false));
    assert_eq!(got["output"][1], whole.value(1, false));
    assert_eq!(got["output"][2], Item::Call(document).value(2, false));
    assert_eq!(got["status"], "completed");
    assert_eq!(requests[1]["tool_choice"], "none");
}

#[tokio::test]
async fn continues_a_text_only_on_request() {
    let first = "The river flows from the mountains to the sea, and on its way it pa";
    let rest = "sses through seven towns.";
    let items = [Item::Text(first.to_owned())];
    let (got, _) = response(&json!({}), &[], (&items, "length"), &[]).await;
    assert_eq!(got, object(&items, "length"));
    let headers = [("x-overlock-continue", "text")];
    let later = [&first[first.len() - 40..], rest].concat();
    let (got, _) = response(&json!({}), &headers, (&items, "length"), &[&later]).await;
    assert_eq!(
        got["output"][0]["content"][0]["text"],
        [first, rest].concat()
    );
    assert_eq!(got["status"], "completed");
}

#[tokio::test]
async fn an_answer_that_is_all_reasoning_is_asked_for_again() {
    let items = [Item::Reasoning];
    let mut members = json_format();
    members["reasoning"] = json!({ "effort": "high", "summary": "auto" });
    let (got, requests) = response(&members, &[], (&items, "length"), &["{\"a\": 1}"]).await;
    let reasoning = json!({ "effort": "low", "summary": "auto" });
    assert_eq!(requests[1]["reasoning"], reasoning);
    assert_eq!(requests[1]["max_output_tokens"], 4000);
    assert_eq!(got["output"][0], items[0].value(0, false));
    assert_eq!(got["output"][1]["content"][0]["text"], "{\"a\": 1}");
    assert_eq!(got["status"], "completed");
}

#[tokio::test]
async fn a_commentary_is_no_part_of_the_document() {
    let items = [
        Item::Commentary("First I read [1".to_owned()),
        Item::Text("{\"rows\": [1, 2, 3, \"a te".to_owned()),
    ];
    let later = "{\"rows\": [1, 2, 3, \"a text\"]}";
    let (got, requests) = response(&json_format(), &[], (&items, "length"), &[later]).await;
    assert_eq!(got["output"][0], items[0].value(0, false));
    assert_eq!(got["output"][1]["content"][0]["text"], later);
    assert_eq!(
        (&got["status"], got.get("overlock")),
        (&json!("completed"), None)
    );
    assert_eq!(requests.len(), 2);
}

#[tokio::test]
async fn refused_and_filtered_responses_are_not_continued() {
    let refusal = [Item::Refusal("I cannot write {".to_owned())];
    let cut = [Item::Text("{\"rows\": [1, 2".to_owned())];
    for (items, finish, reason) in [
        (&refusal, "stop", "refusal"),
        (&refusal, "length", "refusal"),
        (&cut, "content_filter", "content-filter"),
    ] {
        let (mut got, requests) = response(&json_format(), &[], (items, finish), &[]).await;
        assert_eq!(got["overlock"]["reason"], reason, "{finish}");
        assert_eq!(requests.len(), 1);
        got.as_object_mut().expect("an object").remove("overlock");
        assert_eq!(got, object(items, finish));
    }
}

#[tokio::test]
async fn nothing_is_dropped_if_the_client_disables_truncation() {
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let long = "word ".repeat(200_000);
    let input = json!([
        message("user", &long),
        message("assistant", "Yes."),
        message("user", "A")
    ]);
    for (truncation, status) in [("disabled", 400), ("auto", 200)] {
        let door = door(vec![FakeReply::json(200, &object(&[], "stop"))]).await;
        let members = json!({ "input": input, "truncation": truncation });
        let got = door.respond(&request(false, &members), &[]).await;
        assert_eq!(got.status, status, "{}", got.body);
        if status == 400 {
            assert_eq!(got.json()["error"]["code"], "context_length_exceeded");
            assert_eq!(got.json()["error"]["param"], "input");
            assert!(door.upstream.requests().is_empty());
        }
    }
}

#[tokio::test]
async fn joins_surrogates_split_between_events() {
    let document = report(3000);
    let script = crate::door::script(&document, 1000, &Behaviour::AS_ASKED);
    let faults = [Some(Fault::TornCharacters)];
    let door = Door::open_with(script, &faults, |settings| {
        settings.upstream.api = Protocol::Responses;
    })
    .await;
    let request = request(true, &json_format()).to_string();
    let post = hyper::Method::POST;
    let got = door.send(post, "/v1/responses", &[], &request).await;
    assert_eq!(
        checked(&got.body)["output"][1]["content"][0]["text"],
        document
    );
}

#[tokio::test]
async fn llama_cpp_sends_no_indices_and_continues_a_prefill() {
    let document = report(900);
    let (first, rest) = document.split_at(400);
    let items = [Item::Reasoning, Item::Text(first.to_owned())];
    let mut reply = stream(&items, "stop", 9);
    let names = ["sequence_number", "output_index", "content_index"];
    for name in names {
        let member = format!(",\"{name}\":");
        let numbers = reply
            .body
            .split(&member)
            .enumerate()
            .map(|(place, text)| match place {
                0 => text,
                _ => text.trim_start_matches(|it: char| it.is_ascii_digit()),
            });
        reply.body = numbers.collect();
        assert!(!reply.body.contains(name), "{}", reply.body);
    }
    let door = Door::to_fake_with(vec![reply, later(rest)], |settings| {
        settings.upstream.api = Protocol::Responses;
        settings.upstream.prefill = Some(PrefillStyle::LastMessage);
    })
    .await;
    let got = door.respond(&request(true, &json_format()), &[]).await;
    assert_eq!(
        checked(&got.body)["output"][1]["content"][0]["text"],
        document
    );
    let input = &door.upstream.requests()[1].body["input"];
    assert_eq!(input[0]["content"], "Write the report.");
    assert_eq!(input[1]["content"][0]["text"], first);
}

#[tokio::test]
async fn a_cut_call_of_a_custom_tool_stays_incomplete() {
    let items = [
        Item::Text("{\"a\": 1}".to_owned()),
        Item::Custom("*** Begin Patch\n+ a".to_owned()),
    ];
    let (got, requests) = response(&json!({}), &[], (&items, "length"), &[]).await;
    assert_eq!(got, object(&items, "length"));
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn forwards_a_request_and_a_complete_response_byte_for_byte() {
    let answer = object(&[Item::Reasoning, Item::Text("Hello.".to_owned())], "stop");
    let text = serde_json::to_string_pretty(&answer)
        .expect("JSON")
        .replace("1.0", "1e0");
    let mut reply = FakeReply::json(200, &answer);
    reply.body.clone_from(&text);
    let door = door(vec![reply]).await;
    let body = "{ \"model\":\"gpt-4o\", \"temperature\": 1e0,\n \"input\":\"Hi\" }";
    let got = door
        .send(hyper::Method::POST, "/v1/responses", &[], body)
        .await;
    assert_eq!(got.body, text);
    assert_eq!(door.upstream.requests()[0].text, body);
}

#[tokio::test]
async fn edits_only_what_the_plan_changes() {
    let door = door(vec![FakeReply::json(200, &object(&[], "stop"))]).await;
    let long = "word ".repeat(200_000);
    let body = format!(
        "{{ \"model\":\"gpt-4o\", \"temperature\": 1e0, \"input\": [\n{{\"role\":\"user\",\"content\":\"{long}\"}},\n \
         {{\"role\":\"assistant\",\"content\":\"Yes.\"}},\n {{\"role\":\"user\",\"content\":\"\\u0041\"}} ] }}"
    );
    let got = door
        .send(hyper::Method::POST, "/v1/responses", &[], &body)
        .await;
    assert_eq!(got.status, 200, "{}", got.body);
    let sent = &door.upstream.requests()[0].text;
    assert!(
        sent.starts_with("{ \"model\":\"gpt-4o\", \"temperature\": 1e0, \"input\": ["),
        "{sent}"
    );
    assert!(
        sent.contains("{\"role\":\"user\",\"content\":\"\\u0041\"}"),
        "{sent}"
    );
    assert!(!sent.contains("word"), "{sent}");
    assert_eq!(got.header("x-overlock-dropped-messages"), "2");
}

#[tokio::test]
async fn a_continuation_that_fails_leaves_a_partial_response() {
    let first = "{\"rows\": [1, 2, 3, \"a tex";
    for is_streamed in [false, true] {
        let items = [Item::Text(first.to_owned())];
        let reply = if is_streamed {
            stream(&items, "length", 5)
        } else {
            FakeReply::json(200, &object(&items, "length"))
        };
        let error = json!({ "error": { "message": "no", "type": "invalid_request_error" } });
        let door = door(vec![reply, FakeReply::json(400, &error)]).await;
        let got = door
            .respond(&request(is_streamed, &json_format()), &[])
            .await;
        let response = if is_streamed {
            checked(&got.body)
        } else {
            got.json()
        };
        assert_eq!(response["status"], "incomplete");
        assert_eq!(
            response["incomplete_details"]["reason"],
            "max_output_tokens"
        );
        assert_eq!(response["overlock"]["outcome"], "partial", "{response}");
    }
}

#[tokio::test]
async fn errors_are_errors_of_the_responses_api() {
    let failed = json!({ "type": "response.failed", "response": {
        "id": "resp_1", "object": "response", "status": "failed", "output": [],
        "error": { "code": "server_error", "message": "The model broke." },
    } });
    let reply = FakeReply {
        body: format!("event: response.failed\ndata: {failed}\n\n"),
        ..stream(&[], "stop", 1)
    };
    let door = door(vec![reply]).await;
    let got = door.respond(&request(true, &json!({})), &[]).await;
    let response = checked(&got.body);
    assert_eq!(response["status"], "failed");
    let message = response["error"]["message"].as_str().expect("a message");
    assert!(message.contains("The model broke."), "{message}");

    let got = door.respond(&json!({ "model": "gpt-4o" }), &[]).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]["param"]),
        (400, &json!("input"))
    );
}

#[tokio::test]
async fn the_same_key_gets_the_same_response() {
    let items = [Item::Text("{\"a\": 1}".to_owned())];
    for is_streamed in [false, true] {
        let reply = if is_streamed {
            stream(&items, "stop", 2)
        } else {
            FakeReply::json(200, &object(&items, "stop"))
        };
        let upstream = Fake::start(vec![reply]).await;
        let store = overlock_store::in_memory().expect("a store");
        let set = |settings: &mut overlock_gateway::Settings| {
            settings.upstream.api = Protocol::Responses;
        };
        let address = crate::door::serve_with(&upstream.base, Some(store), set).await;
        let door = Door { address, upstream };
        let headers = [("idempotency-key", "k-1")];
        let mut got = Vec::new();
        for _ in 0..2 {
            let response = door
                .respond(&request(is_streamed, &json_format()), &headers)
                .await;
            assert_eq!(response.status, 200, "{}", response.body);
            got.push(if is_streamed {
                checked(&response.body)
            } else {
                response.json()
            });
        }
        assert_eq!(got[0], got[1]);
        assert_eq!(door.upstream.requests().len(), 1);
    }
}
