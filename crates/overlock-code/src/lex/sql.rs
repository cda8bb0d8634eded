//! A lexer for SQL of any dialect.
//!
//! Where the dialects disagree (a backslash before a quote, nested comments, `#`, `$$`, `[`), the
//! words of the whole text decide the dialect; if they do not, the text is ambiguous. Line commands
//! of database clients (`GO`, `\echo`, `:setvar`, `PROMPT`, `DELIMITER`, the rows after a
//! `COPY … FROM stdin`) stay on their lines.

use std::collections::HashMap;

use memchr::{memchr, memchr_iter, memchr2, memmem};

use super::dialect::{Dialect, dialect};
use super::{
    Ambiguous, Gap, Kind, Lexed, Lexer, Token, feed_end, is_word, skip_space, trimmed_end, word_end,
};

/// The lexer of one SQL text.
pub(crate) struct Sql<'a> {
    text: &'a str,
    at: usize,
    at_line_start: bool,
    /// No token of the statement has been read yet.
    at_statement_start: bool,
    /// Detected when first needed.
    dialect: std::cell::OnceCell<Option<Dialect>>,
    copy: Copy,
    foreign: Foreign,
    /// Where the last punctuation ended.
    mark_end: usize,
    /// Where the last token that is not a comment ended.
    code_end: usize,
    unclosed: Unclosed,
    /// The last occurrence of each tag such as `$body$`, searched at the first dollar.
    last_tags: std::cell::OnceCell<HashMap<&'a [u8], usize>>,
}

/// Quotes that are never closed. Remembering them keeps the lexer linear, because the rest of the
/// text is searched only once.
#[derive(Default)]
struct Unclosed {
    backtick: bool,
    /// One bit for each closing character of Oracle's `q'…'`.
    alternatives: u128,
}

/// The progress in a `COPY … FROM stdin;`. Its rows follow on the next line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copy {
    No,
    Statement,
    FromStdin,
    Rows,
}

/// The progress in an Oracle definition whose body is in another language. It ends at a line that
/// consists of a slash.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Foreign {
    No,
    Create,
    Head,
    Body,
}

impl<'a> Sql<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            at_line_start: true,
            at_statement_start: true,
            dialect: std::cell::OnceCell::new(),
            copy: Copy::No,
            foreign: Foreign::No,
            mark_end: usize::MAX,
            code_end: usize::MAX,
            unclosed: Unclosed::default(),
            last_tags: std::cell::OnceCell::new(),
        }
    }

    /// A lexer for a given dialect, or for an unknown one.
    pub(crate) fn with_dialect(text: &'a str, dialect: Option<Dialect>) -> Self {
        Self {
            dialect: std::cell::OnceCell::from(dialect),
            ..Self::new(text)
        }
    }

    /// The dialect of the whole text, if its words decide it.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        *self.dialect.get_or_init(|| dialect(self.text))
    }

    fn token(&mut self, start: usize, first: u8, gap: Gap) -> Result<(Kind, usize), Ambiguous> {
        let bytes = self.text.as_bytes();
        let second = bytes.get(start + 1).copied();
        Ok(match (first, second) {
            (b'-', Some(b'-')) => self.line_comment(start),
            (b'/', Some(b'*')) => return self.block_comment(start),
            (b'\'' | b'"', _) => self.quoted(start, first)?,
            (b'`', _) => self.backtick(start),
            (b'[', _) => return self.bracket(start, gap),
            (b'$', _) => self.dollar(start),
            (b'#', _) => self.hash(start),
            (b'\\', _) => (Kind::Line, self.client_command(start)),
            (b':', Some(next)) if self.at_line_start && next.is_ascii_alphabetic() => {
                let word = &self.text[start + 1..word_end(bytes, start + 1)];
                if is_sqlcmd(word) {
                    (Kind::Line, self.rest_of_line(start))
                } else {
                    (Kind::Mark, start + 1)
                }
            }
            (b'@', _) => (Kind::Word, self.name_end(start + 1)),
            (first, _) if is_word(first) => self.word(start),
            _ => (Kind::Mark, start + 1),
        })
    }

    /// Skips white space; in T-SQL, also no-break spaces.
    fn skip_space(&self) -> (usize, Gap) {
        let bytes = self.text.as_bytes();
        let (mut at, mut gap) = skip_space(bytes, self.at);
        while bytes[at..].starts_with(NO_BREAK_SPACE) && self.dialect() == Some(Dialect::TSql) {
            let (next, after) = skip_space(bytes, at + NO_BREAK_SPACE.len());
            (at, gap) = (next, gap.max(after).max(Gap::Space));
        }
        (at, gap)
    }

    fn name_end(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let end = name_end(bytes, start);
        match memmem::find(&bytes[start..end], NO_BREAK_SPACE) {
            Some(found) if self.dialect() == Some(Dialect::TSql) => start + found,
            _ => end,
        }
    }

    fn rest_of_line(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        trimmed_end(bytes, start, feed_end(bytes, start))
    }

    fn word(&mut self, start: usize) -> (Kind, usize) {
        let bytes = self.text.as_bytes();
        let end = self.name_end(start);
        let word = &self.text[start..end];
        if self.at_line_start && self.is_line_command(word, &bytes[end..]) {
            return (Kind::Line, self.rest_of_line(start));
        }
        if bytes.get(end) == Some(&b'\'') {
            if word.eq_ignore_ascii_case("e") {
                return quote_end(bytes, end, b'\'', true);
            }
            let alternative = word.eq_ignore_ascii_case("q") || word.eq_ignore_ascii_case("nq");
            if alternative
                && matches!(self.dialect(), None | Some(Dialect::Oracle))
                && let Some(close) = alternative_close(bytes, end)
                && self.unclosed.alternatives & (1 << close) == 0
            {
                match memmem::find(&bytes[end + 2..], &[close, b'\'']) {
                    Some(found) => return (Kind::Quoted, end + 2 + found + 2),
                    None => self.unclosed.alternatives |= 1 << close,
                }
            }
        }
        if self.at_statement_start && word.eq_ignore_ascii_case("copy") {
            self.copy = Copy::Statement;
        } else if self.copy == Copy::Statement && word.eq_ignore_ascii_case("stdin") {
            self.copy = Copy::FromStdin;
        }
        self.foreign = self.foreign_after(word);
        (Kind::Word, end)
    }

    /// The progress in `CREATE JAVA SOURCE … AS` or `CREATE MLE MODULE … AS` after a word.
    fn foreign_after(&self, word: &str) -> Foreign {
        let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
        match self.foreign {
            Foreign::Head if is(&["create"]) => Foreign::Create,
            _ if self.at_statement_start && is(&["create"]) => Foreign::Create,
            Foreign::Create if is(&["java", "mle"]) => Foreign::Head,
            Foreign::Create if is(&["or", "replace", "and", "resolve", "compile", "noforce"]) => {
                Foreign::Create
            }
            Foreign::Head if is(&["as"]) => Foreign::Body,
            Foreign::Head if !is(&["go"]) => Foreign::Head,
            _ => Foreign::No,
        }
    }

    /// The body in another language, up to the line that ends it.
    fn foreign_body(&mut self) -> Option<Token> {
        self.foreign = Foreign::No;
        let bytes = self.text.as_bytes();
        let (start, gap) = skip_space(bytes, self.at);
        let mut lines = memchr_iter(b'\n', &bytes[start..]).map(|found| start + found);
        let end = lines
            .find(|&feed| bytes[feed + 1..feed_end(bytes, feed + 1)].trim_ascii() == b"/")
            .unwrap_or(bytes.len());
        let end = trimmed_end(bytes, start, end);
        if end == start {
            return None;
        }
        self.at = end;
        self.at_line_start = false;
        self.at_statement_start = true;
        Some(Token {
            kind: Kind::Line,
            start,
            end,
            gap,
        })
    }

    /// Whether a line that begins with this word is a client command.
    fn is_line_command(&self, word: &str, rest: &[u8]) -> bool {
        // Punctuation after the word means that it is the name of a column or table.
        let followed = matches!(rest.first(), None | Some(b' ' | b'\t' | b'\r' | b'\n'));
        let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
        let begins = self.at_statement_start && is(&["prompt", "prom", "rem", "remark"]);
        followed && (begins || is(&["delimiter"]))
    }

    /// A string or a quoted name. Only `MySQL` lets a backslash keep it open.
    fn quoted(&self, start: usize, quote: u8) -> Result<(Kind, usize), Ambiguous> {
        let bytes = self.text.as_bytes();
        let plain = quote_end(bytes, start, quote, false);
        if memchr(b'\\', &bytes[start..plain.1]).is_none() {
            return Ok(plain);
        }
        let escaped = quote_end(bytes, start, quote, true);
        if plain == escaped {
            return Ok(plain);
        }
        match self.dialect() {
            Some(Dialect::MySql) => Ok(escaped),
            Some(_) => Ok(plain),
            None => Err(Ambiguous),
        }
    }

    fn backtick(&mut self, start: usize) -> (Kind, usize) {
        if !self.unclosed.backtick {
            let rest = &self.text.as_bytes()[start + 1..];
            match memchr(b'`', rest) {
                Some(found) => return (Kind::Quoted, start + 1 + found + 1),
                None => self.unclosed.backtick = true,
            }
        }
        (Kind::Mark, start + 1)
    }

    /// A name in brackets in T-SQL; a subscript or an array elsewhere.
    fn bracket(&self, start: usize, gap: Gap) -> Result<(Kind, usize), Ambiguous> {
        let bytes = self.text.as_bytes();
        let subscript = (Kind::Mark, start + 1);
        let Some(end) = bracket_end(bytes, start) else {
            return Ok(subscript);
        };
        let follows = |byte: u8| is_word(byte) || matches!(byte, b']' | b')');
        let touches = gap == Gap::None && start > 0 && follows(bytes[start - 1]);
        match self.dialect() {
            Some(Dialect::TSql) => Ok((Kind::Quoted, end)),
            Some(_) => Ok(subscript),
            None if touches => Ok(subscript),
            // Both readings leave the content unchanged.
            None if is_plain(&bytes[start + 1..end - 1]) => Ok((Kind::Quoted, end)),
            None => Err(Ambiguous),
        }
    }

    /// A dollar-quoted string of PostgreSQL, unless the dialect uses the dollar differently.
    fn dollar(&self, start: usize) -> (Kind, usize) {
        let bytes = self.text.as_bytes();
        // In MySQL, `$$` is a common delimiter.
        let Some(tag) = tag_at(bytes, start).filter(|_| self.dialect() != Some(Dialect::MySql))
        else {
            return (Kind::Mark, start + 1);
        };
        let after = start + tag.len();
        let last_tags = self.last_tags.get_or_init(|| last_tags(bytes));
        let is_closed = last_tags.get(tag).is_some_and(|&last| last >= after);
        match memmem::find(&bytes[after..], tag).filter(|_| is_closed) {
            Some(found) => (Kind::Quoted, after + found + tag.len()),
            None if matches!(self.dialect(), None | Some(Dialect::Postgres)) => {
                (Kind::Opaque, trimmed_end(bytes, start, bytes.len()))
            }
            None => (Kind::Mark, start + 1),
        }
    }

    /// A comment in `MySQL`, a temporary table in T-SQL, an operator in PostgreSQL.
    fn hash(&self, start: usize) -> (Kind, usize) {
        match self.dialect() {
            Some(Dialect::MySql) => (Kind::Comment, self.rest_of_line(start)),
            None if self.at_line_start => (Kind::Line, self.rest_of_line(start)),
            Some(Dialect::Postgres) => (Kind::Mark, start + 1),
            _ => (Kind::Word, self.name_end(start + 1)),
        }
    }

    fn line_comment(&self, start: usize) -> (Kind, usize) {
        let bytes = self.text.as_bytes();
        let end = feed_end(bytes, start);
        let trimmed = trimmed_end(bytes, start, end);
        let after = bytes.get(start + 2);
        if after == Some(&b'+') {
            return (Kind::Hint, trimmed);
        }
        // In MySQL, two dashes open a comment only before white space: `5--1` is six. A lone
        // carriage return ends a comment only for some clients.
        let opens = after.is_none_or(|&byte| byte <= b' ' || byte == b'-');
        let keeps = memchr(b'\r', &bytes[start..trimmed]).is_some()
            || !opens
                && match self.dialect() {
                    Some(Dialect::MySql) => true,
                    Some(_) => false,
                    None => self.code_end == start,
                };
        (if keeps { Kind::Line } else { Kind::Comment }, trimmed)
    }

    /// Comments nest in T-SQL and PostgreSQL, but not in `MySQL` and Oracle.
    fn block_comment(&self, start: usize) -> Result<(Kind, usize), Ambiguous> {
        let bytes = self.text.as_bytes();
        let kind = match bytes.get(start + 2) {
            Some(b'+' | b'!') => Kind::Hint,
            Some(b'M') if bytes.get(start + 3) == Some(&b'!') => Kind::Hint,
            // Some databases read a comment that touches an operator as part of it.
            _ if self.mark_end == start && b"<>=+-*/%^&|~!@#?".contains(&bytes[start - 1]) => {
                Kind::Hint
            }
            _ => Kind::Comment,
        };
        let rest = trimmed_end(bytes, start, bytes.len());
        let flat = memmem::find(&bytes[start + 2..], b"*/").map(|found| start + 2 + found + 2);
        let nests = memmem::find(&bytes[start + 2..flat.unwrap_or(bytes.len())], b"/*").is_some();
        let end = if nests {
            match self.dialect() {
                Some(Dialect::MySql | Dialect::Oracle) => flat,
                Some(Dialect::TSql | Dialect::Postgres) => nested_end(bytes, start),
                None => return Err(Ambiguous),
            }
        } else {
            flat
        };
        Ok(end.map_or((Kind::Opaque, rest), |end| (kind, end)))
    }

    /// A command of `psql` or `mysql`: to the end of its line.
    fn client_command(&mut self, start: usize) -> usize {
        let end = self.rest_of_line(start);
        let command = self.text[start..end].to_ascii_lowercase();
        if command.starts_with("\\copy") && command.contains("from stdin") {
            self.copy = Copy::Rows;
        }
        end
    }

    /// The rows after a `COPY`, up to the line `\.`.
    fn rows(&mut self) -> Option<Token> {
        let bytes = self.text.as_bytes();
        let start = (feed_end(bytes, self.at) + 1).min(bytes.len());
        self.copy = Copy::No;
        let end = memmem::find(&bytes[start.saturating_sub(1)..], b"\n\\.")
            .map_or(bytes.len(), |found| (start + found).saturating_sub(1));
        let end = end.max(start);
        let kept_end = trimmed_end(bytes, start, end);
        if kept_end == start {
            return None;
        }
        self.at = end;
        self.at_line_start = true;
        Some(Token {
            kind: Kind::Line,
            start,
            end: kept_end,
            gap: Gap::Line,
        })
    }
}

impl<'a> Lexer<'a> for Sql<'a> {
    fn text(&self) -> &'a str {
        self.text
    }

    fn next(&mut self) -> Lexed {
        if self.copy == Copy::Rows
            && let Some(rows) = self.rows()
        {
            return Ok(Some(rows));
        }
        if self.foreign == Foreign::Body
            && let Some(body) = self.foreign_body()
        {
            return Ok(Some(body));
        }
        let bytes = self.text.as_bytes();
        let (start, gap) = self.skip_space();
        self.at_line_start |= gap == Gap::Line;
        let Some(&first) = bytes.get(start) else {
            return Ok(None);
        };
        let (kind, end) = self.token(start, first, gap)?;
        self.at = end;
        if kind == Kind::Mark {
            self.mark_end = end;
        }
        if kind.is_code() {
            self.code_end = end;
            self.at_line_start = false;
            self.at_statement_start = match kind {
                Kind::Line => true,
                Kind::Mark => matches!(first, b';' | b'/'),
                Kind::Word => end - start == 2 && bytes[start..end].eq_ignore_ascii_case(b"go"),
                _ => false,
            };
            let ends = self.foreign == Foreign::Create || matches!(first, b';' | b'/');
            if kind == Kind::Mark && ends {
                self.foreign = Foreign::No;
            }
            if first == b';' && kind == Kind::Mark {
                self.copy = match self.copy {
                    Copy::FromStdin => Copy::Rows,
                    _ => Copy::No,
                };
            }
        }
        Ok(Some(Token {
            kind,
            start,
            end,
            gap,
        }))
    }
}

const NO_BREAK_SPACE: &[u8] = "\u{a0}".as_bytes();

/// Where a name ends. It may contain `$`, `#` and `@` after the first character.
fn name_end(bytes: &[u8], mut at: usize) -> usize {
    while bytes
        .get(at)
        .is_some_and(|&byte| is_word(byte) || matches!(byte, b'$' | b'#' | b'@'))
    {
        at += 1;
    }
    at
}

/// The tag of a possible dollar-quoted string: `$$` or `$body$`.
fn tag_at(bytes: &[u8], start: usize) -> Option<&[u8]> {
    let end = word_end(bytes, start + 1);
    let is_tag =
        bytes.get(end) == Some(&b'$') && !bytes.get(start + 1).is_some_and(u8::is_ascii_digit);
    is_tag.then(|| &bytes[start..=end])
}

/// The last occurrence of each tag, so the end of an unclosed string is not searched.
fn last_tags(bytes: &[u8]) -> HashMap<&[u8], usize> {
    memchr_iter(b'$', bytes)
        .filter_map(|start| Some((tag_at(bytes, start)?, start)))
        .collect()
}

/// Where a quoted text ends; a doubled quote does not end it. An unclosed one is opaque up to the end
/// of the text.
fn quote_end(bytes: &[u8], start: usize, quote: u8, escapes: bool) -> (Kind, usize) {
    let mut at = start + 1;
    loop {
        let found = if escapes {
            memchr2(quote, b'\\', bytes.get(at..).unwrap_or_default())
        } else {
            memchr(quote, bytes.get(at..).unwrap_or_default())
        };
        let Some(found) = found else {
            return (Kind::Opaque, trimmed_end(bytes, start + 1, bytes.len()));
        };
        at += found;
        let escape = bytes[at] == b'\\' && escapes;
        if escape || bytes.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return (Kind::Quoted, at + 1);
        }
    }
}

/// Whether no string or comment can begin in these bytes.
fn is_plain(bytes: &[u8]) -> bool {
    let opens = |byte: &u8| {
        matches!(
            byte,
            b'\'' | b'"' | b'\n' | b'\r' | b'[' | b'`' | b'$' | b'#' | b'\\'
        )
    };
    !bytes.iter().any(opens)
        && memmem::find(bytes, b"--").is_none()
        && memmem::find(bytes, b"/*").is_none()
}

fn bracket_end(bytes: &[u8], start: usize) -> Option<usize> {
    /// Identifiers have at most 128 characters.
    const LONGEST: usize = 600;
    let limit = bytes.len().min(start + LONGEST);
    let mut at = start + 1;
    loop {
        at += memchr(b']', bytes.get(at..limit)?)?;
        if bytes.get(at + 1) != Some(&b']') {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The character that closes Oracle's `q'[…]'` before the last quote; it depends on the opening one.
fn alternative_close(bytes: &[u8], quote: usize) -> Option<u8> {
    Some(match *bytes.get(quote + 1)? {
        b'[' => b']',
        b'(' => b')',
        b'{' => b'}',
        b'<' => b'>',
        open if open.is_ascii() && !open.is_ascii_whitespace() => open,
        _ => return None,
    })
}

fn nested_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 1_usize;
    let mut at = start + 2;
    loop {
        at += memchr2(b'*', b'/', bytes.get(at..)?)?;
        match (bytes[at], bytes.get(at + 1)) {
            (b'*', Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            (b'/', Some(b'*')) => {
                depth += 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
}

fn is_sqlcmd(word: &str) -> bool {
    let commands = [
        "setvar", "r", "on", "connect", "out", "error", "list", "listvar", "exit", "quit", "reset",
    ];
    commands
        .iter()
        .any(|command| word.eq_ignore_ascii_case(command))
}
