use hyper::StatusCode;
use overlock_gateway::Settings;
use overlock_llm::Strategy;
use overlock_llm::testing::Behaviour;
use serde_json::json;

use crate::door::{Door, ask, report, script};

#[tokio::test]
async fn a_cut_document_comes_back_whole() {
    let document = report(12_000);
    let door = Door::open(script(&document, 1500, &Behaviour::AS_ASKED), &[]).await;
    let got = door.chat(&ask(false), &[]).await;
    assert_eq!(got.status, StatusCode::OK);
    let answer = got.json();
    assert_eq!(answer["choices"][0]["message"]["content"], json!(document));
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(got.header("x-overlock-outcome"), "complete");
    let calls = door.upstream.asked().len();
    assert_eq!(calls, 7);
    assert_eq!(
        got.header("x-overlock-continuations"),
        (calls - 1).to_string()
    );
}

#[tokio::test]
async fn a_joined_document_that_contradicts_itself_is_flagged() {
    let rows: Vec<String> = (1..40)
        .map(|number| format!("{{\"nr\": {number}, \"name\": \"river {number}\"}}"))
        .collect();
    let document = |total| format!("{{\"rows\": [{}], \"total\": {total}}}", rows.join(", "));
    for (total, flag) in [(39, ""), (60, "count")] {
        let document = document(total);
        for stream in [false, true] {
            let door = Door::open(script(&document, 600, &Behaviour::AS_ASKED), &[]).await;
            let got = door.chat(&ask(stream), &[]).await;
            if !stream {
                assert_eq!(got.header("x-overlock-outcome"), "complete");
                assert_eq!(got.header("x-overlock-suspicious"), flag);
            }
            let is_flagged = got.body.contains(&format!(" suspicious={flag}\n"));
            assert_eq!(is_flagged, stream && !flag.is_empty(), "{}", got.body);
        }
    }
}

#[tokio::test]
async fn a_stubborn_model_gives_a_closed_part_that_is_called_cut() {
    let document = report(12_000);
    let stubborn = script(&document, 1500, &[Behaviour::Apologises]);
    let only_overlap =
        |settings: &mut Settings| settings.continuation.strategies = vec![Strategy::Overlap];
    let door = Door::open_with(stubborn, &[], only_overlap).await;
    let got = door.chat(&ask(false), &[]).await;
    let answer = got.json();
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(got.header("x-overlock-outcome"), "partial");
    let content = answer["choices"][0]["message"]["content"]
        .as_str()
        .expect("a text");
    let part: serde_json::Value = serde_json::from_str(content).expect("valid JSON");
    assert_eq!(part["sections"][0]["id"], "section-0");
}
