//! Scores the candidates for a document.
//!
//! The score of a candidate is the number of its JSON-like bytes (brackets, quoted strings, numbers,
//! literals, names before a colon) minus that of its bare words, including nested candidates. A quote
//! ends a string only where valid JSON can follow, so an unescaped quote does not confuse the search.

use super::gap::next_apart;
use super::openers::{Opener, Openers, bracket_below};
use crate::plain::terminal_code_len;

/// The best candidate in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where the document opens.
    pub(crate) start: usize,
    /// Where it closes, or where the text that may belong to it ends.
    pub(crate) end: usize,
    /// Whether its closing bracket was found.
    pub(crate) closed: bool,
    /// Where the Markdown fence around the first of the adjacent documents begins, if there is one.
    pub(crate) fence: Option<usize>,
    /// Whether it contains more JSON than words.
    pub(crate) convincing: bool,
    /// Where the first of the adjacent documents begins.
    pub(crate) row: usize,
    /// How many adjacent documents there are, this one included.
    pub(crate) documents: usize,
}

/// Finds the candidate with the most JSON, the first among equals.
///
/// A bracket at the start of the text or of a fence is a document even if it is not convincing.
pub(crate) fn find(text: &[u8]) -> Option<Found> {
    let mut finder = Finder {
        text,
        at: 0,
        fence: None,
        openers: Openers::default(),
        best: None,
        fallback: None,
        leading: skip_wrapping(text).0,
        expects_token: false,
        row: 0,
        row_end: 0,
        row_fence: None,
        row_documents: 0,
    };
    while finder.at < text.len() {
        if finder.openers.is_empty() {
            finder.prose();
        } else {
            finder.token();
        }
    }
    let end = finder.text.len();
    finder.abandon_open(end);
    let best = finder.best.filter(|best| best.score > 0);
    best.map(|best| best.found).or(finder.fallback)
}

/// The range of a text without a byte order mark, reasoning, and one fence around everything.
pub(crate) fn skip_wrapping(text: &[u8]) -> (usize, usize) {
    let mut start = 0;
    loop {
        let rest = &text[start..];
        start += rest.len() - rest.trim_ascii_start().len();
        let rest = &text[start..];
        if rest.starts_with(b"\xEF\xBB\xBF") {
            start += 3;
        } else if let Some(length) = reasoning_len(rest) {
            start += length;
        } else {
            break;
        }
    }
    if !text[start..].starts_with(b"```") {
        return (start, text.len());
    }
    start = skip_fence(text, start);
    let rest = &text[start..];
    start += rest.len() - rest.trim_ascii_start().len();
    let body = &text[start..];
    let limit = body
        .trim_ascii_end()
        .strip_suffix(b"```")
        .map_or(body.len(), |body| body.trim_ascii_end().len());
    (start, start + limit)
}

/// Whether a value or a closing bracket follows, as after a bracket that opens JSON.
pub(crate) fn begins_value(text: &[u8], opener: u8) -> bool {
    let text = trim_layout(text);
    let Some(&first) = text.first() else {
        return true;
    };
    match first {
        b'`' => !text.starts_with(b"```"),
        b'"' | b'\'' | b'}' | b']' | b'\\' | b'0'..=b'9' => true,
        b'{' | b'[' | b'-' | b'(' => opener == b'[',
        b'/' => matches!(text.get(1), Some(b'/' | b'*')),
        0xE2 => matches!(text.get(1..3), Some([0x80, 0x98..=0x9E])),
        _ => {
            let word = word_len(text);
            if word == 0 {
                return false;
            }
            match opener {
                b'{' => text[word..].trim_ascii_start().first() == Some(&b':'),
                _ => is_literal(&text[..word]),
            }
        }
    }
}

/// The text without the white space, no-break spaces and terminal codes at its start.
fn trim_layout(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        let code = terminal_code_len(text);
        if code > 0 {
            text = &text[code..];
        } else if let Some(rest) = text.strip_prefix(NO_BREAK_SPACE) {
            text = rest;
        } else {
            return text;
        }
    }
}

#[derive(Clone, Copy)]
struct Scored {
    score: i64,
    found: Found,
}

struct Finder<'t> {
    text: &'t [u8],
    at: usize,
    fence: Option<usize>,
    openers: Openers,
    best: Option<Scored>,
    fallback: Option<Found>,
    /// Where the text without its wrapping begins.
    leading: usize,
    /// The last token was structure, so a quote opens a string.
    expects_token: bool,
    /// The adjacent documents: where the first begins and the last ends.
    row: usize,
    row_end: usize,
    /// The fence around the first of them.
    row_fence: Option<usize>,
    /// How many of the adjacent documents are convincing so far.
    row_documents: usize,
}

const NO_BREAK_SPACE: &[u8] = "\u{a0}".as_bytes();

/// A bracket with a lower score of its direct content is prose.
const LOST: i64 = -64;

impl Finder<'_> {
    /// Skips prose up to the next bracket, fence or reasoning.
    fn prose(&mut self) {
        let rest = &self.text[self.at..];
        let Some(skipped) = rest
            .iter()
            .position(|byte| matches!(byte, b'{' | b'[' | b'`' | b'<' | 0x1B))
        else {
            self.at = self.text.len();
            return;
        };
        self.at += skipped;
        let rest = &self.text[self.at..];
        match rest[0] {
            b'`' if rest.starts_with(b"```") => {
                if self.fence.take().is_none() {
                    self.fence = Some(self.at);
                    self.at = skip_fence(self.text, self.at);
                    let rest = &self.text[self.at..];
                    let space = rest.len() - rest.trim_ascii_start().len();
                    if self.fallback.is_none() && self.best.is_none() {
                        self.leading = self.at + space;
                    }
                } else {
                    self.at += 3;
                }
            }
            b'<' => self.at += reasoning_len(rest).unwrap_or(1),
            0x1B => self.at += terminal_code_len(rest).max(1),
            b'{' | b'[' => self.open(),
            _ => self.at += 1,
        }
    }

    /// Reads one token inside a bracket.
    fn token(&mut self) {
        let byte = self.text[self.at];
        match byte {
            b' ' | b'\t' | b'\r' => self.at += 1,
            0x1B => self.at += terminal_code_len(&self.text[self.at..]).max(1),
            0xC2 if self.text[self.at..].starts_with(NO_BREAK_SPACE) => self.at += 2,
            b'\n' => {
                if self.fence.is_some() && closes_fence(&self.text[self.at + 1..]) {
                    self.end_fence(self.at);
                    return;
                }
                self.at += 1;
            }
            b'{' | b'[' => self.open(),
            b'}' | b']' => self.close(byte),
            b',' | b':' => {
                self.weigh(1);
                self.at += 1;
                self.expects_token = true;
            }
            b'"' | b'\'' if self.expects_token => self.string(byte, 1),
            b'\\' if self.expects_token && self.text.get(self.at + 1) == Some(&b'"') => {
                self.escaped_string();
            }
            0xE2 if self.expects_token && begins_value(&self.text[self.at..], b'[') => {
                self.string(0xE2, 3);
            }
            b'`' if self.text[self.at..].starts_with(b"```") => {
                if self.fence.is_some() {
                    self.end_fence(self.at);
                } else if self.openers.last().is_some_and(Opener::is_bare) {
                    // A bracket around a fence is prose.
                    self.openers.pop();
                } else {
                    self.at += 3;
                }
            }
            b'/' if self.text.get(self.at + 1) == Some(&b'/') => {
                self.at += line_len(&self.text[self.at..]);
            }
            b'/' if self.text.get(self.at + 1) == Some(&b'*') => {
                let rest = &self.text[self.at + 2..];
                let body = position_of(rest, b"*/").map_or(rest.len(), |length| length + 2);
                self.at += 2 + body;
            }
            _ => self.word(),
        }
    }

    fn open(&mut self) {
        let bracket = self.text[self.at];
        if self.openers.is_empty() && !self.continues_row() {
            self.row = self.at;
            self.row_fence = self.fence;
            self.row_documents = 0;
        }
        self.openers.push(Opener {
            start: self.at,
            bracket,
            confirmed: begins_value(&self.text[self.at + 1..], bracket),
            own: 1,
            nested: 0,
        });
        self.at += 1;
        self.expects_token = true;
    }

    /// Whether only a gap between documents stands between the last document and this bracket.
    fn continues_row(&self) -> bool {
        let gap = &self.text[self.row_end..self.at];
        let separates = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';');
        self.row_end > self.row
            && (gap.iter().all(separates)
                || next_apart(self.text, self.row, self.row_end) == Some(self.at))
    }

    fn close(&mut self, bracket: u8) {
        self.at += 1;
        self.expects_token = false;
        let opening = if bracket == b'}' { b'{' } else { b'[' };
        let matching = |opener: &Opener| opener.bracket == opening;
        if !self.openers.last().is_some_and(matching)
            && let Some(below) = bracket_below(&self.openers)
        {
            // A bracket in between was never closed. Checking only two levels keeps this linear, and
            // a document rarely lacks more than one bracket at once.
            if below != opening {
                self.weigh(-1);
                return;
            }
            let end = self.at - 1;
            self.finish_top(end, false);
        }
        if let Some(top) = self.openers.last_mut() {
            top.own += 1;
            self.finish_top(self.at, true);
        }
    }

    /// Removes the innermost bracket and scores it as a candidate.
    fn finish_top(&mut self, end: usize, closed: bool) {
        let Some(opener) = self.openers.pop() else {
            return;
        };
        let score = opener.score();
        if let Some(parent) = self.openers.last_mut() {
            parent.nested += score.max(0);
        }
        let found = Found {
            start: opener.start,
            end,
            closed,
            fence: self.row_fence,
            convincing: score > 0,
            row: self.row,
            documents: 1,
        };
        if opener.start == self.leading && self.fallback.is_none() {
            self.fallback = Some(found);
        }
        let better = match &self.best {
            Some(best) => {
                score > best.score || score == best.score && found.start < best.found.start
            }
            None => true,
        };
        if better {
            self.best = Some(Scored { score, found });
        }
        if self.openers.is_empty() {
            self.row_end = end;
            if score > 0 {
                self.row_documents += 1;
                if let Some(best) = self.best.as_mut().filter(|best| best.found.row == self.row) {
                    best.found.documents = self.row_documents;
                }
            } else {
                self.row = end;
                self.row_fence = None;
            }
        }
    }

    fn abandon_open(&mut self, end: usize) {
        while !self.openers.is_empty() {
            self.finish_top(end, false);
        }
    }

    /// Ends an open document at its closing fence.
    fn end_fence(&mut self, at: usize) {
        self.abandon_open(self.text[..at].trim_ascii_end().len());
        self.fence = None;
        let rest = &self.text[at..];
        self.at = at + (rest.len() - rest.trim_ascii_start().len()) + 3;
    }

    fn weigh(&mut self, bytes: i64) {
        let Some(top) = self.openers.last_mut() else {
            return;
        };
        top.own += bytes;
        if top.own < LOST && !top.confirmed && top.start != self.leading {
            self.openers.pop();
        }
    }

    fn weigh_run(&mut self, start: usize) {
        let length = i64::try_from(self.at - start).unwrap_or(i64::MAX);
        self.weigh(length);
    }

    /// Reads a string up to the first quote that valid JSON can follow.
    fn string(&mut self, quote: u8, width: usize) {
        let start = self.at;
        self.at += width;
        let mut inner_fence = false;
        while self.at < self.text.len() {
            let byte = self.text[self.at];
            if byte == b'\\' {
                self.at += 2;
            } else if byte == b'\n' && self.fence.is_some() {
                let line = &self.text[self.at + 1..];
                if closes_fence(line) {
                    if !inner_fence {
                        self.weigh_run(start);
                        self.end_fence(self.at);
                        return;
                    }
                    inner_fence = false;
                } else if line[indent_len(line)..].starts_with(b"```") {
                    inner_fence = true;
                }
                self.at += 1;
            } else if byte == quote && (width == 1 || is_typographic(&self.text[self.at..])) {
                self.at += width;
                if may_follow_string(&self.text[self.at..]) {
                    break;
                }
            } else {
                self.at += 1;
            }
        }
        self.at = self.at.min(self.text.len());
        self.weigh_run(start);
        self.expects_token = false;
    }

    /// Reads a string of an escaped document: `\"like this\"`.
    fn escaped_string(&mut self) {
        let start = self.at;
        let rest = &self.text[start + 2..];
        self.at = position_of(rest, b"\\\"").map_or(self.text.len(), |length| start + length + 4);
        self.weigh_run(start);
        self.expects_token = false;
    }

    fn word(&mut self) {
        let rest = &self.text[self.at..];
        let length = word_len(rest).max(1);
        let word = &rest[..length];
        let word = word.strip_suffix(NO_BREAK_SPACE).unwrap_or(word);
        let penalty = i64::try_from(length).unwrap_or(i64::MAX);
        let in_object = self.openers.last().is_some_and(|top| top.bracket == b'{');
        let names = in_object && rest[length..].trim_ascii_start().first() == Some(&b':');
        let weight = if names || is_literal(word) || is_number(word) {
            penalty
        } else if word == b"." {
            0
        } else {
            -penalty - 1
        };
        self.at += length;
        self.expects_token = false;
        self.weigh(weight);
    }
}

fn is_typographic(text: &[u8]) -> bool {
    matches!(text.get(1..3), Some([0x80, 0x98..=0x9F]))
}

fn may_follow_string(text: &[u8]) -> bool {
    let rest = trim_layout(text);
    let new_line = text[..text.len() - rest.len()].contains(&b'\n');
    match rest.first() {
        None | Some(b',' | b':' | b'}' | b']' | b'/' | b'\\' | b'"' | b'\'' | b'`' | b'#') => true,
        _ => new_line,
    }
}

/// Whether the line that begins here is a closing fence: only backticks.
fn closes_fence(line: &[u8]) -> bool {
    let Some(rest) = line[indent_len(line)..].strip_prefix(b"```") else {
        return false;
    };
    let tail = rest
        .iter()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'`'));
    matches!(tail, None | Some(b'\n' | b'\r'))
}

fn indent_len(line: &[u8]) -> usize {
    line.iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count()
}

/// The end of an opening fence with its language tag.
pub(super) fn skip_fence(text: &[u8], at: usize) -> usize {
    let ticks = text[at..].iter().take_while(|&&byte| byte == b'`').count();
    let tag = text[at + ticks..]
        .iter()
        .take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.')
        })
        .count();
    at + ticks + tag
}

/// The length of a block of reasoning; an unclosed one reaches to the end.
fn reasoning_len(text: &[u8]) -> Option<usize> {
    let tags: [(&[u8], &[u8]); 2] = [(b"<think>", b"</think>"), (b"<thinking>", b"</thinking>")];
    let (open, close) = tags.into_iter().find(|(open, _)| text.starts_with(open))?;
    let body = &text[open.len()..];
    Some(open.len() + position_of(body, close).map_or(body.len(), |length| length + close.len()))
}

fn line_len(text: &[u8]) -> usize {
    text.iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(text.len())
}

fn position_of(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len())
        .position(|window| window == needle)
}

fn word_len(text: &[u8]) -> usize {
    text.iter()
        .take_while(|byte| {
            byte.is_ascii_alphanumeric()
                || **byte >= 0x80
                || matches!(byte, b'_' | b'-' | b'+' | b'.' | b'$')
        })
        .count()
}

fn is_number(word: &[u8]) -> bool {
    let digits = word
        .strip_prefix(b"-")
        .or(word.strip_prefix(b"+"))
        .unwrap_or(word);
    digits.first().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|byte| {
            byte.is_ascii_hexdigit() || matches!(byte, b'.' | b'+' | b'-' | b'_' | b'x')
        })
}

fn is_literal(word: &[u8]) -> bool {
    ["true", "false", "null", "none", "undefined", "nan"]
        .iter()
        .any(|literal| literal.as_bytes().eq_ignore_ascii_case(word))
}
