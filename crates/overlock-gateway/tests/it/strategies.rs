//! Strategies are reordered by their success with a model.

use std::sync::Arc;

use hyper::StatusCode;
use overlock_gateway::Settings;
use overlock_llm::testing::{Behaviour, Fault, ScriptedServer, eventually};
use overlock_llm::{ServerInfo, Strategy};
use overlock_runs::Record;
use overlock_store::{RunSummary, Store, in_memory};
use serde_json::{Value, json};

use crate::door::{Door, report, script, serve_with};
use crate::servers::content_of;

/// A server whose model never repeats the end of its text, but writes the remainder when asked.
async fn never_repeats() -> ScriptedServer {
    let script = script(&report(1_500), 600, &[Behaviour::Apologises]);
    let upstream = ScriptedServer::start(script, &[]).await;
    upstream.expect("a server")
}

async fn door(
    upstream: ScriptedServer,
    store: Option<&Arc<dyn Store>>,
    set: impl FnOnce(&mut Settings),
) -> Door {
    let address = serve_with(&upstream.base(), store.cloned(), set).await;
    Door { address, upstream }
}

/// The strategy of a continuation. Only a remainder is a separate document and so keeps the response
/// format.
fn strategy(call: &Value) -> Strategy {
    match call.get("response_format") {
        Some(_) => Strategy::Remainder,
        None => Strategy::Overlap,
    }
}

/// Requests the report, and returns the strategies of its continuations.
async fn ask(door: &Door, streams: bool) -> Vec<Strategy> {
    let before = door.upstream.calls();
    let request = json!({
        "model": "scripted", "stream": streams,
        "response_format": { "type": "json_object" },
        "messages": [{ "role": "user", "content": "Write the report." }],
    });
    let got = door.chat(&request, &[]).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    let (content, finish) = content_of(&got, streams);
    let read = |text: &str| serde_json::from_str::<Value>(text).expect("valid");
    assert_eq!(read(&content), read(&report(1_500)));
    assert_eq!(finish, "stop");
    let asked = door.upstream.asked();
    let rest = asked[before..].iter().skip(1);
    let strategies: Vec<Strategy> = rest.map(strategy).collect();
    assert!(!strategies.is_empty(), "the answer is cut");
    strategies
}

/// The findings about strategies.
async fn findings(door: &Door) -> Vec<(String, String)> {
    let health = door.get("/health").await.json();
    let findings = health["findings"].as_array().expect("a list").clone();
    let text = |finding: &Value, name: &str| finding[name].as_str().expect("text").to_owned();
    findings
        .iter()
        .filter(|finding| finding["subject"] == "strategy")
        .map(|finding| (text(finding, "value"), text(finding, "source")))
        .collect()
}

#[tokio::test]
async fn a_strategy_that_failed_twice_is_not_tried_first_in_the_third_run() {
    for streams in [false, true] {
        let door = door(never_repeats().await, None, |_| {}).await;
        for run in 1..=2 {
            assert_eq!(findings(&door).await, [], "before run {run}");
            let strategies = ask(&door, streams).await;
            assert_eq!(
                strategies[..2],
                [Strategy::Overlap, Strategy::Remainder],
                "run {run}"
            );
        }
        let third = ask(&door, streams).await;
        assert!(
            third
                .iter()
                .all(|strategy| *strategy == Strategy::Remainder),
            "{third:?}"
        );
        let reported = findings(&door).await;
        let [(value, source)] = &reported[..] else {
            panic!("{reported:?}");
        };
        assert_eq!(value, "remainder, overlap for `scripted`");
        assert!(
            source.starts_with(
                "the last 3 runs: remainder worked in 3 of 3, overlap worked in 0 of 2; \
                 overlap failed twice in a row and is tried last for "
            ),
            "{source}"
        );
    }
}

#[tokio::test]
async fn configured_strategies_keep_their_order() {
    let set = vec![Strategy::Overlap, Strategy::Remainder];
    let own = set.clone();
    let upstream = never_repeats().await;
    let door = door(upstream, None, |settings| {
        settings.continuation.strategies = own;
    })
    .await;
    for _ in 0..3 {
        assert_eq!(ask(&door, false).await[..2], set);
    }
    assert_eq!(findings(&door).await, []);
}

/// Waits until a store has this many results of a server.
async fn stored(store: &Arc<dyn Store>, server: &str, count: usize) {
    let look = async || store.strategy_results(server).expect("results").len();
    eventually("the results in the store", look, |stored| *stored == count).await;
}

#[tokio::test]
async fn results_survive_a_restart_and_are_shared() {
    let store = in_memory().expect("a store");
    let door_1 = door(never_repeats().await, Some(&store), |_| {}).await;
    let server = ServerInfo::default().identity(&door_1.upstream.base());
    for run in 1..=2 {
        ask(&door_1, false).await;
        // One small write per run.
        stored(&store, &server, run).await;
    }
    let address = serve_with(&door_1.upstream.base(), Some(Arc::clone(&store)), |_| {}).await;
    let door_2 = Door {
        address,
        upstream: door_1.upstream,
    };
    let third = ask(&door_2, false).await;
    assert!(
        third
            .iter()
            .all(|strategy| *strategy == Strategy::Remainder),
        "{third:?}"
    );
    stored(&store, &server, 3).await;
    assert_eq!(findings(&door_2).await.len(), 1);
}

#[tokio::test]
async fn a_run_is_recorded_with_the_strategies_that_it_used() {
    for record in [Record::Full, Record::Metadata] {
        let store = in_memory().expect("a store");
        let set = |settings: &mut Settings| settings.record = record;
        let door = door(never_repeats().await, Some(&store), set).await;
        for run in 1..=3 {
            ask(&door, false).await;
            let look = async || store.latest(9).expect("runs");
            let is_kept = |runs: &Vec<RunSummary>| runs.len() == run;
            let runs = eventually("the run in the store", look, is_kept).await;
            let options: Value = serde_json::from_str(&runs[0].options).expect("JSON");
            let learnt = if run < 3 {
                ["overlap", "remainder"]
            } else {
                ["remainder", "overlap"]
            };
            assert_eq!(
                options["strategies"],
                json!(learnt),
                "{record:?}, run {run}"
            );
        }
    }
}

#[tokio::test]
async fn a_server_that_fails_says_nothing_about_strategies() {
    let store = in_memory().expect("a store");
    let faults = [None, Some(Fault::Status(500, None))].repeat(3);
    let script = script(&report(1_500), 600, &[Behaviour::AsAsked]);
    let upstream = ScriptedServer::start(script, &faults).await;
    let address = serve_with(
        &upstream.as_ref().expect("a server").base(),
        Some(Arc::clone(&store)),
        |settings| settings.upstream.retries.retries = 0,
    )
    .await;
    let door = Door {
        address,
        upstream: upstream.expect("a server"),
    };
    for _ in 0..3 {
        let request = json!({
            "model": "scripted", "response_format": { "type": "json_object" },
            "messages": [{ "role": "user", "content": "Write the report." }],
        });
        door.chat(&request, &[]).await;
    }
    assert_eq!(door.upstream.calls(), 6);
    assert_eq!(findings(&door).await, []);
    let server = ServerInfo::default().identity(&door.upstream.base());
    assert_eq!(store.strategy_results(&server).expect("results"), []);
}
