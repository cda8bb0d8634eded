//! Where in a document does a text end that somebody may have written a little differently?

use std::sync::OnceLock;

/// A document that can be searched with and without regard to white space and to how characters
/// are escaped.
pub(super) struct Places {
    document: String,
    /// The characters that count, and the offset after each; many, and seldom needed.
    characters: OnceLock<Vec<(char, usize)>>,
}

impl Places {
    pub(super) fn of(document: &str) -> Self {
        Self {
            document: document.to_owned(),
            characters: OnceLock::new(),
        }
    }

    /// The offset in the document after the last occurrence of `text` up to `near`, else after the
    /// first beyond it, or after the one that ends nearest to it if it is written differently.
    pub(super) fn end_of(&self, text: &str, near: usize) -> Option<usize> {
        let before = self.document.floor_char_boundary(near);
        let start = self.document[..before].rfind(text);
        // One who has just begun may be asked to go on where another had stopped.
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
                    let found = &characters[index + 1 - wanted.len()..=*index];
                    found
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

/// The characters of a text but for white space, with `\u` escapes read, and where each ends.
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

/// The character that a `\u` escape, or a pair of them, stands for, and its length.
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
    fn finds_a_text_in_other_clothes() {
        let places = Places::of(r#"{"a": "é😀", "b": [1, 2]}"#);
        assert_eq!(places.end_of(r#""\u00e9\ud83d\ude00","b":["#, 0), Some(22));
        assert_eq!(places.end_of("1,\n2", 0), Some(26));
        assert_eq!(places.end_of("absent", 0), None);
        assert_eq!(places.end_of("", 0), None);
    }

    #[test]
    fn takes_the_nearest_of_several() {
        let places = Places::of("[1, 1, 1, 1]");
        assert_eq!(places.end_of("1", 5), Some(5));
        assert_eq!(places.end_of(", ", 7), Some(7));
        assert_eq!(places.end_of("1", 100), Some(11));
    }
}
