//! Finds the JSON document in an answer.
//!
//! Models wrap documents in Markdown, reasoning and prose, which may contain brackets, too. Every
//! opening bracket begins a candidate, and the candidate with the most JSON wins. The search is one
//! pass with an explicit stack, so it is linear and does not recurse.

mod encoding;
mod finder;
mod gap;
mod openers;
#[cfg(test)]
mod tests;

pub use encoding::{Cleaned, clean_encoding};
pub(crate) use encoding::{Shifts, drop_bytes};
pub(crate) use finder::{Found, begins_value, find, skip_wrapping};
pub(crate) use gap::next_apart;

/// The range of the document in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extracted {
    /// The first byte of the document.
    pub start: usize,
    /// The byte after the document. An open document ends at the end of the text, or at the closing
    /// fence around it.
    pub end: usize,
}

/// Finds the JSON document in a text, which may be cut or malformed.
///
/// A byte-order mark, a Markdown fence, `<think>` blocks and prose before and
/// after are left out. Among several candidates the one with the most JSON wins,
/// the first among equals.
///
/// ```
/// let text = "Use {curly} braces:\n```json\n{\"a\": 1}\n```\nDone.";
/// let found = overlock_json::extract(text).expect("there is an object");
/// assert_eq!(&text[found.start..found.end], r#"{"a": 1}"#);
/// assert_eq!(overlock_json::extract("nothing here"), None);
/// ```
pub fn extract<T: AsRef<[u8]> + ?Sized>(text: &T) -> Option<Extracted> {
    extract_counted(text.as_ref()).map(|(found, _)| found)
}

/// Finds the document, and counts the documents adjacent to it that are left out.
pub(crate) fn extract_counted(text: &[u8]) -> Option<(Extracted, usize)> {
    if let Some(scalar) = root_scalar(text) {
        return Some((scalar, 0));
    }
    let found = find(text)?;
    let range = Extracted {
        start: found.start,
        end: found.end,
    };
    Some((range, found.documents - 1))
}

/// A text that consists, without its wrapping, of one scalar or the start of one.
fn root_scalar(text: &[u8]) -> Option<Extracted> {
    let (start, limit) = skip_wrapping(text);
    let content = &text[start..limit];
    let trimmed = content.trim_ascii_end();
    let end = match *trimmed.first()? {
        b'"' => string_end(content)?,
        b'-' | b'0'..=b'9' => trimmed
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
            .then_some(trimmed.len())?,
        b't' | b'f' | b'n' => ["true", "false", "null"]
            .iter()
            .any(|literal| literal.as_bytes().starts_with(trimmed))
            .then_some(trimmed.len())?,
        _ => return None,
    };
    Some(Extracted {
        start,
        end: start + end,
    })
}

/// The end of the string that `content` consists of; none if more than white space follows it.
fn string_end(content: &[u8]) -> Option<usize> {
    let mut at = 1;
    while at < content.len() {
        match content[at] {
            b'\\' => at += 2,
            b'"' => {
                let end = at + 1;
                return content[end..].trim_ascii().is_empty().then_some(end);
            }
            _ => at += 1,
        }
    }
    Some(content.len())
}
