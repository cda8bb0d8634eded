//! Lexers for compaction.
//!
//! They distinguish code, comments and white space. Operators are single characters and keywords are
//! words, because nothing between adjacent tokens changes. An unclosed string or comment becomes one
//! token up to the end of the text, so nothing is removed on a guess.

pub(crate) mod csharp;
pub(crate) mod dialect;
pub(crate) mod executed;
pub(crate) mod sql;
pub(crate) mod visual_basic;

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2};

/// White space between two tokens, from none to a line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gap {
    None,
    Space,
    Line,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name, a keyword or a number.
    Word,
    /// A string or character literal, or a quoted name.
    Quoted,
    /// One character of punctuation.
    Mark,
    /// A line that must stay on its own: a directive, a command of a database client.
    Line,
    /// Bytes that stay unchanged.
    Opaque,
    /// A comment with a meaning, such as an optimizer hint.
    Hint,
    /// A documentation comment.
    Doc,
    /// A comment.
    Comment,
    /// A directive that only folds code in an editor.
    Region,
}

impl Kind {
    /// Whether it matters to a compiler.
    pub(crate) fn is_code(self) -> bool {
        !matches!(self, Self::Doc | Self::Comment | Self::Region)
    }
}

/// A range of the text, and the white space before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) gap: Gap,
}

impl Token {
    pub(crate) fn text(self, text: &str) -> &str {
        &text[self.start..self.end]
    }

    pub(crate) fn is_mark(self, text: &str, mark: u8) -> bool {
        self.kind == Kind::Mark && text.as_bytes()[self.start] == mark
    }

    /// Whether it is an unclosed comment or string.
    pub(crate) fn is_open(self, text: &str) -> bool {
        self.kind == Kind::Opaque && trimmed_end(text.as_bytes(), self.end, text.len()) == self.end
    }

    pub(crate) fn is_word(self, text: &str, word: &str) -> bool {
        self.kind == Kind::Word && self.text(text).eq_ignore_ascii_case(word)
    }
}

/// The text has two possible readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ambiguous;

pub(crate) type Lexed = Result<Option<Token>, Ambiguous>;

/// Returns the tokens of a text one by one.
pub(crate) trait Lexer<'a> {
    fn text(&self) -> &'a str;
    fn next(&mut self) -> Lexed;
}

/// Whether a byte can be part of a name; all non-ASCII bytes are.
pub(crate) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Skips white space and byte order marks; returns where the next token begins, and the gap.
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> (usize, Gap) {
    let mut gap = Gap::None;
    while let Some(&byte) = bytes.get(at) {
        if byte == BYTE_ORDER_MARK[0] && bytes[at..].starts_with(BYTE_ORDER_MARK) {
            gap = gap.max(Gap::Space);
            at += BYTE_ORDER_MARK.len();
            continue;
        }
        if !is_space(byte) {
            break;
        }
        let here = if matches!(byte, b'\n' | b'\r') {
            Gap::Line
        } else {
            Gap::Space
        };
        gap = gap.max(here);
        at += 1;
    }
    (at, gap)
}

/// Where the word at `at` ends.
pub(crate) fn word_end(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|&byte| is_word(byte)) {
        at += 1;
    }
    at
}

/// Where the line ends in C# and Visual Basic, which have five line separators.
pub(crate) fn line_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let rest = &rest[..memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
    let mut from = 0;
    while let Some(found) = memchr2(0xc2, 0xe2, &rest[from..]) {
        let here = &rest[from + found..];
        let separators: [&[u8]; 3] = ["\u{85}", "\u{2028}", "\u{2029}"].map(str::as_bytes);
        if separators
            .iter()
            .any(|separator| here.starts_with(separator))
        {
            return at + from + found;
        }
        from += found + 1;
    }
    at + rest.len()
}

/// Replaces lone carriage returns, the line ends of old Macs, by line feeds. Offsets stay valid.
///
/// ```
/// assert_eq!(overlock_code::with_line_feeds("a\rb\r\nc"), "a\nb\r\nc");
/// ```
pub fn with_line_feeds(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut alone = memchr_iter(b'\r', bytes)
        .filter(|&at| bytes.get(at + 1) != Some(&b'\n'))
        .peekable();
    if alone.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut fed = String::with_capacity(text.len());
    let mut from = 0;
    for at in alone {
        fed.push_str(&text[from..at]);
        fed.push('\n');
        from = at + 1;
    }
    fed.push_str(&text[from..]);
    Cow::Owned(fed)
}

/// Where the next line feed is.
pub(crate) fn feed_end(bytes: &[u8], at: usize) -> usize {
    memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found)
}

/// Where the range ends without trailing white space.
pub(crate) fn trimmed_end(bytes: &[u8], start: usize, mut end: usize) -> usize {
    while end > start && is_space(bytes[end - 1]) {
        end -= 1;
    }
    end
}

/// Whether a line after the first begins with a directive that opens or closes a branch.
pub(crate) fn has_branch(piece: &str) -> bool {
    piece.lines().skip(1).any(|line| {
        let line = line.trim_start();
        line.strip_prefix('#').is_some_and(|directive| {
            let directive = directive.trim_start();
            let word = &directive[..word_end(directive.as_bytes(), 0)];
            ["if", "elif", "else", "elseif", "endif", "end"]
                .iter()
                .any(|branch| word.eq_ignore_ascii_case(branch))
        })
    })
}
