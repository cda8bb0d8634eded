//! Finds SQL in the strings of .NET code.

use std::ops::Range;

use memchr::memchr;

use super::Sample;
use crate::language::Syntax;
use crate::lex::csharp::CSharp;
use crate::lex::visual_basic::VisualBasic;
use crate::lex::{Kind, Lexer};

/// Whether a string contains a statement.
pub(super) fn has_sql(sample: &Sample<'_>, syntax: Option<Syntax>) -> bool {
    sample.parts.iter().any(|part| match syntax {
        Some(Syntax::VisualBasic) => any_string(&mut VisualBasic::new(part)),
        _ => any_string(&mut CSharp::new(part)),
    })
}

/// Whether a string in a line of C# contains a statement.
pub(super) fn line_has_sql(line: &str) -> bool {
    any_string(&mut CSharp::new(line))
}

fn any_string<'a>(lexer: &mut impl Lexer<'a>) -> bool {
    let text = lexer.text();
    while let Ok(Some(token)) = lexer.next() {
        if token.kind == Kind::Quoted && opens_statement(token.text(text)) {
            return true;
        }
    }
    false
}

/// The strings of C# that contain a statement, each from its first literal to the last one
/// concatenated with `+`.
pub(crate) fn statements(code: &str) -> Vec<Range<usize>> {
    if memchr(b'"', code.as_bytes()).is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut lexer = CSharp::new(code);
    // The concatenated strings so far, and whether another one follows.
    let mut run: Option<(Range<usize>, String)> = None;
    let mut is_added = false;
    let mut end = |run: Option<(Range<usize>, String)>| {
        found.extend(
            run.filter(|(_, content)| opens_statement(content))
                .map(|(span, _)| span),
        );
    };
    while let Ok(Some(token)) = lexer.next() {
        match (&mut run, token.kind) {
            (_, kind) if !kind.is_code() => {}
            (Some((span, content)), Kind::Quoted) if is_added => {
                content.truncate(content.trim_end_matches('"').len());
                content.push_str(token.text(code).trim_start_matches(['$', '@', '"']));
                span.end = token.end;
                is_added = false;
            }
            (_, Kind::Quoted) => {
                let begun = (token.start..token.end, token.text(code).to_owned());
                end(run.replace(begun));
                is_added = false;
            }
            (Some(_), _) if token.is_mark(code, b'+') && !is_added => is_added = true,
            _ => {
                end(run.take());
                is_added = false;
            }
        }
    }
    end(run);
    found
}

/// How much of a string is read.
const MAX_BYTES: usize = 4096;

/// What can follow `CREATE`, `ALTER`, `DROP` or `TRUNCATE`.
const OBJECTS: &str = "table view procedure proc function index unique trigger schema database \
    or temporary temp type sequence nonclustered clustered";

/// Whether a literal looks like a statement.
pub(crate) fn opens_statement(literal: &str) -> bool {
    let end = literal.floor_char_boundary(MAX_BYTES.min(literal.len()));
    let content = literal[..end]
        .trim_start_matches(['$', '@', '"', '\''])
        .trim_start();
    let written = content
        .split(|byte: char| !(byte.is_alphanumeric() || byte == '_' || byte == '*' || byte == '@'))
        .filter(|word| !word.is_empty());
    let first_written = written.clone().next().unwrap_or_default();
    let mut words = written.map(str::to_ascii_lowercase);
    let Some(first) = words.next() else {
        return false;
    };
    // Prose begins with the same words, but in mixed case, or with an article after them.
    let written_as_code = first_written.starts_with(|c: char| c.is_ascii_uppercase())
        == first_written.chars().all(|c| c.is_ascii_uppercase());
    let second = words.next().unwrap_or_default();
    // A column may be called `a`, but then no noun follows.
    let after_first = content
        .split_once(first_written)
        .map_or("", |(_, rest)| rest);
    let after_second = after_first.trim_start().strip_prefix(['a', 'A']);
    let is_column = second == "a"
        && (after_second.is_some_and(|rest| rest.trim_start().starts_with(','))
            || words.clone().next().as_deref() == Some("from"));
    if !written_as_code
        || !is_column
            && matches!(
                second.as_str(),
                "a" | "an" | "the" | "your" | "this" | "one"
            )
    {
        return false;
    }
    match first.as_str() {
        "select" => {
            words.any(|word| word == "from")
                || second.starts_with('@')
                || second.bytes().all(|byte| byte.is_ascii_digit()) && !second.is_empty()
        }
        "insert" => second == "into" || words.any(|word| word == "values"),
        "update" => words.any(|word| word == "set"),
        "delete" => second == "from" || words.any(|word| word == "where"),
        "create" | "alter" | "drop" | "truncate" => {
            OBJECTS.split(' ').any(|object| object == second)
        }
        "merge" => second == "into" || words.any(|word| word == "using"),
        "with" => {
            words.next().as_deref() == Some("select")
                || second != "a" && words.any(|word| word == "select")
        }
        "exec" | "execute" => content.starts_with("EXEC") || second.starts_with("sp_"),
        "declare" => second.starts_with('@'),
        _ => false,
    }
}
