//! Lets a line vote for C#.

use super::super::embedded::line_has_sql;
use super::super::votes::{For, Votes};
use super::pattern::{Pattern, first_match, no_match, pattern};
use super::{is_name, is_word, starts_upper};

/// Votes for C# as far as the line looks like it.
pub(super) fn vote(votes: &mut Votes, line: &str, tokens: &[&str]) {
    let beginning = first_match(BEGINNINGS, tokens, is_word).or_else(|| declaration(tokens));
    if let Some((weight, reason)) = beginning {
        votes.add(For::CSharp, weight, reason);
    }
    words(votes, tokens);
    // Other languages have such statements, too, but rarely with SQL in them.
    let is_statement = tokens.last() == Some(&";") && tokens.contains(&"\"\"");
    let is_declaration = matches!(tokens, ["var", name, "=", ..] if is_name(name));
    if is_statement && (is_declaration || calls_upper(tokens)) && line_has_sql(line) {
        votes.add(For::CSharp, 2, "SQL in strings");
    }
}

/// What a line counts by its first tokens.
const BEGINNINGS: &[Pattern] = &[
    no_match("using namespace .."),
    pattern("using var|static ..", 5, "using directives"),
    pattern("global|await using ..", 5, "using directives"),
    pattern("using ( ..", 4, "using statements"),
    pattern("using NAME .|=|; ..", 5, "using directives")
        .last(";")
        .lacks(":"),
    pattern("namespace NAME . ..", 5, "namespaces").last("!:"),
    pattern("namespace NAME", 2, "namespaces"),
    pattern("namespace NAME ;|{", 2, "namespaces"),
    pattern("[ assembly|module : ..", 8, "attributes of an assembly"),
    pattern("[ UPPER ]", 1, "attributes"),
    pattern("[ UPPER ( .. ]", 3, "attributes"),
    pattern("foreach ( ..", 4, "foreach loops")
        .contains("in")
        .lacks("$"),
    pattern("# if|else|endif|elif ..", 1, "directives"),
];

/// Votes for words of C# anywhere in a line.
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

/// Whether a member whose name begins with a capital is called.
fn calls_upper(tokens: &[&str]) -> bool {
    tokens
        .windows(3)
        .any(|window| window[0] == "." && starts_upper(window[1]) && matches!(window[2], "(" | "<"))
}

/// What a line counts that begins with modifiers.
fn declaration(tokens: &[&str]) -> Option<(usize, &'static str)> {
    const FIRST: &str = "public private protected internal static sealed abstract partial readonly";
    const OTHERS: &str = "virtual override async const new unsafe extern event required volatile";
    let is_one_of = |words: &str, token: &str| words.split(' ').any(|word| word == token);
    if !is_one_of(FIRST, tokens[0]) {
        return None;
    }
    let is_modifier = |token: &&&str| is_one_of(FIRST, token) || is_one_of(OTHERS, token);
    let (mut count, mut own) = (0, 0);
    for modifier in tokens.iter().take_while(is_modifier) {
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
    (own > 0).then_some((own, "declarations"))
}
