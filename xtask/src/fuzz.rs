//! Runs the fuzz targets: briefly in tests, longer with `cargo xtask fuzz`.
//!
//! The seeds in `fuzz/seeds/` are committed. New inputs go to `fuzz/corpus/`, which is not
//! committed, so that a test does not change the tree.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::shell::{self, root};
use crate::steps::Depth;
use crate::tools::{self, cargo_with_tools};

/// Builds all targets and runs each with its seeds and for a few more seconds, two at a time.
pub(crate) fn check(depth: Depth) -> Result<String> {
    tools::install("cargo-fuzz")?;
    build(depth)?;
    let targets = targets()?;
    // A fixed seed and a fixed number of runs, so that the result depends on the tree alone.
    let limits: &[&str] = match depth {
        Depth::Quick | Depth::Gate => &["-seed=1", "-runs=20000", "-max_total_time=4"],
        Depth::Long => &["-max_total_time=60"],
    };
    let results = Mutex::new(Vec::new());
    let waiting = Mutex::new(targets.iter());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(target) = waiting.lock().ok().and_then(|mut all| all.next()) {
                    let result = run_target(target, depth, limits);
                    if let Ok(mut results) = results.lock() {
                        results.push(result);
                    }
                }
            });
        }
    });
    let results = results.into_inner().ok().context("a thread panicked")?;
    let failures: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .map(|error| format!("{error:#}"))
        .collect();
    if !failures.is_empty() || results.len() != targets.len() {
        bail!("{}", failures.join("\n"));
    }
    Ok(format!("{} targets", targets.len()))
}

/// `cargo xtask fuzz [--seconds N] [TARGET …]`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut seconds = 60;
    let mut chosen = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => {
                let number = arguments.next().context("`--seconds` needs a number")?;
                seconds = number
                    .parse()
                    .with_context(|| format!("`{number}` is not a number"))?;
            }
            target => chosen.push(target.to_owned()),
        }
    }
    let targets = targets()?;
    if let Some(unknown) = chosen.iter().find(|target| !targets.contains(target)) {
        bail!(
            "unknown fuzz target `{unknown}`; the targets are {}",
            targets.join(", ")
        );
    }
    tools::install("cargo-fuzz")?;
    build(Depth::Long)?;
    let limit = format!("-max_total_time={seconds}");
    for target in if chosen.is_empty() { &targets } else { &chosen } {
        run_target(target, Depth::Long, &[&limit])?;
    }
    Ok(())
}

/// The names of the targets, which are the names of their files.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in
        fs::read_dir(root().join("fuzz/targets")).context("could not list the fuzz targets")?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(
                path.file_stem()
                    .map(|name| name.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort();
    Ok(names)
}

fn build(depth: Depth) -> Result<()> {
    let mut command = cargo_with_tools(["fuzz", "build"]);
    shell::run(command.args(profile(depth)).env("RUSTC_BOOTSTRAP", "1"))
}

/// Builds fast for the gate, and with the address sanitizer for a long run.
fn profile(depth: Depth) -> &'static [&'static str] {
    match depth {
        Depth::Quick | Depth::Gate => &["--dev", "--sanitizer", "none"],
        Depth::Long => &["--release"],
    }
}

fn run_target(target: &str, depth: Depth, limits: &[&str]) -> Result<()> {
    eprintln!("   {target}");
    let corpus = root().join("fuzz/corpus").join(target);
    let seeds = root().join("fuzz/seeds").join(target);
    if !has_files(&seeds) {
        bail!("the fuzz target `{target}` has no seeds in `fuzz/seeds/{target}`");
    }
    fs::create_dir_all(&corpus)?;
    // RUSTC_BOOTSTRAP lets a stable compiler accept the nightly flags for sanitizers and coverage.
    let mut command = cargo_with_tools(["fuzz", "run", target]);
    command
        .args(profile(depth))
        .arg(&corpus)
        .arg(&seeds)
        .arg("--")
        .args(limits);
    command.args([
        "-timeout=30",
        "-max_len=4096",
        "-verbosity=0",
        "-print_final_stats=0",
    ]);
    let output = command
        .env("RUSTC_BOOTSTRAP", "1")
        .output()
        .with_context(|| format!("could not start {}", shell::shown(&command)))?;
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        bail!("the fuzz target `{target}` found a failing input");
    }
    Ok(())
}

fn has_files(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}
