//! Has a line vote for what is neither SQL nor .NET.

use super::super::votes::{For, Votes};
use super::{is_name, starts_upper};

/// Votes for other languages, for data and for prose as far as the line looks like it.
pub(super) fn vote(votes: &mut Votes, line: &str, tokens: &[&str]) {
    beginning(votes, line, tokens);
    words(votes, tokens);
    prose(votes, line, tokens);
}

/// What a line says by how it begins.
#[expect(clippy::too_many_lines, reason = "one table of beginnings")]
fn beginning(votes: &mut Votes, line: &str, tokens: &[&str]) {
    let mut add = |weight, reason| votes.add(For::Other, weight, reason);
    let last = tokens.last().copied().unwrap_or_default();
    match tokens {
        ["package", .., ";"] | ["import", "static", .., ";"] => add(8, "packages of Java"),
        ["package", name] if is_name(name) => add(6, "packages"),
        ["package", name, ".", ..] if is_name(name) && !tokens.contains(&"(") => add(6, "packages"),
        ["import", name, ".", .., ";"] if is_name(name) => add(8, "imports of Java"),
        ["import", "\"\"" | "''" | "{" | "*" | "type", ..] => add(6, "imports of JavaScript"),
        ["import", ..] if tokens.contains(&"from") => add(6, "imports of JavaScript"),
        ["import", name, ..] if is_name(name) && last != ";" && tokens.len() < 12 => {
            add(3, "imports");
        }
        ["from", name, ..] if is_name(name) && tokens.contains(&"import") => {
            add(8, "imports of Python");
        }
        ["from", ".", ..] if tokens.contains(&"import") => add(8, "imports of Python"),
        [
            "export",
            "default" | "const" | "class" | "function" | "interface" | "type" | "async" | "enum"
            | "abstract" | "*" | "{",
            ..,
        ] => add(6, "exports"),
        [
            "@",
            "Override" | "Test" | "Autowired" | "Bean" | "Component" | "Nullable" | "Configuration"
            | "Deprecated",
            ..,
        ] => add(6, "annotations"),
        ["@", name] | ["@", name, "(", ..]
            if starts_upper(name) && !line.starts_with("@Html") && !line.starts_with("@Model") =>
        {
            add(2, "annotations");
        }
        ["def", .., ":"] | ["async", "def", ..] => add(6, "functions of Python"),
        ["def", name, ..] if is_name(name) => add(4, "functions of Ruby or Python"),
        ["class", _, ":"] | ["class", _, "(", .., ":"] => add(5, "classes of Python"),
        [
            "if" | "elif" | "for" | "while" | "with" | "else" | "try" | "except" | "finally",
            ..,
            ":",
        ] => add(2, "blocks of Python"),
        ["fun", name, ..] | ["override" | "private" | "internal", "fun", name, ..]
            if is_name(name) =>
        {
            add(5, "functions of Kotlin");
        }
        ["val", name, ..] if is_name(name) => add(3, "values of Kotlin or Scala"),
        ["func", ..] => add(4, "functions of Go or Swift"),
        ["fn" | "impl", ..] | ["pub", "fn" | "struct" | "enum" | "mod" | "use" | "(", ..] => {
            add(4, "items of Rust");
        }
        ["use", name, ":", ":", ..] if is_name(name) => add(5, "items of Rust"),
        ["let", _, ..] if last == ";" || tokens.contains(&"=") => add(2, "let"),
        ["const", name, "=" | ":", ..] if is_name(name) => add(3, "constants of JavaScript"),
        ["const", "{" | "[", ..] => add(3, "constants of JavaScript"),
        ["function", name, "(", ..] if is_name(name) && last == "{" => {
            add(4, "functions of JavaScript");
        }
        ["async", "function", ..] => add(4, "functions of JavaScript"),
        ["typedef" | "extern" | "inline" | "template", ..] if matches!(last, ";" | "{" | ">") => {
            add(3, "C");
        }
        ["struct", _] | ["struct", _, "{"] if tokens[0] == "struct" => add(1, "C"),
        ["static", "inline" | "struct" | "char" | "const", ..] | ["const", "char", ..] => {
            add(4, "C");
        }
        ["#", "if", "defined" | "!", ..] | ["#", "undef", ..] => add(2, "directives of C"),
        ["#", "define" | "include" | "ifdef" | "ifndef", ..] => add(3, "directives of C"),
        ["fi" | "done" | "esac" | "then"] => add(4, "shell"),
        ["echo", ..] if last != ";" => add(2, "shell"),
        ["param", "(", ..] => add(2, "PowerShell"),
        ["function", name, "-", ..] if starts_upper(name) => add(5, "PowerShell"),
        [
            "RUN" | "ENTRYPOINT" | "CMD" | "WORKDIR" | "EXPOSE" | "ENV",
            ..,
        ] => add(4, "a container's recipe"),
        ["[", name, "]"] if !starts_upper(name) => add(2, "sections"),
        ["$", name, "=", ..] if is_name(name) => add(3, "variables of a script"),
        ["use", "strict"] | ["\"\"" | "''", ";"] => add(1, "JavaScript"),
        [key, ":"]
            if is_name(key)
                && !matches!(
                    *key,
                    "default" | "public" | "private" | "case" | "protected"
                ) =>
        {
            add(1, "keys of YAML");
        }
        [key, ":", value, ..]
            if is_name(key)
                && is_name(value)
                && !matches!(last, ";" | "{" | ")" | ",")
                && line.starts_with(key)
                && *key != "default" =>
        {
            add(1, "keys of YAML");
        }
        [key, "=", ..]
            if is_name(key) && !matches!(last, ";" | "," | "(" | "{" | "_") && tokens.len() < 8 =>
        {
            add(1, "assignments without an end");
        }
        _ => {}
    }
}

/// What the words of a line say, wherever they stand.
fn words(votes: &mut Votes, tokens: &[&str]) {
    let mut add = |weight, reason| votes.add(For::Other, weight, reason);
    for (index, token) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1).copied().unwrap_or_default();
        let after = tokens.get(index + 2).copied().unwrap_or_default();
        let before = index.checked_sub(1).map_or("", |before| tokens[before]);
        match *token {
            "extends" | "implements" if is_name(next) && index > 0 => {
                add(4, "inheritance in words");
            }
            "throws" if is_name(next) && before == ")" => add(4, "exceptions of Java"),
            "final" if is_name(next) => add(2, "final"),
            "boolean" if is_name(next) => add(3, "types of Java"),
            "String" if is_name(next) => add(1, "types of Java"),
            "System"
                if next == "."
                    && matches!(after, "out" | "err" | "currentTimeMillis" | "getProperty") =>
            {
                add(5, "Java");
            }
            "instanceof" | "undefined" => add(3, "JavaScript or Java"),
            "super" if next == "(" || next == "." => add(2, "super"),
            "self" if next == "." => add(2, "self"),
            "require" if next == "(" && after != ")" => add(3, "JavaScript"),
            "console" if next == "." => add(3, "JavaScript"),
            "module" if next == "." && after == "exports" => add(6, "JavaScript"),
            "document" | "window" | "process" if next == "." => add(2, "JavaScript"),
            "function" if next == "(" => add(3, "JavaScript"),
            "std" if next == ":" && after == ":" => add(4, "C++"),
            "nullptr" => add(3, "C++"),
            "char" if before == "const" || next == "*" => add(3, "C"),
            "struct" if after == "*" => add(2, "C"),
            // By itself it is a statement of PL/SQL that does nothing.
            "NULL"
                if next == ";"
                    && matches!(
                        before.to_ascii_lowercase().as_str(),
                        "" | ";" | "begin" | "then"
                    ) => {}
            "sizeof" | "NULL" if next == "(" || next == ")" || next == ";" => add(1, "C"),
            "$" if is_name(next)
                && !matches!(next, "if" | "then" | "else" | "elsif" | "end" | "error") =>
            {
                add(1, "variables of a script");
            }
            "$" if next == "(" && is_name(after) || next == "." && is_name(after) => {
                add(1, "variables of a script");
            }
            "number" | "string" | "boolean" | "any" | "void" | "never" | "unknown"
                if before == ":" && index > 1 =>
            {
                add(2, "types of TypeScript");
            }
            "-" if next == ">" => add(1, "arrows"),
            "None" | "True" | "False" if before != "." && !tokens.contains(&";") => {
                add(1, "constants of Python");
            }
            "elif" | "lambda" => add(2, "Python"),
            "px" | "rem" | "em"
                if before.bytes().all(|byte| byte.is_ascii_digit()) && !before.is_empty() =>
            {
                add(2, "style sheets");
            }
            _ => {}
        }
    }
}

/// Sentences: many words, hardly any signs.
fn prose(votes: &mut Votes, line: &str, tokens: &[&str]) {
    let words = tokens.iter().filter(|token| is_name(token)).count();
    let common = tokens.iter().filter(|token| {
        matches!(
            **token,
            "the"
                | "The"
                | "a"
                | "of"
                | "to"
                | "you"
                | "your"
                | "this"
                | "that"
                | "it"
                | "are"
                | "be"
                | "an"
                | "will"
                | "can"
                | "for"
                | "with"
        )
    });
    let signs = tokens
        .iter()
        .filter(|token| matches!(**token, ";" | "{" | "}" | "=" | "(" | "''"))
        .count();
    let common = common.count();
    let command = line.starts_with('\\')
        || ["prompt", "rem", "remark"]
            .iter()
            .any(|word| tokens[0].eq_ignore_ascii_case(word));
    if !command
        && signs == 0
        && words >= 4
        && (common >= 2 || common >= 1 && line.ends_with(['.', ':', '!', '?', ',']))
    {
        votes.add(
            For::Prose,
            if line.ends_with(['.', ':', '?', '!']) {
                4
            } else {
                3
            },
            "sentences",
        );
    }
}
