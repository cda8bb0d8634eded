//! Checks the gateway against `/openapi.json`.
//!
//! Schemathesis generates valid and invalid requests from the description and checks every answer.
//! `cargo xtask test api` installs it and runs this test, which `cargo test` ignores.

use std::path::Path;
use std::process::Command;

use hyper::StatusCode;
use overlock_gateway::Settings;
use overlock_llm::testing::{Behaviour, ScriptedServer};
use overlock_runs::Record;

use crate::door::{Door, ask, report, script, serve_with};

/// The requests per operation and generation mode.
const EXAMPLES: &str = "25";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs schemathesis from PyPI: run cargo xtask test api"]
async fn the_gateway_matches_its_description() {
    let script = script(&report(3000), 1000, &Behaviour::AS_ASKED);
    let upstream = ScriptedServer::start(script, &[]).await.expect("a server");
    let store = overlock_store::in_memory().expect("a store");
    let set = |settings: &mut Settings| settings.record = Record::Full;
    let address = serve_with(&upstream.base(), Some(store), set).await;
    let door = Door { address, upstream };
    // The store has runs.
    for stream in [false, true] {
        let got = door.chat(&ask(stream), &[]).await;
        assert_eq!(got.status, StatusCode::OK);
    }
    let folder = std::env::var_os("OVERLOCK_SCHEMATHESIS")
        .expect("`cargo xtask test api` installs schemathesis and runs this test");
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/described/schemathesis.toml");
    let mut schemathesis = Command::new(Path::new(&folder).join("python/bin/schemathesis"));
    schemathesis
        .arg("--config-file")
        .arg(config)
        .args(["--no-color", "run"])
        .arg(format!("{}/openapi.json", door.address))
        .args(["--mode", "all", "--seed", "1"])
        .args(["--max-examples", EXAMPLES, "--generation-database", "none"])
        .args(["--request-timeout", "30", "--continue-on-failure"])
        .args(["--suppress-health-check", "all", "--warnings", "off"])
        // Without the proxies and keys of the user.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(std::env::temp_dir());
    let output = tokio::task::spawn_blocking(move || schemathesis.output()).await;
    let output = output.expect("no panic").expect("it runs");
    let reported = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{reported}\n{complaints}");
    let tested = reported.lines().find(|line| line.contains("generated"));
    println!("\n{}\n", tested.unwrap_or_default().trim());
    assert!(tested.is_some(), "nothing was tested: {reported}");
}
