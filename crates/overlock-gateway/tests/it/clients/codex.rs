//! Codex CLI, whose commands are cut in the middle: each is executed once, whole.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use super::{folder, run_blocking};
use crate::fake::{Fake, FakeReply};
use crate::responses::{Item, door, later, stream};

/// A command that writes notes to a file and counts how often it is executed.
fn writing(file: &str) -> String {
    let notes: Vec<String> = (0..40).map(|line| format!("{line}. \"Ü\" 🚀")).collect();
    let notes = notes.join("\n");
    format!("cat > {file} <<'EOF'\n{notes}\nEOF\necho {file} >> executed.txt")
}

/// The answer with a call of a command, cut in the middle, and its rest.
fn cut_call(number: usize, command: &str) -> [FakeReply; 2] {
    let arguments = json!({ "cmd": command }).to_string();
    let (first, rest) = arguments.split_at(arguments.ceil_char_boundary(arguments.len() / 2));
    let items = [Item::Reasoning, Item::Call(first.to_owned())];
    let mut call = stream(&items, "length", 30);
    let id = format!("\"call_{number}\"");
    call.body = call.body.replace("\"write\"", "\"exec_command\"");
    call.body = call.body.replace("\"call_1\"", &id);
    let tail = &first[first.floor_char_boundary(first.len() - 200)..];
    [call, later(&[tail, rest].concat())]
}

/// Runs Codex in a folder, with the model at an address.
async fn codex(base: String, work: &Path) -> Output {
    let home = work.join("home");
    std::fs::create_dir(&home).expect("a folder");
    let mut codex = Command::new(folder().join("codex/node_modules/.bin/codex"));
    let provider = format!(
        "model_providers.test={{name=\"test\",base_url=\"{base}\",wire_api=\"responses\",\
         env_key=\"TEST_KEY\",request_max_retries=0,stream_max_retries=0}}"
    );
    codex
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &home)
        .env("CODEX_HOME", &home)
        .env("TEST_KEY", "sk-test")
        .args(["exec", "--skip-git-repo-check"])
        .arg("--dangerously-bypass-approvals-and-sandbox")
        .arg("-C")
        .arg(work)
        .args(["-c", &provider, "-c", "model_provider=\"test\""])
        .args(["-c", "model=\"gpt-5\"", "Write the notes."])
        .stdin(std::process::Stdio::null());
    run_blocking(move || codex.output().expect("Codex starts")).await
}

#[tokio::test]
#[ignore = "needs Codex from npm: run cargo xtask test clients"]
async fn codex_executes_cut_commands_once() {
    let files = ["notes.txt", "more.txt"];
    let commands = files.map(writing);
    let mut replies = Vec::new();
    for (number, command) in commands.iter().enumerate() {
        replies.extend(cut_call(number, command));
    }
    replies.push(stream(&[Item::Text("Done.".to_owned())], "stop", 3));

    let direct = Fake::start(replies.clone()).await;
    let work = tempfile::tempdir().expect("a folder");
    let output = codex(direct.base.clone(), work.path()).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Incomplete response returned"), "{said}");
    assert!(!work.path().join("executed.txt").exists());

    let door = door(replies).await;
    let work = tempfile::tempdir().expect("a folder");
    let output = codex(format!("{}/v1", door.address), work.path()).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "Done.");
    let read = |file: &str| std::fs::read_to_string(work.path().join(file)).expect(file);
    assert_eq!(read("executed.txt"), "notes.txt\nmore.txt\n");
    for (file, command) in files.iter().zip(&commands) {
        assert!(command.contains(&read(file)), "{said}");
    }

    // Two calls for each command, and one for the answer.
    let asked = door.upstream.requests();
    assert_eq!(asked.len(), 5);
    let input = asked[4].body["input"].as_array().expect("items");
    let kinds: Vec<&str> = input
        .iter()
        .filter_map(|item| item["type"].as_str())
        .collect();
    let turn = ["reasoning", "function_call", "function_call_output"];
    assert!(kinds.ends_with(&[turn, turn].concat()), "{kinds:?}");
    let reasoning = input.iter().filter(|item| item["type"] == "reasoning");
    for item in reasoning {
        assert_eq!(item["encrypted_content"], "gAAAAB==");
    }
}
