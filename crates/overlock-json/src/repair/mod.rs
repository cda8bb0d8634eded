//! Turns malformed JSON, as models write it, into valid JSON.
//!
//! Valid JSON comes back as it is. Anything else is read leniently, once, and
//! every change is told. What a slip means is decided by what keeps most of the
//! data and would be the reading of a person.

mod draft;
mod fix;
mod look;
mod parser;
mod scalars;
mod strings;
#[cfg(test)]
mod tests;

pub use fix::{Fix, FixKind};

use crate::close::NoJson;
use crate::extract::{Found, Shifts, drop_bytes, find, skip_wrapping};
use crate::scan::Scanner;
use parser::{Beginning, Ending, Parser};
use serde::{Deserialize, Serialize};

/// What becomes of several documents in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Several {
    /// They become the elements of one array.
    #[default]
    Array,
    /// The first is kept, the others are left out.
    First,
}

/// How to repair a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepairOptions {
    /// What becomes of several documents in a row.
    pub several: Several,
}

/// A text that has become valid JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// Valid JSON.
    pub json: String,
    /// What was changed, in the order of the text; nothing if the text was valid.
    pub fixes: Vec<Fix>,
}

/// Turns malformed JSON into valid JSON and tells what was changed.
///
/// ```
/// use overlock_json::{RepairOptions, repair};
///
/// let repaired = repair("{name: 'Ada', tags: [1, 2,]", &RepairOptions::default())?;
/// assert_eq!(repaired.json, r#"{"name": "Ada", "tags": [1, 2]}"#);
/// assert!(repair("no JSON at all", &RepairOptions::default()).is_err());
/// # Ok::<(), overlock_json::NoJson>(())
/// ```
pub fn repair<T: AsRef<[u8]> + ?Sized>(
    text: &T,
    options: &RepairOptions,
) -> Result<Repaired, NoJson> {
    let (text, shifts) = drop_bytes(text.as_ref());
    if text.trim_ascii().is_empty() {
        return Err(NoJson::Empty);
    }
    if shifts.total() == 0 && is_valid(&text) {
        let json = text.into_owned();
        return Ok(Repaired {
            json,
            fixes: Vec::new(),
        });
    }
    let several = options.several == Several::Array;
    let (json, mut fixes) = repair_text(&text, Ending::Close, several).ok_or(NoJson::Absent)?;
    restore_offsets(&mut fixes, &shifts, FixKind::Encoding);
    Ok(Repaired { json, fixes })
}

/// Repairs one document that may be cut: what is open at the end stays open, so that
/// the result is a prefix of valid JSON.
pub(crate) fn repair_open(region: &[u8]) -> (String, Vec<Fix>) {
    let (text, shifts) = drop_bytes(region);
    let place = Place {
        start: 0,
        limit: text.len(),
        beginning: Beginning::Value,
        fence: None,
    };
    let (json, mut fixes) =
        repair_place(&text, &place, Ending::StayOpen, false).unwrap_or_default();
    restore_offsets(&mut fixes, &shifts, FixKind::Encoding);
    (json, fixes)
}

fn is_valid(text: &str) -> bool {
    let mut scanner = Scanner::new();
    scanner.feed(text.as_bytes());
    scanner.is_complete()
}

fn repair_text(text: &str, ending: Ending, several: bool) -> Option<(String, Vec<Fix>)> {
    let bytes = text.as_bytes();
    if let Some(place) = obvious_place(bytes) {
        let parser = Parser::new(bytes, place.start, ending, several);
        let outcome = parser.run(place.beginning)?;
        // Brackets after it may be the better document.
        let rest = &bytes[outcome.rest..];
        if !rest.iter().any(|byte| matches!(byte, b'{' | b'[')) {
            return Some((outcome.json, place.with_wrapping(bytes, outcome.fixes)));
        }
    }
    let place = locate(bytes)?;
    repair_place(text, &place, ending, several)
}

/// The place of a document that a text begins with, if it is plain to see.
fn obvious_place(text: &[u8]) -> Option<Place> {
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
    (obvious && !fenced).then_some(Place {
        start,
        limit: text.len(),
        beginning: Beginning::Value,
        fence: None,
    })
}

fn repair_place(
    text: &str,
    place: &Place,
    ending: Ending,
    several: bool,
) -> Option<(String, Vec<Fix>)> {
    let bytes = text.as_bytes();
    if let Some((inner, shifts)) = unescape(&text[place.start..place.limit]) {
        let (json, mut fixes) = repair_text(&inner, ending, several)?;
        restore_offsets(&mut fixes, &shifts, FixKind::Escaped);
        for fix in &mut fixes {
            fix.offset += place.start;
        }
        return Some((json, fixes));
    }
    let parser = Parser::new(&bytes[..place.limit], place.start, ending, several);
    let outcome = parser.run(place.beginning)?;
    Some((outcome.json, place.with_wrapping(bytes, outcome.fixes)))
}

/// Where the document is and how it begins.
struct Place {
    start: usize,
    limit: usize,
    beginning: Beginning,
    fence: Option<usize>,
}

impl Place {
    /// Adds the fixes for what was left out around the document.
    fn with_wrapping(&self, text: &[u8], fixes: Vec<Fix>) -> Vec<Fix> {
        let mut all = Vec::new();
        let before = &text[..self.fence.unwrap_or(self.start)];
        if !before.trim_ascii().is_empty() {
            all.push(Fix {
                kind: FixKind::Prose,
                offset: 0,
            });
        }
        if let Some(offset) = self.fence {
            all.push(Fix {
                kind: FixKind::Fence,
                offset,
            });
        }
        all.extend(fixes);
        all
    }
}

fn locate(text: &[u8]) -> Option<Place> {
    let (content, limit) = skip_wrapping(text);
    let fence = (limit < text.len() || text[..content].contains(&b'`')).then_some(0);
    let whole = |beginning| Place {
        start: content,
        limit,
        beginning,
        fence,
    };
    let first = *text.get(content)?;
    let quoted = look::quote_at(text, content).is_some() || text[content..].starts_with(b"\\\"");
    if quoted {
        if let Some(beginning) = root_string(&text[..limit], content) {
            return Some(whole(beginning));
        }
    }
    let found = find(text);
    if let Some(found) = found.filter(|found| found.convincing || !quoted) {
        return Some(Place {
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

/// How far the document and what may follow it reach.
fn limit_of(text: &[u8], found: &Found) -> usize {
    if found.closed {
        return text.len();
    }
    let region = &text[found.start..found.end];
    let fences = region.windows(3).filter(|ticks| ticks == b"```").count();
    let body = region.trim_ascii_end();
    match body.strip_suffix(b"```") {
        // A fence that nothing in the document has opened closes around it.
        Some(body) if fences % 2 == 1 => found.start + body.len(),
        _ => found.end,
    }
}

/// Whether a text that begins with a quote is to be read from there, and as what.
fn root_string(text: &[u8], start: usize) -> Option<Beginning> {
    let Some((_, next)) = look::string_ahead(text, start) else {
        return None;
    };
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

/// Whether a text is one number or call in another notation.
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

/// The document without one level of escapes, if all of it is escaped: `{\"a\": 1}`.
fn unescape(text: &str) -> Option<(String, Shifts)> {
    let bytes = text.as_bytes();
    let first = bytes.iter().take(200).position(|&byte| byte == b'"')?;
    let escaped = first > 0
        && bytes[first - 1] == b'\\'
        && bytes[..first - 1].iter().all(|byte| {
            byte.is_ascii_whitespace() || matches!(byte, b'{' | b'[' | b'\\' | b'n' | b't')
        });
    if !escaped {
        return None;
    }
    let mut inner = String::with_capacity(text.len());
    let mut shifts = Shifts::default();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let plain = match bytes.get(at + 1) {
            Some(b'"') => "\"",
            Some(b'\\') => "\\",
            Some(b'n') => "\n",
            Some(b't') => "\t",
            Some(b'r') => "\r",
            Some(b'/') => "/",
            _ => {
                at += 1;
                continue;
            }
        };
        inner.push_str(&text[copied..at]);
        shifts.note(inner.len(), 1);
        inner.push_str(plain);
        at += 2;
        copied = at;
    }
    inner.push_str(&text[copied..]);
    Some((inner, shifts))
}

/// Tells the fixes' offsets in the text before bytes were left out, and that they were.
fn restore_offsets(fixes: &mut Vec<Fix>, shifts: &Shifts, kind: FixKind) {
    for fix in fixes.iter_mut() {
        fix.offset = shifts.restore(fix.offset);
    }
    if kind == FixKind::Encoding {
        let dropped = shifts.offsets().map(|offset| Fix { kind, offset });
        fixes.extend(dropped);
        fixes.sort_by_key(|fix| fix.offset);
    } else {
        fixes.insert(0, Fix { kind, offset: 0 });
    }
}
