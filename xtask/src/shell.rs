//! Runs other programs from the root of the repository.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use anyhow::{Context, Result, bail};

/// The number of lines that are shown of a failed step's log.
const TAIL: usize = 80;

thread_local! {
    /// The log for the output of programs started by this thread; without it the terminal.
    static LOG: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// A path under `target/`, where everything that is built or installed goes.
pub(crate) fn target(path: &str) -> PathBuf {
    root().join("target").join(path)
}

/// Sends the output of programs that this thread starts to a new file, or to the terminal.
pub(crate) fn log_to(path: Option<PathBuf>) -> Result<()> {
    let file = path.map(|path| {
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        File::create(&path).with_context(|| format!("could not write `{}`", path.display()))
    });
    let file = file.transpose()?;
    LOG.with_borrow_mut(|log| *log = file);
    Ok(())
}

/// The end of a log, and its path.
pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(TAIL)..];
    format!("{}\n   (full log: {})\n", shown.join("\n"), log.display())
}

/// Prints a line to the log or the terminal.
pub(crate) fn print(line: &str) {
    LOG.with_borrow_mut(|log| match log {
        // The log is for people; a step does not fail because its log cannot be written.
        Some(file) => drop(writeln!(file, "{line}")),
        None => println!("{line}"),
    });
}

/// A cargo command with these arguments.
pub(crate) fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = program("cargo");
    command.args(arguments);
    command
}

/// Another program, which starts at the root of the repository.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    // Variables that cargo set for this program must not reach the started cargo.
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&variable);
        }
    }
    command
}

/// Runs a command to its end; a failure names the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    if let Some(output) = output_stdio()? {
        command.stdout(output);
    }
    let status = spawn(command)?
        .wait()
        .with_context(|| format!("could not wait for {}", shown(command)))?;
    check(command, status)
}

/// Runs a command to its end and returns what it printed; a failure names the command.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
    command.stdout(Stdio::piped());
    let output = spawn(command)?
        .wait_with_output()
        .with_context(|| format!("could not wait for {}", shown(command)))?;
    check(command, output.status)?;
    Ok(output)
}

/// Starts a command; its standard error goes to the log or the terminal.
pub(crate) fn spawn(command: &mut Command) -> Result<std::process::Child> {
    if let Some(output) = output_stdio()? {
        command.stderr(output);
    }
    command
        .spawn()
        .with_context(|| format!("could not start {}", shown(command)))
}

fn output_stdio() -> io::Result<Option<Stdio>> {
    LOG.with_borrow(|log| {
        let file = log.as_ref().map(File::try_clone).transpose()?;
        Ok(file.map(Stdio::from))
    })
}

/// Turns an unsuccessful exit status into an error that names the command.
pub(crate) fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{} failed ({status})", shown(command));
    }
    Ok(())
}

/// The command as typed in a shell.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    format!("`{}`", words.join(" "))
}
