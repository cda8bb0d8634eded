use std::sync::Arc;

use hyper::StatusCode;
use overlock_budget::{Model, Models, Prices};
use overlock_gateway::Settings;
use overlock_store::{EndedRun, NewRun, RunId, Store};
use serde_json::{Value, json};

use crate::door::{Door, serve_with};

/// More runs than one batch of a search.
const MANY: u64 = 2500;

fn id(number: u64) -> RunId {
    RunId::new(1_700_000_000_000 + number, number)
}

/// The end of a run: one in a hundred failed, the first is cut, and the second did not fit.
fn ending(number: u64) -> Value {
    let took = json!({
        "input_tokens": 100 + number, "output_tokens": 10, "window": 8192, "peak_tokens": 110,
    });
    let mut ending = match number {
        0 => json!({
            "outcome": "partial", "reason": "deadline",
            "cut": { "offset": 9, "path": "/harbours/7", "place": "string" },
        }),
        1 => json!({
            "outcome": "failed", "reason": "window",
            "unfit": {
                "message": "the messages are 70 tokens too long", "overflow": 70,
                "budget": {
                    "adjusted_max_tokens": 1, "input_token_count": 8262, "message_count": 1,
                    "memory_count": 0, "window": 8192, "margin": 0, "parts": [],
                },
            },
        }),
        number if number.is_multiple_of(100) => json!({
            "outcome": "failed", "reason": "model-error",
            "upstream_fault": { "status": 429, "message": "Quota of Größe 5 is used up" },
        }),
        _ => json!({ "outcome": "complete" }),
    };
    let members = ending.as_object_mut().expect("an object");
    members.extend(took.as_object().expect("an object").clone());
    ending
}

fn model(number: u64) -> &'static str {
    if number.is_multiple_of(2) {
        "gpt-4o"
    } else {
        "no-price"
    }
}

fn filled() -> Arc<dyn Store> {
    let store = overlock_store::in_memory().expect("a store");
    let written = store.transact(&mut |writes| {
        for number in 0..MANY {
            let id = id(number);
            let reported = writes.add_ended(&EndedRun {
                begun: NewRun {
                    id: &id,
                    at: 1_700_000_000_000 + number,
                    model: model(number),
                    request: "{}",
                    options: "{}",
                    conditions: "{}",
                },
                steps: &[],
                at: 1_700_000_000_500 + number,
                outcome: &ending(number).to_string(),
            });
            reported.expect("it is written");
        }
    });
    written.expect("they are written");
    store
}

async fn door() -> Door<()> {
    let price = |text: &str| text.parse().expect("a price");
    let prices = Prices {
        input: price("1000000"),
        output: price("0"),
        cached_input: None,
    };
    let with_prices = Model {
        prices: Some(prices),
        ..Models::default().find("gpt-4o").model
    };
    let set = |settings: &mut Settings| {
        settings.models = Models::with_own([("gpt-4o".to_owned(), with_prices)]);
    };
    let address = serve_with("http://127.0.0.1:1/v1", Some(filled()), set).await;
    let upstream = ();
    Door { address, upstream }
}

async fn totals(door: &Door<()>, query: &str) -> Value {
    door.get(&format!("/api/runs/totals{query}")).await.json()
}

#[tokio::test]
async fn sums_are_over_all_recorded_runs() {
    let door = door().await;
    let all = totals(&door, "").await;
    let failed = (MANY - 1) / 100;
    let did_not_fit = 1;
    let sum = |of: &dyn Fn(u64) -> bool| {
        (0..MANY)
            .filter(|it| of(it.to_owned()))
            .map(|it| 100 + it)
            .sum::<u64>()
    };
    assert_eq!(
        all,
        json!({
            "looked_at": MANY, "is_all": true, "runs": MANY,
            "outcomes": {
                "complete": MANY - failed - did_not_fit - 1, "failed": failed + did_not_fit,
                "partial": 1,
            },
            "input_tokens": sum(&|_| true), "output_tokens": 10 * MANY,
            "priced": MANY / 2, "unpriced": MANY / 2,
            "cost": { "amount": sum(&|it| it % 2 == 0).to_string(), "currency": "USD" },
        })
    );
    let some = totals(&door, "?outcome=failed,partial&q=GPT-4o").await;
    assert_eq!(some["outcomes"], json!({ "failed": failed, "partial": 1 }));
    assert_eq!(
        (&some["looked_at"], &some["runs"]),
        (&json!(MANY), &json!(failed + 1))
    );
    let none = totals(&door, "?q=nothing+like+that").await;
    assert_eq!((&none["runs"], none.get("cost")), (&json!(0), None));
}

#[tokio::test]
async fn finds_old_runs() {
    let door = door().await;
    for query in [
        "outcome=partial",
        "q=DEADLINE%20gpt-4o",
        &format!("q={}", id(0)),
        "q=deadline+partial",
        "q=deadl%E2%80%A6",
    ] {
        let found = door.get(&format!("/api/runs?{query}")).await.json();
        let ids: Vec<&str> = found
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|run| run["id"].as_str())
            .collect();
        assert_eq!(ids, [id(0).as_str()], "{query}");
    }
    let unfit = door.get("/api/runs?q=70+tokens+too+long").await.json();
    assert_eq!(unfit[0]["id"], id(1).as_str(), "{unfit}");
    let failed = totals(&door, "?q=model-error+429+quota").await;
    assert_eq!(failed["runs"], (MANY - 1) / 100, "{failed}");
    let found = door
        .get("/api/runs?limit=3&q=429%20gr%C3%B6%C3%9Fe")
        .await
        .json();
    assert_eq!(found.as_array().map(Vec::len), Some(3), "{found}");
    assert_eq!(found[0]["id"], id(2400).as_str());
}

#[tokio::test]
async fn pages_of_runs_have_no_gaps() {
    let door = door().await;
    for (filter, count) in [
        ("", MANY),
        ("&outcome=failed", 25),
        ("&q=no-price", MANY / 2),
    ] {
        let mut seen = Vec::new();
        let mut before = String::new();
        loop {
            let page = door
                .get(&format!("/api/runs?limit=700{filter}{before}"))
                .await
                .json();
            let page = page.as_array().expect("a list").clone();
            let Some(last) = page.last() else { break };
            before = format!("&before={}", last["id"].as_str().expect("a name"));
            seen.extend(
                page.iter()
                    .map(|run| run["id"].as_str().expect("a name").to_owned()),
            );
        }
        assert_eq!(seen.len() as u64, count, "{filter}");
        assert!(seen.is_sorted_by(|one, other| one > other), "{filter}");
    }
}

#[tokio::test]
async fn rejects_invalid_searches() {
    let door = door().await;
    let fits = format!("/api/runs?q={}", "%C3%A9".repeat(400));
    assert_eq!(door.get(&fits).await.status, StatusCode::OK);
    let long = format!("q={}", "x".repeat(401));
    for (query, parameter) in [
        ("outcome=whole", "outcome"),
        ("before=yesterday", "before"),
        ("q=%zz", "q"),
        ("q=%ff", "q"),
        (&*long, "q"),
    ] {
        let got = door.get(&format!("/api/runs?{query}")).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(got.json()["error"]["param"], parameter, "{query}");
    }
}
