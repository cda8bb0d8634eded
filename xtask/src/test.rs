//! Everything a change must pass, in the order in which a failure is cheapest.

use anyhow::{Context, Result, bail};

use crate::shell::{self, cargo};
use crate::steps::{self, Step};
use crate::{
    clients, count, described, documents, fuzz, judges, load, page, postgres, python, tools,
};

const STEPS: &[Step] = &[
    Step {
        name: "format",
        title: "the code is formatted",
        run: format,
    },
    Step {
        name: "paths",
        title: "what the documents name is there",
        run: documents::check,
    },
    Step {
        name: "clippy",
        title: "clippy has nothing to say",
        run: clippy,
    },
    Step {
        name: "tools",
        title: "what the next steps need is installed",
        run: install,
    },
    Step {
        name: "tests",
        title: "all tests and the examples in the documentation",
        run: tests,
    },
    Step {
        name: "clients",
        title: "real clients get whole documents through the gateway",
        run: clients::check,
    },
    Step {
        name: "api",
        title: "the gateway is what its description says",
        run: described::check,
    },
    Step {
        name: "page",
        title: "every view of the page works in a browser",
        run: page::check,
    },
    Step {
        name: "python",
        title: "the Python package does what its documentation says",
        run: python::check,
    },
    Step {
        name: "docs",
        title: "the documentation builds without a warning",
        run: docs,
    },
    Step {
        name: "licences",
        title: "every dependency may be used",
        run: licences,
    },
    Step {
        name: "demo",
        title: "the first command of the README works",
        run: demo,
    },
    Step {
        name: "load",
        title: "the gateway bears a thousand streams at once",
        run: load::check,
    },
    Step {
        name: "fuzz",
        title: "the laws hold on the seeds and for a few seconds beyond",
        run: fuzz::check,
    },
];

/// Runs all steps, or those named.
pub(crate) fn run(names: &[String]) -> Result<()> {
    steps::run(STEPS, names)
}

fn format() -> Result<String> {
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml", "bench/Cargo.toml"] {
        shell::run(&mut cargo([
            "fmt",
            "--all",
            "--check",
            "--manifest-path",
            manifest,
        ]))?;
    }
    Ok("three workspaces".to_owned())
}

fn clippy() -> Result<String> {
    shell::run(&mut cargo([
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(String::new())
}

fn install() -> Result<String> {
    let tools = tools::install()?;
    judges::verdicts()?;
    clients::install()?;
    described::install()?;
    page::install()?;
    postgres::install()?;
    python::install()?;
    Ok(format!(
        "{tools}, tiktoken, tokenizers, clients of OpenAI, schemathesis, Chromium, PostgreSQL with \
         pgvector, maturin, mypy"
    ))
}

fn tests() -> Result<String> {
    let mut command = cargo(["test", "--workspace", "--no-fail-fast", "--locked"]);
    // The tests that need something installed are ignored in a plain `cargo test`.
    // Those with real clients, with very many, with schemathesis and with a browser are steps of
    // their own, which show what came of it.
    command.args(["--", "--include-ignored"]);
    for own in [clients::TESTS, load::TESTS, described::TESTS, page::TEST] {
        command.args(["--skip", own]);
    }
    command.env(tools::JSON_TEST_SUITE_VARIABLE, tools::json_test_suite()?);
    command.env(judges::VARIABLE, judges::verdicts()?);
    let server = postgres::Server::start(postgres::Disk::Lost)?;
    command.env(postgres::VARIABLE, &server.address);
    // A change must not pass or fail by luck: the same documents every time. A plain `cargo test`
    // draws others, and `cargo xtask fuzz` looks further.
    command.env("PROPTEST_RNG_SEED", "1");
    let (count, result) = count::run(&mut command)?;
    println!("\n{} passed, {} failed", count.passed, count.failed);
    result?;
    if count.failed > 0 || count.passed == 0 {
        bail!("{} tests passed and {} failed", count.passed, count.failed);
    }
    Ok(format!("{} passed, {} failed", count.passed, count.failed))
}

fn docs() -> Result<String> {
    let mut command = cargo(["doc", "--quiet", "--workspace", "--no-deps", "--locked"]);
    shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(String::new())
}

/// Licences, bans and sources; advisories need a database that is not a package, and are left out.
fn licences() -> Result<String> {
    let mut command = tools::cargo_with_tools(["deny", "--locked", "check"]);
    shell::run(command.args(["bans", "licenses", "sources"]))?;
    Ok("bans, licences, sources (no advisories: their database is not a package)".to_owned())
}

fn demo() -> Result<String> {
    let output = cargo(["run", "--quiet", "--release", "--locked", "--", "demo"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("could not start the demo")?;
    if !output.status.success() || output.stdout.is_empty() {
        bail!("`{}` failed or printed nothing", documents::DEMO);
    }
    let lines = output.stdout.split(|byte| *byte == b'\n').count();
    Ok(format!("{lines} lines"))
}
