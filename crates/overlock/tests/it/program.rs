//! Runs the real binary.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{env, fs, thread};

use serde_json::Value;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        parse(&self.stdout)
    }

    /// Standard output as one JSON value per line.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(parse).collect()
    }

    /// The names of the fields of the output, in order.
    #[track_caller]
    pub(crate) fn keys(&self) -> Vec<String> {
        match self.json() {
            Value::Object(object) => object.keys().cloned().collect(),
            other => panic!("not an object: {other}"),
        }
    }
}

#[track_caller]
fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

/// Runs `overlock` with `input` on its standard input.
pub(crate) fn overlock(arguments: &[&str], input: impl AsRef<[u8]>) -> Run {
    run(&mut command(arguments), input)
}

/// Runs a command that may have another environment or folder.
pub(crate) fn run(command: &mut Command, input: impl AsRef<[u8]>) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with the tests");
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.as_ref().to_vec();
    // In a thread, because the command may write output before it has read all input.
    let writer = thread::spawn(move || {
        // A command that does not read its input may have ended already.
        let _ = stdin.write_all(&input);
    });
    let output = output_of(child);
    writer.join().expect("the writer does not panic");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    let run = Run {
        code: output.status.code().expect("no signal ended it"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    run
}

/// The output of a process from now on, and its exit status.
pub(crate) fn output_of(child: Child) -> Output {
    let _watchdog = Watchdog::over(&child);
    child.wait_with_output().expect("the program ends")
}

/// The result of a thread.
#[cfg(unix)]
#[track_caller]
pub(crate) fn joined<T>(thread: thread::JoinHandle<T>) -> T {
    let look = || thread.is_finished();
    overlock_llm::testing::eventually_blocking("a thread to end", look, |has_ended| *has_ended);
    thread.join().expect("no panic")
}

/// Kills a process that takes too long, so that a test that waits for it fails instead of hanging.
/// Must be dropped when the process has ended.
#[must_use]
pub(crate) struct Watchdog {
    _stop: mpsc::Sender<()>,
}

/// Longer than any process takes, even on a busy machine.
const LONGEST: Duration = Duration::from_mins(5);

impl Watchdog {
    pub(crate) fn over(child: &Child) -> Self {
        let (stop, stopped) = mpsc::channel();
        let id = child.id();
        thread::spawn(move || {
            if stopped.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
                kill(id);
            }
        });
        Self { _stop: stop }
    }
}

#[cfg(unix)]
fn kill(id: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    // It may have just ended.
    let _ = id.map(|id| kill_process(id, Signal::KILL));
}

#[cfg(not(unix))]
fn kill(_id: u32) {}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = without_settings(Command::new(env!("CARGO_BIN_EXE_overlock")));
    command.args(arguments);
    command
}

/// A command without the settings of the user who runs the tests.
pub(crate) fn without_settings(mut command: Command) -> Command {
    // The user's own variables must not influence the tests.
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("OVERLOCK_") {
            command.env_remove(name);
        }
    }
    command.env("XDG_CONFIG_HOME", "/no/such/folder");
    command
}

/// Sends SIGINT to a process, as Ctrl-C does.
#[cfg(unix)]
pub(crate) fn interrupt(child: &Child) {
    signal(child, rustix::process::Signal::INT);
}

/// Sends a signal to a process.
#[cfg(unix)]
pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    use rustix::process::{Pid, kill_process};
    let id = i32::try_from(child.id()).ok();
    let id = id.and_then(Pid::from_raw).expect("it is running");
    kill_process(id, signal).expect("it is ours");
}

/// A file that is removed at the end of the test.
pub(crate) struct TemporaryFile {
    path: PathBuf,
}

impl TemporaryFile {
    pub(crate) fn new(name: &str, content: impl AsRef<[u8]>) -> Self {
        let name = format!("overlock-{}-{name}", std::process::id());
        let path = env::temp_dir().join(name);
        fs::write(&path, content).expect("the temporary directory can be written");
        Self { path }
    }

    pub(crate) fn path(&self) -> &str {
        self.path.to_str().expect("the path is ours, and ASCII")
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A folder that is removed at the end of the test.
pub(crate) struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("overlock-{}-{name}", std::process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the temporary directory can be written");
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into it, and creates its folders.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path.join(name);
        let folder = path.parent().expect("the file is in a folder");
        fs::create_dir_all(folder).expect("the temporary directory can be written");
        fs::write(&path, content).expect("the temporary directory can be written");
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
