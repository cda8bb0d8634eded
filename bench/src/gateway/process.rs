//! A server in a process of its own, and what the system says of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::CHILD;

/// A process that is ended when this is dropped.
pub(super) struct Process {
    child: Child,
    /// Where it listens, such as `127.0.0.1:4000`.
    pub(super) address: String,
}

/// The system counts CPU time in these.
const TICK: Duration = Duration::from_millis(10);

impl Process {
    /// Starts one of the parties of this program, which says where it listens.
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

    /// One that was started and listens there.
    pub(super) fn of(child: Child, address: String) -> Self {
        Self { child, address }
    }

    /// The CPU time of all of its threads until now.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        let stat = self.read("stat")?;
        // The name in parentheses may hold anything, so that fields are counted from its end.
        let (_, fields) = stat.rsplit_once(')').context("it has a name")?;
        let mut fields = fields.split_whitespace().skip(11);
        let mut ticks = || -> Result<u32> { Ok(fields.next().context("too short")?.parse()?) };
        let ticks = ticks()? + ticks()?;
        Ok(TICK * ticks)
    }

    /// The bytes of memory that it holds.
    pub(super) fn memory(&self) -> Result<u64> {
        let status = self.read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes: u64 = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .context("the system does not say how much memory it holds")?
            .parse()?;
        Ok(kilobytes * 1024)
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.child.id());
        fs::read_to_string(&path).with_context(|| format!("could not read `{path}`"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
