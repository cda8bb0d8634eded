//! Collects and shows the problems of a file.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use super::tree::{Kind, Node, Span};
use crate::actions::KeyPath;

/// An error or a warning about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether it is an error.
    pub severity: Severity,
    /// The line, counted from 1; 0 if the problem is in a setting given for the run.
    pub line: usize,
    /// The column in characters, counted from 1; 0 like the line.
    pub column: usize,
    /// The message.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
    /// The bytes it refers to.
    #[serde(skip)]
    pub span: Span,
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The pipeline cannot be run.
    Error,
    /// The pipeline can be run, but probably not as intended.
    Warning,
}

impl Problem {
    /// The problem as text: message, position, source line and help.
    pub fn render(&self, file: &str, text: &str) -> String {
        self.rendered(file, text, &Renderer::plain())
    }

    /// The same with colours.
    pub fn render_coloured(&self, file: &str, text: &str) -> String {
        self.rendered(file, text, &Renderer::styled())
    }

    fn rendered(&self, file: &str, text: &str, renderer: &Renderer) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(self.message.as_str());
        let help = self.help.as_deref().map(|help| Level::HELP.message(help));
        if self.line == 0 {
            let group = Group::with_title(title);
            return renderer.render(&[group.elements(help)]);
        }
        let (shown, mark) = shown_line(text, &self.span);
        let shown_column = shown[..mark.start].chars().count() + 1;
        let file = visible(file);
        let snippet = Snippet::source(shown)
            .path(file.as_str())
            .line_start(self.line)
            .annotation(AnnotationKind::Primary.span(mark));
        let whole = renderer.render(&[title.element(snippet).elements(help)]);
        if shown_column == self.column {
            return whole;
        }
        // The renderer gets only a part of a long line and counts columns in that part. The position
        // comes after the first line.
        let (message, rest) = whole.split_once('\n').unwrap_or((&whole, ""));
        let position = |column| format!("{file}:{}:{column}", self.line);
        let rest = rest.replacen(&position(shown_column), &position(self.column), 1);
        format!("{message}\n{rest}")
    }
}

/// How many characters of a line are shown before and after a problem, and of the problem.
const AROUND: usize = 60;

/// The line around a span without control characters, and the bytes to mark in it.
fn shown_line(text: &str, span: &Span) -> (String, Span) {
    let start = boundary(text, span.start);
    let end = boundary(text, span.end).max(start);
    let line = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let rest = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = end.min(rest);
    let before: Vec<char> = text[line..start].chars().collect();
    let hidden = before.len().saturating_sub(AROUND);
    let mut shown = String::new();
    if hidden > 0 {
        shown.push('…');
    }
    shown.extend(before[hidden..].iter().copied().map(printed));
    let from = shown.len();
    shown.extend(text[start..end].chars().take(AROUND).map(printed));
    let to = shown.len();
    let mut after = text[end..rest].trim_end().chars();
    shown.extend(after.by_ref().take(AROUND).map(printed));
    if after.next().is_some() {
        shown.push('…');
    }
    (shown, from..to)
}

/// The last character boundary at or before an offset.
fn boundary(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    let mut offsets = (0..=offset).rev();
    offsets
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default()
}

fn printed(character: char) -> char {
    if is_hidden(character) {
        '\u{fffd}'
    } else {
        character
    }
}

/// Control characters and invisible characters.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A text with hidden characters escaped, shortened to a maximum length.
pub(crate) fn visible(text: &str) -> String {
    const MOST: usize = 1000;
    let mut shown = String::with_capacity(text.len().min(MOST));
    for character in text.chars() {
        if shown.len() > MOST {
            shown.push('…');
            break;
        }
        if is_hidden(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A value from the file, shortened for a message.
pub(crate) fn clipped(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Collects the problems of a file.
pub(crate) struct Report<'t> {
    text: &'t str,
    /// The offsets at which lines begin.
    lines: Vec<usize>,
    problems: Vec<RawProblem>,
}

/// A problem whose line has not been computed yet.
struct RawProblem {
    severity: Severity,
    /// The position; nothing for a setting given for the run.
    span: Option<Span>,
    message: String,
    help: String,
}

/// The maximum number of problems reported.
const MOST_PROBLEMS: usize = 200;

impl<'t> Report<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1));
        Self {
            text,
            lines: lines.collect(),
            problems: Vec::new(),
        }
    }

    /// The line of a byte, counted from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    pub(crate) fn error(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Severity::Error, Some(span), message.into(), help.into());
    }

    pub(crate) fn warning(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Severity::Warning, Some(span), message.into(), help.into());
    }

    /// An error in a setting given for the run.
    pub(crate) fn error_in_option(&mut self, message: impl Into<String>, help: impl Into<String>) {
        self.push(Severity::Error, None, message.into(), help.into());
    }

    fn push(&mut self, severity: Severity, span: Option<Span>, message: String, help: String) {
        self.problems.push(RawProblem {
            severity,
            span,
            message,
            help,
        });
    }

    /// Whether there are so many problems that suggestions are no longer worth their time.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() > MOST_PROBLEMS
    }

    pub(crate) fn has_errors(&self) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.severity == Severity::Error)
    }

    /// The problems without duplicates, in the order of the file.
    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        let start = |problem: &RawProblem| problem.span.as_ref().map(|span| span.start);
        self.problems.sort_by_key(start);
        self.problems
            .dedup_by(|one, other| (start(one), &one.message) == (start(other), &other.message));
        let more = self.problems.len().saturating_sub(MOST_PROBLEMS);
        if more > 0 {
            // Drops warnings before errors.
            self.problems
                .sort_by_key(|problem| problem.severity != Severity::Error);
            self.problems.truncate(MOST_PROBLEMS);
            self.problems.sort_by_key(start);
            let end = self.text.len();
            // Errors are kept first, so the rest is no more severe than what is shown.
            let severity = if self.has_errors() {
                Severity::Error
            } else {
                Severity::Warning
            };
            let message = format!("and {more} more");
            self.push(severity, Some(end..end), message, String::new());
        }
        let problems = std::mem::take(&mut self.problems).into_iter();
        problems
            .map(|problem| self.with_position(problem))
            .collect()
    }

    fn with_position(&self, problem: RawProblem) -> Problem {
        let (line, column) = match &problem.span {
            None => (0, 0),
            Some(span) => {
                let start = boundary(self.text, span.start);
                let line = self.line(start);
                let begins = self.lines[line - 1];
                (line, self.text[begins..start].chars().count() + 1)
            }
        };
        Problem {
            severity: problem.severity,
            line,
            column,
            message: visible(&problem.message),
            help: (!problem.help.is_empty()).then(|| visible(&problem.help)),
            span: problem.span.unwrap_or_default(),
        }
    }
}

/// Collects the problems of a step.
pub(crate) struct Findings<'a> {
    step: &'a Node,
    /// The invalid values that were left out. Problems next to them may only follow from that, and
    /// are not reported.
    left_out: &'a [Vec<String>],
    problems: Vec<RawProblem>,
}

impl<'a> Findings<'a> {
    pub(super) fn of(step: &'a Node, left_out: &'a [Vec<String>]) -> Self {
        Self {
            step,
            left_out,
            problems: Vec::new(),
        }
    }

    pub(crate) fn error(&mut self, path: &KeyPath, message: &str, help: &str) {
        self.push(Severity::Error, path, message, help);
    }

    pub(crate) fn warning(&mut self, path: &KeyPath, message: &str, help: &str) {
        self.push(Severity::Warning, path, message, help);
    }

    fn push(&mut self, severity: Severity, path: &KeyPath, message: &str, help: &str) {
        let parent = |path: &[String]| path.split_last().map(|(_, parent)| parent.to_vec());
        let is_sibling = |other: &Vec<String>| parent(other) == parent(&path.0);
        let is_uncertain = severity == Severity::Warning && !self.left_out.is_empty();
        if is_uncertain || self.left_out.iter().any(is_sibling) {
            return;
        }
        self.problems.push(RawProblem {
            severity,
            span: Some(span_of(self.step, &path.0)),
            message: message.to_owned(),
            help: help.to_owned(),
        });
    }

    pub(super) fn move_to(self, report: &mut Report<'_>) {
        report.problems.extend(self.problems);
    }
}

/// The position of a value in a part of the file: the value itself if it fits a line, else its key,
/// else the nearest parent.
pub(super) fn span_of(part: &Node, path: &[impl AsRef<str>]) -> Span {
    let mut node = part;
    let mut span = part.mark();
    for name in path {
        let name = name.as_ref();
        match &node.kind {
            Kind::Map(_) => {
                let Some(entry) = node.entry(name) else { break };
                node = &entry.value;
                span = entry.key_span.clone();
            }
            Kind::List(items) => {
                let Some(item) = name.parse().ok().and_then(|index: usize| items.get(index)) else {
                    break;
                };
                node = item;
                span = item.mark();
            }
            _ => break,
        }
        if let Kind::Scalar { .. } = node.kind
            && !node.span.is_empty()
        {
            span = node.span.clone();
        }
    }
    span
}
