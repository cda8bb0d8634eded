//! Finds the tables that statements read and write, and what they call.
//!
//! Names of temporary tables, of common table expressions and of aliases are no tables. What is
//! put together while the statement runs is not known, and is not guessed.

use std::collections::{HashMap, HashSet};

use super::super::MentionKind;
use super::super::tree::Findings;
use super::mentions_at;
use super::words::{Name, Words, is_built_in, is_reserved, is_statement};
use crate::classify::embedded::opens_statement;
use crate::lex::dialect::Dialect;
use crate::lex::{Gap, Kind};

/// Where what is found is told.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// At this byte; at its own if there is none.
    pub(super) at: Option<usize>,
    /// How much deeper strings are read.
    pub(super) depth: usize,
}

/// Reports what the statements of a text speak of. At a border a definition begins or ends, and
/// what was local to it is forgotten.
pub(super) fn find(
    words: Words<'_>,
    dialect: Option<Dialect>,
    borders: &[usize],
    place: Place,
    findings: &mut Findings,
) {
    let mut reader = Reader {
        words,
        dialect,
        place,
        findings,
        frames: vec![Frame::default()],
        statement: Statement::default(),
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

/// What stands in one pair of parentheses, or outside of all.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// A query or another statement with tables has begun in it.
    has_query: bool,
    /// Tables follow, separated by commas.
    in_from: bool,
}

/// A table that is read, with the name it has in the statement.
#[derive(Debug)]
struct Source {
    table: Name,
    alias: Option<String>,
    at: usize,
}

/// What is known of a statement before it ends.
#[derive(Debug, Default)]
struct Statement {
    sources: Vec<Source>,
    targets: Vec<(Name, usize)>,
    /// `INSERT ALL`: every `INTO` is followed by a table.
    fills_several: bool,
    /// Its rows have begun: a string in them is kept and not run.
    has_rows: bool,
}

struct Reader<'a, 'f> {
    words: Words<'a>,
    dialect: Option<Dialect>,
    place: Place,
    findings: &'f mut Findings,
    frames: Vec<Frame>,
    statement: Statement,
    /// The names of common table expressions.
    expressions: HashSet<String>,
    temporary: HashSet<String>,
    /// For every parenthesis that is closed, where; for all other tokens 0.
    closing: Vec<usize>,
}

impl Reader<'_, '_> {
    /// Reads what begins at a token; the next one to read.
    fn read(&mut self, index: usize) -> usize {
        let token = self.words.tokens[index];
        if let Some(name) = self.called_alone(index) {
            self.say(token.start, MentionKind::Calls, &name);
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

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        self.frames
            .last_mut()
            .expect("one was pushed if there was none")
    }

    fn mark(&mut self, index: usize) -> usize {
        match self.words.text.as_bytes()[self.words.tokens[index].start] {
            b'(' => {
                self.frames.push(Frame::default());
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
                    *self.frame() = Frame {
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

    /// A function in a string, or a statement that is run as a string.
    fn quoted(&mut self, index: usize) -> usize {
        let token = self.words.tokens[index];
        let written = token.text(self.words.text);
        let at = self.place.at.unwrap_or(token.start);
        if let Some(depth) = self.place.depth.checked_sub(1) {
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
            // PL/pgSQL writes `PERFORM` for a query whose result nobody wants.
            "select" | "perform" => {
                *self.frame() = Frame {
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
            // In a package, a name that is declared is not called.
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

    /// A procedure that a statement of PL/SQL calls by nothing but its name: `pay.close;`.
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

    /// A table to read and the name it goes by.
    fn source(&mut self, index: usize) -> usize {
        let words = self.words;
        let mut at = index;
        while words.is_any(at, &["lateral", "only", "outer"]) {
            at += 1;
        }
        let Some(table) = words.name(at) else {
            return at;
        };
        let place = words.tokens[at].start;
        if words.is_mark(table.end, b'(')
            && !words.is_any(table.end + 1, &["nolock", "readpast", "updlock"])
        {
            self.say(place, MentionKind::Calls, &table);
            return table.end;
        }
        let mut alias_at = table.end;
        if words.is(alias_at, "as") {
            alias_at += 1;
        }
        let alias = words.name(alias_at).filter(Name::is_single);
        let end = alias.as_ref().map_or(table.end, |alias| alias.end);
        self.statement.sources.push(Source {
            alias: alias.map(|alias| alias.simple().to_ascii_lowercase()),
            table,
            at: place,
        });
        end
    }

    /// What a statement changes.
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
        // `MERGE dbo.Orders AS t`: the alias is no other table.
        let alias = words.name(alias_at).filter(Name::is_single);
        self.statement.targets.push((table, words.tokens[at].start));
        alias.map_or(end, |alias| alias.end)
    }

    /// `SELECT … INTO new`: only where it is not a variable that is filled.
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

    /// Temporary tables, and what an index or a trigger is on.
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
        /// `AFTER INSERT OR UPDATE OF a, b OR DELETE` comes before it in some dialects.
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
        self.say(self.words.tokens[at].start, MentionKind::References, &table);
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
        self.say(words.tokens[at].start, MentionKind::Calls, &name);
        name.end
    }

    /// A function that is called in an expression.
    fn function(&mut self, index: usize) -> usize {
        let words = self.words;
        let Some(name) = words.name(index) else {
            return index + 1;
        };
        let is_called = words.is_mark(name.end, b'(')
            && !(name.is_single() && is_built_in(name.simple()))
            && !(index > 0 && words.is_mark(index - 1, b'.'));
        if is_called && words.tokens[name.end].gap == Gap::None {
            self.say(words.tokens[index].start, MentionKind::Calls, &name);
        }
        name.end
    }

    /// Names that a `WITH` gives to queries.
    fn common_table_expressions(&mut self, index: usize) -> usize {
        let words = self.words;
        let mut at = index;
        if words.is(at, "recursive") {
            at += 1;
        }
        // Every further name follows a closing parenthesis and a comma.
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

    /// The first token after the parentheses that open here; this one if none do.
    fn after_parentheses(&self, index: usize) -> usize {
        match self.closing.get(index) {
            Some(&close) if close > index => close + 1,
            _ => index,
        }
    }

    /// Tells of the tables of a statement, now that the names in it are known.
    fn end_statement(&mut self) {
        let statement = std::mem::take(&mut self.statement);
        self.frames.clear();
        self.frames.push(Frame::default());
        let mut aliases: HashMap<&str, usize> = HashMap::new();
        for (index, source) in statement.sources.iter().enumerate() {
            if let Some(alias) = &source.alias {
                aliases.entry(alias).or_insert(index);
            }
        }
        let mut written = HashSet::new();
        for (target, at) in &statement.targets {
            let alias = target.simple().to_ascii_lowercase();
            match aliases.get(alias.as_str()).filter(|_| target.is_single()) {
                Some(&source) => {
                    written.insert(source);
                    self.table(
                        statement.sources[source].at,
                        MentionKind::WritesTable,
                        &statement.sources[source].table,
                    );
                }
                None => self.table(*at, MentionKind::WritesTable, target),
            }
        }
        for (index, source) in statement.sources.iter().enumerate() {
            // A correlated `FROM t.items` is a column of a table that is read already.
            let of_alias = source
                .table
                .of()
                .is_some_and(|of| aliases.contains_key(of.to_ascii_lowercase().as_str()));
            if !written.contains(&index) && !of_alias {
                self.table(source.at, MentionKind::ReadsTable, &source.table);
            }
        }
    }

    fn table(&mut self, at: usize, kind: MentionKind, table: &Name) {
        const NO_TABLES: [&str; 6] = ["inserted", "deleted", "dual", "new", "old", "excluded"];
        const OF_THE_SYSTEM: [&str; 4] = [
            "sys",
            "information_schema",
            "pg_catalog",
            "performance_schema",
        ];
        let name = table.simple().to_ascii_lowercase();
        let is_local = name.starts_with('#')
            || table.is_single()
                && (NO_TABLES.contains(&name.as_str())
                    || self.expressions.contains(&name)
                    || self.temporary.contains(&name));
        let of_the_system = table.of().is_some_and(|of| {
            OF_THE_SYSTEM
                .iter()
                .any(|system| of.eq_ignore_ascii_case(system))
        });
        if !is_local && !of_the_system {
            self.say(at, kind, table);
        }
    }

    fn say(&mut self, at: usize, kind: MentionKind, name: &Name) {
        if !is_reserved(name.simple()) {
            let at = self.place.at.unwrap_or(at);
            self.findings.mention(at, kind, name.simple(), name.of());
        }
    }
}

/// What is inside of a string such as `$body$ … $body$`.
fn dollar_quoted(written: &str) -> Option<&str> {
    let tag = written.strip_prefix('$')?.find('$')?;
    let tag = &written[..tag + 2];
    written.strip_prefix(tag)?.strip_suffix(tag)
}
