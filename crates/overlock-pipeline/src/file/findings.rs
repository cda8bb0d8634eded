//! What is wrong with a file, and where.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use super::tree::{Kind, Node, Span};
use crate::actions::Place;

/// Something that is wrong with a file, or doubtful.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The line, counted from 1; 0 if it is not about the file, but about a setting from outside.
    pub line: usize,
    /// The column, counted in characters from 1; 0 as well then.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// The bytes that it is about.
    #[serde(skip)]
    pub span: Span,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The pipeline cannot be run.
    Error,
    /// It can be, but hardly as it was meant.
    Warning,
}

impl Problem {
    /// The problem as a person reads it: what, where, the line itself, and what would be right.
    pub fn render(&self, file: &str, text: &str) -> String {
        self.rendered(file, text, &Renderer::plain())
    }

    /// The same in colours.
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
        // Of a long line only a part is given to the renderer, which counts the columns in it. The
        // place stands after the message, which has no line of its own.
        let (message, rest) = whole.split_once('\n').unwrap_or((&whole, ""));
        let place = |column| format!("{file}:{}:{column}", self.line);
        let rest = rest.replacen(&place(shown_column), &place(self.column), 1);
        format!("{message}\n{rest}")
    }
}

/// So much of a line is shown on either side of what it is about.
const AROUND: usize = 60;

/// The line of a place, without what would break a terminal, and the bytes of it to mark.
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

/// The place itself, or the last one before it that is no part of a character.
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

/// Characters that do something to a terminal, or that nobody sees.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A message in which no name from the file does anything to a terminal, and none fills it.
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

/// A value from the file as it stands in a message.
pub(crate) fn clipped(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Collects what is wrong with a file.
pub(crate) struct Report<'t> {
    text: &'t str,
    /// Where lines begin.
    lines: Vec<usize>,
    found: Vec<Found>,
}

/// A problem whose line nobody has looked up yet.
struct Found {
    severity: Severity,
    /// Where; nowhere in the file, if it was set from outside.
    span: Option<Span>,
    message: String,
    help: String,
}

/// So many are told; who has more begins with these.
const MOST_PROBLEMS: usize = 200;

impl<'t> Report<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1));
        Self {
            text,
            lines: lines.collect(),
            found: Vec::new(),
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

    /// An error in what was set from outside.
    pub(crate) fn error_outside(&mut self, message: impl Into<String>, help: impl Into<String>) {
        self.push(Severity::Error, None, message.into(), help.into());
    }

    fn push(&mut self, severity: Severity, span: Option<Span>, message: String, help: String) {
        self.found.push(Found {
            severity,
            span,
            message,
            help,
        });
    }

    /// Whether so much was found that looking for what was meant is not worth its time.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() > MOST_PROBLEMS
    }

    pub(crate) fn has_errors(&self) -> bool {
        let mut found = self.found.iter();
        found.any(|found| found.severity == Severity::Error)
    }

    /// What was found, in the order of the file, each once.
    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        let place = |found: &Found| found.span.as_ref().map(|span| span.start);
        self.found.sort_by_key(place);
        self.found
            .dedup_by(|one, other| (place(one), &one.message) == (place(other), &other.message));
        let more = self.found.len().saturating_sub(MOST_PROBLEMS);
        if more > 0 {
            // A warning may wait; what keeps the file from running may not.
            self.found
                .sort_by_key(|found| found.severity != Severity::Error);
            self.found.truncate(MOST_PROBLEMS);
            self.found.sort_by_key(place);
            let end = self.text.len();
            // Errors stand first, so that what is left out is no worse than what was told.
            let severity = if self.has_errors() {
                Severity::Error
            } else {
                Severity::Warning
            };
            let message = format!("and {more} more");
            self.push(severity, Some(end..end), message, String::new());
        }
        let found = std::mem::take(&mut self.found).into_iter();
        found.map(|found| self.placed(found)).collect()
    }

    fn placed(&self, found: Found) -> Problem {
        let (line, column) = match &found.span {
            None => (0, 0),
            Some(span) => {
                let start = boundary(self.text, span.start);
                let line = self.line(start);
                let begins = self.lines[line - 1];
                (line, self.text[begins..start].chars().count() + 1)
            }
        };
        Problem {
            severity: found.severity,
            line,
            column,
            message: visible(&found.message),
            help: (!found.help.is_empty()).then(|| visible(&found.help)),
            span: found.span.unwrap_or_default(),
        }
    }
}

/// Collects what is wrong with a step.
pub(crate) struct Findings<'a> {
    step: &'a Node,
    /// What is not there because it was told already: whatever else is wrong right beside it may
    /// only follow from that.
    left_out: &'a [Vec<String>],
    found: Vec<Found>,
}

impl<'a> Findings<'a> {
    pub(super) fn of(step: &'a Node, left_out: &'a [Vec<String>]) -> Self {
        Self {
            step,
            left_out,
            found: Vec::new(),
        }
    }

    pub(crate) fn error(&mut self, place: &Place, message: &str, help: &str) {
        self.push(Severity::Error, place, message, help);
    }

    pub(crate) fn warning(&mut self, place: &Place, message: &str, help: &str) {
        self.push(Severity::Warning, place, message, help);
    }

    fn push(&mut self, severity: Severity, place: &Place, message: &str, help: &str) {
        let around = |path: &[String]| path.split_last().map(|(_, way)| way.to_vec());
        let is_beside = |path: &Vec<String>| around(path) == around(&place.0);
        let is_doubt = severity == Severity::Warning && !self.left_out.is_empty();
        if is_doubt || self.left_out.iter().any(is_beside) {
            return;
        }
        self.found.push(Found {
            severity,
            span: Some(span_of(self.step, &place.0)),
            message: message.to_owned(),
            help: help.to_owned(),
        });
    }

    pub(super) fn tell(self, report: &mut Report<'_>) {
        report.found.extend(self.found);
    }
}

/// Where something stands in a part of the file: a value that can be shown, else its key, else
/// what is nearest to it.
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
