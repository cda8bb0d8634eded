//! What failed when the gateway was measured with real models: one test for each behaviour that
//! must not come back, against the scripted server.
//!
//! | what failed | tests, here where no file is named |
//! |---|---|
//! | `response_format` was deleted from prefill calls | `the_response_format_is_not_deleted_…` |
//! | prefill was not used without configuration, or ended in `model-error` | `prefill_is_used_where_nothing_…`, `a_server_that_refuses_prefill_with_a_format_…`; one setting alone: `conflicts.rs` of the program |
//! | documents that violate a strict schema said `stop` | `a_document_that_violates_…`, `schemas.rs`, `corrections.rs` |
//! | a strict grammar made the model begin again | `a_model_that_restarts_under_a_strict_grammar_…` |
//! | an echo of the prefill was joined | `an_echo_of_the_prefill_…`, `echo.rs` |
//! | markers of the prompt reached documents | `markers_of_a_prompt_never_reach_…` |
//! | a long prefill was shortened, a failed call repeated | `a_document_beyond_4000_bytes_…`, `a_call_that_failed_…` |
//! | a model in a loop was continued | `a_model_in_a_loop_…`, `a_table_with_equal_rows_…` |
//! | fenced JSON was not continued, text not by prefill | `fenced_json_…`; `servers.rs`: `a_cut_text_goes_on_from_a_prefill_…` |
//! | tool arguments were not compared with their parameters | `tool_arguments_are_continued_…` |
//! | requests exceeded the window | `the_window_of_the_running_model_…`; `servers.rs`: `llama_cpp_refuses_no_chat_…`, `a_refused_request_teaches_…` |
//! | the default port was that of llama.cpp | `the_default_port_is_not_that_of_llama_cpp`, a unit test of the program |
//! | an answer ended before its document began | `a_tool_call_that_ends_before_…`; `servers.rs`: `a_first_answer_that_ends_before_…`, `a_model_that_only_writes_white_space_…`; `law.rs` |
//! | white space took a whole answer inside a document, and was doubled at the seam | `servers.rs`: `white_space_inside_a_document_…`, `a_prefill_keeps_its_white_space_…` |

use overlock_llm::Discovery;
use overlock_llm::testing::{Behaviour, Fault, Manner, ScriptedServer};
use serde_json::{Value, json};

use crate::door::{Door, TestResponse, report, script, serve};
use crate::fake::FakeReply;
use crate::servers::{ask, check_prefills, check_whole, content_of, door, streamed};

/// An unconfigured gateway in front of a server whose answers are cut after this many bytes.
async fn door_with(manner: Manner, document: &str, breath: usize, does: &[Behaviour]) -> Door {
    let script = script(document, breath, does);
    let upstream = ScriptedServer::start_as(manner, script, &[]).await;
    let upstream = upstream.expect("a server");
    let address = serve(&upstream.base(), |settings| {
        settings.upstream.discovery = Discovery::Probe;
    })
    .await;
    Door { address, upstream }
}

/// Checks that the client gets the document for each behaviour of the server.
async fn check_comes_home(manner: Manner, document: &str, does: &[Behaviour]) {
    for streams in [false, true] {
        let door = door_with(manner, document, 300, does).await;
        let got = door.chat(&ask(streams), &[]).await;
        let (content, finish) = content_of(&got, streams);
        assert_eq!(content, document, "{manner:?} {streams}");
        assert_eq!(finish, "stop", "{manner:?} {streams}");
    }
}

#[tokio::test]
async fn the_response_format_is_not_deleted_from_prefill_calls() {
    let keeps_format = true;
    check_whole(Manner::LlamaCpp, keeps_format).await;
}

#[tokio::test]
async fn prefill_is_used_where_nothing_is_configured() {
    let document = report(2_000);
    for manner in [
        Manner::LlamaCpp,
        Manner::Vllm,
        Manner::Ollama,
        Manner::GoesOn,
    ] {
        let door = door(manner, &document).await;
        let got = door.chat(&ask(false), &[]).await;
        assert_eq!(
            content_of(&got, false),
            (document.clone(), "stop".to_owned())
        );
        let asked = door.upstream.asked();
        assert!(asked.len() > 2, "{manner:?}: {} calls", asked.len());
        for request in &asked[1..] {
            let messages = request["messages"].as_array().expect("messages");
            let last = messages.last().expect("a message");
            assert_eq!(last["role"], "assistant", "{manner:?}: {request}");
        }
    }
}

#[tokio::test]
async fn a_server_that_refuses_prefill_with_a_format_is_asked_in_another_way() {
    let document = report(2_000);
    check_comes_home(Manner::RefusingLlamaCpp, &document, &[Behaviour::AsAsked]).await;
}

#[tokio::test]
async fn a_document_that_violates_its_strict_schema_never_ends_with_stop() {
    for streams in [false, true] {
        let door = door(Manner::LlamaCpp, &report(2_000)).await;
        let mut request = ask(streams);
        let schema = json!({ "type": "object", "required": ["summary"] });
        request["response_format"]["json_schema"]["schema"] = schema;
        let got = door.chat(&request, &[]).await;
        let (_, finish) = content_of(&got, streams);
        assert_eq!(finish, "length", "{}", got.body);
        assert!(got.body.contains("schema-violation"), "{}", got.body);
    }
}

#[tokio::test]
async fn a_model_that_restarts_under_a_strict_grammar_is_asked_without_it() {
    let document = report(2_000);
    check_comes_home(Manner::BeginsAgain, &document, &[Behaviour::AsAsked]).await;
    // One that does not repeat the end either is asked under the grammar, and begins again. What
    // it repeats is never put after what there is.
    let does = [Behaviour::AsAsked, Behaviour::Apologises];
    let door = door_with(Manner::BeginsAgain, &document, 300, &does).await;
    let (content, finish) = streamed(&door.chat(&ask(true), &[]).await.body);
    assert_eq!(finish, "length");
    assert!(document.starts_with(&content), "{content}");
    // The first answer has no more than 450 bytes.
    assert!(content.len() > 450, "{content}");
    let asked = door.upstream.asked();
    let keeps_format = |request: &&Value| request.get("response_format").is_some();
    assert!(asked[1..].iter().any(|request| keeps_format(&request)));
}

#[tokio::test]
async fn an_echo_of_the_prefill_is_not_glued_in() {
    let keeps_format = true;
    check_whole(Manner::EchoingLlamaCpp, keeps_format).await;
}

/// The markers in the prompt of a call.
fn markers(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages");
    let last = messages.last().expect("a message")["content"].as_str();
    let lines = last.expect("text").lines();
    let lines = lines.filter(|line| line.starts_with("[[") && line.ends_with("]]"));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn markers_of_a_prompt_never_reach_a_document() {
    let whole = report(400);
    let (first, rest) = whole.split_at(200);
    let said = |text: &str| FakeReply::streamed_content(text, "stop");
    for streams in [false, true] {
        let begin = || {
            if streams {
                FakeReply::streamed_content(first, "length")
            } else {
                FakeReply::content(first, "length")
            }
        };
        // The same request has the same markers. An answer with a marker brings as much as none.
        let listening = Door::to_fake(vec![begin(), said("")]).await;
        let got = listening.chat(&ask(streams), &[]).await;
        let kept = content_of(&got, streams);
        assert_eq!(kept.1, "length");
        if streams {
            assert_eq!(kept.0, first);
        } else {
            let closed: Value = serde_json::from_str(&kept.0).expect("JSON");
            assert_eq!(closed["sections"].as_array().map(Vec::len), Some(2));
        }
        let markers = markers(&listening.upstream.requests()[1].body);
        assert!(markers.len() > 1, "{markers:?}");
        for marker in &markers {
            let leaks = [
                format!("{rest}\n{marker}"),
                format!("{first}{marker}{rest}"),
            ];
            for leak in leaks {
                let door = Door::to_fake(vec![begin(), said(&leak)]).await;
                let got = door.chat(&ask(streams), &[]).await;
                assert_eq!(content_of(&got, streams), kept, "{leak}");
            }
        }
    }
}

#[tokio::test]
async fn markers_of_a_prompt_never_reach_a_text() {
    let (first, rest) = (
        "In spring the river rose. In summer it",
        " fell. Then it was dry.",
    );
    let whole = [first, rest].concat();
    let message = json!({ "role": "user", "content": "Tell the story." });
    let said = |text: &str| FakeReply::streamed_content(text, "stop");
    for streams in [false, true] {
        let request = json!({ "model": "scripted", "stream": streams, "messages": [message] });
        let check = async |second: &str| {
            let begin = if streams {
                FakeReply::streamed_content(first, "length")
            } else {
                FakeReply::content(first, "length")
            };
            let door = Door::to_fake(vec![begin, said(second)]).await;
            let got = door
                .chat(&request, &[("x-overlock-continue", "text")])
                .await;
            (content_of(&got, streams), door.upstream.requests())
        };
        let (_, requests) = check("").await;
        let markers = markers(&requests[1].body);
        assert!(markers.len() > 1, "{markers:?}");
        for marker in &markers {
            let at_head = check(&format!("{marker}\n{whole}")).await.0;
            assert_eq!(at_head, (whole.clone(), "stop".to_owned()));
            for before in [
                format!("{whole}\n"),
                first.to_owned(),
                format!("{first} fell."),
            ] {
                let leak = format!("{before}{marker} Then it was dry.");
                // The text before the marker stays, but is not called complete.
                assert_eq!(
                    check(&leak).await.0,
                    (before, "length".to_owned()),
                    "{leak}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_document_beyond_4000_bytes_is_still_the_whole_prefill() {
    let document = report(6_000);
    let door = door(Manner::LlamaCpp, &document).await;
    let got = door.chat(&ask(false), &[]).await;
    let (content, finish) = content_of(&got, false);
    assert_eq!(
        (content.as_str(), finish.as_str()),
        (document.as_str(), "stop")
    );
    let asked = door.upstream.asked();
    check_prefills(&asked, &document, true);
    let longest = asked.last().expect("a call")["messages"].as_array();
    let longest = longest.and_then(|messages| messages.last()?["content"].as_str());
    assert!(longest.is_some_and(|prefill| prefill.len() > 5_000));
}

#[tokio::test]
async fn a_call_that_failed_is_not_made_again_unchanged_at_temperature_0() {
    let mut request = ask(false);
    request["temperature"] = json!(0);
    let first = FakeReply::content(&report(2_000)[..700], "length");
    let replies = vec![first, FakeReply::streamed_content("I am sorry.", "stop")];
    let door = Door::to_fake(replies).await;
    let got = door.chat(&request, &[]).await;
    assert_eq!(got.header("x-overlock-outcome"), "partial");
    let requests = door.upstream.requests();
    assert!(requests.len() > 2, "{} calls", requests.len());
    for (at, call) in requests.iter().enumerate() {
        let again = requests[at + 1..].iter().find(|it| it.text == call.text);
        assert!(again.is_none(), "sent twice: {}", call.text);
    }
}

#[tokio::test]
async fn a_model_in_a_loop_ends_as_repeating_after_a_few_calls() {
    let item = "{\"city\": \"Oslo\", \"country\": \"Norway\"}, ";
    let begin = "{\"cities\": [{\"city\": \"Bergen\", \"country\": \"Norway\"}, ";
    let document = format!("{begin}{}", item.repeat(2_000));
    for streams in [false, true] {
        let door = door_with(Manner::LlamaCpp, &document, 400, &[]).await;
        let got = door.chat(&ask(streams), &[]).await;
        let (content, finish) = content_of(&got, streams);
        assert_eq!(finish, "length");
        assert!(got.body.contains("repeating") || got.header("x-overlock-reason") == "repeating");
        assert!(
            door.upstream.calls() < 10,
            "{} calls",
            door.upstream.calls()
        );
        if !streams {
            let kept: Value = serde_json::from_str(&content).expect("JSON");
            assert_eq!(
                kept["cities"].as_array().map(Vec::len),
                Some(2),
                "{content}"
            );
        }
    }
}

#[tokio::test]
async fn a_table_with_equal_rows_is_no_loop() {
    let rows = vec!["[0, 0, \"none\"]"; 300].join(", ");
    let document = format!("{{\"rows\": [{rows}], \"end\": true}}");
    check_comes_home(Manner::LlamaCpp, &document, &[Behaviour::AsAsked]).await;
}

#[tokio::test]
async fn fenced_json_without_a_response_format_is_continued() {
    let document = format!("Here it is:\n\n```json\n{}\n```", report(2_000));
    for streams in [false, true] {
        let door = door_with(Manner::LlamaCpp, &document, 300, &[]).await;
        let mut request = ask(streams);
        request
            .as_object_mut()
            .expect("an object")
            .remove("response_format");
        let got = door.chat(&request, &[]).await;
        let (content, finish) = content_of(&got, streams);
        assert_eq!(
            (content.as_str(), finish.as_str()),
            (document.as_str(), "stop")
        );
    }
}

/// A request that demands the call of a tool with these parameters.
fn with_tool(streams: bool, parameters: &Value) -> Value {
    let mut request = ask(streams);
    let members = request.as_object_mut().expect("an object");
    members.remove("response_format");
    let function = json!({ "name": "save", "parameters": parameters });
    members.insert(
        "tools".to_owned(),
        json!([{ "type": "function", "function": function }]),
    );
    let choice = json!({ "type": "function", "function": { "name": "save" } });
    members.insert("tool_choice".to_owned(), choice);
    request
}

#[tokio::test]
async fn tool_arguments_are_continued_and_compared_with_the_parameters() {
    let document = report(2_000);
    for (required, finish) in [("sections", "tool_calls"), ("summary", "length")] {
        let parameters = json!({ "type": "object", "required": [required] });
        for streams in [false, true] {
            let door = door(Manner::LlamaCpp, &document).await;
            let got = door.chat(&with_tool(streams, &parameters), &[]).await;
            let (_, ended) = content_of(&got, streams);
            assert_eq!(ended, finish, "{}", got.body);
            let asked = door.upstream.asked();
            assert!(asked.len() > 2);
            for request in &asked[1..] {
                assert_eq!(request["tool_choice"], "none", "{request}");
            }
        }
    }
}

/// The arguments of the only tool call of an answer.
fn arguments_of(got: &TestResponse, streams: bool) -> String {
    let text = |message: &Value| {
        let arguments = &message["tool_calls"][0]["function"]["arguments"];
        arguments.as_str().unwrap_or_default().to_owned()
    };
    if !streams {
        return text(&got.json()["choices"][0]["message"]);
    }
    let events = got
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let events = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
    events.map(|it| text(&it["choices"][0]["delta"])).collect()
}

#[tokio::test]
async fn a_tool_call_that_ends_before_its_arguments_is_continued() {
    let document = report(2_000);
    let parameters = json!({ "type": "object", "required": ["sections"] });
    for fault in [Fault::WritesWhiteSpace, Fault::OnlyReasons] {
        for streams in [false, true] {
            let script = script(&document, 300, &[]);
            let faults = [Some(fault)];
            let upstream = ScriptedServer::start_as(Manner::LlamaCpp, script, &faults).await;
            let upstream = upstream.expect("a server");
            let address = serve(&upstream.base(), |settings| {
                settings.upstream.discovery = Discovery::Probe;
            })
            .await;
            let door = Door { address, upstream };
            let got = door.chat(&with_tool(streams, &parameters), &[]).await;
            assert_eq!(arguments_of(&got, streams).trim(), document, "{fault:?}");
            assert_eq!(content_of(&got, streams).1, "tool_calls", "{fault:?}");
        }
    }
}

#[tokio::test]
async fn the_window_of_the_running_model_is_not_exceeded() {
    for manner in [Manner::LlamaCpp, Manner::Vllm, Manner::OldLlamaCpp] {
        let door = door(manner, "[1]").await;
        let turn = |number: usize| {
            let text = "Überprüfe die Größenangaben. 天気. Погода. ".repeat(3);
            json!({ "role": "user", "content": format!("{number}: {text}") })
        };
        let mut request = ask(false);
        request["messages"] = (0..200).map(turn).collect();
        for _ in 0..2 {
            let got = door.chat(&request, &[]).await;
            assert_eq!(
                got.status,
                hyper::StatusCode::OK,
                "{manner:?}: {}",
                got.body
            );
        }
        let refused = door.upstream.refused_for_size();
        // A server without token counts rejects each of the two requests at most once.
        let most = if manner == Manner::LlamaCpp { 0 } else { 2 };
        assert!(refused <= most, "{manner:?}: {refused} were refused");
    }
}
