//! Lets every line of a text vote for the languages it looks like.
//!
//! The weights are rough: 1 for a habit, 2 for evidence, 4 and more for what hardly any other
//! language has. The sum over many lines decides.

mod csharp;
mod other;
mod pattern;
mod razor;
mod sql;
pub(super) mod visual_basic;

use super::Sample;
use super::votes::{For, Votes};

/// How many tokens of a line are read. Longer lines are mostly data.
const MAX_TOKENS: usize = 160;

/// Sums the votes of all lines of a sample.
pub(super) fn votes(sample: &Sample<'_>) -> Votes {
    let mut votes = Votes::default();
    for part in &sample.parts {
        let mut masked = String::new();
        let mut inside = Inside::Code;
        for line in part.lines() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let was_code = matches!(inside, Inside::Code);
            if was_code {
                whole_line(&mut votes, line);
            }
            masked.clear();
            mask(line, &mut inside, &mut masked);
            let tokens = split(&masked);
            if tokens.is_empty() || !was_code && masked.len() < 2 {
                continue;
            }
            csharp::vote(&mut votes, line, &tokens);
            visual_basic::vote(&mut votes, &tokens);
            other::vote(&mut votes, line, &tokens);
            sql::vote(&mut votes, line, &tokens);
        }
    }
    votes
}

/// What contains the beginning of a line.
enum Inside {
    Code,
    Comment,
    /// A multi-line string, with its closing delimiter.
    Text(&'static str),
}

/// Delimiters of multi-line strings, each with the empty string that replaces one. The body of a
/// PostgreSQL function, in `$$`, may be in any language.
const DELIMITERS: [(&str, &str); 3] = [("\"\"\"", "\"\""), ("'''", "\"\""), ("$$", "''")];

/// Copies a line without comments and without the content of strings.
fn mask(line: &str, inside: &mut Inside, masked: &mut String) {
    let bytes = line.as_bytes();
    let mut at = 0;
    match inside {
        Inside::Code => {}
        Inside::Comment => match line.find("*/") {
            Some(end) => at = end + 2,
            None => return,
        },
        Inside::Text(closing) => match line.find(*closing) {
            Some(end) => at = end + closing.len(),
            None => return,
        },
    }
    *inside = Inside::Code;
    while at < bytes.len() {
        let rest = &line[at..];
        let before = masked.bytes().last();
        if let Some(comment) = rest.strip_prefix("/*") {
            masked.push(' ');
            if let Some(end) = comment.find("*/") {
                at += end + 4;
            } else {
                *inside = Inside::Comment;
                return;
            }
            continue;
        }
        let after_blank =
            before.is_none_or(|byte| byte == b' ' || byte == b';' || byte == b',' || byte == b')');
        if rest.starts_with("//") && before != Some(b':')
            || rest.starts_with("--") && after_blank && !rest.starts_with("--;")
        {
            return;
        }
        let delimiter = DELIMITERS
            .into_iter()
            .find(|(delimiter, _)| rest.starts_with(delimiter) && !rest.starts_with("$$\""));
        if let Some((delimiter, empty)) = delimiter {
            masked.push_str(empty);
            match rest[delimiter.len()..].find(delimiter) {
                Some(end) => at += end + 2 * delimiter.len(),
                None if delimiter == "'''" && at == 0 => return,
                None => {
                    *inside = Inside::Text(delimiter);
                    return;
                }
            }
            continue;
        }
        if let quote @ (b'"' | b'\'' | b'`') = bytes[at] {
            match quoted_end(bytes, at, quote) {
                Some(end) => {
                    masked.push_str(if quote == b'\'' { "''" } else { "\"\"" });
                    at = end;
                }
                None if quote == b'`' => {
                    *inside = Inside::Text("`");
                    return;
                }
                // A multi-line string, or a comment of Visual Basic.
                None => {
                    masked.push(char::from(quote));
                    return;
                }
            }
        } else {
            let Some(character) = rest.chars().next() else {
                return;
            };
            masked.push(character);
            at += character.len_utf8();
        }
    }
}

fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' if quote != b'\'' || bytes.get(at + 1) == Some(&b'\'') => at += 2,
            &byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

fn split(masked: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = masked.trim_start();
    while let Some(first) = rest.chars().next()
        && tokens.len() < MAX_TOKENS
    {
        // Non-ASCII characters count as letters, except blanks, which SQL Server accepts, too.
        let ends_word = |character: char| {
            character.is_ascii() && !character.is_ascii_alphanumeric() && character != '_'
                || character.is_whitespace()
        };
        let end = match first {
            '"' | '\'' if rest[1..].starts_with(first) => 2,
            _ if ends_word(first) => 1,
            _ => rest.find(ends_word).unwrap_or(rest.len()),
        };
        tokens.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    tokens
}

/// Votes for a line with its strings and comments.
fn whole_line(votes: &mut Votes, line: &str) {
    let starts = |prefix: &str| line.starts_with(prefix);
    match () {
        () if starts("/// <reference") => votes.add(For::Other, 4, "references of TypeScript"),
        () if starts("/// <") || starts("///<") => {
            votes.add(For::CSharp, 5, "XML documentation comments");
        }
        () if starts("''' <") => votes.add(For::VisualBasic, 5, "XML documentation comments"),
        () if starts("#region")
            || starts("#endregion")
            || starts("#nullable")
            || starts("#pragma warning") =>
        {
            votes.add(For::CSharp, 4, "directives of C#");
        }
        () if starts("#Region") || starts("#End Region") => {
            votes.add(For::VisualBasic, 4, "directives of Visual Basic");
        }
        () if starts("-- ") || starts("--\t") || line == "--" => {
            votes.add(For::Sql, 1, "comments after two dashes");
        }
        () if starts("#include") || starts("#ifndef") || starts("#import") => {
            votes.add(For::Other, 6, "directives of C");
        }
        () if starts("#!") => votes.add(For::Other, 6, "shebang lines"),
        () if starts("```") || starts("~~~") => votes.add(For::Other, 40, "fences of Markdown"),
        () if starts("## ") || starts("### ") => votes.add(For::Other, 8, "headings of Markdown"),
        () if starts("# ") => votes.add(For::Other, 2, "headings or comments after `#`"),
        () if ["@charset", "@media", "@font-face", "@keyframes", "@import"]
            .iter()
            .any(|rule| starts(rule)) =>
        {
            votes.add(For::Other, 6, "style sheets");
        }
        () if starts("<!--") => votes.add(For::Prose, 2, "markup"),
        () if starts("* ") || starts("- ") || starts("> ") => votes.add(For::Prose, 1, "lists"),
        () if starts("* @") => votes.add(For::Other, 1, "documentation comments of Java"),
        () if starts("</") || starts("<") && line.ends_with('>') && !line.contains("As ") => {
            votes.add(For::Prose, 1, "markup");
        }
        () => {}
    }
    razor::vote(votes, line);
    if opens_after_blank(line, "$\"") {
        votes.add(For::CSharp, 2, "interpolated strings");
    } else if opens_after_blank(line, "@\"") {
        votes.add(For::CSharp, 1, "verbatim strings");
    }
    if line.contains("===") && !line.contains("====") {
        votes.add(For::Other, 2, "operators of JavaScript");
    }
}

/// Whether a string opens like this where an expression may begin.
fn opens_after_blank(line: &str, opening: &str) -> bool {
    line.match_indices(opening).any(|(at, _)| {
        at > 0
            && matches!(
                line.as_bytes()[at - 1],
                b' ' | b'(' | b'=' | b',' | b'+' | b'[' | b'$' | b'@'
            )
    })
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

fn starts_upper(token: &str) -> bool {
    token.starts_with(|first: char| first.is_uppercase())
}

/// A word or a class of words in the tables for C# and Visual Basic.
fn is_word(expected: &str, token: &str) -> bool {
    match expected {
        "NAME" => is_name(token),
        "UPPER" => starts_upper(token),
        _ => expected == token,
    }
}
