//! Third-party clients: all get the complete document with the gateway, and none without it.
//!
//! `cargo xtask test clients` installs the clients, sets their folder in an environment variable, and
//! runs these tests, which `cargo test` ignores.

mod claude_code;
mod codex;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use overlock_gateway::Settings;
use overlock_llm::Strategy;
use overlock_llm::testing::{Behaviour, Fault, Script, ScriptedServer};
use overlock_llm::wire::Protocol;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::door::{Door, report, script};

/// The trials with clients of Python.
const PYTHON_TRIALS: &[&str] = &[
    "openai create",
    "openai create, async",
    "openai parse",
    "openai stream",
    "openai stream, async",
    "openai stream and parse",
    BREAKS_OFF,
    "openai tool call",
    "openai tool call, stream",
    "openai tool call, parse",
    "responses create",
    "responses parse",
    "responses stream",
    "responses stream and parse",
    "responses tool call",
    "responses tool call, stream",
    "messages create",
    "messages create with a format",
    "messages create, stream",
    "messages stream",
    "messages tool call",
    "messages tool call, stream",
    "langchain json_mode",
    "langchain json_mode, stream",
    "langchain json_schema",
    "langchain json_schema, stream",
    "langchain function_calling",
    "langchain function_calling, stream",
    "instructor JSON",
    "instructor JSON, stream",
    "instructor TOOLS",
    "instructor TOOLS, stream",
];

/// The trials with clients of JavaScript.
const NODE_TRIALS: &[&str] = &[
    "openai create",
    "openai stream",
    "openai parse",
    "openai stream and parse",
    BREAKS_OFF,
    "openai tool call, parse",
    "responses create",
    "responses parse",
    "responses stream and parse",
    "responses, ai generateObject",
    "responses, ai streamObject",
    "ai generateObject",
    "ai streamObject",
    "ai generateText with an object",
    "ai (compatible) generateObject",
    "ai (compatible) streamObject",
];

/// In these trials the connection also breaks in the middle of the first answer.
const BREAKS_OFF: &str = "openai stream that breaks off";

#[tokio::test]
#[ignore = "needs clients from PyPI: run cargo xtask test clients"]
async fn clients_of_python_get_complete_documents() {
    let mut python = Command::new(folder().join("python/bin/python"));
    python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients/python.py"));
    check_clients("Python", python, PYTHON_TRIALS).await;
}

#[tokio::test]
#[ignore = "needs clients from npm: run cargo xtask test clients"]
async fn clients_of_javascript_get_complete_documents() {
    let mut node = Command::new("node");
    // A script without a file finds packages relative to the working directory.
    node.current_dir(folder().join("node"))
        .args(["--input-type=module", "--eval"])
        .arg(include_str!("clients/node.mjs"));
    check_clients("JavaScript", node, NODE_TRIALS).await;
}

/// The output of a script.
#[derive(Deserialize)]
struct ScriptOutput {
    trials: BTreeMap<String, Trial>,
    refusals: BTreeMap<String, Outcome>,
}

/// The same request without and with the gateway.
#[derive(Deserialize)]
struct Trial {
    direct: Outcome,
    gateway: Outcome,
}

impl Trial {
    /// Details for debugging.
    fn details(&self) -> String {
        let (direct, gateway) = (self.direct.details(), self.gateway.details());
        format!("direct: {direct}\nthrough the gateway: {gateway}")
    }
}

/// The result of a client.
#[derive(Deserialize)]
#[serde(untagged)]
enum Outcome {
    TestResponse {
        got: Value,
    },
    Raised {
        error: String,
        code: Option<String>,
        message: String,
    },
}

impl Outcome {
    /// Whether it is the document: byte for byte if the client returns text, by value if it returns
    /// parsed JSON.
    fn is(&self, document: &str) -> bool {
        match self {
            Self::TestResponse {
                got: Value::String(text),
            } => text == document,
            Self::TestResponse { got } => {
                serde_json::from_str::<Value>(document).expect("a document") == *got
            }
            Self::Raised { .. } => false,
        }
    }

    fn shown(&self, document: &str) -> String {
        match self {
            _ if self.is(document) => "whole".to_owned(),
            Self::TestResponse { got: Value::Null } => "nothing".to_owned(),
            Self::TestResponse { .. } => "a part of it, and no error".to_owned(),
            Self::Raised { error, .. } => error.clone(),
        }
    }

    /// Details for debugging.
    fn details(&self) -> String {
        match self {
            Self::TestResponse { got } => got.to_string(),
            Self::Raised { error, message, .. } => format!("{error}: {message}"),
        }
    }
}

/// Has a script make all trials, each with a separate model that cuts every answer.
async fn check_clients(language: &str, clients: Command, names: &[&str]) {
    let document = report(6000);
    let mut tried = Vec::new();
    for name in names {
        let faults = [(*name == BREAKS_OFF).then_some(Fault::Reset(600))];
        let direct = ScriptedServer::start(cutting(&document), &faults).await;
        let set = |settings: &mut Settings| {
            if name.starts_with("responses") {
                settings.upstream.api = Protocol::Responses;
            } else if name.starts_with("messages") {
                settings.upstream.api = Protocol::Messages;
            }
        };
        let door = Door::open_with(cutting(&document), &faults, set).await;
        tried.push((*name, direct.expect("a server"), door));
    }
    let trials: BTreeMap<&str, Value> = tried
        .iter()
        .map(|(name, direct, door)| {
            let bases = json!({ "direct": direct.base(), "gateway": base(door) });
            (*name, bases)
        })
        .collect();
    let idle = Door::open(cutting(&document), &[]).await;
    let busy = [Some(Fault::Status(429, Some(1)))];
    // Without retries of the gateway, so that the client sees the failure.
    let without_retries = |settings: &mut Settings| settings.upstream.retries.retries = 0;
    let busy = Door::open_with(cutting(&document), &busy, without_retries).await;
    let stubborn = script(&document, 1200, &[Behaviour::Apologises]);
    let only_overlap =
        |settings: &mut Settings| settings.continuation.strategies = vec![Strategy::Overlap];
    let stubborn = Door::open_with(stubborn, &[], only_overlap).await;
    let asked = json!({
        "trials": trials,
        "refusals": {
            "too long for the model": base(&idle),
            "too many requests": base(&busy),
            "stays cut": base(&stubborn),
            "tool call stays cut": base(&stubborn),
        },
    });
    let reported = run_blocking(move || run(clients, &asked)).await;

    let mut table = vec![row(language, "direct", "through the gateway")];
    let mut wrong = Vec::new();
    for (name, server, door) in &tried {
        let trial = &reported.trials[*name];
        let asked = door.upstream.asked();
        let gateway = trial.gateway.shown(&document);
        let gateway = format!("{gateway}, {} calls", asked.len());
        table.push(row(name, &trial.direct.shown(&document), &gateway));
        // A client that retried did not get the document the first time.
        let by_client = asked.iter().filter(|request| !asks_for_rest(request));
        let is_whole = trial.gateway.is(&document) && by_client.count() == 1;
        let was_needed = !server.asked().is_empty() && !trial.direct.is(&document);
        if !is_whole || !was_needed || asked.len() < 3 {
            wrong.push(format!("{name}: {}", trial.details()));
        }
    }
    println!("\n{}\n", table.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    check_refusals(&reported.refusals);
    assert!(idle.upstream.asked().is_empty());
}

fn row(name: &str, direct: &str, gateway: &str) -> String {
    format!("{name:<36} {direct:<30} {gateway}")
}

/// Errors must be those of `OpenAI`, and an incomplete document must not look complete.
#[track_caller]
fn check_refusals(refusals: &BTreeMap<String, Outcome>) {
    let expected = [
        (
            "too long for the model",
            "BadRequestError",
            Some("context_length_exceeded"),
        ),
        ("too many requests", "RateLimitError", None),
        ("stays cut", "LengthFinishReasonError", None),
        ("tool call stays cut", "LengthFinishReasonError", None),
    ];
    for (name, wanted, wanted_code) in expected {
        let outcome = &refusals[name];
        let Outcome::Raised { error, code, .. } = outcome else {
            panic!("{name}: {}", outcome.details());
        };
        assert_eq!(error, wanted, "{name}: {}", outcome.details());
        assert_eq!(code.as_deref(), wanted_code, "{name}");
    }
}

/// Whether a request is a continuation of the gateway.
fn asks_for_rest(request: &Value) -> bool {
    let messages = request.get("messages").or_else(|| request.get("input"));
    let last = messages.and_then(|messages| match messages {
        Value::Array(messages) => messages.last(),
        text => Some(text),
    });
    // The beginning of the answer, or instructions with an overlap.
    last.is_some_and(|last| last["role"] == "assistant" || last.to_string().contains("[[overlap-"))
}

/// A model that needs several answers for a document.
fn cutting(document: &str) -> Script {
    script(document, 1200, &Behaviour::AS_ASKED)
}

/// The base URL for a client.
fn base(door: &Door) -> String {
    format!("{}/v1", door.address)
}

/// The folder in which the clients are installed.
fn folder() -> PathBuf {
    std::env::var_os("OVERLOCK_CLIENTS")
        .expect("`cargo xtask test clients` installs the clients and runs this test")
        .into()
}

/// Waits for work on another thread, and panics as it does.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// Runs a script to its end.
fn run(mut script: Command, asked: &Value) -> ScriptOutput {
    // Without the keys, addresses and proxies of the user.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut script = script
        .env_clear()
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the script starts");
    let mut input = script.stdin.take().expect("it listens");
    input
        .write_all(asked.to_string().as_bytes())
        .expect("it reads");
    drop(input);
    let output = script.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaints}");
    // A client may print other lines before.
    let reported = said.lines().last().unwrap_or_default();
    serde_json::from_str(reported).unwrap_or_else(|error| panic!("{error}: {said}\n{complaints}"))
}
