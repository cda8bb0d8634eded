//! Errors in the configuration, with their source lines.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use overlock_budget::TableError;

use crate::draw::{CUT, FAINT, Position, head};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("could not read the configuration `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the configuration `{}` is not UTF-8 text", path.display())]
    NotText { path: PathBuf },
    #[error("`{}` is not a table of models: {source}", path.display())]
    Models { path: PathBuf, source: TableError },
    #[error("{problem}\n{line}")]
    Invalid {
        problem: String,
        line: Box<SourceLine>,
        hint: String,
    },
    #[error("the variable `{name}` {problem}")]
    Variable {
        name: String,
        problem: String,
        hint: String,
    },
}

impl ConfigError {
    pub(crate) fn hint(&self) -> &str {
        match self {
            Self::Unreadable { .. } => {
                "check the path given with --config or OVERLOCK_CONFIG, and its permissions"
            }
            Self::NotText { .. } => "save the file as UTF-8",
            Self::Models { .. } => "give a table such as `crates/overlock-budget/models.toml`",
            Self::Invalid { hint, .. } | Self::Variable { hint, .. } => hint,
        }
    }
}

/// A line of the file with a mark under the invalid part.
#[derive(Debug)]
pub(crate) struct SourceLine {
    path: PathBuf,
    position: Position,
    line: String,
    /// The column where the mark starts, and its length.
    indent: usize,
    length: usize,
}

const LINE_COLUMNS: usize = 100;

impl SourceLine {
    pub(super) fn new(path: &Path, text: &str, span: Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let end = text.floor_char_boundary(span.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..]
            .find('\n')
            .map_or(text.len(), |newline| start + newline);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let indent = head(&text.as_bytes()[line_start..start], LINE_COLUMNS).width;
        let marked = head(
            &text.as_bytes()[start..end.min(line_end)],
            LINE_COLUMNS - indent,
        )
        .width;
        Self {
            path: path.to_owned(),
            position: Position::of(text.as_bytes(), start),
            line: head(line.as_bytes(), LINE_COLUMNS).text,
            indent,
            length: marked.max(1),
        }
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.position;
        let gutter = line.to_string().len();
        writeln!(
            formatter,
            "{FAINT}{:>gutter$}──{FAINT:#} {}:{line}:{column}",
            "",
            self.path.display()
        )?;
        writeln!(formatter, "{FAINT}{line} │{FAINT:#} {}", self.line)?;
        write!(
            formatter,
            "{FAINT}{:>gutter$} │{FAINT:#} {:indent$}{CUT}{}{CUT:#}",
            "",
            "",
            "^".repeat(self.length),
            indent = self.indent,
        )
    }
}
