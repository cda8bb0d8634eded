//! Writes tokens again with as little white space as they need.
//!
//! Most line breaks stay: a line break costs a model no more than a space, line commands need it,
//! and in SQL only a line break joins two strings. Removed are indentation, blank lines, repeated
//! blanks, blanks at brackets and commas, and breaks inside a statement. White space between two
//! names or two operators is never removed, and none is added except in place of a comment.

use crate::lex::{Ambiguous, Gap, Kind, Lexer, Token, is_word};

/// Whether documentation comments stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Docs {
    /// They stay, each on its lines.
    Keep,
    /// They are removed like all other comments.
    #[default]
    Drop,
}

/// The language whose rules for white space apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    CSharp,
    Sql,
    VisualBasic,
}

impl Style {
    /// Whether a blank between these two bytes can be removed. `operator` is the complete operator
    /// before it, if there is one.
    fn joins(self, before: u8, operator: &[u8], after: u8) -> bool {
        match self {
            // These bytes are always tokens. A name after a bracket reads better apart.
            Self::CSharp => {
                let opens = |byte| matches!(byte, b'(' | b'[' | b'{' | b'}' | b';' | b',');
                let closes = |byte| matches!(byte, b')' | b']');
                opens(before) || opens(after) || closes(after) || closes(before) && !is_word(after)
            }
            // A blank before a parenthesis matters: in MySQL, `count (` does not call the function.
            // A comparison may touch a name or a string, but not a sign: `< @x` is not `<@x`.
            Self::Sql => {
                let operand =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'\'' | b'_');
                let compares =
                    matches!(operator, b"=" | b"<" | b">" | b"<=" | b">=" | b"<>" | b"!=");
                matches!(before, b'(' | b',' | b';')
                    || matches!(after, b')' | b',' | b';')
                        && (operator.is_empty() || matches!(before, b'*' | b')'))
                    || compares && (operand(after) || after == b'[')
                    || matches!(after, b'=' | b'<' | b'>')
                        && (operand(before) || matches!(before, b']' | b')'))
            }
            Self::VisualBasic => matches!(before, b'(' | b',') || matches!(after, b')' | b','),
        }
    }

    /// Whether a statement clearly continues after a line break.
    fn runs_on(self, before: u8, after: u8, depth: usize) -> bool {
        match self {
            Self::CSharp => after == b'{' || (before == b'}' && after == b'}'),
            Self::Sql => depth > 0 || matches!(before, b'(' | b',') || matches!(after, b')' | b','),
            Self::VisualBasic => false,
        }
    }
}

/// A text without comments and layout.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LaidOut {
    pub(crate) text: String,
    /// Whether it ends in an unclosed comment or string.
    pub(crate) is_open: bool,
}

/// Writes the tokens of a text without comments and layout.
pub(crate) fn lay_out<'a>(
    lexer: &mut impl Lexer<'a>,
    docs: Docs,
    style: Style,
) -> Result<LaidOut, Ambiguous> {
    let text = lexer.text();
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    // The range of the text still to be copied unchanged.
    let (mut from, mut to) = (0, 0);
    let mut gap = Gap::None;
    let mut last: Option<Token> = None;
    let mut depth = 0_usize;
    // Where the punctuation that ends at `to` begins.
    let mut marks = 0;
    while let Some(token) = lexer.next()? {
        gap = gap.max(token.gap);
        let drops = match token.kind {
            Kind::Comment | Kind::Region => true,
            Kind::Doc => docs == Docs::Drop,
            _ => false,
        };
        if drops {
            gap = gap.max(Gap::Space);
            continue;
        }
        let Some(before) = last else {
            (from, to, gap, last) = (token.start, token.end, Gap::None, Some(token));
            marks = marks_after(None, token, token.end);
            depth = depth_after(token, text, depth);
            continue;
        };
        if gap == Gap::Line
            && may_share_a_line(before, token, text)
            && style.runs_on(bytes[to - 1], bytes[token.start], depth)
        {
            gap = Gap::Space;
        }
        let white = match gap {
            Gap::None => "",
            Gap::Space if style.joins(bytes[to - 1], &bytes[marks..to], bytes[token.start]) => "",
            Gap::Space => " ",
            Gap::Line => "\n",
        };
        if bytes[to..token.start] != *white.as_bytes() {
            out.push_str(&text[from..to]);
            out.push_str(white);
            from = token.start;
        }
        marks = marks_after(Some(before).filter(|_| gap == Gap::None), token, marks);
        to = token.end;
        depth = depth_after(token, text, depth);
        (gap, last) = (Gap::None, Some(token));
    }
    out.push_str(&text[from..to]);
    let is_open = last.is_some_and(|last| last.is_open(text));
    Ok(LaidOut { text: out, is_open })
}

/// Where the punctuation that ends with this token begins.
fn marks_after(touched: Option<Token>, token: Token, marks: usize) -> usize {
    match (token.kind, touched) {
        (Kind::Mark, Some(before)) if before.kind == Kind::Mark => marks,
        (Kind::Mark, _) => token.start,
        _ => token.end,
    }
}

/// How many parentheses are open after a token. An unclosed one must not affect the next statement
/// or batch.
fn depth_after(token: Token, text: &str, depth: usize) -> usize {
    match (token.kind, text.as_bytes()[token.start]) {
        (Kind::Mark, b'(') => depth + 1,
        (Kind::Mark, b')') => depth.saturating_sub(1),
        (Kind::Mark, b';') | (Kind::Line, _) => 0,
        (Kind::Word, b'G' | b'g') if token.gap == Gap::Line && token.is_word(text, "go") => 0,
        _ => depth,
    }
}

/// Whether both tokens mean the same on one line.
fn may_share_a_line(before: Token, after: Token, text: &str) -> bool {
    let plain = |token: Token| matches!(token.kind, Kind::Word | Kind::Quoted | Kind::Mark);
    let alone = |token: Token| token.is_word(text, "go") || token.is_mark(text, b'/');
    let both_quoted = before.kind == Kind::Quoted && after.kind == Kind::Quoted;
    plain(before) && plain(after) && !both_quoted && !alone(before) && !alone(after)
}
