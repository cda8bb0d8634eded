//! Has a line vote for C#.

use super::super::embedded::line_has_sql;
use super::super::votes::{For, Votes};
use super::{is_name, starts_upper};

/// Votes for C# as far as the line looks like it.
pub(super) fn vote(votes: &mut Votes, line: &str, tokens: &[&str]) {
    beginning(votes, tokens);
    words(votes, tokens);
    // Others write such a statement too, but hardly with SQL in it.
    let is_statement = tokens.last() == Some(&";") && tokens.contains(&"\"\"");
    let is_written_so = matches!(tokens, ["var", name, "=", ..] if is_name(name));
    if is_statement && (is_written_so || calls_upper(tokens)) && line_has_sql(line) {
        votes.add(For::CSharp, 2, "SQL in strings");
    }
}

/// What a line says by how it begins.
fn beginning(votes: &mut Votes, tokens: &[&str]) {
    let mut add = |weight, reason| votes.add(For::CSharp, weight, reason);
    let last = tokens.last().copied().unwrap_or_default();
    match tokens {
        ["using", "namespace", ..] => {}
        ["using", "var" | "static", ..] | ["global" | "await", "using", ..] => {
            add(5, "using directives");
        }
        ["using", "(", ..] => add(4, "using statements"),
        ["using", name, "." | "=" | ";", ..]
            if is_name(name) && last == ";" && !tokens.contains(&":") =>
        {
            add(5, "using directives");
        }
        ["namespace", name, ".", ..] if is_name(name) && last != ":" => add(5, "namespaces"),
        ["namespace", name] | ["namespace", name, ";" | "{"] if is_name(name) => {
            add(2, "namespaces");
        }
        ["[", "assembly" | "module", ":", ..] => add(8, "attributes of an assembly"),
        ["[", name, "]"] if starts_upper(name) => add(1, "attributes"),
        ["[", name, "(", .., "]"] if starts_upper(name) => add(3, "attributes"),
        ["foreach", "(", rest @ ..] if !rest.contains(&"$") && rest.contains(&"in") => {
            add(4, "foreach loops");
        }
        ["#", "if" | "else" | "endif" | "elif", ..] => add(1, "directives"),
        [
            "public" | "private" | "protected" | "internal" | "static" | "sealed" | "abstract"
            | "partial" | "readonly" | "record",
            ..,
        ] => declaration(&mut add, tokens),
        _ => {}
    }
}

/// What the words of a line say, wherever they stand.
fn words(votes: &mut Votes, tokens: &[&str]) {
    let mut add = |weight, reason| votes.add(For::CSharp, weight, reason);
    for (index, token) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1).copied().unwrap_or_default();
        let after = tokens.get(index + 2).copied().unwrap_or_default();
        let before = index.checked_sub(1).map_or("", |before| tokens[before]);
        match *token {
            "get" | "set" | "init"
                if next == ";"
                    && matches!(before, "{" | ";" | "private" | "protected" | "internal") =>
            {
                add(5, "properties");
            }
            "get" | "set" if next == "=" && after == ">" => add(3, "properties"),
            "string" | "bool" | "decimal" | "object" | "byte" | "long" | "int" | "double"
                if is_name(next)
                    && before != ":"
                    && matches!(after, "=" | "," | ")" | "(" | ";" | "{") =>
            {
                add(
                    if matches!(*token, "string" | "decimal" | "object" | "bool") {
                        2
                    } else {
                        0
                    },
                    "types of C#",
                );
            }
            "string" if next == "." || next == "?" && after != ":" && before != ":" => {
                add(2, "types of C#");
            }
            "string" if next == "[" && after == "]" && before != ":" => add(1, "types of C#"),
            "nameof" if next == "(" => add(4, "nameof"),
            "typeof" if next == "(" && starts_upper(after) => add(2, "typeof"),
            "Task" | "ValueTask" if before == "async" => add(5, "async tasks"),
            "Task" | "IEnumerable" | "IList" | "ICollection" | "IReadOnlyList" | "Func"
            | "Action" | "Nullable" | "IQueryable" | "IAsyncEnumerable" | "Span"
            | "KeyValuePair" | "Dictionary"
                if next == "<" =>
            {
                add(3, "generic types of .NET");
            }
            "Console"
                if next == "." && (after.starts_with("Write") || after.starts_with("Read")) =>
            {
                add(5, "the console of .NET");
            }
            "out" | "ref" | "in" if next == "var" => add(3, "out variables"),
            "base" if next == "(" && before == ":" => add(4, "calls of base"),
            "where" if after == ":" && is_name(next) => add(4, "constraints"),
            "partial" if matches!(next, "class" | "struct" | "void" | "record" | "interface") => {
                add(5, "partial types");
            }
            "sealed" | "static" if next == "class" => add(3, "types"),
            "is" if next == "not"
                && after == "null"
                && !before.is_empty()
                && !tokens.contains(&"where") =>
            {
                add(1, "patterns");
            }
            "?" if next == "?" => add(1, "operators of C#"),
            "new" if next == "(" && after == ")" => add(1, "creations"),
            "catch" if next == "(" && after.ends_with("Exception") => add(1, "exceptions"),
            "stackalloc" | "checked" | "yield" if next == "return" || next == "break" => {
                add(2, "iterators");
            }
            "var" if is_name(next) && after == "=" && calls_upper(tokens) => add(1, "variables"),
            name if starts_upper(name) && name.ends_with("Async") && matches!(next, "(" | "<") => {
                add(2, "asynchronous calls");
            }
            name if starts_upper(name)
                && before == "."
                && next == "<"
                && starts_upper(after)
                && tokens.get(index + 3) == Some(&">")
                && tokens.get(index + 4) == Some(&"(") =>
            {
                add(3, "generic calls");
            }
            "CancellationToken"
            | "Guid"
            | "DateTimeOffset"
            | "TimeSpan"
            | "IServiceCollection"
            | "ILogger"
            | "HttpContext"
            | "IConfiguration"
            | "ArgumentNullException"
            | "InvalidOperationException"
            | "DbContext"
            | "migrationBuilder"
            | "StringComparison"
            | "CultureInfo"
            | "EventArgs" => {
                add(2, "types of .NET");
            }
            _ => {}
        }
    }
}

/// Whether something is called by a name that begins with a capital.
fn calls_upper(tokens: &[&str]) -> bool {
    tokens
        .windows(3)
        .any(|window| window[0] == "." && starts_upper(window[1]) && matches!(window[2], "(" | "<"))
}

/// A line that begins with modifiers.
fn declaration(add: &mut impl FnMut(usize, &'static str), tokens: &[&str]) {
    let modifiers = tokens.iter().take_while(|token| is_modifier(token));
    let (mut count, mut own) = (0, 0);
    for modifier in modifiers {
        count += 1;
        own += match *modifier {
            "internal" | "override" | "virtual" | "readonly" | "partial" | "unsafe" | "extern"
            | "const" => 2,
            "async" | "sealed" | "new" | "event" => 1,
            _ => 0,
        };
    }
    let rest = &tokens[count..];
    match rest {
        ["class" | "struct" | "interface" | "record", name, ":", ..] if is_name(name) => own += 4,
        ["class" | "struct" | "interface" | "enum" | "record", _, ..] => own += 1,
        ["delegate", ..] => own += 4,
        [
            "string" | "object" | "decimal" | "bool" | "uint" | "byte" | "dynamic",
            ..,
        ] => own += 3,
        [kind, name, "{" | "=" | "(" | ";", ..] if starts_upper(kind) && starts_upper(name) => {
            own += 2;
        }
        [kind, name] if starts_upper(kind) && starts_upper(name) => own += 2,
        ["void" | "int" | "long" | "double" | "float", name, "(", ..] if starts_upper(name) => {
            own += 3;
        }
        [name, "(", ..] if starts_upper(name) => own += 1,
        _ => {}
    }
    if count > 0 && own > 0 {
        add(own, "declarations");
    }
}

fn is_modifier(token: &str) -> bool {
    matches!(
        token,
        "public"
            | "private"
            | "protected"
            | "internal"
            | "static"
            | "readonly"
            | "sealed"
            | "abstract"
            | "virtual"
            | "override"
            | "async"
            | "partial"
            | "const"
            | "new"
            | "unsafe"
            | "extern"
            | "event"
            | "required"
            | "volatile"
    )
}
