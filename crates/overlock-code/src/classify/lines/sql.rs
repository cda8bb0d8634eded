//! Lets a line vote for SQL.
//!
//! Keywords of SQL are also English words, so a line counts by its first few tokens.

use super::super::votes::{For, Votes};
use super::pattern::{Pattern, first_match, is_upper, no_match, pattern};

/// Kinds of objects that SQL creates, alters and drops.
const OBJECTS: &str = "table view procedure proc function trigger index schema database type \
    sequence role user login extension package synonym unique clustered nonclustered columnstore \
    temporary temp materialized or global domain operator aggregate policy server queue service \
    statistics certificate partition fulltext event rule language tablespace external foreign \
    publication";

const TYPES: &str = "int integer bigint smallint tinyint bit varchar nvarchar char nchar text \
    ntext datetime datetime2 date time timestamp timestamptz decimal numeric money float real \
    uniqueidentifier varbinary binary xml varchar2 number clob blob serial bigserial boolean json \
    jsonb uuid sysname datetimeoffset mediumint";

/// Words that can follow the name of a created table. In a sentence, others do.
const AFTER_TABLE: &str = "as like of on in with without using partition inherits tablespace \
    engine clone organization comment select stored location row default exists not";

/// What a statement counts by its first tokens.
const STATEMENTS: &[Pattern] = &[
    pattern("go", 5, "batches"),
    pattern("go ;", 5, "batches"),
    pattern("/", 3, "blocks of PL/SQL"),
    no_match("create table _ SENTENCE ..").not_upper(),
    pattern("create|drop OBJECT _ ..", 5, "definitions"),
    pattern("create|drop OBJECT", 4, "definitions").upper(),
    pattern(
        "create _ index|view|procedure|table|function|force ..",
        5,
        "definitions",
    )
    .upper(),
    pattern(
        "create !a|another|one|new|my|our index|view|procedure|table|function|force ..",
        5,
        "definitions",
    ),
    pattern(
        "alter OBJECT|session|system|default|authorization ..",
        5,
        "definitions",
    ),
    pattern("insert into|overwrite ..", 5, "statements that write"),
    pattern("insert all", 5, "statements that write"),
    pattern("insert _ ..", 3, "statements that write").upper(),
    pattern("insert [|@|#|dbo ..", 3, "statements that write"),
    pattern("update ..", 4, "statements that write").contains("set"),
    pattern("update ..", 4, "statements that write")
        .upper()
        .max_tokens(7),
    pattern("update [|@|#|dbo ..", 3, "statements that write"),
    pattern("delete from ..", 5, "statements that write"),
    pattern("delete ..", 2, "statements that write").upper(),
    pattern("truncate table ..", 5, "statements that write"),
    pattern("merge ..", 3, "statements that write").upper(),
    pattern("merge into ..", 3, "statements that write"),
    pattern("declare|set @ ..", 5, "variables of T-SQL"),
    pattern(
        "set nocount|ansi_nulls|quoted_identifier|identity_insert|xact_abort|search_path|names|\
         define|serveroutput|echo|sqlblanklines|feedback|verify|linesize|pagesize|termout|heading|\
         long|trimspool|timing|autotrace|client_min_messages|transaction ..",
        4,
        "settings",
    ),
    pattern(
        "set session|local|role|enable_seqscan|timezone|foreign_key_checks|statistics ..",
        3,
        "settings",
    )
    .upper(),
    pattern("set _ =|to ..", 2, "settings").upper(),
    pattern("exec|execute !( ..", 3, "calls"),
    pattern("exec|execute _ ..", 3, "calls").upper(),
    pattern("call _ (|. ..", 2, "calls"),
    pattern("grant|revoke ..", 5, "permissions").contains("on|to|from"),
    pattern("if exists|not|object_id ..", 4, "conditions").contains("exists|object_id"),
    pattern("if @ ..", 4, "conditions"),
    pattern("with _ as ( ..", 4, "common table expressions"),
    pattern("with _ as", 4, "common table expressions"),
    pattern("comment on _ ..", 5, "definitions"),
    pattern("copy ..", 3, "copies").contains("from|to"),
    pattern("delimiter ..", 4, "commands"),
    pattern("load data ..", 4, "commands"),
    pattern("lock|unlock tables|table ..", 4, "commands"),
    pattern("use _", 2, "databases").upper(),
    pattern("use _ ;", 2, "databases"),
    pattern("use [ ..", 4, "databases"),
    pattern("print ''|'|@ ..", 3, "messages"),
    pattern("print n ''|' ..", 3, "messages"),
    pattern("raiserror ..", 3, "messages"),
    pattern("throw ;", 3, "messages"),
    pattern(
        "prompt|rem|spool|whenever|accept|define|column _ ..",
        2,
        "commands of a client",
    ),
    pattern("commit|rollback", 4, "transactions"),
    pattern("commit|rollback ;", 4, "transactions"),
    pattern(
        "begin tran|transaction|try|catch|atomic|work ..",
        4,
        "transactions",
    ),
    pattern("begin null ;", 4, "blocks"),
    pattern("begin|end", 2, "blocks").upper(),
    pattern("end ;", 2, "blocks").upper(),
    pattern("begin|exception|is|as", 1, "blocks"),
    pattern("begin|end ;", 1, "blocks"),
    pattern("end if|loop|case ;", 1, "blocks"),
    pattern("end _ ;", 2, "blocks"),
    pattern("pragma _ = ..", 3, "settings"),
    pattern("pragma _", 3, "settings").upper(),
    pattern("pragma _ ;|(|. ..", 3, "settings").upper(),
    pattern("describe|desc !( ..", 2, "commands").upper(),
    pattern("describe|desc !( ..", 2, "commands").last(";"),
    pattern(UTILITIES, 2, "commands").upper(),
    pattern(UTILITIES, 2, "commands").last(";"),
    pattern(
        "from|where|join|having|values|and|or|on|returning|into|union|as|else|when|then ..",
        1,
        "clauses",
    )
    .upper(),
    pattern(
        "inner|left|right|full|cross join|outer|apply ..",
        3,
        "joins",
    ),
    pattern("group|order|partition by ..", 3, "clauses"),
    pattern("from _ ..", 2, "clauses").last(";").max_tokens(7),
    pattern("where _ =|.|<|>|in|like|is|between ..", 2, "clauses"),
    pattern("from|join _", 1, "clauses").lower(),
    pattern("from _ _", 1, "clauses").lower(),
    pattern("values ( ..", 3, "rows"),
    pattern("( ''|n|null|NUMBER , ..", 1, "rows"),
    pattern("constraint|primary|foreign|unique ..", 4, "columns").contains("key|check|unique"),
    pattern(
        "\\ echo|quit|connect|c|i|ir|set|unset|pset|copy|timing|d|if|endif|gset|q|o ..",
        4,
        "commands of a client",
    ),
    pattern("@ @ _ ..", 3, "commands of a client"),
    pattern("@ _ . sql ..", 3, "commands of a client"),
    pattern("connect _ / ..", 4, "commands"),
    pattern("source .. . sql|;", 4, "commands"),
    pattern("backup|restore database|log ..", 4, "commands"),
    pattern("dbcc _ ..", 4, "commands"),
    pattern(
        "var|variable _ number|varchar2|refcursor|clob ..",
        4,
        "variables of a client",
    ),
    pattern("create|drop|alter _ _ ..", 3, "definitions").upper(),
];

const UTILITIES: &str = "explain|vacuum|analyze|reindex|fetch|deallocate|discard|show ..";

/// How many tokens of a statement are read.
const MAX_TOKENS: usize = 24;

/// Votes for SQL as far as the line looks like it.
pub(super) fn vote(votes: &mut Votes, line: &str, tokens: &[&str]) {
    /// Statements after the first one of a line count only if they are clear, because other
    /// languages have several on one line, too.
    const CLEAR: usize = 3;
    let mut add = |weight, reason| votes.add(For::Sql, weight, reason);
    let head = &tokens[..tokens.len().min(MAX_TOKENS)];
    let is_prose = line.ends_with('.')
        || head
            .iter()
            .any(|word| word.len() < 5 && is_one_of(word, "the an your you this"));
    let is_code = tokens.contains(&"{") || tokens.contains(&"=>") || tokens.last() == Some(&"}");
    let is_call = head
        .get(1)
        .is_some_and(|next| matches!(*next, "." | "=" | ":"));
    let is_for_a_client = line.starts_with('\\') || is_one_of(head[0], "prompt rem remark");
    if (is_prose && !is_for_a_client) || is_code || is_call {
        let is_definition = head[0] == "CREATE" && head.get(1).is_some_and(|next| is_object(next));
        if is_definition {
            add(3, "definitions");
        }
        return;
    }
    for (index, statement) in tokens.split_inclusive(|token| *token == ";").enumerate() {
        if let Some((weight, reason)) = statement_weight(statement)
            && (index == 0 || weight >= CLEAR)
        {
            add(weight, reason);
        }
    }
    column(&mut add, head);
}

fn statement_weight(tokens: &[&str]) -> Option<(usize, &'static str)> {
    match tokens.split_first()? {
        (first, rest) if first.eq_ignore_ascii_case("select") => {
            let rest = &rest[..rest.len().min(MAX_TOKENS - 1)];
            Some((select_weight(rest, is_upper(first))?, "queries"))
        }
        _ => first_match(STATEMENTS, tokens, is_word),
    }
}

fn is_word(expected: &str, token: &str) -> bool {
    match expected {
        "OBJECT" => is_object(token),
        "NUMBER" => is_number(token),
        "SENTENCE" => {
            token.starts_with(|first: char| first.is_alphabetic()) && !is_one_of(token, AFTER_TABLE)
        }
        _ => expected.eq_ignore_ascii_case(token),
    }
}

fn is_object(token: &str) -> bool {
    is_one_of(token, OBJECTS)
}

fn is_number(token: &str) -> bool {
    token.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_one_of(token: &str, words: &str) -> bool {
    words
        .split(' ')
        .any(|word| word.eq_ignore_ascii_case(token))
}

fn select_weight(rest: &[&str], is_upper: bool) -> Option<usize> {
    let Some(first) = rest.first() else {
        return Some(if is_upper { 4 } else { 2 });
    };
    let has_from = rest.iter().any(|word| word.eq_ignore_ascii_case("from"));
    let is_clear = is_one_of(first, "* @ '' [ \"\" top distinct count n ( null")
        || is_number(first)
        || rest
            .get(1)
            .is_some_and(|second| matches!(*second, "," | "." | "(" | "=" | ";"))
        || has_from && rest.last().is_none_or(|last| *last != ":");
    match (is_upper, is_clear) {
        (_, true) => Some(4),
        (true, false) => Some(3),
        (false, false) => None,
    }
}

/// Votes for the definition of a column: a name, and a type after it.
fn column(add: &mut impl FnMut(usize, &'static str), tokens: &[&str]) {
    let is = |index: usize, word: &str| {
        tokens
            .get(index)
            .is_some_and(|token| token.eq_ignore_ascii_case(word))
    };
    let has = |first: &str, second: &str| {
        (1..tokens.len()).any(|index| is(index, second) && is(index - 1, first))
    };
    if has("not", "null")
        || has("primary", "key")
        || has("references", "dbo")
        || (0..tokens.len()).any(|index| is(index, "auto_increment"))
    {
        add(2, "columns");
    }
    let after_name = match tokens {
        ["[", _, "]", rest @ ..] | ["@", _, rest @ ..] | ["\"\"" | "`", rest @ ..] => rest,
        [name, rest @ ..] if name.starts_with(|first: char| first.is_alphabetic()) => rest,
        _ => return,
    };
    let kind = match after_name {
        ["[", kind, "]", ..] => kind,
        [first, kind, ..] if first.eq_ignore_ascii_case("as") => kind,
        [kind, ..] => kind,
        [] => return,
    };
    let ends = tokens
        .last()
        .is_some_and(|last| is_one_of(last, ", ) null output ("));
    if (ends || matches!(tokens[0], "[" | "@")) && is_one_of(kind, TYPES) {
        add(2, "columns");
    }
}
