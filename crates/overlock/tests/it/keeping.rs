//! What is recorded of runs, and answers that cannot be recorded.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use overlock_llm::testing::{Behaviour, Fault};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::complete::{Model, wait_for_call};
use crate::program::{Run, TemporaryFile, TemporaryFolder, command, output_of, overlock, run};

/// Adds a trigger to the database of a model's store.
fn change_store(model: &Model, sql: &str) {
    let path = model.folder.path().join("runs.db");
    let connection = Connection::open(path).expect("the store");
    connection.execute_batch(sql).expect("the statement");
}

/// Starts a command, and waits until the server has received this many calls.
fn start(model: &Model, more: &[&str], calls: usize) -> Child {
    let child = model
        .command(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with the tests");
    wait_for_call(model, calls);
    child
}

/// The result of a command that was started.
fn ended(child: Child) -> Run {
    let output = output_of(child);
    Run {
        code: output.status.code().expect("no signal ended it"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Runs the command of a hint in a shell.
fn follow(hinted: &Run) -> Run {
    let hint = hinted.stderr.lines().find_map(|line| {
        let (_, command) = line.split_once("resume with: ")?;
        Some(command.to_owned())
    });
    let hint = hint.unwrap_or_else(|| panic!("no hint in {}", hinted.stderr));
    let program = Path::new(env!("CARGO_BIN_EXE_overlock"));
    let folder = program.parent().expect("it is in a folder");
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &hint])
        .env("PATH", folder)
        .env("XDG_CONFIG_HOME", "/no/such/folder");
    run(&mut shell, "")
}

#[test]
fn prints_an_answer_that_cannot_be_recorded() {
    let model = Model::new("keeping-steps", &Behaviour::AS_ASKED, &[]);
    assert_eq!(model.complete(&["Rivers."]).code, 0);
    change_store(
        &model,
        "CREATE TRIGGER full BEFORE INSERT ON steps WHEN NEW.number = 3 \
         BEGIN SELECT RAISE(ABORT, 'no room is left'); END",
    );
    let run = model.complete(&["Rivers."]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let part: Value = serde_json::from_str(&run.stdout).expect("the part is valid");
    assert_eq!(part["title"], "Rivers");
    assert!(
        run.stderr.contains("not recorded") && run.stderr.contains("no room is left"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("check the address"), "{}", run.stderr);

    let answer = model.complete(&["Rivers.", "--json"]).json();
    let error = answer["error"].as_str().expect("a reason");
    assert!(error.starts_with("not recorded: "), "{error}");
    assert_eq!(answer["document"]["title"], "Rivers");
    assert_eq!(answer["steps"].as_array().map(Vec::len), Some(3));
}

#[test]
fn prints_a_document_whose_end_cannot_be_recorded() {
    let model = Model::new("keeping-end", &Behaviour::AS_ASKED, &[]);
    assert_eq!(model.complete(&["Rivers."]).code, 0);
    change_store(
        &model,
        "CREATE TRIGGER full BEFORE UPDATE OF outcome ON runs \
         BEGIN SELECT RAISE(ABORT, 'no room is left'); END",
    );
    let run = model.complete(&["Rivers."]);
    assert_eq!((run.code, &run.stdout), (1, &model.document));
    assert!(run.stderr.contains("not recorded"), "{}", run.stderr);
}

#[test]
fn a_stale_process_cannot_overwrite_a_run() {
    // The first process waits in its second answer until its server is stopped.
    let slow = Model::new(
        "keeping-slow",
        &Behaviour::AS_ASKED,
        &[None, Some(Fault::Silence(300))],
    );
    let late = start(&slow, &["Rivers."], 2);
    let id = slow.latest();
    let quick = Model::new("keeping-quick", &Behaviour::AS_ASKED, &[]);
    let (base, store) = (quick.server.base(), slow.store());
    let resume = ["complete", "--upstream", &base, "--store", &store];
    let run = overlock(&[&resume[..], &["--resume", &id]].concat(), "");
    assert_eq!((run.code, &run.stdout), (0, &slow.document));

    let Model {
        runtime, folder, ..
    } = slow;
    runtime.shutdown_background();
    let late = ended(late);
    assert_eq!(late.code, 1, "{}", late.stderr);
    assert!(late.stderr.contains("another process"), "{}", late.stderr);
    let part: Value = serde_json::from_str(&late.stdout).expect("what it had is valid");
    assert_eq!(part["title"], "Rivers");
    let shown = overlock(&["inspect", &id, "--store", &store, "--json"], "").json();
    assert_eq!(shown["outcome"], "complete");
    drop(folder);
}

#[test]
fn a_run_of_a_responses_request_is_shown_but_not_resumed() {
    let model = Model::new("keeping-responses", &[], &[]);
    model.complete(&["Rivers."]);
    let request = r#"{"model": "gpt-4o", "input": "Rivers."}"#;
    change_store(&model, &format!("UPDATE runs SET request = '{request}'"));
    let (id, store) = (model.latest(), model.store());
    let shown = overlock(&["inspect", &id, "--store", &store, "--json", "--text"], "");
    assert_eq!(shown.json()["request"]["input"], "Rivers.");
    let shown = overlock(&["inspect", &id, "--store", &store], "");
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let run = overlock(&["complete", "--store", &store, "--resume", &id], "");
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("Responses request"), "{}", run.stderr);
}

#[test]
fn a_document_that_cannot_be_checked_does_not_pass() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (name, document) in [("deep", deep.as_str()), ("half", r#"["\ud800"]"#)] {
        let name = format!("keeping-schema-{name}");
        let model = Model::with_document(&name, document, (600, 900), &[], &[]);
        let schema = TemporaryFile::new(&format!("{name}.json"), r#"{"type": "array"}"#);
        let run = model.complete(&["Rivers.", "--schema", schema.path()]);
        assert_eq!((run.code, run.stdout.as_str()), (1, document));
        assert!(
            run.stderr.contains("could not be checked"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_resumed_run_uses_its_recorded_schema() {
    let model = Model::new("keeping-schema", &[], &[]);
    let schema = TemporaryFile::new("keeping-schema.json", r#"{"type": "string"}"#);
    let run = model.complete(&["Rivers.", "--schema", schema.path()]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.len() < 3000, "a document is no message");
    let again = model.complete(&["--resume", &model.latest()]);
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("schema violation at the root"),
        "{}",
        again.stderr
    );
}

#[test]
fn prints_a_complete_document_again_without_a_call() {
    let model = Model::new("keeping-again", &Behaviour::AS_ASKED, &[]);
    assert_eq!(model.complete(&["Rivers."]).code, 0);
    let calls = model.calls();
    let id = model.latest();
    let store = model.store();
    let run = overlock(&["complete", "--store", &store, "--resume", &id], "");
    assert_eq!((run.code, &run.stdout), (0, &model.document));
    assert_eq!(model.calls(), calls);
}

#[test]
fn the_resume_hint_works() {
    let check = |arguments: &[&str], variables: &[(&str, &str)]| {
        let model = Model::new("keeping hint", &Behaviour::AS_ASKED, &[]);
        let mut run = model.complete_with(arguments, variables);
        assert_eq!(run.code, 1, "{}", run.stderr);
        for _ in 0..20 {
            if run.code == 1 {
                run = follow(&run);
            }
        }
        assert_eq!((run.code, &run.stdout), (0, &model.document));
    };
    check(&["Rivers.", "--max-output", "10"], &[]);
    check(&["Rivers."], &[("OVERLOCK_COMPLETE_MAX_ITERATIONS", "2")]);
}

#[test]
fn a_resumed_run_uses_its_recorded_upstream() {
    let model = Model::new("keeping-upstream", &Behaviour::AS_ASKED, &[]);
    let limit = [("OVERLOCK_COMPLETE_MAX_ITERATIONS", "2")];
    assert_eq!(model.complete_with(&["Rivers."], &limit).code, 1);
    let (id, store) = (model.latest(), model.store());
    let shown = model.inspect(&[&id, "--json"]).json();
    assert_eq!(shown["upstream"], model.server.base());
    let run = overlock(&["complete", "--store", &store, "--resume", &id], "");
    assert_eq!((run.code, &run.stdout), (0, &model.document));
}

#[test]
fn sends_no_key_to_a_recorded_server_it_does_not_belong_to() {
    let model = Model::new("keeping-key", &Behaviour::AS_ASKED, &[]);
    let limit = [("OVERLOCK_COMPLETE_MAX_ITERATIONS", "2")];
    assert_eq!(model.complete_with(&["Rivers."], &limit).code, 1);
    let (id, store, base) = (model.latest(), model.store(), model.server.base());
    let resume = |configured: &str| {
        let mut command = command(&["complete", "--store", &store, "--resume", &id]);
        command
            .env("OVERLOCK_UPSTREAM_URL", configured)
            .env("OVERLOCK_UPSTREAM_KEY_VARIABLE", "NO_SUCH_VARIABLE_IS_SET");
        run(&mut command, "").code
    };
    assert_eq!(resume(&base), 2, "it is the server of the key");
    assert_eq!(resume("https://elsewhere.example/v1"), 0);
}

#[test]
fn checks_the_output_file_before_the_first_call() {
    let model = Model::new("keeping-output", &Behaviour::AS_ASKED, &[]);
    let folder = model.folder.path();
    for path in ["missing/rivers.json", "."] {
        let path = folder.join(path).display().to_string();
        let run = model.complete(&["Rivers.", "-o", &path]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("could not write"), "{}", run.stderr);
    }
    assert_eq!(model.calls(), 0);

    let path = folder.join("rivers.json");
    fs::write(&path, "what was there before").expect("a file");
    let run = model.complete(&["Rivers.", "-o", &path.display().to_string()]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    assert_eq!(fs::read_to_string(&path).expect("it"), model.document);
    let parts = fs::read_dir(folder).expect("a folder");
    let parts = parts.filter(|file| {
        let name = file.as_ref().expect("a file").file_name();
        name.to_string_lossy().ends_with(".part")
    });
    assert_eq!(parts.count(), 0);
}

#[cfg(unix)]
#[test]
fn writes_through_links_and_open_files() {
    let model = Model::new("keeping-open", &Behaviour::AS_ASKED, &[]);
    let path = model.folder.path().join("rivers.json");
    fs::write(&path, "").expect("a file");
    let open = fs::File::open(&path).expect("it");
    let mut command = model.command(&["Rivers.", "-o", "/dev/stdout"]);
    command
        .stdout(fs::File::options().append(true).open(&path).expect("it"))
        .stderr(Stdio::null());
    assert!(command.status().expect("it ends").success());
    let written = std::io::read_to_string(open).expect("what was written to it");
    assert_eq!(written, model.document);

    let link = model.folder.path().join("link.json");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let run = model.complete(&["Rivers.", "-o", &link.display().to_string()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&path).expect("it"), model.document);
}

#[test]
fn prints_a_document_that_cannot_be_written() {
    let faults = vec![Some(Fault::Drip(15)); 40];
    let model = Model::new("keeping-lost", &Behaviour::AS_ASKED, &faults);
    let folder = TemporaryFolder::new("keeping-lost-output");
    let path = folder.path().join("rivers.json").display().to_string();
    let child = start(&model, &["Rivers.", "-o", &path], 1);
    fs::remove_dir_all(folder.path()).expect("it was ours");
    let run = ended(child);
    assert_eq!((run.code, &run.stdout), (1, &model.document));
    assert!(run.stderr.contains("rivers.json"), "{}", run.stderr);
}

#[test]
fn model_output_cannot_control_the_terminal() {
    let document = r#"{"a\u001b]0;owned\u0007\nerror: forged": ["#.to_owned()
        + &r#""a long row, so that the answer is cut inside of it", "#.repeat(40)
        + "1]}";
    let useless = [Behaviour::Apologises, Behaviour::SaysNothing];
    let model = Model::with_document("keeping-hostile", &document, (600, 900), &useless, &[]);
    let run = model.complete(&["Rivers.", "--strategy", "overlap"]);
    assert_eq!(run.code, 1);
    let inspected = model.inspect(&[&model.latest()]);
    for text in [&run.stderr, &inspected.stdout] {
        assert!(text.contains("owned"), "{text}");
        assert!(!text.contains(['\x1b', '\x07']), "{text:?}");
        let forged = text.lines().any(|line| line.starts_with("error:"));
        assert!(!forged, "{text}");
    }

    let prose = "I cannot\x1b]0;owned\x07\nerror: forged";
    let model = Model::with_document("keeping-prose", prose, (600, 900), &[], &[]);
    let run = model.complete(&["Rivers."]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr
            .contains("the model said: I cannot␛]0;owned␇⏎error"),
        "{}",
        run.stderr
    );
}

#[test]
fn inspecting_runs_changes_nothing() {
    let folder = TemporaryFolder::new("keeping-look");
    let home = folder.path().display().to_string();
    let run_in_home = |arguments: &[&str]| {
        let mut command = command(arguments);
        run(command.env("XDG_DATA_HOME", &home), "")
    };
    let none = run_in_home(&["inspect"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(
        none.stderr.contains("no run has been recorded"),
        "{}",
        none.stderr
    );
    assert_eq!(run_in_home(&["inspect", "--json"]).json(), json!([]));
    let mistyped = format!("sqlite://{home}/deep/rnus.db");
    for arguments in [
        &["inspect", "--store", &mistyped][..],
        &[
            "complete",
            "--store",
            &mistyped,
            "--resume",
            "019a8a3f-5c00-7d2e-9b1c-6f0a4e2d8c31",
        ],
    ] {
        let run = run_in_home(arguments);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("there is no store"), "{}", run.stderr);
    }
    let none = run_in_home(&["inspect", "--last", "0"]);
    assert_eq!(none.code, 2, "{}", none.stderr);
    assert_eq!(fs::read_dir(&home).expect("a folder").count(), 0);
}

#[test]
fn json_of_a_run_is_the_same_in_all_commands() {
    let model = Model::new("keeping-json", &Behaviour::AS_ASKED, &[]);
    let run = model.complete(&["Rivers.", "--json"]);
    assert_eq!(run.stdout.lines().count(), 1, "one object a line");
    let answer = run.json();
    let list = model.inspect(&["--json"]);
    let shown = model.inspect(&[&model.latest(), "--json"]);
    for text in [&list.stdout, &shown.stdout] {
        assert_eq!(text.matches("\"outcome\":").count(), 1, "{text}");
    }
    let (list, shown) = (list.json(), shown.json());
    assert_eq!(list[0]["iterations"], answer["iterations"]);
    assert_eq!(shown["iterations"], answer["iterations"]);
    assert_eq!(shown["steps"], answer["steps"]);
    let first = &shown["steps"][0];
    for figure in ["adjusted_max_tokens", "input_token_count", "message_count"] {
        assert!(first["budget"][figure].as_u64() > Some(0), "{first}");
    }
    let path = first["cut"]["path"].as_str().expect("a path");
    assert!(path.starts_with("/rows/"), "{path}");
    let inspected = model.inspect(&[&model.latest()]).stdout;
    assert!(
        inspected.contains("tokens in") && inspected.contains(path),
        "{inspected}"
    );
}

#[test]
fn an_invalid_request_is_not_taken_as_a_prompt() {
    let model = Model::new("keeping-mistake", &[], &[]);
    let request = "{\"model\": \"gpt-4o\",\n \"messages\": [{\"role\": \"user\" \"content\": 1}]}";
    let request = TemporaryFile::new("keeping-mistake.json", request);
    let mistake = model.complete(&["-f", request.path()]);
    assert!(
        mistake.stderr.contains("line 2 column"),
        "{}",
        mistake.stderr
    );
    let request = r#"{"model": "gpt-4o", "message": [{"role": "user", "content": "Hi"}]}"#;
    let request = TemporaryFile::new("keeping-misspelt.json", request);
    let misspelt = model.complete(&["-f", request.path()]);
    assert!(
        misspelt.stderr.contains("rename `message` to"),
        "{}",
        misspelt.stderr
    );
    let nothing = model.complete(&["Hi", "--max-tokens", "0"]);
    let empty = model.complete(&[" "]);
    assert!(
        empty.stderr.contains("the prompt is empty"),
        "{}",
        empty.stderr
    );
    let schema = model.complete(&["Hi", "--schema", "/no/such/schema.json"]);
    assert!(schema.stderr.contains("no such file"), "{}", schema.stderr);
    let upstream = model.complete(&["Hi", "--upstream", "localhost"]);
    assert!(
        upstream.stderr.contains("cannot be used"),
        "{}",
        upstream.stderr
    );
    let key = model.complete(&["Hi", "--key-variable", "NO_SUCH_VARIABLE_IS_SET"]);
    for run in [mistake, misspelt, nothing, empty, schema, upstream, key] {
        assert_eq!(run.code, 2, "{}", run.stderr);
    }
    assert_eq!(model.calls(), 0);
    let files = fs::read_dir(model.folder.path()).expect("a folder");
    assert_eq!(files.count(), 0, "nothing was begun");
}

#[test]
fn adds_the_word_json_for_json_mode() {
    let model = Model::new("keeping-words", &[], &[]);
    let request = |content: &str| {
        let request = json!({ "messages": [{ "role": "user", "content": content }] });
        TemporaryFile::new("keeping-words.json", request.to_string())
    };
    let asked = |more: &[&str]| {
        let before = model.calls();
        assert_eq!(model.complete(more).code, 0);
        let asked = &model.server.asked()[before];
        let messages = asked["messages"].as_array().map(Vec::len);
        (messages, asked["response_format"]["type"].clone())
    };
    assert_eq!(asked(&["Rivers."]), (Some(2), json!("json_object")));
    assert_eq!(asked(&["Rivers as Json."]), (Some(1), json!("json_object")));
    let own = request("Rivers.");
    assert_eq!(asked(&["-f", own.path()]), (Some(1), Value::Null));
    let own = request("Rivers in JSON.");
    assert_eq!(asked(&["-f", own.path()]), (Some(1), json!("json_object")));
}

#[test]
fn an_almost_correct_url_has_a_hint() {
    let model = Model::new("keeping-address", &[], &[]);
    let base = model.server.base();
    let root = base.trim_end_matches("/v1");
    for wrong in [root.to_owned(), format!("{base}/chat/completions")] {
        let store = model.store();
        let run = overlock(
            &[
                "complete",
                "Hi",
                "--model",
                "gpt-4o",
                "--upstream",
                &wrong,
                "--store",
                &store,
            ],
            "",
        );
        assert_eq!(run.code, 1);
        let hint = format!("--upstream {base}\n");
        assert!(run.stderr.contains(&hint), "{}", run.stderr);
    }
}

#[test]
fn refuses_a_duration_that_is_too_long() {
    let model = Model::new("keeping-time", &[], &[]);
    for name in [
        "OVERLOCK_COMPLETE_DEADLINE",
        "OVERLOCK_UPSTREAM_RESPONSE_TIMEOUT",
    ] {
        let run = model.complete_with(&["Hi"], &[(name, "18446744073709551615s")]);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains(name), "{}", run.stderr);
    }
}
