use std::sync::Arc;

use hyper::StatusCode;
use overlock_budget::{Model, Models, Prices};
use overlock_gateway::Settings;
use overlock_runs::Record;
use overlock_store::RunId;
use serde_json::{Value, json};

use crate::door::{Door, serve_with};
use crate::events::{EventStream, SseEvent, names};
use crate::stage::{Play, Playing, Reply, Stage};

/// A gateway with the store of pipelines of other processes.
async fn door(stage: &Stage, record: Record) -> Door<()> {
    let set = |settings: &mut Settings| settings.record = record;
    Door {
        address: serve_with("http://127.0.0.1:1/v1", Some(stage.store()), set).await,
        upstream: (),
    }
}

/// A pipeline without loops.
pub(crate) const ANSWER: Play<'_> = Play {
    example: "answer_from_code.yaml",
    question: "Who closes an order for good?",
    max_context_tokens: None,
    first_model: None,
    history: &[],
    replies: &[Reply::Says("`Orders.Close` does (Orders.cs).")],
};

fn answer(stage: &Stage) -> Playing {
    stage.play(&ANSWER)
}

async fn listed(door: &Door<()>, id: &RunId) -> Value {
    let runs = door.get("/api/runs").await.json();
    let mut runs = runs.as_array().expect("a list").iter();
    let run = runs.find(|run| run["id"] == id.as_str());
    run.expect("it is in the list").clone()
}

async fn listen(door: &Door<()>, id: &RunId, after: Option<&str>) -> EventStream {
    EventStream::after(&door.address, &format!("/api/runs/{id}/events"), after).await
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_the_current_state_of_a_run_of_another_process() {
    let stage = Stage::new();
    let door = door(&stage, Record::Metadata).await;
    let check = async |id: &RunId, outcome: Value, is_left: bool| {
        let shown = door.get(&format!("/api/runs/{id}")).await.json();
        for run in [listed(&door, id).await, shown] {
            assert_eq!(run["pipeline"], "answer_from_code", "{run}");
            assert_eq!(run["outcome"], outcome, "{run}");
            assert_eq!(run["ended_at"].is_null(), outcome.is_null(), "{run}");
            assert_eq!(run["interrupted"] == true, is_left, "{run}");
        }
    };
    let playing = answer(&stage);
    let id = playing.id.clone();
    check(&id, Value::Null, false).await;
    playing.kill();
    check(&id, Value::Null, true).await;
    let playing = stage.resume(&id, ANSWER.replies);
    check(&id, Value::Null, false).await;
    playing.cancel();
    check(&id, json!("cancelled"), false).await;
    // A resumed run loses the end it had.
    let playing = stage.resume(&id, ANSWER.replies);
    check(&id, Value::Null, false).await;
    playing.end();
    check(&id, json!("complete"), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_the_events_of_a_pipeline_of_another_process() {
    let stage = Stage::new();
    let door = door(&stage, Record::Full).await;
    let playing = answer(&stage);
    let id = playing.id.clone();
    let mut one = listen(&door, &id, None).await;
    let mut received = Vec::new();
    for step in ["search", "expand", "fetch", "manage_budget"] {
        received.extend(one.until("step").await);
        assert_eq!(last(&received).data["step_id"], step);
    }
    assert_eq!(received[0].name, "began");
    assert_eq!(received[0].data["pipeline"], "answer_from_code");
    // No event is sent before the model answers.
    playing.release(1);
    received.extend(one.until("ended").await);
    playing.end();
    assert_eq!(
        names(&received)[5..],
        ["answer", "step", "step", "ended"],
        "{received:?}"
    );
    assert_eq!(received[5].data["step_id"], "answer");
    assert!(one.next().await.is_none());

    let shown = door.get(&format!("/api/runs/{id}?text=true")).await.json();
    let steps = received.iter().filter(|received| received.name == "step");
    let steps: Vec<Value> = steps.map(without_run).collect();
    assert_eq!(json!(steps), shown["trace"]);
    let ended = &last(&received).data;
    for name in ["outcome", "ended_at", "input_tokens", "output_tokens"] {
        assert_eq!(ended[name], shown[name], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pipeline_events_have_no_text_with_metadata_only() {
    let stage = Stage::new();
    let door = door(&stage, Record::Metadata).await;
    let playing = answer(&stage);
    let id = playing.id.clone();
    playing.end();
    let received = listen(&door, &id, None).await.until("ended").await;
    let text = format!("{received:?}");
    for said in ["for good", "does (Orders.cs)"] {
        assert!(!text.contains(said), "{said}: {text}");
    }
    let shown = door.get(&format!("/api/runs/{id}?text=true")).await;
    assert!(!shown.body.contains("for good"), "{}", shown.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnected_subscriber_learns_that_the_run_was_resumed() {
    let stage = Stage::new();
    let door = door(&stage, Record::Full).await;
    let playing = answer(&stage);
    let id = playing.id.clone();
    let mut one = listen(&door, &id, None).await;
    while one.next().await.expect("an event").data["step_id"] != "manage_budget" {}
    playing.kill();
    // The stream ends at an interruption.
    assert_eq!(names(&one.until("interrupted").await), ["interrupted"]);
    assert!(one.next().await.is_none());
    let again = listen(&door, &id, Some("4"))
        .await
        .until("interrupted")
        .await;
    assert_eq!(names(&again), ["interrupted"]);

    let playing = stage.resume(&id, ANSWER.replies);
    let mut one = listen(&door, &id, Some("4")).await;
    let began = one.next().await.expect("an event");
    assert_eq!(
        (&*began.name, &began.data["interrupted"]),
        ("began", &Value::Null)
    );
    playing.end();
    let rest = one.until("ended").await;
    assert_eq!(names(&rest), ["resumed", "answer", "step", "step", "ended"]);
    assert_eq!(rest[0].id.as_deref(), Some("5"));
    assert_eq!(rest[0].data["ended_at"], Value::Null, "it was killed");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_subscribers_of_a_run_get_the_same_events() {
    let stage = Stage::new();
    let door = Arc::new(door(&stage, Record::Full).await);
    let playing = stage.play(&LOOP);
    let id = playing.id.clone();
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let (door, id) = (Arc::clone(&door), id.clone());
            tokio::spawn(async move {
                let received = listen(&door, &id, None).await.until("ended").await;
                received.iter().map(without_run).collect::<Vec<Value>>()
            })
        })
        .collect();
    playing.end();
    let mut requests = Vec::new();
    for reader in readers {
        requests.push(reader.await.expect("no panic"));
    }
    assert!(
        requests.iter().all(|received| *received == requests[0]),
        "{requests:?}"
    );
    let over = requests[0]
        .iter()
        .filter(|received| received["decision"] == "on_over");
    assert_eq!(over.count(), 1, "{:?}", requests[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_each_call_of_a_resumed_pipeline_once() {
    let stage = Stage::new();
    let door = priced_door(&stage).await;
    let whole = stage.play(&LOOP);
    let interrupted = stage.play(&LOOP);
    let ids = [whole.id.clone(), interrupted.id.clone()];
    whole.end();
    // After three answers, the last one cut.
    interrupted.release(3);
    let mut one = listen(&door, &ids[1], None).await;
    for _ in 0..3 {
        one.until("answer").await;
    }
    interrupted.kill();
    stage.resume(&ids[1], &LOOP.replies[3..]).end();
    for id in ids {
        let shown = door.get(&format!("/api/runs/{id}")).await.json();
        // Four calls with 400 input tokens each, and their answers.
        assert_eq!(shown["input_tokens"], 1600, "{shown}");
        let output = shown["output_tokens"].as_u64().expect("a number");
        let millionths = 1600 + 1000 * output;
        assert!((10_000..100_000).contains(&millionths), "{millionths}");
        let amount = format!("0.{millionths:06}");
        let amount = amount.trim_end_matches('0');
        let cost = json!({ "amount": amount, "currency": "USD" });
        assert_eq!(shown["cost"], cost, "{shown}");
        assert_eq!(listed(&door, &id).await["cost"], cost);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_run_has_tokens_window_and_cost_of_the_same_calls() {
    let stage = Stage::new();
    let door = priced_door(&stage).await;
    let check = async |id: &RunId, calls: u64| {
        let shown = door.get(&format!("/api/runs/{id}")).await.json();
        let listed = listed(&door, id).await;
        for run in [&shown, &listed] {
            let number = |name: &str| run[name].as_u64().expect("a number");
            assert_eq!(number("input_tokens"), 400 * calls, "{run}");
            let amount = format!(
                "0.{:06}",
                number("input_tokens") + 1000 * number("output_tokens")
            );
            assert_eq!(run["cost"]["amount"], amount.trim_end_matches('0'), "{run}");
            assert!(
                number("peak_tokens") > 400 && number("peak_tokens") < 800,
                "{run}"
            );
            assert_eq!(number("window"), 128_000, "{run}");
            assert_eq!(
                number("iterations"),
                shown["trace"].as_array().expect("a list").len() as u64
            );
        }
        (shown, listed)
    };
    let playing = stage.play(&LOOP);
    let id = playing.id.clone();
    // After three answers, the last one cut: its step is unfinished.
    playing.release(3);
    let mut one = listen(&door, &id, None).await;
    for _ in 0..3 {
        one.until("answer").await;
    }
    let (running, _) = check(&id, 3).await;
    assert_eq!(running["stopped_at"], Value::Null, "{running}");
    playing.kill();
    let left = one.until("interrupted").await;
    let (shown, listed) = check(&id, 3).await;
    let event = &left.last().expect("an event").data;
    for run in [&shown, &listed, event] {
        assert_eq!(run["interrupted"], true, "{run}");
        assert_eq!(
            run["stopped_at"]["step_id"],
            shown["trace"]
                .as_array()
                .expect("a list")
                .last()
                .expect("a step")["next"]
        );
        assert_eq!(run["last_at"], shown["last_at"], "{run}");
        assert_eq!(run["iterations"], shown["iterations"], "{run}");
        assert!(run["last_at"].as_u64() >= run["began_at"].as_u64(), "{run}");
    }
    let playing = stage.resume(&id, &LOOP.replies[3..]);
    let (resumed, _) = check(&id, 3).await;
    assert_eq!(resumed["interrupted"], Value::Null, "{resumed}");
    playing.end();
    let (ended, _) = check(&id, 4).await;
    assert_eq!(ended["outcome"], "complete");
    let mut step = ended["trace"].as_array().expect("a list").iter();
    let step = step
        .rfind(|event| event["cost"].is_object())
        .expect("a call");
    let path = format!("/api/runs/{id}/steps/{}", step["number"]);
    assert_eq!(door.get(&path).await.json()["event"]["cost"], step["cost"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_the_usage_of_every_answer_in_a_step() {
    let stage = Stage::new();
    let door = priced_door(&stage).await;
    let playing = stage.play(&LOOP);
    let id = playing.id.clone();
    playing.release(3);
    let mut one = listen(&door, &id, None).await;
    let (mut input, mut output) = (0, 0);
    for _ in 0..3 {
        let received = one.until("answer").await;
        let answer = &last(&received).data;
        let took = |name: &str| answer["usage"][name].as_u64().expect("a number");
        input += took("input");
        output += took("output");
        let amount = format!("0.{:06}", took("input") + 1000 * took("output"));
        let amount = amount.trim_end_matches('0');
        assert_eq!(answer["cost"]["amount"], amount, "{answer}");
        assert_eq!(answer["window"], 128_000, "{answer}");
        assert_eq!(answer["model"], "gpt-4o-mini", "{answer}");
        let id = last(&received).id.as_deref().expect("a number");
        assert_eq!(answer["entry"].to_string(), id, "{answer}");
    }
    let shown = door.get(&format!("/api/runs/{id}")).await.json();
    assert_eq!(shown["input_tokens"], input, "{shown}");
    assert_eq!(shown["output_tokens"], output, "{shown}");
    // The record number says which events a client has read already.
    let received = listen(&door, &id, None).await.until("answer").await;
    assert!(last(&received).data["entry"].as_u64() <= shown["entries"].as_u64());
    playing.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_the_answers_of_an_unfinished_step() {
    let stage = Stage::new();
    let door = door(&stage, Record::Full).await;
    let playing = stage.play(&LOOP);
    let id = playing.id.clone();
    // The last of three answers is the first of its step.
    playing.release(3);
    let mut one = listen(&door, &id, None).await;
    for _ in 0..3 {
        one.until("answer").await;
    }
    playing.kill();
    let path = format!("/api/runs/{id}");
    let shown = door.get(&format!("{path}?text=true")).await.json();
    let unfinished = &shown["unfinished"];
    assert_eq!(unfinished["step_id"], "call_model_answer", "{unfinished}");
    assert_eq!(unfinished["usage"][0]["input"], 400, "{unfinished}");
    assert_eq!(unfinished["usage"][1], Value::Null, "{unfinished}");
    let attempt = &unfinished["attempts"][0];
    assert_eq!(attempt["cut"]["place"], "key", "{attempt}");
    assert_eq!(
        attempt["result"]["added"], r#"{"action": "answer", "te"#,
        "{attempt}"
    );
    let received = self::door(&stage, Record::Metadata).await;
    let received = received.get(&format!("{path}?text=true")).await.json();
    let attempt = &received["unfinished"]["attempts"][0];
    assert_eq!(attempt["result"]["added_bytes"], 24, "{attempt}");
    assert_eq!(attempt["result"]["added"], Value::Null, "{attempt}");
    stage.resume(&id, &LOOP.replies[3..]).end();
    let shown = door.get(&path).await.json();
    assert_eq!(shown["unfinished"], Value::Null, "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_exact_after_an_end_and_an_upper_limit_otherwise() {
    let stage = Stage::new();
    let door = door(&stage, Record::Metadata).await;
    let store = stage.store();
    let add = |id: &RunId, entry: Value| {
        let (run, claim) = store.take_up(id).expect("a store").expect("a run");
        let number = u32::try_from(run.steps.len()).expect("a few") + 1;
        let added = store.add_step(&claim, number, &entry.to_string());
        added.expect("it is recorded");
    };
    let check = async |id: &RunId, paused: Value, at_most: Value| {
        let shown = door.get(&format!("/api/runs/{id}")).await.json();
        for run in [listed(&door, id).await, shown] {
            assert_eq!(run["paused_ms"], paused, "{run}");
            assert_eq!(run["paused_at_most"], at_most, "{run}");
        }
    };
    let killed = answer(&stage);
    let id = killed.id.clone();
    killed.kill();
    check(&id, Value::Null, Value::Null).await;
    let last_at = listed(&door, &id).await["last_at"].as_u64();
    let last_at = last_at.expect("a time");
    // Resuming is recorded immediately, so the pause is known during the first step.
    let taken_up = json!({ "kind": "taken_up", "at": last_at + 9000 });
    add(&id, taken_up);
    check(&id, json!(9000), json!(true)).await;
    let taken_up =
        json!({ "kind": "taken_up", "at": last_at + 20_000, "ended_at": last_at + 15_000 });
    add(&id, taken_up);
    check(&id, json!(14_000), json!(true)).await;

    // The time of a cancellation is known.
    let stopped = answer(&stage);
    let id = stopped.id.clone();
    stopped.cancel();
    let ended_at = listed(&door, &id).await["ended_at"].clone();
    let playing = stage.resume(&id, ANSWER.replies);
    let received = listen(&door, &id, None).await.until("resumed").await;
    assert_eq!(last(&received).data["ended_at"], ended_at);
    playing.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_all_models_of_a_run_and_its_known_cost() {
    let stage = Stage::new();
    let door = priced_door(&stage).await;
    let playing = stage.play(&Play {
        first_model: Some("unpriced"),
        ..LOOP
    });
    let id = playing.id.clone();
    playing.end();
    // Without calls, no price is missing.
    let misfit = stage.play(&Play {
        max_context_tokens: Some(20),
        ..ANSWER
    });
    misfit.end();
    let shown = door.get(&format!("/api/runs/{id}")).await.json();
    for run in [shown, listed(&door, &id).await] {
        assert_eq!(run["models"]["unpriced"]["input"], 400, "{run}");
        let priced = &run["models"]["gpt-4o-mini"];
        let output = priced["output"].as_u64().expect("a number");
        let amount = format!("0.{:06}", 1200 + 1000 * output);
        let amount = amount.trim_end_matches('0');
        let cost = json!({ "amount": amount, "currency": "USD", "without": ["unpriced"] });
        assert_eq!(run["partial_cost"], cost, "{run}");
        assert_eq!(run["cost"], Value::Null, "{run}");
    }
    let totals = door.get("/api/runs/totals").await.json();
    assert_eq!(
        (&totals["runs"], &totals["priced"], &totals["unpriced"]),
        (&json!(2), &json!(0), &json!(1)),
        "{totals}"
    );
    let found = door.get("/api/runs?q=unpriced").await.json();
    assert_eq!(found[0]["id"], id.as_str(), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_resume_command_names_the_store() {
    let stage = Stage::new();
    let set = |settings: &mut Settings| settings.store_shown = Some("sqlite:///my runs.db".into());
    let named = Door {
        address: serve_with("http://127.0.0.1:1/v1", Some(stage.store()), set).await,
        upstream: (),
    };
    let usual = door(&stage, Record::Metadata).await;
    let playing = answer(&stage);
    let id = playing.id.clone();
    playing.kill();
    let path = format!("/api/runs/{id}");
    let command = format!("overlock run --resume {id}");
    assert_eq!(usual.get(&path).await.json()["resume"], command);
    let command = format!("{command} --store 'sqlite:///my runs.db'");
    assert_eq!(named.get(&path).await.json()["resume"], command);
    stage.resume(&id, ANSWER.replies).end();
    assert_eq!(named.get(&path).await.json()["resume"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_record_is_an_error_and_no_panic() {
    let stage = Stage::new();
    let door = door(&stage, Record::Full).await;
    let playing = answer(&stage);
    let id = playing.id.clone();
    playing.kill();
    let store = stage.store();
    let (run, claim) = store.take_up(&id).expect("a store").expect("a run");
    let number = u32::try_from(run.steps.len()).expect("a few") + 1;
    let nonsense = r#"{"kind": "nonsense"}"#;
    store.add_step(&claim, number, nonsense).expect("a step");
    for path in [format!("/api/runs/{id}"), format!("/api/runs/{id}/events")] {
        let got = door.get(&path).await;
        assert_eq!(got.status, StatusCode::INTERNAL_SERVER_ERROR, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_the_failed_step_and_its_error() {
    let stage = Stage::new();
    let door = door(&stage, Record::Metadata).await;
    let check = async |replies: &[Reply], max: Option<u64>, step: &str, why: &str| {
        let playing = stage.play(&Play {
            replies,
            max_context_tokens: max,
            ..ANSWER
        });
        let id = playing.id.clone();
        playing.end();
        let stopped_at = json!({ "step_id": step, "why": why });
        assert_eq!(listed(&door, &id).await["stopped_at"], stopped_at);
        let shown = door.get(&format!("/api/runs/{id}")).await.json();
        assert_eq!(shown["stopped_at"], stopped_at);
        let words = why.split_whitespace().last().expect("a word");
        let found = door.get(&format!("/api/runs?q={step}+{words}")).await;
        let found = found.json();
        assert_eq!(found[0]["id"], id.as_str(), "{found}");
        shown
    };
    let refused = [Reply::Refuses("the key was revoked")];
    let why = "the upstream answered 401: the key was revoked";
    check(&refused, None, "answer", why).await;
    let why = "could not reach 127.0.0.1: Connection refused";
    check(&[Reply::Unreachable], None, "answer", why).await;
    let why = "the new texts alone take 312 tokens of at most 20";
    let shown = check(&[], Some(20), "manage_budget", why).await;
    assert!(shown["hint"].is_string(), "{shown}");
    // It is found by all of its texts.
    let found = door.get("/api/runs?q=PIPELINE_BUDGET_MISCONFIG").await;
    assert_eq!(found.json()[0]["id"], shown["id"], "{}", found.body);

    let playing = answer(&stage);
    let id = playing.id.clone();
    playing.cancel();
    let stopped_at = &listed(&door, &id).await["stopped_at"];
    assert!(stopped_at["step_id"].is_string(), "{stopped_at}");
    assert_eq!(stopped_at["why"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_no_tokens_without_an_answer() {
    let stage = Stage::new();
    let door = door(&stage, Record::Full).await;
    let playing = stage.play(&Play {
        replies: &[Reply::Unreachable],
        ..ANSWER
    });
    let id = playing.id.clone();
    playing.end();
    let shown = door.get(&format!("/api/runs/{id}")).await.json();
    for run in [&shown, &listed(&door, &id).await] {
        for name in ["input_tokens", "output_tokens", "peak_tokens"] {
            assert_eq!(run[name], 0, "{name}: {run}");
        }
    }
    let failed = &shown["trace"][4];
    assert_eq!(failed["input_tokens"], Value::Null, "{failed}");
    // The prepared tokens are reported all the same.
    assert!(failed["window"]["input_token_count"].as_u64() > Some(0));

    // An answer after a resume is counted once.
    stage.resume(&id, ANSWER.replies).end();
    let shown = listed(&door, &id).await;
    assert_eq!(shown["input_tokens"], 400, "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_the_usage_of_a_failed_step_once() {
    let stage = Stage::new();
    let door = door(&stage, Record::Full).await;
    let replies = [&LOOP.replies[..3], &[Reply::Unreachable]].concat();
    let playing = stage.play(&Play {
        replies: &replies,
        ..LOOP
    });
    let id = playing.id.clone();
    playing.end();
    let run = listed(&door, &id).await;
    assert_eq!(
        (&run["outcome"], &run["input_tokens"]),
        (&json!("failed"), &json!(1200))
    );
    stage.resume(&id, &LOOP.replies[3..]).end();
    assert_eq!(listed(&door, &id).await["input_tokens"], 1600);

    // The usage of a cancelled step counts too.
    let playing = stage.play(&LOOP);
    let id = playing.id.clone();
    playing.release(3);
    let mut one = listen(&door, &id, None).await;
    for _ in 0..3 {
        one.until("answer").await;
    }
    playing.cancel();
    let run = listed(&door, &id).await;
    assert_eq!(
        (&run["outcome"], &run["input_tokens"]),
        (&json!("cancelled"), &json!(1200))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_shows_its_prompt_and_answer() {
    let stage = Stage::new();
    let door = door(&stage, Record::Full).await;
    // The history is larger than the window.
    let long = "word ".repeat(100_000);
    let history = ["What is an order?", &long, "And who closes it?"];
    for history in [&[][..], &history] {
        let playing = stage.play(&Play { history, ..LOOP });
        let (id, asked) = (playing.id.clone(), Arc::clone(&playing.asked));
        playing.end();
        let shown = door.get(&format!("/api/runs/{id}?text=true")).await.json();
        let trace = shown["trace"].as_array().expect("a list");
        let calls = trace.iter().filter(|event| event["action"] == "call_model");
        // The third step has two calls, since its first answer was cut.
        for (event, (call, said)) in calls.zip([(0, "search"), (1, "dbo.Orders"), (2, "answer")]) {
            assert_eq!(
                event.get("asked"),
                None,
                "it is received with its step only"
            );
            let path = format!("/api/runs/{id}/steps/{}", event["number"]);
            let step = door.get(&format!("{path}?text=true")).await.json();
            let asked = asked.lock().expect("no panic")[call].clone();
            assert_eq!(step["asked"], asked, "call {call}");
            assert!(
                step["answer"].as_str().expect("a text").contains(said),
                "{step}"
            );
            assert_eq!(event["counted_by"], "provider", "{event}");
            let attempts = step["attempts"].as_array().map_or(0, Vec::len);
            assert_eq!(attempts, [1, 0, 2][call], "{step}");
            if call == 2 {
                assert_eq!(step["attempts"][0]["cut"]["place"], "key", "{step}");
                assert_eq!(step["attempts"][1]["cut"], Value::Null, "{step}");
            }
        }
        let request = &shown["request"];
        assert_eq!(request["state"]["user_question"], LOOP.question);
        assert_eq!(request["settings"]["max_context_tokens"], 450);
        for number in ["0", "99", "x"] {
            let got = door.get(&format!("/api/runs/{id}/steps/{number}")).await;
            assert_eq!(got.status, StatusCode::NOT_FOUND, "{number}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_shows_no_text_with_metadata_only() {
    let stage = Stage::new();
    let door = door(&stage, Record::Metadata).await;
    let playing = stage.play(&Play {
        replies: &[
            Reply::SaysUncounted(r#"{"action": "no such route"✂"#),
            Reply::Declines("I would rather not."),
            Reply::Says("Shall I go on?"),
            Reply::Says(r#"{"action": "no such route"}"#),
        ],
        ..LOOP
    });
    let id = playing.id.clone();
    playing.end();
    let shown = door.get(&format!("/api/runs/{id}?text=true")).await;
    assert_eq!(
        shown.json()["trace"][3]["counted_by"],
        "us",
        "{}",
        shown.body
    );
    let step = door.get(&format!("/api/runs/{id}/steps/4?text=true")).await;
    let attempts = step.json()["attempts"].clone();
    assert_eq!(attempts.as_array().map(Vec::len), Some(4));
    let path = format!("/api/runs/{id}/steps/4?text=true");
    let kept = self::door(&stage, Record::Full).await.get(&path).await;
    assert_eq!(
        kept.json()["attempts"][1]["refusal"],
        "I would rather not.",
        "it is there to be received: {}",
        kept.body
    );
    let failed = &kept.json()["attempts"][2]["result"];
    assert_eq!(failed["raw"], "Shall I go on?", "{failed}");
    for body in [shown.body, step.body] {
        for text in [
            "no such route",
            "rather not",
            "Shall I",
            "Who closes",
            "UPDATE",
        ] {
            assert!(!body.contains(text), "{text}: {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_repeated_texts() {
    let stage = Stage::new();
    let door = door(&stage, Record::Full).await;
    let playing = stage.play(&Play {
        max_context_tokens: Some(2000),
        replies: &[LOOP.replies[0], LOOP.replies[3]],
        ..LOOP
    });
    let id = playing.id.clone();
    playing.end();
    let shown = door.get(&format!("/api/runs/{id}?text=true")).await.json();
    let trace = shown["trace"].as_array().expect("a list");
    let budgets = trace
        .iter()
        .filter(|it| it["action"] == "manage_context_budget");
    let [first, second] = budgets.collect::<Vec<_>>()[..] else {
        panic!("{trace:?}");
    };
    let repeats = |event: &Value| {
        let nodes = event["nodes"].as_array().expect("a list").iter();
        nodes
            .filter_map(|node| node.get("repeats").cloned())
            .collect::<Vec<_>>()
    };
    assert_eq!(repeats(first), [json!(null); 0]);
    let again = repeats(second);
    assert!(!again.is_empty(), "{second}");
    let blocks = &second["changed"]["context_blocks"]
        .as_array()
        .expect("a list");
    let older = first["changed"]["context_blocks"]
        .as_array()
        .expect("a list");
    for repeat in again {
        assert_eq!(repeat["same"], true);
        let place = repeat["block"].as_u64().expect("a number");
        let block = &blocks[usize::try_from(place).expect("a few") - 1];
        assert!(older.contains(block), "{block}");
        assert_eq!(blocks.iter().filter(|other| *other == block).count(), 2);
    }
    assert_eq!(second["divider"], "<<<New content");
}

/// A loop that searches twice and then must summarise the context.
pub(crate) const LOOP: Play<'_> = Play {
    example: "compaction_loop.yaml",
    question: "Who closes an order?",
    // A budget that is too small.
    max_context_tokens: Some(450),
    first_model: None,
    history: &[],
    replies: &[
        Reply::Says(r#"{"action": "search", "query": "orders table closed"}"#),
        Reply::Says("dbo.Orders has Id and Closed."),
        Reply::Says(r#"{"action": "answer", "te✂"#),
        Reply::Says(r#"{"action": "answer", "text": "CloseOrder sets Closed."}"#),
    ],
};

/// A gateway with prices for one model.
async fn priced_door(stage: &Stage) -> Door<()> {
    let price = |text: &str| text.parse().expect("a price");
    let prices = Prices {
        input: price("1"),
        output: price("1000"),
        cached_input: None,
    };
    let model = Model {
        prices: Some(prices),
        ..Model::default()
    };
    let set = |settings: &mut Settings| {
        settings.models = Models::with_own([("gpt-4o-mini".to_owned(), model)]);
    };
    Door {
        address: serve_with("http://127.0.0.1:1/v1", Some(stage.store()), set).await,
        upstream: (),
    }
}

fn last(received: &[SseEvent]) -> &SseEvent {
    received.last().expect("something was told")
}

fn without_run(received: &SseEvent) -> Value {
    let mut data = received.data.clone();
    if let Some(data) = data.as_object_mut() {
        data.remove("run");
    }
    data
}
