//! Builds all targets of the workspace once, and runs all test programs or some of their tests.
//!
//! Tests that need more than Rust and a C compiler are `#[ignore]`d. Each belongs to one step,
//! which selects it by a part of its name; a test that no step selects fails the step `tests`.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
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
    pub(crate) folder: PathBuf,
    size: u64,
    /// Its package and its target.
    pub(crate) name: String,
}

/// How many tests of one or more programs passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// The test programs and the warnings of the compiler.
#[derive(Clone, Default)]
pub(crate) struct Built {
    pub(crate) programs: Vec<TestProgram>,
    /// The other programs, each with the folder of its package.
    pub(crate) binaries: BTreeSet<(PathBuf, PathBuf)>,
    /// The warnings of rustc and clippy, also those of an earlier build.
    pub(crate) warnings: BTreeSet<String>,
}

/// Builds all targets, unless this process has built them already.
pub(crate) fn build() -> Result<Built> {
    static BUILT: Mutex<Option<Built>> = Mutex::new(None);
    let mut built = BUILT.lock().ok().context("building the tests panicked")?;
    if built.is_none() {
        let mut all = Built::default();
        all.compile()?;
        // Large programs tend to run long, so they start first.
        all.programs.sort_by_key(|program| Reverse(program.size));
        *built = Some(all);
    }
    Ok(built.clone().unwrap_or_default())
}

/// Makes clippy the compiler of our own crates. It also generates code, so that a crate is compiled
/// once instead of once for clippy and once for the tests.
pub(crate) fn with_clippy(command: &mut Command) -> &mut Command {
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
}

impl Built {
    fn compile(&mut self) -> Result<()> {
        let mut command = cargo([
            "test",
            "--no-run",
            "--quiet",
            "--workspace",
            "--locked",
            "--message-format=json",
        ]);
        let mut child = shell::spawn(with_clippy(&mut command).stdout(Stdio::piped()))?;
        let mut messages = Vec::new();
        if let Some(mut output) = child.stdout.take() {
            output.read_to_end(&mut messages)?;
        }
        self.read(&messages)?;
        shell::check(&command, child.wait()?)
    }

    /// Reads the messages of cargo, and prints those of the compiler that are new.
    fn read(&mut self, messages: &[u8]) -> Result<()> {
        for message in serde_json::Deserializer::from_slice(messages).into_iter::<Value>() {
            let message = message.context("could not read the messages of cargo")?;
            let diagnostic = &message["message"];
            let rendered = diagnostic["rendered"].as_str().unwrap_or_default();
            match diagnostic["level"].as_str() {
                // The library is compiled again for its tests, with the same warnings. The last
                // one of a crate, which has no code, only counts the others.
                Some("warning")
                    if diagnostic["code"].is_object()
                        && self.warnings.insert(rendered.to_owned()) =>
                {
                    shell::print(rendered);
                }
                Some("error") => shell::print(rendered),
                _ => {}
            }
            let Some(path) = message["executable"].as_str().map(PathBuf::from) else {
                continue;
            };
            let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
            let folder = manifest.parent().context("a manifest is in a folder")?;
            if message["profile"]["test"] == true {
                let package = folder.file_name().unwrap_or_default().to_string_lossy();
                let target = message["target"]["name"].as_str().unwrap_or_default();
                self.programs.push(TestProgram {
                    name: format!("{package}/{target}"),
                    size: fs::metadata(&path).map_or(0, |metadata| metadata.len()),
                    folder: folder.to_owned(),
                    path,
                });
            } else {
                self.binaries.insert((folder.to_owned(), path));
            }
        }
        Ok(())
    }
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

/// Runs all tests of these programs that are not ignored, two programs at a time: many tests wait.
pub(crate) fn run_all(
    programs: Vec<TestProgram>,
    variables: &[(&str, &OsStr)],
    mut passed: impl FnMut(&TestProgram) -> Result<()>,
) -> Result<Count> {
    let mut total = Count::default();
    let mut failed = Vec::new();
    let waiting = Mutex::new(programs.into_iter());
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..2 {
            let (waiting, sender) = (&waiting, sender.clone());
            scope.spawn(move || {
                while let Some(program) = waiting.lock().ok().and_then(|mut all| all.next()) {
                    let mut command = program.command();
                    command.arg("--quiet").envs(variables.iter().copied());
                    let output = command.output();
                    // The receiver lives until both threads have ended.
                    let _ = sender.send((program, output));
                }
            });
        }
        drop(sender);
        for (program, output) in ended {
            let name = &program.name;
            let output = output.with_context(|| format!("could not run {name}"))?;
            shell::print(name);
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                shell::print(line);
                total.read(line);
            }
            if output.status.success() {
                passed(&program)?;
            } else {
                shell::print(&String::from_utf8_lossy(&output.stderr));
                failed.push(program.name);
            }
        }
        anyhow::Ok(())
    })?;
    if !failed.is_empty() {
        bail!("{} tests failed, in {}", total.failed, failed.join(", "));
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
    for program in build()?.programs {
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
    fn finds_test_programs_and_warnings_in_cargo_messages() {
        let messages = br#"
            {"executable":null,"profile":{"test":true},"manifest_path":"/w/a/Cargo.toml"}
            {"executable":"/t/a","profile":{"test":false},"manifest_path":"/w/a/Cargo.toml"}
            {"executable":"/t/it","profile":{"test":true},"manifest_path":"/w/b/Cargo.toml","target":{"name":"it"}}
            {"message":{"level":"warning","code":{"code":"unused"},"rendered":"unused variable"}}
            {"message":{"level":"warning","code":{"code":"unused"},"rendered":"unused variable"}}
            {"message":{"level":"warning","code":null,"rendered":"1 warning emitted"}}
            {"reason":"build-finished","success":true}"#;
        let mut built = Built::default();
        built.read(messages).expect("messages of cargo");
        let found = built.programs.iter().map(|program| program.name.as_str());
        assert_eq!(found.collect::<Vec<_>>(), ["b/it"]);
        assert!(built.warnings.iter().eq(["unused variable"]));
    }
}
