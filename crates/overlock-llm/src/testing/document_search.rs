//! Finds where a text ends in a document, ignoring white space and escapes.

use std::sync::OnceLock;

/// A document that can be searched exactly, or ignoring white space and escapes.
pub(super) struct DocumentSearch {
    document: String,
    /// The compared characters, with the offset after each. Computed on first use.
    characters: OnceLock<Vec<(char, usize)>>,
}

impl DocumentSearch {
    pub(super) fn new(document: &str) -> Self {
        Self {
            document: document.to_owned(),
            characters: OnceLock::new(),
        }
    }

    /// The offset after the last occurrence of `text` up to `near`, else after the first one beyond
    /// it, else after the inexact occurrence that ends nearest to it.
    pub(super) fn end_of(&self, text: &str, near: usize) -> Option<usize> {
        let before = self.document.floor_char_boundary(near);
        let start = self.document[..before].rfind(text);
        // A new model may be asked to continue where another process had stopped.
        let start = start.or_else(|| self.document.find(text));
        if let Some(start) = start.filter(|_| !text.is_empty()) {
            return Some(start + text.len());
        }
        let wanted: Vec<char> = plain(text)
            .into_iter()
            .map(|(character, _)| character)
            .collect();
        let last = *wanted.last()?;
        let characters = self.characters.get_or_init(|| plain(&self.document));
        let ends = characters
            .iter()
            .enumerate()
            .filter(|(index, (character, _))| {
                *character == last && index + 1 >= wanted.len() && {
                    let candidate = &characters[index + 1 - wanted.len()..=*index];
                    candidate
                        .iter()
                        .rev()
                        .map(|(character, _)| character)
                        .eq(wanted.iter().rev())
                }
            });
        ends.map(|(_, (_, end))| *end)
            .min_by_key(|end| end.abs_diff(near))
    }
}

/// The characters of a text without white space, with decoded `\u` escapes, and where each ends.
fn plain(text: &str) -> Vec<(char, usize)> {
    let mut characters = Vec::with_capacity(text.len());
    let mut rest = text.char_indices();
    while let Some((at, character)) = rest.next() {
        if character.is_whitespace() {
            continue;
        }
        if let Some((decoded, len)) = escape(&text[at..]) {
            for _ in 1..len {
                rest.next();
            }
            characters.push((decoded, at + len));
        } else {
            characters.push((character, at + character.len_utf8()));
        }
    }
    characters
}

/// The character that a `\u` escapeor surrogate pair encodes, and its length.
fn escape(text: &str) -> Option<(char, usize)> {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let first = unit(text)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Some((character, 6));
    }
    let second = unit(text.get(6..)?)?;
    let decoded = char::decode_utf16([first, second]).next()?.ok()?;
    Some((decoded, 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_text_with_other_spaces_and_escapes() {
        let search = DocumentSearch::new(r#"{"a": "é😀", "b": [1, 2]}"#);
        assert_eq!(search.end_of(r#""\u00e9\ud83d\ude00","b":["#, 0), Some(22));
        assert_eq!(search.end_of("1,\n2", 0), Some(26));
        assert_eq!(search.end_of("absent", 0), None);
        assert_eq!(search.end_of("", 0), None);
    }

    #[test]
    fn takes_the_nearest_of_several() {
        let search = DocumentSearch::new("[1, 1, 1, 1]");
        assert_eq!(search.end_of("1", 5), Some(5));
        assert_eq!(search.end_of(", ", 7), Some(7));
        assert_eq!(search.end_of("1", 100), Some(11));
    }
}
