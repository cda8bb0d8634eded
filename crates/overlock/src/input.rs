//! Reads the input of a command from a file or standard input.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use overlock_index::{Decoded, SkipReason, decode};

use crate::ending::Failure;
use crate::output::Notes;

#[derive(Args, Debug)]
pub(crate) struct Source {
    /// The file to read; standard input if it is `-` or not given
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Source {
    /// Reads all of it.
    pub(crate) fn read(&self, notes: &mut Notes) -> Result<InputText, Failure> {
        read(self.path(), notes)
    }

    /// Reads all of it as text, in any encoding that the index reads. No byte is lost.
    pub(crate) fn read_text(&self, notes: &mut Notes) -> Result<String, Failure> {
        let InputText { bytes, name } = read_bytes(self.path(), notes)?;
        match decode(bytes) {
            Decoded::Text(text) => Ok(text),
            Decoded::Guessed(text) => {
                notes.note(format_args!("{name}: {}", SkipReason::Guessed));
                Ok(text)
            }
            // UTF-8 text may contain zero bytes.
            Decoded::Binary(bytes) => {
                String::from_utf8(bytes).map_err(|_| Failure::NoText { name })
            }
        }
    }

    /// Opens it for streaming.
    pub(crate) fn open(&self, notes: &mut Notes) -> Result<Box<dyn Read + Send>, Failure> {
        let path = self.path();
        if is_standard_input(path) {
            greet_terminal(notes);
            return Ok(Box::new(io::stdin()));
        }
        refuse_directory(path)?;
        match File::open(path) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(unreadable(path, error)),
        }
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        name(self.path())
    }

    fn path(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new("-"))
    }
}

impl From<Option<PathBuf>> for Source {
    fn from(file: Option<PathBuf>) -> Self {
        Self { file }
    }
}

/// The bytes of a text, and its name in messages.
#[derive(Debug)]
pub(crate) struct InputText {
    pub(crate) bytes: Vec<u8>,
    pub(crate) name: String,
}

/// Reads a file, or standard input if `path` is `-`.
///
/// The bytes stay unchanged, because the next piece may complete a character that was cut at the
/// end. A note tells how many other bytes are not UTF-8 and will be dropped.
pub(crate) fn read(path: &Path, notes: &mut Notes) -> Result<InputText, Failure> {
    let text = read_bytes(path, notes)?;
    note_foreign(&text, notes);
    Ok(text)
}

fn read_bytes(path: &Path, notes: &mut Notes) -> Result<InputText, Failure> {
    let bytes = if is_standard_input(path) {
        greet_terminal(notes);
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map(|_| bytes)
            .map_err(|error| unreadable(path, error))?
    } else {
        refuse_directory(path)?;
        fs::read(path).map_err(|error| unreadable(path, error))?
    };
    Ok(InputText {
        bytes,
        name: name(path),
    })
}

fn note_foreign(text: &InputText, notes: &mut Notes) {
    let foreign = foreign_bytes(&text.bytes);
    if foreign > 0 {
        let s = if foreign == 1 {
            " that is"
        } else {
            "s that are"
        };
        notes.note(format_args!(
            "dropped {foreign} byte{s} not UTF-8 from {}",
            text.name
        ));
    }
}

/// Reads a file that must be UTF-8.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    refuse_directory(path)?;
    fs::read_to_string(path).map_err(|error| unreadable(path, error))
}

pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn name(path: &Path) -> String {
    if is_standard_input(path) {
        "standard input".into()
    } else {
        format!("`{}`", path.display())
    }
}

/// Tells a person at the terminal that the command waits for input.
fn greet_terminal(notes: &mut Notes) {
    if io::stdin().is_terminal() {
        notes.note("reading from the terminal; end with Ctrl-D");
    }
}

/// Fails early: a directory can be opened like a file, but not read.
fn refuse_directory(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::Directory { path: path.into() });
    }
    Ok(())
}

fn unreadable(path: &Path, source: io::Error) -> Failure {
    if source.kind() == io::ErrorKind::NotFound {
        return Failure::Missing { path: path.into() };
    }
    Failure::Unreadable {
        name: name(path),
        source,
    }
}

/// How many bytes are not UTF-8, not counting an incomplete character at the end.
fn foreign_bytes(bytes: &[u8]) -> usize {
    let mut foreign = 0;
    let mut rest = bytes;
    while let Err(error) = std::str::from_utf8(rest) {
        let Some(length) = error.error_len() else {
            break;
        };
        foreign += length;
        rest = &rest[error.valid_up_to() + length..];
    }
    foreign
}

#[cfg(test)]
mod tests {
    use super::foreign_bytes;

    #[track_caller]
    fn check_foreign(bytes: &[u8], expected: usize) {
        assert_eq!(foreign_bytes(bytes), expected, "{bytes:?}");
    }

    #[test]
    fn counts_bytes_that_are_not_utf8() {
        check_foreign("[\"é\"]".as_bytes(), 0);
        check_foreign(b"[\"\xff\xfe\"]", 2);
        check_foreign(b"\xe2\x82[\xff", 3);
    }

    #[test]
    fn does_not_count_an_incomplete_character_at_the_end() {
        check_foreign(b"[\"\xe2\x82", 0);
        check_foreign(b"[\"\xff\xe2\x82", 1);
    }
}
