//! Any text, in a database that knows no character 0.
//!
//! A text keeps everything else as it is, so that it can be read and searched with any tool. The
//! character that stands before what is written otherwise is one that no text has a use for.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

const ESCAPE: char = '\u{10FFFF}';

/// A text as it is kept.
pub(super) fn kept(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => kept.extend([ESCAPE, '0']),
            ESCAPE => kept.extend([ESCAPE, '1']),
            other => kept.push(other),
        }
    }
    Cow::Owned(kept)
}

/// What a text is found by, however long it is: an index takes no more than a third of a page.
pub(super) fn digest(text: &str) -> Vec<u8> {
    Sha256::digest(&*kept(text)).to_vec()
}

/// A text as it was given.
pub(super) fn given(kept: String) -> String {
    if !kept.contains(ESCAPE) {
        return kept;
    }
    let mut given = String::with_capacity(kept.len());
    let mut rest = kept.chars();
    while let Some(character) = rest.next() {
        given.push(match character {
            ESCAPE => match rest.next() {
                Some('0') => '\0',
                // Nothing else was ever written.
                _ => ESCAPE,
            },
            other => other,
        });
    }
    given
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_comes_back_and_is_kept_without_a_zero(text in "([\0\u{10FFFF}01a]|.){0,20}") {
            let kept = kept(&text).into_owned();
            prop_assert!(!kept.contains('\0'));
            prop_assert_eq!(given(kept), text);
        }
    }
}
