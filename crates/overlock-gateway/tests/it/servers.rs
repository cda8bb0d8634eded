//! Servers of known products: what is detected about them, and how their answers are continued.

use hyper::StatusCode;
use overlock_gateway::Settings;
use overlock_llm::testing::{Behaviour, Fault, Manner, ScriptedServer};
use overlock_llm::{Discovery, PrefillStyle, Strategy};
use serde_json::{Value, json};

use crate::door::{Door, TestResponse, report, script, serve};

/// An unconfigured gateway in front of a server with this behaviour.
pub(crate) async fn door(manner: Manner, document: &str) -> Door {
    door_with(manner, document, &[], |_| {}).await
}

pub(crate) fn ask(streams: bool) -> Value {
    json!({
        "model": "scripted", "stream": streams,
        "response_format": {
            "type": "json_schema",
            "json_schema": { "name": "report", "strict": true, "schema": { "type": "object" } },
        },
        "messages": [{ "role": "user", "content": "Write the report." }],
    })
}

/// The findings, without their sources.
async fn findings(door: &Door) -> Vec<(String, String)> {
    let health = door.get("/health").await.json();
    let findings = health["findings"].as_array().expect("a list").clone();
    let text = |finding: &Value, name: &str| finding[name].as_str().expect("text").to_owned();
    findings
        .iter()
        .map(|finding| (text(finding, "subject"), text(finding, "value")))
        .collect()
}

/// Every continuation is the caller's request with the document so far as the beginning of the
/// answer, and nothing else.
#[track_caller]
pub(crate) fn check_prefills(asked: &[Value], document: &str, keeps_format: bool) {
    assert!(asked.len() > 2, "{} calls", asked.len());
    let first = asked[0]["messages"].as_array().expect("messages");
    let mut longest = 0;
    for request in &asked[1..] {
        let messages = request["messages"].as_array().expect("messages");
        let (last, before) = messages.split_last().expect("a message");
        assert_eq!(before, &first[..], "{request}");
        assert_eq!(last["role"], "assistant");
        let begun = last["content"].as_str().expect("text");
        assert!(document.starts_with(begun), "{begun}");
        assert!(begun.len() > longest, "it grows from call to call");
        longest = begun.len();
        let format = request.get("response_format");
        assert_eq!(format.is_some(), keeps_format, "{format:?}");
        if keeps_format {
            assert_eq!(format, asked[0].get("response_format"));
        }
    }
}

pub(crate) async fn check_whole(manner: Manner, keeps_format: bool) {
    check_document(manner, &report(4_000), keeps_format).await;
}

async fn check_document(manner: Manner, document: &str, keeps_format: bool) {
    for streams in [false, true] {
        let door = door(manner, document).await;
        let got = door.chat(&ask(streams), &[]).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.body);
        let (content, finish) = content_of(&got, streams);
        assert_eq!(content, document, "{manner:?} {streams}");
        assert_eq!(finish, "stop", "{manner:?} {streams}");
        check_prefills(&door.upstream.asked(), document, keeps_format);
    }
}

/// The text of an answer, and the word for its end.
pub(crate) fn content_of(got: &TestResponse, streams: bool) -> (String, String) {
    if streams {
        return streamed(&got.body);
    }
    let answer = got.json();
    let choice = &answer["choices"][0];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&choice["message"]["content"]),
        text(&choice["finish_reason"]),
    )
}

/// The text of a stream, and the word for its end.
pub(crate) fn streamed(body: &str) -> (String, String) {
    let (mut content, mut finish) = (String::new(), String::new());
    for event in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(event).unwrap_or_default();
        let choice = &event["choices"][0];
        content += choice["delta"]["content"].as_str().unwrap_or_default();
        finish += choice["finish_reason"].as_str().unwrap_or_default();
    }
    (content, finish)
}

/// A text of this many sentences.
fn prose(sentences: usize) -> String {
    let sentence = |number| format!("In year {number} the river rose and fell. ");
    (0..sentences).map(sentence).collect::<String>() + "Then it was dry."
}

/// Has a text continued, and returns the calls.
async fn check_text(door: &Door, text: &str, streams: bool) -> Vec<Value> {
    let message = json!({ "role": "user", "content": "Tell the story." });
    let request = json!({ "model": "scripted", "stream": streams, "messages": [message] });
    let wants_text = [("x-overlock-continue", "text")];
    let got = door.chat(&request, &wants_text).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    let (content, finish) = content_of(&got, streams);
    assert_eq!((content.as_str(), finish.as_str()), (text, "stop"));
    door.upstream.asked()
}

#[tokio::test]
async fn a_cut_text_goes_on_from_a_prefill_without_a_word() {
    let text = prose(60);
    for manner in [Manner::LlamaCpp, Manner::EchoingLlamaCpp] {
        for streams in [false, true] {
            let door = door(manner, &text).await;
            let asked = check_text(&door, &text, streams).await;
            check_prefills(&asked, &text, false);
        }
    }
}

#[tokio::test]
async fn prefills_the_longest_end_of_a_text_beyond_the_window() {
    let text = prose(700);
    for streams in [false, true] {
        let script = script(&text, 6_000, &[Behaviour::AsAsked]);
        let upstream = ScriptedServer::start_as(Manner::LlamaCpp, script, &[]).await;
        let upstream = upstream.expect("a server");
        let set = |settings: &mut Settings| settings.upstream.discovery = Discovery::Ask;
        let address = serve(&upstream.base(), set).await;
        let door = Door { address, upstream };
        let asked = check_text(&door, &text, streams).await;
        assert_eq!(door.upstream.refused_for_size(), 0);
        let prefill = |request: &Value| {
            let last = request["messages"][1]["content"].as_str();
            last.expect("a prefill").to_owned()
        };
        let last = prefill(asked.last().expect("a call"));
        assert!(!text.starts_with(&last) && text.contains(&last), "{last}");
        assert!(last.len() > 4096, "{} bytes", last.len());
    }
}

#[tokio::test]
async fn continues_a_text_by_overlap_where_prefill_is_rejected() {
    let text = prose(30);
    for streams in [false, true] {
        let script = script(&text, 300, &[Behaviour::AsAsked]);
        let faults = [None, Some(Fault::RefusesPrefill)];
        let upstream = ScriptedServer::start(script, &faults).await;
        let upstream = upstream.expect("a server");
        let set = |settings: &mut Settings| {
            settings.upstream.prefill = Some(PrefillStyle::LastMessage);
        };
        let address = serve(&upstream.base(), set).await;
        let door = Door { address, upstream };
        let asked = check_text(&door, &text, streams).await;
        let roles = asked.iter().map(|request| {
            let messages = request["messages"].as_array().expect("messages");
            messages.last().expect("a message")["role"].clone()
        });
        let refused = roles.filter(|role| role == "assistant").count();
        assert_eq!(refused, 1, "the prefill is tried once");
    }
}

#[tokio::test]
async fn a_text_is_prefilled_only_where_that_is_the_first_strategy() {
    let text = prose(30);
    for (strategies, role) in [
        ([Strategy::Prefill, Strategy::Overlap], "assistant"),
        ([Strategy::Overlap, Strategy::Prefill], "user"),
    ] {
        let script = script(&text, 300, &[Behaviour::AsAsked]);
        let upstream = ScriptedServer::start(script, &[]).await;
        let upstream = upstream.expect("a server");
        let set = |settings: &mut Settings| {
            settings.upstream.prefill = Some(PrefillStyle::LastMessage);
            settings.continuation.strategies = strategies.to_vec();
        };
        let address = serve(&upstream.base(), set).await;
        let door = Door { address, upstream };
        let asked = check_text(&door, &text, false).await;
        assert!(asked.len() > 2, "{} calls", asked.len());
        for request in &asked[1..] {
            let messages = request["messages"].as_array().expect("messages");
            assert_eq!(messages.last().expect("a message")["role"], role);
        }
    }
}

/// An unconfigured gateway in front of a server whose first calls fail like this.
async fn door_with_faults(manner: Manner, document: &str, faults: &[Option<Fault>]) -> Door {
    door_with(manner, document, faults, |_| {}).await
}

async fn door_with(
    manner: Manner,
    document: &str,
    faults: &[Option<Fault>],
    set: impl FnOnce(&mut Settings),
) -> Door {
    let script = script(document, 300, &[Behaviour::AsAsked]);
    let upstream = ScriptedServer::start_as(manner, script, faults).await;
    let upstream = upstream.expect("a server");
    let address = serve(&upstream.base(), |settings| {
        settings.upstream.discovery = Discovery::Probe;
        set(settings);
    })
    .await;
    Door { address, upstream }
}

const BEFORE_DOCUMENT: [Fault; 2] = [Fault::WritesWhiteSpace, Fault::OnlyReasons];

#[tokio::test]
async fn a_first_answer_that_ends_before_its_document_is_asked_for_with_a_higher_limit() {
    let document = report(2_000);
    for (fault, manner) in BEFORE_DOCUMENT
        .into_iter()
        .flat_map(|fault| [Manner::LlamaCpp, Manner::Vllm, Manner::Unknown].map(|it| (fault, it)))
    {
        for streams in [false, true] {
            let faults = [Some(fault); 2];
            let door = door_with_faults(manner, &document, &faults).await;
            let mut request = ask(streams);
            request["max_tokens"] = json!(16);
            let got = door.chat(&request, &[]).await;
            let whole = (document.clone(), "stop".to_owned());
            assert_eq!(content_of(&got, streams), whole, "{fault:?} {manner:?}");
            let asked = door.upstream.asked();
            let limits: Vec<&Value> = asked.iter().map(|it| &it["max_tokens"]).collect();
            assert_eq!(limits[..4], [16, 64, 256, 16], "{fault:?} {manner:?}");
            for again in &asked[1..3] {
                for member in ["messages", "response_format"] {
                    assert_eq!(again[member], asked[0][member]);
                }
            }
        }
    }
}

#[tokio::test]
async fn white_space_inside_a_document_that_takes_a_whole_answer_raises_the_limit() {
    let document = report(2_000);
    let faults = [None, None, Some(Fault::WritesWhiteSpace)];
    for (manner, strategy) in [
        (Manner::LlamaCpp, Strategy::Prefill),
        (Manner::EchoingLlamaCpp, Strategy::Prefill),
        (Manner::Vllm, Strategy::Prefill),
        (Manner::Unknown, Strategy::Overlap),
        (Manner::Unknown, Strategy::Remainder),
    ] {
        for streams in [false, true] {
            let case = format!("{manner:?} {strategy:?} {streams}");
            let door = door_with(manner, &document, &faults, |settings| {
                settings.continuation.strategies = vec![strategy];
            })
            .await;
            let mut request = ask(streams);
            request["max_tokens"] = json!(16);
            let got = door.chat(&request, &[]).await;
            let whole = (document.clone(), "stop".to_owned());
            assert_eq!(content_of(&got, streams), whole, "{case}");
            let asked = door.upstream.asked();
            let limits: Vec<&Value> = asked.iter().map(|it| &it["max_tokens"]).collect();
            assert_eq!(limits[..6], [16, 16, 16, 64, 16, 16], "{case}");
            let members = match strategy {
                Strategy::Prefill => &["messages", "response_format"][..],
                // A longer answer may have a longer overlap.
                _ => &["response_format"],
            };
            for member in members {
                assert_eq!(asked[3].get(*member), asked[2].get(*member), "{case}");
            }
        }
    }
}

/// A grammar limits white space, and would reject a document with the white space of two answers.
#[tokio::test]
async fn a_prefill_keeps_its_white_space_where_the_grammar_continues_it() {
    let indent = "\n    \t \t \t \t \t \t \t \t ";
    let rows = (0..60).map(|row| format!("{indent}{row}"));
    let document = format!("{{\"rows\":[{}]}}", rows.collect::<Vec<_>>().join(","));
    for (manner, keeps) in [
        (Manner::LlamaCpp, true),
        (Manner::EchoingLlamaCpp, true),
        (Manner::Vllm, false),
    ] {
        for streams in [false, true] {
            let case = format!("{manner:?} {streams}");
            let door = door(manner, &document).await;
            let got = door.chat(&ask(streams), &[]).await;
            let whole = (document.clone(), "stop".to_owned());
            assert_eq!(content_of(&got, streams), whole, "{case}");
            let asked = door.upstream.asked();
            check_prefills(&asked, &document, keeps);
            let ends_with_space = asked[1..].iter().filter(|request| {
                let begun = request["messages"][1]["content"].as_str();
                begun.is_some_and(|begun| begun.ends_with(char::is_whitespace))
            });
            assert_eq!(ends_with_space.count() > 0, keeps, "{case}");
        }
    }
}

#[tokio::test]
async fn a_model_that_only_writes_white_space_is_asked_three_times() {
    for fault in BEFORE_DOCUMENT {
        for streams in [false, true] {
            let faults = [Some(fault); 50];
            let door = door_with_faults(Manner::LlamaCpp, &report(2_000), &faults).await;
            let got = door.chat(&ask(streams), &[]).await;
            let (content, finish) = content_of(&got, streams);
            assert_eq!((content.trim(), finish.as_str()), ("", "length"));
            assert_eq!(door.upstream.calls(), 3, "{fault:?}");
            let reason = got.header("x-overlock-reason") == "no-progress";
            assert!(
                reason || got.body.contains("reason=no-progress"),
                "{}",
                got.body
            );
        }
    }
}

#[tokio::test]
async fn equal_items_are_not_taken_for_a_repetition_after_a_prefill() {
    let item = json!({ "name": "Santos", "about": "a river in the south-south-west", "size": 200 });
    let document = json!({ "items": vec![item; 20] });
    let document = serde_json::to_string_pretty(&document).expect("JSON");
    check_document(Manner::LlamaCpp, &document, true).await;
    check_document(Manner::EchoingLlamaCpp, &document, true).await;
}

#[tokio::test]
async fn vllm_and_ollama_go_on_without_the_grammar_that_would_begin_again() {
    check_whole(Manner::Vllm, false).await;
    check_whole(Manner::Ollama, false).await;
}

#[tokio::test]
async fn lm_studio_and_unknown_servers_are_probed() {
    check_whole(Manner::LmStudio, true).await;
    check_whole(Manner::GoesOn, true).await;
}

#[tokio::test]
async fn asks_to_repeat_the_end_where_prefill_is_rejected() {
    let document = report(4_000);
    let door = door(Manner::Unknown, &document).await;
    let answer = door.chat(&ask(false), &[]).await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], json!(document));
    for request in &door.upstream.asked()[1..] {
        let messages = request["messages"].as_array().expect("messages");
        assert_eq!(messages.last().expect("a message")["role"], "user");
    }
}

#[tokio::test]
async fn reports_what_was_detected() {
    let window = |tokens: u64| format!("{tokens} tokens for `scripted`");
    let kept = "last-message, the response format is kept";
    for (manner, product, version, tokens, prefill) in [
        (
            Manner::LlamaCpp,
            "llama.cpp",
            Some("b6101-4ca5ac1"),
            4096,
            kept,
        ),
        (
            Manner::Vllm,
            "vLLM",
            Some("0.11.0"),
            4096,
            "continue, without the response format",
        ),
        (
            Manner::Ollama,
            "Ollama",
            Some("0.12.6"),
            16_384,
            "last-message, without the response format",
        ),
        (Manner::LmStudio, "LM Studio", None, 4096, kept),
    ] {
        let door = door(manner, &report(400)).await;
        door.chat(&ask(false), &[]).await;
        let mut expected = vec![("product", product.to_owned())];
        expected.extend(version.map(|version| ("version", version.to_owned())));
        expected.push(("context size", window(tokens)));
        expected.push(("prefill", prefill.to_owned()));
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(subject, value)| (subject.to_owned(), value))
            .collect();
        assert_eq!(findings(&door).await, expected);
    }
}

#[tokio::test]
async fn the_window_of_the_server_counts_and_not_that_of_the_table() {
    let door = door(Manner::LlamaCpp, &report(400)).await;
    let words = "word ".repeat(5_000);
    let mut request = ask(false);
    request["messages"][0]["content"] = json!(words);
    let got = door.chat(&request, &[]).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
    let reported = got.json()["error"]["message"].to_string();
    assert!(reported.contains("4096 tokens"), "{reported}");
    assert_eq!(door.upstream.calls(), 0);
}

/// A chat with many turns, each of which repeats a sentence.
fn long_chat(streams: bool, sentence: &str, turns: usize, times: usize) -> Value {
    let mut messages = vec![json!({ "role": "system", "content": "Answer briefly." })];
    for turn in 0..turns {
        let text = format!("{turn}: {}", sentence.repeat(times));
        messages.push(json!({ "role": "user", "content": text }));
        messages.push(json!({ "role": "assistant", "content": sentence }));
    }
    messages.push(json!({ "role": "user", "content": sentence }));
    json!({
        "model": "scripted", "stream": streams, "max_tokens": 200, "messages": messages,
        "response_format": { "type": "json_object" },
    })
}

const GERMAN: &str = "Überprüfe die Größenangaben für die südlichen Häuser. ";
const RUSSIAN: &str = "Расскажи подробно о погоде в северных городах страны. ";
const JAPANESE: &str = "北の町の天気について詳しく教えてください。";

fn message_count(request: &Value) -> usize {
    request["messages"].as_array().expect("messages").len()
}

/// A request is refused once, then answered with fewer messages; the window holds for the next.
async fn check_learns(manner: Manner, streams: bool) {
    let door = door(manner, "[1]").await;
    let request = long_chat(streams, RUSSIAN, 40, 4);
    let got = door.chat(&request, &[]).await;
    assert_eq!(got.status, StatusCode::OK, "{manner:?}: {}", got.body);
    let asked = door.upstream.asked();
    assert_eq!(asked.len(), 2, "{manner:?}");
    assert!(message_count(&asked[1]) < message_count(&asked[0]));
    assert!(
        message_count(&asked[1]) > 2,
        "no more is dropped than must be"
    );
    let dropped = message_count(&request) - message_count(&asked[1]);
    let reported = got.header("x-overlock-dropped-messages").to_owned();
    assert_eq!(reported, dropped.to_string(), "{manner:?}");

    let next = door.chat(&request, &[]).await;
    assert_eq!(next.status, StatusCode::OK, "{}", next.body);
    assert_eq!(door.upstream.refused_for_size(), 2, "{manner:?}");
    assert_eq!(door.upstream.calls(), 4);

    let health = door.get("/health").await.json();
    let findings = health["findings"].as_array().expect("a list");
    let refused = |it: &&Value| it["source"] == "a refused request";
    let learnt: Vec<&Value> = findings.iter().filter(refused).collect();
    let [window] = learnt[..] else {
        panic!("{health}");
    };
    assert_eq!(window["subject"], "context size");
    assert_eq!(window["value"], "4096 tokens for `scripted`");
}

#[tokio::test]
async fn a_refused_request_teaches_the_window_and_is_sent_with_fewer_messages() {
    for streams in [false, true] {
        check_learns(Manner::OldLlamaCpp, streams).await;
        check_learns(Manner::Vllm, streams).await;
    }
}

#[tokio::test]
async fn a_refused_request_does_not_change_how_others_are_counted() {
    for manner in [Manner::OldLlamaCpp, Manner::Vllm] {
        let english = long_chat(false, "The rain in the north. ", 30, 4);
        let sent = async |before: Option<&Value>| {
            let door = door(manner, "[1]").await;
            // The window is learned in both cases.
            door.chat(&long_chat(false, "The rain in the north. ", 200, 4), &[])
                .await;
            if let Some(before) = before {
                door.chat(before, &[]).await;
            }
            let got = door.chat(&english, &[]).await;
            assert_eq!(got.status, StatusCode::OK, "{manner:?}: {}", got.body);
            message_count(door.upstream.asked().last().expect("a call"))
        };
        let odd = long_chat(false, RUSSIAN, 40, 4);
        assert_eq!(sent(Some(&odd)).await, sent(None).await, "{manner:?}");
    }
}

#[tokio::test]
async fn llama_cpp_refuses_no_chat_for_its_size_in_any_language() {
    let door = door(Manner::LlamaCpp, "[1]").await;
    for sentence in [GERMAN, RUSSIAN, JAPANESE, "The rain in the north. "] {
        for (turns, times) in [(1, 1), (10, 4), (40, 4), (200, 2), (3, 16)] {
            for streams in [false, true] {
                let request = long_chat(streams, sentence, turns, times);
                let got = door.chat(&request, &[]).await;
                assert_eq!(got.status, StatusCode::OK, "{}", got.body);
            }
        }
    }
    assert_eq!(door.upstream.refused_for_size(), 0);
    let asked = door.upstream.asked();
    assert!(asked.iter().any(|request| message_count(request) > 40));
}

#[tokio::test]
async fn a_short_message_after_a_long_history_in_another_language_is_answered() {
    for manner in [Manner::LlamaCpp, Manner::OldLlamaCpp] {
        let door = door(manner, "[1]").await;
        let mut request = long_chat(false, RUSSIAN, 40, 4);
        let last = message_count(&request) - 1;
        // Alone it fits, but not if it counted as the history does.
        request["messages"][last]["content"] = json!("word ".repeat(2_200));
        let got = door.chat(&request, &[]).await;
        assert_eq!(got.status, StatusCode::OK, "{manner:?}: {}", got.body);
    }
}

#[tokio::test]
async fn a_message_that_can_never_fit_is_refused_with_figures() {
    for (manner, most_calls) in [
        (Manner::LlamaCpp, 0),
        (Manner::OldLlamaCpp, 2),
        (Manner::Vllm, 2),
    ] {
        for streams in [false, true] {
            let door = door(manner, "[1]").await;
            let mut request = long_chat(streams, GERMAN, 3, 1);
            let last = message_count(&request) - 1;
            request["messages"][last]["content"] = json!(RUSSIAN.repeat(200));
            let got = door.chat(&request, &[]).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{}", got.body);
            let error = &got.json()["error"];
            assert_eq!(error["code"], "context_length_exceeded", "{manner:?}");
            let reported = error["message"].as_str().expect("text");
            assert!(reported.contains("4096 tokens"), "{reported}");
            assert_eq!(door.upstream.calls(), most_calls, "{manner:?}: {reported}");
        }
    }
}

/// Has a short request answered whose answer outgrows the window by the server's count, but not by
/// the count here.
async fn check_outgrown(manner: Manner, document: &str, is_text: bool, streams: bool) {
    let script = script(document, 2_000, &[Behaviour::AsAsked]);
    let upstream = ScriptedServer::start_as(manner, script, &[]).await;
    let upstream = upstream.expect("a server");
    let set = |settings: &mut Settings| {
        settings.upstream.discovery = Discovery::Ask;
        settings.continuation.strategies = vec![Strategy::Prefill];
    };
    let address = serve(&upstream.base(), set).await;
    let door = Door { address, upstream };
    if is_text {
        check_text(&door, document, streams).await;
    } else {
        let got = door.chat(&ask(streams), &[]).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.body);
        let (content, finish) = content_of(&got, streams);
        assert_eq!((content.as_str(), finish.as_str()), (document, "stop"));
    }
    let asked = door.upstream.asked();
    for request in &asked[1..] {
        let messages = request["messages"].as_array().expect("messages");
        assert_eq!(messages.last().expect("a message")["role"], "assistant");
    }
    assert_eq!(door.upstream.refused_for_size(), 1, "{manner:?}");
}

#[tokio::test]
async fn a_prefill_that_is_too_large_by_the_servers_count_is_shortened() {
    let row = |number| format!("{number}{JAPANESE}");
    let rows: Vec<String> = (0..200).map(row).collect();
    let text = rows.concat();
    let document = json!({ "rows": rows }).to_string();
    for manner in [Manner::LlamaCpp, Manner::Vllm] {
        for streams in [false, true] {
            check_outgrown(manner, &document, false, streams).await;
            check_outgrown(manner, &text, true, streams).await;
        }
    }
}
