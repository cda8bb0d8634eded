//! Where results and notes go.
//!
//! A reader that closed the pipe has seen enough: that is no error, and the rest of
//! the result is let go in silence. Notes on standard error are never worth failing for.
//!
//! What a model or a server says may end up in a line. It cannot steer the terminal from there,
//! nor begin a line of its own: whatever is no style is drawn.

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
    /// Whether styles are written, as the terminal and `NO_COLOR` have it.
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

    /// The reader has gone: what is still to come will not be seen.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes a line for people, with its styles if they are wanted.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        let line = draw::tamed(line);
        if self.styled {
            writeln!(self, "{line}")?;
        } else {
            writeln!(self, "{}", strip_str(&line))?;
        }
        Ok(())
    }

    /// Writes a document exactly as it is: it may go on in another file, and a line
    /// break inside a cut string would damage it. Only a terminal gets one at the end.
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

    /// Writes one object for machines, on a line of its own.
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

/// Standard error: what is worth knowing beside the result.
pub(crate) struct Notes {
    stream: AutoStream<Stderr>,
}

impl Notes {
    pub(crate) fn new() -> Self {
        Self {
            stream: AutoStream::auto(io::stderr()),
        }
    }

    /// Writes a line. One that cannot be written is let go.
    pub(crate) fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.stream, "{}", draw::tamed(&line.to_string()));
    }

    /// Says something that a reader of the result should know.
    pub(crate) fn note(&mut self, message: impl Display) {
        const NOTE: Style = AnsiColor::Cyan.on_default();
        let message = draw::plain(&message.to_string());
        self.line(format_args!("{NOTE}note:{NOTE:#} {message}"));
    }

    /// Says that something is not as it was meant.
    pub(crate) fn warning(&mut self, message: impl Display) {
        const WARNING: Style = AnsiColor::Yellow.on_default().bold();
        let message = draw::plain(&message.to_string());
        self.line(format_args!("{WARNING}warning:{WARNING:#} {message}"));
    }

    /// Says what a person can do about what was said before.
    pub(crate) fn hint(&mut self, message: impl Display) {
        const HINT: Style = AnsiColor::Cyan.on_default();
        let message = draw::plain(&message.to_string());
        self.line(format_args!("{HINT}hint:{HINT:#} {message}"));
    }

    /// Says what went wrong.
    pub(crate) fn error(&mut self, message: impl Display) {
        const ERROR: Style = AnsiColor::Red.on_default().bold();
        let message = draw::plain(&message.to_string());
        self.line(format_args!("{ERROR}error:{ERROR:#} {message}"));
    }

    /// Writes lines that were drawn by us, and an empty one after them.
    pub(crate) fn block(&mut self, drawn: &str) {
        drawn.lines().for_each(|line| self.line(line));
        self.line("");
    }

    /// Says why a command failed, and what would be right.
    pub(crate) fn failure(&mut self, failure: &Failure) {
        const ERROR: Style = AnsiColor::Red.on_default().bold();
        let told = failure.to_string();
        // What is wrong with a configuration is drawn by us, on several lines.
        let told = match failure {
            Failure::Config(_) => told,
            _ => draw::plain(&told),
        };
        let mut lines = told.lines();
        let first = lines.next().unwrap_or_default();
        self.line(format_args!("{ERROR}error:{ERROR:#} {first}"));
        lines.for_each(|line| self.line(line));
        self.hint(failure.hint());
    }
}

/// A document without the blanks between its parts, so that no line ends in it.
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
    fn only_blanks_between_the_parts_of_a_document_go() {
        for (document, expected) in [
            ("{\r\n\t\"a b\" : [ 1 ,\n 2 ]\n}\n", "{\"a b\":[1,2]}"),
            (r#"[ "\" a" , "\\" , "b c" ]"#, r#"["\" a","\\","b c"]"#),
            (r#" "\\\" \ud800 " "#, r#""\\\" \ud800 ""#),
        ] {
            assert_eq!(on_one_line(document), expected);
        }
    }
}
