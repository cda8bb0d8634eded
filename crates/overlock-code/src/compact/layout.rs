//! Writes tokens again with as little white space as they need.
//!
//! Lines stay lines: a line break costs a model no more than a space, and keeps every command
//! that is read by the line, every pair of strings that only a line break joins, and the reader's
//! footing. What goes is indentation, blank lines, runs of blanks, and blanks at brackets, commas
//! and semicolons. White space is never removed between two names or two operators, and never
//! added, except in the place of a comment.

use crate::lex::{Ambiguous, Gap, Kind, Lexer};

/// Which comments stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Docs {
    /// Documentation comments stay, each on its lines.
    Keep,
    /// Documentation comments go like all others.
    #[default]
    Drop,
}

/// Whether a blank between these two bytes can go.
pub(crate) type Joins = fn(before: u8, after: u8) -> bool;

/// The tokens of a text, without comments and layout.
pub(crate) fn lay_out<'a>(
    lexer: &mut impl Lexer<'a>,
    docs: Docs,
    joins: Joins,
) -> Result<String, Ambiguous> {
    let text = lexer.text();
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    // What is still to be copied: pieces of the text that lie in it as they will in the result.
    let (mut from, mut to) = (0, 0);
    let mut gap = Gap::None;
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
        let first = from == to && out.is_empty();
        let white: &[u8] = match gap {
            _ if first => b"",
            Gap::None => b"",
            Gap::Space if joins(bytes[to - 1], bytes[token.start]) => b"",
            Gap::Space => b" ",
            Gap::Line => b"\n",
        };
        if first || bytes[to..token.start] != *white {
            out.push_str(&text[from..to]);
            out.push_str(std::str::from_utf8(white).unwrap_or_default());
            from = token.start;
        }
        to = token.end;
        gap = Gap::None;
    }
    out.push_str(&text[from..to]);
    Ok(out)
}

/// Brackets, commas and semicolons of C# are tokens whatever stands beside them.
pub(crate) fn joins_in_csharp(before: u8, after: u8) -> bool {
    let alone = |byte| matches!(byte, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b';' | b',');
    alone(before) || alone(after)
}

/// In SQL a blank before a parenthesis can mean something: to MySQL `count (` calls no function.
pub(crate) fn joins_in_sql(before: u8, after: u8) -> bool {
    matches!(before, b'(' | b',' | b';') || matches!(after, b')' | b',' | b';')
}

/// In Visual Basic only what cannot be read as a part of something else.
pub(crate) fn joins_in_visual_basic(before: u8, after: u8) -> bool {
    matches!(before, b'(' | b',') || matches!(after, b')' | b',')
}
