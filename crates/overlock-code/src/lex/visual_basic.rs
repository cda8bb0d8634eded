//! A lexer for Visual Basic.
//!
//! The language is line-based, so line breaks matter. XML literals are not supported: a text that
//! seems to contain one is ambiguous.

use super::{
    Ambiguous, Gap, Kind, Lexed, Lexer, Token, has_branch, is_word, line_end, skip_space,
    trimmed_end, word_end,
};

/// The lexer of one Visual Basic text.
pub(crate) struct VisualBasic<'a> {
    text: &'a str,
    at: usize,
    at_line_start: bool,
    /// A value may follow the last token, so `<` could open XML.
    expects_value: bool,
}

impl<'a> VisualBasic<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            at_line_start: true,
            expects_value: false,
        }
    }

    fn string(&self, start: usize, interpolated: bool) -> (Kind, usize) {
        let bytes = self.text.as_bytes();
        let mut at = start;
        let mut holes = 0_usize;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' if bytes.get(at + 1) == Some(&b'"') && holes == 0 => at += 1,
                b'"' if holes == 0 => return (Kind::Quoted, at + 1),
                b'{' if interpolated => holes += 1,
                b'}' if interpolated => holes = holes.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        (Kind::Opaque, trimmed_end(bytes, start, bytes.len()))
    }

    fn word(&mut self, start: usize) -> (Kind, usize) {
        let bytes = self.text.as_bytes();
        let end = word_end(bytes, start);
        let word = &self.text[start..end];
        let is_member = start > 0 && matches!(bytes[start - 1], b'.' | b'!');
        if word.eq_ignore_ascii_case("rem") && !is_member {
            return (
                Kind::Comment,
                trimmed_end(bytes, start, line_end(bytes, start)),
            );
        }
        (Kind::Word, end)
    }
}

impl<'a> Lexer<'a> for VisualBasic<'a> {
    fn text(&self) -> &'a str {
        self.text
    }

    fn next(&mut self) -> Lexed {
        let bytes = self.text.as_bytes();
        let (start, gap) = skip_space(bytes, self.at);
        self.at_line_start |= gap == Gap::Line;
        let Some(&first) = bytes.get(start) else {
            return Ok(None);
        };
        let next = bytes.get(start + 1).copied();
        let rest = &self.text[start..];
        let (kind, end) = match first {
            b'\'' => {
                let is_doc = rest.starts_with("'''");
                let kind = if is_doc { Kind::Doc } else { Kind::Comment };
                (kind, trimmed_end(bytes, start, line_end(bytes, start)))
            }
            b'"' => self.string(start + 1, false),
            b'$' if next == Some(b'"') => self.string(start + 2, true),
            b'#' if self.at_line_start => {
                let line = line_end(bytes, start);
                let directive = self.text[start + 1..line].trim().to_ascii_lowercase();
                let folds = directive.starts_with("region")
                    || directive
                        .strip_prefix("end")
                        .is_some_and(|end| end.trim_start().starts_with("region"));
                let kind = if folds { Kind::Region } else { Kind::Line };
                (kind, trimmed_end(bytes, start, line))
            }
            b'<' if self.expects_value
                && next.is_some_and(|byte| is_word(byte) || matches!(byte, b'!' | b'?' | b'%')) =>
            {
                return Err(Ambiguous);
            }
            // The compiler accepts typographic quotes.
            _ if ['\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}']
                .iter()
                .any(|quote| rest.starts_with(*quote)) =>
            {
                return Err(Ambiguous);
            }
            first if is_word(first) => self.word(start),
            _ => (Kind::Mark, start + 1),
        };
        if self.text[start..end].contains(['\u{201c}', '\u{201d}'])
            || (matches!(kind, Kind::Quoted | Kind::Opaque) && has_branch(&self.text[start..end]))
        {
            return Err(Ambiguous);
        }
        self.at = end;
        if kind.is_code() {
            self.at_line_start = false;
            self.expects_value = match kind {
                Kind::Mark => matches!(first, b'=' | b'(' | b',' | b'{' | b'&' | b'+'),
                Kind::Word => ["return", "in", "of"]
                    .iter()
                    .any(|word| rest[..end - start].eq_ignore_ascii_case(word)),
                _ => false,
            };
        }
        Ok(Some(Token {
            kind,
            start,
            end,
            gap,
        }))
    }
}
