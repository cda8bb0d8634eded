//! Starts and stops the gateway.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use overlock_llm::testing::PATIENCE;

use crate::program::{TemporaryFolder, Watchdog, command, interrupt, without_settings};

/// A gateway that runs until the test stops it.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) address: String,
    reader: BufReader<ChildStderr>,
    /// Its standard error so far.
    pub(crate) stderr: String,
    _folder: TemporaryFolder,
}

impl Serving {
    /// Starts on a free port, and reads standard error until it is ready.
    pub(crate) fn start(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_as(command(&[]), name, arguments, variables)
    }

    /// The same with another program.
    pub(crate) fn start_as(
        program: Command,
        name: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let folder = TemporaryFolder::new(name);
        let mut program = without_settings(program);
        program
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .env_remove("OPENAI_API_KEY")
            .env_remove("ANTHROPIC_API_KEY")
            .env("XDG_DATA_HOME", folder.path())
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = program.spawn().expect("the binary was built");
        let stderr = child.stderr.take().expect("it is piped");
        let mut serving = Self {
            child,
            address: String::new(),
            reader: BufReader::new(stderr),
            stderr: String::new(),
            _folder: folder,
        };
        let mut first = serving.line();
        while first.starts_with("note: ") {
            first = serving.line();
        }
        let address = first.strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{first}")).trim();
        address.clone_into(&mut serving.address);
        while !serving.line().trim_start().starts_with("-d ") {}
        serving
    }

    /// The next line of standard error.
    pub(crate) fn line(&mut self) -> String {
        let _watchdog = Watchdog::over(&self.child);
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).expect("it is text");
        assert!(read > 0, "it ended: {}", self.stderr);
        self.stderr.push_str(&line);
        line
    }

    /// The status and the body of an answer.
    pub(crate) fn ask(&self, request: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let patient = stream.set_read_timeout(Some(PATIENCE));
        patient.expect("the time is not zero");
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
        (status.expect("a status"), body.to_owned())
    }

    /// Sends SIGINT and waits for the end.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        interrupt(&self.child);
        let _watchdog = Watchdog::over(&self.child);
        let status = self.child.wait().expect("it ends");
        self.reader.read_to_string(&mut self.stderr).expect("text");
        status
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Usually it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
