//! Reads the SQL inside comments that only `MySQL` executes.

use super::dialect::Dialect;
use super::sql::Sql;
use super::{Ambiguous, Kind, Lexer, Token, skip_space};

/// The tokens that a database executes: all but comments, including those in executed comments.
pub(crate) fn executed_tokens(
    text: &str,
    dialect: Option<Dialect>,
) -> Result<Vec<Token>, Ambiguous> {
    let mut lexer = Sql::with_dialect(text, dialect);
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        if token.kind.is_code() {
            tokens.push(token);
        }
    }
    Ok(with_executed(text, dialect, tokens))
}

/// Adds the tokens inside comments that only `MySQL` executes, such as `/*!50706 SELECT 1 */`. The
/// delimiters of the comment become hints.
pub(crate) fn with_executed(
    text: &str,
    dialect: Option<Dialect>,
    tokens: Vec<Token>,
) -> Vec<Token> {
    if !tokens.iter().any(|token| token.kind == Kind::Hint) {
        return tokens;
    }
    let mut all = Vec::with_capacity(tokens.len());
    for token in tokens {
        match executed(text, dialect, token) {
            Some(inside) => all.extend(inside),
            None => all.push(token),
        }
    }
    all
}

/// The first of the hints directly before a token, or the token.
pub(crate) fn with_hints_before(tokens: &[Token], index: usize) -> usize {
    let before = tokens[..index].iter().rev();
    let hints = before.take_while(|token| token.kind == Kind::Hint).count();
    #[cfg(test)]
    HINTS_PASSED.set(HINTS_PASSED.get() + hints);
    index - hints
}

#[cfg(test)]
thread_local! {
    /// How many hints this thread has passed.
    pub(crate) static HINTS_PASSED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn executed(text: &str, dialect: Option<Dialect>, comment: Token) -> Option<Vec<Token>> {
    let runs = comment.kind == Kind::Hint && matches!(dialect, None | Some(Dialect::MySql));
    let body = runs.then(|| comment.text(text))?;
    let body = body.strip_prefix("/*!").or(body.strip_prefix("/*M!"))?;
    let inside = body
        .trim_start_matches(|digit: char| digit.is_ascii_digit())
        .strip_suffix("*/")?;
    let close = comment.end - "*/".len();
    let from = close - inside.len();
    let mut tokens = vec![Token {
        end: from,
        ..comment
    }];
    let mut lexer = Sql::with_dialect(inside, dialect);
    while let Some(token) = lexer.next().ok()? {
        if token.kind.is_code() {
            tokens.push(Token {
                start: from + token.start,
                end: from + token.end,
                ..token
            });
        }
    }
    let (_, gap) = skip_space(inside.as_bytes(), inside.trim_end().len());
    tokens.push(Token {
        start: close,
        gap,
        ..comment
    });
    Some(tokens)
}
