//! A lexer for C#.
//!
//! Strings are the hard part: verbatim, raw, interpolated, and interpolated with code that contains
//! strings again, to any depth. The nesting is kept on the heap, so no text can overflow the stack.
//! Both branches of an `#if` are read as code, because it is unknown which one is compiled. A comment
//! or string across a branch border makes the text ambiguous.

use memchr::memmem;

use super::{
    Ambiguous, Gap, Kind, Lexed, Lexer, Token, has_branch, is_word, line_end, skip_space,
    trimmed_end, word_end,
};

/// The lexer of one C# text.
pub(crate) struct CSharp<'a> {
    text: &'a str,
    at: usize,
    /// No code yet on this line, so `#` opens a directive.
    at_line_start: bool,
    /// How many `#if` are open.
    branches: usize,
}

impl<'a> CSharp<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            at_line_start: true,
            branches: 0,
        }
    }

    fn directive(&mut self) -> (Kind, usize) {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let line = line_end(bytes, start);
        let (name, _) = skip_space(&bytes[..line], start + 1);
        match &self.text[name..word_end(bytes, name)] {
            "region" | "endregion" => return (Kind::Region, line),
            "if" => self.branches += 1,
            "endif" => self.branches = self.branches.saturating_sub(1),
            _ => {}
        }
        (Kind::Line, trimmed_end(bytes, start, line))
    }
}

impl<'a> Lexer<'a> for CSharp<'a> {
    fn text(&self) -> &'a str {
        self.text
    }

    fn next(&mut self) -> Lexed {
        let bytes = self.text.as_bytes();
        let (start, gap) = skip_space(bytes, self.at);
        self.at = start;
        self.at_line_start |= gap == Gap::Line;
        let Some(&first) = bytes.get(start) else {
            return Ok(None);
        };
        let (kind, end) = match first {
            b'/' => match bytes.get(start + 1) {
                Some(b'/') => line_comment(bytes, start),
                Some(b'*') => block_comment(bytes, start),
                _ => (Kind::Mark, start + 1),
            },
            b'"' | b'$' | b'@' => match string_at(bytes, start) {
                Some(opening) => string(bytes, opening),
                None if first == b'@' => (Kind::Word, word_end(bytes, start + 1)),
                None => (Kind::Mark, start + 1),
            },
            b'\'' => match character_end(bytes, start) {
                Some(end) => (Kind::Quoted, end),
                // Prose in a branch that is not compiled: the line stays unchanged.
                None => (
                    Kind::Opaque,
                    trimmed_end(bytes, start, line_end(bytes, start)),
                ),
            },
            b'#' if self.at_line_start => self.directive(),
            first if is_word(first) => (Kind::Word, word_end(bytes, start)),
            _ => (Kind::Mark, start + 1),
        };
        self.at = end;
        let spans_lines = matches!(
            kind,
            Kind::Comment | Kind::Doc | Kind::Quoted | Kind::Opaque
        );
        if self.branches > 0 && spans_lines && has_branch(&self.text[start..end]) {
            return Err(Ambiguous);
        }
        // Without the comment before it, `#` is the first on its line.
        self.at_line_start &= matches!(kind, Kind::Comment | Kind::Doc);
        Ok(Some(Token {
            kind,
            start,
            end,
            gap,
        }))
    }
}

fn line_comment(bytes: &[u8], start: usize) -> (Kind, usize) {
    let is_doc = bytes.get(start + 2) == Some(&b'/') && bytes.get(start + 3) != Some(&b'/');
    let end = line_end(bytes, start);
    let kind = if is_doc { Kind::Doc } else { Kind::Comment };
    (kind, trimmed_end(bytes, start, end))
}

fn block_comment(bytes: &[u8], start: usize) -> (Kind, usize) {
    let Some(found) = memmem::find(&bytes[start + 2..], b"*/") else {
        return (Kind::Opaque, trimmed_end(bytes, start, bytes.len()));
    };
    let end = start + 2 + found + 2;
    let opens_doc = bytes.get(start + 2) == Some(&b'*') && end - start > 4;
    let is_doc = opens_doc && bytes.get(start + 3) != Some(&b'*');
    (if is_doc { Kind::Doc } else { Kind::Comment }, end)
}

/// Where a character literal ends. It has one character or one escape, unlike an apostrophe in prose.
fn character_end(bytes: &[u8], start: usize) -> Option<usize> {
    let first = *bytes
        .get(start + 1)
        .filter(|byte| !matches!(byte, b'\n' | b'\r' | b'\''))?;
    let mut at = start + 2;
    if first == b'\\' {
        let escaped = *bytes
            .get(at)
            .filter(|byte| !matches!(byte, b'\n' | b'\r'))?;
        at += 1;
        if matches!(escaped, b'x' | b'u' | b'U') {
            at += bytes[at..]
                .iter()
                .take(8)
                .take_while(|byte| byte.is_ascii_hexdigit())
                .count();
        }
    }
    // The remaining bytes of a multi-byte character, which may also follow a backslash.
    at += bytes[at.min(bytes.len())..]
        .iter()
        .take(3)
        .take_while(|&&byte| byte & 0xc0 == 0x80)
        .count();
    (bytes.get(at) == Some(&b'\'')).then_some(at + 1)
}

/// How a string literal was opened.
#[derive(Clone, Copy, Debug)]
struct Opening {
    /// The first byte after the opening quotes.
    at: usize,
    /// How many quotes open a raw string; one for all others.
    quotes: usize,
    /// The number of `$`, which is the number of braces that open a hole.
    dollars: usize,
    verbatim: bool,
    /// Whether it may hold line breaks.
    multiline: bool,
}

fn string_at(bytes: &[u8], start: usize) -> Option<Opening> {
    /// Bounds the work for a long run of dollars.
    const DOLLARS: usize = 32;
    let mut at = start;
    let (mut dollars, mut verbatim) = (0, false);
    while dollars <= DOLLARS {
        match bytes.get(at)? {
            b'$' => dollars += 1,
            b'@' if !verbatim => verbatim = true,
            b'"' => break,
            _ => return None,
        }
        at += 1;
    }
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let quotes = run(bytes, at, b'"');
    if quotes >= 3 && !verbatim {
        let (content, _) = skip_blanks(bytes, at + quotes);
        return Some(Opening {
            at: at + quotes,
            quotes,
            dollars,
            verbatim: false,
            multiline: matches!(bytes.get(content), None | Some(b'\n' | b'\r')),
        });
    }
    Some(Opening {
        at: at + 1,
        quotes: 1,
        dollars,
        verbatim,
        multiline: verbatim,
    })
}

fn run(bytes: &[u8], at: usize, byte: u8) -> usize {
    bytes[at..]
        .iter()
        .take_while(|&&found| found == byte)
        .count()
}

fn skip_blanks(bytes: &[u8], at: usize) -> (usize, usize) {
    let blanks = bytes[at..]
        .iter()
        .take_while(|&&byte| matches!(byte, b' ' | b'\t'))
        .count();
    (at + blanks, blanks)
}

/// An open part of an interpolated string.
enum OpenPart {
    String(Opening),
    /// Code inside a string, with its open brackets and the number of braces that close it.
    Hole {
        brackets: usize,
        braces: usize,
    },
}

/// Reads a string up to its closing quotes; a line break or the end of the text may cut it off.
fn string(bytes: &[u8], opening: Opening) -> (Kind, usize) {
    let mut at = opening.at;
    let mut open = vec![OpenPart::String(opening)];
    while let Some(innermost) = open.last_mut() {
        match innermost {
            OpenPart::String(opening) => {
                let opening = Opening { at, ..*opening };
                match plain_string(bytes, opening) {
                    Ended::Closed(end) => {
                        at = end;
                        open.pop();
                    }
                    // A cut string inside a hole makes everything around it opaque.
                    Ended::Cut(end) => return (Kind::Opaque, end),
                    Ended::Hole(end) => {
                        at = end;
                        let braces = if opening.quotes >= 3 {
                            opening.dollars
                        } else {
                            1
                        };
                        open.push(OpenPart::Hole {
                            brackets: 0,
                            braces,
                        });
                    }
                }
            }
            OpenPart::Hole { brackets, braces } => match hole(bytes, at, brackets, *braces) {
                InHole::Closed(end) => {
                    at = end;
                    open.pop();
                }
                InHole::String(opening) => {
                    at = opening.at;
                    open.push(OpenPart::String(opening));
                }
                InHole::Format(from) => {
                    at = from;
                    while bytes
                        .get(at)
                        .is_some_and(|byte| !matches!(byte, b'}' | b'"' | b'\n'))
                    {
                        at += 1;
                    }
                    if bytes.get(at) == Some(&b'}') {
                        at += 1;
                    }
                    open.pop();
                }
                InHole::Cut => return (Kind::Opaque, trimmed_end(bytes, at, bytes.len())),
            },
        }
    }
    (Kind::Quoted, at)
}

enum Ended {
    Closed(usize),
    Hole(usize),
    Cut(usize),
}

/// Reads the text of a string from `opening.at` up to its end or to its next hole.
fn plain_string(bytes: &[u8], opening: Opening) -> Ended {
    let mut at = opening.at;
    let raw = opening.quotes >= 3;
    loop {
        let Some(&byte) = bytes.get(at) else {
            return Ended::Cut(trimmed_end(bytes, opening.at, bytes.len()));
        };
        match byte {
            b'"' if raw => {
                let quotes = run(bytes, at, b'"');
                at += quotes;
                if quotes >= opening.quotes {
                    return Ended::Closed(at);
                }
            }
            b'"' if opening.verbatim && bytes.get(at + 1) == Some(&b'"') => at += 2,
            b'"' => return Ended::Closed(at + 1),
            b'\\' if !opening.verbatim && !raw => {
                // A backslash before a line break does not continue a string.
                let escapes = bytes
                    .get(at + 1)
                    .is_some_and(|byte| !matches!(byte, b'\n' | b'\r'));
                at += if escapes { 2 } else { 1 };
            }
            b'\n' | b'\r' if !opening.multiline => {
                return Ended::Cut(trimmed_end(bytes, opening.at, at));
            }
            b'{' if opening.dollars > 0 => {
                let braces = run(bytes, at, b'{');
                at += braces;
                let needed = if raw { opening.dollars } else { 1 };
                let opens = if raw {
                    braces >= needed
                } else {
                    braces % 2 == 1
                };
                if opens {
                    return Ended::Hole(at);
                }
            }
            _ => at += 1,
        }
    }
}

enum InHole {
    Closed(usize),
    String(Opening),
    /// A `:` with a format after it instead of code.
    Format(usize),
    Cut,
}

/// Reads code inside a hole until it ends or a string begins in it.
fn hole(bytes: &[u8], mut at: usize, brackets: &mut usize, braces: usize) -> InHole {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'(' | b'[' | b'{' => *brackets += 1,
            b'}' if *brackets == 0 => {
                return InHole::Closed(at + run(bytes, at, b'}').min(braces));
            }
            b')' | b']' | b'}' => *brackets = brackets.saturating_sub(1),
            b':' if bytes.get(at + 1) == Some(&b':') => at += 1,
            b':' if *brackets == 0 => return InHole::Format(at + 1),
            b'"' | b'$' | b'@' => {
                if let Some(opening) = string_at(bytes, at) {
                    return InHole::String(opening);
                }
            }
            b'\'' => at = character_end(bytes, at).map_or(at, |end| end - 1),
            b'/' if bytes.get(at + 1) == Some(&b'/') => at = line_end(bytes, at) - 1,
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                match memmem::find(&bytes[at + 2..], b"*/") {
                    Some(found) => at += 2 + found + 1,
                    None => return InHole::Cut,
                }
            }
            _ => {}
        }
        at += 1;
    }
    InHole::Cut
}
