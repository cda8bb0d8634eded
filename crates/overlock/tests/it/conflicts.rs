//! Settings that contradict each other or the upstream, or have no effect.

use overlock_llm::testing::{Manner, Script, ScriptedServer};
use tokio::runtime::Runtime;

use crate::program::TemporaryFolder;
use crate::serve::check_refused;
use crate::serving::Serving;

/// The startup messages of the gateway with these settings.
fn startup_output(name: &str, settings: &str, arguments: &[&str]) -> String {
    let folder = TemporaryFolder::new(&format!("{name}-settings"));
    folder.write("overlock.toml", settings);
    let config = folder.path().join("overlock.toml").display().to_string();
    let arguments = [&["--config", &config], arguments].concat();
    Serving::start(name, &arguments, &[]).stderr.clone()
}

/// The provider is known by its host, so no request is made.
const OPENAI: [&str; 2] = ["--upstream", "https://api.openai.com/v1"];

#[test]
fn refuses_the_strategy_prefill_without_prefill() {
    let folder = TemporaryFolder::new("serve-contradiction");
    let settings = "[upstream]\nprefill = \"none\"\n[complete]\nstrategy = \"prefill\"\n";
    folder.write("overlock.toml", settings);
    let config = folder.path().join("overlock.toml").display().to_string();
    let expected = "error: `complete.strategy` is `prefill`, but `upstream.prefill` is `none`";
    check_refused(&["--config", &config], expected);
}

#[test]
fn refuses_the_gateway_as_its_own_upstream() {
    for upstream in ["http://127.0.0.1:9/v1", "http://localhost:9/v1"] {
        let arguments = ["--listen", "127.0.0.1:9", "--upstream", upstream];
        check_refused(&arguments, ":9 is this gateway\nhint: ");
    }
}

#[test]
fn warns_of_settings_without_effect() {
    let unreachable = ["--upstream", "http://127.0.0.1:1/v1"];
    let settings = "[upstream]\nprefill = \"last-message\"\n[complete]\nstrategy = \"overlap\"\n";
    let output = startup_output("no-effect", settings, &unreachable);
    let expected = "warning: `upstream.prefill` is `last-message` and has no effect, because \
                `complete.strategy` is `overlap`\nhint: ";
    assert!(output.contains(expected), "{output}");
    let output = startup_output("no-effect", "[upstream]\ndiscovery = \"off\"\n", &[]);
    let expected = "warning: `upstream.discovery` is `off` and has no effect";
    // This machine may have an upstream that the setting applies to.
    assert_eq!(
        output.contains(expected),
        output.contains("upstream: none"),
        "{output}"
    );
    assert!(!startup_output("no-effect", "", &unreachable).contains("warning: "));
}

#[test]
fn warns_of_a_prefill_that_the_upstream_does_not_support() {
    let output = startup_output(
        "no-prefill",
        "[complete]\nstrategy = \"prefill\"\n",
        &OPENAI,
    );
    let expected = "warning: `complete.strategy` is `prefill`, but the upstream does not support prefill \
                (OpenAI)\nhint: ";
    assert!(output.contains(expected), "{output}");
    let output = startup_output(
        "no-prefill",
        "[upstream]\nprefill = \"last-message\"\n",
        &OPENAI,
    );
    let expected = "warning: `upstream.prefill` is `last-message`, but OpenAI does not support prefill\nhint: ";
    assert!(output.contains(expected), "{output}");
}

#[test]
fn warns_of_a_window_larger_than_the_upstreams() {
    let runtime = Runtime::new().expect("a runtime");
    let script = Script {
        document: "[1]".to_owned(),
        breath: (9, 9),
        behaviours: Vec::new(),
        seed: 3,
    };
    let server = ScriptedServer::start_as(Manner::LlamaCpp, script, &[]);
    let server = runtime.block_on(server).expect("a server");
    let upstream = ["--upstream", &server.base()];
    let output = startup_output("own-window", "[models.mine]\nwindow = 8192\n", &upstream);
    let expected = "warning: `models.mine.window` is 8192, but the upstream has a window of 4096 tokens \
                (GET /props)\nhint: ";
    assert!(output.contains(expected), "{output}");
    let output = startup_output("own-window", "[models.mine]\nwindow = 2048\n", &upstream);
    assert!(!output.contains("warning: "), "{output}");
}
