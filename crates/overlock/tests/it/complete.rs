//! `overlock complete` and `overlock inspect`, against a scripted model behind a server.

use std::process::{Child, Command, Stdio};

use overlock_llm::testing::{
    Behaviour, Fault, Manner, Script, ScriptedServer, eventually_blocking,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::program::{Run, TemporaryFile, TemporaryFolder, command, overlock, run};

/// A server for one test.
pub(crate) struct Model {
    /// Runs the server.
    pub(crate) runtime: Runtime,
    pub(crate) server: ScriptedServer,
    pub(crate) document: String,
    pub(crate) folder: TemporaryFolder,
}

impl Model {
    pub(crate) fn new(name: &str, behaviours: &[Behaviour], faults: &[Option<Fault>]) -> Self {
        Self::with_rows(name, 60, (600, 900), behaviours, faults)
    }

    fn with_rows(
        name: &str,
        rows: u32,
        breath: (usize, usize),
        behaviours: &[Behaviour],
        faults: &[Option<Fault>],
    ) -> Self {
        let rows: Vec<Value> = (0..rows)
            .map(|number| json!({ "id": number, "name": format!("river {number}"), "kilometres": number * 37 }))
            .collect();
        let document = serde_json::to_string_pretty(&json!({ "title": "Rivers", "rows": rows }))
            .expect("it can be written");
        Self::with_document(name, &document, breath, behaviours, faults)
    }

    pub(crate) fn with_document(
        name: &str,
        document: &str,
        breath: (usize, usize),
        behaviours: &[Behaviour],
        faults: &[Option<Fault>],
    ) -> Self {
        let document = document.to_owned();
        let script = Script {
            document: document.clone(),
            breath,
            behaviours: behaviours.to_vec(),
            seed: 3,
        };
        let runtime = Runtime::new().expect("a runtime");
        let server = runtime
            .block_on(ScriptedServer::start(script, faults))
            .expect("a server");
        Self {
            runtime,
            server,
            document,
            folder: TemporaryFolder::new(name),
        }
    }

    pub(crate) fn store(&self) -> String {
        format!("sqlite://{}/runs.db", self.folder.path().display())
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let base = self.server.base();
        let mut arguments: Vec<String> =
            ["complete", "--upstream", &base, "--store", &self.store()]
                .iter()
                .map(ToString::to_string)
                .collect();
        if !more.contains(&"--resume") && !more.contains(&"--model") {
            arguments.extend(["--model", "gpt-4o"].map(str::to_owned));
        }
        arguments.extend(more.iter().map(ToString::to_string));
        arguments
    }

    pub(crate) fn command(&self, more: &[&str]) -> Command {
        let arguments = self.arguments(more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        command(&arguments)
    }

    /// The same as [`complete`](Self::complete), with variables in the environment.
    pub(crate) fn complete_with(&self, more: &[&str], variables: &[(&str, &str)]) -> Run {
        run(self.command(more).envs(variables.iter().copied()), "")
    }

    pub(crate) fn latest(&self) -> String {
        let listed = self.inspect(&["--json"]).json();
        listed[0]["id"].as_str().expect("a name").to_owned()
    }

    pub(crate) fn complete(&self, more: &[&str]) -> Run {
        run(&mut self.command(more), "")
    }

    pub(crate) fn inspect(&self, more: &[&str]) -> Run {
        let store = self.store();
        let arguments = [&["inspect", "--store", &store], more].concat();
        overlock(&arguments, "")
    }

    pub(crate) fn calls(&self) -> usize {
        self.server.asked().len()
    }
}

#[test]
fn completes_a_cut_document() {
    let model = Model::new("complete-whole", &Behaviour::AS_ASKED, &[]);
    let run = model.complete(&["Write about rivers."]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, model.document);
    assert!(
        run.stderr.contains("cut") && run.stderr.contains("characters repeated"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("complete:"), "{}", run.stderr);
    assert_eq!(model.calls(), 7);
}

#[test]
fn the_window_of_an_unknown_model_is_that_of_its_server() {
    let mut model = Model::new("complete-window", &Behaviour::AS_ASKED, &[]);
    let script = Script {
        document: model.document.clone(),
        breath: (600, 900),
        behaviours: Behaviour::AS_ASKED.to_vec(),
        seed: 3,
    };
    let started = ScriptedServer::start_as(Manner::LlamaCpp, script, &[]);
    model.server = model.runtime.block_on(started).expect("a server");
    let run = model.complete(&["--model", "scripted", "Write about rivers."]);
    assert_eq!(
        (run.code, &run.stdout),
        (0, &model.document),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("context window"), "{}", run.stderr);
}

#[test]
fn json_shows_the_document_and_its_steps() {
    let model = Model::new("complete-json", &Behaviour::AS_ASKED, &[]);
    let run = model.complete(&["Write about rivers.", "--json"]);
    let answer = run.json();
    assert_eq!(answer["outcome"], "complete");
    assert_eq!(
        answer["document"],
        serde_json::from_str::<Value>(&model.document).expect("valid")
    );
    assert_eq!(answer["iterations"], model.calls());
    assert_eq!(
        answer["steps"].as_array().map(Vec::len),
        Some(model.calls())
    );
    assert_eq!(answer["steps"][1]["result"]["seam"], "overlap");

    let listed = model.inspect(&["--json"]).json();
    assert_eq!(listed[0]["id"], answer["run"]);
    assert_eq!(listed[0]["outcome"], "complete");
    let id = answer["run"].as_str().expect("a name");
    let shown = model.inspect(&[id, "--json"]).json();
    assert_eq!(shown["bytes"], model.document.len());
    assert_eq!(shown["output_tokens"], listed[0]["output_tokens"]);
    assert!(listed[0]["input_tokens"].as_u64() > Some(0), "{listed}");
    assert_eq!(shown["steps"][0]["result"]["added"], Value::Null);
    let shown = model.inspect(&[id, "--json", "--text"]).json();
    let steps = shown["steps"].as_array().expect("a list").iter();
    let added = steps.map(|step| step["result"]["added"].as_str().expect("a text"));
    assert_eq!(added.collect::<String>(), model.document);
    let inspected = model.inspect(&[id]);
    assert!(
        inspected.stdout.contains("outcome: complete") && inspected.stdout.contains("overlap"),
        "{}",
        inspected.stdout
    );
}

#[test]
fn records_the_output_of_a_failed_step() {
    let behaviours = [Behaviour::AsAsked, Behaviour::Apologises];
    let model = Model::new("complete-raw", &behaviours, &[]);
    let run = model.complete(&["Write about rivers.", "--json"]);
    let id = run.json()["run"].as_str().expect("a name").to_owned();
    let shown = model.inspect(&[&id, "--json", "--text"]).json();
    let steps = shown["steps"].as_array().expect("a list").iter();
    let failed: Vec<&Value> = steps
        .map(|step| &step["result"])
        .filter(|result| result["result"] == "failed")
        .collect();
    assert!(!failed.is_empty(), "{shown}");
    for result in failed {
        let raw = result["raw"].as_str().expect("what it answered");
        assert!(raw.contains("sorry"), "{raw}");
    }
}

#[test]
fn reads_prompts_from_files_and_standard_input() {
    let model = Model::new("complete-input", &[], &[]);
    let prompt = TemporaryFile::new("prompt.txt", "Write about rivers.");
    assert_eq!(
        model.complete(&["-f", prompt.path()]).stdout,
        model.document
    );
    let request = TemporaryFile::new(
        "request.json",
        r#"{"temperature": 0.5, "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rivers."}]}"#,
    );
    assert_eq!(
        model.complete(&["-f", request.path()]).stdout,
        model.document
    );
    assert_eq!(
        model
            .server
            .asked()
            .last()
            .map(|asked| asked["temperature"].clone()),
        Some(json!(0.5))
    );
    assert_eq!(
        run(&mut model.command(&["-"]), "Write about rivers.").stdout,
        model.document
    );
}

#[test]
fn refuses_impossible_options_before_the_first_call() {
    let model = Model::new("complete-usage", &Behaviour::AS_ASKED, &[]);
    for (option, value, expected) in [
        ("--strategy", "prefill", "upstream.prefill"),
        ("--max-output", "0", "--max-output"),
    ] {
        let run = model.complete(&["Rivers.", option, value]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{option}");
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    assert_eq!(model.calls(), 0);
}

#[test]
fn a_partial_document_is_valid() {
    let useless = [Behaviour::Apologises, Behaviour::SaysNothing];
    let model = Model::new("complete-partial", &useless, &[]);
    let run = model.complete(&["Write about rivers.", "--strategy", "overlap"]);
    assert_eq!(run.code, 1);
    let part: Value = serde_json::from_str(&run.stdout).expect("the part is valid");
    assert_eq!(part["title"], "Rivers");
    assert!(
        run.stderr.contains("partial:") && run.stderr.contains("--resume"),
        "{}",
        run.stderr
    );

    // The hint works: the run is resumed with another call.
    let listed = model.inspect(&["--json"]).json();
    let before = model.calls();
    let again = model.complete(&["--resume", listed[0]["id"].as_str().expect("a name")]);
    assert_eq!(again.code, 1);
    assert!(model.calls() > before, "{}", again.stderr);
}

#[test]
fn schema_violations_have_their_path() {
    let model = Model::new("complete-schema", &[], &[]);
    let right = TemporaryFile::new("right.json", r#"{"type": "object", "required": ["rows"]}"#);
    assert_eq!(
        model.complete(&["Rivers.", "--schema", right.path()]).code,
        0
    );
    let wrong = TemporaryFile::new(
        "wrong.json",
        r#"{"properties": {"rows": {"items": {"properties": {"kilometres": {"maximum": 2000}}}}}}"#,
    );
    let run = model.complete(&["Rivers.", "--schema", wrong.path()]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("/rows/59/kilometres"), "{}", run.stderr);
    let strings = TemporaryFile::new(
        "strings.json",
        r#"{"properties": {"rows": {"items": {"type": "string"}}}}"#,
    );
    let run = model.complete(&["Rivers.", "--schema", strings.path()]);
    assert!(
        run.stderr.contains("40 more schema violations"),
        "{}",
        run.stderr
    );
    let run = model.complete(&["Rivers.", "--schema", strings.path(), "--json"]);
    assert_eq!(run.json()["schema"]["count"], 60);
    let mut definitions = vec![r#""d0": {}"#.to_owned()];
    for level in 1..=27 {
        let before = format!(r##"{{"$ref": "#/$defs/d{}"}}"##, level - 1);
        definitions.push(format!(r#""d{level}": {{"allOf": [{before}, {before}]}}"#));
    }
    let definitions = definitions.join(", ");
    let large = format!(r##"{{"$ref": "#/$defs/d27", "$defs": {{{definitions}}}}}"##);
    let large = TemporaryFile::new("large.json", &large);
    let run = model.complete(&["Rivers.", "--schema", large.path()]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("at most 100000"), "{}", run.stderr);
    let broken = TemporaryFile::new("broken.json", r#"{"type": "nonsense"}"#);
    assert_eq!(
        model.complete(&["Rivers.", "--schema", broken.path()]).code,
        2
    );
}

#[test]
fn bad_usage_has_a_hint() {
    let check = |arguments: &[&str], expected: &str| {
        let run = overlock(arguments, "");
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    };
    let store = TemporaryFolder::new("complete-usage");
    let store = format!("sqlite://{}/runs.db", store.path().display());
    check(
        &["complete", "Hi", "--model", "gpt-4o", "--store", &store],
        "--upstream",
    );
    check(
        &[
            "complete",
            "Hi",
            "--upstream",
            "http://127.0.0.1:9/v1",
            "--store",
            &store,
        ],
        "--model",
    );
    check(
        &[
            "complete",
            "Hi",
            "--model",
            "m",
            "--upstream",
            "localhost",
            "--store",
            &store,
        ],
        "http://",
    );
    check(
        &[
            "complete",
            "Hi",
            "--model",
            "m",
            "--upstream",
            "http://127.0.0.1:9",
            "--store",
            "runs.db",
        ],
        "sqlite://",
    );
    check(&["complete", "--resume", "nonsense"], "nonsense");
    check(
        &[
            "inspect",
            "019a8a3f-5c00-7d2e-9b1c-6f0a4e2d8c31",
            "--store",
            &store,
        ],
        "no store",
    );
}

#[test]
fn an_unreachable_upstream_is_a_failed_run() {
    let folder = TemporaryFolder::new("complete-unreachable");
    let store = format!("sqlite://{}/runs.db", folder.path().display());
    let mut command = command(&[
        "complete",
        "Hi",
        "--model",
        "gpt-4o",
        "--upstream",
        "http://127.0.0.1:9/v1",
        "--store",
        &store,
    ]);
    let run = run(command.env("OVERLOCK_UPSTREAM_RETRIES", "0"), "");
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("could not reach 127.0.0.1:9"),
        "{}",
        run.stderr
    );
}

#[test]
fn sends_the_key_and_never_shows_it() {
    let model = Model::new("complete-key", &[], &[Some(Fault::Status(401, None))]);
    let mut command = model.command(&["Hi", "--key-variable", "MY_SECRET", "--json"]);
    let run = run(command.env("MY_SECRET", "hunter2"), "");
    assert_eq!(run.code, 1);
    assert!(!run.stdout.contains("hunter2") && !run.stderr.contains("hunter2"));
    let recorded =
        std::fs::read(format!("{}/runs.db", model.folder.path().display())).expect("the store");
    assert!(!String::from_utf8_lossy(&recorded).contains("hunter2"));
}

#[test]
fn a_stalled_percentage_has_a_hint_how_to_resume() {
    let claims = [Behaviour::TellsProgress];
    let model = Model::with_rows("complete-stalled", 500, (150, 200), &claims, &[]);
    let variables = [
        ("OVERLOCK_COMPLETE_KPI_PATIENCE", "1"),
        ("OVERLOCK_COMPLETE_MAX_ITERATIONS", "1000"),
    ];
    let run = model.complete_with(&["Write about rivers."], &variables);
    assert_eq!(run.code, 1);
    let id = model.latest();
    for kpi in ["off", "measured"] {
        let hint = format!("--resume {id} --kpi {kpi}");
        assert!(run.stderr.contains(&hint), "{}", run.stderr);
    }
    let again = model.complete(&["--resume", &id]);
    assert_eq!(again.code, 1, "the same question has the same answer");
    let run = model.complete(&["--resume", &id, "--kpi", "off"]);
    assert_eq!(
        (run.code, run.stdout == model.document),
        (0, true),
        "{}",
        run.stderr
    );
}

#[test]
fn asks_once_what_to_count() {
    let model = Model::new("complete-measured", &Behaviour::AS_ASKED, &[]);
    let run = model.complete(&["Write about rivers.", "--kpi", "measured", "--json"]);
    let answer = run.json();
    assert_eq!(answer["outcome"], "complete");
    assert_eq!(answer["iterations"], model.calls());
    assert_eq!(answer["kpis"][0]["json_path"], "$['rows'][*]");
    assert_eq!(answer["kpis"][0]["current_value"], 60);
    assert_eq!(answer["steps"][1]["kpis"][0]["target_value"], 60);
    let inspected = model.inspect(&[&model.latest()]);
    assert!(inspected.stdout.contains("kpis"), "{}", inspected.stdout);

    // A model that names nothing to count still completes the document.
    let faults = [None, Some(Fault::Status(400, None))];
    let model = Model::new("complete-unmeasured", &Behaviour::AS_ASKED, &faults);
    let run = model.complete_with(
        &["Write about rivers."],
        &[("OVERLOCK_COMPLETE_PROGRESS", "measured")],
    );
    assert_eq!(
        (run.code, run.stdout == model.document),
        (0, true),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("no progress will be measured"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_resumed_run_does_not_ask_again_what_to_count() {
    let faults = [None, None, Some(Fault::Status(403, None))];
    let model = Model::new("complete-measured-again", &Behaviour::AS_ASKED, &faults);
    let run = model.complete(&["Write about rivers.", "--kpi", "measured"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let run = model.complete(&["--resume", &model.latest()]);
    assert_eq!(
        (run.code, run.stdout == model.document),
        (0, true),
        "{}",
        run.stderr
    );
    let asks_kpis = |asked: &&Value| asked["messages"].to_string().contains("json_path");
    assert_eq!(model.server.asked().iter().filter(asks_kpis).count(), 1);
}

#[test]
fn the_tokenizer_can_be_chosen() {
    let model = Model::new("complete-counter", &[], &[]);
    let ask = |more: &[&str]| {
        let arguments = [&["Rivers.", "--model", "unheard-of"], more].concat();
        model.complete(&arguments)
    };
    let unnamed = ask(&[]);
    assert!(
        unnamed.stderr.contains("--tokenizer FILE"),
        "{}",
        unnamed.stderr
    );
    let named = ask(&["--encoding", "cl100k_base"]);
    assert_eq!((named.code, named.stdout == model.document), (0, true));
    assert!(
        !named.stderr.contains("--tokenizer FILE"),
        "{}",
        named.stderr
    );
    let missing = ask(&["--tokenizer", "/no/such/tokenizer.json"]);
    assert_eq!(missing.code, 2);
    assert!(
        missing.stderr.contains("/no/such/tokenizer.json"),
        "{}",
        missing.stderr
    );
    let both = ask(&["--encoding", "cl100k_base", "--tokenizer", "tokenizer.json"]);
    assert_eq!(both.code, 2);
    assert!(
        both.stderr.contains("cannot be used with"),
        "{}",
        both.stderr
    );
}

#[test]
fn a_deadline_ends_a_run_with_a_partial_document() {
    let faults = [None, Some(Fault::Silence(0)), None];
    let model = Model::new("complete-deadline", &Behaviour::AS_ASKED, &faults);
    let deadline = [("OVERLOCK_COMPLETE_DEADLINE", "1s")];
    let run = model.complete_with(&["Write about rivers.", "--json"], &deadline);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let answer = run.json();
    assert_eq!(
        (&answer["outcome"], &answer["reason"]),
        (&json!("partial"), &json!("deadline"))
    );
    assert_eq!(answer["document"]["title"], "Rivers");
    let run = model.complete(&["--resume", &model.latest()]);
    assert_eq!(
        (run.code, run.stdout == model.document),
        (0, true),
        "{}",
        run.stderr
    );
}

#[test]
fn completes_with_anthropics_protocol() {
    let variables = [
        ("OVERLOCK_UPSTREAM_API", "messages"),
        ("MY_SECRET", "hunter2"),
    ];
    let arguments = [
        "Write about rivers.",
        "--model",
        "claude-3-5-sonnet-20241022",
        "--key-variable",
        "MY_SECRET",
    ];
    let model = Model::new("complete-anthropic", &Behaviour::AS_ASKED, &[]);
    let run = model.complete_with(&arguments, &variables);
    assert_eq!(
        (run.code, run.stdout == model.document),
        (0, true),
        "{}",
        run.stderr
    );
    let asked = model.server.asked();
    assert_eq!(
        asked[0]["max_tokens"], 8192,
        "the most that the model can write"
    );
    let last = asked
        .last()
        .and_then(|asked| asked["messages"].as_array()?.last());
    assert_eq!(last.map(|last| &last["role"]), Some(&json!("assistant")));

    let schema = TemporaryFile::new("anthropic.json", r#"{"required": ["pages"]}"#);
    let with_schema = [&arguments[..], &["--schema", schema.path()]].concat();
    let run = model.complete_with(&with_schema, &variables);
    assert_eq!(run.code, 1, "there are no pages");
    assert!(
        run.stderr.contains("the schema is not sent to the model"),
        "{}",
        run.stderr
    );

    let faults = [Some(Fault::RefusesPrefill); 50];
    let model = Model::new("complete-anthropic-new", &Behaviour::AS_ASKED, &faults);
    let run = model.complete_with(&arguments, &variables);
    assert_eq!(
        (run.code, run.stdout == model.document),
        (0, true),
        "{}",
        run.stderr
    );
    assert_eq!(
        run.stderr
            .matches("the server rejected this strategy")
            .count(),
        1,
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("hunter2"));
}

#[test]
fn a_killed_run_resumes_without_repeating_calls() {
    for kill_after in 1..6 {
        let faults = vec![Some(Fault::Drip(15)); 40];
        let model = Model::new(
            &format!("complete-killed-{kill_after}"),
            &Behaviour::AS_ASKED,
            &faults,
        );
        let child = model
            .command(&["Write about rivers."])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary was built with the tests");
        kill_during_call(child, &model, kill_after);
        let listed = model.inspect(&["--json"]).json();
        let stored = listed[0]["iterations"].as_u64().expect("a number");
        let before = model.calls();
        assert!(
            stored + 1 >= before as u64,
            "{stored} of {before} answers are stored"
        );

        let id = listed[0]["id"].as_str().expect("a name").to_owned();
        let run = model.complete(&["--resume", &id]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.stdout, model.document);
        let steps = model.inspect(&[&id, "--json"]).json()["steps"]
            .as_array()
            .map_or(0, Vec::len);
        assert_eq!(
            model.calls(),
            steps + before - usize::try_from(stored).expect("few"),
            "no stored answer was asked for again"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_cancelled_run_can_be_resumed() {
    for (called_off_in, fault) in [
        (1, Fault::NoAnswer),
        (2, Fault::Silence(0)),
        (4, Fault::NoAnswer),
    ] {
        let mut faults = vec![None; called_off_in - 1];
        faults.push(Some(fault));
        let model = Model::new(
            &format!("complete-called-off-{called_off_in}"),
            &Behaviour::AS_ASKED,
            &faults,
        );
        let child = model
            .command(&["Write about rivers."])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with the tests");
        wait_for_call(&model, called_off_in);
        crate::program::interrupt(&child);
        let output = crate::program::output_of(child);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("it was cancelled"), "{stderr}");

        let listed = model.inspect(&["--json"]).json();
        assert_eq!(listed[0]["reason"], "cancelled");
        assert_eq!(listed[0]["iterations"], called_off_in - 1);
        if called_off_in == 1 {
            assert_eq!(
                (&listed[0]["outcome"], &*output.stdout),
                (&json!("failed"), &b""[..])
            );
        } else {
            assert_eq!(listed[0]["outcome"], "partial");
            let part: Value = serde_json::from_slice(&output.stdout).expect("the part is valid");
            assert_eq!(part["title"], "Rivers");
        }

        // The hint is a working command.
        let hint = stderr
            .split_once("resume with: overlock ")
            .expect("a hint")
            .1;
        let arguments: Vec<&str> = hint.split_whitespace().collect();
        let run = overlock(&arguments, "");
        assert_eq!(
            (run.code, &run.stdout),
            (0, &model.document),
            "{}",
            run.stderr
        );
        let steps = model.inspect(&["--json"]).json()[0]["iterations"].clone();
        assert_eq!(
            steps,
            model.calls() - 1,
            "only the cancelled call is repeated"
        );
    }
}

/// Kills a process with SIGKILL while the server is answering its n-th call.
fn kill_during_call(mut child: Child, model: &Model, call: usize) {
    wait_for_call(model, call);
    child.kill().expect("it is running");
    child.wait().expect("it ends");
}

/// Waits until the server has had its n-th call.
pub(crate) fn wait_for_call(model: &Model, call: usize) {
    let look = || model.calls();
    eventually_blocking("a call of the model", look, |made| *made >= call);
}

/// The strategies of the calls for the rest of a document.
fn strategies(run: &Run) -> Vec<String> {
    let answer = run.json();
    let steps = answer["steps"].as_array().expect("a list");
    let rest = steps.iter().filter_map(|step| step["strategy"].as_str());
    rest.map(str::to_owned).collect()
}

#[test]
fn commands_share_strategy_results() {
    let model = Model::new("complete-strategies", &[Behaviour::Apologises], &[]);
    let pipeline = TemporaryFile::new(
        "strategies.yaml",
        "pipeline:\n  settings: {entry_step_id: ask, model: gpt-4o, max_context_tokens: 5000}\n  steps:\n    - {id: ask, action: call_model, prompt: Write about rivers., response: json, end: true}\n",
    );
    let (base, store) = (model.server.base(), model.store());
    // The number of calls of a pipeline that ask for an overlap, and for a remainder.
    let run_pipeline = || {
        let before = model.calls();
        let arguments = [
            "run",
            pipeline.path(),
            "--upstream",
            &base,
            "--store",
            &store,
        ];
        let run = overlock(&[&arguments[..], &["--question", "Rivers?"]].concat(), "");
        assert_eq!(run.code, 0, "{}", run.stderr);
        let asked = model.server.asked();
        let calls = |block: &str| {
            let calls = asked[before..].iter();
            calls
                .filter(|call| call.to_string().contains(block))
                .count()
        };
        (calls("[[overlap-"), calls("[[written-"))
    };
    let complete = |more: &[&str]| {
        let arguments = [&["Write about rivers.", "--json"], more].concat();
        strategies(&model.complete(&arguments))
    };
    assert_eq!(complete(&[])[..2], ["overlap", "remainder"]);
    assert_eq!(run_pipeline().0, 1);

    let learnt = complete(&[]);
    assert!(!learnt.is_empty(), "the answer is cut");
    assert!(
        learnt.iter().all(|strategy| strategy == "remainder"),
        "{learnt:?}"
    );
    let (overlaps, remainders) = run_pipeline();
    assert!(overlaps == 0 && remainders > 0, "{overlaps} {remainders}");
    assert_eq!(complete(&["--strategy", "overlap"])[0], "overlap");
}
