//! `overlock complete` and `overlock inspect`, against a scripted model behind a server.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use overlock_model::testing::{Behaviour, Fault, Script, ScriptedServer};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::program::{Run, TemporaryFile, TemporaryFolder, command, overlock, run};

/// A server for the length of a test.
pub(crate) struct Model {
    /// Runs the server.
    _runtime: Runtime,
    server: ScriptedServer,
    pub(crate) document: String,
    folder: TemporaryFolder,
}

impl Model {
    pub(crate) fn new(name: &str, behaviours: &[Behaviour], faults: &[Option<Fault>]) -> Self {
        let rows: Vec<Value> = (0..60)
            .map(|number| json!({ "id": number, "name": format!("river {number}"), "kilometres": number * 37 }))
            .collect();
        let document = serde_json::to_string_pretty(&json!({ "title": "Rivers", "rows": rows }))
            .expect("it can be written");
        let script = Script {
            document: document.clone(),
            breath: (600, 900),
            behaviours: behaviours.to_vec(),
            seed: 3,
        };
        let runtime = Runtime::new().expect("a runtime");
        let server = runtime
            .block_on(ScriptedServer::start(script, faults))
            .expect("a server");
        Self {
            _runtime: runtime,
            server,
            document,
            folder: TemporaryFolder::new(name),
        }
    }

    fn store(&self) -> String {
        format!("sqlite://{}/runs.db", self.folder.path().display())
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let base = self.server.base();
        let mut arguments: Vec<String> =
            ["complete", "--upstream", &base, "--store", &self.store()]
                .iter()
                .map(ToString::to_string)
                .collect();
        if !more.contains(&"--resume") {
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

    fn complete(&self, more: &[&str]) -> Run {
        run(&mut self.command(more), "")
    }

    pub(crate) fn inspect(&self, more: &[&str]) -> Run {
        let store = self.store();
        let arguments = [&["inspect", "--store", &store], more].concat();
        overlock(&arguments, "")
    }

    fn calls(&self) -> usize {
        self.server.asked().len()
    }
}

#[test]
fn a_cut_document_comes_out_whole() {
    let model = Model::new("complete-whole", &Behaviour::AS_ASKED, &[]);
    let run = model.complete(&["Write about rivers."]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, model.document);
    assert!(
        run.stderr.contains("cut") && run.stderr.contains("characters repeated"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("whole:"), "{}", run.stderr);
    assert!(model.calls() > 4);
}

#[test]
fn machines_get_the_document_and_its_story() {
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
    let told = model.inspect(&[id]);
    assert!(
        told.stdout.contains("outcome: complete") && told.stdout.contains("overlap"),
        "{}",
        told.stdout
    );
}

#[test]
fn prompts_come_from_files_and_standard_input_too() {
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
fn what_cannot_be_made_whole_is_partial_and_valid() {
    let useless = [Behaviour::Apologises, Behaviour::SaysNothing];
    let model = Model::new("complete-partial", &useless, &[]);
    let run = model.complete(&["Write about rivers.", "--protocol", "overlap"]);
    assert_eq!(run.code, 1);
    let part: Value = serde_json::from_str(&run.stdout).expect("the part is valid");
    assert_eq!(part["title"], "Rivers");
    assert!(
        run.stderr.contains("partial:") && run.stderr.contains("--resume"),
        "{}",
        run.stderr
    );

    // The hint is true: the run is taken up where it stands, and asks again.
    let listed = model.inspect(&["--json"]).json();
    let before = model.calls();
    let again = model.complete(&["--resume", listed[0]["id"].as_str().expect("a name")]);
    assert_eq!(again.code, 1);
    assert!(model.calls() > before, "{}", again.stderr);
}

#[test]
fn a_schema_names_what_is_wrong_by_its_path() {
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
    let broken = TemporaryFile::new("broken.json", r#"{"type": "nonsense"}"#);
    assert_eq!(
        model.complete(&["Rivers.", "--schema", broken.path()]).code,
        2
    );
}

#[test]
fn bad_usage_says_what_would_be_right() {
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
            "",
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
    check(&["inspect", "1jmzq9z8r2k7d", "--store", &store], "no run");
}

#[test]
fn nobody_there_is_a_failed_run() {
    let folder = TemporaryFolder::new("complete-nobody");
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
fn a_key_is_sent_and_never_told() {
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
fn a_run_that_was_killed_goes_on_and_asks_nothing_twice() {
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
        let stored = listed[0]["steps"].as_u64().expect("a number");
        let before = model.calls();
        assert!(
            stored + 1 >= before as u64,
            "{stored} of {before} answers are stored"
        );

        let id = listed[0]["id"].as_str().expect("a name").to_owned();
        let run = model.complete(&["--resume", &id]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.stdout, model.document);
        let steps = model.inspect(&[&id, "--json"]).json()["iterations"]
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
fn a_run_that_was_called_off_says_so_and_goes_on() {
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
        let output = child.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("it was cancelled"), "{told}");

        let listed = model.inspect(&["--json"]).json();
        assert_eq!(listed[0]["reason"], "cancelled");
        assert_eq!(listed[0]["steps"], called_off_in - 1);
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

        // The hint is a command that works as it stands.
        let hint = told.split_once("go on with: overlock ").expect("a hint").1;
        let arguments: Vec<&str> = hint.split_whitespace().collect();
        let run = overlock(&arguments, "");
        assert_eq!(
            (run.code, &run.stdout),
            (0, &model.document),
            "{}",
            run.stderr
        );
        let steps = model.inspect(&["--json"]).json()[0]["steps"].clone();
        assert_eq!(
            steps,
            model.calls() - 1,
            "only the call that was called off came to nothing"
        );
    }
}

/// Kills a process without a word while the server is answering its n-th call.
fn kill_during_call(mut child: Child, model: &Model, call: usize) {
    wait_for_call(model, call);
    child.kill().expect("it is running");
    child.wait().expect("it ends");
}

/// Waits until the server has had its n-th call.
fn wait_for_call(model: &Model, call: usize) {
    let patience = Instant::now() + Duration::from_secs(30);
    while model.calls() < call && Instant::now() < patience {
        thread::sleep(Duration::from_millis(2));
    }
}
