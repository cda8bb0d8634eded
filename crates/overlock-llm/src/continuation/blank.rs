//! White space at the end of what is put in a model's mouth.
//!
//! It is left out there, so that what the model goes on from is shorter than the document by that
//! much. Its answer then may begin with the same white space, because that is what comes next, or
//! without it, because the model knows that it has written it. Either way it is there once: what
//! the answer begins with is compared with what was left out, and what they have in common is
//! taken for the same. So nothing that was accepted is lost and nothing is doubled, in a string,
//! where a blank matters, as between tokens, where it does not.

/// What can be put in a model's mouth, and what is left out.
pub(crate) fn split_blank(text: &str) -> (&str, &str) {
    text.split_at(text.trim_end().len())
}

/// An answer without the part of the white space that was left out and that it begins with.
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
    fn a_blank_is_there_once_whether_it_comes_again_or_not() {
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
