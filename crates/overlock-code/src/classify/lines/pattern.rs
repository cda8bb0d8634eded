//! Tables of weighted patterns for the tokens of a line.

/// Whether a token is the word, or belongs to the class, of this name.
pub(super) type IsWord = fn(expected: &str, token: &str) -> bool;

/// A row of a table: what a line that matches counts, and why.
pub(super) struct Pattern {
    /// One element for each token, with blanks between them: `a|b` is one of these words or
    /// classes, `!a|b` none of them, `_` any token, and `..` any number of tokens.
    tokens: &'static str,
    /// The letters that the first token can begin with, to skip most rows at once.
    first_letters: u64,
    weight: usize,
    reason: &'static str,
    case: Case,
    contains: &'static str,
    lacks: &'static str,
    last: &'static str,
    max_tokens: usize,
}

/// How the first word is written.
#[derive(Clone, Copy)]
enum Case {
    Any,
    Upper,
    NotUpper,
    Lower,
}

/// A line that begins like this counts `weight`.
pub(super) const fn pattern(tokens: &'static str, weight: usize, reason: &'static str) -> Pattern {
    Pattern {
        tokens,
        first_letters: first_letters(tokens),
        weight,
        reason,
        case: Case::Any,
        contains: "",
        lacks: "",
        last: "",
        max_tokens: usize::MAX,
    }
}

/// A line that begins like this counts nothing, and the following rows are skipped.
pub(super) const fn no_match(tokens: &'static str) -> Pattern {
    pattern(tokens, 0, "")
}

impl Pattern {
    /// The first word is in upper case.
    pub(super) const fn upper(self) -> Self {
        let case = Case::Upper;
        Self { case, ..self }
    }

    /// The first word is not in upper case.
    pub(super) const fn not_upper(self) -> Self {
        let case = Case::NotUpper;
        Self { case, ..self }
    }

    /// The first word is in lower case.
    pub(super) const fn lower(self) -> Self {
        let case = Case::Lower;
        Self { case, ..self }
    }

    /// The line contains one of these tokens.
    pub(super) const fn contains(self, contains: &'static str) -> Self {
        Self { contains, ..self }
    }

    /// The line contains none of these tokens.
    pub(super) const fn lacks(self, lacks: &'static str) -> Self {
        Self { lacks, ..self }
    }

    /// The last token matches this element.
    pub(super) const fn last(self, last: &'static str) -> Self {
        Self { last, ..self }
    }

    /// The line has at most this many tokens.
    pub(super) const fn max_tokens(self, max_tokens: usize) -> Self {
        Self { max_tokens, ..self }
    }

    fn matches(&self, tokens: &[&str], is_word: IsWord) -> bool {
        let mut left = tokens;
        let mut elements = self.tokens.split(' ');
        while let Some(element) = elements.next() {
            if element == ".." {
                let Some(skipped) = left.len().checked_sub(elements.clone().count()) else {
                    return false;
                };
                left = &left[skipped..];
                continue;
            }
            match left.split_first() {
                Some((token, rest)) if is_element(element, token, is_word) => left = rest,
                _ => return false,
            }
        }
        let has = |words: &str| tokens.iter().any(|token| is_any(words, token, is_word));
        left.is_empty()
            && tokens.len() <= self.max_tokens
            && self.case.is_of(tokens[0])
            && (self.contains.is_empty() || has(self.contains))
            && (self.lacks.is_empty() || !has(self.lacks))
            && (self.last.is_empty()
                || tokens
                    .last()
                    .is_some_and(|last| is_element(self.last, last, is_word)))
    }
}

impl Case {
    fn is_of(self, word: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Upper => is_upper(word),
            Self::NotUpper => !is_upper(word),
            Self::Lower => word.bytes().all(|byte| byte.is_ascii_lowercase()),
        }
    }
}

/// The weight and the reason of the first pattern that the tokens match.
pub(super) fn first_match(
    table: &[Pattern],
    tokens: &[&str],
    is_word: IsWord,
) -> Option<(usize, &'static str)> {
    let letter = letter_bit(*tokens.first()?.as_bytes().first()?);
    let mut rows = table.iter().filter(|row| row.first_letters & letter != 0);
    let row = rows.find(|row| row.matches(tokens, is_word))?;
    (row.weight > 0).then_some((row.weight, row.reason))
}

/// The bits of the letters that the first element begins with; all bits for a class.
const fn first_letters(tokens: &str) -> u64 {
    let bytes = tokens.as_bytes();
    let (mut letters, mut at) = (0, 0);
    loop {
        if matches!(bytes[at], b'_' | b'!')
            || matches!(bytes.split_at(at).1, [b'N', b'A', b'M', b'E', ..])
        {
            return u64::MAX;
        }
        letters |= letter_bit(bytes[at]);
        while at < bytes.len() && !matches!(bytes[at], b'|' | b' ') {
            at += 1;
        }
        if at == bytes.len() || bytes[at] == b' ' {
            return letters;
        }
        at += 1;
    }
}

/// One of 64 bits; upper and lower case have the same.
const fn letter_bit(byte: u8) -> u64 {
    1 << ((byte | 0x20) & 63)
}

/// Whether a word is in upper case, as keywords of SQL often are.
pub(super) fn is_upper(word: &str) -> bool {
    word.len() > 1
        && word
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

fn is_element(element: &str, token: &str, is_word: IsWord) -> bool {
    match element.strip_prefix('!') {
        Some(words) => !is_any(words, token, is_word),
        None => element == "_" || is_any(element, token, is_word),
    }
}

fn is_any(words: &str, token: &str, is_word: IsWord) -> bool {
    words.split('|').any(|word| is_word(word, token))
}
