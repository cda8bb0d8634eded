//! A server in a separate process, with its CPU time and memory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::CHILD;

/// A process that is stopped on drop.
pub(super) struct Process {
    child: Child,
    /// The address at which it listens, such as `127.0.0.1:4000`.
    pub(super) address: String,
}

impl Process {
    /// Starts a process of this program, which prints its address.
    pub(super) fn own(party: &str, arguments: &[&str]) -> Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .args([CHILD, party])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut process = Self::of(child, String::new());
        let output = process.child.stdout.take().context("it has an output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        process.address = line.trim().to_owned();
        Ok(process)
    }

    /// A process that was started and listens at an address.
    pub(super) fn of(child: Child, address: String) -> Self {
        Self { child, address }
    }

    /// The CPU time so far, over all threads.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        let mut all = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let path = thread?.path().join("schedstat");
            let statistics = fs::read_to_string(&path)
                .with_context(|| format!("could not read `{}`", path.display()))?;
            let nanoseconds = statistics.split_whitespace().next().unwrap_or_default();
            all += Duration::from_nanos(nanoseconds.parse()?);
        }
        Ok(all)
    }

    /// Its resident memory in bytes.
    pub(super) fn memory(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes: u64 = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .context("the system does not report its memory")?
            .parse()?;
        Ok(kilobytes * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
