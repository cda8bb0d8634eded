use hyper::{Method, StatusCode};
use overlock_gateway::Settings;
use overlock_llm::testing::Behaviour;
use serde_json::{Value, json};

use crate::door::{Door, TestResponse, ask, report, script};
use crate::fake::{FakeReply, FakeRequest};

/// The text that a continuation asks the model to repeat.
fn overlap(sent: &FakeRequest) -> String {
    let messages = sent.body["messages"].as_array().expect("messages");
    let last = messages.last().expect("one")["content"].as_str();
    let (_, rest) = last
        .and_then(|text| text.rsplit_once("[[overlap-")?.1.split_once("]]\n"))
        .expect("an overlap");
    let (overlap, _) = rest.split_once("\n[[/overlap-").expect("its end");
    overlap.to_owned()
}

fn plain(stream: bool) -> Value {
    json!({
        "model": "gpt-4o", "stream": stream,
        "messages": [{ "role": "user", "content": "What is the weather?" }],
    })
}

fn with_tools(stream: bool) -> Value {
    let mut request = plain(stream);
    request["tools"] = json!([{ "type": "function", "function": {
        "name": "weather", "parameters": { "type": "object", "properties": {} },
    } }]);
    request
}

/// The chunks of a stream.
fn chunks(got: &TestResponse) -> Vec<Value> {
    let events = got.body.split("\n\n");
    let data = events.filter_map(|event| event.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

/// The text at a place of all chunks together.
fn text(chunks: &[Value], pointer: &str) -> String {
    let texts = chunks.iter().filter_map(|chunk| chunk.pointer(pointer));
    texts.filter_map(Value::as_str).collect()
}

const ARGUMENTS: &str = r#"{"city": "Oslo", "days": [1, 2, 3]}"#;

fn call(arguments: &str) -> Value {
    json!({ "index": 0, "id": "call_1", "type": "function",
            "function": { "name": "weather", "arguments": arguments } })
}

#[tokio::test]
async fn completes_a_cut_tool_call() {
    let message =
        json!({ "role": "assistant", "content": null, "tool_calls": [call(&ARGUMENTS[..20])] });
    let first = json!([{ "index": 0, "message": message, "finish_reason": "length" }]);
    let rest = format!("{}{}", &ARGUMENTS[..20], &ARGUMENTS[20..]);
    let door = Door::to_fake(vec![
        FakeReply::choices(&first),
        FakeReply::streamed_content(&rest, "stop"),
    ])
    .await;
    let got = door.chat(&with_tools(false), &[]).await;
    let answer = got.json();
    let choice = &answer["choices"][0];
    assert_eq!(
        choice["message"]["tool_calls"][0]["function"]["arguments"],
        ARGUMENTS
    );
    assert_eq!(choice["message"]["tool_calls"][0]["id"], "call_1");
    assert_eq!(choice["finish_reason"], "tool_calls");
    let requests = door.upstream.requests();
    assert_eq!(overlap(&requests[1]), ARGUMENTS[..20]);
    assert_eq!(requests[1].body["tool_choice"], "none");
}

#[tokio::test]
async fn completes_a_cut_tool_call_in_a_stream() {
    let first = FakeReply::stream(&[
        json!({ "index": 0, "delta": { "role": "assistant", "content": null } }),
        json!({ "index": 0, "delta": { "tool_calls": [call("")] } }),
        json!({ "index": 0, "delta": { "tool_calls": [
            { "index": 0, "function": { "arguments": &ARGUMENTS[..20] } }] } }),
        json!({ "index": 0, "delta": {}, "finish_reason": "length" }),
    ]);
    let door = Door::to_fake(vec![first, FakeReply::streamed_content(ARGUMENTS, "stop")]).await;
    let got = door.chat(&with_tools(true), &[]).await;
    let chunks = chunks(&got);
    let arguments = "/choices/0/delta/tool_calls/0/function/arguments";
    assert_eq!(text(&chunks, arguments), ARGUMENTS, "{}", got.body);
    assert_eq!(text(&chunks, "/choices/0/finish_reason"), "tool_calls");
    assert_eq!(
        text(&chunks, "/choices/0/delta/tool_calls/0/function/name"),
        "weather"
    );
}

#[tokio::test]
async fn completes_a_tool_call_that_is_cut_repeatedly() {
    let document = report(6000);
    for stream in [false, true] {
        let script = script(&document, 1000, &Behaviour::AS_ASKED);
        let door = Door::open(script, &[]).await;
        let mut request = with_tools(stream);
        request["tool_choice"] = json!({ "type": "function", "function": { "name": "weather" } });
        let got = door.chat(&request, &[]).await;
        let (messages, at) = if stream {
            (chunks(&got), "delta")
        } else {
            (vec![got.json()], "message")
        };
        let said = |rest: &str| text(&messages, &format!("/choices/0/{rest}"));
        let call = |rest: &str| said(&format!("{at}/tool_calls/0/{rest}"));
        assert_eq!(call("function/arguments"), document);
        assert_eq!(call("function/name"), "weather");
        assert_eq!(call("id"), "call_scripted");
        assert_eq!(said("finish_reason"), "tool_calls");
        assert_eq!(door.upstream.calls(), 6);
    }
}

#[tokio::test]
async fn a_tool_call_that_stays_cut_never_looks_complete() {
    let message = json!({ "role": "assistant", "tool_calls": [call(&ARGUMENTS[..20])] });
    let first = json!([{ "index": 0, "message": message, "finish_reason": "tool_calls" }]);
    let sorry = FakeReply::streamed_content("I'm sorry, I cannot go on.", "stop");
    let door = Door::to_fake(vec![FakeReply::choices(&first), sorry]).await;
    let answer = door.chat(&with_tools(false), &[]).await.json();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "length");
    let arguments = choice["message"]["tool_calls"][0]["function"]["arguments"].as_str();
    assert!(serde_json::from_str::<Value>(arguments.expect("a text")).is_err());
}

#[tokio::test]
async fn a_complete_tool_call_does_not_hide_one_that_stays_cut() {
    let whole = json!({ "index": 1, "id": "call_2", "type": "function",
                        "function": { "name": "weather", "arguments": ARGUMENTS } });
    let calls = json!([call(&ARGUMENTS[..20]), whole]);
    let sorry = || FakeReply::streamed_content("I'm sorry, I cannot go on.", "stop");

    let message = json!({ "role": "assistant", "tool_calls": calls });
    let first = json!([{ "index": 0, "message": message, "finish_reason": "tool_calls" }]);
    let door = Door::to_fake(vec![FakeReply::choices(&first), sorry()]).await;
    let got = door.chat(&with_tools(false), &[]).await;
    assert_eq!(got.json()["choices"][0]["finish_reason"], "length");
    assert_eq!(got.header("x-overlock-outcome"), "partial");

    let first = FakeReply::stream(&[
        json!({ "index": 0, "delta": { "role": "assistant", "tool_calls": calls } }),
        json!({ "index": 0, "delta": {}, "finish_reason": "tool_calls" }),
    ]);
    let door = Door::to_fake(vec![first, sorry()]).await;
    let got = door.chat(&with_tools(true), &[]).await;
    let finish = text(&chunks(&got), "/choices/0/finish_reason");
    assert_eq!(finish, "length", "{}", got.body);
}

#[tokio::test]
async fn passes_on_a_complete_tool_call_byte_for_byte() {
    // A forced call ends with `stop`, any other with `tool_calls`.
    for finish in ["stop", "tool_calls"] {
        let message = json!({ "role": "assistant", "tool_calls": [call(ARGUMENTS)] });
        let choice = json!([{ "index": 0, "message": message, "finish_reason": finish }]);
        let said = FakeReply::choices(&choice);
        let door = Door::to_fake(vec![said.clone()]).await;
        let got = door.chat(&with_tools(false), &[]).await;
        assert_eq!(got.body, said.body);
    }
}

#[tokio::test]
async fn completes_each_of_several_choices() {
    let message = |content: &str| json!({ "role": "assistant", "content": content });
    let first = json!([
        { "index": 0, "message": message("[1, 2, 3]"), "finish_reason": "stop" },
        { "index": 1, "message": message("[4, 5, "), "finish_reason": "length" },
        { "index": 2, "message": message("Hello"), "finish_reason": "length", "logprobs": { "content": [] } },
    ]);
    let door = Door::to_fake(vec![
        FakeReply::choices(&first),
        FakeReply::streamed_content("[4, 5, 6]", "stop"),
    ])
    .await;
    let mut request = plain(false);
    request["n"] = json!(3);
    let answer = door.chat(&request, &[]).await.json();
    let contents: Vec<&str> = answer["choices"]
        .as_array()
        .expect("choices")
        .iter()
        .filter_map(|choice| choice["message"]["content"].as_str())
        .collect();
    assert_eq!(contents, ["[1, 2, 3]", "[4, 5, 6]", "Hello"]);
    assert_eq!(answer["choices"][2]["finish_reason"], "length");
    assert_eq!(answer["choices"][2]["logprobs"], json!({ "content": [] }));
    assert!(door.upstream.requests()[1].body.get("n").is_none());
    assert!(answer["usage"]["completion_tokens"].as_u64() > Some(5));
}

#[tokio::test]
async fn passes_on_a_complete_answer_byte_for_byte() {
    for content in [
        "[1, 2, 3]",
        "Hello",
        "[Note] this is no JSON",
        "{\"a\": 1} and more",
        "",
    ] {
        let said = FakeReply::content(content, "stop");
        let door = Door::to_fake(vec![said.clone()]).await;
        let got = door.chat(&plain(false), &[]).await;
        assert_eq!(got.body, said.body, "{content:?}");
        assert_eq!(door.upstream.requests().len(), 1);
    }
}

#[tokio::test]
async fn passes_on_a_text_stream_unchanged() {
    for content in [
        "Hello, how are you?",
        "[Note] this is no JSON \\",
        "{\"a\": 1} and more",
    ] {
        let said = FakeReply::streamed_content(content, "stop");
        let door = Door::to_fake(vec![said]).await;
        let got = door.chat(&plain(true), &[]).await;
        assert_eq!(text(&chunks(&got), "/choices/0/delta/content"), content);
        assert_eq!(text(&chunks(&got), "/choices/0/finish_reason"), "stop");
        assert_eq!(door.upstream.requests().len(), 1);
    }
}

#[tokio::test]
async fn removes_the_fence_of_a_requested_document() {
    let said = "Here you are:\n```json\n{\"a\": [1, 2]}\n```\nAnything else?";
    let door = Door::to_fake(vec![FakeReply::content(said, "stop")]).await;
    let answer = door.chat(&ask(false), &[]).await.json();
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "{\"a\": [1, 2]}"
    );
    let door = Door::to_fake(vec![FakeReply::streamed_content(said, "stop")]).await;
    let got = door.chat(&ask(true), &[]).await;
    assert_eq!(
        text(&chunks(&got), "/choices/0/delta/content"),
        "{\"a\": [1, 2]}"
    );
}

#[tokio::test]
async fn a_document_with_finish_reason_length_may_be_complete() {
    let door = Door::to_fake(vec![FakeReply::content("{\"a\": 1}", "length")]).await;
    let got = door.chat(&ask(false), &[]).await;
    assert_eq!(got.json()["choices"][0]["finish_reason"], "stop");
    assert_eq!(got.header("x-overlock-outcome"), "complete");
}

#[tokio::test]
async fn continues_nothing_when_switched_off() {
    let said = FakeReply::content("{\"a\": [1, ", "length");
    let door = Door::to_fake(vec![said.clone()]).await;
    let got = door
        .chat(&ask(false), &[("x-overlock-continue", "off")])
        .await;
    assert_eq!(got.body, said.body);
    assert_eq!(got.header("x-overlock-outcome"), "partial");
    let got = door
        .chat(&ask(false), &[("x-overlock-continue", "maybe")])
        .await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn an_error_of_the_upstream_arrives_with_its_status_and_shape() {
    let error = json!({ "error": { "message": "slow down", "type": "rate_limit", "param": null, "code": "rate" } });
    let mut said = FakeReply::json(429, &error);
    said.headers.push(("retry-after", "7".to_owned()));
    let once = |settings: &mut Settings| settings.upstream.retries.retries = 0;
    let door = Door::to_fake_with(vec![said], once).await;
    let got = door.chat(&ask(true), &[]).await;
    assert_eq!(got.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(got.json(), error);
    assert_eq!(got.header("retry-after"), "7");

    let said = FakeReply {
        status: 500,
        headers: vec![("content-type", "text/html".into())],
        body: "<h1>no</h1>".into(),
        frame: None,
    };
    let door = Door::to_fake(vec![said]).await;
    let got = door.chat(&ask(false), &[]).await;
    assert_eq!(got.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(
        got.json()["error"]["message"]
            .as_str()
            .expect("a text")
            .contains("<h1>no</h1>")
    );
}

#[tokio::test]
async fn rejects_a_request_that_cannot_fit_without_a_call() {
    let door = Door::to_fake(vec![FakeReply::content("no", "stop")]).await;
    let mut request = ask(false);
    request["model"] = json!("gpt-4");
    request["messages"][0]["content"] = json!("word ".repeat(9000));
    let got = door.chat(&request, &[]).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
    let error = &got.json()["error"];
    assert_eq!(error["code"], "context_length_exceeded");
    assert_eq!(error["param"], "messages");
    assert!(
        error["message"].as_str().expect("a text").contains("8192"),
        "{error}"
    );
    assert_eq!(door.upstream.requests().len(), 0);
}

/// A question with a tool call with these arguments and a result of so many words.
fn pending(arguments: &str, words: usize) -> Value {
    let mut request = ask(false);
    request["model"] = json!("gpt-4");
    let call = json!({ "id": "call_1", "type": "function",
        "function": { "name": "read", "arguments": arguments } });
    let messages = request["messages"].as_array_mut().expect("messages");
    messages.extend([
        json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
        json!({ "role": "tool", "tool_call_id": "call_1", "content": "word ".repeat(words) }),
    ]);
    request
}

/// Whether the upstream gets the tool result with its middle removed.
fn is_truncated(sent: &Value) -> bool {
    let messages = sent["messages"].as_array().expect("messages");
    let mut results = messages.iter().filter(|message| message["role"] == "tool");
    let result = results.next().expect("the result")["content"].as_str();
    let result = result.expect("a text");
    result.starts_with("word word") && result.contains(" characters removed]\n")
}

#[tokio::test]
async fn a_pending_tool_result_that_cannot_fit_is_truncated_in_the_middle() {
    let door = Door::to_fake(vec![FakeReply::content("{}", "stop")]).await;
    let got = door.chat(&pending("{}", 9000), &[]).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    assert!(is_truncated(&door.upstream.requests()[0].body));
}

#[tokio::test]
async fn a_pending_tool_call_that_cannot_fit_is_refused() {
    let door = Door::to_fake(vec![FakeReply::content("no", "stop")]).await;
    let got = door.chat(&pending(&"word ".repeat(9000), 9000), &[]).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
    let error = &got.json()["error"];
    assert_eq!(error["code"], "context_length_exceeded");
    let message = error["message"].as_str().expect("a text");
    assert!(
        message.contains("8192 tokens") && message.contains("`open turn`"),
        "{error}"
    );
    assert_eq!(door.upstream.requests().len(), 0);
}

/// The prompt of a continuation must not push the tool result out of the window.
#[tokio::test]
async fn a_pending_tool_result_is_not_dropped_for_a_continuation() {
    let cut = || FakeReply::content("{\"rows\": [1, 2, ", "length");
    let door = Door::to_fake(vec![cut(), cut(), cut(), cut()]).await;
    let mut request = pending("{}", 7650);
    request["max_tokens"] = json!(300);
    let got = door.chat(&request, &[]).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    let sent = door.upstream.requests();
    assert!(!is_truncated(&sent[0].body));
    assert!(sent.len() > 1 && sent[1..].iter().all(|it| is_truncated(&it.body)));
}

#[tokio::test]
async fn trims_a_request_that_is_too_long() {
    let door = Door::to_fake(vec![FakeReply::content("{}", "stop")]).await;
    let mut request = ask(false);
    request["model"] = json!("gpt-4");
    request["max_tokens"] = json!(8190);
    request["seed"] = json!(5);
    request["unheard_of"] = json!({ "x": [1] });
    request["messages"] = json!([
        { "role": "user", "content": "word ".repeat(6000) },
        { "role": "assistant", "content": "word ".repeat(6000) },
        { "role": "user", "content": "Now as JSON." },
    ]);
    let got = door
        .chat(&request, &[("authorization", "Bearer client-key")])
        .await;
    assert_eq!(got.status, StatusCode::OK);
    let sent = &door.upstream.requests()[0];
    assert!(sent.body["messages"].as_array().expect("messages").len() < 3);
    assert!(sent.body["max_tokens"].as_u64() < Some(8190));
    assert_eq!(sent.body["seed"], 5);
    assert_eq!(sent.body["unheard_of"], request["unheard_of"]);
    assert_eq!(sent.headers["authorization"], "Bearer client-key");
}

#[tokio::test]
async fn the_demo_model_is_always_available() {
    let door = Door::to_fake(vec![FakeReply::json(500, &json!({}))]).await;
    let mut request = plain(false);
    request["model"] = json!("overlock-demo");
    let got = door
        .chat(&request, &[("authorization", "Bearer secret")])
        .await;
    let answer = got.json();
    let content = answer["choices"][0]["message"]["content"].as_str();
    let document: Value = serde_json::from_str(content.expect("a text")).expect("whole");
    assert_eq!(document["elements"].as_array().map(Vec::len), Some(36));
    let continuations: u32 = got
        .header("x-overlock-continuations")
        .parse()
        .expect("a number");
    assert_eq!(continuations, 5);
    assert_eq!(door.upstream.requests().len(), 0);
}

const STORY: &str = "It was a dark and stormy night; the rain fell in torrents, except at \
                     occasional intervals, when it was checked by a violent gust of wind.";

#[tokio::test]
async fn continues_a_cut_text_on_request() {
    let (first, rest) = STORY.split_at(60);
    let answers = [
        // It repeats the end the first time, but not the second time.
        (format!("{first}{}", &rest[..30]), "length"),
        (rest[30..].to_owned(), "stop"),
    ];
    let wants_text = [("x-overlock-continue", "text")];
    let later = answers.map(|(text, finish)| FakeReply::streamed_content(&text, finish));
    let all = |said: FakeReply| [vec![said], later.to_vec()].concat();

    let door = Door::to_fake(all(FakeReply::content(first, "length"))).await;
    let answer = door.chat(&plain(false), &wants_text).await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], STORY);
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");

    let door = Door::to_fake(all(FakeReply::streamed_content(first, "length"))).await;
    let got = door.chat(&plain(true), &wants_text).await;
    assert_eq!(text(&chunks(&got), "/choices/0/delta/content"), STORY);
    assert_eq!(text(&chunks(&got), "/choices/0/finish_reason"), "stop");

    let door = Door::to_fake(all(FakeReply::content(first, "length"))).await;
    let answer = door.chat(&plain(false), &[]).await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], first);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn forwards_the_query_with_every_call() {
    let (first, rest) = ("{\"a\": [1, 2, 3", ", 4]}");
    let replies = vec![
        FakeReply::content(first, "length"),
        FakeReply::content(&[first, rest].concat(), "stop"),
    ];
    let add = |settings: &mut Settings| {
        let base = settings.upstream.base.as_mut().expect("an upstream");
        base.push_str("?api-version=1");
    };
    let door = Door::to_fake_with(replies, add).await;
    let path = "/v1/chat/completions?user=me";
    let body = plain(false).to_string();
    let got = door.send(Method::POST, path, &[], &body).await;
    assert_eq!(
        got.json()["choices"][0]["finish_reason"],
        "stop",
        "{}",
        got.body
    );
    let requests = door.upstream.requests();
    assert_eq!(requests.len(), 2);
    for sent in requests {
        assert_eq!(sent.query.as_deref(), Some("api-version=1&user=me"));
    }
}

#[tokio::test]
async fn reports_the_number_of_dropped_messages() {
    let door = Door::to_fake(vec![FakeReply::content("Yes.", "stop")]).await;
    let mut request = plain(false);
    let message = json!({ "role": "user", "content": "word ".repeat(500) });
    request["model"] = json!("unknown-model");
    request["messages"] = json!(vec![message; 40]);
    let got = door.chat(&request, &[]).await;
    let sent = &door.upstream.requests()[0].body["messages"];
    let left = sent.as_array().expect("messages").len();
    assert!(left < 40, "{left}");
    let dropped = got.header("x-overlock-dropped-messages");
    assert_eq!(dropped.parse(), Ok(40 - left));
    let got = door.chat(&plain(false), &[]).await;
    assert_eq!(got.header("x-overlock-dropped-messages"), "");
}

#[tokio::test]
async fn the_demo_model_answers_to_its_name() {
    let door = Door::to_fake(vec![FakeReply::never()]).await;
    let mut request = plain(false);
    request["model"] = json!("overlock-demo");
    assert_eq!(
        door.chat(&request, &[]).await.json()["model"],
        "overlock-demo"
    );
}

#[tokio::test]
async fn passes_on_several_documents_unchanged() {
    for said in [
        "{\"a\": 1}{\"c\": \"precious\"}",
        "{\"a\": 1}\n{\"b\": {\"x\": [1, 2, 3]}}",
        "{\"a\": 1}\n{\"b\": 2}\n{\"c\": 3,}",
    ] {
        for finish in ["stop", "length"] {
            let mut request = plain(false);
            request["response_format"] = json!({ "type": "json_object" });
            let door = Door::to_fake(vec![FakeReply::content(said, finish)]).await;
            let got = door.chat(&request, &[]).await.json();
            assert_eq!(got["choices"][0]["message"]["content"], said);
            assert_eq!(got["choices"][0]["finish_reason"], finish, "{said}");

            request["stream"] = json!(true);
            let pieces = said.char_indices().map(|(at, character)| {
                let text = &said[at..at + character.len_utf8()];
                json!({ "index": 0, "delta": { "content": text }, "finish_reason": null })
            });
            let end = json!({ "index": 0, "delta": {}, "finish_reason": finish });
            let all: Vec<Value> = pieces.chain([end]).collect();
            let door = Door::to_fake(vec![FakeReply::stream(&all)]).await;
            let got = chunks(&door.chat(&request, &[]).await);
            assert_eq!(text(&got, "/choices/0/delta/content"), said);
            assert_eq!(text(&got, "/choices/0/finish_reason"), finish, "{said}");
        }
    }
}

#[tokio::test]
async fn a_cut_legacy_call_never_looks_complete() {
    let call = |arguments: &str| json!({ "name": "f", "arguments": arguments });
    for (arguments, word) in [
        ("{\"a\": 1, \"b", "length"),
        ("{\"a\": 1}", "function_call"),
    ] {
        let message =
            json!({ "role": "assistant", "content": null, "function_call": call(arguments) });
        let said = FakeReply::choices(&json!([
            { "index": 0, "message": message, "finish_reason": "function_call" },
        ]));
        let door = Door::to_fake(vec![said]).await;
        for headers in [&[][..], &[("x-overlock-continue", "off")]] {
            let got = door.chat(&plain(false), headers).await.json();
            assert_eq!(got["choices"][0]["finish_reason"], word, "{arguments}");
            let kept = &got["choices"][0]["message"]["function_call"];
            assert_eq!(*kept, call(arguments));
        }

        let (one, other) = arguments.split_at(4);
        let delta = |arguments: &str| {
            json!({ "index": 0, "delta": { "function_call": { "arguments": arguments } },
                    "finish_reason": null })
        };
        let end = json!({ "index": 0, "delta": {}, "finish_reason": "function_call" });
        let door = Door::to_fake(vec![FakeReply::stream(&[delta(one), delta(other), end])]).await;
        let got = chunks(&door.chat(&plain(true), &[]).await);
        let reported = text(&got, "/choices/0/delta/function_call/arguments");
        assert_eq!(reported, arguments);
        assert_eq!(text(&got, "/choices/0/finish_reason"), word);
    }
}

#[tokio::test]
async fn redacts_echoed_keys_on_all_paths() {
    let refusal = json!({ "detail": "bad key Bearer sk-up-secret" });
    let set = |settings: &mut Settings| settings.upstream.key = Some("sk-up-secret".to_owned());
    let door = Door::to_fake_with(vec![FakeReply::json(401, &refusal)], set).await;
    let got = door.send(Method::POST, "/v1/embeddings", &[], "{}").await;
    assert_eq!(got.status, StatusCode::UNAUTHORIZED);
    assert_eq!(got.json(), json!({ "detail": "bad key Bearer [redacted]" }));
}

#[tokio::test]
async fn a_lone_surrogate_spoils_no_answer() {
    let body = FakeReply::content("cut here HALF", "length").body;
    let said = FakeReply {
        body: body.replace("HALF", "\\ud83d"),
        ..FakeReply::content("", "length")
    };
    let door = Door::to_fake(vec![said.clone()]).await;
    let got = door.chat(&plain(false), &[]).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    assert_eq!(got.body, said.body);
}
