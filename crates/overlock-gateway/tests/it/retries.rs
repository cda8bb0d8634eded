use std::time::Duration;

use hyper::StatusCode;
use overlock_gateway::Settings;
use overlock_runs::Record;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::door::{Door, TestResponse, ask, serve_with};
use crate::fake::{Fake, FakeReply};

const DOCUMENT: &str = r#"{"rows": [1, 2, 3]}"#;

/// A gateway that records everything, with these upstream replies.
async fn door(replies: Vec<FakeReply>, set: impl FnOnce(&mut Settings)) -> Door<Fake> {
    let upstream = Fake::start(replies).await;
    let store = overlock_store::in_memory().expect("a store");
    let set = |settings: &mut Settings| {
        settings.record = Record::Full;
        set(settings);
    };
    let address = serve_with(&upstream.base, Some(store), set).await;
    Door { address, upstream }
}

fn answer(stream: bool) -> FakeReply {
    if stream {
        FakeReply::streamed_content(DOCUMENT, "stop")
    } else {
        FakeReply::content(DOCUMENT, "stop")
    }
}

fn failing(status: u16) -> FakeReply {
    FakeReply::json(status, &json!({ "error": { "message": "unwell" } }))
}

/// The text that a client got.
fn text(got: &TestResponse, stream: bool) -> String {
    if !stream {
        let content = got.json()["choices"][0]["message"]["content"].clone();
        return content.as_str().unwrap_or_default().to_owned();
    }
    let events = got
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let events = events.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    events
        .filter_map(|event| {
            let content = &event["choices"][0]["delta"]["content"];
            content.as_str().map(str::to_owned)
        })
        .collect()
}

/// The record of the only run.
async fn recorded(door: &Door<Fake>, got: &TestResponse) -> Value {
    let id = got.header("x-overlock-run");
    door.get(&format!("/api/runs/{id}")).await.json()
}

/// Checks that a temporary failure of a first call changes only the time of arrival and the record,
/// as long as retries are left.
async fn check_retried(statuses: &[u16], stream: bool, has_key: bool) {
    let mut replies: Vec<FakeReply> = statuses.iter().map(|status| failing(*status)).collect();
    replies.push(answer(stream));
    let door = door(replies, |_| {}).await;
    let key = [("idempotency-key", "one")];
    let headers = if has_key { &key[..] } else { &[] };
    let got = door.chat(&ask(stream), headers).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    assert_eq!(text(&got, stream), DOCUMENT);
    let requests = door.upstream.requests();
    assert_eq!(requests.len(), statuses.len() + 1);
    assert!(requests.iter().all(|call| call.text == requests[0].text));
    let run = recorded(&door, &got).await;
    let retried = &run["steps"][0]["retried"];
    if statuses.is_empty() {
        assert_eq!(*retried, Value::Null, "{run}");
    } else {
        assert_eq!(retried["times"], statuses.len(), "{run}");
        let metrics = door.get("/metrics").await.body;
        let counted = metrics
            .lines()
            .filter_map(|line| line.strip_prefix("overlock_upstream_errors_total{"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
        assert_eq!(counted.sum::<usize>(), statuses.len(), "{metrics}");
    }
    // A replay makes no call.
    if has_key {
        let again = door.chat(&ask(stream), headers).await;
        assert_eq!(text(&again, stream), DOCUMENT);
        assert_eq!(door.upstream.requests().len(), requests.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_first_call_is_retried_like_any_other(
        statuses in prop::collection::vec(
            prop::sample::select(vec![408_u16, 409, 425, 429, 500, 502, 503, 504, 529]),
            0..=4,
        ),
        stream: bool,
        has_key: bool,
    ) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(check_retried(&statuses, stream, has_key));
    }
}

#[tokio::test]
async fn reports_the_error_after_the_last_retry() {
    for stream in [false, true] {
        let door = door(vec![failing(503)], |settings| {
            settings.upstream.retries.retries = 2;
        });
        let door = door.await;
        let got = door.chat(&ask(stream), &[]).await;
        assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(got.json()["error"]["message"], "unwell");
        assert_eq!(door.upstream.requests().len(), 3);
        let fault = &door.get("/api/runs").await.json()[0]["upstream_fault"];
        assert_eq!(
            (&fault["status"], &fault["retried"]["times"]),
            (&json!(503), &json!(2))
        );
    }
}

#[tokio::test]
async fn does_not_retry_permanent_errors_and_begun_answers() {
    let once = [
        (failing(400), false),
        (failing(401), true),
        (FakeReply::broken(DOCUMENT), false),
        (FakeReply::breaking(r#"{"rows": [1, "#), true),
    ];
    for (reply, stream) in once {
        for key in [&[][..], &[("idempotency-key", "one")]] {
            let replies = vec![reply.clone(), failing(401)];
            let door = door(replies, |_| {}).await;
            door.chat(&ask(stream), key).await;
            let first = &door.upstream.requests()[0];
            let same = door.upstream.requests();
            let same = same.iter().filter(|call| call.text == first.text);
            assert_eq!(same.count(), 1);
        }
    }
}

#[tokio::test]
async fn does_not_wait_beyond_the_deadline() {
    let mut later = failing(503);
    later.headers.push(("retry-after", "30".to_owned()));
    let set = |settings: &mut Settings| settings.limits.run_time = Duration::from_secs(20);
    let door = door(vec![later], set).await;
    let asked = tokio::time::Instant::now();
    let got = door.chat(&ask(false), &[]).await;
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(got.header("retry-after"), "30");
    assert_eq!(door.upstream.requests().len(), 1);
    assert!(asked.elapsed() < Duration::from_secs(20));
}
