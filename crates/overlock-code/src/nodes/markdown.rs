//! Finds the sections of Markdown, and the names in its code spans.
//!
//! A section ends at the next heading of the same or a higher level.

use std::ops::Range;

use super::tree::{Findings, FoundNode};
use super::{MentionKind, NodeKind};

/// A heading whose section has not ended.
struct OpenSection {
    level: usize,
    /// Its index in the findings.
    found: usize,
}

pub(super) fn find(text: &str, findings: &mut Findings) {
    let mut open: Vec<OpenSection> = Vec::new();
    let mut verbatim: Option<Verbatim> = None;
    // The line before, if an underline would make it a heading.
    let mut paragraph: Option<Range<usize>> = None;
    let mut at = front_matter_end(text);
    for line in text[at..].split_inclusive('\n') {
        let span = at..at + line.len();
        at = span.end;
        let is_outside = verbatim.is_none();
        if is_outside {
            verbatim = Verbatim::opened_by(line);
        }
        if let Some(opened) = &verbatim {
            if opened.is_closed_by(line, is_outside) {
                verbatim = None;
            }
            paragraph = None;
            continue;
        }
        let underlined = paragraph.take();
        let heading = match (atx(line), underline(line), underlined) {
            (Some((level, title)), ..) => Some((level, title, span.clone())),
            (None, Some(level), Some(above)) => {
                Some((level, text[above.clone()].trim(), above.start..span.end))
            }
            _ => None,
        };
        match heading {
            Some((level, title, lines)) => section(text, level, title, lines, &mut open, findings),
            None if !line.trim().is_empty()
                && !line.starts_with(['>', '-', '*', '|', ' ', '\t']) =>
            {
                paragraph = Some(span.clone());
            }
            None => {}
        }
        code_spans(line, span.start, findings);
    }
}

fn section(
    text: &str,
    level: usize,
    title: &str,
    lines: Range<usize>,
    open: &mut Vec<OpenSection>,
    findings: &mut Findings,
) {
    while let Some(last) = open.pop_if(|last| last.level >= level) {
        findings.nodes[last.found].end_at(lines.start);
    }
    // There are at most as many as heading levels.
    let mut qualified = String::new();
    for above in open.iter() {
        qualified.push_str(&findings.nodes[above.found].name);
        qualified.push_str(" > ");
    }
    let title = &title[..title.floor_char_boundary(200)];
    qualified.push_str(title);
    open.push(OpenSection {
        level,
        found: findings.nodes.len(),
    });
    let inside = lines.end..text.len();
    findings.nodes.push(FoundNode {
        kind: NodeKind::Section,
        detail: "section",
        name: title.to_owned(),
        qualified,
        span: lines.start..text.len(),
        inside: vec![inside],
    });
}

impl FoundNode {
    fn end_at(&mut self, end: usize) {
        self.span.end = end;
        self.inside.retain_mut(|inside| {
            inside.end = end;
            inside.start < end
        });
    }
}

/// A heading such as `## Usage`: its level and its title.
fn atx(line: &str) -> Option<(usize, &str)> {
    let indented = line.len() - line.trim_start_matches(' ').len();
    let line = line.trim();
    let level = line.bytes().take_while(|&byte| byte == b'#').count();
    let rest = &line[level..];
    let is_heading = indented < 4
        && (1..=6).contains(&level)
        && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
}

/// The level that this line gives to the line above by underlining it.
fn underline(line: &str) -> Option<usize> {
    let line = line.trim_end();
    let all = |mark: u8| !line.is_empty() && line.bytes().all(|byte| byte == mark);
    match () {
        () if all(b'=') => Some(1),
        () if all(b'-') => Some(2),
        () => None,
    }
}

/// A block without headings.
enum Verbatim {
    /// Code between fences.
    Fence { mark: u8, length: usize },
    /// A comment of HTML.
    Comment,
}

impl Verbatim {
    fn opened_by(line: &str) -> Option<Self> {
        let line = line.trim();
        if line.starts_with("<!--") {
            return Some(Self::Comment);
        }
        let mark = *line
            .as_bytes()
            .first()
            .filter(|mark| b"`~".contains(mark))?;
        let length = line.bytes().take_while(|&byte| byte == mark).count();
        let opens = length >= 3 && (mark == b'~' || !line[length..].contains('`'));
        opens.then_some(Self::Fence { mark, length })
    }

    /// Whether a line ends the block; a comment may end on the line that opens it.
    fn is_closed_by(&self, line: &str, is_first: bool) -> bool {
        let line = line.trim();
        match *self {
            Self::Fence { mark, length } => {
                !is_first && line.len() >= length && line.bytes().all(|byte| byte == mark)
            }
            Self::Comment => line.contains("-->"),
        }
    }
}

/// Where the front matter ends; 0 if there is none.
fn front_matter_end(text: &str) -> usize {
    let begins = text.starts_with("---\n") || text.starts_with("---\r\n");
    let ends = begins
        .then(|| text.find("\n---"))
        .flatten()
        .map(|at| at + 4);
    ends.map_or(0, |end| {
        text[end..]
            .find('\n')
            .map_or(text.len(), |feed| end + feed + 1)
    })
}

/// Names in code spans are mentions.
fn code_spans(line: &str, start: usize, findings: &mut Findings) {
    let mut rest = line;
    let mut at = start;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((code, behind)) = after.split_once('`') else {
            return;
        };
        let code_at = at + before.len() + 1;
        let name = code.trim().trim_end_matches("()");
        let is_name = name.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_' || c == '.');
        if is_name {
            let (of, simple) = match name.rsplit_once('.') {
                Some((of, simple)) => (of.rsplit('.').next(), simple),
                None => (None, name),
            };
            findings.mention(code_at, MentionKind::References, simple, of);
        }
        at = code_at + code.len() + 1;
        rest = behind;
    }
}
