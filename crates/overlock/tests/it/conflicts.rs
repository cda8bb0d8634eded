//! Settings that contradict each other or the upstream, or have no effect.

use overlock_llm::testing::{Manner, Script, ScriptedServer};
use tokio::runtime::Runtime;

use crate::program::TemporaryFolder;
use crate::serve::check_refused;
use crate::serving::Serving;

/// What the gateway says at its start with these settings.
fn said_with(name: &str, settings: &str, arguments: &[&str]) -> String {
    let folder = TemporaryFolder::new(&format!("{name}-settings"));
    folder.write("overlock.toml", settings);
    let config = folder.path().join("overlock.toml").display().to_string();
    let arguments = [&["--config", &config], arguments].concat();
    Serving::start(name, &arguments, &[]).said.clone()
}

/// The provider is known by its host, and asked nothing.
const OPENAI: [&str; 2] = ["--upstream", "https://api.openai.com/v1"];

#[test]
fn prefill_alone_where_there_is_to_be_none_is_refused() {
    let folder = TemporaryFolder::new("serve-contradiction");
    let settings = "[upstream]\nprefill = \"none\"\n[complete]\nstrategy = \"prefill\"\n";
    folder.write("overlock.toml", settings);
    let config = folder.path().join("overlock.toml").display().to_string();
    let told = "error: `complete.strategy` is `prefill`, but `upstream.prefill` is `none`";
    check_refused(&["--config", &config], told);
}

#[test]
fn an_upstream_that_is_the_gateway_itself_is_refused() {
    for upstream in ["http://127.0.0.1:9/v1", "http://localhost:9/v1"] {
        let arguments = ["--listen", "127.0.0.1:9", "--upstream", upstream];
        check_refused(&arguments, ":9 is this gateway\nhint: ");
    }
}

#[test]
fn settings_that_have_no_effect_are_named_at_the_start() {
    let unreachable = ["--upstream", "http://127.0.0.1:1/v1"];
    let settings = "[upstream]\nprefill = \"last-message\"\n[complete]\nstrategy = \"overlap\"\n";
    let said = said_with("no-effect", settings, &unreachable);
    let told = "warning: `upstream.prefill` is `last-message` and has no effect, because \
                `complete.strategy` is `overlap`\nhint: ";
    assert!(said.contains(told), "{said}");
    let said = said_with("no-effect", "[upstream]\ndiscovery = \"off\"\n", &[]);
    let told = "warning: `upstream.discovery` is `off` and has no effect";
    // The machine may have an upstream, for which the setting holds.
    assert_eq!(
        said.contains(told),
        said.contains("upstream: none"),
        "{said}"
    );
    assert!(!said_with("no-effect", "", &unreachable).contains("warning: "));
}

#[test]
fn a_prefill_that_the_upstream_does_not_take_is_named_at_the_start() {
    let said = said_with(
        "no-prefill",
        "[complete]\nstrategy = \"prefill\"\n",
        &OPENAI,
    );
    let told = "warning: `complete.strategy` is `prefill`, but the upstream takes no prefill \
                (OpenAI)\nhint: ";
    assert!(said.contains(told), "{said}");
    let said = said_with(
        "no-prefill",
        "[upstream]\nprefill = \"last-message\"\n",
        &OPENAI,
    );
    let told = "warning: `upstream.prefill` is `last-message`, but OpenAI takes no prefill\nhint: ";
    assert!(said.contains(told), "{said}");
}

#[test]
fn a_window_that_the_upstream_does_not_have_is_named_at_the_start() {
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
    let said = said_with("own-window", "[models.mine]\nwindow = 8192\n", &upstream);
    let told = "warning: `models.mine.window` is 8192, but the upstream takes 4096 tokens \
                (GET /props)\nhint: ";
    assert!(said.contains(told), "{said}");
    let said = said_with("own-window", "[models.mine]\nwindow = 2048\n", &upstream);
    assert!(!said.contains("warning: "), "{said}");
}
