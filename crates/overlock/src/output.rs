//! Writes results to standard output and notes to standard error.
//!
//! A closed pipe is no error: the rest of the result is dropped. A note that cannot be written is
//! dropped, too.
//!
//! A line may contain text from a model or a server. Its control characters are drawn as symbols, so
//! it cannot control the terminal or start a new line.

use std::fmt::Display;
use std::io::{self, IsTerminal, Stderr, Stdout, Write};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::draw;
use crate::ending::Failure;

/// Standard output, which survives a closed pipe.
pub(crate) struct Results {
    stream: Stdout,
    /// Whether styles are written; depends on the terminal and `NO_COLOR`.
    styled: bool,
    closed: bool,
}

impl Results {
    pub(crate) fn new() -> Self {
        let stream = io::stdout();
        Self {
            styled: AutoStream::choice(&stream) != ColorChoice::Never,
            stream,
            closed: false,
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.stream.is_terminal()
    }

    /// Whether the reader has closed the pipe.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes a line for people, with styles if they are enabled.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        let line = draw::escaped_except_styles(line);
        if self.styled {
            writeln!(self, "{line}")?;
        } else {
            writeln!(self, "{}", strip_str(&line))?;
        }
        Ok(())
    }

    /// Writes a document byte for byte. Only a terminal gets a line break at the end, because it
    /// would damage a cut string that continues in another file.
    pub(crate) fn document(&mut self, parts: &[&[u8]]) -> Result<(), Failure> {
        for part in parts {
            self.write_all(part)?;
        }
        if self.is_terminal() {
            self.write_all(b"\n")?;
        }
        self.flush()?;
        Ok(())
    }

    /// Writes one JSON object and a line break.
    pub(crate) fn object(&mut self, object: &impl Serialize) -> Result<(), Failure> {
        let mut buffered = io::BufWriter::with_capacity(1 << 16, &mut *self);
        serde_json::to_writer(&mut buffered, object).map_err(io::Error::from)?;
        buffered.write_all(b"\n")?;
        buffered.flush()?;
        drop(buffered);
        self.flush()?;
        Ok(())
    }

    fn unless_closed<T>(&mut self, written: io::Result<T>, when_closed: T) -> io::Result<T> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(when_closed)
            }
            other => other,
        }
    }
}

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let written = self.stream.write(bytes);
        self.unless_closed(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.stream.flush();
        self.unless_closed(flushed, ())
    }
}

const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Standard error.
pub(crate) struct Notes {
    stream: AutoStream<Stderr>,
}

impl Notes {
    pub(crate) fn new() -> Self {
        Self {
            stream: AutoStream::auto(io::stderr()),
        }
    }

    /// Writes a line. Errors are ignored.
    pub(crate) fn line(&mut self, line: impl Display) {
        let _ = writeln!(
            self.stream,
            "{}",
            draw::escaped_except_styles(&line.to_string())
        );
    }

    pub(crate) fn note(&mut self, message: impl Display) {
        self.labelled(AnsiColor::Cyan.on_default(), "note", &message);
    }

    pub(crate) fn warning(&mut self, message: impl Display) {
        self.labelled(AnsiColor::Yellow.on_default().bold(), "warning", &message);
    }

    /// Writes what the user can do about the message before.
    pub(crate) fn hint(&mut self, message: impl Display) {
        self.labelled(AnsiColor::Cyan.on_default(), "hint", &message);
    }

    pub(crate) fn error(&mut self, message: impl Display) {
        self.labelled(ERROR, "error", &message);
    }

    fn labelled(&mut self, style: Style, label: &str, message: &dyn Display) {
        let message = draw::plain(&message.to_string());
        self.line(format_args!("{style}{label}:{style:#} {message}"));
    }

    /// Writes lines of our own, which may have styles, and an empty line.
    pub(crate) fn block(&mut self, drawn: &str) {
        drawn.lines().for_each(|line| self.line(line));
        self.line("");
    }

    /// Writes why a command failed, with a hint.
    pub(crate) fn failure(&mut self, failure: &Failure) {
        let message = failure.to_string();
        // A configuration error is drawn on several lines with styles.
        let message = match failure {
            Failure::Config(_) => message,
            _ => draw::plain(&message),
        };
        let mut lines = message.lines();
        let first = lines.next().unwrap_or_default();
        self.line(format_args!("{ERROR}error:{ERROR:#} {first}"));
        lines.for_each(|line| self.line(line));
        self.hint(failure.hint());
    }
}

/// A JSON document without white space between its tokens, and so without line breaks.
pub(crate) fn on_one_line(document: &str) -> String {
    let mut in_string = false;
    let mut is_escaped = false;
    let is_kept = |character: &char| {
        if in_string {
            in_string = is_escaped || *character != '"';
            is_escaped = !is_escaped && *character == '\\';
            return true;
        }
        in_string = *character == '"';
        !matches!(character, ' ' | '\t' | '\r' | '\n')
    };
    document.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::on_one_line;

    #[test]
    fn removes_only_white_space_between_tokens() {
        for (document, expected) in [
            ("{\r\n\t\"a b\" : [ 1 ,\n 2 ]\n}\n", "{\"a b\":[1,2]}"),
            (r#"[ "\" a" , "\\" , "b c" ]"#, r#"["\" a","\\","b c"]"#),
            (r#" "\\\" \ud800 " "#, r#""\\\" \ud800 ""#),
        ] {
            assert_eq!(on_one_line(document), expected);
        }
    }
}
