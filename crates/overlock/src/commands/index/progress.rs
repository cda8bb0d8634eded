//! Shows the progress of an index: a bar on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use overlock_index::Observe;

use super::stop::StopRequest;
use crate::draw::{self, amount, grouped_tokens};

const TERMINAL_INTERVAL: Duration = Duration::from_millis(200);
/// An index that takes less time writes no line to a log.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

pub(super) struct IndexProgress<'a> {
    stop: &'a StopRequest,
    is_terminal: bool,
    updated: Instant,
    files: u64,
    /// Whether there is a bar to remove.
    is_written: bool,
}

impl<'a> IndexProgress<'a> {
    pub(super) fn new(stop: &'a StopRequest) -> Self {
        Self {
            stop,
            is_terminal: io::stderr().is_terminal(),
            updated: Instant::now(),
            files: 0,
            is_written: false,
        }
    }

    /// The number of files to index.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// Shows the number of vectors. Returns whether to continue.
    pub(super) fn embedded(&mut self, vectors: u64) -> bool {
        self.show(|_| amount(vectors, "vector"));
        self.stop.signal().is_none()
    }

    /// Removes the bar.
    pub(super) fn end(&mut self) {
        if self.is_written {
            let _ = write!(io::stderr(), "\r\x1b[K");
            self.is_written = false;
        }
    }

    fn show(&mut self, line: impl FnOnce(usize) -> String) {
        let every = if self.is_terminal {
            TERMINAL_INTERVAL
        } else {
            LOG_INTERVAL
        };
        if self.updated.elapsed() >= every {
            self.updated = Instant::now();
            self.write(&line(draw::live_width()));
        }
    }

    /// Ignores errors: progress is not worth failing for.
    fn write(&mut self, line: &str) {
        if self.is_terminal {
            self.is_written = true;
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        } else {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

impl Observe for IndexProgress<'_> {
    fn found(&mut self, files: u64) {
        self.files = files;
    }

    fn advanced(&mut self, files: u64, nodes: u64) {
        let (all, is_terminal) = (self.files, self.is_terminal);
        self.show(|width| {
            let figures = format!(
                "{} of {}, {}",
                grouped_tokens(files),
                amount(all, "file"),
                amount(nodes, "node")
            );
            if is_terminal {
                bar(files, all, &figures, width)
            } else {
                figures
            }
        });
    }

    fn resolving(&mut self) {
        self.show(|_| "resolving names".to_owned());
    }

    fn is_stopped(&self) -> bool {
        self.stop.signal().is_some()
    }
}

/// The figures, with a bar before them if there is room.
fn bar(done: u64, all: u64, figures: &str, width: usize) -> String {
    const LENGTH: usize = 24;
    if width < figures.chars().count() + LENGTH + 3 {
        return figures.chars().take(width).collect();
    }
    let share = usize::try_from(done * LENGTH as u64 / all.max(1)).unwrap_or(LENGTH);
    let filled = share.min(LENGTH);
    format!(
        "[{}{}] {figures}",
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
