//! Repairs malformed JSON, as models write it.
//!
//! Valid JSON is returned unchanged. Any other text is read leniently in one pass, and every change
//! is reported. An error is interpreted as a person would, in the way that keeps most of the data.

mod brackets;
mod checkpoint;
mod draft;
mod escapes;
mod fix;
mod groups;
mod layout;
mod look;
mod numbers;
mod parser;
mod place;
mod scalars;

mod strings;
#[cfg(test)]
mod tests;
mod unclosed;
mod verdict;
mod work;

pub use fix::{Fix, FixKind};

use crate::close::NoJson;
use crate::extract::{Shifts, drop_bytes};
use crate::scan::Scanner;
use checkpoint::checkpoint;
use parser::{Beginning, Ending, Parser};
use place::{DocumentLocation, locate, obvious_location};
use serde::{Deserialize, Serialize};

/// What to do with several documents in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Several {
    /// Make them the elements of one array.
    #[default]
    Array,
    /// Keep only the first.
    First,
}

/// How to repair a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepairOptions {
    /// What to do with several documents in a text.
    pub several: Several,
}

/// A repaired text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// Valid JSON.
    pub json: String,
    /// The changes in the order of the text, at most the first million; empty if the text was valid.
    pub fixes: Vec<Fix>,
}

/// Turns malformed JSON into valid JSON and reports the changes.
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
    let scanner = scan(text.as_bytes());
    if shifts.total() == 0
        && let Some(repaired) = if_well_formed(&text, &scanner)
    {
        return Ok(repaired);
    }
    let (json, mut fixes) =
        repair_text(&text, &scanner, Ending::Close, options.several).ok_or(NoJson::Absent)?;
    restore_offsets(&mut fixes, &shifts, FixKind::Encoding);
    Ok(Repaired { json, fixes })
}

/// Repairs one document that may be cut. Open containers stay open, so the result is a prefix of
/// valid JSON.
pub(crate) fn repair_open(region: &[u8]) -> (String, Vec<Fix>) {
    let (text, shifts) = drop_bytes(region);
    let place = DocumentLocation {
        start: 0,
        limit: text.len(),
        beginning: Beginning::Value,
        fence: None,
    };
    let (json, mut fixes) =
        repair_place(&text, &place, Ending::StayOpen, Several::First).unwrap_or_default();
    restore_offsets(&mut fixes, &shifts, FixKind::Encoding);
    (json, fixes)
}

fn scan(text: &[u8]) -> Scanner {
    let mut scanner = Scanner::new();
    scanner.feed(text);
    scanner
}

/// A valid text, unchanged, or a text that is only cut, closed.
///
/// A text that ends in a string is parsed leniently, because its last quote may be missing.
fn if_well_formed(text: &str, scanner: &Scanner) -> Option<Repaired> {
    if scanner.is_complete() {
        return Some(Repaired {
            json: text.to_owned(),
            fixes: Vec::new(),
        });
    }
    if scanner.depth() == 0 || scanner.is_in_string() {
        return None;
    }
    let closing = scanner.closing(false)?;
    let mut json = String::with_capacity(closing.kept_len + closing.closers.len());
    json.push_str(&text[..closing.kept_len]);
    json.push_str(&closing.closers);
    let truncated = Fix {
        kind: FixKind::Truncated,
        offset: text.len(),
    };
    Some(Repaired {
        json,
        fixes: vec![truncated],
    })
}

fn repair_text(
    text: &str,
    scanner: &Scanner,
    ending: Ending,
    several: Several,
) -> Option<(String, Vec<Fix>)> {
    let bytes = text.as_bytes();
    if let Some(place) = obvious_location(bytes) {
        let mut parser = Parser::new(bytes, place.start, ending, several);
        if let Some(checkpoint) = checkpoint(scanner, bytes) {
            parser.resume(0, checkpoint);
        }
        let outcome = parser.run(place.beginning)?;
        // A later document may be the better one.
        let rest = &bytes[outcome.rest..];
        if !rest.iter().any(|byte| matches!(byte, b'{' | b'[')) {
            return Some((outcome.json, place.with_wrapping(bytes, outcome.fixes)));
        }
    }
    let place = locate(bytes)?;
    repair_place(text, &place, ending, several)
}

fn repair_place(
    text: &str,
    place: &DocumentLocation,
    ending: Ending,
    several: Several,
) -> Option<(String, Vec<Fix>)> {
    let bytes = text.as_bytes();
    if let Some((inner, shifts)) = unescape(&text[place.start..place.limit]) {
        let scanner = scan(inner.as_bytes());
        let (json, mut fixes) = repair_text(&inner, &scanner, ending, several)?;
        restore_offsets(&mut fixes, &shifts, FixKind::Escaped);
        for fix in &mut fixes {
            fix.offset += place.start;
        }
        return Some((json, fixes));
    }
    let bytes = &bytes[..place.limit];
    let mut parser = Parser::new(bytes, place.start, ending, several);
    let document = &bytes[place.start..];
    if place.beginning == Beginning::Value
        && let Some(checkpoint) = checkpoint(&scan(document), document)
    {
        parser.resume(place.start, checkpoint);
    }
    let outcome = parser.run(place.beginning)?;
    let fixes = place.with_wrapping(text.as_bytes(), outcome.fixes);
    Some((outcome.json, fixes))
}

/// Removes one level of escapes, if the whole document is escaped: `{\"a\": 1}`.
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
        shifts.add(inner.len(), 1);
        inner.push_str(plain);
        at += 2;
        copied = at;
    }
    inner.push_str(&text[copied..]);
    Some((inner, shifts))
}

/// Maps the offsets of fixes back to the text before bytes were left out, and adds a fix for those.
fn restore_offsets(fixes: &mut Vec<Fix>, shifts: &Shifts, kind: FixKind) {
    if kind == FixKind::Encoding && shifts.total() == 0 {
        return;
    }
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
