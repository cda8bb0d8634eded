//! Finds what can go in SQL: everything but definitions, and the skeleton of what they do.
//!
//! Nothing is parsed: real SQL is more than any grammar knows. Words at the places where
//! statements begin decide what is kept. A table keeps its columns, a procedure its parameters,
//! and of its body the tables that are read and written and the predicates on them. Lists of
//! columns, assigned values, rows, variables and control flow go.

mod reader;

use std::ops::Range;

use super::{Elision, lines_mark, without};
use crate::compact::layout::{Docs, LaidOut, Style, lay_out};
use crate::lex::dialect::Dialect;
use crate::lex::sql::{Sql, run};
use crate::lex::{Ambiguous, Gap, Kind, Lexer, Token};

/// The outline of a text, already without comments and layout.
pub(crate) fn outline(text: &str) -> Result<LaidOut, Ambiguous> {
    outline_speaking(text, Sql::new(text).dialect())
}

/// The outline of a text of a known dialect, or of none. What goes may be what told the dialect,
/// so what stays is read as the whole was.
pub(crate) fn outline_speaking(text: &str, dialect: Option<Dialect>) -> Result<LaidOut, Ambiguous> {
    /// A function in a string in a function: that is where it ends.
    const DEPTH: usize = 2;
    let skeleton = skeleton(text, dialect, DEPTH)?;
    let shorter = laid_out(&skeleton, dialect)?;
    Ok(LaidOut {
        text: without_repetition(&shorter.text, dialect)?,
        ..shorter
    })
}

fn laid_out(text: &str, dialect: Option<Dialect>) -> Result<LaidOut, Ambiguous> {
    lay_out(&mut Sql::speaking(text, dialect), Docs::Drop, Style::Sql)
}

/// The text without what is not part of the outline.
fn skeleton(text: &str, dialect: Option<Dialect>, depth: usize) -> Result<String, Ambiguous> {
    let tokens = run(text, dialect)?;
    let mut kept = reader::kept(text, &tokens);
    keep_around_kept(text, &tokens, &mut kept);
    let elisions = elisions(text, &tokens, &kept, |inside| {
        let depth = depth.checked_sub(1)?;
        let body = skeleton(inside, dialect, depth).ok()?;
        Some(laid_out(&body, dialect).ok()?.text)
    });
    Ok(without(text, &elisions))
}

/// What closes a comment that is run.
const CLOSES_EXECUTED: &str = "*/";

/// Whether a hint only opens a comment that is run: `/*!50706`.
fn opens_executed(hint: &str) -> bool {
    hint.starts_with("/*") && !hint.ends_with("*/")
}

/// A comment that is run stays open and closed around what stays of it.
fn keep_around_kept(text: &str, tokens: &[Token], kept: &mut [bool]) {
    let mut opened = None;
    for index in 0..tokens.len() {
        if tokens[index].kind != Kind::Hint {
            continue;
        }
        match (tokens[index].text(text), opened.take()) {
            (CLOSES_EXECUTED, Some(open)) => {
                let stays = kept[open..index].contains(&true);
                (kept[open], kept[index]) = (stays, stays);
            }
            (hint, _) if opens_executed(hint) => opened = Some(index),
            (_, open) => opened = open,
        }
    }
}

/// The runs of tokens that go, each with its mark.
fn elisions(
    text: &str,
    tokens: &[Token],
    kept: &[bool],
    outlined: impl Fn(&str) -> Option<String>,
) -> Vec<Elision> {
    let mut elisions: Vec<Elision> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        let from = at;
        at += 1;
        if kept[from] {
            // Without the word before it, nobody would know it for a body.
            if from > 0
                && kept[from - 1]
                && let Some((tag, inside)) = body_in_a_string(text, tokens, from)
                && let Some(body) = outlined(inside)
                && body.len() + 2 < inside.len()
            {
                elisions.push(Elision {
                    range: token.start..token.end,
                    mark: format!("{tag}\n{body}\n{tag}"),
                });
            }
            continue;
        }
        while at < tokens.len() && !kept[at] {
            at += 1;
        }
        let range = token.start..tokens[at - 1].end;
        let piece = &text[range.clone()];
        let begins = from == 0 || token.gap == Gap::Line;
        let breaks = piece.contains('\n')
            || begins && tokens.get(at).is_none_or(|next| next.gap == Gap::Line);
        let mark = if breaks {
            lines_mark(piece)
        } else {
            "…".to_owned()
        };
        let mark = apart(text, &range, mark);
        // What a client reads by the line is known by what stands before it, which may be gone,
        // and a comment that is run has two ends.
        let mut run = tokens[from..at].iter();
        let must_go = run.any(|it| matches!(it.kind, Kind::Line | Kind::Hint));
        if mark.len() < piece.len() || must_go {
            elisions.push(Elision { range, mark });
        }
    }
    elisions
}

/// A mark is no part of a name: `SELECT'a'FROM t` becomes `SELECT … FROM t`.
fn apart(text: &str, range: &Range<usize>, mark: String) -> String {
    let bytes = text.as_bytes();
    let touches = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(|&byte| !byte.is_ascii_whitespace() && !b"();,".contains(&byte))
    };
    let before = touches(range.start.checked_sub(1));
    let after = touches(Some(range.end));
    match (before, after) {
        (false, false) => mark,
        (true, false) => format!(" {mark}"),
        (false, true) => format!("{mark} "),
        (true, true) => format!(" {mark} "),
    }
}

/// A function of PostgreSQL has its body in a string, which is outlined like the text around it:
/// the tag of the string, and what it holds.
fn body_in_a_string<'a>(
    text: &'a str,
    tokens: &[Token],
    index: usize,
) -> Option<(&'a str, &'a str)> {
    let token = tokens.get(index)?;
    let is_before = |back: usize, words: &[&str]| {
        let before = index.checked_sub(back).map(|before| tokens[before]);
        before.is_some_and(|before| words.iter().any(|word| before.is_word(text, word)))
    };
    // `DO LANGUAGE plpgsql $$ … $$`
    let follows = is_before(1, &["as", "do"]) || is_before(2, &["language"]);
    let literal = token.text(text);
    if token.kind != Kind::Quoted || !literal.starts_with('$') || !follows {
        return None;
    }
    let tag = literal[1..].find('$').map(|end| &literal[..end + 2])?;
    let inside = literal.strip_prefix(tag)?.strip_suffix(tag)?;
    Some((tag, inside))
}

/// Says of lines that are the same, one after the other, how many there are. A string is one line,
/// however many it has.
fn without_repetition(text: &str, dialect: Option<Dialect>) -> Result<String, Ambiguous> {
    const WORTH_IT: usize = 3;
    let mut lexer = Sql::speaking(text, dialect);
    let mut lines = Vec::new();
    let mut from = 0;
    while let Some(token) = lexer.next()? {
        if token.gap == Gap::Line {
            lines.push(&text[from..token.start]);
            from = token.start;
        }
    }
    lines.push(&text[from..]);
    let mut out = String::with_capacity(text.len());
    for same in lines.chunk_by(|a, b| a.trim_end_matches('\n') == b.trim_end_matches('\n')) {
        let more = same.len() - 1;
        let mark = format!("… {more} more lines like it");
        if more < WORTH_IT || mark.len() >= more * same[0].len() {
            out.extend(same.iter().copied());
            continue;
        }
        out.push_str(same[0]);
        out.push_str(&mark);
        if same[more].ends_with('\n') {
            out.push('\n');
        }
    }
    Ok(out)
}
