//! Several gateways on one store in `PostgreSQL`.

use std::collections::BTreeMap;
use std::env;

use overlock_llm::testing::{ScriptedServer, eventually, eventually_blocking};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::crowd::{ClientRequest, Clients, Received, cutting, model, report};
use crate::program::{command, overlock, run};
use crate::serving::Serving;

/// The number of idempotency keys that are used at once.
const KEYS: usize = 12;

const REPORT: usize = 6000;
const BREATH: usize = 800;

/// The request log is off, because the tests do not read it while many requests run.
pub(crate) const QUIET: [(&str, &str); 1] = [("OVERLOCK_SERVE_LOG", "off")];

/// A new store on the server that `cargo xtask test` started.
pub(crate) fn shared_store(name: &str) -> String {
    let server = env::var("OVERLOCK_POSTGRES").unwrap_or_else(|_| {
        panic!("OVERLOCK_POSTGRES does not say where PostgreSQL is: run cargo xtask test")
    });
    let process = std::process::id();
    format!("{server}?schema=test_{process}_{name}")
}

/// The answer for a key from any gateway. The next gateway is tried while one is stopped or reports
/// that the key is in progress elsewhere.
async fn answer(crowds: Vec<Clients>, question: ClientRequest) -> Received {
    let mut crowds = crowds.iter().cycle();
    let ask = || {
        let crowd = crowds.next().expect("there is a gateway");
        let question = &question;
        async move {
            let mut seen = Received::default();
            let asked = crowd.ask(question, usize::MAX, &mut seen).await;
            asked.map(|()| seen)
        }
    };
    let answered = eventually(&format!("{question:?}"), ask, Result::is_ok).await;
    answered.expect("it is answered")
}

fn questions() -> Vec<(ClientRequest, String)> {
    let questions = (0..KEYS).map(|number| {
        let question = ClientRequest {
            model: model(number),
            streams: number % 2 == 0,
            key: Some(format!("key-{number}")),
        };
        (question, report(number, REPORT))
    });
    questions.collect()
}

async fn upstream(questions: &[(ClientRequest, String)]) -> ScriptedServer {
    let scripts = questions.iter().enumerate();
    let scripts = scripts.map(|(number, (_, document))| cutting(number, document, BREATH));
    let upstream = ScriptedServer::start_named(scripts, 2).await;
    upstream.expect("a server")
}

/// The number of times that each call was made.
fn calls(upstream: &ScriptedServer) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    for call in upstream.asked() {
        *calls.entry(call.to_string()).or_default() += 1;
    }
    calls
}

fn listed(serving: &Serving) -> Value {
    let (status, runs) = serving.ask("GET /api/runs?limit=1000", "");
    assert_eq!(status, 200, "{runs}");
    serde_json::from_str(&runs).expect("JSON")
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn an_idempotency_key_at_two_gateways_is_one_run() {
    let runtime = Runtime::new().expect("a runtime");
    let store = shared_store("once");
    let questions = questions();
    let upstream = runtime.block_on(upstream(&questions));
    let arguments = ["--upstream", &upstream.base(), "--store", &store];
    let gateways = [(); 2].map(|()| Serving::start("shared", &arguments, &QUIET));
    let crowds = gateways.each_ref().map(|one| Clients::new(&one.address));
    // Each key on both at once.
    let asked = questions.iter().flat_map(|(question, document)| {
        crowds.clone().map(|crowd| {
            let asked = runtime.spawn(answer(vec![crowd], question.clone()));
            (asked, document)
        })
    });
    let asked: Vec<(JoinHandle<Received>, &String)> = asked.collect();
    let mut answers: BTreeMap<&String, Vec<Received>> = BTreeMap::new();
    for (asked, document) in asked {
        let seen = runtime.block_on(asked).expect("no panic");
        assert_eq!(seen.fault(document), None);
        answers.entry(document).or_default().push(seen);
    }
    for seen in answers.values() {
        // Both gateways return the same answer with the same id.
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].ids, seen[1].ids);
        assert_eq!(seen[0].usages, seen[1].usages);
    }
    for (call, count) in calls(&upstream) {
        assert_eq!(count, 1, "{call}");
    }
    let [one, other] = gateways.each_ref().map(listed);
    assert_eq!(one.as_array().expect("a list").len(), KEYS);
    assert_eq!(one, other);
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn another_gateway_finishes_the_runs_of_a_killed_one() {
    let runtime = Runtime::new().expect("a runtime");
    let store = shared_store("finishes");
    let questions = questions();
    let upstream = runtime.block_on(upstream(&questions));
    let arguments = ["--upstream", &upstream.base(), "--store", &store];
    let [mut dying, living] = [(); 2].map(|()| Serving::start("shared", &arguments, &QUIET));
    let crowds = [&dying, &living].map(|one| Clients::new(&one.address));
    let asked = questions.iter().map(|(question, document)| {
        let asked = runtime.spawn(answer(crowds.to_vec(), question.clone()));
        (asked, document)
    });
    let asked: Vec<(JoinHandle<Received>, &String)> = asked.collect();
    // In the middle: some keys have had several calls, and none has all of them.
    let look = || upstream.calls();
    eventually_blocking("calls", look, |calls| *calls >= 3 * KEYS);
    dying.kill();
    for (asked, document) in asked {
        let seen = runtime.block_on(asked).expect("no panic");
        assert_eq!(seen.fault(document), None);
    }
    // At most one call of each key was repeated: the one without a stored answer at the kill.
    let mut again: BTreeMap<String, usize> = BTreeMap::new();
    for (call, count) in calls(&upstream) {
        assert!(count <= 2, "{count} times: {call}");
        let call: Value = serde_json::from_str(&call).expect("JSON");
        let model = call["model"].as_str().expect("a name").to_owned();
        *again.entry(model).or_default() += count - 1;
    }
    for (model, count) in again {
        assert!(count <= 1, "{count} calls for {model} were made again");
    }
    let runs = listed(&living);
    let runs = runs.as_array().expect("a list");
    assert_eq!(runs.len(), KEYS);
    assert!(
        runs.iter().all(|run| run["outcome"] == "complete"),
        "{runs:?}"
    );
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn commands_record_in_a_shared_store() {
    let runtime = Runtime::new().expect("a runtime");
    let store = shared_store("commands");
    let document = report(0, REPORT);
    let script = cutting(0, &document, BREATH);
    let upstream = ScriptedServer::start_named([script], 2);
    let upstream = runtime.block_on(upstream).expect("a server");
    let asked = overlock(
        &[
            "complete",
            "--model",
            &model(0),
            "--upstream",
            &upstream.base(),
            "--store",
            &store,
            "Write the report as JSON.",
        ],
        "",
    );
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    let list = overlock(&["inspect", "--json", "--store", &store], "").json();
    assert_eq!(list[0]["outcome"], "complete");
    let id = list[0]["id"].as_str().expect("a name");
    let run = overlock(&["inspect", id, "--json", "--store", &store], "").json();
    assert_eq!(run["bytes"], document.len());
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn the_resume_hint_shows_no_password() {
    let runtime = Runtime::new().expect("a runtime");
    let store = shared_store("resuming").replacen('@', ":KoZ8w@", 1);
    let script = cutting(0, &report(0, REPORT), BREATH);
    let upstream = ScriptedServer::start_named([script], 2);
    let upstream = runtime.block_on(upstream).expect("a server");
    for more in [&[][..], &["--json"]] {
        let mut arguments = vec!["complete", "--upstream"];
        let (base, model) = (upstream.base(), model(0));
        arguments.extend([&*base, "--model", &*model, "--store", &*store]);
        arguments.push("Write the report as JSON.");
        arguments.extend(more);
        let mut command = command(&arguments);
        let run_result = run(command.env("OVERLOCK_COMPLETE_MAX_ITERATIONS", "2"), "");
        assert_eq!(run_result.code, 1, "{}", run_result.stderr);
        let all = format!("{}{}", run_result.stdout, run_result.stderr);
        assert!(more.len() == 1 || all.contains("--resume"), "{all}");
        assert!(!all.contains("KoZ8w"), "{all}");
    }
}

/// The output of commands with a password in the address of the store.
#[test]
fn no_command_shows_the_password_of_a_store() {
    let unreachable = "postgres://me:KoZ8w@127.0.0.1:1/runs";
    let misspelt = "postgress://me:KoZ8w@127.0.0.1:1/runs";
    for store in [unreachable, misspelt] {
        for command in [
            &["inspect", "--store", store][..],
            &["inspect", "--json", "--store", store],
            &["serve", "--listen", "127.0.0.1:0", "--store", store],
            &[
                "complete",
                "--model",
                "overlock-demo",
                "--upstream",
                "http://127.0.0.1:1/v1",
                "--store",
                store,
                "Hello",
            ],
            &["demo", "--store", store],
        ] {
            let run_result = overlock(command, "");
            assert_ne!(run_result.code, 0, "{command:?}");
            let all = format!("{}{}", run_result.stdout, run_result.stderr);
            assert!(all.contains("me"), "{command:?}: {all}");
            assert!(!all.contains("KoZ8w"), "{command:?}: {all}");
        }
    }
}
