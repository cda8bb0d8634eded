//! Splits lines of Visual Basic into statements, and statements into their parts.

use std::ops::Range;

const MODIFIERS: &str = "public private protected friend partial shared overridable overrides notoverridable \
    notinheritable mustinherit mustoverride shadows overloads async iterator default \
    readonly writeonly widening narrowing static withevents custom dim const";

/// The statements of a line, separated by colons, without the comment after them.
pub(super) fn statements(line: &str) -> Vec<Range<usize>> {
    let bytes = line.as_bytes();
    let mut pieces = Vec::new();
    let (mut from, mut end) = (0, bytes.len());
    let (mut is_quoted, mut has_begun, mut is_attribute) = (false, false, false);
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'\'' => {
                end = at;
                break;
            }
            b'<' if !has_begun => is_attribute = true,
            b'>' if is_attribute => {
                is_attribute = false;
                has_begun = false;
                continue;
            }
            // In an attribute, a colon follows its target, and `:=` passes an argument.
            b':' if !is_attribute && bytes.get(at + 1) != Some(&b'=') => {
                pieces.push(from..at);
                from = at + 1;
                has_begun = false;
                continue;
            }
            _ => {}
        }
        has_begun |= !byte.is_ascii_whitespace();
    }
    pieces.push(from..end.max(from));
    pieces
}

/// The statement after the attributes in angle brackets.
pub(super) fn without_attributes(statement: &str) -> &str {
    let mut rest = statement;
    while rest.starts_with('<') {
        let mut is_quoted = false;
        let close = rest.bytes().position(|byte| {
            is_quoted ^= byte == b'"';
            byte == b'>' && !is_quoted
        });
        match close {
            Some(close) => rest = rest[close + 1..].trim_start(),
            None => return "",
        }
    }
    rest.strip_suffix('_')
        .filter(|rest| rest.is_empty())
        .unwrap_or(rest)
}

pub(super) fn first_word(statement: &str) -> &str {
    statement
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default()
}

/// The declared name or operator.
pub(super) fn name_of(after: &str) -> Option<&str> {
    let is_name =
        after.starts_with(|first: char| first.is_alphabetic() || "_[+-*/=<>&".contains(first));
    let name = after
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ',' | '?'))
        .next()
        .unwrap_or_default()
        .trim_matches(['[', ']']);
    (is_name && !name.is_empty()).then_some(name)
}

pub(super) fn without_modifiers(statement: &str) -> &str {
    let mut rest = statement;
    loop {
        let word = first_word(rest);
        if !MODIFIERS
            .split(' ')
            .any(|modifier| word.eq_ignore_ascii_case(modifier))
        {
            return rest;
        }
        rest = rest[word.len()..].trim_start();
    }
}

pub(super) fn has_word(statement: &str, words: &[&str]) -> bool {
    statement
        .split_whitespace()
        .any(|word| words.iter().any(|one| word.eq_ignore_ascii_case(one)))
}
