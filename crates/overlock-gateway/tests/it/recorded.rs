use std::sync::mpsc;
use std::time::Duration;

use hyper::StatusCode;
use overlock_budget::Trim;
use overlock_gateway::Settings;
use overlock_llm::testing::{Behaviour, Fault, PATIENCE, ScriptedServer, eventually};
use overlock_runs::Record;
use overlock_store::{Access, StoreAddress, open};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::door::{Door, ask, report, script, serve_with, until_called};
use crate::fake::{Fake, FakeReply};

/// A model behind several gateways with one store.
struct Shared {
    folder: TempDir,
    document: String,
    upstream: ScriptedServer,
}

impl Shared {
    async fn new(faults: &[Option<Fault>]) -> Self {
        let document = report(12_000);
        let script = script(&document, 1500, &Behaviour::AS_ASKED);
        Self {
            folder: TempDir::new().expect("a folder"),
            document,
            upstream: ScriptedServer::start(script, faults)
                .await
                .expect("a server"),
        }
    }

    /// Another gateway.
    async fn door(&self, record: Record) -> Door<()> {
        let address = StoreAddress::Sqlite(self.folder.path().join("runs.db"));
        let store = open(&address, Access::Create).expect("a store");
        let set = |settings: &mut Settings| settings.record = record;
        let address = serve_with(&self.upstream.base(), Some(store), set).await;
        Door {
            address,
            upstream: (),
        }
    }

    /// The text of all files of the store.
    fn written(&self) -> String {
        let files = std::fs::read_dir(self.folder.path()).expect("a folder");
        let texts = files.map(|file| std::fs::read(file.expect("a file").path()).expect("bytes"));
        texts
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    }
}

fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"]
        .as_str()
        .expect("a text")
}

/// The runs, once all of them are written.
async fn runs(door: &Door<()>, count: usize) -> Vec<Value> {
    let look = async || {
        let runs = door.get("/api/runs").await.json();
        runs.as_array().expect("a list").clone()
    };
    let have_ended = |runs: &Vec<Value>| {
        runs.len() >= count && runs.iter().all(|run| !run["ended_at"].is_null())
    };
    eventually("all runs to end", look, have_ended).await
}

#[tokio::test]
async fn records_metadata_without_text() {
    for stream in [false, true] {
        let shared = Shared::new(&[]).await;
        let door = shared.door(Record::Metadata).await;
        let key = [("authorization", "Bearer sk-secret")];
        let got = door.chat(&ask(stream), &key).await;
        let run = &runs(&door, 1).await[0];
        assert_eq!(run["id"], got.header("x-overlock-run"));
        assert_eq!(run["outcome"], "complete");
        assert_eq!(run["iterations"], shared.upstream.asked().len());
        let shown = door
            .get(&format!("/api/runs/{}", got.header("x-overlock-run")))
            .await;
        let shown = shown.json();
        assert_eq!(shown["bytes"], shared.document.len());
        assert_eq!(shown["steps"][1]["result"]["result"], "grown");
        let written = shared.written();
        for secret in ["Write the report", "section-0", "sk-secret"] {
            assert!(!written.contains(secret), "{secret}");
        }
    }
}

#[tokio::test]
async fn a_rejected_call_costs_nothing() {
    let shared = Shared::new(&[None, Some(Fault::Status(400, None))]).await;
    let door = shared.door(Record::Full).await;
    let usage = door.chat(&ask(false), &[]).await.json()["usage"].clone();
    let listed = &runs(&door, 1).await[0];
    let id = listed["id"].as_str().expect("a name");
    let run = door.get(&format!("/api/runs/{id}")).await.json();
    let steps = run["steps"].as_array().expect("steps");
    let failure = &steps[1]["result"]["failure"]["failure"];
    assert_eq!(
        (failure, &run["outcome"]),
        (&json!("refused"), &json!("complete"))
    );
    let answered = steps.iter().enumerate().filter(|(number, _)| *number != 1);
    let read: u64 = answered
        .filter_map(|(_, step)| step["reported"]["input"].as_u64())
        .sum();
    assert_eq!(
        (&usage["prompt_tokens"], &listed["input_tokens"]),
        (&json!(read), &json!(read))
    );
    assert_eq!(listed["counted_by"], "provider");
}

#[tokio::test]
async fn lists_the_usage_of_a_run() {
    for record in [Record::Metadata, Record::Full] {
        for stream in [false, true] {
            let shared = Shared::new(&[]).await;
            let door = shared.door(record).await;
            let got = door.chat(&ask(stream), &[]).await;
            let run = &runs(&door, 1).await[0];
            if !stream {
                let usage = &got.json()["usage"];
                assert_eq!(run["input_tokens"], usage["prompt_tokens"]);
                assert_eq!(run["output_tokens"], usage["completion_tokens"]);
            }
            let tokens = |name: &str| run[name].as_u64().expect("a number");
            assert!(tokens("input_tokens") > 0 && tokens("output_tokens") > 0);
            assert!(tokens("peak_tokens") > 0 && tokens("peak_tokens") < tokens("window"));
            let path = format!("/api/runs/{}", got.header("x-overlock-run"));
            let shown = door.get(&path).await.json();
            for (name, value) in run.as_object().expect("an object") {
                assert_eq!(&shown[name], value, "{name}");
            }
            let budget = &shown["steps"][1]["budget"];
            assert_eq!(budget["window"], run["window"]);
            let parts = budget["parts"].as_array().expect("a list");
            let named = |name: &str| parts.iter().any(|part| part["name"] == name);
            assert!(
                named("last user message") && named("completion"),
                "{parts:?}"
            );
        }
    }
}

#[tokio::test]
async fn lists_the_usage_of_a_complete_text() {
    let said = FakeReply::content("Good morning.", "stop");
    let upstream = Fake::start(vec![said]).await;
    let store = overlock_store::in_memory().expect("a store");
    let address = serve_with(&upstream.base, Some(store), |_| {}).await;
    let upstream = ();
    let door = Door { address, upstream };
    let mut request = ask(false);
    request["response_format"] = json!({ "type": "text" });
    door.chat(&request, &[]).await;
    let run = &runs(&door, 1).await[0];
    // As the upstream reports.
    assert_eq!(run["input_tokens"], 10);
    assert_eq!(run["output_tokens"], 5);
    assert!(run["peak_tokens"].as_u64() > Some(5), "{run}");
}

#[tokio::test]
async fn shows_the_text_of_a_run_in_full_mode() {
    let shared = Shared::new(&[]).await;
    let added = |shown: &Value| -> String {
        let steps = shown["steps"].as_array().expect("a list");
        let added = steps.iter().map(|step| step["result"]["added"].as_str());
        added.map(Option::unwrap_or_default).collect()
    };
    let door = shared.door(Record::Full).await;
    let got = door.chat(&ask(false), &[]).await;
    let path = format!("/api/runs/{}", got.header("x-overlock-run"));
    let shown = door.get(&format!("{path}?text=true")).await.json();
    assert_eq!(added(&shown), shared.document);
    for path in [path.clone(), format!("{path}?text=false")] {
        let shown = door.get(&path).await.json();
        assert_eq!(shown["has_text"], true);
        assert_eq!(added(&shown), "");
    }
    let wrong = door.get(&format!("{path}?text=some")).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);

    // Texts stored for a retry are not shown.
    let door = shared.door(Record::Metadata).await;
    let got = door.chat(&ask(false), &[("idempotency-key", "a")]).await;
    let path = format!("/api/runs/{}?text=true", got.header("x-overlock-run"));
    let shown = door.get(&path).await.json();
    assert_eq!(shown["has_text"], true);
    assert_eq!(added(&shown), "");
}

#[tokio::test]
async fn records_nothing_when_recording_is_off() {
    let shared = Shared::new(&[]).await;
    let door = shared.door(Record::Off).await;
    let got = door.chat(&ask(false), &[]).await;
    assert_eq!(got.header("x-overlock-run"), "");
    assert_eq!(door.get("/api/runs").await.json(), json!([]));
    let got = door.chat(&ask(false), &[("idempotency-key", "one")]).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_same_key_replays_the_answer_without_a_call() {
    for stream in [false, true] {
        let shared = Shared::new(&[]).await;
        let door = shared.door(Record::Metadata).await;
        let key = [("idempotency-key", "one")];
        let first = door.chat(&ask(stream), &key).await;
        let calls = shared.upstream.asked().len();

        // Also from another process. A streamed request is a different one.
        let again = shared.door(Record::Metadata).await;
        let second = again.chat(&ask(stream), &key).await;
        assert_eq!(shared.upstream.asked().len(), calls);
        if stream {
            assert!(second.body.contains("section-0") && second.body.ends_with("data: [DONE]\n\n"));
        } else {
            assert_eq!(content(&second.json()), shared.document);
            assert_eq!(first.json(), second.json());
        }
        let other = again.chat(&ask(!stream), &key).await;
        assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(other.json()["error"]["code"], "idempotency_key_reused");

        // The same key of another client is a different one.
        let else_ = [
            ("idempotency-key", "one"),
            ("authorization", "Bearer other"),
        ];
        again.chat(&ask(stream), &else_).await;
        assert_eq!(shared.upstream.calls(), 2 * calls);
    }
}

#[tokio::test]
async fn a_key_in_use_is_a_conflict() {
    let shared = Shared::new(&[Some(Fault::NoAnswer)]).await;
    let door = shared.door(Record::Full).await;
    let key = [("idempotency-key", "one")];
    let request = ask(false);
    let first = door.chat(&request, &key);
    let second = async {
        until_called(&shared.upstream, 1).await;
        door.chat(&request, &key).await
    };
    let second = tokio::select! {
        _ = first => panic!("it is never answered"),
        second = second => second,
    };
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert_eq!(second.header("retry-after"), "1");
}

/// Waits until the gateway has this many requests in progress.
async fn until_worked_on(door: &Door<()>, count: usize) {
    let figure = format!("overlock_requests_in_progress {count}\n");
    let look = async || door.get("/metrics").await.body;
    eventually(&figure, look, |reported| reported.contains(&figure)).await;
}

#[tokio::test]
async fn a_key_can_be_retried_after_a_disconnect_before_the_first_write() {
    let shared = Shared::new(&[]).await;
    let door = shared.door(Record::Metadata).await;
    // Another connection is writing, so no transaction can begin.
    let address = StoreAddress::Sqlite(shared.folder.path().join("runs.db"));
    let other = open(&address, Access::Write).expect("the store");
    let (begin, has_begun) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let writing = std::thread::spawn(move || {
        other.transaction(|_| {
            begin.send(()).expect("a waiting request");
            ended.recv_timeout(PATIENCE)
        })
    });
    has_begun.recv_timeout(PATIENCE).expect("it begins");
    let (request, key) = (ask(false), [("idempotency-key", "one")]);
    tokio::select! {
        _ = door.chat(&request, &key) => panic!("it cannot begin"),
        () = async {
            until_worked_on(&door, 1).await;
            // The request proceeds as far as it can meanwhile.
            for _ in 0..50 {
                door.get("/health").await;
            }
        } => {}
    }
    until_worked_on(&door, 0).await;
    end.send(()).expect("it waits");
    writing
        .join()
        .expect("no panic")
        .expect("written")
        .expect("told");
    let again = door.chat(&request, &key).await;
    assert_eq!(again.status, StatusCode::OK, "{}", again.body);
    assert_eq!(content(&again.json()), shared.document);
}

#[tokio::test]
async fn a_retry_continues_an_interrupted_document() {
    for stream in [false, true] {
        // The third call is never answered, so the client disconnects.
        let shared = Shared::new(&[None, None, Some(Fault::NoAnswer)]).await;
        let key = [("idempotency-key", "one")];
        let first = shared.door(Record::Metadata).await;
        let request = ask(stream);
        tokio::select! {
            _ = first.chat(&request, &key) => panic!("it is never answered"),
            () = until_called(&shared.upstream, 3) => {}
        }
        let second = shared.door(Record::Metadata).await;
        // The first gateway notices the disconnect a little later.
        let got = second.chat_once_free(&request, &key).await;
        let text = if stream {
            let events = got.body.split("\n\n");
            let data = events.filter_map(|event| event.strip_prefix("data: "));
            let chunks = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
            let deltas = chunks.map(|chunk| chunk["choices"][0]["delta"]["content"].clone());
            deltas
                .filter_map(|delta| delta.as_str().map(str::to_owned))
                .collect()
        } else {
            content(&got.json()).to_owned()
        };
        assert_eq!(text, shared.document);
        let asked = shared.upstream.asked();
        assert_eq!(asked[3], asked[2], "what was not answered is asked again");
        for answered in &asked[..2] {
            assert!(!asked[2..].contains(answered), "what was answered is not");
        }
    }
}

/// A gateway with its own upstream key and these upstream replies.
async fn keyed_door(replies: Vec<FakeReply>, record: Record) -> Door<Fake> {
    let upstream = Fake::start(replies).await;
    let store = overlock_store::in_memory().expect("a store");
    let set = |settings: &mut Settings| {
        settings.record = record;
        settings.upstream.key = Some("the-upstreams-key".to_owned());
        settings.upstream.retries.retries = 0;
    };
    let address = serve_with(&upstream.base, Some(store), set).await;
    Door { address, upstream }
}

const SAID_BACK: &str = "the-upstreams-key and clients-own-key and sk-live-0123456789abcdef";

#[tokio::test]
async fn records_upstream_errors_without_keys() {
    let refused = FakeReply::json(401, &json!({ "error": { "message": SAID_BACK } }));
    let text = FakeReply {
        status: 503,
        headers: Vec::new(),
        body: format!("<h1>{SAID_BACK}</h1>\n{}", "x".repeat(9000)),
        frame: None,
    };
    let cut = FakeReply::content("{\"rows\": [1, 2, ", "length");
    let cases = [
        (vec![refused.clone()], 401, "failed"),
        (vec![text], 503, "failed"),
        (vec![cut, refused], 401, "partial"),
    ];
    for (replies, status, outcome) in cases {
        for record in [Record::Full, Record::Metadata] {
            for stream in [false, true] {
                let door = keyed_door(replies.clone(), record).await;
                let key = [("authorization", "Bearer clients-own-key")];
                let got = door.chat(&ask(stream), &key).await;
                let id = got.header("x-overlock-run");
                let listed = door.get("/api/runs").await.json()[0].clone();
                let shown = door.get(&format!("/api/runs/{id}?text=true")).await;
                assert_eq!(listed["outcome"], outcome, "{listed}");
                assert_eq!(listed["reason"], "model-error", "{listed}");
                let fault = &listed["upstream_fault"];
                assert_eq!(fault["status"], status, "{listed}");
                let message = fault["message"].as_str().expect("a message");
                let hidden = "[redacted] and [redacted] and [redacted]";
                assert!(message.contains(hidden), "{message}");
                assert!(message.chars().count() <= 501, "{message}");
                assert_eq!(shown.json()["upstream_fault"], *fault);
                for secret in ["upstreams-key", "own-key", "sk-live"] {
                    assert!(!shown.body.contains(secret), "{}", shown.body);
                }
            }
        }
    }
}

#[tokio::test]
async fn records_an_unreachable_upstream() {
    let store = overlock_store::in_memory().expect("a store");
    let once = |settings: &mut Settings| settings.upstream.retries.retries = 0;
    let address = serve_with("http://127.0.0.1:1/v1", Some(store), once).await;
    let door = Door {
        address,
        upstream: (),
    };
    door.chat(&ask(false), &[]).await;
    let fault = door.get("/api/runs").await.json()[0]["upstream_fault"].clone();
    assert_eq!(
        fault,
        json!({
            "kind": "unanswered",
            "message": "could not reach the upstream: Connection refused (os error 111)",
        })
    );
}

#[tokio::test]
async fn records_why_an_answer_was_not_delivered() {
    let cases = [
        (FakeReply::broken("{\"rows\": [1, 2, 3]}"), "broken"),
        (FakeReply::never(), "late"),
        (
            FakeReply::json(200, &json!({ "hello": "there" })),
            "unusable",
        ),
    ];
    for (reply, kind) in cases {
        for record in [Record::Full, Record::Metadata] {
            let upstream = Fake::start(vec![reply.clone()]).await;
            let store = overlock_store::in_memory().expect("a store");
            let set = |settings: &mut Settings| {
                settings.record = record;
                settings.upstream.timeouts.first_byte = Duration::from_millis(100);
            };
            let address = serve_with(&upstream.base, Some(store), set).await;
            let door = Door { address, upstream };
            door.chat(&ask(false), &[]).await;
            let listed = door.get("/api/runs").await.json()[0].clone();
            assert_eq!(listed["reason"], "model-error", "{listed}");
            assert_eq!(listed["upstream_fault"]["kind"], kind, "{listed}");
        }
    }
}

#[tokio::test]
async fn names_the_cut_part_of_an_answer() {
    let choice = |index: usize, content: &str, finish: &str| {
        let message = json!({ "role": "assistant", "content": content });
        json!({ "index": index, "message": message, "finish_reason": finish })
    };
    let (whole, cut) = (
        "{\"first\": [1, 2, 3]}",
        "{\"second\": {\"rows\": [\"one\", \"tw",
    );
    let choices = json!([choice(0, whole, "stop"), choice(1, cut, "length")]);
    let replies = vec![
        FakeReply::choices(&choices),
        FakeReply::content("Shall I go on?", "stop"),
    ];
    let door = keyed_door(replies, Record::Full).await;
    let mut request = ask(false);
    request["n"] = json!(2);
    let got = door.chat(&request, &[]).await;
    let run = got.header("x-overlock-run");
    let shown = door.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(shown["outcome"], "partial", "{shown}");
    assert_eq!(shown["cut"]["offset"], cut.len(), "{shown}");
    assert_eq!(shown["cut_part"], json!({ "choice": 1 }), "{shown}");
    assert_eq!(shown["bytes"], whole.len() + cut.len(), "{shown}");
}

#[tokio::test]
async fn a_failed_request_with_a_key_is_recorded_and_can_be_retried() {
    let busy = json!({ "error": { "message": "too busy" } });
    let answers = vec![
        FakeReply::json(400, &busy),
        FakeReply::content("{}", "stop"),
    ];
    let upstream = Fake::start(answers).await;
    let store = overlock_store::in_memory().expect("a store");
    let address = serve_with(&upstream.base, Some(store), |_| {}).await;
    let door = Door { address, upstream };
    let key = [("idempotency-key", "one")];
    let run = async || door.get("/api/runs").await.json()[0].clone();
    door.chat(&ask(false), &key).await;
    let failed = run().await;
    assert_eq!(failed["outcome"], "failed", "{failed}");
    let fault = json!({ "status": 400, "message": "too busy" });
    assert_eq!(failed["upstream_fault"], fault);
    let got = door.chat(&ask(false), &key).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    let answered = run().await;
    assert_eq!(answered["id"], failed["id"]);
    assert_eq!(answered["outcome"], "complete", "{answered}");
    assert_eq!(answered["upstream_fault"], Value::Null);
}

#[tokio::test]
async fn records_why_a_request_does_not_fit() {
    let long = "a word or two ".repeat(4000);
    let message = json!({ "role": "user", "content": long });
    let asked = json!({ "model": "gpt-4", "messages": [message] });
    for (record, is_kept) in [
        (Record::Full, true),
        (Record::Metadata, true),
        (Record::Off, false),
    ] {
        let upstream = Fake::start(vec![FakeReply::content("hello", "stop")]).await;
        let store = overlock_store::in_memory().expect("a store");
        let set = |settings: &mut Settings| settings.record = record;
        let address = serve_with(&upstream.base, Some(store), set).await;
        let door = Door { address, upstream };
        let key = [("idempotency-key", "one")];
        let got = door.chat(&asked, &key).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST);
        let message = got.json()["error"]["message"].clone();
        let listed = door.get("/api/runs").await.json();
        if !is_kept {
            assert_eq!(listed, json!([]));
            continue;
        }
        let id = got.header("x-overlock-run");
        let listed = &listed[0];
        assert_eq!(listed["id"], id);
        assert_eq!(
            (&listed["outcome"], &listed["reason"]),
            (&json!("failed"), &json!("window"))
        );
        let shown = door.get(&format!("/api/runs/{id}?text=true")).await.json();
        let unfit = &shown["unfit"];
        assert_eq!(unfit, &listed["unfit"]);
        assert_eq!(unfit["message"], message);
        assert_eq!(unfit["budget"]["window"], 8192);
        let parts = unfit["budget"]["parts"].as_array().expect("parts");
        let given = parts
            .iter()
            .map(|part| part["given"].as_u64().expect("tokens"));
        let margin = unfit["budget"]["margin"].as_u64().expect("tokens");
        let needed = given.sum::<u64>() + margin;
        assert_eq!(unfit["overflow"], needed - 8192, "{unfit}");
        let is_there = shown["request"]["messages"][0]["content"] == json!(long);
        assert_eq!(is_there, record == Record::Full);
        // The key is still free.
        let got = door.chat(&ask(false), &key).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    }
}

/// Checks the records of answers that begin with `failing`, which cannot be joined to `{"rows": [1, 2, `.
async fn check_failed_answers(answer: &str, failing: &str, stream: bool) {
    for (record, is_kept) in [(Record::Full, true), (Record::Metadata, false)] {
        let cut = "{\"rows\": [1, 2, ";
        let cut = if stream {
            FakeReply::streamed_content(cut, "length")
        } else {
            FakeReply::content(cut, "length")
        };
        let failed = FakeReply::streamed_content(answer, "stop");
        let upstream = Fake::start(vec![cut, failed]).await;
        let store = overlock_store::in_memory().expect("a store");
        let set = |settings: &mut Settings| settings.record = record;
        let address = serve_with(&upstream.base, Some(store), set).await;
        let door = Door { address, upstream };
        let got = door.chat(&ask(stream), &[]).await;
        let id = got.header("x-overlock-run");
        let shown = door.get(&format!("/api/runs/{id}?text=true")).await.json();
        let steps = shown["steps"].as_array().expect("steps");
        assert_eq!(steps.len(), 4, "{shown}");
        for step in &steps[1..] {
            assert_eq!(step["result"]["result"], "failed", "{step}");
            let raw = step["result"]["raw"].as_str();
            assert_eq!(raw.is_some(), is_kept, "{step}");
            // Reading stops once an answer cannot be joined.
            let is_all = |raw: &str| raw.starts_with(failing) && answer.starts_with(raw);
            assert!(raw.is_none_or(is_all), "{step}");
        }
        let plain = door.get(&format!("/api/runs/{id}")).await;
        assert!(!plain.body.contains("\"raw\":\""), "{}", plain.body);
    }
}

#[tokio::test]
async fn records_the_text_of_an_unjoined_answer_in_full_mode() {
    let answers = [
        ("Shall I go on?", "Shall"),
        ("{\"columns\": {\"a\": 1}}", "{\"columns"),
        ("{\"rows\": [1, 2, ]]]} and no more", "{\"rows\": [1, 2, ]]"),
        ("1, 2, oh no, nothing of the kind", "1, 2, oh"),
    ];
    for (answer, failing) in answers {
        check_failed_answers(answer, failing, false).await;
        check_failed_answers(answer, failing, true).await;
    }
}

/// A gateway that drops the oldest messages, with these upstream replies.
async fn trimming_door(replies: Vec<FakeReply>) -> Door<Fake> {
    let upstream = Fake::start(replies).await;
    let store = overlock_store::in_memory().expect("a store");
    let set = |settings: &mut Settings| settings.plan.trim = Trim::Oldest;
    let address = serve_with(&upstream.base, Some(store), set).await;
    Door { address, upstream }
}

#[tokio::test]
async fn records_the_basis_of_a_window_and_the_dropped_messages() {
    let models = [
        ("gpt-4", "known", "exact"),
        ("unknown-model", "assumed", "estimate"),
    ];
    for (model, window, provenance) in models {
        let door = trimming_door(vec![FakeReply::content("{\"rows\": []}", "stop")]).await;
        let mut request = ask(false);
        request["model"] = json!(model);
        let turn = |number: usize| {
            let role = if number.is_multiple_of(2) {
                "user"
            } else {
                "assistant"
            };
            json!({ "role": role, "content": "water ".repeat(700) })
        };
        let mut messages: Vec<Value> = (0..30).map(turn).collect();
        messages.push(json!({ "role": "user", "content": "Write the report as JSON." }));
        request["messages"] = json!(messages);
        let got = door.chat(&request, &[]).await;
        let dropped: u64 = got
            .header("x-overlock-dropped-messages")
            .parse()
            .expect("a number");
        let run = got.header("x-overlock-run");
        let shown = door.get(&format!("/api/runs/{run}")).await.json();
        let budget = &shown["steps"][0]["budget"];
        assert_eq!(budget["basis"]["window"], window, "{budget}");
        assert_eq!(budget["basis"]["provenance"], provenance, "{budget}");
        let parts = budget["parts"].as_array().expect("a list");
        let history = parts.iter().find(|part| part["name"] == "history");
        let history = history.expect("a history");
        assert_eq!(history["at_least"], true, "{history}");
        assert_eq!(history["dropped"], dropped, "{history}");
        assert_eq!(history["kept"], 30 - dropped, "{history}");
        // The list has it too, but not for a known window.
        let listed = door.get("/api/runs").await.json();
        let assumed = (window == "assumed").then_some(true);
        assert_eq!(listed[0]["window_assumed"].as_bool(), assumed, "{listed}");
        assert_eq!(listed[0]["dropped_messages"], dropped, "{listed}");
    }
}

#[tokio::test]
async fn records_the_counts_of_the_provider_and_of_the_gateway() {
    // An upstream that always reports 10 input and 5 output tokens.
    let cut = "{\"rows\": [\"one\", \"two\", \"three\", \"four\", \"five\", \"si";
    let replies = || {
        vec![
            FakeReply::content(cut, "length"),
            FakeReply::streamed_content("\"five\", \"six\"]}", "stop"),
        ]
    };
    let door = trimming_door(replies()).await;
    let got = door.chat(&ask(false), &[]).await;
    let run = got.header("x-overlock-run");
    let shown = door.get(&format!("/api/runs/{run}")).await.json();
    let [first, second] = [0, 1].map(|at| &shown["steps"][at]);
    assert_eq!(
        first["reported"],
        json!({ "input": 10, "output": 5 }),
        "{shown}"
    );
    assert_eq!(first["tokens"], 5);
    assert!(first["counted"].as_u64() > Some(10), "{first}");
    // The provider did not report the second.
    assert_eq!(second["reported"], Value::Null, "{second}");
    assert_eq!(second["tokens"], second["counted"], "{second}");
    assert_eq!(shown["counted_by"], "both");
    let sum: u64 = [first, second]
        .iter()
        .filter_map(|step| step["tokens"].as_u64())
        .sum();
    assert_eq!(
        shown["output_tokens"], sum,
        "the totals are the sum of the attempts"
    );
    assert_eq!(shown["max_total_tokens"], 65_536);
}

#[tokio::test]
async fn the_count_of_the_provider_decides_the_token_limit() {
    // The provider's count is under the limit, the gateway's count is over it.
    let cut = format!("{{\"rows\": [\"{}", "water ".repeat(200));
    let replies = vec![
        FakeReply::content(&cut, "length"),
        FakeReply::streamed_content("water \"]}", "stop"),
    ];
    let door = trimming_door(replies).await;
    let most = [("x-overlock-max-total-tokens", "100")];
    let got = door.chat(&ask(false), &most).await;
    assert_ne!(got.header("x-overlock-continuations"), "0");
}
