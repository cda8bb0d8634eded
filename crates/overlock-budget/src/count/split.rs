//! Splits a text as tokenizers do before they search for tokens.
//!
//! Tokenizers define their patterns as regular expressions. These are the same patterns in code; a
//! test compares each of them with its expression. No pattern looks back, so from a common border on,
//! a text and its ending are split alike.

use super::classes::{LETTER, LOWER, NEWLINE, NUMBER, OTHER, SPACE, UPPER, class_at, run};

/// A way to split texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`, of GPT-2.
    Plain,
    /// `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
    /// ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n]+|\s+(?!\S)|\s+`, of GPT-4 with three digits.
    Words {
        /// How many digits stay together.
        digits: usize,
        /// Whether white space at the end of a text stays together (`\s+$`).
        whole_ending: bool,
    },
    /// Words with upper case at their beginning only, and contractions at their end, of GPT-4o.
    Cased,
}

impl Pattern {
    /// Where the piece ends that begins at a place before the end of the text.
    #[inline]
    pub(crate) fn end(self, text: &str, start: usize) -> usize {
        let text = text.as_bytes();
        match self {
            Self::Plain => plain(text, start),
            Self::Words {
                digits,
                whole_ending,
            } => words(text, start, digits, whole_ending),
            Self::Cased => cased(text, start),
        }
    }

    /// Whether every text that goes beyond a place on both sides is split there, and both sides
    /// are split as if they were alone.
    pub(crate) fn is_border(self, text: &str, at: usize) -> bool {
        let Some(before) = text[..text.floor_char_boundary(at)].chars().next_back() else {
            return false;
        };
        if !text.is_char_boundary(at) {
            return false;
        }
        let text = text.as_bytes();
        let (before, _) = class_at(text, at - before.len_utf8());
        let (after, _) = class_at(text, at);
        let word = LETTER | NUMBER;
        match (before & (word | OTHER), after & (word | OTHER | SPACE)) {
            (0, _) | (_, 0) => false,
            (OTHER, SPACE) => after & NEWLINE == 0,
            (_, SPACE) | (NUMBER, LETTER | OTHER) | (LETTER | OTHER, NUMBER) => true,
            (LETTER, OTHER) => self != Self::Cased || (after & LOWER == 0 && text[at] != b'\''),
            _ => false,
        }
    }
}

fn plain(text: &[u8], start: usize) -> usize {
    let first = text[start];
    if first == b'\''
        && let Some(end) = contraction(text, start, Case::Lower)
    {
        return end;
    }
    let body = start + usize::from(first == b' ');
    let (class, _) = class_at(text, body);
    match class & (LETTER | NUMBER | OTHER) {
        0 => white_space(text, start, Newlines::Plain, true),
        class => run(text, body, class),
    }
}

fn words(text: &[u8], start: usize, digits: usize, whole_ending: bool) -> usize {
    let first = text[start];
    if first == b'\''
        && let Some(end) = contraction(text, start, Case::Any)
    {
        return end;
    }
    let (class, len) = class_at(text, start);
    if class & LETTER != 0 {
        return run(text, start + len, LETTER);
    }
    if class & NUMBER != 0 {
        return number(text, start + len, digits);
    }
    if class & NEWLINE == 0 {
        let next = class_at(text, start + len).0;
        if next & LETTER != 0 {
            return run(text, start + len, LETTER);
        }
        if class & OTHER != 0 || (first == b' ' && next & OTHER != 0) {
            return run(text, run(text, start + len, OTHER), NEWLINE);
        }
    }
    white_space(text, start, Newlines::Last, whole_ending)
}

fn cased(text: &[u8], start: usize) -> usize {
    let (class, len) = class_at(text, start);
    if class & NUMBER != 0 {
        return number(text, start + len, 3);
    }
    let word = if class & LETTER != 0 {
        // A letter is upper or lower, so one of the two always matches.
        ends_lower(text, start).or_else(|| ends_upper(text, start))
    } else if class & NEWLINE == 0 {
        // A mark may stand before a word, or be part of it.
        ends_lower(text, start + len)
            .or_else(|| (class & LOWER != 0).then(|| ends_lower(text, start))?)
            .or_else(|| ends_upper(text, start + len))
    } else {
        None
    };
    if let Some(end) = word {
        return contraction(text, end, Case::Any).unwrap_or(end);
    }
    let body = start + usize::from(text[start] == b' ');
    if class_at(text, body).0 & OTHER != 0 {
        let end = run(text, body, OTHER);
        let closing = text[end..].iter();
        return end
            + closing
                .take_while(|byte| matches!(byte, b'\r' | b'\n' | b'/'))
                .count();
    }
    white_space(text, start, Newlines::Last, false)
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
#[inline]
fn ends_lower(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    let mut last_of_both = None;
    loop {
        let (class, len) = class_at(text, at);
        if class & UPPER == 0 {
            break if class & LOWER != 0 {
                Some(run(text, at + len, LOWER))
            } else {
                // The upper part gives back as much as the lower part needs.
                last_of_both
            };
        }
        at += len;
        if class & LOWER != 0 {
            last_of_both = Some(at);
        }
    }
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`, where [`ends_lower`] found nothing.
fn ends_upper(text: &[u8], start: usize) -> Option<usize> {
    let end = run(text, start, UPPER);
    (end > start).then_some(end)
}

/// Up to so many digits, the first of which ends at a place.
#[inline]
fn number(text: &[u8], mut at: usize, digits: usize) -> usize {
    for _ in 1..digits {
        let (class, len) = class_at(text, at);
        if class & NUMBER == 0 {
            break;
        }
        at += len;
    }
    at
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Any,
}

/// Where one of `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll`, `'d` ends, if it begins at a place.
#[inline]
fn contraction(text: &[u8], start: usize, case: Case) -> Option<usize> {
    if text.get(start) != Some(&b'\'') {
        return None;
    }
    let letter = |at: usize| {
        let byte = text.get(start + at).copied().unwrap_or(0);
        if case == Case::Any {
            byte.to_ascii_lowercase()
        } else {
            byte
        }
    };
    match (letter(1), letter(2)) {
        (b's' | b't' | b'm' | b'd', _) => Some(start + 2),
        (b'r' | b'v', b'e') | (b'l', b'l') => Some(start + 3),
        // Without case, `ſ` equals `s`.
        (0xC5, 0xBF) if case == Case::Any => Some(start + 3),
        _ => None,
    }
}

/// What line breaks mean in white space.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Newlines {
    /// Nothing.
    Plain,
    /// A piece ends after the last of them (`\s*[\r\n]+`).
    Last,
}

/// `\s+$`, `\s*[\r\n]+`, `\s+(?!\S)` and `\s+`, in this order.
fn white_space(text: &[u8], start: usize, newlines: Newlines, whole_ending: bool) -> usize {
    let end = run(text, start, SPACE);
    if whole_ending && end == text.len() {
        return end;
    }
    if newlines == Newlines::Last {
        let last = text[start..end]
            .iter()
            .rposition(|byte| matches!(byte, b'\r' | b'\n'));
        if let Some(last) = last {
            return start + last + 1;
        }
    }
    if end == text.len() {
        return end;
    }
    // The last of several blanks belongs to the next piece.
    let continued = text[start..end]
        .iter()
        .rev()
        .take_while(|byte| **byte & 0xC0 == 0x80)
        .count();
    let last = end - continued - 1;
    if last > start { last } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::nasty::nasty_text;
    use fancy_regex::Regex;
    use proptest::prelude::*;

    const GPT_4: Pattern = Pattern::Words {
        digits: 3,
        whole_ending: true,
    };
    const LLAMA_3: Pattern = Pattern::Words {
        digits: 3,
        whole_ending: false,
    };
    const QWEN: Pattern = Pattern::Words {
        digits: 1,
        whole_ending: false,
    };

    const EXPRESSIONS: [(Pattern, &str); 5] = [
        (
            Pattern::Plain,
            r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
        ),
        (
            GPT_4,
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        ),
        (
            LLAMA_3,
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        (
            QWEN,
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        (
            Pattern::Cased,
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
    ];

    fn pieces(pattern: Pattern, text: &str) -> Vec<&str> {
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let end = pattern.end(text, start);
            pieces.push(&text[start..end]);
            start = end;
        }
        pieces
    }

    #[test]
    fn a_text_is_split_as_its_expression_splits_it() {
        let expressions = EXPRESSIONS
            .map(|(pattern, text)| (pattern, Regex::new(text).expect("the expression is valid")));
        proptest!(ProptestConfig::with_cases(4000), |(text in nasty_text(40))| {
            for (pattern, expression) in &expressions {
                let expected: Vec<&str> = expression
                    .find_iter(&text)
                    .map(|found| found.expect("the text is short").as_str())
                    .collect();
                prop_assert_eq!(pieces(*pattern, &text), expected, "{:?}", pattern);
            }
        });
    }

    #[test]
    fn both_sides_of_a_border_are_split_as_if_they_were_alone() {
        proptest!(ProptestConfig::with_cases(2000), |(text in nasty_text(30))| {
            for (pattern, _) in EXPRESSIONS {
                for at in (1..text.len()).filter(|at| pattern.is_border(&text, *at)) {
                    let (before, after) = text.split_at(at);
                    let alone = [pieces(pattern, before), pieces(pattern, after)].concat();
                    prop_assert_eq!(pieces(pattern, &text), alone, "{:?} at {}", pattern, at);
                }
            }
        });
    }
}
