//! `overlock check`, `graph`, `schema` and `run`.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::{fs, thread};

use overlock_llm::testing::eventually_blocking;
use serde_json::{Value, json};

use crate::program::{Run, TemporaryFolder, Watchdog, command, overlock, run};
#[cfg(unix)]
use crate::program::{interrupt, joined, output_of};
#[cfg(unix)]
use crate::serve::collected;
#[cfg(unix)]
use crate::serving::Serving;

/// A model that gives one reply after the other over HTTP, and keeps the requests. The same request
/// gets the same reply again.
struct ScriptedModel {
    url: String,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    replies: VecDeque<String>,
    given: Vec<(Value, String)>,
    asked: Vec<Value>,
    /// The call, counted from 0, that is never answered.
    silent_at: Option<usize>,
}

impl Script {
    fn reply(&mut self, request: Value) -> Option<String> {
        self.asked.push(request.clone());
        let mut given = self.given.iter();
        if let Some((_, reply)) = given.find(|(asked, _)| *asked == request) {
            return Some(reply.clone());
        }
        let reply = self.replies.pop_front()?;
        self.given.push((request, reply.clone()));
        Some(reply)
    }
}

impl ScriptedModel {
    fn replying(replies: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let url = format!("http://{}/v1", listener.local_addr().expect("it listens"));
        let replies = replies.iter().map(|reply| (*reply).to_owned()).collect();
        let script = Script {
            replies,
            ..Script::default()
        };
        let model = Self {
            url,
            script: Arc::new(Mutex::new(script)),
        };
        let script = Arc::clone(&model.script);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let script = Arc::clone(&script);
                thread::spawn(move || answer(stream, &script));
            }
        });
        model
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no thread panics")
    }

    fn calls(&self) -> Vec<Value> {
        self.script().asked.clone()
    }

    fn wait_for_calls(&self, calls: usize) {
        let look = || self.script().asked.len();
        eventually_blocking("a call of the model", look, |made| *made >= calls);
    }
}

/// Answers the calls of one connection. A reply that ends with `✂` was cut off.
fn answer(stream: TcpStream, script: &Mutex<Script>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream can be cloned"));
    let mut writer = stream;
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or_default() == 0 {
                return;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().expect("it is a number");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let request = serde_json::from_slice(&body).expect("it is JSON");
        let (reply, is_silent) = {
            let mut script = script.lock().expect("no thread panics");
            let is_silent = script.silent_at == Some(script.asked.len());
            (script.reply(request), is_silent)
        };
        if is_silent {
            // Until the client disconnects.
            let _ = reader.read(&mut [0]);
            return;
        }
        let Some(reply) = reply else {
            let _ = writer.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}");
            continue;
        };
        let (text, finish) = match reply.strip_suffix('✂') {
            Some(cut) => (cut.to_owned(), "length"),
            None => (reply, "stop"),
        };
        let chunks = [
            json!({ "choices": [{ "index": 0, "delta": { "role": "assistant", "content": text } }] }),
            json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }),
            json!({ "choices": [], "usage": { "prompt_tokens": 100, "completion_tokens": 20 } }),
        ];
        let events = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat() + "data: [DONE]\n\n";
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            events.len()
        );
        if writer.write_all((head + &events).as_bytes()).is_err() {
            return;
        }
    }
}

/// The folder of examples of this repository.
fn example(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    root.join(name).display().to_string()
}

/// A folder with a store in which a shop is indexed.
struct PipelineShop {
    folder: TemporaryFolder,
    store: String,
}

impl PipelineShop {
    fn new(name: &str) -> Self {
        let folder = TemporaryFolder::new(name);
        let store = format!("sqlite://{}", folder.path().join("store.db").display());
        folder.write(
            "src/Orders.cs",
            "namespace Shop;\n\n/// <summary>Keeps orders.</summary>\nclass Orders(Log log)\n{\n    // An order that is closed stays closed, whatever else happens to it later on.\n    public void Close(int id)\n    {\n        log.Note(id);\n        Run(\"UPDATE dbo.Orders SET Closed = 1\");\n    }\n}\n",
        );
        folder.write(
            "src/Log.cs",
            "namespace Shop;\nclass Log\n{\n    public void Note(int id) { }\n}\n",
        );
        folder.write(
            "src/orders.sql",
            "-- All orders that there ever were, closed or not.\nCREATE TABLE dbo.Orders (\n    Id int PRIMARY KEY, -- its number\n    Closed bit NOT NULL -- whether it is closed\n)\nGO\nCREATE PROCEDURE dbo.CloseOrder @Id int AS\nBEGIN\n    -- Closing is for ever.\n    UPDATE dbo.Orders SET Closed = 1 WHERE Id = @Id\nEND\nGO\n",
        );
        let shop = Self { folder, store };
        let sources = shop.folder.path().join("src").display().to_string();
        let indexed = overlock(
            &[
                "index",
                &sources,
                "--repository",
                "shop",
                "--store",
                &shop.store,
            ],
            "",
        );
        assert_eq!(indexed.code, 0, "{indexed:?}");
        shop
    }

    /// The number of stored model answers.
    fn stored_answers(&self) -> usize {
        let file = self.folder.path().join("store.db");
        let connection = rusqlite::Connection::open(file).expect("it is there");
        let count = "SELECT count(*) FROM steps WHERE body LIKE '{\"kind\":\"answer\"%'";
        let count: i64 = connection
            .query_row(count, (), |row| row.get(0))
            .expect("it can be counted");
        usize::try_from(count).expect("it is a count")
    }

    fn run(&self, pipeline: &str, model: &ScriptedModel, more: &[&str]) -> Run {
        let arguments = [
            "run",
            pipeline,
            "--store",
            &self.store,
            "--upstream",
            &model.url,
        ];
        overlock(&[&arguments, more].concat(), "")
    }
}

#[test]
fn answers_a_question_from_code() {
    let shop = PipelineShop::new("pipeline-answer");
    let model = ScriptedModel::replying(&["`Orders.Close` does (Orders.cs)."]);
    let run = shop.run(
        &example("answer_from_code.yaml"),
        &model,
        &["--question", "who closes an order", "--explain"],
    );
    assert_eq!(
        (run.code, run.stdout.trim()),
        (0, "`Orders.Close` does (Orders.cs)."),
        "{run:?}"
    );
    for expected in [
        "hits for `who closes an order`",
        "nodes, ",
        "texts, ",
        "window of",
        "tokens of context, ",
    ] {
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
    let calls = model.calls();
    assert_eq!(calls.len(), 1);
    let said = calls[0]["messages"][1]["content"]
        .as_str()
        .expect("it is a text");
    assert!(
        said.starts_with("### Context:\n--- NODE ---\nid: "),
        "{said}"
    );
    assert!(
        said.ends_with("### Question:\nwho closes an order"),
        "{said}"
    );
    assert!(
        said.contains("path: Orders.cs\nlanguage: dotnet\n"),
        "{said}"
    );
    assert!(
        !said.contains("Closing is for ever"),
        "SQL is always made smaller: {said}"
    );
}

/// A run is refused before it begins, with this on standard error.
#[track_caller]
fn check_refused(run: &Run, model: &ScriptedModel, expected: &str) {
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(
        run.stderr.contains(expected),
        "{expected:?} in {}",
        run.stderr
    );
    assert!(!run.stderr.contains("search_nodes"), "{}", run.stderr);
    assert_eq!(model.calls().len(), 0);
}

#[test]
fn refuses_an_unknown_repository_before_the_run() {
    let shop = PipelineShop::new("pipeline-no-repository");
    let model = ScriptedModel::replying(&[]);
    let question = ["--question", "who closes an order"];
    let unknown =
        "error: there is no repository `shpo` in this store\nhint: the only one is `shop`";

    let pipeline = example("answer_from_code.yaml");
    let flag = [&question[..], &["--repository", "shpo"]].concat();
    check_refused(&shop.run(&pipeline, &model, &flag), &model, unknown);

    // The same name in the file, and in the state.
    let text = fs::read_to_string(&pipeline).expect("an example");
    let filtered = text.replace("top_k: 12", "filters: {repository: shpo}");
    assert_ne!(filtered, text);
    shop.folder.write("filtered.yaml", filtered);
    shop.folder.write("prompts/answer.txt", "Answer.");
    shop.folder
        .write("state.json", "{\"repository\": \"shpo\"}");
    let path = |name: &str| shop.folder.path().join(name).display().to_string();
    let run = shop.run(&path("filtered.yaml"), &model, &question);
    check_refused(&run, &model, unknown);
    let state = path("state.json");
    let state = [&question[..], &["--state", &state]].concat();
    check_refused(&shop.run(&pipeline, &model, &state), &model, unknown);
}

#[test]
fn a_search_needs_a_store_that_exists_and_is_indexed() {
    let folder = TemporaryFolder::new("pipeline-no-store");
    let file = folder.path().join("typo.db");
    let store = format!("sqlite://{}", file.display());
    let model = ScriptedModel::replying(&["Yes."]);
    let run = |pipeline: &str| {
        let arguments = ["run", pipeline, "--question", "who", "--store", &store];
        overlock(&[&arguments[..], &["--upstream", &model.url]].concat(), "")
    };
    let searching = example("answer_from_code.yaml");
    check_refused(&run(&searching), &model, "error: there is no store `");
    assert!(!file.exists(), "it was created");

    // A pipeline without a search only records its run, in a new store.
    folder.write(
        "ask.yaml",
        "pipeline:\n  settings: {entry_step_id: ask, model: gpt-4o, max_context_tokens: 50}\n  steps:\n    - {id: ask, action: call_model, prompt: Answer., next: end}\n    - {id: end, action: finalize, end: true}\n",
    );
    let asked = run(&folder.path().join("ask.yaml").display().to_string());
    assert_eq!((asked.code, asked.stdout.trim()), (0, "Yes."), "{asked:?}");
    assert!(file.exists());

    let searched = run(&searching);
    assert_eq!(searched.code, 2, "{searched:?}");
    assert!(
        searched
            .stderr
            .contains("error: nothing is indexed in this store\nhint: run `overlock index DIR`"),
        "{searched:?}"
    );
    assert_eq!(model.calls().len(), 1);
}

#[test]
fn json_has_outcome_state_and_trace() {
    let shop = PipelineShop::new("pipeline-json");
    let model = ScriptedModel::replying(&["Close."]);
    let run = shop.run(
        &example("answer_from_code.yaml"),
        &model,
        &["--question", "who closes an order", "--json"],
    );
    let output = run.json();
    assert_eq!(output["outcome"], "complete");
    assert_eq!(output["state"]["answer"], "Close.");
    let actions: Vec<&str> = output["trace"]
        .as_array()
        .expect("it is a list")
        .iter()
        .filter_map(|event| event["action"].as_str())
        .collect();
    assert_eq!(
        actions,
        [
            "search_nodes",
            "expand_dependency_tree",
            "fetch_node_texts",
            "manage_context_budget",
            "call_model",
            "finalize"
        ]
    );
    let id = output["run"].as_str().expect("it has a name");
    let shown = overlock(&["inspect", id, "--store", &shop.store, "--json"], "").json();
    assert_eq!(shown["trace"].as_array().map(Vec::len), Some(actions.len()));
    assert_eq!(
        shown["trace"][3]["changed"]["context_blocks"],
        output["state"]["context_blocks"]
    );
    assert_eq!(shown["state"], output["state"]);
    let refused = overlock(&["complete", "--resume", id, "--store", &shop.store], "");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("overlock run --resume"),
        "{refused:?}"
    );
    let story = overlock(&["inspect", id, "--store", &shop.store], "");
    assert!(
        story.stdout.contains("pipeline: answer_from_code"),
        "{story:?}"
    );
    assert!(story.stdout.contains("outcome: complete"), "{story:?}");
}

/// The model asks for more twice; the second time the context has to be summarised.
const LOOP: [&str; 4] = [
    r#"{"action": "search", "query": "orders table closed"}"#,
    "dbo.Orders has Id and Closed.",
    r#"{"action": "answer", "te✂"#,
    r#"{"action": "answer", "text": "CloseOrder sets Closed."}"#,
];

fn looped(shop: &PipelineShop, model: &ScriptedModel) -> Run {
    shop.run(
        &example("compaction_loop.yaml"),
        model,
        &[
            "--question",
            "who closes an order",
            "--set",
            "max_context_tokens=450",
            "--json",
        ],
    )
}

#[test]
fn summarises_its_context_when_more_does_not_fit() {
    let shop = PipelineShop::new("pipeline-loop");
    let model = ScriptedModel::replying(&LOOP);
    let run = looped(&shop, &model);
    let output = run.json();
    assert_eq!(output["outcome"], "complete", "{run:?}");
    assert_eq!(output["state"]["answer"], LOOP[3]);
    let trace = output["trace"].as_array().expect("it is a list");
    let over = trace
        .iter()
        .find(|event| event["decision"] == "on_over")
        .expect("it did not fit once");
    assert_eq!(over["next"], "budget_loop_guard");
    let calls = trace.iter().filter(|event| event["action"] == "call_model");
    let calls: Vec<u64> = calls.filter_map(|event| event["calls"].as_u64()).collect();
    assert_eq!(calls, [1, 1, 2], "the last document was cut once");
    let blocks = output["state"]["context_blocks"]
        .as_array()
        .expect("it is a list");
    assert_eq!(blocks[0], "dbo.Orders has Id and Closed.");
    assert_eq!(blocks[1], "<<<New content");
}

#[test]
fn a_demand_by_mail_compacts_once() {
    let shop = PipelineShop::new("pipeline-demand");
    let model =
        ScriptedModel::replying(&[r#"{"outline_is_enough": true, "query": "orders"}"#, "Two."]);
    let run = shop.run(
        &example("compact_on_demand.yaml"),
        &model,
        &["--question", "what is there about orders", "--json"],
    );
    let output = run.json();
    assert_eq!(output["outcome"], "complete", "{run:?}");
    assert_eq!(output["state"]["inbox"], json!([]));
    let trace = output["trace"].as_array().expect("it is a list");
    let budget = trace
        .iter()
        .find(|event| event["step_id"] == "manage_budget")
        .expect("it was there");
    let nodes = budget["nodes"].as_array().expect("it is a list");
    let sql = nodes.iter().filter(|node| node["language"] == "sql");
    let policies: Vec<&str> = sql.filter_map(|node| node["policy"].as_str()).collect();
    assert!(
        !policies.is_empty() && policies.iter().all(|policy| *policy == "demand"),
        "{nodes:?}"
    );
}

#[test]
fn runs_one_step_from_a_given_state() {
    let folder = TemporaryFolder::new("pipeline-alone");
    folder.write(
        "one.yaml",
        "pipeline:\n  name: one\n  settings: {entry_step_id: budget, max_context_tokens: 50, token_counter: o200k_base}\n  steps:\n    - id: budget\n      action: manage_context_budget\n      on_ok: done\n      on_over: done\n    - id: done\n      action: set_variables\n      rules: [{set: variables.done, value: true}]\n      end: true\n",
    );
    folder.write("state.json", json!({ "node_texts": [{ "id": 7, "path": "a.sql", "text": "SELECT 1" }], "context_blocks": ["before"] }).to_string());
    let (pipeline, state) = (
        folder.path().join("one.yaml"),
        folder.path().join("state.json"),
    );
    let store = format!("sqlite://{}", folder.path().join("runs.db").display());
    let run = overlock(
        &[
            "run",
            &pipeline.display().to_string(),
            "--state",
            &state.display().to_string(),
            "--store",
            &store,
            "--json",
        ],
        "",
    );
    let output = run.json();
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(
        output["state"]["context_blocks"],
        json!([
            "before",
            "--- NODE ---\nid: 7\npath: a.sql\nlanguage: sql\ncompact: false\ntext:\nSELECT 1"
        ])
    );
    assert_eq!(output["trace"][0]["decision"], "on_ok");
}

/// When a run is killed.
#[derive(Clone, Copy, Debug)]
enum KillPoint {
    /// After this many steps.
    Steps(usize),
    /// During this call of the model, counted from 0.
    Call(usize),
}

#[test]
fn a_run_killed_in_any_step_ends_the_same() {
    let whole = PipelineShop::new("pipeline-whole");
    let expected = looped(&whole, &ScriptedModel::replying(&LOOP)).json();
    let steps = expected["trace"].as_array().expect("it is a list").len();
    let calls = (0..LOOP.len()).map(KillPoint::Call);
    for (number, moment) in (0..steps).map(KillPoint::Steps).chain(calls).enumerate() {
        let shop = PipelineShop::new(&format!("pipeline-killed-{number}"));
        let model = ScriptedModel::replying(&LOOP);
        if let KillPoint::Call(call) = moment {
            model.script().silent_at = Some(call);
        }
        let id = killed(&shop, &model, moment);
        let stored = shop.stored_answers();
        // A new server, so that a late request of the killed process is not counted.
        let model = ScriptedModel::replying(&LOOP[stored..]);
        let resumed = overlock(
            &[
                "run",
                "--resume",
                &id,
                "--store",
                &shop.store,
                "--upstream",
                &model.url,
                "--json",
            ],
            "",
        );
        let resumed = resumed.json();
        assert_eq!(resumed["state"], expected["state"], "killed at {moment:?}");
        assert_eq!(resumed["outcome"], "complete");
        assert_eq!(
            model.calls().len(),
            LOOP.len() - stored,
            "an answer that was stored was asked for again"
        );
    }
}

/// Starts the run of the loop, kills it, and returns its id.
fn killed(shop: &PipelineShop, model: &ScriptedModel, moment: KillPoint) -> String {
    let mut child = command(&[
        "run",
        &example("compaction_loop.yaml"),
        "--store",
        &shop.store,
        "--upstream",
        &model.url,
        "--question",
        "who closes an order",
        "--set",
        "max_context_tokens=450",
    ])
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .expect("it starts");
    let _watchdog = Watchdog::over(&child);
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut lines = lines.map_while(Result::ok);
    let first = lines.find(|line| line.starts_with("run "));
    let first = first.expect("the run is named before its first step");
    match moment {
        // Every line after the first is a finished step.
        KillPoint::Steps(steps) => assert_eq!(lines.take(steps).count(), steps),
        KillPoint::Call(call) => model.wait_for_calls(call + 1),
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let id = first.split_whitespace().nth(1);
    id.expect("the name comes second").to_owned()
}

#[test]
fn refuses_an_invalid_pipeline_before_the_first_step() {
    let folder = TemporaryFolder::new("pipeline-wrong");
    folder.write(
        "wrong.yaml",
        "pipeline:\n  name: wrong\n  settings: {entry_step_id: serch, model: gpt-4o}\n  steps:\n    - id: search\n      action: serch_nodes\n      next: nowhere\n",
    );
    let path = folder.path().join("wrong.yaml").display().to_string();
    let run = overlock(&["check", &path], "");
    assert_eq!(run.code, 1, "{run:?}");
    for expected in [
        "wrong.yaml:6:15",
        "serch_nodes",
        "search_nodes",
        "wrong.yaml:7:13",
        "nowhere",
        "wrong.yaml:3:29",
    ] {
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
    let output = overlock(&["check", &path, "--json"], "").json();
    assert_eq!(output["ok"], false);
    let places: Vec<(u64, u64)> = output["problems"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|problem| {
            (
                problem["line"].as_u64().unwrap_or(0),
                problem["column"].as_u64().unwrap_or(0),
            )
        })
        .collect();
    assert_eq!(places, [(3, 29), (6, 15), (7, 13)]);
    let model = ScriptedModel::replying(&[]);
    let store = format!("sqlite://{}", folder.path().join("runs.db").display());
    let run = overlock(
        &[
            "run",
            &path,
            "--question",
            "x",
            "--store",
            &store,
            "--upstream",
            &model.url,
        ],
        "",
    );
    assert_eq!(run.code, 1, "{run:?}");
    assert!(model.calls().is_empty());
    assert!(
        !fs::exists(folder.path().join("runs.db")).unwrap_or(true),
        "nothing was recorded"
    );
}

#[test]
fn refuses_a_pipeline_that_cannot_fit_its_window() {
    let folder = TemporaryFolder::new("pipeline-window");
    folder.write(
        "large.yaml",
        "pipeline:\n  name: large\n  settings: {entry_step_id: ask, model: gpt-4, max_context_tokens: 7000}\n  steps:\n    - id: ask\n      action: call_model\n      prompt: Answer.\n      max_output_tokens: 2000\n      user_parts:\n        context: {source: context_blocks}\n      end: true\n",
    );
    let path = folder.path().join("large.yaml").display().to_string();
    let run = overlock(&["check", &path], "");
    assert_eq!(run.code, 1, "{run:?}");
    for expected in ["7,000 (context)", "2,000 (answer)", "8,192"] {
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
}

#[test]
fn every_example_is_valid_and_can_be_drawn() {
    for name in [
        "answer_from_code.yaml",
        "compaction_loop.yaml",
        "compact_on_demand.yaml",
    ] {
        let checked = overlock(&["check", &example(name)], "");
        assert_eq!(checked.code, 0, "{checked:?}");
        assert!(!checked.stderr.contains("warning"), "{}", checked.stderr);
        let drawn = overlock(&["graph", &example(name)], "");
        assert!(drawn.stdout.starts_with("flowchart TD"), "{drawn:?}");
    }
    let schema = overlock(&["schema"], "").json();
    assert!(schema["$schema"].is_string() && schema["properties"]["pipeline"].is_object());
}

#[test]
fn a_failed_step_can_be_resumed() {
    let shop = PipelineShop::new("pipeline-fails");
    let model = ScriptedModel::replying(&[]);
    let run = shop.run(
        &example("answer_from_code.yaml"),
        &model,
        &["--question", "orders"],
    );
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr.contains("step `answer` failed"),
        "{}",
        run.stderr
    );
    let id = run
        .stderr
        .split_whitespace()
        .nth(1)
        .expect("the first line names the run")
        .to_owned();
    let model = ScriptedModel::replying(&["Now."]);
    let resumed = overlock(
        &[
            "run",
            "--resume",
            &id,
            "--store",
            &shop.store,
            "--upstream",
            &model.url,
        ],
        "",
    );
    assert_eq!(
        (resumed.code, resumed.stdout.trim()),
        (0, "Now."),
        "{resumed:?}"
    );
    // Resuming a complete run changes nothing.
    let shown = || overlock(&["inspect", "--json", "--store", &shop.store], "").stdout;
    let before = shown();
    let again = overlock(&["run", "--resume", &id, "--store", &shop.store], "");
    assert_eq!((again.code, again.stdout.trim()), (0, "Now."), "{again:?}");
    assert!(again.stderr.contains("is already complete"), "{again:?}");
    assert_eq!(shown(), before);
}

#[test]
#[cfg(unix)]
fn a_collector_gets_a_span_for_every_step_and_no_text() {
    let shop = PipelineShop::new("pipeline-traces");
    let model = ScriptedModel::replying(&["Nobody knows."]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let endpoint = format!("http://{}", listener.local_addr().expect("it listens"));
    let collecting = thread::spawn(move || collected(&listener));
    let pipeline = example("answer_from_code.yaml");
    let mut command = command(&[
        "run",
        &pipeline,
        "--store",
        &shop.store,
        "--upstream",
        &model.url,
        "--question",
        "who closes an order",
    ]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    let run = run(&mut command, "");
    assert_eq!(run.code, 0, "{run:?}");
    let heard = joined(collecting);
    assert!(heard.starts_with("POST /v1/traces "), "{heard}");
    for expected in [
        "run answer_from_code",
        "manage_context_budget manage_budget",
        "overlock.decision",
        "gen_ai.request.model",
    ] {
        assert!(heard.contains(expected), "{expected} in {heard}");
    }
    for text in ["who closes", "Nobody knows", "Orders.cs"] {
        assert!(!heard.contains(text), "{text} in {heard}");
    }
}

#[test]
#[cfg(unix)]
fn the_gateway_shows_runs_of_pipelines() {
    let shop = PipelineShop::new("pipeline-shown");
    let model = ScriptedModel::replying(&["Close."]);
    let question = ["--question", "who closes an order", "--json"];
    let output = shop
        .run(&example("answer_from_code.yaml"), &model, &question)
        .json();
    let id = output["run"].as_str().expect("it has a name");
    let arguments = ["--upstream", &*model.url, "--store", &*shop.store];
    let mut serving = Serving::start("pipeline-shown-gateway", &arguments, &[]);
    let (status, shown) = serving.ask(&format!("GET /api/runs/{id}"), "");
    assert_eq!(status, 200, "{shown}");
    let shown: Value = serde_json::from_str(&shown).expect("it is JSON");
    let steps = |run: &Value| run["trace"].as_array().map(Vec::len);
    assert_eq!(steps(&shown), steps(&output));
    assert_eq!(shown["graph"]["entry"], "search");
    assert_eq!(
        shown["graph"]["steps"][3]["targets"],
        json!([{ "name": "on_ok", "step": "answer" }, { "name": "on_over", "step": "answer" }])
    );
    assert!(
        !shown.to_string().contains("who closes"),
        "texts are not shown by default: {shown}"
    );
    assert_eq!(shown["pipeline"], "answer_from_code");
    let (status, listed) = serving.ask("GET /api/runs", "");
    assert_eq!(status, 200, "{listed}");
    assert!(
        listed.contains(id) && listed.contains("complete"),
        "{listed}"
    );
    let (status, events) = serving.ask(&format!("GET /api/runs/{id}/events"), "");
    assert_eq!(status, 200, "{events}");
    assert_eq!(events.matches("event: step").count(), 6, "{events}");
    assert!(events.contains("event: ended"), "{events}");
    serving.stop();
}

#[test]
#[cfg(unix)]
fn the_gateway_follows_a_run_of_another_process() {
    let shop = PipelineShop::new("pipeline-followed");
    let model = ScriptedModel::replying(&["Close."]);
    model.script().silent_at = Some(0);
    let arguments = ["--upstream", &*model.url, "--store", &*shop.store];
    let mut serving = Serving::start("pipeline-followed-gateway", &arguments, &[]);
    let pipeline = example("answer_from_code.yaml");
    let run = ["run", &pipeline, "--question", "who closes an order"];
    let mut child = command(&[&run[..], &arguments].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    model.wait_for_calls(1);
    let listed = |serving: &Serving| {
        let (status, listed) = serving.ask("GET /api/runs", "");
        assert_eq!(status, 200, "{listed}");
        let listed: Value = serde_json::from_str(&listed).expect("it is JSON");
        listed[0].clone()
    };
    let running = listed(&serving);
    assert_eq!(running["pipeline"], "answer_from_code", "{running}");
    assert_eq!(
        (&running["outcome"], running.get("interrupted")),
        (&Value::Null, None),
        "{running}"
    );
    let id = running["id"].as_str().expect("it has a name").to_owned();
    let path = format!("GET /api/runs/{id}/events");
    thread::scope(|scope| {
        let following = scope.spawn(|| serving.ask(&path, ""));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let (status, events) = following.join().expect("no panic");
        assert_eq!(status, 200, "{events}");
        assert_eq!(events.matches("event: step").count(), 4, "{events}");
        assert!(events.contains("event: interrupted"), "{events}");
    });
    assert_eq!(listed(&serving)["interrupted"], true);
    model.script().silent_at = None;
    let resumed = overlock(&[&["run", "--resume", &id][..], &arguments].concat(), "");
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let (_, events) = serving.ask(&path, "");
    assert!(events.contains("event: ended"), "{events}");
    assert_eq!(listed(&serving)["outcome"], "complete");
    serving.stop();
}

#[test]
#[cfg(unix)]
fn ctrl_c_cancels_a_run_that_can_be_resumed() {
    let folder = TemporaryFolder::new("pipeline-endless");
    let step = "{id: ID, action: set_variables, rules: [{set: variables.a, value: 1}], next: NEXT}";
    let step = |id, next| step.replace("ID", id).replace("NEXT", next);
    folder.write(
        "endless.yaml",
        format!(
            "pipeline:\n  settings: {{entry_step_id: a, max_steps: 1000000}}\n  steps:\n    - {}\n    - {}\n",
            step("a", "b"),
            step("b", "a")
        ),
    );
    let path = folder.path().join("endless.yaml").display().to_string();
    let store = format!("sqlite://{}", folder.path().join("runs.db").display());
    let mut child = command(&["run", &path, "--store", &store, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let _watchdog = Watchdog::over(&child);
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut lines = lines.map_while(Result::ok);
    let first = lines
        .find(|line| line.starts_with("run "))
        .expect("it is named");
    let id = first
        .split_whitespace()
        .nth(1)
        .expect("its name")
        .to_owned();
    assert_eq!(lines.by_ref().take(5).count(), 5);
    let busy = overlock(&["run", "--resume", &id, "--store", &store], "");
    assert_eq!(busy.code, 2, "{busy:?}");
    assert!(
        busy.stderr.contains("in progress in another process"),
        "{busy:?}"
    );
    interrupt(&child);
    let output: Vec<String> = lines.collect();
    let ended = output_of(child);
    assert_eq!(ended.status.code(), Some(130), "{output:?}");
    assert!(
        output
            .iter()
            .any(|line| line.contains("overlock run --resume")),
        "{output:?}"
    );
    let output: Value = serde_json::from_slice(&ended.stdout).expect("it is JSON");
    assert_eq!(output["outcome"], "cancelled");
    assert_eq!(output["state"]["variables"]["a"], 1);
    let resumed = overlock(
        &[
            "run",
            "--resume",
            &id,
            "--store",
            &store,
            "--set",
            "max_steps=2",
            "--json",
        ],
        "",
    );
    let output = resumed.json();
    assert_eq!(output["outcome"], "failed", "{resumed:?}");
    assert!(
        output["error"]
            .as_str()
            .is_some_and(|error| error.contains("2 steps")),
        "{resumed:?}"
    );
}

#[test]
fn reports_and_records_what_failed() {
    let folder = TemporaryFolder::new("pipeline-warned");
    folder.write(
        "ask.yaml",
        "pipeline:\n  settings: {entry_step_id: ask, model: gpt-4o, max_context_tokens: 5}\n  steps:\n    - {id: ask, action: call_model, prompt: Answer., next: fit}\n    - {id: fit, action: manage_context_budget, on_ok: end, on_over: end}\n    - {id: end, action: finalize, end: true}\n",
    );
    let path = folder.path().join("ask.yaml").display().to_string();
    let store = format!("sqlite://{}", folder.path().join("runs.db").display());
    folder.write(
        "state.json",
        json!({ "node_texts": [{ "text": "far too many words for five" }], "trace": [] })
            .to_string(),
    );
    let state = folder.path().join("state.json").display().to_string();
    let model = ScriptedModel::replying(&["Half an ans✂"]);
    let arguments = [
        "run",
        &path,
        "--store",
        &store,
        "--upstream",
        &model.url,
        "--state",
        &state,
    ];
    let run = overlock(&[&arguments[..], &["-q", "Well?"]].concat(), "");
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr
            .contains("warning: the answer was cut off at its limit"),
        "{run:?}"
    );
    let id = run
        .stderr
        .lines()
        .find(|line| line.starts_with("run "))
        .expect("it is named");
    let id = id.split_whitespace().nth(1).expect("its name");
    let shown = overlock(&["inspect", id, "--store", &store, "--json"], "").json();
    assert_eq!(shown["outcome"], "failed");
    let error = shown["trace"][1]["error"].as_str().expect("it is kept");
    assert!(error.starts_with("PIPELINE_BUDGET_MISCONFIG"), "{error}");
    let listed = overlock(&["inspect", "--store", &store], "");
    assert!(listed.stdout.contains("records  ask, gpt-4o"), "{listed:?}");
    folder.write("list.json", "[]");
    let list = folder.path().join("list.json").display().to_string();
    let refused = overlock(&["run", &path, "--state", &list, "--store", &store], "");
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[test]
fn the_context_is_counted_as_the_call_that_sends_it() {
    let folder = TemporaryFolder::new("pipeline-bound");
    folder.write(
        "one.yaml",
        "pipeline:\n  settings: {entry_step_id: fit, max_context_tokens: 50, model: claude-3-opus}\n  steps:\n    - {id: fit, action: manage_context_budget, on_ok: done, on_over: done}\n    - {id: done, action: finalize, answer_from: context_blocks, end: true}\n",
    );
    folder.write(
        "state.json",
        json!({ "node_texts": [{ "text": "SELECT 1" }] }).to_string(),
    );
    let (path, state) = (
        folder.path().join("one.yaml"),
        folder.path().join("state.json"),
    );
    let store = format!("sqlite://{}", folder.path().join("runs.db").display());
    let run = |more: &[&str]| {
        let (path, state) = (path.display().to_string(), state.display().to_string());
        let arguments = ["run", &path, "--state", &state, "--store", &store, "--json"];
        overlock(&[&arguments, more].concat(), "").json()
    };
    let (scaled, exact) = (run(&[]), run(&["--set", "token_counter=o200k_base"]));
    let tokens = |output: &Value| {
        output["trace"][0]["context_tokens"]
            .as_u64()
            .expect("it was counted")
    };
    assert_eq!(tokens(&scaled), tokens(&exact) * 12 / 10);
    assert_eq!(scaled["trace"][0]["provenance"], "estimate");
    let request =
        json!({ "model": "claude-3-opus", "messages": [{ "role": "user", "content": "x" }] });
    let fitted = overlock(&["fit", "--json"], request.to_string()).json();
    assert_eq!(scaled["trace"][0]["counter"], fitted["counter"]);
}
