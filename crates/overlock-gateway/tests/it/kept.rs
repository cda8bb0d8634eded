use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use overlock_budget::{Model, Models, Prices};
use overlock_gateway::Settings;
use overlock_llm::testing::{eventually, within_patience};
use overlock_runs::Record;
use serde_json::{Value, json};

use crate::door::{Door, TestResponse, serve_with};
use crate::fake::{Fake, FakeReply};

const TEXT: [(&str, &str); 1] = [("x-overlock-continue", "text")];
const KEY: [(&str, &str); 1] = [("idempotency-key", "a-key")];
const OFF: [(&str, &str); 1] = [("x-overlock-continue", "off")];

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

/// A message with this finish reason, streamed or not.
fn message(stream: bool, message: &Value, finish: &Value) -> FakeReply {
    let mut choice = json!({ "index": 0, "finish_reason": finish });
    if stream {
        choice["delta"] = message.clone();
        FakeReply::stream(&[choice])
    } else {
        choice["message"] = message.clone();
        FakeReply::choices(&json!([choice]))
    }
}

fn content(stream: bool, text: &str, finish: &str) -> FakeReply {
    let said = json!({ "role": "assistant", "content": text });
    message(stream, &said, &json!(finish))
}

async fn door(replies: Vec<FakeReply>, record: Record, most_tokens: u64) -> Door<Fake> {
    let upstream = Fake::start(replies).await;
    let store = overlock_store::in_memory().expect("a store");
    let set = |settings: &mut Settings| {
        settings.record = record;
        settings.max_total_tokens = most_tokens;
    };
    let address = serve_with(&upstream.base, Some(store), set).await;
    Door { address, upstream }
}

/// The details of a run with its text, once it has ended.
async fn run_details(door: &Door<Fake>, id: &str) -> Value {
    let path = format!("/api/runs/{id}?text=true");
    let look = async || door.get(&path).await.json();
    eventually("the run to end", look, |run| run["ended_at"].is_number()).await
}

/// The latest run in the list, once it has ended.
async fn latest(door: &Door<Fake>) -> Value {
    let look = async || door.get("/api/runs").await.json()[0].clone();
    eventually("the run to end", look, |run| run["ended_at"].is_number()).await
}

/// The response and its run.
async fn run(
    replies: Vec<FakeReply>,
    request: &Value,
    headers: &[(&'static str, &str)],
    record: Record,
) -> (TestResponse, Value) {
    let door = door(replies, record, 65_536).await;
    let got = door.chat(request, headers).await;
    let id = got.header("x-overlock-run").to_owned();
    let shown = run_details(&door, &id).await;
    let listed = door.get("/api/runs").await.json();
    assert_eq!(listed[0]["reason"], shown["reason"], "{listed}");
    check_reported(&door, &got, &shown).await;
    (got, shown)
}

/// The header or the last comment of a stream, and the metrics, name the outcome of the record.
async fn check_reported(door: &Door<Fake>, got: &TestResponse, run: &Value) {
    let (outcome, reason) = (run["outcome"].as_str(), run["reason"].as_str());
    let mut reported = (
        got.header("x-overlock-outcome"),
        got.header("x-overlock-reason"),
    );
    if let Some((_, comment)) = got.body.split_once(": overlock ") {
        let comment = comment.lines().next().unwrap_or_default();
        let value = |name| {
            let mut values = comment.split(' ').filter_map(|it| it.strip_prefix(name));
            values.next().unwrap_or_default()
        };
        reported = (value("outcome="), value("reason="));
    }
    if reported == ("", "") {
        // An answer that ends in an error reports that instead.
        assert!(got.body.contains("\"error\""), "{}", got.body);
    } else {
        assert_eq!(reported.0, outcome.unwrap_or_default(), "{run}");
        assert_eq!(reported.1, reason.unwrap_or_default(), "{run}");
    }
    let label = format!("outcome=\"{}\"", outcome.unwrap_or_default());
    let metrics = || async { door.get("/metrics").await.body };
    eventually(&label, metrics, |metrics| metrics.contains(&label)).await;
}

const EVERY_WAY: [(bool, Record); 4] = [
    (false, Record::Full),
    (true, Record::Full),
    (false, Record::Metadata),
    (true, Record::Metadata),
];

#[track_caller]
fn check_end(run: &Value, outcome: &str, reason: Option<&str>) {
    assert_eq!(run["outcome"], outcome, "{run}");
    assert_eq!(run["reason"].as_str(), reason, "{run}");
}

/// Only full records contain the text of a step.
#[track_caller]
fn check_text(run: &Value, record: Record, place: &str, text: &str) {
    if record == Record::Full {
        let kept = run.pointer(place).and_then(Value::as_str);
        assert_eq!(kept, Some(text), "{run}");
    } else {
        assert!(!run.to_string().contains(text), "{run}");
    }
}

#[tokio::test]
async fn records_a_document_ended_by_a_content_filter() {
    let cut = "{\"a\": [1, 2, \"thr";
    for (stream, record) in EVERY_WAY {
        for request in [as_json, plain] {
            let replies = vec![content(stream, cut, "content_filter")];
            let (got, run) = run(replies, &request(stream), &[], record).await;
            assert!(got.body.contains("content_filter"), "{}", got.body);
            check_end(&run, "partial", Some("content-filter"));
            assert_eq!(run["cut"]["path"], "/a/2", "{run}");
            assert_eq!(run["bytes"], cut.len(), "{run}");
            let step = &run["steps"][0];
            assert_eq!(step["finish"], "content_filter", "{run}");
            assert!(step["budget"]["window"].as_u64() > Some(0), "{run}");
            check_text(&run, record, "/steps/0/result/added", cut);
        }
    }
}

#[tokio::test]
async fn records_a_text_ended_by_a_content_filter() {
    for (stream, record) in EVERY_WAY {
        let replies = vec![content(stream, "Once upon a", "content_filter")];
        let (_, details) = run(replies, &plain(stream), &[], record).await;
        check_end(&details, "partial", Some("content-filter"));
        assert_eq!(
            details["cut"],
            Value::Null,
            "a text has no places: {details}"
        );
        assert_eq!(details["bytes"], 11);
        assert_eq!(details["steps"][0]["plain_text"], true, "{details}");
        check_text(&details, record, "/steps/0/result/added", "Once upon a");

        let nothing = json!({ "role": "assistant", "content": null });
        let replies = vec![message(stream, &nothing, &json!("content_filter"))];
        let (_, details) = run(replies, &plain(stream), &[], record).await;
        check_end(&details, "failed", Some("content-filter"));
        assert_eq!(details["steps"][0]["result"]["failure"]["failure"], "empty");
    }
}

#[tokio::test]
async fn a_content_filter_in_a_continuation_is_not_a_normal_end() {
    let first = "It was a dark and stormy night; the rain fell";
    for (stream, record) in EVERY_WAY {
        let replies = vec![
            content(stream, first, "length"),
            content(true, " in torrents", "content_filter"),
        ];
        let (got, run) = run(replies, &plain(stream), &TEXT, record).await;
        assert!(got.body.contains("content_filter"), "{}", got.body);
        check_end(&run, "partial", Some("content-filter"));
        assert_eq!(run["steps"][1]["finish"], "content_filter", "{run}");
    }
}

#[tokio::test]
async fn records_the_sent_limits_and_not_the_planned_tokens() {
    for (stream, record) in EVERY_WAY {
        let replies = vec![
            content(stream, "{\"rows\": [\"North\", \"So", "length"),
            content(true, "\"North\", \"South\"]}", "stop"),
        ];
        for asked in [None, Some(300)] {
            let mut request = plain(stream);
            request["response_format"] = json!({ "type": "json_object" });
            if let Some(asked) = asked {
                request["max_tokens"] = json!(asked);
            }
            let (_, run) = run(replies.clone(), &request, &[], record).await;
            check_end(&run, "complete", None);
            let budgets = [0, 1].map(|step| &run["steps"][step]["budget"]);
            assert_eq!(
                budgets[0]["limit"],
                json!({ "asked": asked, "sent": asked })
            );
            // The limit of a continuation is negotiated for each call.
            let planned = &budgets[1]["adjusted_max_tokens"];
            let limit = json!({ "asked": asked, "sent": planned });
            assert_eq!(budgets[1]["limit"], limit, "{run}");
        }
    }
}

const NIGHT: [&str; 3] = [
    "It was a dark and stormy night; the rain fell in torrents",
    "the rain fell in torrents, except at occasional",
    " intervals, when it was checked.",
];

#[tokio::test]
async fn records_window_and_seam_of_every_call_for_a_text() {
    for (stream, record) in EVERY_WAY {
        let replies = vec![
            content(stream, NIGHT[0], "length"),
            content(true, NIGHT[1], "length"),
            content(true, NIGHT[2], "stop"),
        ];
        let (_, run) = run(replies, &plain(stream), &TEXT, record).await;
        check_end(&run, "complete", None);
        let steps = run["steps"].as_array().expect("steps");
        let seams: Vec<_> = steps.iter().map(|step| &step["result"]["seam"]).collect();
        assert_eq!(seams, ["first", "overlap", "end-to-end"], "{run}");
        assert_eq!(steps[1]["result"]["overlap"], 25, "{run}");
        let ends: Vec<_> = steps.iter().map(|step| &step["finish"]).collect();
        assert_eq!(ends, ["length", "length", "stop"], "{run}");
        for step in steps {
            assert_eq!(step["plain_text"], true, "{step}");
            assert!(step["budget"]["window"].as_u64() > Some(0), "{step}");
            assert!(step["tokens"].as_u64() > Some(0), "{step}");
        }
        let whole = [NIGHT[0], &NIGHT[1][25..], NIGHT[2]];
        let lengths: Vec<_> = whole.iter().map(|piece| piece.len()).collect();
        let added: Vec<_> = steps
            .iter()
            .map(|step| &step["result"]["added_bytes"])
            .collect();
        assert_eq!(added, lengths, "{run}");
        assert_eq!(run["bytes"], lengths.iter().sum::<usize>());
        for (number, piece) in whole.iter().enumerate() {
            check_text(
                &run,
                record,
                &format!("/steps/{number}/result/added"),
                piece,
            );
        }
    }
}

#[tokio::test]
async fn records_which_limit_a_text_reached() {
    // The upstream reports 5 tokens without a stream; with one it reports nothing.
    for (stream, limit) in [(false, 14), (true, 16)] {
        let replies = vec![
            content(stream, NIGHT[0], "length"),
            content(true, NIGHT[1], "length"),
        ];
        let door = door(replies, Record::Full, limit).await;
        let got = door.chat(&plain(stream), &TEXT).await;
        let run = run_details(&door, got.header("x-overlock-run")).await;
        check_end(&run, "partial", Some("token-limit"));
        let steps = run["steps"].as_array().expect("steps");
        assert_eq!(steps.len(), 2, "{run}");
    }
}

#[tokio::test]
async fn an_answer_cut_without_continuation_reached_no_gateway_limit() {
    for (stream, record) in EVERY_WAY {
        let replies = vec![content(stream, NIGHT[0], "length")];
        let (_, details) = run(replies, &plain(stream), &[], record).await;
        check_end(&details, "partial", Some("not-continued"));
        check_text(&details, record, "/steps/0/result/added", NIGHT[0]);

        let cut = "{\"rows\": [1, 2";
        let replies = vec![content(stream, cut, "length")];
        let (_, details) = run(replies, &as_json(stream), &OFF, record).await;
        check_end(&details, "partial", Some("not-continued"));
        assert_eq!(details["cut"]["path"], "/rows/1", "{details}");
        check_text(&details, record, "/steps/0/result/added", cut);
    }
}

#[tokio::test]
async fn records_that_the_model_declined() {
    let refusal = "I am sorry, I cannot help with that.";
    for (stream, record) in EVERY_WAY {
        for request in [as_json, plain] {
            let said = json!({ "role": "assistant", "content": null, "refusal": refusal });
            let replies = vec![message(stream, &said, &json!("stop"))];
            let (got, run) = run(replies, &request(stream), &[], record).await;
            assert!(got.body.contains(refusal), "{}", got.body);
            check_end(&run, "failed", Some("refusal"));
            let failure = &run["steps"][0]["result"]["failure"]["failure"];
            assert_eq!(failure, "declined", "{run}");
            check_text(&run, record, "/steps/0/refusal", refusal);
        }
    }
}

#[tokio::test]
async fn records_prose_instead_of_a_document() {
    let words = "I am sorry, but I cannot do that.";
    for (stream, record) in EVERY_WAY {
        for headers in [&[][..], &OFF] {
            let replies = vec![content(stream, words, "stop")];
            let (_, run) = run(replies, &as_json(stream), headers, record).await;
            check_end(&run, "failed", Some("no-json"));
            assert_eq!(run["iterations"], 1, "{run}");
            let failure = &run["steps"][0]["result"]["failure"]["failure"];
            assert_eq!(failure, "no-json", "{run}");
            check_text(&run, record, "/steps/0/result/raw", words);
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_one_document_is_reported_as_failed_everywhere() {
    for text in [
        "Sure, I can help with that.",
        "",
        "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}",
    ] {
        for (stream, record) in EVERY_WAY {
            for headers in [&[][..], &OFF, &KEY] {
                let replies = vec![content(stream, text, "stop")];
                let (got, run) = run(replies, &as_json(stream), headers, record).await;
                check_end(&run, "failed", Some("no-json"));
                assert!(
                    got.body.contains("\"finish_reason\":\"stop\""),
                    "{}",
                    got.body
                );
            }
        }
    }
}

#[tokio::test]
async fn an_answer_with_two_documents_in_fences_is_reported_as_it_is_recorded() {
    for text in [
        "```json\n{\"a\": 1}\n```\nor\n```json\n{\"a\": 2}\n```",
        "```json\n{\"a\": 1}\n```\n\n```json\n[2, 3, 4]\n```",
        "First:\n```json\n[1]\n```\nSecond:\n```json\n{\"a\": [1, 2, 3]}\n```\nDone.",
    ] {
        for (stream, record) in EVERY_WAY {
            // `run` makes the comparison.
            run(
                vec![content(stream, text, "stop")],
                &as_json(stream),
                &[],
                record,
            )
            .await;
        }
    }
}

#[tokio::test]
async fn a_replay_reports_the_outcome_of_the_first_answer() {
    for stream in [false, true] {
        let replies = vec![content(stream, "Sure.", "stop")];
        let door = door(replies, Record::Metadata, 65_536).await;
        let first = door.chat(&as_json(stream), &KEY).await;
        let run = run_details(&door, first.header("x-overlock-run")).await;
        check_end(&run, "failed", Some("no-json"));
        let replayed = door.chat(&as_json(stream), &KEY).await;
        check_reported(&door, &replayed, &run).await;
        assert_eq!(door.upstream.requests().len(), 1);
    }
}

#[tokio::test]
async fn metrics_count_prose_as_no_document() {
    let replies = vec![content(false, "No.", "stop")];
    let door = door(replies, Record::Metadata, 100).await;
    door.chat(&as_json(false), &[]).await;
    let figures = door.get("/metrics").await.body;
    let line = "overlock_answers_total{outcome=\"failed\"} 1";
    assert!(figures.lines().any(|details| details == line), "{figures}");
}

#[tokio::test]
async fn records_the_repairs_of_a_document() {
    let came = "Here:\n```json\n{'a': 1, 'b': [1, 2,]}\n```";
    for (stream, record) in EVERY_WAY {
        let replies = vec![content(stream, came, "stop")];
        let (_, run) = run(replies, &as_json(stream), &[], record).await;
        check_end(&run, "complete", None);
        let mended = &run["steps"][0]["mended"];
        let fixes = mended["fixes"].as_array().expect("fixes");
        assert_eq!(mended["count"], fixes.len(), "{run}");
        for (kind, offset) in [("prose", 0), ("fence", 6), ("quotes", 15)] {
            let fix = json!({ "kind": kind, "offset": offset });
            assert!(fixes.contains(&fix), "{kind}: {run}");
        }
        let comma = fixes.iter().any(|fix| fix["kind"] == "trailing-comma");
        assert!(comma, "{run}");
        check_text(&run, record, "/steps/0/mended/original", came);
    }
}

#[tokio::test]
async fn records_no_repairs_of_valid_json() {
    for (stream, record) in EVERY_WAY {
        let replies = vec![content(stream, " {\"a\": [1, 2]}\n", "stop")];
        let (_, run) = run(replies, &as_json(stream), &[], record).await;
        assert_eq!(run["steps"][0]["mended"], Value::Null, "{run}");
    }
}

#[tokio::test]
async fn records_a_fence_as_a_repair() {
    for (stream, record) in EVERY_WAY {
        let came = "```json\n{\"a\": [1, 2]}\n```";
        let replies = vec![content(stream, came, "stop")];
        let (_, run) = run(replies, &as_json(stream), &[], record).await;
        let mended = &run["steps"][0]["mended"];
        let fence = json!([{ "kind": "fence", "offset": 0 }]);
        assert_eq!(mended["fixes"], fence, "{run}");
        check_text(&run, record, "/steps/0/mended/original", came);
    }
}

#[tokio::test]
async fn records_a_complete_text_in_full_mode() {
    for (stream, record) in EVERY_WAY {
        let replies = vec![content(stream, "Hello! Ports are nice.", "stop")];
        let (_, run) = run(replies, &plain(stream), &[], record).await;
        check_end(&run, "complete", None);
        assert!(run["output_tokens"].as_u64() > Some(0), "{run}");
        if record == Record::Full {
            assert_eq!(run["bytes"], 22, "{run}");
            assert!(run["steps"][0]["budget"]["window"].as_u64() > Some(0));
            assert_eq!(run["has_text"], true);
        } else {
            assert_eq!(run["steps"], json!([]), "{run}");
            assert_eq!(run["bytes"], Value::Null, "unknown: {run}");
        }
        let text = "Hello! Ports are nice.";
        check_text(&run, record, "/steps/0/result/added", text);
    }
}

#[tokio::test]
async fn records_an_unknown_finish_reason_unchanged() {
    for (stream, record) in EVERY_WAY {
        let replies = vec![content(stream, "Once upon", "abort")];
        let (got, details) = run(replies, &plain(stream), &[], record).await;
        assert!(got.body.contains("\"abort\""), "{}", got.body);
        check_end(&details, "partial", Some("no-finish"));
        assert_eq!(details["steps"][0]["finish"], "abort", "{details}");
        check_text(&details, record, "/steps/0/result/added", "Once upon");

        let replies = vec![content(stream, "The end.", "eos")];
        let (_, details) = run(replies, &plain(stream), &[], record).await;
        check_end(&details, "complete", None);

        // A document shows whether it is complete.
        let replies = vec![content(stream, "{\"a\": 1}", "abort")];
        let (_, details) = run(replies, &as_json(stream), &[], record).await;
        check_end(&details, "complete", None);
    }
}

#[tokio::test]
async fn records_an_answer_without_finish_reason() {
    for (stream, record) in EVERY_WAY {
        let said = json!({ "role": "assistant", "content": "Once upon" });
        let replies = vec![message(stream, &said, &Value::Null)];
        let (_, run) = run(replies, &plain(stream), &[], record).await;
        check_end(&run, "partial", Some("no-finish"));
        assert_eq!(run["bytes"], 9, "{run}");
        check_text(&run, record, "/steps/0/result/added", "Once upon");
    }
}

#[tokio::test]
async fn records_a_legacy_function_call() {
    for (stream, record) in EVERY_WAY {
        let call = json!({ "name": "look", "arguments": "{\"at\": 1}" });
        let said = json!({ "role": "assistant", "content": null, "function_call": call });
        let replies = vec![message(stream, &said, &json!("function_call"))];
        let (_, run) = run(replies, &as_json(stream), &[], record).await;
        check_end(&run, "complete", None);
        assert_eq!(run["bytes"], Value::Null, "{run}");
    }
}

#[tokio::test]
async fn records_a_joined_tool_call() {
    for (stream, record) in EVERY_WAY {
        let call = json!({
            "index": 0, "id": "call_1", "type": "function",
            "function": { "name": "look", "arguments": "{\"rows\": [1, 2" },
        });
        let said = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        let replies = vec![
            message(stream, &said, &json!("length")),
            content(true, "{\"rows\": [1, 2, 3]}", "stop"),
        ];
        let (_, run) = run(replies, &plain(stream), &[], record).await;
        check_end(&run, "complete", None);
        let steps = run["steps"].as_array().expect("steps");
        assert_eq!(steps.len(), 2, "{run}");
        for step in steps {
            let part = json!({ "choice": 0, "tool_call": 0 });
            assert_eq!(step["part"], part, "{run}");
        }
    }
}

#[tokio::test]
async fn records_the_received_part_of_a_broken_stream() {
    for record in [Record::Full, Record::Metadata] {
        let said = FakeReply::streamed_content("Once upon a time", "stop");
        let (begin, _) = said.body.split_once("\"finish_reason\"").expect("an end");
        let body = begin.rsplit_once("data: ").expect("an event").0.to_owned();
        let (_, run) = run(vec![FakeReply { body, ..said }], &plain(true), &[], record).await;
        check_end(&run, "partial", Some("model-error"));
        assert_eq!(run["bytes"], 16, "{run}");
        assert!(run["steps"][0]["broken"].is_string(), "{run}");
        check_text(&run, record, "/steps/0/result/added", "Once upon a time");
    }
}

/// Sends a request, disconnects after this text, and returns the run.
async fn disconnect_after(
    replies: Vec<FakeReply>,
    request: &Value,
    headers: &[(&'static str, &str)],
    record: Record,
    until: &str,
) -> Value {
    let door = door(replies, record, 65_536).await;
    let mut builder = Request::post(format!("{}/v1/chat/completions", door.address))
        .header("content-type", "application/json");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let body = Full::new(Bytes::from(request.to_string()));
    let client = Client::builder(TokioExecutor::new()).build_http();
    let asked = client.request(builder.body(body).expect("a request"));
    let mut body = asked.await.expect("an answer").into_body();
    let mut heard = String::new();
    while !heard.contains(until) {
        let frame = within_patience(until, body.frame()).await;
        let frame = frame.expect("more").expect("a frame");
        if let Ok(data) = frame.into_data() {
            heard.push_str(&String::from_utf8_lossy(&data));
        }
    }
    drop((body, client));
    let run = latest(&door).await;
    run_details(&door, run["id"].as_str().expect("a name")).await
}

#[tokio::test]
async fn records_the_received_part_of_a_first_answer_after_a_disconnect() {
    for record in [Record::Full, Record::Metadata] {
        let text = "Once upon a time there was";
        let replies = vec![FakeReply::hanging(text)];
        let run = disconnect_after(replies, &plain(true), &[], record, "there was").await;
        check_end(&run, "partial", Some("cancelled"));
        assert_eq!(run["bytes"], text.len(), "{run}");
        for tokens in ["input_tokens", "output_tokens", "peak_tokens", "window"] {
            assert!(run[tokens].as_u64() > Some(0), "{tokens}: {run}");
        }
        check_text(&run, record, "/steps/0/result/added", text);

        let document = "{\"rows\": [\"one\", \"two\", \"thr";
        let replies = vec![FakeReply::hanging(document)];
        let run = disconnect_after(replies, &as_json(true), &[], record, "two").await;
        check_end(&run, "partial", Some("cancelled"));
        assert_eq!(run["cut"]["path"], "/rows/2", "{run}");
        assert_eq!(run["steps"][0]["cut"]["path"], "/rows/2", "{run}");
        assert!(run["output_tokens"].as_u64() > Some(0), "{run}");
        check_text(&run, record, "/steps/0/result/added", document);
    }
}

#[tokio::test]
async fn records_the_received_part_of_a_continuation_after_a_disconnect() {
    for record in [Record::Full, Record::Metadata] {
        let replies = vec![
            FakeReply::streamed_content("{\"rows\": [\"one\", \"tw", "length"),
            FakeReply::hanging("{\"rows\": [\"one\", \"two\", \"three\", \"fo"),
        ];
        let run = disconnect_after(replies, &as_json(true), &[], record, "three").await;
        check_end(&run, "partial", Some("cancelled"));
        assert_eq!(run["cut"]["path"], "/rows/1", "{run}");
        let failure = &run["steps"][1]["result"]["failure"]["failure"];
        assert_eq!(failure, "cancelled", "{run}");
        assert!(run["steps"][1]["tokens"].as_u64() > Some(0), "{run}");
        let coming = "{\"rows\": [\"one\", \"two\", \"three\", \"fo";
        check_text(&run, record, "/steps/1/result/raw", coming);

        // The end of a text is held back, since it may be a repetition.
        let longer = format!("{}{}", NIGHT[1], " and so on".repeat(100));
        let replies = vec![
            FakeReply::streamed_content(NIGHT[0], "length"),
            FakeReply::hanging(&longer),
        ];
        let run = disconnect_after(replies, &plain(true), &TEXT, record, "and so on").await;
        check_end(&run, "partial", Some("cancelled"));
        assert_eq!(run["bytes"], NIGHT[0].len(), "{run}");
        check_text(&run, record, "/steps/1/result/raw", &longer);
    }
}

#[tokio::test]
async fn records_all_choices_after_a_disconnect() {
    for record in [Record::Full, Record::Metadata] {
        let choice = |index: u64, text: &str, finish: Value| json!({ "index": index, "delta": { "content": text }, "finish_reason": finish });
        let other = "{\"rows\": [\"a\", \"b\"]}";
        let replies = vec![
            FakeReply::stream(&[
                choice(0, "{\"rows\": [\"one\", \"tw", Value::Null),
                choice(1, other, Value::Null),
                choice(0, "", json!("length")),
                choice(1, "", json!("stop")),
            ]),
            FakeReply::hanging("{\"rows\": [\"one\", \"two\", \"three\", \"fo"),
        ];
        let mut request = as_json(true);
        request["n"] = json!(2);
        let run = disconnect_after(replies, &request, &[], record, "three").await;
        check_end(&run, "partial", Some("cancelled"));
        let steps = run["steps"].as_array().expect("a list");
        let last = steps.last().expect("a step");
        assert_eq!(
            (steps.len(), &last["part"]["choice"]),
            (3, &json!(1)),
            "{run}"
        );
        check_text(&run, record, "/steps/2/result/added", other);
    }
}

fn with_prices(model: &str) -> Models {
    let prices = Prices {
        input: "1".parse().expect("a price"),
        output: "2".parse().expect("a price"),
        cached_input: None,
    };
    let known = Model {
        prices: Some(prices),
        ..Models::default().find(model).model
    };
    Models::with_own([(model.to_owned(), known)])
}

#[tokio::test]
async fn uncounted_tokens_are_unknown_and_not_zero() {
    let uncounted = |text: &str| {
        let said = content(false, text, "stop");
        let mut value: Value = serde_json::from_str(&said.body).expect("JSON");
        value["usage"].take();
        FakeReply::json(200, &value)
    };
    let check = async |text: &str, request: Value, record: Record, is_unknown: bool| {
        let upstream = Fake::start(vec![uncounted(text)]).await;
        let store = overlock_store::in_memory().expect("a store");
        let set = |settings: &mut Settings| {
            settings.record = record;
            settings.models = with_prices("gpt-4o");
        };
        let address = serve_with(&upstream.base, Some(store), set).await;
        let door = Door { address, upstream };
        let got = door.chat(&request, &[]).await;
        let run = run_details(&door, got.header("x-overlock-run")).await;
        assert_eq!(run["outcome"], "complete", "{run}");
        assert!(run["input_tokens"].as_u64() > Some(0), "{run}");
        assert!(run["peak_tokens"].as_u64() > Some(0), "{run}");
        assert_eq!(run["counted_by"], "us", "{run}");
        assert_eq!(run["output_unknown"] == true, is_unknown, "{run}");
        assert_eq!(run["output_tokens"] == 0, is_unknown, "{run}");
        // A partial cost is not shown as the cost.
        assert_eq!(run["cost"].is_null(), is_unknown, "{run}");
    };
    for (record, is_unknown) in [(Record::Metadata, true), (Record::Full, false)] {
        check("It does.", plain(false), record, is_unknown).await;
    }
    check("[1, 2]", as_json(false), Record::Full, false).await;
}

#[tokio::test]
async fn counts_the_prompt_after_a_disconnect_before_any_text() {
    let door = door(vec![FakeReply::never()], Record::Metadata, 65_536).await;
    let request = plain(false);
    let asked = door.chat(&request, &[]);
    tokio::select! {
        _ = asked => panic!("it is never answered"),
        () = door.upstream.until_called(1) => {}
    }
    let run = latest(&door).await;
    check_end(&run, "failed", Some("cancelled"));
    assert!(run["input_tokens"].as_u64() > Some(0), "{run}");
    assert_eq!(run["output_tokens"], 0, "{run}");
}

#[tokio::test]
async fn a_retry_continues_an_interrupted_text() {
    for stream in [false, true] {
        let replies = vec![
            content(stream, NIGHT[0], "length"),
            content(true, NIGHT[1], "length"),
            FakeReply::never(),
            content(true, NIGHT[2], "stop"),
        ];
        let door = door(replies, Record::Metadata, 65_536).await;
        let headers = [TEXT[0], ("idempotency-key", "the same")];
        let request = plain(stream);
        let asked = door.chat(&request, &headers);
        tokio::select! {
            _ = asked => panic!("it is never answered"),
            () = door.upstream.until_called(3) => {}
        }
        let got = door.chat_once_free(&request, &headers).await;
        assert!(got.status.is_success(), "{}", got.body);
        assert_eq!(door.upstream.requests().len(), 4, "nothing is asked twice");
        let run = run_details(&door, got.header("x-overlock-run")).await;
        assert_eq!(run["steps"].as_array().map(Vec::len), Some(3), "{run}");
        let whole = NIGHT[0].len() + NIGHT[1].len() - 25 + NIGHT[2].len();
        assert_eq!(run["bytes"], whole, "{run}");
        let details: String = if stream {
            let events = got
                .body
                .split("\n\n")
                .filter_map(|it| it.strip_prefix("data: "));
            let events = events.filter_map(|it| serde_json::from_str::<Value>(it).ok());
            events
                .map(|it| {
                    let text = it["choices"][0]["delta"]["content"].as_str();
                    text.unwrap_or_default().to_owned()
                })
                .collect()
        } else {
            let answer = got.json();
            answer["choices"][0]["message"]["content"]
                .as_str()
                .expect("a text")
                .to_owned()
        };
        assert_eq!(details, [NIGHT[0], &NIGHT[1][25..], NIGHT[2]].concat());
    }
}

#[tokio::test]
async fn records_filters_and_refusals_in_continuations() {
    let cut = "{\"rows\": [1, 2, ";
    let words = "I would rather not say more.";
    let declined = json!({ "role": "assistant", "refusal": words });
    for (stream, record) in EVERY_WAY {
        let filtered = content(true, "[1, 2, 3, ", "content_filter");
        let replies = vec![content(stream, cut, "length"), filtered];
        let (got, details) = run(replies, &as_json(stream), &[], record).await;
        check_end(&details, "partial", Some("content-filter"));
        assert_eq!(details["iterations"], 2, "{details}");
        assert!(got.body.contains("content_filter"), "{}", got.body);

        let mut replies = vec![content(stream, cut, "length")];
        replies.extend((0..3).map(|_| message(true, &declined, &json!("stop"))));
        let (_, details) = run(replies, &as_json(stream), &[], record).await;
        check_end(&details, "partial", Some("refusal"));
        assert_eq!(
            details["steps"][1]["result"]["failure"]["failure"],
            "declined"
        );
        check_text(&details, record, "/steps/1/refusal", words);
    }
}

/// A tool call with these arguments.
fn calling(stream: bool, arguments: &str, finish: &str) -> FakeReply {
    let function = json!({ "name": "note", "arguments": arguments });
    let call = json!({ "index": 0, "id": "one", "type": "function", "function": function });
    let said = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    message(stream, &said, &json!(finish))
}

#[tokio::test]
async fn records_a_complete_tool_call_in_full_mode() {
    for (stream, record) in EVERY_WAY {
        let replies = vec![calling(stream, "{\"a\": 1}", "tool_calls")];
        let (_, details) = run(replies, &plain(stream), &[], record).await;
        check_end(&details, "complete", None);
        check_text(&details, record, "/steps/0/result/added", "{\"a\": 1}");
        if record == Record::Full {
            assert_eq!(details["steps"][0]["part"]["tool_call"], 0, "{details}");
        }
    }
}

#[tokio::test]
async fn usage_covers_all_calls_even_failed_ones() {
    let replies = vec![
        calling(false, "{\"a\": [1, ", "length"),
        content(true, "no", "stop"),
        content(true, "no", "stop"),
        content(true, "no", "stop"),
    ];
    let (got, details) = run(replies, &plain(false), &[], Record::Full).await;
    let usage = &got.json()["usage"];
    assert_eq!(usage["prompt_tokens"], details["input_tokens"], "{details}");
    assert_eq!(
        usage["completion_tokens"], details["output_tokens"],
        "{details}"
    );
    assert!(details["iterations"].as_u64() > Some(1), "{details}");
}

#[tokio::test]
async fn finds_cancelled_runs() {
    let door = door(vec![FakeReply::never()], Record::Metadata, 65_536).await;
    let request = plain(false);
    let asked = door.chat(&request, &[]);
    tokio::select! {
        _ = asked => panic!("it is never answered"),
        () = door.upstream.until_called(1) => {}
    }
    let look = async || door.get("/api/runs?outcome=cancelled").await.json();
    let is_listed = |runs: &Value| runs[0]["reason"] == "cancelled";
    eventually("the run to be listed as cancelled", look, is_listed).await;
    let totals = door.get("/api/runs/totals").await.json();
    assert_eq!(totals["outcomes"], json!({ "cancelled": 1 }), "{totals}");
}
