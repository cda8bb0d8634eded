//! Writes tokens again with as little white space as they need.
//!
//! Most lines stay lines: a line break costs a model no more than a space, and keeps every command
//! that is read by the line, every pair of strings that only a line break joins, and the reader's
//! footing. What goes is indentation, blank lines, runs of blanks, blanks at brackets and commas,
//! and breaks where a line plainly goes on. White space is never removed between two names or two
//! operators, and never added, except in the place of a comment.

use crate::lex::{Ambiguous, Gap, Kind, Lexer, Token, is_word};

/// What becomes of documentation comments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Docs {
    /// They stay, each on its lines.
    Keep,
    /// They go like all other comments.
    #[default]
    Drop,
}

/// Whose white space it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    CSharp,
    Sql,
    VisualBasic,
}

impl Style {
    /// Whether a blank between these two bytes can go. The operator before it, if there is one, is
    /// known as a whole.
    fn joins(self, before: u8, operator: &[u8], after: u8) -> bool {
        match self {
            // These are tokens whatever stands beside them. A name after a bracket reads better apart.
            Self::CSharp => {
                let opens = |byte| matches!(byte, b'(' | b'[' | b'{' | b'}' | b';' | b',');
                let closes = |byte| matches!(byte, b')' | b']');
                opens(before) || opens(after) || closes(after) || closes(before) && !is_word(after)
            }
            // A blank before a parenthesis can mean something: to MySQL, `count (` calls no function.
            // A comparison may touch a name or a string, but no other sign: `< @x` is not `<@x`.
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

    /// Whether a statement plainly goes on after a line break.
    fn runs_on(self, before: u8, after: u8, depth: usize) -> bool {
        match self {
            Self::CSharp => after == b'{' || (before == b'}' && after == b'}'),
            Self::Sql => depth > 0 || matches!(before, b'(' | b',') || matches!(after, b')' | b','),
            Self::VisualBasic => false,
        }
    }
}

/// A text that was written again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LaidOut {
    pub(crate) text: String,
    /// Whether it ends in a comment or a string that is never closed.
    pub(crate) is_open: bool,
}

/// The tokens of a text, without comments and layout.
pub(crate) fn lay_out<'a>(
    lexer: &mut impl Lexer<'a>,
    docs: Docs,
    style: Style,
) -> Result<LaidOut, Ambiguous> {
    let text = lexer.text();
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    // What is still to be copied: pieces of the text that lie in it as they will in the result.
    let (mut from, mut to) = (0, 0);
    let mut gap = Gap::None;
    let mut last: Option<Token> = None;
    let mut depth = 0_usize;
    // Where the run of punctuation begins that ends at `to`.
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

/// Where the run of punctuation begins that ends with this token.
fn marks_after(touched: Option<Token>, token: Token, marks: usize) -> usize {
    match (token.kind, touched) {
        (Kind::Mark, Some(before)) if before.kind == Kind::Mark => marks,
        (Kind::Mark, _) => token.start,
        _ => token.end,
    }
}

/// How many parentheses are open after a token. One that is never closed must not reach into the
/// next statement or batch.
fn depth_after(token: Token, text: &str, depth: usize) -> usize {
    match (token.kind, text.as_bytes()[token.start]) {
        (Kind::Mark, b'(') => depth + 1,
        (Kind::Mark, b')') => depth.saturating_sub(1),
        (Kind::Mark, b';') | (Kind::Line, _) => 0,
        (Kind::Word, b'G' | b'g') if token.gap == Gap::Line && token.is_word(text, "go") => 0,
        _ => depth,
    }
}

/// Whether nothing would read the two differently on one line.
fn may_share_a_line(before: Token, after: Token, text: &str) -> bool {
    let plain = |token: Token| matches!(token.kind, Kind::Word | Kind::Quoted | Kind::Mark);
    let alone = |token: Token| token.is_word(text, "go") || token.is_mark(text, b'/');
    let both_quoted = before.kind == Kind::Quoted && after.kind == Kind::Quoted;
    plain(before) && plain(after) && !both_quoted && !alone(before) && !alone(after)
}
