//! What is wrong with a file, and where.

use crate::actions::Place;

/// Something that is wrong with a file, or doubtful.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted in characters from 1.
    pub column: usize,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Severity {
    /// The pipeline cannot be run.
    Error,
    /// It can be, but hardly as it was meant.
    Warning,
}

/// Collects what is wrong with a step.
pub(crate) struct Findings<'a> {
    problems: &'a mut Vec<Problem>,
}

impl Findings<'_> {
    pub(crate) fn error(&mut self, place: &Place, message: &str, help: &str) {
        let _ = (place, message, help, &mut self.problems);
    }

    pub(crate) fn warning(&mut self, place: &Place, message: &str, help: &str) {
        let _ = (place, message, help);
    }
}

impl Problem {
    /// s
    pub fn render(&self, _f: &str, _t: &str) -> String {
        String::new()
    }
}
