//! Escapes the character 0, which `PostgreSQL` does not accept in texts.
//!
//! All other characters are stored unchanged, so that any tool can read and search the texts. The
//! escape character is a noncharacter of Unicode.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

const ESCAPE: char = '\u{10FFFF}';

/// Escapes a text to store it.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, '1']),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// The digest of a text, to look it up by: an index entry is at most a third of a page.
pub(super) fn digest(text: &str) -> Vec<u8> {
    Sha256::digest(&*escaped(text)).to_vec()
}

/// The text that was stored.
pub(super) fn unescaped(stored: String) -> String {
    if !stored.contains(ESCAPE) {
        return stored;
    }
    let mut text = String::with_capacity(stored.len());
    let mut rest = stored.chars();
    while let Some(character) = rest.next() {
        text.push(match character {
            ESCAPE => match rest.next() {
                Some('0') => '\0',
                // `escaped` writes nothing else.
                _ => ESCAPE,
            },
            other => other,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_is_restored_and_stored_without_a_zero(text in "([\0\u{10FFFF}01a]|.){0,20}") {
            let stored = escaped(&text).into_owned();
            prop_assert!(!stored.contains('\0'));
            prop_assert_eq!(unescaped(stored), text);
        }
    }
}
