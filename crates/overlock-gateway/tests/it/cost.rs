//! Tokens paid relative to one uncut answer, and the reuse of prompt caches.

use serde_json::{Value, json};

use crate::door::{Door, ask, serve_with};
use crate::fake::{Fake, FakeReply};
use crate::schemas::{RIGHT, WRONG, with_schema};

const CUT: &str = r#"{"rows": ["one", "two", "three", "four", "five", "si"#;
const REST: &str = r#""five", "six"]}"#;

/// The same reply with additional members.
fn reporting(mut said: FakeReply, report: &Value) -> FakeReply {
    if let Ok(Value::Object(mut completion)) = serde_json::from_str(&said.body) {
        completion.extend(report.as_object().expect("an object").clone());
        said.body = Value::Object(completion).to_string();
        return said;
    }
    let mut last = json!({ "object": "chat.completion.chunk", "choices": [] });
    last["usage"] = report["usage"].clone();
    last["timings"] = report["timings"].clone();
    let end = format!("data: {last}\n\ndata: [DONE]");
    said.body = said.body.replace("data: [DONE]", &end);
    said
}

async fn door(replies: Vec<FakeReply>) -> Door<Fake> {
    let upstream = Fake::start(replies).await;
    let store = overlock_store::in_memory().expect("a store");
    let address = serve_with(&upstream.base, Some(store), |_| {}).await;
    Door { address, upstream }
}

/// The first answer is cut. One reply reports the cache in `timings`, the other in `usage`.
fn cut_and_rest(stream: bool) -> Vec<FakeReply> {
    let first = if stream {
        FakeReply::streamed_content(CUT, "length")
    } else {
        FakeReply::content(CUT, "length")
    };
    let first_report = json!({
        "usage": { "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 },
        "timings": { "cache_n": 30, "prompt_ms": 1.5 },
    });
    let rest_report = json!({
        "usage": {
            "prompt_tokens": 200, "completion_tokens": REST.len(), "total_tokens": 215,
            "prompt_tokens_details": { "cached_tokens": 60 },
        },
    });
    vec![
        reporting(first, &first_report),
        reporting(FakeReply::streamed_content(REST, "stop"), &rest_report),
    ]
}

#[tokio::test]
async fn the_cost_of_a_continued_answer_is_relative_to_one_uncut_answer() {
    for stream in [false, true] {
        let door = door(cut_and_rest(stream)).await;
        let got = door.chat(&ask(stream), &[]).await;
        let run = got.header("x-overlock-run");
        let shown = door.get(&format!("/api/runs/{run}")).await.json();
        let added = shown["steps"][1]["result"]["added_bytes"].as_u64();
        let added = added.expect("the rest is joined");
        // A token of the continuation is a byte. Its repeated text and its prompt are overhead.
        let overhead = 200 + REST.len() as u64 - added;
        let paid = 300 + 10 + REST.len() as u64;
        assert_eq!(shown["overhead_tokens"], overhead, "{shown}");
        let figure = |tokens: u64| f64::from(u32::try_from(tokens).expect("few tokens"));
        let ratio = figure(paid) / figure(paid - overhead);
        let reported = shown["cost_ratio"].as_f64().expect("a ratio");
        assert!(
            (reported - ratio).abs() < 0.001,
            "{reported} is not {ratio}"
        );
        assert_eq!(shown["cached_tokens"], 90, "{shown}");
        assert_eq!(shown["cache_hit_rate"], 0.3, "{shown}");
        let listed = door.get("/api/runs").await.json();
        let totals = door.get("/api/runs/totals").await.json();
        for name in ["cost_ratio", "cache_hit_rate"] {
            assert_eq!(listed[0][name], shown[name], "{listed}");
            assert_eq!(totals[name], shown[name], "{totals}");
        }
        let metrics = door.get("/metrics").await.body;
        for line in [
            "overlock_tokens_total{direction=\"input\",call=\"first\"} 100",
            "overlock_tokens_total{direction=\"output\",call=\"first\"} 10",
            "overlock_tokens_total{direction=\"input\",call=\"continuation\"} 200",
            "overlock_tokens_total{direction=\"output\",call=\"continuation\"} 15",
            "overlock_cached_input_tokens_total 90",
            &format!("overlock_overhead_tokens_total {overhead}"),
        ] {
            assert!(metrics.lines().any(|it| it == line), "{line}\n{metrics}");
        }
    }
}

#[tokio::test]
async fn a_correction_is_overhead_with_its_prompt_and_its_answer() {
    let report =
        |input, output| json!({ "usage": { "prompt_tokens": input, "completion_tokens": output } });
    let door = door(vec![
        reporting(FakeReply::content(WRONG, "stop"), &report(100, 10)),
        reporting(FakeReply::streamed_content(RIGHT, "stop"), &report(200, 15)),
    ])
    .await;
    let got = door.chat(&with_schema(false, true), &[]).await;
    let run = got.header("x-overlock-run");
    let shown = door.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(shown["steps"][1]["result"]["seam"], "corrected", "{shown}");
    assert_eq!(shown["overhead_tokens"], 215, "{shown}");
    let ratio = shown["cost_ratio"].as_f64().expect("a ratio");
    assert!((ratio - 325.0 / 110.0).abs() < 0.001, "{ratio}");
}

#[tokio::test]
async fn an_uncut_answer_has_cost_ratio_1() {
    for (content, is_reported) in [("It is.", true), ("{\"a\": 1}", true), ("It is.", false)] {
        let mut report = json!({
            "usage": { "prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42 },
        });
        if is_reported {
            report["timings"] = json!({ "cache_n": 0, "prompt_ms": 1.5 });
        }
        let door = door(vec![reporting(
            FakeReply::content(content, "stop"),
            &report,
        )])
        .await;
        let message = json!({ "role": "user", "content": "Is it?" });
        let request = json!({ "model": "gpt-4o", "messages": [message] });
        let got = door.chat(&request, &[]).await;
        let run = got.header("x-overlock-run");
        let shown = door.get(&format!("/api/runs/{run}")).await.json();
        assert_eq!(shown["cost_ratio"], 1.0, "{shown}");
        // What the provider does not report is left out, and no cache is reported as none.
        let cached = is_reported.then_some(0);
        assert_eq!(shown.get("cached_tokens"), cached.map(Value::from).as_ref());
        assert_eq!(shown.get("cache_hit_rate").is_some(), is_reported);
    }
}

/// The counted input tokens of the recorded first call.
async fn counted(door: &Door<Fake>, run: &str) -> (u64, String) {
    let shown = door.get(&format!("/api/runs/{run}")).await.json();
    let budget = &shown["steps"][0]["budget"];
    let tokens = budget["input_token_count"].as_u64().expect("a count");
    let name = budget["basis"]["counter"].as_str().expect("a counter");
    (tokens, name.to_owned())
}

#[tokio::test]
async fn a_model_that_bills_more_tokens_than_counted_is_counted_with_its_own_ratio() {
    let billed = |tokens: u64| {
        let usage = json!({ "prompt_tokens": tokens, "completion_tokens": 1 });
        reporting(FakeReply::content("{}", "stop"), &json!({ "usage": usage }))
    };
    // The request has 808 counted tokens without a factor.
    let door = door((0..9).map(|_| billed(1615)).collect()).await;
    let content = "river ".repeat(800);
    let request = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 100,
        "messages": [{ "role": "user", "content": content }],
    });
    for answer in 0..9 {
        let got = door.chat(&request, &[]).await;
        let (tokens, name) = counted(&door, got.header("x-overlock-run")).await;
        let factor = if answer < 8 { "1.2" } else { "2.0" };
        let scaled = format!("o200k_base in place of an unknown tokenizer, times {factor}");
        assert_eq!(name, scaled, "answer {answer}");
        let expected = if answer < 8 { 969 } else { 1616 };
        assert_eq!(tokens, expected, "answer {answer}");
    }
    let metrics = door.get("/metrics").await.body;
    let line = "overlock_billed_token_ratio{model=\"claude-sonnet-4-5\"} 2.0";
    assert!(metrics.lines().any(|it| it == line), "{metrics}");
}
