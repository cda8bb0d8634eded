use serde_json::{Value, json};

use crate::door::{Door, TestResponse};
use crate::fake::{Fake, FakeReply};

/// The answer that a client got, streamed or not.
#[derive(Debug, Default, PartialEq)]
struct FinishedAnswer {
    content: String,
    arguments: String,
    finish: Vec<Value>,
    error: Option<Value>,
    outcome: String,
    /// The number of upstream calls.
    calls: usize,
}

const OFF: [(&str, &str); 1] = [("x-overlock-continue", "off")];
const TEXT: [(&str, &str); 1] = [("x-overlock-continue", "text")];

fn plain(stream: bool) -> Value {
    json!({
        "model": "gpt-4o", "stream": stream,
        "messages": [{ "role": "user", "content": "Tell me." }],
    })
}

fn as_json(stream: bool) -> Value {
    let mut request = plain(stream);
    request["response_format"] = json!({ "type": "json_object" });
    request
}

impl FinishedAnswer {
    fn read(got: &TestResponse, calls: usize) -> Self {
        let mut answer = Self {
            calls,
            outcome: got.header("x-overlock-outcome").to_owned(),
            ..Self::default()
        };
        if got.header("content-type").starts_with("application/json") {
            answer.take(&got.json(), "message");
            return answer;
        }
        for event in got.body.split_terminator("\n\n") {
            if let Some((_, rest)) = event.split_once("outcome=") {
                let outcome = rest.split(' ').next().unwrap_or_default();
                outcome.clone_into(&mut answer.outcome);
            }
            match event.strip_prefix("data: ") {
                None | Some("[DONE]") => {}
                Some(data) => answer.take(&serde_json::from_str(data).expect("JSON"), "delta"),
            }
        }
        answer
    }

    fn take(&mut self, said: &Value, at: &str) {
        if let Some(error) = said.get("error") {
            self.error = Some(error.clone());
        }
        for choice in said["choices"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let message = &choice[at];
            self.content.push_str(&text(&message["content"]));
            let arguments = &message["tool_calls"][0]["function"]["arguments"];
            self.arguments.push_str(&text(arguments));
            if at == "message" || !choice["finish_reason"].is_null() {
                self.finish.push(choice["finish_reason"].clone());
            }
        }
    }
}

async fn finished(
    replies: Vec<FakeReply>,
    request: &Value,
    headers: &[(&'static str, &str)],
) -> FinishedAnswer {
    let door: Door<Fake> = Door::to_fake(replies).await;
    let got = door.chat(request, headers).await;
    FinishedAnswer::read(&got, door.upstream.requests().len())
}

/// The answer for a content, which must be the same streamed and not.
async fn answer_of(
    content: &str,
    finish: &str,
    request: fn(bool) -> Value,
    headers: &[(&'static str, &str)],
    later: &[FakeReply],
) -> FinishedAnswer {
    let replies = |first| [vec![first], later.to_vec()].concat();
    let whole = replies(FakeReply::content(content, finish));
    let whole = finished(whole, &request(false), headers).await;
    let streamed = replies(FakeReply::streamed_content(content, finish));
    let streamed = finished(streamed, &request(true), headers).await;
    assert_eq!(whole, streamed, "{content:?}");
    whole
}

#[track_caller]
fn check(answer: &FinishedAnswer, content: &str, finish: &str, calls: usize) {
    let outcome = if finish == "stop" {
        "complete"
    } else {
        "partial"
    };
    assert_eq!(answer.content, content);
    assert_eq!(
        (
            answer.finish.as_slice(),
            answer.outcome.as_str(),
            answer.calls
        ),
        (&[json!(finish)][..], outcome, calls),
        "{answer:?}"
    );
}

const CUT_TEXTS: [&str; 3] = [
    "{\"a\": 1}\n\nNow let me explain what the members mean, and that",
    "[1] Smith says that this is so, and",
    "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3, \"b\": \"hal",
];

#[tokio::test]
async fn a_cut_text_that_begins_with_json_is_cut() {
    for text in CUT_TEXTS {
        check(
            &answer_of(text, "length", plain, &[], &[]).await,
            text,
            "length",
            1,
        );
        check(
            &answer_of(text, "stop", plain, &[], &[]).await,
            text,
            "stop",
            1,
        );
        check(
            &answer_of(text, "length", plain, &OFF, &[]).await,
            text,
            "length",
            1,
        );
    }
}

#[tokio::test]
async fn continues_a_cut_text_that_begins_with_json_on_request() {
    for text in CUT_TEXTS {
        let rest = FakeReply::streamed_content(" that is all of it.", "stop");
        let answer = answer_of(text, "length", plain, &TEXT, &[rest]).await;
        check(&answer, &format!("{text} that is all of it."), "stop", 2);
    }
}

#[tokio::test]
async fn a_bare_document_with_finish_reason_length_is_complete() {
    for text in ["{\"a\": 1}", " [1]\n", "{\"a\": 1}\n```"] {
        check(
            &answer_of(text, "length", plain, &[], &[]).await,
            text,
            "stop",
            1,
        );
        check(
            &answer_of(text, "length", plain, &OFF, &[]).await,
            text,
            "stop",
            1,
        );
    }
}

#[tokio::test]
async fn passes_on_several_documents_where_one_was_requested() {
    let text = CUT_TEXTS[2];
    check(
        &answer_of(text, "length", as_json, &[], &[]).await,
        text,
        "length",
        1,
    );
    let text = "{\"a\": 1}\n{\"a\": 2}";
    let answer = answer_of(text, "stop", as_json, &[], &[]).await;
    assert_eq!((answer.content.as_str(), answer.calls), (text, 1));
    assert_eq!(answer.outcome, "failed", "{answer:?}");
}

#[tokio::test]
async fn repairs_a_document_with_syntax_errors_without_another_call() {
    for (text, repaired) in [
        (
            "{\"a\": [1, 2,], \"c\": \"precious\"}",
            "{\"a\": [1, 2], \"c\": \"precious\"}",
        ),
        ("{\"a\": NaN, \"c\": 1}", "{\"a\": null, \"c\": 1}"),
        (
            "{\"a\": \"he said \"no\" to it\", \"c\": 1}",
            "{\"a\": \"he said \\\"no\\\" to it\", \"c\": 1}",
        ),
    ] {
        let answer = answer_of(text, "stop", as_json, &[], &[]).await;
        check(&answer, repaired, "stop", 1);
    }
    let text = "{\"a\": 1, // the first\n \"c\": 2}";
    let answer = answer_of(text, "stop", as_json, &[], &[]).await;
    let value: Value = serde_json::from_str(&answer.content).expect("valid");
    assert_eq!(value, json!({ "a": 1, "c": 2 }));
    check(&answer, &answer.content, "stop", 1);
}

#[tokio::test]
async fn continues_a_cut_document_from_its_repaired_form() {
    let rest = FakeReply::streamed_content("{\"a\": [1, 2], \"c\": \"precious\"}", "stop");
    let text = "{\"a\": [1, 2,], \"c\": \"prec";
    let answer = answer_of(text, "length", as_json, &[], &[rest]).await;
    let repaired = "{\"a\": [1, 2], \"c\": \"precious\"}";
    check(&answer, repaired, "stop", 2);
}

/// Events without the end of a stream.
fn broken(choices: &[Value]) -> FakeReply {
    let mut said = FakeReply::stream(choices);
    said.body = said.body.replace("data: [DONE]\n\n", "");
    said
}

fn piece(index: u64, content: &str) -> Value {
    json!({ "index": index, "delta": { "role": "assistant", "content": content } })
}

fn call(arguments: &str) -> Value {
    json!({ "index": 0, "id": "call_1", "type": "function",
            "function": { "name": "weather", "arguments": arguments } })
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_not_called_complete() {
    let end = json!({ "index": 0, "delta": {}, "finish_reason": "stop" });
    let calls = json!({ "index": 0, "delta": { "tool_calls": [call("{\"city\": \"Oslo\"}")] } });
    for (first, content) in [
        (
            broken(&[piece(0, "All."), piece(1, " Half a sent"), end]),
            "All. Half a sent",
        ),
        (
            broken(&[piece(0, "{\"a\": 1}\n\nNow the expl")]),
            "{\"a\": 1}\n\nNow the expl",
        ),
        (broken(&[piece(0, "[Note] 12")]), "[Note] 12"),
        (broken(&[calls]), ""),
    ] {
        let answer = finished(vec![first], &plain(true), &[]).await;
        let error = answer.error.as_ref().expect("an error");
        assert_eq!(error["type"], "upstream_error");
        assert!(error["message"].is_string());
        assert_eq!((answer.content.as_str(), answer.calls), (content, 1));
        assert_eq!(
            (answer.finish.as_slice(), answer.outcome.as_str()),
            (&[][..], "")
        );
    }
}

#[tokio::test]
async fn completes_a_document_whose_stream_breaks_off() {
    let whole = broken(&[piece(0, "{\"a\": [1, 2]}")]);
    let answer = finished(vec![whole], &plain(true), &[]).await;
    check(&answer, "{\"a\": [1, 2]}", "stop", 1);
    let cut = broken(&[piece(0, "{\"a\": [1, ")]);
    let rest = FakeReply::streamed_content("{\"a\": [1, 2]}", "stop");
    let answer = finished(vec![cut, rest], &plain(true), &[]).await;
    check(&answer, "{\"a\": [1, 2]}", "stop", 2);
}

#[tokio::test]
async fn a_text_whose_continuation_breaks_off_is_cut() {
    let (text, more) = (
        "It was a dark and stormy night;",
        " the rain fell in torrents",
    );
    let rest = broken(&[piece(0, more)]);
    let answer = answer_of(text, "length", plain, &TEXT, &[rest]).await;
    check(&answer, &format!("{text}{more}"), "length", 3);
}

#[tokio::test]
async fn a_cut_document_is_called_cut_even_if_nothing_is_continued() {
    let text = "{\"a\": [1, ";
    for request in [plain, as_json] {
        check(
            &answer_of(text, "stop", request, &OFF, &[]).await,
            text,
            "length",
            1,
        );
    }
}

#[tokio::test]
async fn a_tool_call_that_may_be_cut_never_looks_complete() {
    for (arguments, said, headers) in [
        ("{\"city\": \"Ber", json!("tool_calls"), &OFF[..]),
        ("\"cut string", json!("tool_calls"), &[]),
        ("", Value::Null, &[]),
        ("", json!("length"), &OFF[..]),
    ] {
        let message = json!({ "role": "assistant", "tool_calls": [call(arguments)] });
        let choice = json!([{ "index": 0, "message": message, "finish_reason": said }]);
        let whole = finished(vec![FakeReply::choices(&choice)], &plain(false), headers).await;
        let streamed = FakeReply::stream(&[
            json!({ "index": 0, "delta": message }),
            json!({ "index": 0, "delta": {}, "finish_reason": said }),
        ]);
        let streamed = finished(vec![streamed], &plain(true), headers).await;
        for answer in [whole, streamed] {
            assert_eq!(answer.arguments, arguments);
            check(&answer, "", "length", 1);
        }
    }
}

#[tokio::test]
async fn cut_json_in_a_fence_is_continued_and_the_fence_is_closed() {
    let rest =
        FakeReply::streamed_content("```json\n{\"a\": [1, 2, 3]}\n```\nThat is all.", "stop");
    for before in ["```json\n", "Here it is [1]:\n\n``` JSON\n", "```\n\n "] {
        for finish in ["length", "stop"] {
            let text = format!("{before}{{\"a\": [1, 2");
            let answer = answer_of(&text, finish, plain, &[], std::slice::from_ref(&rest)).await;
            let whole = format!("{before}{{\"a\": [1, 2, 3]}}\n```");
            check(&answer, &whole, "stop", 2);
        }
    }
}

#[tokio::test]
async fn a_fence_that_cannot_be_continued_is_called_cut() {
    let nothing = FakeReply::streamed_content("", "stop");
    let text = "Sure:\n```json\n{\"a\": [1, 2";
    let whole = vec![FakeReply::content(text, "length"), nothing.clone()];
    let closed = "Sure:\n```json\n{\"a\": [1]}\n```";
    check(
        &finished(whole, &plain(false), &[]).await,
        closed,
        "length",
        4,
    );
    let streamed = vec![FakeReply::streamed_content(text, "length"), nothing];
    check(
        &finished(streamed, &plain(true), &[]).await,
        text,
        "length",
        4,
    );
    for text in [
        "```json\n{\"a\": 1}\n```\n\nIn words: the",
        "```python\nrows = [1,",
    ] {
        check(
            &answer_of(text, "length", plain, &[], &[]).await,
            text,
            "length",
            1,
        );
        check(
            &answer_of(text, "stop", plain, &[], &[]).await,
            text,
            "stop",
            1,
        );
    }
}
