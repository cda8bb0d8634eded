//! Reduces SQL to an outline: definitions and the skeleton of their statements.
//!
//! There is no parser, because no grammar covers real SQL. The first words of each statement decide
//! what stays. A table keeps its columns, a procedure its parameters, and its body the tables that
//! are read and written and the predicates on them. Lists of columns, assigned values, rows,
//! variables and control flow are left out.

mod reader;

use std::ops::Range;

use super::{Elision, lines_mark, without};
use crate::compact::layout::{Docs, LaidOut, Style, lay_out};
use crate::lex::dialect::Dialect;
use crate::lex::executed::executed_tokens;
use crate::lex::sql::Sql;
use crate::lex::{Ambiguous, Gap, Kind, Lexer, Token};

/// The outline of a text, already without comments and layout.
pub(crate) fn outline(text: &str) -> Result<LaidOut, Ambiguous> {
    outline_in(text, Sql::new(text).dialect())
}

/// The outline of a text of a given dialect, or of an unknown one. The outline may lack the words
/// that decided the dialect, so it is read with the dialect of the whole text.
pub(crate) fn outline_in(text: &str, dialect: Option<Dialect>) -> Result<LaidOut, Ambiguous> {
    /// A function in a string in a function.
    const DEPTH: usize = 2;
    let skeleton = skeleton(text, dialect, DEPTH)?;
    let shorter = laid_out(&skeleton, dialect)?;
    Ok(LaidOut {
        text: without_repetition(&shorter.text, dialect)?,
        ..shorter
    })
}

fn laid_out(text: &str, dialect: Option<Dialect>) -> Result<LaidOut, Ambiguous> {
    lay_out(
        &mut Sql::with_dialect(text, dialect),
        Docs::Drop,
        Style::Sql,
    )
}

/// The text with only the parts that belong to the outline.
fn skeleton(text: &str, dialect: Option<Dialect>, depth: usize) -> Result<String, Ambiguous> {
    let tokens = executed_tokens(text, dialect)?;
    let mut kept = reader::kept_tokens(text, &tokens);
    keep_around_kept(text, &tokens, &mut kept);
    let elisions = elisions(text, &tokens, &kept, |inside| {
        let depth = depth.checked_sub(1)?;
        let body = skeleton(inside, dialect, depth).ok()?;
        Some(laid_out(&body, dialect).ok()?.text)
    });
    Ok(without(text, &elisions))
}

/// Closes a comment that `MySQL` executes.
const CLOSES_EXECUTED: &str = "*/";

/// Whether a hint only opens a comment that `MySQL` executes: `/*!50706`.
fn opens_executed(hint: &str) -> bool {
    hint.starts_with("/*") && !hint.ends_with("*/")
}

/// Keeps the opening and closing of an executed comment around the tokens that stay in it.
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

/// The runs of tokens to leave out, each with its mark.
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
            // The word before a body must stay, because it marks the string as a body.
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
        // A line command is recognised by what precedes it, which may be left out, and an executed
        // comment has two ends.
        let mut run = tokens[from..at].iter();
        let must_go = run.any(|it| matches!(it.kind, Kind::Line | Kind::Hint));
        if mark.len() < piece.len() || must_go {
            elisions.push(Elision { range, mark });
        }
    }
    elisions
}

/// Separates a mark from the names around it: `SELECT'a'FROM t` becomes `SELECT … FROM t`.
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

/// The tag and the content of a string that is the body of a PostgreSQL function. The content is
/// outlined like the text around it.
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

/// Replaces runs of equal lines by their number. A string counts as one line.
fn without_repetition(text: &str, dialect: Option<Dialect>) -> Result<String, Ambiguous> {
    const WORTH_IT: usize = 3;
    let mut lexer = Sql::with_dialect(text, dialect);
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
