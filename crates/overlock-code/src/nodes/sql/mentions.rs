//! Finds the tables that statements read and write, and the procedures and functions they call.
//!
//! Temporary tables, common table expressions and aliases are not reported. Names that are built at
//! run time are not guessed.

use std::collections::HashSet;

use super::super::MentionKind;
use super::super::tree::Findings;
use super::mentions_at;
use super::statement::{PendingStatement, TableSource, is_of_the_system};
use super::words::{Name, Words, is_built_in, is_reserved, is_statement};
use crate::classify::embedded::opens_statement;
use crate::lex::dialect::Dialect;
use crate::lex::{Gap, Kind};

/// Where mentions are reported.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    /// All at this byte; each at its own if none.
    pub(super) at: Option<usize>,
    /// How many more levels of strings are read.
    pub(super) depth: usize,
}

/// Reports the mentions in the statements of a text. Definitions begin and end at the borders, and
/// local names do not outlive them.
pub(super) fn find(
    words: Words<'_>,
    dialect: Option<Dialect>,
    borders: &[usize],
    origin: Origin,
    findings: &mut Findings,
) {
    let mut reader = MentionReader {
        words,
        dialect,
        origin,
        findings,
        frames: vec![QueryFrame::default()],
        statement: PendingStatement::default(),
        expressions: HashSet::new(),
        temporary: HashSet::new(),
        closing: closing(words),
    };
    let mut borders = borders.iter().peekable();
    let mut index = 0;
    while index < words.tokens.len() {
        while borders.next_if(|&&border| border <= index).is_some() {
            reader.end_statement();
            reader.expressions.clear();
            reader.temporary.clear();
        }
        index = reader.read(index).max(index + 1);
    }
    reader.end_statement();
}

fn closing(words: Words<'_>) -> Vec<usize> {
    let mut closing = vec![0; words.tokens.len()];
    let mut open = Vec::new();
    for index in 0..words.tokens.len() {
        if words.is_mark(index, b'(') {
            open.push(index);
        } else if words.is_mark(index, b')')
            && let Some(opened) = open.pop()
        {
            closing[opened] = index;
        }
    }
    closing
}

/// The state inside one pair of parentheses, or outside of all.
#[derive(Clone, Copy, Debug, Default)]
struct QueryFrame {
    /// A statement with tables has begun in it.
    has_query: bool,
    /// Tables may follow after commas.
    in_from: bool,
}

struct MentionReader<'a, 'f> {
    words: Words<'a>,
    dialect: Option<Dialect>,
    origin: Origin,
    findings: &'f mut Findings,
    frames: Vec<QueryFrame>,
    statement: PendingStatement,
    /// The names of common table expressions.
    expressions: HashSet<String>,
    temporary: HashSet<String>,
    /// For every opening parenthesis, the index of the closing one; else 0.
    closing: Vec<usize>,
}

impl MentionReader<'_, '_> {
    /// Reads the construct at a token; returns the next token to read.
    fn read(&mut self, index: usize) -> usize {
        let token = self.words.tokens[index];
        if let Some(name) = self.called_alone(index) {
            self.mention(token.start, MentionKind::Calls, &name);
            return name.end;
        }
        match token.kind {
            Kind::Line => {
                self.end_statement();
                self.expressions.clear();
                index + 1
            }
            Kind::Mark => self.mark(index),
            Kind::Word => self.word(index),
            Kind::Quoted => self.quoted(index),
            _ => index + 1,
        }
    }

    fn frame(&mut self) -> &mut QueryFrame {
        if self.frames.is_empty() {
            self.frames.push(QueryFrame::default());
        }
        self.frames
            .last_mut()
            .expect("one was pushed if there was none")
    }

    fn mark(&mut self, index: usize) -> usize {
        match self.words.text.as_bytes()[self.words.tokens[index].start] {
            b'(' => {
                self.frames.push(QueryFrame::default());
                // `FROM (a JOIN b …)` and `FROM ((a`.
                if self
                    .frames
                    .iter()
                    .rev()
                    .nth(1)
                    .is_some_and(|outer| outer.in_from)
                    && index > 0
                    && (self.words.is_any_before(index, &["from", "join", "apply"])
                        || self.words.is_mark(index - 1, b'('))
                    && !self.words.is_any(index + 1, &["select", "with", "values"])
                {
                    *self.frame() = QueryFrame {
                        has_query: true,
                        in_from: true,
                    };
                    return self.source(index + 1);
                }
            }
            b')' if self.frames.len() > 1 => {
                self.frames.pop();
            }
            b';' => {
                self.end_statement();
                self.expressions.clear();
            }
            b',' if self.frame().in_from => return self.source(index + 1),
            _ => {}
        }
        index + 1
    }

    /// Reads the body of a function or a dynamic statement in a string.
    fn quoted(&mut self, index: usize) -> usize {
        let token = self.words.tokens[index];
        let written = token.text(self.words.text);
        let at = self.origin.at.unwrap_or(token.start);
        if let Some(depth) = self.origin.depth.checked_sub(1) {
            if let Some(body) = dollar_quoted(written) {
                // Only PostgreSQL has such strings.
                mentions_at(body, Some(Dialect::Postgres), at, depth, self.findings);
            } else {
                let content = written.trim_start_matches(['N', 'n', 'E', 'e']);
                if let Some(content) = content.strip_prefix('\'') {
                    let content = content
                        .strip_suffix('\'')
                        .unwrap_or(content)
                        .replace("''", "'");
                    let is_body =
                        self.words.is_any_before(index, &["as"]) && content.contains('\n');
                    if is_body || opens_statement(&content) && !self.statement.has_rows {
                        mentions_at(&content, self.dialect, at, depth, self.findings);
                    }
                }
            }
        }
        self.function(index)
    }

    fn word(&mut self, index: usize) -> usize {
        let words = self.words;
        let lower = words.word(index).to_ascii_lowercase();
        let after = index + 1;
        // A column of that name, as in `t.update`.
        if index > 0 && words.is_mark(index - 1, b'.') {
            return self.function(index);
        }
        if self.frames.len() == 1 && self.begins(index) {
            const BEGIN: [&str; 19] = [
                "insert", "update", "delete", "merge", "declare", "if", "while", "begin", "exec",
                "execute", "print", "return", "truncate", "drop", "create", "alter", "with",
                "call", "go",
            ];
            if BEGIN.contains(&lower.as_str()) {
                self.end_statement();
            }
        }
        self.statement.has_rows |= lower == "values";
        match lower.as_str() {
            "go" => {
                self.expressions.clear();
                after
            }
            // In PL/pgSQL, `PERFORM` is a query whose result is discarded.
            "select" | "perform" => {
                *self.frame() = QueryFrame {
                    has_query: true,
                    in_from: false,
                };
                after
            }
            "with" => self.common_table_expressions(after),
            "from" => self.from(index),
            "join" | "apply" => {
                self.frame().has_query = true;
                self.frame().in_from = true;
                self.source(after)
            }
            "using" if self.frame().has_query && !words.is_mark(after, b'(') => self.source(after),
            "where" | "on" | "set" | "group" | "order" | "having" | "limit" | "union"
            | "values" | "returning" | "output" | "when" | "window" | "offset" | "option"
            | "fetch" => {
                self.frame().in_from = false;
                after
            }
            "insert" if words.is_any(after, &["all", "first"]) => {
                self.frame().has_query = true;
                self.statement.fills_several = true;
                after + 1
            }
            "insert" | "replace" if !words.is_mark(after, b'(') => self.target(index),
            "update" | "merge" | "delete" | "truncate" => self.target(index),
            "into" => self.into(index),
            "create" => self.created(index),
            "references" => self.reference(after),
            // A declaration in a package is not a call.
            "procedure" | "function" => words.name(after).map_or(after, |name| name.end),
            "alter" if words.is(after, "table") => self.reference(after + 1),
            "exec" | "execute" | "call" => self.called(after),
            _ => self.function(index),
        }
    }

    /// Whether a statement can begin here.
    fn begins(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1).map(|before| self.words.tokens[before]) else {
            return true;
        };
        self.words.tokens[index].gap == Gap::Line
            || before.kind == Kind::Line
            || before.is_mark(self.words.text, b';')
    }

    /// A PL/SQL statement that consists of the name of the called procedure: `pay.close;`.
    fn called_alone(&self, index: usize) -> Option<Name> {
        let words = self.words;
        let may_be = matches!(self.dialect, None | Some(Dialect::Oracle)) && self.frames.len() == 1;
        let begins = index.checked_sub(1).is_some_and(|before| {
            words.is_mark(before, b';')
                || words.is_any(before, &["begin", "then", "else", "loop"])
                || words.is_mark(before, b'>') && before > 0 && words.is_mark(before - 1, b'>')
        });
        if !may_be || !begins || is_statement(words.word(index)) {
            return None;
        }
        words
            .name(index)
            .filter(|name| words.is_mark(name.end, b';'))
    }

    fn from(&mut self, index: usize) -> usize {
        let is_table = self.frame().has_query
            && !self.words.is_any_before(
                index,
                &["distinct", "next", "prior", "first", "last", "absolute"],
            );
        if !is_table {
            return index + 1;
        }
        self.frame().in_from = true;
        self.source(index + 1)
    }

    /// Reads the name of a table and its alias.
    fn source(&mut self, index: usize) -> usize {
        let words = self.words;
        let mut at = index;
        while words.is_any(at, &["lateral", "only", "outer"]) {
            at += 1;
        }
        let Some(table) = words.name(at) else {
            return at;
        };
        let start = words.tokens[at].start;
        if words.is_mark(table.end, b'(')
            && !words.is_any(table.end + 1, &["nolock", "readpast", "updlock"])
        {
            self.mention(start, MentionKind::Calls, &table);
            return table.end;
        }
        let mut alias_at = table.end;
        if words.is(alias_at, "as") {
            alias_at += 1;
        }
        let alias = words.name(alias_at).filter(Name::is_single);
        let end = alias.as_ref().map_or(table.end, |alias| alias.end);
        self.statement.sources.push(TableSource {
            alias: alias.map(|alias| alias.simple().to_ascii_lowercase()),
            table,
            at: start,
        });
        end
    }

    /// Reads the table that a statement writes.
    fn target(&mut self, index: usize) -> usize {
        const BEFORE: [&str; 10] = [
            "into",
            "from",
            "table",
            "only",
            "ignore",
            "low_priority",
            "delayed",
            "overwrite",
            "quick",
            "high_priority",
        ];
        let words = self.words;
        if words.is_any_before(
            index,
            &["for", "on", "after", "before", "or", "key", "of", "instead"],
        ) || index > 0 && words.is_mark(index - 1, b',')
        {
            return index + 1;
        }
        self.frame().has_query = true;
        let mut at = index + 1;
        if words.is(at, "top") {
            at += 1;
            at = self.after_parentheses(at);
        }
        while words.is_any(at, &BEFORE) {
            at += 1;
        }
        let Some(table) = words
            .name(at)
            .filter(|table| !table.simple().eq_ignore_ascii_case("statistics"))
        else {
            return index + 1;
        };
        let end = table.end;
        let mut alias_at = end;
        if words.is(alias_at, "as") {
            alias_at += 1;
        }
        // `MERGE dbo.Orders AS t`: the alias is not a table.
        let alias = words.name(alias_at).filter(Name::is_single);
        self.statement.targets.push((table, words.tokens[at].start));
        alias.map_or(end, |alias| alias.end)
    }

    /// `SELECT … INTO new` creates a table, unless the target is a variable.
    fn into(&mut self, index: usize) -> usize {
        let fills_tables =
            matches!(self.dialect, None | Some(Dialect::TSql)) || self.statement.fills_several;
        if fills_tables
            && self.frame().has_query
            && let Some(table) = self.words.name(index + 1)
        {
            let end = table.end;
            self.statement
                .targets
                .push((table, self.words.tokens[index + 1].start));
            return end;
        }
        index + 1
    }

    /// Reads a created object: temporary tables, and the table of an index or a trigger.
    fn created(&mut self, index: usize) -> usize {
        /// `CREATE UNIQUE NONCLUSTERED INDEX IF NOT EXISTS name ON`.
        const WORDS: usize = 12;
        let words = self.words;
        let mut at = index + 1;
        let mut is_temporary = false;
        while at < index + WORDS {
            is_temporary |= words.is_any(at, &["temporary", "temp"]);
            if words.is(at, "table") {
                at += 1;
                while words.is_any(at, &["if", "not", "exists"]) {
                    at += 1;
                }
                let Some(table) = words.name(at) else {
                    return at;
                };
                if is_temporary {
                    self.temporary.insert(table.simple().to_ascii_lowercase());
                }
                // The columns are in parentheses, and `AS SELECT` may follow.
                return table.end;
            }
            if words.is_any(
                at,
                &[
                    "trigger",
                    "index",
                    "view",
                    "procedure",
                    "proc",
                    "function",
                    "package",
                    "type",
                ],
            ) {
                let is_on_table = words.is_any(at, &["trigger", "index"]);
                at += 1;
                while words.is_any(at, &["if", "not", "exists", "body", "concurrently"]) {
                    at += 1;
                }
                let end = words.name(at).map_or(at, |name| name.end);
                if is_on_table {
                    self.on_table(end);
                }
                return end;
            }
            if words.is_mark(at, b';') || words.is_mark(at, b'(') {
                return at;
            }
            at += 1;
        }
        index + 1
    }

    /// The table after the next `ON` of the head of an index or a trigger.
    fn on_table(&mut self, from: usize) {
        /// In some dialects, `AFTER INSERT OR UPDATE OF a, b OR DELETE` precedes it.
        const TOKENS: usize = 24;
        let words = self.words;
        let on = (from..from + TOKENS)
            .take_while(|&index| !words.is_mark(index, b';') && !words.is_mark(index, b'('))
            .find(|&index| words.is(index, "on"));
        if let Some(on) = on {
            self.reference(on + 1);
        }
    }

    fn reference(&mut self, index: usize) -> usize {
        let mut at = index;
        while self.words.is_any(at, &["only", "if", "exists"]) {
            at += 1;
        }
        let Some(table) = self.words.name(at) else {
            return index;
        };
        self.mention(self.words.tokens[at].start, MentionKind::References, &table);
        table.end
    }

    fn called(&mut self, index: usize) -> usize {
        let words = self.words;
        let mut at = index;
        // `EXEC @result = name`, `EXECUTE FUNCTION name`.
        if words.word(at).starts_with('@') && words.is_mark(at + 1, b'=') {
            at += 2;
        }
        if words.is_any(at, &["function", "procedure"]) {
            at += 1;
        }
        if words.is_any(at, &["immediate", "as"]) {
            return at + 1;
        }
        let Some(name) = words.name(at) else {
            return at;
        };
        self.mention(words.tokens[at].start, MentionKind::Calls, &name);
        name.end
    }

    /// Reads a name; reports it if it is a call in an expression.
    fn function(&mut self, index: usize) -> usize {
        let words = self.words;
        let Some(name) = words.name(index) else {
            return index + 1;
        };
        let is_called = words.is_mark(name.end, b'(')
            && !(name.is_single() && is_built_in(name.simple()))
            && !(index > 0 && words.is_mark(index - 1, b'.'));
        if is_called && words.tokens[name.end].gap == Gap::None {
            self.mention(words.tokens[index].start, MentionKind::Calls, &name);
        }
        name.end
    }

    /// Collects the names of the common table expressions after `WITH`.
    fn common_table_expressions(&mut self, index: usize) -> usize {
        let words = self.words;
        let mut at = index;
        if words.is(at, "recursive") {
            at += 1;
        }
        // A closing parenthesis and a comma precede every further name.
        while let Some(name) = words.name(at).filter(Name::is_single) {
            let mut next = name.end;
            if words.is_mark(next, b'(') {
                next = self.after_parentheses(next);
            }
            if !words.is(next, "as") {
                break;
            }
            next += 1;
            while words.is_any(next, &["not", "materialized"]) {
                next += 1;
            }
            if !words.is_mark(next, b'(') {
                break;
            }
            self.expressions.insert(name.simple().to_ascii_lowercase());
            next = self.after_parentheses(next);
            if !words.is_mark(next, b',') {
                break;
            }
            at = next + 1;
        }
        index
    }

    /// The first token after the parentheses that open here; `index` if none open.
    fn after_parentheses(&self, index: usize) -> usize {
        match self.closing.get(index) {
            Some(&close) if close > index => close + 1,
            _ => index,
        }
    }

    /// Reports the tables of the statement that ends here.
    fn end_statement(&mut self) {
        let statement = std::mem::take(&mut self.statement);
        self.frames.clear();
        self.frames.push(QueryFrame::default());
        for (at, kind, table) in statement.tables() {
            let name = table.simple().to_ascii_lowercase();
            let is_local = name.starts_with('#')
                || table.is_single()
                    && (self.expressions.contains(&name) || self.temporary.contains(&name));
            if !is_local && !is_of_the_system(table) {
                self.mention(at, kind, table);
            }
        }
    }

    fn mention(&mut self, at: usize, kind: MentionKind, name: &Name) {
        if !is_reserved(name.simple()) {
            let at = self.origin.at.unwrap_or(at);
            self.findings
                .mention(at, kind, name.simple(), name.schema());
        }
    }
}

/// The content of a string such as `$body$ … $body$`.
fn dollar_quoted(written: &str) -> Option<&str> {
    let tag = written.strip_prefix('$')?.find('$')?;
    let tag = &written[..tag + 2];
    written.strip_prefix(tag)?.strip_suffix(tag)
}
