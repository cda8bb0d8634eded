use overlock_gateway::Settings;
use overlock_llm::wire::Protocol;
use serde_json::{Value, json};

use crate::door::{Door, TestResponse, report};
use crate::fake::{Fake, FakeReply};
use crate::responses::{Item, door, later, object, request, stream};

/// A request for a JSON document.
fn first(is_streamed: bool) -> Value {
    let format = json!({ "format": { "type": "json_object" } });
    request(is_streamed, &json!({ "text": format }))
}

/// A request that continues a response.
fn next(id: &str) -> Value {
    let input = json!([{ "role": "user", "content": "Shorter." }]);
    request(
        false,
        &json!({ "previous_response_id": id, "input": input }),
    )
}

fn reply(items: &[Item], finish: &str, is_streamed: bool) -> FakeReply {
    if is_streamed {
        stream(items, finish, 11)
    } else {
        FakeReply::json(200, &object(items, finish))
    }
}

/// A response with this id.
fn named(id: &str, items: &[Item], finish: &str) -> FakeReply {
    let mut response = object(items, finish);
    response["id"] = json!(id);
    FakeReply::json(200, &response)
}

fn unavailable(response: &TestResponse) {
    assert_eq!(response.status, 400, "{}", response.body);
    let error = &response.json()["error"];
    assert_eq!(error["code"], "previous_response_unavailable");
    assert_eq!(error["param"], "previous_response_id");
}

/// A document and its two parts; the second repeats the end of the first.
fn parts() -> (String, Item, String) {
    let document = report(1500);
    let (first, rest) = document.split_at(700);
    let tail = &first[first.floor_char_boundary(first.len() - 200)..];
    let later = [tail, rest].concat();
    let first = Item::Text(first.to_owned());
    (document, first, later)
}

#[tokio::test]
async fn a_joined_response_is_sent_again_as_input() {
    let (document, cut, rest) = parts();
    let items = [Item::Reasoning, cut];
    for is_streamed in [false, true] {
        let replies = vec![
            reply(&items, "length", is_streamed),
            later(&rest),
            named("resp_2", &items, "length"),
            later(&rest),
            named("resp_3", &[Item::Text("Short.".to_owned())], "stop"),
        ];
        let door = door(replies).await;
        let got = door.respond(&first(is_streamed), &[]).await;
        assert_eq!(got.status, 200, "{}", got.body);
        let mut second = next("resp_1");
        second["text"] = first(false)["text"].clone();
        door.respond(&second, &[]).await;
        let got = door.respond(&next("resp_2"), &[]).await;
        assert_eq!(got.json()["output"][0]["content"][0]["text"], "Short.");

        let asked = door.upstream.requests();
        let targets: Vec<&str> = asked.iter().map(|it| it.target.as_str()).collect();
        assert_eq!(targets, ["POST /v1/responses"; 5]);
        let user = |text: &str| json!({ "role": "user", "content": text });
        let mut turn = vec![
            user("Write the report."),
            json!({
                "type": "message", "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": document, "annotations": [] }],
            }),
            user("Shorter."),
        ];
        assert_eq!(asked[2].body["input"], json!(turn));
        assert!(asked[2].body.get("previous_response_id").is_none());
        turn.extend([turn[1].clone(), user("Shorter.")]);
        assert_eq!(asked[4].body["input"], json!(turn));
    }
}

#[tokio::test]
async fn a_joined_call_is_sent_again_before_its_output() {
    let (document, cut, rest) = parts();
    let Item::Text(cut) = cut else {
        unreachable!("a text")
    };
    let parameters = json!({ "type": "object", "properties": {} });
    let tool = json!({ "type": "function", "name": "write", "parameters": parameters });
    let replies = vec![
        reply(&[Item::Reasoning, Item::Call(cut)], "length", false),
        later(&rest),
        reply(&[Item::Text("Done.".to_owned())], "stop", false),
    ];
    let door = door(replies).await;
    let members = json!({ "tools": [tool], "previous_response_id": null });
    door.respond(&request(false, &members), &[]).await;
    let output = json!({
        "type": "function_call_output", "call_id": "call_1", "output": "written",
    });
    let members = json!({
        "tools": [tool], "previous_response_id": "resp_1", "input": [output],
    });
    let got = door.respond(&request(false, &members), &[]).await;
    assert_eq!(got.status, 200, "{}", got.body);
    let call = json!({
        "type": "function_call", "call_id": "call_1", "name": "write", "arguments": document,
    });
    let user = json!({ "role": "user", "content": "Write the report." });
    let asked = door.upstream.requests();
    assert_eq!(asked[2].body["input"], json!([user, call, output]));
}

#[tokio::test]
async fn a_response_that_the_upstream_has_is_named_as_it_is() {
    let items = [Item::Text("{\"a\": 1}".to_owned())];
    for is_streamed in [false, true] {
        let door = door(vec![reply(&items, "stop", is_streamed)]).await;
        door.respond(&first(is_streamed), &[]).await;
        door.respond(&next("resp_1"), &[]).await;
        let asked = door.upstream.requests();
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[1].text, next("resp_1").to_string());
    }
}

#[tokio::test]
async fn a_cut_response_without_a_record_is_refused() {
    let (_, cut, rest) = parts();
    let mut stored = object(std::slice::from_ref(&cut), "length");
    stored["text"] = first(false)["text"].clone();
    let door = door(vec![FakeReply::json(200, &stored)]).await;
    unavailable(&door.respond(&next("resp_1"), &[]).await);
    let asked = door.upstream.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].target, "GET /v1/responses/resp_1");
    // A client that wants no continuations has seen what the upstream has.
    let headers = [("x-overlock-continue", "off")];
    let got = door.respond(&next("resp_1"), &headers).await;
    assert_eq!(got.status, 200, "{}", got.body);

    // Another client is not sent what the first one got.
    let replies = vec![
        reply(&[cut], "length", false),
        later(&rest),
        FakeReply::json(200, &stored),
    ];
    let door = self::door(replies).await;
    let key = |key| [("authorization", key)];
    door.respond(&first(false), &key("Bearer a")).await;
    unavailable(&door.respond(&next("resp_1"), &key("Bearer b")).await);
}

#[tokio::test]
async fn a_response_that_cannot_be_checked_is_refused() {
    let error = json!({ "error": { "message": "no" } });
    let unchecked = door(vec![FakeReply::json(403, &error)]).await;
    unavailable(&unchecked.respond(&next("resp_1"), &[]).await);
    let got = unchecked.respond(&next("../models"), &[]).await;
    assert_eq!(got.status, 400);
    assert_eq!(unchecked.upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_complete_or_unknown_response_is_left_to_the_upstream() {
    let complete = [Item::Text("{\"a\": 1}".to_owned())];
    let plain = [Item::Text("The river flows".to_owned())];
    let error = json!({ "error": { "message": "no such response" } });
    for stored in [
        FakeReply::json(200, &object(&complete, "stop")),
        FakeReply::json(200, &object(&plain, "length")),
        FakeReply::json(404, &error),
    ] {
        let door = door(vec![stored, reply(&complete, "stop", false)]).await;
        let got = door.respond(&next("resp_1"), &[]).await;
        assert_eq!(got.status, 200, "{}", got.body);
        assert_eq!(door.upstream.requests()[1].text, next("resp_1").to_string());
    }
    // A client whose texts are continued has seen more of the text.
    let door = door(vec![FakeReply::json(200, &object(&plain, "length"))]).await;
    let headers = [("x-overlock-continue", "text")];
    unavailable(&door.respond(&next("resp_1"), &headers).await);
}

#[tokio::test]
async fn other_requests_for_responses_are_forwarded() {
    let door = door(vec![FakeReply::json(200, &json!({ "id": "resp_1" }))]).await;
    for method in [hyper::Method::GET, hyper::Method::DELETE] {
        let path = "/v1/responses/resp_1";
        let got = door.send(method.clone(), path, &[], "").await;
        assert_eq!(got.json()["id"], "resp_1");
        let asked = door.upstream.requests();
        let target = &asked.last().expect("a request").target;
        assert_eq!(*target, format!("{method} {path}"));
    }
}

#[tokio::test]
async fn errors_before_the_first_call_have_the_shape_of_the_api() {
    let door: Door<Fake> =
        Door::to_fake_with(vec![FakeReply::never()], |settings: &mut Settings| {
            settings.upstream.api = Protocol::Responses;
            settings.keys = overlock_gateway::Keys::new(["right".to_owned()]);
            settings.limits.body_bytes = 1000;
        })
        .await;
    let long = "a".repeat(2000);
    let right = [("authorization", "Bearer right")];
    for (headers, body, status) in [
        (&[][..], "{}", 401),
        (&right[..], "{", 400),
        (&right[..], long.as_str(), 413),
        (&right[..], "{\"model\": \"gpt-4o\", \"input\": []}", 400),
        (&right[..], "{\"input\": \"a\"}", 400),
    ] {
        let post = hyper::Method::POST;
        let got = door.send(post, "/v1/responses", headers, body).await;
        assert_eq!(got.status, status, "{}", got.body);
        let error = &got.json()["error"];
        assert!(
            error["message"].is_string() && error["type"].is_string(),
            "{error}"
        );
        assert!(
            error.get("param").is_some() && error.get("code").is_some(),
            "{error}"
        );
    }
}
