//! Runs other programs from the root of the repository.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Lines of a failed step's log that are shown.
const TAIL: usize = 80;

thread_local! {
    /// Where the output of programs started by this thread goes; to the terminal if nothing is set.
    static LOG: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// The root of the repository, wherever the command was called from.
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

/// The end of a log, and where all of it is.
pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(TAIL)..];
    format!("{}\n   (all of it: {})\n", shown.join("\n"), log.display())
}

/// Prints a line where the output of programs goes.
pub(crate) fn print(line: &str) {
    LOG.with_borrow_mut(|log| match log {
        // The log is for people; a step does not fail because its log cannot be written.
        Some(file) => drop(writeln!(file, "{line}")),
        None => println!("{line}"),
    });
}

/// The cargo that runs this program, ready to be told what to do.
pub(crate) fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = program("cargo");
    command.args(arguments);
    command
}

/// Another program, which starts at the root of the repository.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    // What cargo told this program about itself must not reach the cargo below it.
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

/// Starts a command; its errors go where the output of this thread's programs goes.
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

/// Turns an unsuccessful end into an error that names the command.
pub(crate) fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{} failed ({status})", shown(command));
    }
    Ok(())
}

/// The command as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    format!("`{}`", words.join(" "))
}
