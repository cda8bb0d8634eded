//! Finds the SQL in the strings of .NET code.
//!
//! In a member that mentions `CommandType.StoredProcedure`, the first argument of a call may be the
//! name of a procedure. A statement may be concatenated from several strings with `+` or `&`;
//! expressions between them are unknown and become a variable.

use std::ops::Range;

use super::sql;
use super::tree::Findings;
use crate::classify::embedded::opens_statement;

/// Concatenated strings.
#[derive(Debug)]
struct Run {
    span: Range<usize>,
    /// Whether it is the first argument of a call.
    is_first_argument: bool,
    content: String,
}

/// The strings of a file.
#[derive(Debug, Default)]
pub(super) struct Strings {
    runs: Vec<Run>,
    /// The members that call a stored procedure.
    callers: Vec<Range<usize>>,
}

/// Replaces an unknown value.
pub(super) const HOLE: &str = "@x";

impl Strings {
    /// Adds a string literal with its content.
    pub(super) fn add(&mut self, text: &str, span: Range<usize>, content: String) {
        // A string inside an interpolation hole belongs to the unknown value.
        if self
            .runs
            .last()
            .is_some_and(|run| span.start < run.span.end)
        {
            return;
        }
        if let Some(run) = self.runs.last_mut()
            && let Some(between) = joined(text, run.span.end, span.start)
        {
            run.content.push_str(between);
            run.content.push_str(&content);
            run.span.end = span.end;
            return;
        }
        let is_first_argument = text[..span.start].trim_end().ends_with('(');
        self.runs.push(Run {
            span,
            is_first_argument,
            content,
        });
    }

    /// Notes that a member mentions `CommandType.StoredProcedure`.
    pub(super) fn calls_procedure(&mut self, member: Range<usize>) {
        if self.callers.last() != Some(&member) {
            self.callers.push(member);
        }
    }

    pub(super) fn report(mut self, findings: &mut Findings) {
        self.callers.sort_by_key(|member| member.start);
        for run in self.runs {
            if opens_statement(&run.content) {
                sql::mentions_in(&run.content, run.span.start, findings);
            } else if run.is_first_argument && is_within(&self.callers, run.span.start) {
                sql::call_in(&run.content, run.span.start, findings);
            }
        }
    }
}

/// Whether an offset is in the last range that begins before it.
fn is_within(ranges: &[Range<usize>], at: usize) -> bool {
    let before = ranges.partition_point(|range| range.start <= at);
    before
        .checked_sub(1)
        .is_some_and(|last| at < ranges[last].end)
}

/// The content between two concatenated strings; none if they are not concatenated.
fn joined(text: &str, end: usize, start: usize) -> Option<&'static str> {
    /// No longer text is an expression inside a statement.
    const LONGEST: usize = 200;
    let between = text
        .get(end..start)
        .filter(|between| between.len() <= LONGEST)?;
    // In Visual Basic, an underscore continues a line.
    let is_joint = |c: char| c.is_whitespace() || c == '_';
    let between = between.trim_matches(is_joint);
    if matches!(between, "+" | "&") {
        return Some("");
    }
    let value = between.strip_prefix(['+', '&'])?.strip_suffix(['+', '&'])?;
    match value.trim_matches(is_joint) {
        "vbCrLf" | "vbNewLine" | "vbLf" | "Environment.NewLine" => Some("\n"),
        value => (!value.contains([';', '{', '}'])).then_some(HOLE),
    }
}
