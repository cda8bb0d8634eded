use hyper::StatusCode;
use overlock_gateway::Settings;
use overlock_llm::testing::eventually;
use overlock_runs::Record;
use serde_json::{Value, json};

use crate::door::{Door, TestResponse, serve_with};
use crate::fake::{Fake, FakeReply};

/// The response to a client, and the record of the run.
pub(crate) struct Answer {
    pub(crate) got: TestResponse,
    /// The last object with a choice: the completion, or the last chunk of a stream.
    pub(crate) last: Value,
    pub(crate) finish: Vec<Value>,
    pub(crate) outcome: String,
    pub(crate) reason: String,
    pub(crate) run: Value,
    /// The number of upstream calls.
    pub(crate) calls: usize,
}

/// A request for a document that must have the member `city`, and no other.
pub(crate) fn with_schema(stream: bool, strict: bool) -> Value {
    let schema = json!({
        "type": "object", "required": ["city"], "additionalProperties": false,
        "properties": { "city": { "type": "string" } },
    });
    json!({
        "model": "gpt-4o", "stream": stream,
        "messages": [{ "role": "user", "content": "Which city?" }],
        "response_format": {
            "type": "json_schema",
            "json_schema": { "name": "answer", "strict": strict, "schema": schema },
        },
    })
}

/// A request with a tool that needs a city and a place in it.
pub(crate) fn with_tool(stream: bool, strict: bool) -> Value {
    let place = json!({
        "type": "object", "required": ["street"],
        "properties": { "street": { "type": "string" } },
    });
    let parameters = json!({
        "type": "object", "required": ["city"],
        "properties": { "city": { "type": "string" }, "place": place },
    });
    json!({
        "model": "gpt-4o", "stream": stream,
        "messages": [{ "role": "user", "content": "What is the weather?" }],
        "tools": [{ "type": "function", "function": {
            "name": "weather", "strict": strict, "parameters": parameters,
        } }],
    })
}

/// A message, streamed or not.
pub(crate) fn message(stream: bool, message: &Value, finish: &str) -> FakeReply {
    if stream {
        let end = json!({ "index": 0, "delta": {}, "finish_reason": finish });
        return FakeReply::stream(&[json!({ "index": 0, "delta": message }), end]);
    }
    FakeReply::choices(&json!([{ "index": 0, "message": message, "finish_reason": finish }]))
}

pub(crate) fn content(stream: bool, text: &str, finish: &str) -> FakeReply {
    let said = json!({ "role": "assistant", "content": text });
    message(stream, &said, finish)
}

pub(crate) fn call(stream: bool, arguments: &str, finish: &str) -> FakeReply {
    let call = json!({ "index": 0, "id": "call_1", "type": "function",
        "function": { "name": "weather", "arguments": arguments } });
    let said = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    message(stream, &said, finish)
}

/// The value of a name in the last comment of a stream.
pub(crate) fn in_comment(body: &str, name: &str) -> String {
    let comment = body.split_once(": overlock ").map_or("", |(_, rest)| rest);
    let comment = comment.lines().next().unwrap_or_default();
    let mut values = comment.split(' ').filter_map(|it| it.strip_prefix(name));
    values.next().unwrap_or_default().to_owned()
}

pub(crate) async fn door(replies: Vec<FakeReply>, set: impl FnOnce(&mut Settings)) -> Door<Fake> {
    let upstream = Fake::start(replies).await;
    let store = overlock_store::in_memory().expect("a store");
    let set = |settings: &mut Settings| {
        settings.record = Record::Full;
        set(settings);
    };
    let address = serve_with(&upstream.base, Some(store), set).await;
    Door { address, upstream }
}

/// Sends a request; the metrics must name the outcome of the record.
pub(crate) async fn ask(
    door: &Door<Fake>,
    request: &Value,
    headers: &[(&'static str, &str)],
) -> Answer {
    let got = door.chat(request, headers).await;
    let path = format!("/api/runs/{}", got.header("x-overlock-run"));
    let look = async || door.get(&path).await.json();
    let run = eventually("the run to end", look, |run| run["ended_at"].is_number()).await;
    let label = format!(
        "outcome=\"{}\"",
        run["outcome"].as_str().unwrap_or_default()
    );
    let metrics = || async { door.get("/metrics").await.body };
    eventually(&label, metrics, |metrics| metrics.contains(&label)).await;
    let is_stream = got.header("content-type").starts_with("text/event-stream");
    let (objects, outcome, reason) = if is_stream {
        let events = got.body.split("\n\n");
        let data = events.filter_map(|event| event.strip_prefix("data: "));
        let data = data.filter(|data| *data != "[DONE]");
        let objects = data.map(|data| serde_json::from_str(data).expect("JSON"));
        let comment = |name| in_comment(&got.body, name);
        (objects.collect(), comment("outcome="), comment("reason="))
    } else {
        let header = |name| got.header(name).to_owned();
        let (outcome, reason) = (header("x-overlock-outcome"), header("x-overlock-reason"));
        (vec![got.json()], outcome, reason)
    };
    let objects: Vec<Value> = objects;
    let has_choice = |object: &&Value| object["choices"].get(0).is_some();
    let with_choices: Vec<&Value> = objects.iter().filter(has_choice).collect();
    let last = with_choices
        .last()
        .map_or(Value::Null, |last| (*last).clone());
    for early in with_choices.iter().rev().skip(1) {
        assert!(
            early.get("overlock").is_none(),
            "only the last says it: {early}"
        );
    }
    let choices = with_choices.iter().map(|object| &object["choices"][0]);
    let finish = choices.map(|choice| choice["finish_reason"].clone());
    let finish = finish.filter(|finish| !finish.is_null()).collect();
    Answer {
        last,
        finish,
        outcome,
        reason,
        run,
        calls: door.upstream.requests().len(),
        got,
    }
}

#[track_caller]
pub(crate) fn check_violated(answer: &Answer, what: &str) {
    let Answer { last, run, .. } = answer;
    assert_eq!(answer.finish, [json!("length")], "{}", answer.got.body);
    let reported = (answer.outcome.as_str(), answer.reason.as_str());
    assert_eq!(reported, ("partial", "schema-violation"));
    assert_eq!(run["outcome"], "partial", "{run}");
    assert_eq!(run["reason"], "schema-violation", "{run}");
    let overlock = &last["overlock"];
    assert_eq!(overlock["outcome"], "partial", "{last}");
    assert_eq!(overlock["reason"], "schema-violation", "{last}");
    let violation = overlock["violation"].as_str().unwrap_or_default();
    assert!(violation.contains(what), "{violation}");
}

#[track_caller]
pub(crate) fn check_complete(answer: &Answer, finish: &str) {
    assert_eq!(answer.finish, [json!(finish)], "{}", answer.got.body);
    assert_eq!(
        (answer.outcome.as_str(), answer.reason.as_str()),
        ("complete", "")
    );
    assert_eq!(answer.run["outcome"], "complete", "{}", answer.run);
    assert_eq!(answer.last.get("overlock"), None);
}

pub(crate) const WRONG: &str = "{\"city\": 7}";
pub(crate) const RIGHT: &str = "{\"city\": \"Oslo\"}";
pub(crate) const OFF: [(&str, &str); 1] = [("x-overlock-continue", "off")];
pub(crate) const KEY: [(&str, &str); 1] = [("idempotency-key", "a-key")];

#[tokio::test]
async fn a_document_that_violates_its_strict_schema_is_not_complete() {
    for (stream, finish) in [
        (false, "stop"),
        (false, "length"),
        (true, "stop"),
        (true, "length"),
    ] {
        for headers in [&[][..], &OFF[..], &KEY[..]] {
            let door = door(vec![content(stream, WRONG, finish)], |_| {}).await;
            let request = with_schema(stream, true);
            let answer = ask(&door, &request, headers).await;
            check_violated(&answer, "at `/city`");
            if headers == KEY {
                let calls = answer.calls;
                let again = ask(&door, &request, headers).await;
                check_violated(&again, "at `/city`");
                assert_eq!(again.calls, calls, "a replay makes no call");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_the_document_of_a_strict_schema_never_ends_with_stop() {
    let several = format!("{RIGHT}\n{RIGHT}");
    for text in ["I would rather not.", "", several.as_str()] {
        for stream in [false, true] {
            let door = door(vec![content(stream, text, "stop")], |_| {}).await;
            let answer = ask(&door, &with_schema(stream, true), &[]).await;
            assert_eq!(answer.finish, [json!("length")], "{}", answer.got.body);
            let reported = (answer.outcome.as_str(), answer.reason.as_str());
            assert_eq!(reported, ("failed", "no-json"), "{text}");
            assert_eq!(answer.run["reason"], "no-json", "{}", answer.run);
            assert_eq!(answer.last["overlock"]["reason"], "no-json", "{text}");
        }
    }
}

#[tokio::test]
async fn a_call_of_a_strict_tool_whose_arguments_are_not_json_is_not_complete() {
    for stream in [false, true] {
        let door = door(vec![call(stream, "city=Oslo", "tool_calls")], |_| {}).await;
        let answer = ask(&door, &with_tool(stream, true), &[]).await;
        check_violated(&answer, "is not one JSON document");
    }
}

#[tokio::test]
async fn a_continued_document_that_violates_its_strict_schema_is_not_complete() {
    let whole = "{\"city\": \"Oslo\", \"country\": \"Norway\"}";
    for stream in [false, true] {
        let first = content(stream, &whole[..24], "length");
        let replies = vec![first, FakeReply::streamed_content(whole, "stop")];
        let door = door(replies, |_| {}).await;
        let answer = ask(&door, &with_schema(stream, true), &[]).await;
        check_violated(&answer, "at `/`");
    }
}

#[tokio::test]
async fn a_stream_of_an_upstream_that_streams_nothing_says_it_in_its_last_chunk() {
    let door = door(vec![content(false, WRONG, "stop")], |_| {}).await;
    let answer = ask(&door, &with_schema(true, true), &[]).await;
    check_violated(&answer, "at `/city`");
}

#[tokio::test]
async fn only_the_choice_that_violates_its_strict_schema_ends_with_length() {
    for stream in [false, true] {
        let choice = |index: u64, text: &str| {
            let at = if stream { "delta" } else { "message" };
            let said = json!({ "role": "assistant", "content": text });
            json!({ "index": index, at: said, "finish_reason": "stop" })
        };
        let choices = [choice(0, WRONG), choice(1, RIGHT)];
        let said = if stream {
            FakeReply::stream(&choices)
        } else {
            FakeReply::choices(&json!(choices))
        };
        let door = door(vec![said], |_| {}).await;
        let mut request = with_schema(stream, true);
        request["n"] = json!(2);
        let answer = ask(&door, &request, &[]).await;
        if stream {
            assert_eq!(answer.finish, [json!("length"), json!("stop")]);
        } else {
            assert_eq!(answer.last["choices"][0]["finish_reason"], "length");
            assert_eq!(answer.last["choices"][1]["finish_reason"], "stop");
        }
        assert_eq!(answer.run["reason"], "schema-violation", "{}", answer.run);
        assert_eq!(answer.last["overlock"]["reason"], "schema-violation");
    }
}

#[tokio::test]
async fn a_document_that_matches_its_strict_schema_is_complete() {
    for (stream, strict) in [(false, true), (true, true), (false, false), (true, false)] {
        let door = door(vec![content(stream, RIGHT, "stop")], |_| {}).await;
        let answer = ask(&door, &with_schema(stream, strict), &[]).await;
        check_complete(&answer, "stop");
        assert_eq!(answer.calls, 1);
    }
}

#[tokio::test]
async fn a_violated_schema_that_is_not_strict_is_only_reported() {
    for stream in [false, true] {
        let door = door(vec![content(stream, WRONG, "stop")], |_| {}).await;
        let answer = ask(&door, &with_schema(stream, false), &[]).await;
        check_complete(&answer, "stop");
        assert_eq!(answer.calls, 1);
        if stream {
            assert_eq!(in_comment(&answer.got.body, "schema="), "violated");
        } else {
            assert_eq!(answer.got.header("x-overlock-schema"), "violated");
        }
    }
}

#[tokio::test]
async fn a_document_that_the_gateway_refuses_is_recorded_as_failed() {
    for strict in [false, true] {
        let set = |settings: &mut Settings| settings.strict_schema = true;
        let door = door(vec![content(false, WRONG, "stop")], set).await;
        for headers in [&[][..], &KEY[..], &KEY[..]] {
            let answer = ask(&door, &with_schema(false, strict), headers).await;
            assert_eq!(answer.got.status, StatusCode::BAD_GATEWAY);
            assert_eq!(answer.got.json()["error"]["code"], "schema_violation");
            assert_eq!(answer.run["outcome"], "failed", "{}", answer.run);
            assert_eq!(answer.run["reason"], "schema-violation", "{}", answer.run);
        }
    }
}

#[tokio::test]
async fn the_setting_strict_schema_holds_for_streams_of_schemas_that_are_not_strict() {
    let set = |settings: &mut Settings| settings.strict_schema = true;
    let door = door(vec![content(true, WRONG, "stop")], set).await;
    let answer = ask(&door, &with_schema(true, false), &[]).await;
    check_violated(&answer, "at `/city`");
}

#[tokio::test]
async fn a_tool_call_that_lacks_a_required_member_is_not_complete() {
    for (stream, strict) in [(false, true), (false, false), (true, true), (true, false)] {
        for (arguments, at) in [
            ("{}", "at `/`"),
            ("{\"days\": 3}", "at `/`"),
            ("{\"city\": \"Oslo\", \"place\": {}}", "at `/place`"),
            ("", "at `/`"),
        ] {
            for finish in ["tool_calls", "stop"] {
                let door = door(vec![call(stream, arguments, finish)], |_| {}).await;
                let answer = ask(&door, &with_tool(stream, strict), &[]).await;
                check_violated(&answer, at);
                let violation = &answer.last["overlock"]["violation"];
                assert!(violation.to_string().contains("`weather`"), "{violation}");
            }
        }
    }
}

#[tokio::test]
async fn a_continued_tool_call_that_lacks_a_required_member_is_not_complete() {
    let whole = "{\"days\": [1, 2, 3, 4, 5, 6]}";
    for stream in [false, true] {
        let first = call(stream, &whole[..20], "length");
        let replies = vec![first, FakeReply::streamed_content(whole, "stop")];
        let door = door(replies, |_| {}).await;
        let answer = ask(&door, &with_tool(stream, false), &[]).await;
        check_violated(&answer, "at `/`");
    }
}

#[tokio::test]
async fn a_call_in_the_older_form_that_lacks_a_required_member_is_not_complete() {
    for stream in [false, true] {
        let mut request = with_tool(stream, false);
        let function = request["tools"][0]["function"].take();
        let members = request.as_object_mut().expect("an object");
        members.remove("tools");
        members.insert("functions".to_owned(), json!([function]));
        for (arguments, is_whole) in [("{}", false), (RIGHT, true)] {
            let said = json!({ "role": "assistant", "content": null,
                "function_call": { "name": "weather", "arguments": arguments } });
            let door = door(vec![message(stream, &said, "function_call")], |_| {}).await;
            let answer = ask(&door, &request, &[]).await;
            if is_whole {
                check_complete(&answer, "function_call");
            } else {
                check_violated(&answer, "at `/`");
            }
        }
    }
}

#[tokio::test]
async fn other_violations_count_only_for_tools_that_are_strict() {
    for stream in [false, true] {
        for strict in [false, true] {
            let door = door(vec![call(stream, WRONG, "tool_calls")], |_| {}).await;
            let answer = ask(&door, &with_tool(stream, strict), &[]).await;
            if strict {
                check_violated(&answer, "at `/city`");
            } else {
                check_complete(&answer, "tool_calls");
            }
        }
    }
}

#[tokio::test]
async fn a_tool_call_that_matches_its_parameters_is_complete() {
    for (stream, strict) in [(false, true), (false, false), (true, true), (true, false)] {
        let door = door(vec![call(stream, RIGHT, "tool_calls")], |_| {}).await;
        let answer = ask(&door, &with_tool(stream, strict), &[]).await;
        check_complete(&answer, "tool_calls");
    }
    // Without required members an empty text is a call without arguments.
    let mut request = with_tool(false, true);
    request["tools"][0]["function"]["parameters"] = json!({ "type": "object" });
    let door = door(vec![call(false, "", "tool_calls")], |_| {}).await;
    check_complete(&ask(&door, &request, &[]).await, "tool_calls");
}

#[tokio::test]
async fn a_document_that_could_not_be_compared_is_unchecked_and_complete() {
    let document = format!("[\"{}\"]", "a".repeat(60_000));
    for stream in [false, true] {
        let mut request = with_schema(stream, true);
        // A pattern with look-around is costly, so a document this long is not compared.
        let schema = json!({ "items": { "pattern": "^b(?=a)" } });
        request["response_format"]["json_schema"]["schema"] = schema;
        let door = door(vec![content(stream, &document, "stop")], |_| {}).await;
        let answer = ask(&door, &request, &[]).await;
        check_complete(&answer, "stop");
        if stream {
            assert_eq!(in_comment(&answer.got.body, "schema="), "unchecked");
        } else {
            assert_eq!(answer.got.header("x-overlock-schema"), "unchecked");
        }
    }
}

#[tokio::test]
async fn a_tool_call_that_could_not_be_compared_is_unchecked_and_complete() {
    for strict in [false, true] {
        let mut request = with_tool(false, strict);
        let parameters = json!({ "type": "no type" });
        request["tools"][0]["function"]["parameters"] = parameters;
        let door = door(vec![call(false, RIGHT, "tool_calls")], |_| {}).await;
        let answer = ask(&door, &request, &[]).await;
        check_complete(&answer, "tool_calls");
        let reported = if strict { "unchecked" } else { "" };
        assert_eq!(answer.got.header("x-overlock-schema"), reported);
    }
}
