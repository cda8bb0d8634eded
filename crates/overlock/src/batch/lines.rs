//! Splits a stream into chunks of whole lines.
//!
//! A chunk is what one read brought, up to its last line break: large when a file is
//! read, a single line when somebody types, so that nobody waits for a chunk to fill.

use std::io::{self, Read};

/// How much is asked for at once.
const READ: usize = 1 << 16;
/// The longest line that is taken: what a text may be.
const LONGEST_LINE: usize = 1 << 30;

pub(super) enum Chunk {
    /// One line or more; the last may lack its line break.
    Lines(Vec<u8>),
    /// In place of a line that was longer than may be held.
    TooLong,
}

pub(super) struct Lines<R> {
    source: R,
    /// What was read and not yet handed on: the beginning of a line.
    begun: Vec<u8>,
    state: State,
    longest: usize,
}

enum State {
    Reading,
    /// Inside a line that was too long.
    Skipping,
    Ended,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            begun: Vec::new(),
            state: State::Reading,
            longest: LONGEST_LINE,
        }
    }

    /// Reads once and says where in `begun` the new bytes start.
    fn read(&mut self) -> io::Result<usize> {
        let start = self.begun.len();
        self.begun.resize(start + READ, 0);
        let read = loop {
            match self.source.read(&mut self.begun[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.begun.truncate(start + *read.as_ref().unwrap_or(&0));
        read.map(|_| start)
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = io::Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        while !matches!(self.state, State::Ended) {
            let start = match self.read() {
                Ok(start) => start,
                Err(error) => {
                    self.state = State::Ended;
                    return Some(Err(error));
                }
            };
            if self.begun.len() == start {
                self.state = State::Ended;
                let rest = std::mem::take(&mut self.begun);
                return (!rest.is_empty()).then_some(Ok(Chunk::Lines(rest)));
            }
            // Nothing is kept while a line is skipped, so `start` is 0 here and stays right.
            if matches!(self.state, State::Skipping) {
                let Some(end) = self.begun.iter().position(|&byte| byte == b'\n') else {
                    self.begun.clear();
                    continue;
                };
                self.begun.drain(..=end);
                self.state = State::Reading;
            }
            if let Some(end) = self.begun[start..].iter().rposition(|&byte| byte == b'\n') {
                let rest = self.begun.split_off(start + end + 1);
                let lines = std::mem::replace(&mut self.begun, rest);
                return Some(Ok(Chunk::Lines(lines)));
            }
            if self.begun.len() > self.longest {
                self.begun = Vec::new();
                self.state = State::Skipping;
                return Some(Ok(Chunk::TooLong));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunk, Lines};

    /// Hands out a text a few bytes at a time.
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
    fn keeps_every_line_at_its_place_whatever_a_read_brings() {
        check_lines("one\n\nthree\n", 100, &["one", "", "three"]);
        check_lines("one\ntwo", 100, &["one", "two"]);
        check_lines("", 100, &[]);
        check_lines("\n", 100, &[""]);
    }

    #[test]
    fn a_line_that_is_too_long_leaves_its_place_and_the_rest_goes_on() {
        let lines = "a\nthis one is far too long to be held\nb\n";
        let mut trickle = Lines::new(Trickle(lines.as_bytes(), 2));
        trickle.longest = 8;
        let chunks: Vec<_> = trickle.map(|chunk| chunk.expect("no failure")).collect();
        assert_eq!(chunks.len(), 3);
        assert!(matches!(chunks[1], Chunk::TooLong));
        assert!(matches!(&chunks[2], Chunk::Lines(line) if line == b"b\n"));
    }
}
