//! How many tests ran, as the test programs themselves say.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::shell;

/// The sum over all test programs of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Count {
    /// Adds what one line of output says, if it is the closing line of a test program.
    fn add(&mut self, line: &str) {
        let line = without_colour(line);
        let Some((_, numbers)) = line.split_once("test result: ") else {
            return;
        };
        // "ok. 12 passed; 0 failed; 0 ignored; …"
        for part in numbers.split([';', '.']) {
            match part.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

/// Runs a command, shows its output as it comes, and counts the tests in it.
pub(crate) fn run(command: &mut Command) -> Result<(Count, Result<()>)> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not start {}", shell::shown(command)))?;
    let mut count = Count::default();
    if let Some(output) = child.stdout.take() {
        // A test may print bytes that are not UTF-8, so lines are read as bytes.
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("could not read the output of the tests")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            count.add(&line);
        }
    }
    let status = child.wait().context("could not wait for the tests")?;
    Ok((count, shell::check(command, status)))
}

fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // An escape sequence that sets a colour ends with its letter.
            characters.find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_count(output: &str, passed: usize, failed: usize) {
        let mut count = Count::default();
        output.lines().for_each(|line| count.add(line));
        assert_eq!(count, Count { passed, failed }, "counting {output:?}");
    }

    #[test]
    fn adds_up_the_closing_lines_of_all_test_programs() {
        check_count(
            "running 2 tests\n\
             test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             test result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
            12,
            3,
        );
    }

    #[test]
    fn reads_a_closing_line_in_colour() {
        check_count(
            "test result: \u{1b}[32mok\u{1b}[0m. 7 passed; 0 failed; 0 ignored",
            7,
            0,
        );
    }

    #[test]
    fn ignores_what_a_test_prints_about_passing() {
        check_count("all 9 passed; nothing else", 0, 0);
    }
}
