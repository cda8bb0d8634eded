//! Locates the document in a text.

use super::fix::{Fix, FixKind};
use super::look;
use super::parser::Beginning;
use crate::extract::{Found, begins_value, find, skip_wrapping};

/// The location of a document.
pub(super) struct DocumentLocation {
    pub(super) start: usize,
    pub(super) limit: usize,
    pub(super) beginning: Beginning,
    pub(super) fence: Option<usize>,
}

impl DocumentLocation {
    /// Adds the fixes for text that was left out around the document.
    pub(super) fn with_wrapping(&self, text: &[u8], mut fixes: Vec<Fix>) -> Vec<Fix> {
        if let Some(offset) = self.fence {
            let kind = FixKind::Fence;
            fixes.insert(0, Fix { kind, offset });
        }
        let before = &text[..self.fence.unwrap_or(self.start)];
        if !before.trim_ascii().is_empty() {
            let kind = FixKind::Prose;
            fixes.insert(0, Fix { kind, offset: 0 });
        }
        fixes
    }
}

/// The location of a document at the start of a text, if it is obvious.
pub(super) fn obvious_location(text: &[u8]) -> Option<DocumentLocation> {
    let start = text.len() - text.trim_ascii_start().len();
    let brackets = text[start..]
        .iter()
        .take(40)
        .take_while(|byte| byte.is_ascii_whitespace() || matches!(byte, b'{' | b'['))
        .count();
    let opens_object = text[start..start + brackets]
        .trim_ascii_end()
        .ends_with(b"{");
    let obvious = opens_object && look::key_ahead(text, start + brackets);
    let fenced = text.trim_ascii_end().ends_with(b"```");
    (obvious && !fenced).then_some(DocumentLocation {
        start,
        limit: text.len(),
        beginning: Beginning::Value,
        fence: None,
    })
}

/// The location of the document in a text, if there is one.
pub(super) fn locate(text: &[u8]) -> Option<DocumentLocation> {
    let (content, limit) = skip_wrapping(text);
    let fence = (limit < text.len() || text[..content].contains(&b'`')).then_some(0);
    let whole = |beginning| DocumentLocation {
        start: content,
        limit,
        beginning,
        fence,
    };
    let first = *text.get(content)?;
    let quoted = (look::quote_at(text, content).is_some() || text[content..].starts_with(b"\\\""))
        && !quotes_document(&text[content..limit]);
    if quoted && let Some(beginning) = root_string(&text[..limit], content) {
        return Some(whole(beginning));
    }
    let found = find(text);
    if let Some(found) = found.filter(|found| found.convincing || !quoted) {
        return Some(DocumentLocation {
            start: found.row,
            limit: limit_of(text, &found),
            beginning: Beginning::Value,
            fence: found.fence,
        });
    }
    let plain = quoted
        || first == b'('
        || look::plain_scalar_ahead(&text[..limit], content)
        || is_odd_scalar(&text[content..limit]);
    plain.then(|| whole(Beginning::Value))
}

/// Whether a text is a document in quotes of another language: `'{"a": 1}'`.
fn quotes_document(text: &[u8]) -> bool {
    let quotes = [&b"\"\"\""[..], b"'''", b"'", b"`"];
    let inside = quotes.iter().find_map(|quote| text.strip_prefix(*quote));
    let inside = inside.unwrap_or_default().trim_ascii_start();
    matches!(inside, [opener @ (b'{' | b'['), rest @ ..] if begins_value(rest, *opener))
}

/// Where the document and what may follow it end.
fn limit_of(text: &[u8], found: &Found) -> usize {
    if found.closed {
        return text.len();
    }
    let region = &text[found.start..found.end];
    let fences = region.windows(3).filter(|ticks| ticks == b"```").count();
    let body = region.trim_ascii_end();
    match body.strip_suffix(b"```") {
        // A closing fence that was not opened inside the document belongs around it.
        Some(body) if fences % 2 == 1 && body.trim_ascii_end().ends_with(b"}") => {
            found.start + body.len()
        }
        _ => found.end,
    }
}

/// How to parse a text that begins with a quote, if the document begins there.
fn root_string(text: &[u8], start: usize) -> Option<Beginning> {
    let (_, next) = look::string_ahead(text, start)?;
    match text.get(next) {
        Some(b':') => {
            let value = look::skip_space(text, next + 1);
            let begins = look::quote_at(text, value).is_some()
                || look::plain_scalar_ahead(text, value)
                || matches!(text.get(value), Some(b'{' | b'['));
            begins.then_some(Beginning::Members)
        }
        None | Some(b'+') => Some(Beginning::Value),
        _ => {
            let last = text.trim_ascii_end().len() - 1;
            (text[last] == text[start]).then_some(Beginning::Value)
        }
    }
}

/// Whether a text is a single number or call in another notation.
fn is_odd_scalar(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let word = look::word_len(text, 0);
    let call = text[word..].trim_ascii_start().starts_with(b"(") && word > 0;
    let ends = text.ends_with(b")") || text.ends_with(b");");
    let number = text.iter().all(|byte| {
        byte.is_ascii_hexdigit()
            || matches!(byte, b'.' | b'+' | b'-' | b'_' | b'x' | b',' | b'\n' | b' ')
    }) && text.iter().any(u8::is_ascii_digit)
        && matches!(text[0], b'0'..=b'9' | b'-' | b'+' | b'.');
    let regex = text.len() > 2 && text[0] == b'/' && text.ends_with(b"/") && !text.contains(&b'\n');
    let unopened = text.len() == word + 1 && text.ends_with(b"\"") && word > 0;
    let half = [&b"true"[..], b"false", b"null"]
        .iter()
        .any(|literal| literal.starts_with(text));
    call && ends || number || half || regex || unopened
}
