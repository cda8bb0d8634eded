//! Has every line of a text vote for what it looks like.
//!
//! The weights are rough on purpose: 1 for a habit, 2 for a sign, 4 and more for what hardly
//! any other language has. A text has many lines, and it is their sum that decides.

use super::Sample;
use super::sql_line;
use super::votes::{For, Votes};

/// Tokens of a line that are looked at; data has longer lines, and says no more.
const LOOKED_AT: usize = 160;

/// Lets all lines of a sample vote.
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
            csharp(&mut votes, &tokens);
            visual_basic(&mut votes, &tokens);
            other(&mut votes, line, &tokens);
            sql_line::vote(&mut votes, line, &tokens);
        }
    }
    votes
}

/// What a line begins in the middle of.
enum Inside {
    Code,
    Comment,
    /// A string of many lines, and what ends it.
    Text(&'static str),
}

/// Writes a line without its comments and without what is in its strings.
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
        if rest.starts_with("/*") {
            masked.push(' ');
            match rest[2..].find("*/") {
                Some(end) => at += end + 4,
                None => {
                    *inside = Inside::Comment;
                    return;
                }
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
        if let Some(closing) = ["\"\"\"", "'''"]
            .into_iter()
            .find(|quotes| rest.starts_with(quotes))
        {
            masked.push_str("\"\"");
            match rest[3..].find(closing) {
                Some(end) => at += end + 6,
                None if closing == "'''" && at == 0 => return,
                None => {
                    *inside = Inside::Text(closing);
                    return;
                }
            }
            continue;
        }
        // What a function of PostgreSQL does can be written in any language.
        if rest.starts_with("$$") && !rest.starts_with("$$\"") {
            masked.push_str("''");
            match rest[2..].find("$$") {
                Some(end) => at += end + 4,
                None => {
                    *inside = Inside::Text("$$");
                    return;
                }
            }
            continue;
        }
        match bytes[at] {
            quote @ (b'"' | b'\'' | b'`') => match quoted_end(bytes, at, quote) {
                Some(end) => {
                    masked.push_str(if quote == b'\'' { "''" } else { "\"\"" });
                    at = end;
                }
                None if quote == b'`' => {
                    *inside = Inside::Text("`");
                    return;
                }
                // A string of many lines, or a comment of Visual Basic: nothing more to see here.
                None => {
                    masked.push(char::from(quote));
                    return;
                }
            },
            _ => {
                let Some(character) = rest.chars().next() else {
                    return;
                };
                masked.push(character);
                at += character.len_utf8();
            }
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
    let mut at = 0;
    let bytes = masked.as_bytes();
    while at < bytes.len() && tokens.len() < LOOKED_AT {
        if bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        let mut end = at + 1;
        if is_word(bytes[at]) {
            while end < bytes.len() && is_word(bytes[end]) {
                end += 1;
            }
        } else if matches!(bytes[at], b'"' | b'\'') && bytes.get(at + 1) == Some(&bytes[at]) {
            end += 1;
        }
        tokens.push(&masked[at..end]);
        at = end;
    }
    tokens
}

/// What a line says before strings and comments are taken out of it.
fn whole_line(votes: &mut Votes, line: &str) {
    let starts = |prefix: &str| line.starts_with(prefix);
    match () {
        () if starts("/// <reference") => votes.add(For::Other, 4, "references of TypeScript"),
        () if starts("/// <") || starts("///<") => {
            votes.add(For::CSharp, 5, "XML documentation comments")
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
            votes.add(For::VisualBasic, 4, "directives of Visual Basic")
        }
        () if starts("-- ") || starts("--\t") || line == "--" => {
            votes.add(For::Sql, 1, "comments after two dashes")
        }
        () if starts("#include") || starts("#ifndef") || starts("#import") => {
            votes.add(For::Other, 6, "directives of C")
        }
        () if starts("#!") => votes.add(For::Other, 6, "a script's first line"),
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
    razor(votes, line);
    if opens_after_blank(line, "$\"") {
        votes.add(For::CSharp, 2, "interpolated strings");
    } else if opens_after_blank(line, "@\"") {
        votes.add(For::CSharp, 1, "verbatim strings");
    }
    if line.contains("===") && !line.contains("====") {
        votes.add(For::Other, 2, "operators of JavaScript");
    }
}

/// Whether a string opens like this where an expression can begin.
fn opens_after_blank(line: &str, opening: &str) -> bool {
    line.match_indices(opening).any(|(at, _)| {
        at > 0
            && matches!(
                line.as_bytes()[at - 1],
                b' ' | b'(' | b'=' | b',' | b'+' | b'[' | b'$' | b'@'
            )
    })
}

fn razor(votes: &mut Votes, line: &str) {
    for (at, _) in line.match_indices('@').take(8) {
        if at > 0 && line.as_bytes()[at - 1].is_ascii_alphanumeric() {
            continue;
        }
        let rest = &line[at + 1..];
        let word = rest
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        let after = rest[word.len()..].trim_start().bytes().next();
        let is_certain = match word {
            "" => at == 0 && rest.starts_with('*'),
            "T" => after == Some(b'('),
            "page" => after == Some(b'"') || after.is_none(),
            "code" | "functions" => at == 0 && (after == Some(b'{') || after.is_none()),
            "addTagHelper" | "RenderBody" | "RenderSection" => true,
            "await" => after.is_some_and(|byte| byte.is_ascii_uppercase()),
            "model" | "using" | "inherits" | "layout" | "namespace" | "inject" | "section"
            | "implements" => {
                at == 0
                    && after.is_some_and(|byte| byte.is_ascii_alphabetic())
                    && !line.ends_with(';')
            }
            "Html" | "Model" | "ViewBag" | "ViewData" | "Url" => {
                after == Some(b'.') || after == Some(b'[')
            }
            _ => false,
        };
        if is_certain {
            votes.add(For::Razor, 6, "directives of Razor");
        } else if matches!(word, "if" | "foreach" | "for" | "switch") && after == Some(b'(')
            || at == 0 && rest.starts_with('{')
        {
            votes.add(For::Razor, 2, "code of Razor");
        } else if line.starts_with('<') && word.starts_with(|c: char| c.is_alphabetic()) {
            votes.add(For::Razor, 1, "values in markup");
        }
    }
    if line.contains(" asp-")
        || line.contains("@bind")
        || line.contains("@onclick")
        || line.contains("=\"@")
        || line.contains("@rendermode")
    {
        votes.add(For::Razor, 3, "tag helpers");
    }
}

fn csharp(votes: &mut Votes, tokens: &[&str]) {
    let mut add = |weight, reason| votes.add(For::CSharp, weight, reason);
    let last = tokens.last().copied().unwrap_or_default();
    match tokens {
        ["using", "namespace", ..] => {}
        ["using", "var" | "static", ..] | ["global" | "await", "using", ..] => {
            add(5, "using directives")
        }
        ["using", "(", ..] => add(4, "using statements"),
        ["using", name, "." | "=" | ";", ..]
            if is_name(name) && last == ";" && !tokens.contains(&":") =>
        {
            add(5, "using directives")
        }
        ["namespace", name, ".", ..] if is_name(name) && last != ":" => add(5, "namespaces"),
        ["namespace", name] | ["namespace", name, ";" | "{"] if is_name(name) => {
            add(2, "namespaces")
        }
        ["[", "assembly" | "module", ":", ..] => add(8, "attributes of an assembly"),
        ["[", name, "]"] if starts_upper(name) => add(1, "attributes"),
        ["[", name, "(", .., "]"] if starts_upper(name) => add(3, "attributes"),
        ["foreach", "(", rest @ ..] if !rest.contains(&"$") && rest.contains(&"in") => {
            add(4, "foreach loops")
        }
        ["#", "if" | "else" | "endif" | "elif", ..] => add(1, "directives"),
        [
            "public" | "private" | "protected" | "internal" | "static",
            ..,
        ] => declaration(&mut add, tokens),
        [
            "sealed" | "abstract" | "partial" | "readonly" | "record",
            ..,
        ] => declaration(&mut add, tokens),
        _ => {}
    }
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
                add(2, "types of C#")
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
                add(5, "the console of .NET")
            }
            "out" | "ref" | "in" if next == "var" => add(3, "out variables"),
            "base" if next == "(" && before == ":" => add(4, "calls of base"),
            "where" if after == ":" && is_name(next) => add(4, "constraints"),
            "partial" if matches!(next, "class" | "struct" | "void" | "record" | "interface") => {
                add(5, "partial types")
            }
            "sealed" | "static" if next == "class" => add(3, "types"),
            "is" if next == "not"
                && after == "null"
                && before != ""
                && !tokens.contains(&"where") =>
            {
                add(1, "patterns")
            }
            "?" if next == "?" => add(1, "operators of C#"),
            "new" if next == "(" && after == ")" => add(1, "creations"),
            "catch" if next == "(" && after.ends_with("Exception") => add(1, "exceptions"),
            "stackalloc" | "checked" | "yield" if next == "return" || next == "break" => {
                add(2, "iterators")
            }
            "var" if is_name(next) && after == "=" && calls_upper(tokens) => add(1, "variables"),
            name if starts_upper(name) && name.ends_with("Async") && matches!(next, "(" | "<") => {
                add(2, "asynchronous calls")
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
            own += 2
        }
        [kind, name] if starts_upper(kind) && starts_upper(name) => own += 2,
        ["void" | "int" | "long" | "double" | "float", name, "(", ..] if starts_upper(name) => {
            own += 3
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

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

fn starts_upper(token: &str) -> bool {
    token.starts_with(|first: char| first.is_uppercase())
}

/// Whether a line begins with a word that lines of Visual Basic begin with.
pub(super) fn opens_in_visual_basic(line: &str) -> bool {
    let word = line
        .split(|next: char| !next.is_alphanumeric())
        .next()
        .unwrap_or_default();
    matches!(
        word,
        "Imports"
            | "Option"
            | "Namespace"
            | "Module"
            | "Class"
            | "Public"
            | "Private"
            | "Friend"
            | "Protected"
            | "Partial"
            | "End"
            | "Dim"
            | "If"
            | "Sub"
            | "Function"
            | "Inherits"
            | "Implements"
            | "Return"
            | "For"
            | "Try"
            | "Property"
    ) || line.starts_with('\'')
        || line.starts_with("<Assembly:")
}

fn visual_basic(votes: &mut Votes, tokens: &[&str]) {
    let mut add = |weight, reason| votes.add(For::VisualBasic, weight, reason);
    let ends = tokens.last().copied().unwrap_or_default();
    if matches!(ends, ";" | "{" | "}") {
        return;
    }
    match tokens {
        ["Imports", name, ..] if is_name(name) => add(6, "imports"),
        ["Option", "Strict" | "Explicit" | "Infer" | "Compare", ..] => add(8, "options"),
        [
            "End",
            "Sub" | "Function" | "Class" | "Module" | "Namespace" | "Property" | "Get" | "Set"
            | "Enum" | "Structure" | "Interface" | "Using" | "SyncLock" | "Operator" | "Event",
        ] => {
            add(6, "ends of blocks");
        }
        ["End", "If" | "Select" | "Try" | "While" | "With"] => add(3, "ends of blocks"),
        ["Dim" | "ReDim", name, ..] if is_name(name) => add(5, "Dim"),
        ["Namespace" | "Module" | "Inherits" | "Implements", name, ..] if starts_upper(name) => {
            add(4, "declarations")
        }
        ["<", "Assembly" | "assembly", ":", ..] => add(8, "attributes of an assembly"),
        ["If", .., "Then"] | ["ElseIf", .., "Then"] => add(3, "conditions"),
        ["For", "Each", ..] => add(3, "loops"),
        [
            "Public" | "Private" | "Protected" | "Friend" | "Partial" | "Shared" | "Overrides"
            | "Overridable" | "Async" | "Namespace",
            ..,
        ] => {
            let declares = tokens.iter().any(|token| {
                matches!(
                    *token,
                    "Sub"
                        | "Function"
                        | "Class"
                        | "Module"
                        | "Property"
                        | "As"
                        | "Enum"
                        | "Structure"
                        | "Interface"
                )
            });
            if declares {
                add(5, "declarations");
            }
        }
        [
            "Sub" | "Function" | "Class" | "Structure" | "Enum" | "Interface",
            name,
            ..,
        ] if starts_upper(name) => add(3, "declarations"),
        [
            "Return" | "Throw" | "Try" | "Catch" | "Finally" | "Else" | "Next" | "Loop" | "Exit"
            | "RaiseEvent",
            ..,
        ] if tokens.len() < 12 => {
            add(1, "statements");
        }
        _ => {}
    }
    for pair in tokens.windows(2) {
        match pair {
            ["As", kind] if starts_upper(kind) => add(2, "types"),
            ["ByVal" | "ByRef", _] => add(3, "parameters"),
            ["AndAlso" | "OrElse" | "IsNot" | "AddressOf", _] => add(3, "operators"),
            ["Me" | "MyBase", "."] => add(2, "Me"),
            _ => {}
        }
    }
}

fn other(votes: &mut Votes, line: &str, tokens: &[&str]) {
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
            add(3, "imports")
        }
        ["from", name, ..] if is_name(name) && tokens.contains(&"import") => {
            add(8, "imports of Python")
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
        ["@", name, ..]
            if starts_upper(name) && !line.starts_with("@Html") && !line.starts_with("@Model") =>
        {
            add(2, "annotations")
        }
        ["def", .., ":"] | ["async", "def", ..] => add(6, "functions of Python"),
        ["def", name, ..] if is_name(name) => add(4, "functions of Ruby or Python"),
        ["class", _, ":"] | ["class", _, "(", .., ":"] => add(5, "classes of Python"),
        [
            "if" | "elif" | "for" | "while" | "with" | "else" | "try" | "except",
            ..,
            ":",
        ] => add(2, "blocks of Python"),
        ["finally", ":"] => add(2, "blocks of Python"),
        ["fun", name, ..] | ["override" | "private" | "internal", "fun", name, ..]
            if is_name(name) =>
        {
            add(5, "functions of Kotlin")
        }
        ["val", name, ..] if is_name(name) => add(3, "values of Kotlin or Scala"),
        ["func", ..] => add(4, "functions of Go or Swift"),
        ["fn", ..] | ["pub", "fn" | "struct" | "enum" | "mod" | "use" | "(", ..] | ["impl", ..] => {
            add(4, "items of Rust")
        }
        ["use", name, ":", ":", ..] if is_name(name) => add(5, "items of Rust"),
        ["let", _, ..] if last == ";" || tokens.contains(&"=") => add(2, "let"),
        ["const", name, "=" | ":", ..] if is_name(name) => add(3, "constants of JavaScript"),
        ["const", "{" | "[", ..] => add(3, "constants of JavaScript"),
        ["function", name, "(", ..] if is_name(name) && last == "{" => {
            add(4, "functions of JavaScript")
        }
        ["async", "function", ..] => add(4, "functions of JavaScript"),
        ["typedef" | "extern" | "inline" | "template", ..] if matches!(last, ";" | "{" | ">") => {
            add(3, "C")
        }
        ["struct", _] | ["struct", _, "{"] if tokens[0] == "struct" => add(1, "C"),
        ["static", "inline" | "struct" | "char" | "const", ..] | ["const", "char", ..] => {
            add(4, "C")
        }
        ["#", "if", "defined" | "!", ..] | ["#", "undef", ..] => add(2, "directives of C"),
        ["#", "define" | "include" | "ifdef" | "ifndef", ..] => add(3, "directives of C"),
        ["fi" | "done" | "esac"] | ["then"] => add(4, "shell"),
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
            add(1, "keys of YAML")
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
            add(1, "assignments without an end")
        }
        _ => {}
    }
    for (index, token) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1).copied().unwrap_or_default();
        let after = tokens.get(index + 2).copied().unwrap_or_default();
        let before = index.checked_sub(1).map_or("", |before| tokens[before]);
        match *token {
            "extends" | "implements" if is_name(next) && index > 0 => {
                add(4, "inheritance in words")
            }
            "throws" if is_name(next) && before == ")" => add(4, "exceptions of Java"),
            "final" if is_name(next) => add(2, "final"),
            "boolean" if is_name(next) => add(3, "types of Java"),
            "String" if is_name(next) => add(1, "types of Java"),
            "System"
                if next == "."
                    && matches!(after, "out" | "err" | "currentTimeMillis" | "getProperty") =>
            {
                add(5, "Java")
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
            "sizeof" | "NULL" if next == "(" || next == ")" || next == ";" => add(1, "C"),
            "$" if is_name(next)
                && !matches!(next, "if" | "then" | "else" | "elsif" | "end" | "error") =>
            {
                add(1, "variables of a script")
            }
            "$" if next == "(" && is_name(after) || next == "." && is_name(after) => {
                add(1, "variables of a script")
            }
            "number" | "string" | "boolean" | "any" | "void" | "never" | "unknown"
                if before == ":" && index > 1 =>
            {
                add(2, "types of TypeScript");
            }
            "-" if next == ">" => add(1, "arrows"),
            "None" | "True" | "False" if before != "." && !tokens.contains(&";") => {
                add(1, "constants of Python")
            }
            "elif" | "lambda" => add(2, "Python"),
            "px" | "rem" | "em"
                if before.bytes().all(|byte| byte.is_ascii_digit()) && !before.is_empty() =>
            {
                add(2, "style sheets")
            }
            _ => {}
        }
    }
    prose(votes, line, tokens);
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
