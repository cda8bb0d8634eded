//! Has a line vote for SQL.
//!
//! Keywords of SQL are words of English, too, so a line counts by how it begins and goes on.

use super::super::votes::{For, Votes};

/// Kinds of things that SQL creates, alters and drops.
const OBJECTS: [&str; 44] = [
    "table",
    "view",
    "procedure",
    "proc",
    "function",
    "trigger",
    "index",
    "schema",
    "database",
    "type",
    "sequence",
    "role",
    "user",
    "login",
    "extension",
    "package",
    "synonym",
    "unique",
    "clustered",
    "nonclustered",
    "columnstore",
    "temporary",
    "temp",
    "materialized",
    "or",
    "global",
    "domain",
    "operator",
    "aggregate",
    "policy",
    "server",
    "queue",
    "service",
    "statistics",
    "certificate",
    "partition",
    "fulltext",
    "event",
    "rule",
    "language",
    "tablespace",
    "external",
    "foreign",
    "publication",
];

const TYPES: [&str; 40] = [
    "int",
    "integer",
    "bigint",
    "smallint",
    "tinyint",
    "bit",
    "varchar",
    "nvarchar",
    "char",
    "nchar",
    "text",
    "ntext",
    "datetime",
    "datetime2",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "decimal",
    "numeric",
    "money",
    "float",
    "real",
    "uniqueidentifier",
    "varbinary",
    "binary",
    "xml",
    "varchar2",
    "number",
    "clob",
    "blob",
    "serial",
    "bigserial",
    "boolean",
    "json",
    "jsonb",
    "uuid",
    "sysname",
    "datetimeoffset",
    "mediumint",
];

/// Votes for SQL as far as the line looks like it.
pub(super) fn vote(votes: &mut Votes, line: &str, tokens: &[&str]) {
    /// What is said by a statement in the midst of a line has to be clear: other languages have
    /// several on one line, too.
    const CLEAR: usize = 3;
    let lower: Vec<String> = tokens
        .iter()
        .take(LOOKED_AT)
        .map(|token| token.to_ascii_lowercase())
        .collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let mut add = |weight, reason| votes.add(For::Sql, weight, reason);
    let prose = line.ends_with('.')
        || lower
            .iter()
            .any(|word| matches!(*word, "the" | "an" | "your" | "you" | "this"));
    let object = |word: &str| OBJECTS.contains(&word);
    let code = tokens.contains(&"{") || tokens.contains(&"=>") || tokens.last() == Some(&"}");
    let starts_call = lower
        .get(1)
        .is_some_and(|next| *next == "." || *next == "=" || *next == ":");
    let for_a_client = line.starts_with('\\') || matches!(lower[0], "prompt" | "rem" | "remark");
    if (prose && !for_a_client) || code || starts_call {
        if lower[0] == "create"
            && lower.get(1).is_some_and(|next| object(next))
            && is_large(tokens[0])
        {
            add(3, "definitions");
        }
        return;
    }
    let mut statements = tokens.split_inclusive(|token| *token == ";");
    statement(&mut add, statements.next().unwrap_or_default());
    for one in statements {
        let mut add_clear = |weight, reason| {
            if weight >= CLEAR {
                add(weight, reason);
            }
        };
        statement(&mut add_clear, one);
    }
    column(&mut add, &lower);
}

/// Tokens of a statement that are looked at.
const LOOKED_AT: usize = 24;

/// Whether a word is written in capitals, as nobody writes in prose.
fn is_large(word: &str) -> bool {
    word.len() > 1
        && word
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// What a statement says by how it begins.
#[expect(clippy::too_many_lines, reason = "one table of beginnings")]
#[expect(clippy::match_same_arms, reason = "grouped by what they do")]
fn statement(add: &mut impl FnMut(usize, &'static str), tokens: &[&str]) {
    let lower: Vec<String> = tokens
        .iter()
        .take(LOOKED_AT)
        .map(|token| token.to_ascii_lowercase())
        .collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let written_large = tokens.first().is_some_and(|first| is_large(first));
    let object = |word: &str| OBJECTS.contains(&word);
    match lower.as_slice() {
        ["go"] | ["go", ";"] => add(5, "batches"),
        ["/"] => add(3, "blocks of PL/SQL"),
        ["create", "table", _, next, ..] if !written_large && !follows_table(next) => {}
        ["create" | "drop", next, _, ..] if object(next) => add(5, "definitions"),
        ["create" | "drop", next] if object(next) && written_large => add(4, "definitions"),
        [
            "create",
            kind,
            "index" | "view" | "procedure" | "table" | "function" | "force",
            ..,
        ] if written_large || !matches!(*kind, "a" | "another" | "one" | "new" | "my" | "our") => {
            add(5, "definitions");
        }
        ["alter", next, ..]
            if object(next)
                || matches!(*next, "session" | "system" | "default" | "authorization") =>
        {
            add(5, "definitions");
        }
        ["insert", "into" | "overwrite", ..] | ["insert", "all"] => add(5, "statements that write"),
        ["insert", next, ..] if written_large || matches!(*next, "[" | "@" | "#" | "dbo") => {
            add(3, "statements that write");
        }
        ["update", ..] if lower.contains(&"set") || written_large && tokens.len() < 8 => {
            add(4, "statements that write");
        }
        ["update", "[" | "@" | "#" | "dbo", ..] => add(3, "statements that write"),
        ["delete", "from", ..] => add(5, "statements that write"),
        ["delete", ..] if written_large => add(2, "statements that write"),
        ["truncate", "table", ..] => add(5, "statements that write"),
        ["merge", ..] if written_large || lower.get(1) == Some(&"into") => {
            add(3, "statements that write");
        }
        ["select", rest @ ..] => select(add, rest, written_large),
        ["declare" | "set", "@", ..] => add(5, "variables of T-SQL"),
        [
            "set",
            "nocount"
            | "ansi_nulls"
            | "quoted_identifier"
            | "identity_insert"
            | "xact_abort"
            | "search_path"
            | "names"
            | "define"
            | "serveroutput"
            | "echo"
            | "sqlblanklines"
            | "feedback"
            | "verify"
            | "linesize"
            | "pagesize"
            | "termout"
            | "heading"
            | "long"
            | "trimspool"
            | "timing"
            | "autotrace"
            | "client_min_messages"
            | "transaction",
            ..,
        ] => {
            add(4, "settings");
        }
        [
            "set",
            "session" | "local" | "role" | "enable_seqscan" | "timezone" | "foreign_key_checks"
            | "statistics",
            ..,
        ] if written_large => add(3, "settings"),
        ["set", _, "=" | "to", ..] if written_large => add(2, "settings"),
        ["exec" | "execute", next, ..] if *next != "(" || written_large => add(3, "calls"),
        ["call", _, "(" | ".", ..] => add(2, "calls"),
        ["grant" | "revoke", ..]
            if lower.contains(&"on") || lower.contains(&"to") || lower.contains(&"from") =>
        {
            add(5, "permissions");
        }
        ["if", "exists" | "not" | "object_id", ..]
            if lower.contains(&"exists") || lower.contains(&"object_id") =>
        {
            add(4, "conditions");
        }
        ["if", "@", ..] => add(4, "conditions"),
        ["with", _, "as", "(", ..] | ["with", _, "as"] => add(4, "common table expressions"),
        ["comment", "on", _, ..] => add(5, "definitions"),
        ["copy", ..] if lower.contains(&"from") || lower.contains(&"to") => add(3, "copies"),
        ["delimiter", ..] | ["load", "data", ..] | ["lock" | "unlock", "tables" | "table", ..] => {
            add(4, "commands");
        }
        ["use", _] | ["use", _, ";"] if written_large || lower.len() == 3 => add(2, "databases"),
        ["use", "[", ..] => add(4, "databases"),
        ["print", "''" | "'" | "@", ..] | ["print", "n", "''" | "'", ..] => add(3, "messages"),
        ["raiserror", ..] | ["throw", ";"] => add(3, "messages"),
        [
            "prompt" | "rem" | "spool" | "whenever" | "accept" | "define" | "column",
            _,
            ..,
        ] => add(2, "commands of a client"),
        ["commit" | "rollback", ";"] | ["commit" | "rollback"] => add(4, "transactions"),
        [
            "begin",
            "tran" | "transaction" | "try" | "catch" | "atomic" | "work",
            ..,
        ] => add(4, "transactions"),
        ["begin", "null", ";"] => add(4, "blocks"),
        ["begin" | "end"] | ["end", ";"] if written_large => add(2, "blocks"),
        ["begin" | "exception" | "is" | "as"]
        | ["begin" | "end", ";"]
        | ["end", "if" | "loop" | "case", ";"] => add(1, "blocks"),
        ["end", _, ";"] => add(2, "blocks"),
        ["pragma", _, "=", ..] => add(3, "settings"),
        ["pragma", _] | ["pragma", _, ";" | "(" | ".", ..] if written_large => add(3, "settings"),
        ["describe" | "desc", next, ..]
            if *next != "(" && (written_large || tokens.last() == Some(&";")) =>
        {
            add(2, "commands");
        }
        [
            "explain" | "vacuum" | "analyze" | "reindex" | "fetch" | "deallocate" | "discard"
            | "show",
            ..,
        ] if written_large || tokens.last() == Some(&";") => {
            add(2, "commands");
        }
        [
            "from" | "where" | "join" | "having" | "values" | "and" | "or" | "on" | "returning"
            | "into" | "union" | "as" | "else" | "when" | "then",
            ..,
        ] if written_large => {
            add(1, "clauses");
        }
        [
            "inner" | "left" | "right" | "full" | "cross",
            "join" | "outer" | "apply",
            ..,
        ] => add(3, "joins"),
        ["group" | "order" | "partition", "by", ..] => add(3, "clauses"),
        ["from", _, ..] if tokens.last() == Some(&";") && lower.len() < 8 => add(2, "clauses"),
        [
            "where",
            _,
            "=" | "." | "<" | ">" | "in" | "like" | "is" | "between",
            ..,
        ] => add(2, "clauses"),
        ["from" | "join", _] | ["from", _, _]
            if tokens[0].bytes().all(|byte| byte.is_ascii_lowercase()) =>
        {
            add(1, "clauses");
        }
        ["values", "(", ..] => add(3, "rows"),
        ["(", first, ",", ..]
            if matches!(*first, "''" | "n" | "null")
                || first.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            add(1, "rows");
        }
        ["constraint" | "primary" | "foreign" | "unique", ..]
            if lower.contains(&"key") || lower.contains(&"check") || lower.contains(&"unique") =>
        {
            add(4, "columns");
        }
        [
            "\\",
            "echo" | "quit" | "connect" | "c" | "i" | "ir" | "set" | "unset" | "pset" | "copy"
            | "timing" | "d" | "if" | "endif" | "gset" | "q" | "o",
            ..,
        ] => {
            add(4, "commands of a client");
        }
        ["@", "@", _, ..] | ["@", _, ".", "sql", ..] => add(3, "commands of a client"),
        ["connect", _, "/", ..]
        | ["source", .., ".", "sql" | ";"]
        | ["backup" | "restore", "database" | "log", ..]
        | ["dbcc", _, ..] => add(4, "commands"),
        [
            "var" | "variable",
            _,
            "number" | "varchar2" | "refcursor" | "clob",
            ..,
        ]
        | ["exec", ":", ..] => add(4, "variables of a client"),
        ["create" | "drop" | "alter", _, _, ..] if written_large => add(3, "definitions"),
        _ => {}
    }
}

/// Whether a word can follow the name of a table that is created. In a sentence others do.
fn follows_table(word: &str) -> bool {
    const WORDS: [&str; 22] = [
        "as",
        "like",
        "of",
        "on",
        "in",
        "with",
        "without",
        "using",
        "partition",
        "inherits",
        "tablespace",
        "engine",
        "clone",
        "organization",
        "comment",
        "select",
        "stored",
        "location",
        "row",
        "default",
        "exists",
        "not",
    ];
    !word.starts_with(|first: char| first.is_alphabetic()) || WORDS.contains(&word)
}

fn select(add: &mut impl FnMut(usize, &'static str), rest: &[&str], written_large: bool) {
    let Some(first) = rest.first() else {
        add(if written_large { 4 } else { 2 }, "queries");
        return;
    };
    let shaped = matches!(
        *first,
        "*" | "@" | "''" | "[" | "\"\"" | "top" | "distinct" | "count" | "n" | "(" | "null"
    ) || first.bytes().all(|byte| byte.is_ascii_digit())
        || rest
            .get(1)
            .is_some_and(|second| matches!(*second, "," | "." | "(" | "=" | ";"))
        || rest.contains(&"from") && rest.last().is_none_or(|last| *last != ":");
    match (written_large, shaped) {
        (_, true) => add(4, "queries"),
        (true, false) => add(3, "queries"),
        (false, false) => {}
    }
}

/// A line that defines a column: a name, and a type after it.
fn column(add: &mut impl FnMut(usize, &'static str), lower: &[&str]) {
    let has = |first: &str, second: &str| lower.windows(2).any(|pair| pair == [first, second]);
    if has("not", "null")
        || has("primary", "key")
        || has("references", "dbo")
        || lower.contains(&"auto_increment")
    {
        add(2, "columns");
    }
    let after_name = match lower {
        ["[", _, "]", rest @ ..] | ["@", _, rest @ ..] | ["\"\"" | "`", rest @ ..] => rest,
        [name, rest @ ..] if name.starts_with(|first: char| first.is_alphabetic()) => rest,
        _ => return,
    };
    let kind = match after_name {
        ["[", kind, "]", ..] | ["as", kind, ..] | [kind, ..] => *kind,
        [] => return,
    };
    let ends = matches!(lower.last(), Some(&("," | ")" | "null" | "output" | "(")));
    if TYPES.contains(&kind) && (ends || lower[0] == "[" || lower[0] == "@") {
        add(2, "columns");
    }
}
