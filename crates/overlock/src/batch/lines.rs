//! Splits a stream into chunks of whole lines.
//!
//! A chunk is the result of one read, up to its last line break: large for a file, a single line
//! when a person types, so that no line waits for a chunk to fill.

use std::io::{self, Read};

const READ_BYTES: usize = 1 << 16;
const LONGEST_LINE: usize = 1 << 30;

pub(super) enum Chunk {
    /// One line or more; the last may lack its line break.
    Lines(Vec<u8>),
    /// In place of a line that was longer than [`LONGEST_LINE`].
    TooLong,
}

pub(super) struct Lines<R> {
    source: R,
    /// The beginning of a line whose end was not read yet.
    pending: Vec<u8>,
    state: LinesState,
    longest: usize,
}

enum LinesState {
    Reading,
    /// Inside a line that is too long.
    Skipping,
    Ended,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            pending: Vec::new(),
            state: LinesState::Reading,
            longest: LONGEST_LINE,
        }
    }

    /// Reads once. Returns where in `pending` the new bytes start.
    fn read(&mut self) -> io::Result<usize> {
        let start = self.pending.len();
        self.pending.resize(start + READ_BYTES, 0);
        let read = loop {
            match self.source.read(&mut self.pending[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.pending.truncate(start + *read.as_ref().unwrap_or(&0));
        read.map(|_| start)
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = io::Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        while !matches!(self.state, LinesState::Ended) {
            let start = match self.read() {
                Ok(start) => start,
                Err(error) => {
                    self.state = LinesState::Ended;
                    return Some(Err(error));
                }
            };
            if self.pending.len() == start {
                self.state = LinesState::Ended;
                let rest = std::mem::take(&mut self.pending);
                return (!rest.is_empty()).then_some(Ok(Chunk::Lines(rest)));
            }
            // `pending` is empty while a line is skipped, so `start` is 0 here.
            if matches!(self.state, LinesState::Skipping) {
                let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') else {
                    self.pending.clear();
                    continue;
                };
                self.pending.drain(..=end);
                self.state = LinesState::Reading;
            }
            if let Some(end) = self.pending[start..]
                .iter()
                .rposition(|&byte| byte == b'\n')
            {
                let rest = self.pending.split_off(start + end + 1);
                let lines = std::mem::replace(&mut self.pending, rest);
                return Some(Ok(Chunk::Lines(lines)));
            }
            if self.pending.len() > self.longest {
                self.pending = Vec::new();
                self.state = LinesState::Skipping;
                return Some(Ok(Chunk::TooLong));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunk, Lines};

    /// Reads a text a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl std::io::Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(self.0.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    #[track_caller]
    fn check_lines(text: &str, longest: usize, expected: &[&str]) {
        for step in 1..=text.len() + 1 {
            let mut lines = Lines::new(Trickle(text.as_bytes(), step));
            lines.longest = longest;
            let mut seen = Vec::new();
            for chunk in lines {
                match chunk.expect("a trickle does not fail") {
                    Chunk::Lines(lines) => {
                        let lines = String::from_utf8(lines).expect("the text is UTF-8");
                        let lines = lines.strip_suffix('\n').unwrap_or(&lines);
                        seen.extend(lines.split('\n').map(String::from));
                    }
                    Chunk::TooLong => seen.push("too long".into()),
                }
            }
            assert_eq!(seen, expected, "{step} bytes a read");
        }
    }

    #[test]
    fn keeps_the_order_of_lines_for_every_size_of_reads() {
        check_lines("one\n\nthree\n", 100, &["one", "", "three"]);
        check_lines("one\ntwo", 100, &["one", "two"]);
        check_lines("", 100, &[]);
        check_lines("\n", 100, &[""]);
    }

    #[test]
    fn replaces_a_line_that_is_too_long_and_reads_on() {
        let lines = "a\nthis one is far too long to be held\nb\n";
        let mut trickle = Lines::new(Trickle(lines.as_bytes(), 2));
        trickle.longest = 8;
        let chunks: Vec<_> = trickle.map(|chunk| chunk.expect("no failure")).collect();
        assert_eq!(chunks.len(), 3);
        assert!(matches!(chunks[1], Chunk::TooLong));
        assert!(matches!(&chunks[2], Chunk::Lines(line) if line == b"b\n"));
    }
}
