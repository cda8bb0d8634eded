//! Shows how far an index has come: a bar on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use overlock_index::Observe;

use super::stop::Stop;
use crate::draw::{self, amount, grouped_tokens};

/// Nobody reads a bar faster.
const EVERY_ON_TERMINAL: Duration = Duration::from_millis(200);
/// What takes no longer needs no line in a log.
const EVERY_ELSEWHERE: Duration = Duration::from_secs(5);

pub(super) struct Progress<'a> {
    stop: &'a Stop,
    is_terminal: bool,
    updated: Instant,
    files: u64,
    /// Whether there is a bar to take away.
    is_written: bool,
}

impl<'a> Progress<'a> {
    pub(super) fn new(stop: &'a Stop) -> Self {
        Self {
            stop,
            is_terminal: io::stderr().is_terminal(),
            updated: Instant::now(),
            files: 0,
            is_written: false,
        }
    }

    /// How many files there are to look at.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// Takes note of vectors; whether to go on.
    pub(super) fn embedded(&mut self, vectors: u64) -> bool {
        self.show(|_| amount(vectors, "vector"));
        self.stop.asked().is_none()
    }

    /// Takes the bar away.
    pub(super) fn end(&mut self) {
        if self.is_written {
            let _ = write!(io::stderr(), "\r\x1b[K");
            self.is_written = false;
        }
    }

    fn show(&mut self, line: impl FnOnce(usize) -> String) {
        let every = if self.is_terminal {
            EVERY_ON_TERMINAL
        } else {
            EVERY_ELSEWHERE
        };
        if self.updated.elapsed() >= every {
            self.updated = Instant::now();
            self.write(&line(draw::live_width()));
        }
    }

    /// A line that cannot be written is let go.
    fn write(&mut self, line: &str) {
        if self.is_terminal {
            self.is_written = true;
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        } else {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

impl Observe for Progress<'_> {
    fn found(&mut self, files: u64) {
        self.files = files;
    }

    fn advanced(&mut self, files: u64, nodes: u64) {
        let (all, is_terminal) = (self.files, self.is_terminal);
        self.show(|width| {
            let told = format!(
                "{} of {}, {}",
                grouped_tokens(files),
                amount(all, "file"),
                amount(nodes, "node")
            );
            if is_terminal {
                bar(files, all, &told, width)
            } else {
                told
            }
        });
    }

    fn resolving(&mut self) {
        self.show(|_| "looking up names".to_owned());
    }

    fn is_stopped(&self) -> bool {
        self.stop.asked().is_some()
    }
}

/// A bar before what it shows, if there is room for both.
fn bar(done: u64, all: u64, told: &str, width: usize) -> String {
    const LENGTH: usize = 24;
    if width < told.chars().count() + LENGTH + 3 {
        return told.chars().take(width).collect();
    }
    let share = usize::try_from(done * LENGTH as u64 / all.max(1)).unwrap_or(LENGTH);
    let filled = share.min(LENGTH);
    format!(
        "[{}{}] {told}",
        "#".repeat(filled),
        "-".repeat(LENGTH - filled)
    )
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn a_bar_fills_and_never_breaks_a_line() {
        assert_eq!(bar(0, 4, "x", 40), "[------------------------] x");
        assert_eq!(bar(2, 4, "x", 40), "[############------------] x");
        assert_eq!(bar(9, 4, "x", 40), "[########################] x");
        assert_eq!(bar(0, 0, "x", 40), "[------------------------] x");
        assert_eq!(bar(2, 4, "2 of 4 files", 6), "2 of 4");
    }
}
