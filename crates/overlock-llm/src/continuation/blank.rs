//! White space at the end of a prefill.
//!
//! It is sent only where the answer is known to start after it: a grammar that continues from the
//! prefill must be where the document is. Elsewhere it is left out, because some servers reject or
//! remove it, and the prefill is shorter than the document. The answer may then begin with that
//! white space, because it comes next, or without it, because the model treats it as written. White
//! space that the answer shares with the part that was left out is therefore added only once:
//! nothing is lost or doubled, inside a string, where blanks matter, or between tokens.

/// Splits a text into the prefill and the white space that is left out.
pub(crate) fn split_blank(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end().len())
}

/// An answer without the left-out white space that it repeats.
pub(crate) fn after_blank<'a>(answer: &'a [u8], blank: &str) -> &'a [u8] {
    let mut rest = answer;
    for character in blank.chars() {
        let mut bytes = [0; 4];
        match rest.strip_prefix(character.encode_utf8(&mut bytes).as_bytes()) {
            Some(after) => rest = after,
            None => break,
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, answer: &str, expected: &str) {
        let (_, blank) = split_blank(base);
        let rest = after_blank(answer.as_bytes(), blank);
        assert_eq!(format!("{base}{}", String::from_utf8_lossy(rest)), expected);
    }

    #[test]
    fn white_space_at_the_cut_is_added_once() {
        check(r#"["two "#, r#" words"]"#, r#"["two words"]"#);
        check(r#"["two "#, r#"words"]"#, r#"["two words"]"#);
        check(r#"["two "#, r#"  words"]"#, r#"["two  words"]"#);
        check(r#"["two"#, r#" words"]"#, r#"["two words"]"#);
        check("[1,\n  ", "\n  2]", "[1,\n  2]");
        check("[1,\n  ", "2]", "[1,\n  2]");
        check("[1,\n", "  2]", "[1,\n  2]");
        check("[\"a\u{a0}", "\u{a0}b\"]", "[\"a\u{a0}b\"]");
        check("[\"a\u{2003}", "\u{2002}b\"]", "[\"a\u{2003}\u{2002}b\"]");
    }
}
