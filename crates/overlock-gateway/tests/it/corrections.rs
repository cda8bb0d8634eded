//! A complete document that violates its strict schema is corrected by the model, with one call.

use std::time::Duration;

use overlock_runs::Record;
use serde_json::{Value, json};

use crate::door::Door;
use crate::fake::{Fake, FakeReply};
use crate::schemas::{
    Answer, KEY, OFF, RIGHT, WRONG, ask, call, check_complete, check_violated, content, door,
    message, with_schema, with_tool,
};

/// The answer to a call of the gateway, which always streams.
fn stream_reply(text: &str, finish: &str) -> FakeReply {
    FakeReply::streamed_content(text, finish)
}

/// The content or the tool call arguments that the client got.
fn content_of(answer: &Answer) -> Value {
    let message = &answer.last["choices"][0]["message"];
    let arguments = message.pointer("/tool_calls/0/function/arguments");
    arguments.unwrap_or(&message["content"]).clone()
}

/// The seam or the failure of each step of a run.
fn steps(answer: &Answer) -> Vec<String> {
    let steps = answer.run["steps"].as_array().expect("steps");
    let name = |step: &Value| {
        let result = &step["result"];
        let name = result.get("seam").unwrap_or(&result["failure"]["failure"]);
        name.as_str().unwrap_or_default().to_owned()
    };
    steps.iter().map(name).collect()
}

#[track_caller]
fn check_not_corrected(answer: &Answer, at: &str, first: &str) {
    check_violated(answer, at);
    assert_eq!(content_of(answer), first);
    assert_eq!(
        steps(answer).last().map(String::as_str),
        Some("uncorrected")
    );
}

#[tokio::test]
async fn a_document_that_violates_its_strict_schema_is_corrected() {
    for headers in [&[][..], &KEY[..]] {
        let door = door(
            vec![content(false, WRONG, "stop"), stream_reply(RIGHT, "stop")],
            |_| {},
        )
        .await;
        let request = with_schema(false, true);
        let answer = ask(&door, &request, headers).await;
        check_complete(&answer, "stop");
        assert_eq!(content_of(&answer), RIGHT);
        assert_eq!(answer.got.header("x-overlock-schema"), "");
        assert_eq!(answer.got.header("x-overlock-continuations"), "1");
        assert_eq!(steps(&answer), ["first", "corrected"]);
        let tokens = answer.last["usage"]["completion_tokens"].as_u64();
        assert!(
            tokens > Some(5),
            "both calls count: {}",
            answer.last["usage"]
        );

        let requests = door.upstream.requests();
        assert_eq!(requests.len(), 2);
        let round = &requests[1].body;
        assert_eq!(round["response_format"], request["response_format"]);
        let messages = round["messages"].as_array().expect("messages");
        assert_eq!(messages[0], request["messages"][0]);
        assert_eq!(
            messages[1],
            json!({ "role": "assistant", "content": WRONG })
        );
        let words = messages[2]["content"].as_str().expect("text");
        assert!(words.contains("at `/city`"), "{words}");

        if headers == KEY {
            let again = ask(&door, &request, headers).await;
            check_complete(&again, "stop");
            assert_eq!(content_of(&again), RIGHT);
            assert_eq!(again.got.header("x-overlock-continuations"), "1");
            assert_eq!(again.calls, 2, "a replay makes no call");
        }
    }
}

#[tokio::test]
async fn a_correction_that_is_not_whole_and_valid_leaves_the_first_document() {
    for (second, finish, why) in [
        ("{\"city\": 8}", "stop", "at `/city`"),
        ("{\"city\": \"Os", "length", "cut off"),
        ("I am sorry.", "stop", "no JSON"),
        ("", "stop", "empty"),
    ] {
        let replies = vec![content(false, WRONG, "stop"), stream_reply(second, finish)];
        let door = door(replies, |_| {}).await;
        for _ in ["answered", "replayed"] {
            let answer = ask(&door, &with_schema(false, true), &KEY).await;
            check_not_corrected(&answer, "at `/city`", WRONG);
            let path = format!(
                "/api/runs/{}?text=true",
                answer.got.header("x-overlock-run")
            );
            let run = door.get(&path).await.json();
            let failure = &run["steps"][1]["result"]["failure"]["message"];
            assert!(failure.to_string().contains(why), "{failure}");
            assert_eq!(answer.calls, 2, "the model is asked once");
        }
    }
}

#[tokio::test]
async fn a_record_of_metadata_holds_nothing_of_a_failed_correction() {
    let replies = vec![
        content(false, WRONG, "stop"),
        stream_reply("{\"city\": 8}", "stop"),
    ];
    let door = door(replies, |settings| settings.record = Record::Metadata).await;
    let answer = ask(&door, &with_schema(false, true), &[]).await;
    check_violated(&answer, "at `/city`");
    assert_eq!(steps(&answer), ["first", "uncorrected"]);
    assert!(!answer.run.to_string().contains("city"), "{}", answer.run);
}

#[tokio::test]
async fn an_upstream_error_in_the_correction_leaves_the_first_document() {
    let error = |status| {
        let error = json!({ "error": { "message": "it is busy" } });
        FakeReply::json(status, &error)
    };
    for second in [error(400), error(500), FakeReply::broken(RIGHT)] {
        let replies = vec![content(false, WRONG, "stop"), second];
        let door = door(replies, |settings| settings.upstream.retries.retries = 1).await;
        let answer = ask(&door, &with_schema(false, true), &[]).await;
        check_not_corrected(&answer, "at `/city`", WRONG);
        assert_eq!(answer.last["usage"]["completion_tokens"], 5);
    }
}

#[tokio::test]
async fn a_correction_that_breaks_off_after_its_document_is_no_fault() {
    for (second, is_fault) in [(RIGHT, false), ("{\"city\": \"Os", true)] {
        let replies = vec![content(false, WRONG, "stop"), FakeReply::breaking(second)];
        let door = door(replies, |_| {}).await;
        let answer = ask(&door, &with_schema(false, true), &[]).await;
        let given_now = if is_fault { WRONG } else { RIGHT };
        assert_eq!(content_of(&answer), given_now);
        let fault = answer
            .run
            .get("upstream_fault")
            .filter(|fault| !fault.is_null());
        assert_eq!(fault.is_some(), is_fault, "{}", answer.run);
    }
}

#[tokio::test]
async fn a_correction_that_is_never_answered_ends_with_the_request() {
    let replies = vec![content(false, WRONG, "stop"), FakeReply::never()];
    let set = |settings: &mut overlock_gateway::Settings| {
        settings.limits.run_time = Duration::from_secs(3);
    };
    let door = door(replies, set).await;
    let answer = ask(&door, &with_schema(false, true), &[]).await;
    check_violated(&answer, "at `/city`");
    assert_eq!(content_of(&answer), WRONG);
}

#[tokio::test]
async fn a_continued_document_is_corrected_in_one_answer() {
    let whole = "{\"city\": \"Oslo\", \"country\": \"Norway\"}";
    let first = content(false, &whole[..24], "length");
    let replies = vec![
        first,
        stream_reply(whole, "stop"),
        stream_reply(RIGHT, "stop"),
    ];
    let door = door(replies, |_| {}).await;
    let mut request = with_schema(false, true);
    request["max_tokens"] = json!(9);
    let answer = ask(&door, &request, &[]).await;
    check_complete(&answer, "stop");
    assert_eq!(content_of(&answer), RIGHT);
    assert_eq!(steps(&answer).last().map(String::as_str), Some("corrected"));
    let limit = door.upstream.requests()[2].body["max_tokens"].as_u64();
    assert!(limit >= Some(20), "the whole document has room: {limit:?}");
}

#[tokio::test]
async fn a_tool_call_that_violates_its_parameters_is_corrected() {
    for strict in [false, true] {
        for (stream, arguments) in [(false, "{}"), (false, ""), (true, "")] {
            let replies = vec![
                call(stream, arguments, "tool_calls"),
                stream_reply(RIGHT, "stop"),
            ];
            let door = door(replies, |_| {}).await;
            let mut request = with_tool(stream, strict);
            request["response_format"] = json!({ "type": "json_object" });
            let answer = ask(&door, &request, &[]).await;
            check_complete(&answer, "tool_calls");
            assert_eq!(steps(&answer), ["first", "corrected"]);
            if stream {
                let sent = RIGHT.replace('"', "\\\"");
                assert!(answer.got.body.contains(&sent), "{}", answer.got.body);
            } else {
                assert_eq!(content_of(&answer), RIGHT);
            }
            let requests = door.upstream.requests();
            assert_eq!(requests.len(), 2);
            let round = &requests[1].body;
            assert_eq!(round["tool_choice"], "none");
            assert_eq!(
                round.get("response_format"),
                None,
                "it is not for arguments"
            );
            let messages = round["messages"].as_array().expect("messages");
            let words = messages.last().expect("a message")["content"].to_string();
            assert!(words.contains("`weather`"), "{words}");
        }
    }
}

#[tokio::test]
async fn a_tool_call_that_is_not_corrected_stays_as_it_came() {
    for arguments in ["{}", "", "{\"days\": 3}"] {
        let replies = vec![
            call(false, arguments, "tool_calls"),
            stream_reply("{}", "stop"),
        ];
        let door = door(replies, |_| {}).await;
        let answer = ask(&door, &with_tool(false, true), &[]).await;
        check_not_corrected(&answer, "at `/`", arguments);
        assert_eq!(answer.calls, 2);
    }
}

#[tokio::test]
async fn a_tool_call_without_arguments_is_compared_like_one_with_empty_arguments() {
    let name = "weather";
    for function in [
        json!({ "name": name }),
        json!({ "name": name, "arguments": null }),
    ] {
        let call = json!({ "id": "call_1", "type": "function", "function": function });
        let call = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        let check = async |second: &str, request: &Value| {
            let first = message(false, &call, "tool_calls");
            let door = door(vec![first, stream_reply(second, "stop")], |_| {}).await;
            ask(&door, request, &[]).await
        };
        let mut request = with_tool(false, false);
        let corrected = check(RIGHT, &request).await;
        check_complete(&corrected, "tool_calls");
        assert_eq!(content_of(&corrected), RIGHT);

        let as_it_came = |answer: &Answer| {
            let given = answer
                .last
                .pointer("/choices/0/message/tool_calls/0/function");
            assert_eq!(given, Some(&function));
        };
        let violated = check("{}", &request).await;
        check_violated(&violated, "at `/`");
        as_it_came(&violated);

        request["tools"][0]["function"]["parameters"]["required"] = json!([]);
        let complete = check("{}", &request).await;
        check_complete(&complete, "tool_calls");
        as_it_came(&complete);
        assert_eq!(complete.calls, 1);
    }
}

#[tokio::test]
async fn nothing_is_corrected_once_it_was_sent() {
    let check = async |first: FakeReply, request: &Value| {
        let door = door(vec![first, stream_reply(RIGHT, "stop")], |_| {}).await;
        let answer = ask(&door, request, &[]).await;
        check_violated(&answer, "at `/");
        assert_eq!(answer.calls, 1);
    };
    check(content(true, WRONG, "stop"), &with_schema(true, true)).await;
    check(call(true, "{}", "tool_calls"), &with_tool(true, true)).await;
}

#[tokio::test]
async fn a_stream_of_an_upstream_that_streams_nothing_is_corrected() {
    let replies = vec![content(false, WRONG, "stop"), stream_reply(RIGHT, "stop")];
    let door = door(replies, |_| {}).await;
    let answer = ask(&door, &with_schema(true, true), &[]).await;
    check_complete(&answer, "stop");
    assert_eq!(answer.calls, 2);
}

#[tokio::test]
async fn limits_hold_for_corrections() {
    async fn check(
        set: impl FnOnce(&mut overlock_gateway::Settings),
        headers: &[(&'static str, &str)],
    ) {
        let replies = vec![content(false, WRONG, "stop"), stream_reply(RIGHT, "stop")];
        let door = door(replies, set).await;
        let answer = ask(&door, &with_schema(false, true), headers).await;
        check_violated(&answer, "at `/city`");
        assert_eq!(answer.calls, 1);
    }
    check(|_| {}, &OFF).await;
    check(|_| {}, &[("x-overlock-max-total-tokens", "5")]).await;
    check(|settings| settings.continuation.max_iterations = 1, &[]).await;
}

#[tokio::test]
async fn a_retry_after_a_disconnect_makes_the_correction_that_is_missing() {
    let first = vec![
        content(false, WRONG, "stop"),
        FakeReply::never(),
        stream_reply(RIGHT, "stop"),
    ];
    let door: Door<Fake> = door(first, |_| {}).await;
    let request = with_schema(false, true);
    tokio::select! {
        got = door.chat(&request, &KEY) => panic!("it is never answered: {}", got.body),
        () = door.upstream.until_called(2) => {}
    }
    let got = door.chat_once_free(&request, &KEY).await;
    let choice = &got.json()["choices"][0];
    assert_eq!(choice["message"]["content"], RIGHT, "{}", got.body);
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(door.upstream.requests().len(), 3);
}
