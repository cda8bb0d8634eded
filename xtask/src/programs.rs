//! Builds the test programs of the workspace once, and runs all of them or some of their tests.
//!
//! Tests that need more than Rust and a C compiler are `#[ignore]`d. Each belongs to one step,
//! which selects it by a part of its name; a test that no step selects fails the step `tests`.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{self, cargo, program};

/// One executable with tests.
#[derive(Clone)]
pub(crate) struct TestProgram {
    pub(crate) path: PathBuf,
    /// The folder of its package, in which cargo would run it.
    folder: PathBuf,
    name: String,
}

/// How many tests of one or more programs passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// The test programs, built first if this process has not built them yet.
pub(crate) fn build() -> Result<Vec<TestProgram>> {
    static BUILT: Mutex<Option<Vec<TestProgram>>> = Mutex::new(None);
    let mut built = BUILT.lock().ok().context("building the tests panicked")?;
    if built.is_none() {
        let mut command = cargo(["test", "--quiet", "--workspace", "--no-run", "--locked"]);
        command.arg("--message-format=json-render-diagnostics");
        *built = Some(artifacts(&shell::output(&mut command)?.stdout)?);
    }
    Ok(built.clone().unwrap_or_default())
}

/// The test programs among the messages of cargo.
fn artifacts(messages: &[u8]) -> Result<Vec<TestProgram>> {
    let mut programs = Vec::new();
    for message in serde_json::Deserializer::from_slice(messages).into_iter::<Value>() {
        let message = message.context("could not read what cargo built")?;
        let Some(path) = message["executable"].as_str() else {
            continue;
        };
        if message["profile"]["test"] != true {
            continue;
        }
        let manifest = PathBuf::from(message["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().context("a manifest is in a folder")?;
        let package = folder.file_name().unwrap_or_default().to_string_lossy();
        let target = message["target"]["name"].as_str().unwrap_or_default();
        programs.push(TestProgram {
            path: PathBuf::from(path),
            folder: folder.to_owned(),
            name: format!("{package}/{target}"),
        });
    }
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(programs)
}

impl TestProgram {
    fn command(&self) -> Command {
        let mut command = program(&self.path.to_string_lossy());
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// The ignored tests whose names contain one of the filters, or all ignored tests.
    pub(crate) fn ignored(&self, filters: &[&str]) -> Result<Vec<String>> {
        let mut command = self.command();
        command.args(["--list", "--ignored", "--format=terse"]);
        let output = shell::output(command.args(filters))?;
        let listed = String::from_utf8_lossy(&output.stdout);
        let names = listed
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }
}

/// Runs all tests that are not ignored, two programs at a time: many tests wait.
pub(crate) fn run_all(variables: &[(&str, &OsStr)]) -> Result<Count> {
    let mut total = Count::default();
    let mut failed = Vec::new();
    let waiting = Mutex::new(build()?.into_iter());
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..2 {
            let (waiting, sender) = (&waiting, sender.clone());
            scope.spawn(move || {
                while let Some(program) = waiting.lock().ok().and_then(|mut all| all.next()) {
                    let mut command = program.command();
                    command.arg("--quiet").envs(variables.iter().copied());
                    // The receiver is there until both threads have ended.
                    let _ = sender.send((program.name, command.output()));
                }
            });
        }
        drop(sender);
        for (name, output) in ended {
            let output = output.with_context(|| format!("could not run {name}"))?;
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                shell::print(line);
                total.read(line);
            }
            if !output.status.success() {
                shell::print(&String::from_utf8_lossy(&output.stderr));
                failed.push(name);
            }
        }
        anyhow::Ok(())
    })?;
    if !failed.is_empty() {
        bail!("{} tests failed, in {}", total.failed, failed.join(", "));
    }
    if total.passed == 0 {
        bail!("no test was run");
    }
    Ok(total)
}

/// Runs the ignored tests whose names contain one of the filters, and shows what they print.
pub(crate) fn run_ignored(
    filters: &[&str],
    variables: &[(&str, &OsStr)],
    arguments: &[&str],
) -> Result<Count> {
    let mut total = Count::default();
    let mut failed = Vec::new();
    for program in build()? {
        let expected = program.ignored(filters)?.len();
        if expected == 0 {
            continue;
        }
        let mut command = program.command();
        command.args(["--quiet", "--ignored", "--nocapture"]);
        command.args(arguments).args(filters);
        let (count, succeeded) = run(command.envs(variables.iter().copied()))?;
        total.add(count);
        if !succeeded || count.passed != expected {
            failed.push(format!(
                "{} of {expected} tests of {} passed",
                count.passed, program.name
            ));
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join(", "));
    }
    if total.passed == 0 {
        bail!("no test has a name with {}", filters.join(" or "));
    }
    Ok(total)
}

/// Runs one program, shows its output as it is printed, and reads the count from it.
fn run(command: &mut Command) -> Result<(Count, bool)> {
    let mut child = shell::spawn(command.stdout(Stdio::piped()))?;
    let mut count = Count::default();
    if let Some(output) = child.stdout.take() {
        // A test may print bytes that are not UTF-8, so lines are read as bytes.
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("could not read the output of the tests")?;
            let line = String::from_utf8_lossy(&line);
            shell::print(&line);
            count.read(&line);
        }
    }
    let status = child.wait().context("could not wait for the tests")?;
    Ok((count, status.success()))
}

impl Count {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Adds the figures of a line of output, if it is the last line of a test program.
    pub(crate) fn read(&mut self, line: &str) {
        let Some((_, numbers)) = line.split_once("test result: ") else {
            return;
        };
        // "ok. 12 passed; 0 failed; 0 ignored; …"
        for part in numbers.split([';', '.']) {
            match part.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up_the_last_lines_of_test_programs() {
        let mut count = Count::default();
        for line in [
            "running 2 tests",
            "all 9 passed; nothing else",
            "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; finished in 0.00s",
            "test result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured; finished in 1.20s",
        ] {
            count.read(line);
        }
        let expected = Count {
            passed: 12,
            failed: 3,
        };
        assert_eq!(count, expected);
    }

    #[test]
    fn finds_the_test_programs_among_what_cargo_built() {
        let messages = br#"
            {"executable":null,"profile":{"test":true},"manifest_path":"/w/a/Cargo.toml"}
            {"executable":"/t/a","profile":{"test":false},"manifest_path":"/w/a/Cargo.toml"}
            {"executable":"/t/it","profile":{"test":true},"manifest_path":"/w/b/Cargo.toml","target":{"name":"it"}}
            {"reason":"build-finished","success":true}"#;
        let programs = artifacts(messages).expect("messages of cargo");
        let found: Vec<_> = programs
            .iter()
            .map(|program| program.name.as_str())
            .collect();
        assert_eq!(found, ["b/it"]);
    }
}
