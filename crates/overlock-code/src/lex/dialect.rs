//! Detects the SQL dialect of a text by its words.
//!
//! The dialects disagree on where strings and comments end. The lexer needs the dialect only where
//! two of them would read the text differently.

use memchr::{memchr, memmem};

use super::word_end;

/// A dialect of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    TSql,
    Postgres,
    MySql,
    Oracle,
}

const DIALECTS: [Dialect; 4] = [
    Dialect::TSql,
    Dialect::Postgres,
    Dialect::MySql,
    Dialect::Oracle,
];

/// How much of a text is read.
const SAMPLE_BYTES: usize = 256 * 1024;

/// The dialect of a text, if the evidence is clear.
pub(crate) fn dialect(text: &str) -> Option<Dialect> {
    let bytes = &text.as_bytes()[..text.len().min(SAMPLE_BYTES)];
    let mut scores = [0_usize; 4];
    let mut add = |dialect: Dialect, weight: usize| scores[dialect as usize] += weight;
    let mut at = 0;
    let mut at_line_start = true;
    while at < bytes.len() {
        let byte = bytes[at];
        if at_line_start && let Some((dialect, weight)) = line_evidence(&bytes[at..]) {
            add(dialect, weight);
        }
        at_line_start = byte == b'\n' || (at_line_start && byte.is_ascii_whitespace());
        if let Some(end) = ignored_end(bytes, at) {
            if byte == b'`' && end > at + 2 {
                add(Dialect::MySql, 1);
            }
            at = end;
            continue;
        }
        if byte.is_ascii_alphabetic() || byte == b'_' {
            let end = word_end(bytes, at);
            if let Some((dialect, weight)) = word_evidence(&bytes[at..end]) {
                add(dialect, weight);
            }
            at = end;
            continue;
        }
        match (byte, bytes.get(at + 1)) {
            (b'@', Some(b'@')) => add(Dialect::TSql, 1),
            (b'[', Some(next)) if next.is_ascii_alphabetic() => {
                let follows_name =
                    at > 0 && (super::is_word(bytes[at - 1]) || bytes[at - 1] == b']');
                if !follows_name && bytes.get(word_end(bytes, at + 1)) == Some(&b']') {
                    add(Dialect::TSql, 1);
                }
            }
            (b'@', Some(next)) if next.is_ascii_alphabetic() => add(Dialect::TSql, 1),
            (b'/', Some(b'*')) if bytes.get(at + 2) == Some(&b'!') => add(Dialect::MySql, 4),
            (b':', Some(b':')) => add(Dialect::Postgres, 2),
            (b'$', Some(b'$')) => add(Dialect::Postgres, 1),
            (b'%', Some(_)) if rest_starts(&bytes[at + 1..], b"type") => add(Dialect::Oracle, 2),
            (b'%', Some(_)) if rest_starts(&bytes[at + 1..], b"rowtype") => add(Dialect::Oracle, 2),
            _ => {}
        }
        at += 1;
    }
    let best = DIALECTS
        .into_iter()
        .max_by_key(|&dialect| scores[dialect as usize])?;
    let score = scores[best as usize];
    let second = DIALECTS
        .iter()
        .filter(|&&other| other != best)
        .map(|&other| scores[other as usize]);
    let second = second.max().unwrap_or(0);
    (score >= 2 && score * 2 > second * 3).then_some(best)
}

/// Where a string or a comment that begins here ends. It is no evidence: it may be in any language,
/// and compaction removes comments.
fn ignored_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let end = match (rest[0], rest.get(1)) {
        (b'\'', _) => string_end(rest),
        (b'`', _) => memchr(b'`', &rest[1..]).map_or(1, |found| found + 2),
        (b'-', Some(b'-')) => memchr(b'\n', rest).unwrap_or(rest.len()),
        (b'/', Some(b'*')) if !matches!(rest.get(2), Some(b'!')) => {
            memmem::find(rest, b"*/").map_or(rest.len(), |found| found + 2)
        }
        _ => return None,
    };
    Some(at + end)
}

/// Where a string ends. A quote after a backslash ends it, unless a name follows: `'it\'s'`.
fn string_end(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = memchr(b'\'', &rest[at..]) {
        at += found + 1;
        let escaped =
            rest[at - 2] == b'\\' && rest.get(at).is_some_and(|&next| super::is_word(next));
        if !escaped {
            return at;
        }
    }
    rest.len()
}

/// The weight of a command that only the client of one database has.
fn line_evidence(rest: &[u8]) -> Option<(Dialect, usize)> {
    /// Longer than every command below.
    const LONGEST: usize = 16;
    let rest = &rest[..rest.len().min(LONGEST)];
    let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
    match line.trim_ascii() {
        b"GO" | b"go" | b"Go" => Some((Dialect::TSql, 6)),
        b"/" => Some((Dialect::Oracle, 4)),
        [b'\\', _, ..] => Some((Dialect::Postgres, 3)),
        line if rest_starts(line, b"delimiter ") => Some((Dialect::MySql, 50)),
        _ => None,
    }
}

fn rest_starts(rest: &[u8], prefix: &[u8]) -> bool {
    rest.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// The weight of a word that only one dialect has.
fn word_evidence(word: &[u8]) -> Option<(Dialect, usize)> {
    const LONGEST: usize = 24;
    let mut lower = [0; LONGEST];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"nvarchar" | b"uniqueidentifier" | b"nocount" | b"sp_executesql" | b"raiserror"
        | b"sysname" | b"datetime2" | b"nolock" | b"getdate" | b"sysobjects" | b"object_id"
        | b"scope_identity" | b"nonclustered" | b"dbo" | b"datetimeoffset" | b"smalldatetime"
        | b"xact_abort" | b"msdb" | b"sysdatetime" | b"quotename" | b"showplan" => {
            (Dialect::TSql, 2)
        }
        b"isnull" | b"exec" | b"print" | b"proc" | b"clustered" | b"identity" | b"throw" => {
            (Dialect::TSql, 1)
        }
        b"plpgsql" | b"bigserial" | b"jsonb" | b"timestamptz" | b"ilike" | b"regclass"
        | b"setof" | b"tablesample" | b"pg_catalog" | b"bytea" | b"stdin" | b"immutable"
        | b"search_path" => (Dialect::Postgres, 2),
        b"serial" | b"returning" | b"language" | b"explain" | b"analyze" | b"extension" => {
            (Dialect::Postgres, 1)
        }
        b"auto_increment" | b"engine" | b"innodb" | b"utf8mb4" | b"ifnull" | b"group_concat"
        | b"unsigned" | b"mediumtext" | b"longtext" | b"mediumint" | b"sqlstate" | b"definer" => {
            (Dialect::MySql, 2)
        }
        b"varchar2" | b"nvarchar2" | b"pls_integer" | b"dual" | b"sysdate" | b"rownum" | b"nvl"
        | b"dbms_output" | b"prompt" | b"sqlerrm" | b"sqlcode" | b"dbms_sql" | b"systimestamp"
        | b"authid" | b"tablespace" | b"bulk" | b"sqlplus" | b"whenever" | b"sys_refcursor"
        | b"xmltable" | b"pragma" | b"noneditionable" | b"editionable" | b"clob" | b"rem" => {
            (Dialect::Oracle, 2)
        }
        b"number" | b"minus" | b"loop" | b"spool" | b"define" => (Dialect::Oracle, 1),
        _ => return None,
    })
}
