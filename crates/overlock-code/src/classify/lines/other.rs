//! Lets a line vote for languages other than SQL and .NET, for data and for prose.

use super::super::votes::{For, Votes};
use super::pattern::{Pattern, first_match, no_match, pattern};
use super::{is_name, starts_upper};

/// Votes for other languages, for data and for prose as far as the line looks like it.
pub(super) fn vote(votes: &mut Votes, line: &str, tokens: &[&str]) {
    if let Some((weight, reason)) = first_match(BEGINNINGS, tokens, is_word) {
        votes.add(For::Other, weight, reason);
    }
    words(votes, tokens);
    prose(votes, line, tokens);
}

/// What a line counts by its first tokens.
const BEGINNINGS: &[Pattern] = &[
    pattern("package .. ;", 8, "packages of Java"),
    pattern("import static .. ;", 8, "packages of Java"),
    pattern("package NAME", 6, "packages"),
    pattern("package NAME . ..", 6, "packages").lacks("("),
    pattern("import NAME . .. ;", 8, "imports of Java"),
    pattern("import \"\"|''|{|*|type ..", 6, "imports of JavaScript"),
    pattern("import ..", 6, "imports of JavaScript").contains("from"),
    pattern("import NAME ..", 3, "imports")
        .last("!;")
        .max_tokens(11),
    pattern("from NAME|. ..", 8, "imports of Python").contains("import"),
    pattern(
        "export default|const|class|function|interface|type|async|enum|abstract|*|{ ..",
        6,
        "exports",
    ),
    pattern(
        "@ Override|Test|Autowired|Bean|Component|Nullable|Configuration|Deprecated ..",
        6,
        "annotations",
    ),
    pattern("@ ANNOTATION", 2, "annotations"),
    pattern("@ ANNOTATION ( ..", 2, "annotations"),
    pattern("def .. :", 6, "functions of Python"),
    pattern("async def ..", 6, "functions of Python"),
    pattern("def NAME ..", 4, "functions of Ruby or Python"),
    pattern("class _ :", 5, "classes of Python"),
    pattern("class _ ( .. :", 5, "classes of Python"),
    pattern(
        "if|elif|for|while|with|else|try|except|finally .. :",
        2,
        "blocks of Python",
    ),
    pattern("fun NAME ..", 5, "functions of Kotlin"),
    pattern(
        "override|private|internal fun NAME ..",
        5,
        "functions of Kotlin",
    ),
    pattern("val NAME ..", 3, "values of Kotlin or Scala"),
    pattern("func ..", 4, "functions of Go or Swift"),
    pattern("fn|impl ..", 4, "items of Rust"),
    pattern("pub fn|struct|enum|mod|use|( ..", 4, "items of Rust"),
    pattern("use NAME : : ..", 5, "items of Rust"),
    pattern("let _ ..", 2, "let").last(";"),
    pattern("let _ ..", 2, "let").contains("="),
    pattern("const NAME =|: ..", 3, "constants of JavaScript"),
    pattern("const {|[ ..", 3, "constants of JavaScript"),
    pattern("function NAME ( ..", 4, "functions of JavaScript").last("{"),
    pattern("async function ..", 4, "functions of JavaScript"),
    pattern("typedef|extern|inline|template ..", 3, "C").last(";|{|>"),
    pattern("struct _", 1, "C"),
    pattern("struct _ {", 1, "C"),
    pattern("static inline|struct|char|const ..", 4, "C"),
    pattern("const char ..", 4, "C"),
    pattern("# if defined|! ..", 2, "directives of C"),
    pattern("# undef ..", 2, "directives of C"),
    pattern("# define|include|ifdef|ifndef ..", 3, "directives of C"),
    pattern("fi|done|esac|then", 4, "shell"),
    pattern("echo ..", 2, "shell").last("!;"),
    pattern("param ( ..", 2, "PowerShell"),
    pattern("function UPPER - ..", 5, "PowerShell"),
    pattern("RUN|ENTRYPOINT|CMD|WORKDIR|EXPOSE|ENV ..", 4, "Dockerfiles"),
    pattern("[ !UPPER ]", 2, "sections"),
    pattern("$ NAME = ..", 3, "variables of a script"),
    pattern("use strict", 1, "JavaScript"),
    pattern("\"\"|'' ;", 1, "JavaScript"),
    no_match("default|public|private|case|protected :"),
    pattern("NAME :", 1, "keys of YAML"),
    no_match("default : NAME .."),
    pattern("NAME : NAME ..", 1, "keys of YAML").last("!;|{|)|,"),
    pattern("NAME = ..", 1, "assignments without an end")
        .last("!;|,|(|{|_")
        .max_tokens(7),
];

fn is_word(expected: &str, token: &str) -> bool {
    match expected {
        "NAME" => is_name(token),
        "UPPER" => starts_upper(token),
        "ANNOTATION" => {
            starts_upper(token) && !token.starts_with("Html") && !token.starts_with("Model")
        }
        _ => expected == token,
    }
}

/// Votes for words of other languages anywhere in a line.
fn words(votes: &mut Votes, tokens: &[&str]) {
    let mut add = |weight, reason| votes.add(For::Other, weight, reason);
    for (index, token) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1).copied().unwrap_or_default();
        let after = tokens.get(index + 2).copied().unwrap_or_default();
        let before = index.checked_sub(1).map_or("", |before| tokens[before]);
        match *token {
            "extends" | "implements" if is_name(next) && index > 0 => {
                add(4, "inheritance keywords");
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
            // `NULL;` is an empty statement in PL/SQL.
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

/// Votes for sentences: many words and hardly any punctuation.
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
