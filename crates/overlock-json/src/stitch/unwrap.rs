//! Takes away what models put around a fragment: fences, prose, thoughts.
//!
//! A fragment begins in the middle of a document, so that it cannot be found as a document is.
//! All readings are offered, the raw one first, and the joins decide.

use crate::tokens::{TokenKind, Tokens};

/// Prose before the fragment is looked for in this many bytes at most.
const LONGEST_PREAMBLE: usize = 2_000;

/// The fragment as it came and in every way it may be unwrapped.
pub(super) fn readings(fragment: &str) -> Vec<&str> {
    let mut readings = vec![fragment];
    let trimmed = without_thoughts(fragment.trim_start());
    push_new(&mut readings, trimmed);
    let inside = inside_fence(trimmed);
    if let Some(inside) = inside {
        push_new(&mut readings, inside);
        push_new(&mut readings, inside.trim_start());
    }
    for body in inside.into_iter().chain([trimmed]) {
        for end in ends_of_decoration(body) {
            push_new(&mut readings, body[end..].trim_start());
        }
    }
    readings
}

/// Where something may end that is no piece of a document: a line, a sentence, dots.
fn ends_of_decoration(text: &str) -> Vec<usize> {
    let head = &text[..text.floor_char_boundary(LONGEST_PREAMBLE)];
    let is_end = |at: usize| {
        let before = &head[..at];
        let is_sentence = before.ends_with([' ', '\t'])
            && before.trim_end().ends_with(['.', '!', ':', ')', '…', ']']);
        before.ends_with('\n')
            || before.ends_with("...")
            || before.ends_with(['…', ']'])
            || is_sentence
    };
    let ends = head
        .char_indices()
        .map(|(at, character)| at + character.len_utf8());
    let ends = ends.filter(|at| is_end(*at) && is_decoration(&head[..*at], &text[*at..]));
    ends.take(MOST_ENDS).collect()
}

/// So many ends of decoration are tried.
const MOST_ENDS: usize = 12;

fn push_new<'a>(readings: &mut Vec<&'a str>, reading: &'a str) {
    let known = |other: &&str| other.len() == reading.len() && other.as_ptr() == reading.as_ptr();
    if !reading.is_empty() && !readings.iter().any(known) {
        readings.push(reading);
    }
}

/// Where a text stands in the head of a fragment, if it does once.
pub(super) fn find_in_head(fragment: &str, said: &str) -> Option<usize> {
    let head = &fragment[..fragment.floor_char_boundary(LONGEST_PREAMBLE + said.len())];
    head.find(said)
}

/// Whether a text before a piece of a document is no piece of one: all that it opens it closes, it
/// has no members and no list, and it ends neither in a word nor between two values.
pub(super) fn is_decoration(text: &str, piece: &str) -> bool {
    if text.ends_with(char::is_alphanumeric) {
        return false;
    }
    let text = without_thoughts(text.trim()).trim();
    let follows_value = piece.trim_start().starts_with([',', ':', ']', '}']);
    let is_value = follows_value
        && text
            .lines()
            .next_back()
            .is_some_and(|line| !has_words(line));
    !is_value && is_balanced(text) && !is_list(text)
}

fn is_balanced(text: &str) -> bool {
    let (mut open, mut in_string, mut last) = (Vec::new(), false, b' ');
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b':' if open.is_empty() && matches!(last, b'"' | b'\'') => return false,
            b'\\' if in_string => drop(bytes.next()),
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => open.push(byte + 2),
            b'}' | b']' if open.pop() != Some(byte) => return false,
            _ => {}
        }
        last = byte;
    }
    open.is_empty() && !in_string
}

/// Whether a text is made of values with commas, or begins or ends between two.
fn is_list(text: &str) -> bool {
    let is_cut = text.starts_with([',', ':'])
        || text
            .strip_suffix(',')
            .is_some_and(|text| !ends_in_word(text));
    is_cut || text.contains(',') && !has_words(text)
}

/// Whether a text has words outside of strings.
fn has_words(text: &str) -> bool {
    Tokens::new(text, 0, false).any(|token| {
        let is_text = token.kind == TokenKind::Word && token.raw.contains(char::is_alphabetic);
        is_text && !is_literal(token.raw)
    })
}

fn is_literal(word: &str) -> bool {
    matches!(word, "true" | "false" | "null")
}

/// Whether a text ends in a word that is no value.
fn ends_in_word(text: &str) -> bool {
    let word = text.rsplit(|c: char| !c.is_alphanumeric()).next();
    word.is_some_and(|word| word.ends_with(char::is_alphabetic) && !is_literal(word))
}

/// The text with plain quotes where a word processor has put typographic ones.
pub(super) fn with_plain_quotes(text: &str) -> Option<String> {
    let quotes = ['“', '”', '„'];
    text.contains(quotes).then(|| text.replace(quotes, "\""))
}

/// Whether a text reads like the words before a document, and not like a piece of one.
fn is_preamble(text: &str) -> bool {
    let text = text.trim();
    !text.contains(['{', '}', '[', ']'])
        && !text.starts_with(['"', ',', ':', '-', '\''])
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && !text.contains("\":")
        && !text.contains("\",")
}

/// Whether what follows a whole document in a text is talk, and not more of some document: white
/// space or a fence sets it off.
pub(crate) fn is_talk_after(text: &str, end: usize) -> bool {
    let (document, rest) = text.split_at(end);
    let is_set_off = document.ends_with(char::is_whitespace)
        || rest.starts_with(|first: char| first.is_whitespace() || first == '`');
    let rest = rest.trim_start();
    rest.is_empty() || is_set_off && !rest.starts_with(['{', '}', '[', ']', ',', ':', '"'])
}

/// Whether a text begins the way models begin to talk about an answer.
pub(super) fn begins_with_talk(text: &str) -> bool {
    const OPENINGS: [&str; 33] = [
        "i'm ",
        "i’m ",
        "i am ",
        "i apolog",
        "i can't",
        "i can’t",
        "i cannot",
        "i will",
        "i'll",
        "i have",
        "sorry",
        "apologies",
        "my apologies",
        "here is",
        "here's",
        "here’s",
        "here are",
        "sure",
        "certainly",
        "of course",
        "unfortunately",
        "continuing",
        "as an ai",
        "okay",
        "hello",
        "hi ",
        "...",
        "…",
        "(…",
        "(...",
        "(continued",
        "[[",
        "progress",
    ];
    let start: String = text
        .trim_start()
        .chars()
        .take(20)
        .flat_map(char::to_lowercase)
        .collect();
    OPENINGS.iter().any(|opening| start.starts_with(opening))
}

fn without_thoughts(fragment: &str) -> &str {
    match fragment
        .strip_prefix("<think>")
        .and_then(|rest| rest.split_once("</think>"))
    {
        Some((_, answer)) => answer.trim_start(),
        None => fragment,
    }
}

/// What stands between the first fence and the one that closes it, or the end.
fn inside_fence(fragment: &str) -> Option<&str> {
    let fence = fragment
        .match_indices("```")
        .map(|(at, _)| at)
        .find(|at| *at == 0 || fragment[..*at].ends_with('\n'))?;
    let preamble = &fragment[..fence];
    if fence > LONGEST_PREAMBLE || !is_preamble(preamble) {
        return None;
    }
    let (_, inside) = fragment[fence..].split_once('\n')?;
    // The last fence closes the block: one inside a string may stand before it.
    let end = inside.rfind("\n```").unwrap_or(inside.len());
    Some(&inside[..end])
}
