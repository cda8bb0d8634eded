//! Shows the progress of a long run on the terminal.
//!
//! It is one line on standard error, which is overwritten and removed at the end. It is shown only
//! if standard error is a terminal and standard output is not.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::draw::grouped;

const UPDATE_INTERVAL: Duration = Duration::from_millis(250);

pub(super) struct BatchProgress {
    is_shown: bool,
    started: Instant,
    updated: Instant,
    lines: usize,
    bytes: usize,
    /// Whether there is a line to remove.
    is_written: bool,
}

impl BatchProgress {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            is_shown: io::stderr().is_terminal() && !io::stdout().is_terminal(),
            started: now,
            updated: now,
            lines: 0,
            bytes: 0,
            is_written: false,
        }
    }

    /// Adds lines that were processed, and their size.
    pub(super) fn add(&mut self, lines: usize, bytes: usize) {
        self.lines += lines;
        self.bytes += bytes;
        if self.is_shown && self.updated.elapsed() >= UPDATE_INTERVAL {
            self.updated = Instant::now();
            let line = line(self.lines, self.bytes, self.started.elapsed());
            self.is_written = true;
            // Progress is not worth failing for.
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        }
    }
}

impl Drop for BatchProgress {
    fn drop(&mut self) {
        if self.is_written {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a speed is shown with few digits"
)]
fn line(lines: usize, bytes: usize, elapsed: Duration) -> String {
    let speed = bytes as f64 / 1e6 / elapsed.as_secs_f64().max(1e-9);
    format!("{} lines, {speed:.1} MB/s", grouped(lines))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::line;

    #[test]
    fn shows_lines_and_speed() {
        let second = Duration::from_secs(2);
        assert_eq!(line(12_345, 3_000_000, second), "12,345 lines, 1.5 MB/s");
        assert_eq!(line(0, 0, Duration::ZERO), "0 lines, 0.0 MB/s");
    }
}
