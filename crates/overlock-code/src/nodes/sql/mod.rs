//! Finds procedures, views and tables in SQL, and the tables that statements read and write.
//!
//! There is no parser, because no grammar covers real SQL. A definition begins with keywords such as
//! `CREATE VIEW`. Where it ends depends on the dialect: at the end of the batch in T-SQL, at the
//! delimiter in `MySQL`, at a slash in Oracle, at a semicolon elsewhere.

mod mentions;
mod statement;
mod words;

use std::ops::Range;

use super::tree::{Findings, FoundNode};
use super::{MentionKind, NodeKind};
use crate::lex::dialect::Dialect;
use crate::lex::executed::{with_executed, with_hints_before};
use crate::lex::sql::Sql;
use crate::lex::{Gap, Kind, Lexer, Token};
use mentions::Origin;
use words::{Name, Words};

/// How many levels of SQL in strings are read: a function in a string in a function.
const DEPTH: usize = 2;

/// Reports the nodes and mentions of a text; returns whether it could be read without guessing.
pub(super) fn find(text: &str, findings: &mut Findings) -> bool {
    let read = LexedSql::new(text);
    let words = Words {
        text,
        tokens: &read.tokens,
    };
    let borders = DefinitionFinder {
        words,
        dialect: read.dialect,
        comments: &read.comments,
        delimiter: None,
        depth: 0,
    }
    .definitions(findings);
    let origin = Origin {
        at: None,
        depth: DEPTH,
    };
    mentions::find(words, read.dialect, &borders, origin, findings);
    read.is_certain
}

/// Reports the mentions of a statement in a string, all at one byte of the text around it.
pub(super) fn mentions_in(statement: &str, at: usize, findings: &mut Findings) {
    mentions_at(statement, None, at, DEPTH, findings);
}

/// Reports a call of the procedure whose name is the content of a string.
pub(super) fn call_in(name: &str, at: usize, findings: &mut Findings) {
    let read = LexedSql::new(name);
    let words = Words {
        text: name,
        tokens: &read.tokens,
    };
    if let Some(name) = words.name(0)
        && name.end == read.tokens.len()
    {
        findings.mention(at, MentionKind::Calls, name.simple(), name.schema());
    }
}

fn mentions_at(
    statement: &str,
    dialect: Option<Dialect>,
    at: usize,
    depth: usize,
    findings: &mut Findings,
) {
    let read = LexedSql::new(statement);
    let words = Words {
        text: statement,
        tokens: &read.tokens,
    };
    let origin = Origin {
        at: Some(at),
        depth,
    };
    mentions::find(words, dialect.or(read.dialect), &[], origin, findings);
}

/// The tokens of a text.
struct LexedSql {
    tokens: Vec<Token>,
    comments: Vec<Range<usize>>,
    dialect: Option<Dialect>,
    is_certain: bool,
}

impl LexedSql {
    fn new(text: &str) -> Self {
        let mut lexer = Sql::new(text);
        let dialect = lexer.dialect();
        // An ambiguous text is read as T-SQL, which uses brackets, backslashes before quotes and
        // nested comments most.
        Self::with(&mut lexer, dialect, true).unwrap_or_else(|| {
            let mut guessed = Sql::with_dialect(text, Some(Dialect::TSql));
            Self::with(&mut guessed, dialect, false).unwrap_or(Self {
                tokens: Vec::new(),
                comments: Vec::new(),
                dialect,
                is_certain: false,
            })
        })
    }

    fn with(lexer: &mut Sql<'_>, dialect: Option<Dialect>, is_certain: bool) -> Option<Self> {
        let (mut tokens, mut comments) = (Vec::new(), Vec::new());
        while let Some(token) = lexer.next().ok()? {
            if token.kind.is_code() {
                tokens.push(token);
            } else {
                comments.push(token.start..token.end);
            }
        }
        Some(Self {
            tokens: with_executed(lexer.text(), dialect, tokens),
            comments,
            dialect,
            is_certain,
        })
    }
}

/// The kind of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defines {
    /// Contains statements.
    Procedure(&'static str),
    View,
    Table,
    Type,
}

/// The beginning of a definition.
struct Head {
    defines: Defines,
    name: Name,
}

struct DefinitionFinder<'a> {
    words: Words<'a>,
    dialect: Option<Dialect>,
    comments: &'a [Range<usize>],
    /// Ends statements instead of a semicolon.
    delimiter: Option<&'a str>,
    /// How many parentheses are open.
    depth: usize,
}

impl DefinitionFinder<'_> {
    /// Reports all definitions; returns the tokens at which one begins or ends.
    fn definitions(mut self, findings: &mut Findings) -> Vec<usize> {
        let mut borders = Vec::new();
        let mut index = 0;
        while index < self.words.tokens.len() {
            self.track(index);
            let Some(head) = self.head(index) else {
                index += 1;
                continue;
            };
            let from = index;
            index = self.end(from, &head).max(head.name.end);
            self.depth = 0;
            borders.extend([from, index]);
            self.report(from..index, &head, findings);
        }
        borders
    }

    /// Tracks open parentheses and the delimiter.
    fn track(&mut self, index: usize) {
        let token = self.words.tokens[index];
        match token.kind {
            Kind::Line => {
                self.depth = 0;
                if let Some(delimiter) = delimiter(token.text(self.words.text)) {
                    self.delimiter = (delimiter != ";").then_some(delimiter);
                }
            }
            Kind::Word if self.words.is(index, "go") => self.depth = 0,
            Kind::Mark => match self.words.text.as_bytes()[token.start] {
                b'(' => self.depth += 1,
                b')' => self.depth = self.depth.saturating_sub(1),
                b';' => self.depth = 0,
                _ => {}
            },
            _ => {}
        }
    }

    /// The definition that begins at this token, if one does.
    fn head(&self, index: usize) -> Option<Head> {
        /// The longest prefix is `OR REPLACE DEFINER = `a`@`b` SQL SECURITY DEFINER`.
        const WORDS: usize = 16;
        let words = &self.words;
        if self.depth > 0 || !words.is_any(index, &["create", "alter"]) {
            return None;
        }
        if words.is_any_before(index, &["grant", "deny", "revoke", "any"])
            || index > 0 && words.is_mark(index - 1, b',')
        {
            return None;
        }
        let alters = words.is(index, "alter");
        let mut is_temporary = false;
        let mut at = index + 1;
        let defines = loop {
            if at > index + WORDS {
                return None;
            }
            is_temporary |= words.is_any(at, &["temporary", "temp"]);
            let defines = match words.word(at).to_ascii_lowercase().as_str() {
                "procedure" | "proc" => Some(Defines::Procedure("procedure")),
                "function" | "aggregate" => Some(Defines::Procedure("function")),
                "trigger" => Some(Defines::Procedure("trigger")),
                "event" => Some(Defines::Procedure("event")),
                "package" => Some(Defines::Procedure("package")),
                "view" => Some(Defines::View),
                "table" => Some(Defines::Table),
                "type" => Some(Defines::Type),
                // These are not nodes.
                "index" | "schema" | "database" | "user" | "role" | "login" | "sequence"
                | "extension" | "synonym" | "statistics" | "certificate" | "session" | "server"
                | "domain" | "rule" | "policy" | "operator" | "cast" | "language" | "on"
                | "select" | "as" | "from" | "tablespace" | "publication" | "subscription"
                | "column" | "constraint" | "system" | "authorization" => return None,
                "" if !self.may_precede_kind(at) => return None,
                _ => None,
            };
            at += 1;
            if let Some(defines) = defines {
                break defines;
            }
        };
        // Altering a table or a type does not define it.
        let defined_anew = matches!(defines, Defines::Procedure(_) | Defines::View);
        if is_temporary || alters && !defined_anew {
            return None;
        }
        if words.is(at, "body") {
            at += 1;
        }
        if words.is(at, "concurrently") {
            at += 1;
        }
        if words.is(at, "if") {
            while words.is_any(at, &["if", "not", "exists"]) {
                at += 1;
            }
        }
        let name = words.name(at)?;
        (!name.simple().starts_with('#')).then_some(Head { defines, name })
    }

    /// Whether a token that is not a word can precede the kind: `DEFINER = 'a'@'b'`.
    fn may_precede_kind(&self, index: usize) -> bool {
        self.words.tokens.get(index).is_some_and(|token| {
            token.kind == Kind::Quoted
                || matches!(
                    self.words.text.as_bytes()[token.start],
                    b'=' | b'@' | b'(' | b')'
                )
                || token.kind == Kind::Hint
        })
    }

    /// The first token after a definition.
    fn end(&mut self, from: usize, head: &Head) -> usize {
        let by_semicolon = self.ends_by_semicolon(from, head);
        let (mut parentheses, mut blocks) = (0_usize, 0_usize);
        let mut index = head.name.end;
        let tokens = self.words.tokens;
        // After a body in a string, the statement ends.
        let mut body_is_over = false;
        while index < tokens.len() {
            let token = tokens[index];
            if self.ends_batch(index) {
                return index;
            }
            if token.kind == Kind::Hint {
                // The token after a run of hints looks back at all of them once.
                index += 1;
                continue;
            }
            let first = with_hints_before(tokens, index);
            let begins = tokens[first..=index].iter().any(|it| it.gap == Gap::Line)
                || self.words.is_mark(first - 1, b';');
            if begins && (parentheses == 0 || head.defines != Defines::Table) {
                self.depth = 0;
                let next = self.head(index).map(|next| next.defines);
                let ends = match (head.defines, next) {
                    (_, None) => false,
                    // Procedures create tables, but do not nest.
                    (Defines::Procedure(_), Some(Defines::Table | Defines::Type)) => body_is_over,
                    (_, Some(_)) => true,
                };
                let other = matches!(head.defines, Defines::Table | Defines::Type)
                    && parentheses == 0
                    && self.begins_other(index);
                if ends || other {
                    return first;
                }
            }
            match token.kind {
                Kind::Quoted if self.is_body(index) => body_is_over = true,
                Kind::Word => blocks = self.block_depth(index, blocks),
                Kind::Mark => match self.words.text.as_bytes()[token.start] {
                    b'(' => parentheses += 1,
                    b')' => parentheses = parentheses.saturating_sub(1),
                    b';' if parentheses == 0
                        && (body_is_over
                            || by_semicolon && blocks == 0 && self.delimiter.is_none()) =>
                    {
                        return index + 1;
                    }
                    _ => {}
                },
                _ => {}
            }
            index += 1;
        }
        tokens.len()
    }

    /// Whether a semicolon outside of blocks ends the definition.
    fn ends_by_semicolon(&self, from: usize, head: &Head) -> bool {
        match (head.defines, self.dialect) {
            (Defines::View | Defines::Table, _)
            | (Defines::Procedure(_), Some(Dialect::MySql | Dialect::Postgres)) => true,
            (Defines::Type, dialect) => {
                let is_body = (from..head.name.end).any(|index| self.words.is(index, "body"));
                dialect != Some(Dialect::Oracle) || !is_body
            }
            (Defines::Procedure(_), _) => false,
        }
    }

    /// Whether a batch ends at this token.
    fn ends_batch(&self, index: usize) -> bool {
        let token = self.words.tokens[index];
        let written = token.text(self.words.text);
        match token.kind {
            Kind::Line => true,
            Kind::Word => written.eq_ignore_ascii_case("go") && self.is_alone(index),
            Kind::Mark => {
                written == "/" && self.is_alone(index)
                    || self.delimiter.is_some_and(|delimiter| {
                        self.words.text[token.start..].starts_with(delimiter)
                    })
            }
            _ => false,
        }
    }

    /// Whether a token is alone on its line; a number may follow `GO`.
    fn is_alone(&self, index: usize) -> bool {
        let tokens = self.words.tokens;
        let begins = index == 0 || tokens[index].gap == Gap::Line;
        let is_number = |token: &Token| {
            token
                .text(self.words.text)
                .bytes()
                .all(|byte| byte.is_ascii_digit())
        };
        begins
            && tokens
                .get(index + 1)
                .is_none_or(|next| next.gap == Gap::Line || is_number(next))
    }

    /// Whether a string is the body of a function.
    fn is_body(&self, index: usize) -> bool {
        let written = self.words.tokens[index].text(self.words.text);
        written.starts_with('$')
            || written.starts_with('\'') && self.words.is_any_before(index, &["as"])
    }

    fn block_depth(&self, index: usize, blocks: usize) -> usize {
        let words = &self.words;
        let next_is = |names: &[&str]| words.is_any(index + 1, names);
        match () {
            () if words.is(index, "begin") => {
                let opens = !next_is(&["tran", "transaction", "work", "distributed"])
                    && !words.is_mark(index + 1, b';');
                blocks + usize::from(opens)
            }
            () if words.is(index, "case") && !words.is_any_before(index, &["end"]) => blocks + 1,
            () if words.is(index, "end") && !next_is(&["if", "loop", "while", "repeat", "for"]) => {
                blocks.saturating_sub(1)
            }
            () => blocks,
        }
    }

    /// Whether a statement begins here that cannot be part of a table.
    fn begins_other(&self, index: usize) -> bool {
        const BEGIN: [&str; 22] = [
            "create", "alter", "insert", "update", "delete", "drop", "grant", "set", "if", "exec",
            "execute", "print", "declare", "begin", "end", "use", "comment", "merge", "truncate",
            "else", "deny", "commit",
        ];
        self.words.is_any(index, &BEGIN)
    }

    fn report(&self, tokens: Range<usize>, head: &Head, findings: &mut Findings) {
        let all = self.words.tokens;
        let (Some(first), Some(last)) = (all.get(tokens.start), all.get(tokens.end - 1)) else {
            return;
        };
        let span = self.with_comments(first.start)..last.end;
        let (kind, detail) = match head.defines {
            Defines::Procedure(detail) => (NodeKind::Procedure, detail),
            Defines::View => (NodeKind::View, "view"),
            Defines::Table => (NodeKind::Table, "table"),
            Defines::Type => (NodeKind::Type, "type"),
        };
        let inside = self.body(tokens.clone(), head).map(|from| from..last.end);
        findings.nodes.push(FoundNode {
            kind,
            detail,
            name: head.name.simple().to_owned(),
            qualified: head.name.qualified(),
            span,
            inside: inside.into_iter().collect(),
        });
        if detail == "package" || detail == "type" {
            self.members(tokens, head, findings);
        }
    }

    /// Where the body begins: after the parameters, or after the name of a table.
    fn body(&self, tokens: Range<usize>, head: &Head) -> Option<usize> {
        let words = &self.words;
        let mut parentheses = 0_usize;
        for index in head.name.end..tokens.end {
            let token = words.tokens[index];
            if words.is_mark(index, b'(') {
                parentheses += 1;
                if matches!(head.defines, Defines::Table | Defines::Type) {
                    return Some(token.start);
                }
            }
            if words.is_mark(index, b')') {
                parentheses = parentheses.saturating_sub(1);
            }
            let typed = index > 0 && words.word(index - 1).starts_with('@');
            let opens = words.is_any(index, &["as", "is"]) && !typed
                || words.is(index, "begin")
                || token.kind == Kind::Quoted && self.is_body(index);
            if opens && parentheses == 0 {
                let executes = words.is_any(index + 1, &["owner", "caller", "self"])
                    || words.is_any_before(index, &["execute", "exec"]);
                if !executes {
                    return Some(token.end.min(words.tokens[tokens.end - 1].end));
                }
            }
        }
        None
    }

    /// The procedures and functions in the body of a package.
    fn members(&self, tokens: Range<usize>, head: &Head, findings: &mut Findings) {
        let words = &self.words;
        let is_body = (tokens.start..head.name.end).any(|index| words.is(index, "body"));
        if !is_body {
            return;
        }
        let begins = |index: usize| {
            words.is_any(index, &["procedure", "function"])
                && (words.tokens[index].gap == Gap::Line
                    || words.is_mark(index - 1, b';')
                    || words.is_any_before(index, &["is", "as"]))
                && words.name(index + 1).is_some()
        };
        let mut starts: Vec<usize> = (head.name.end..tokens.end)
            .filter(|&index| begins(index))
            .collect();
        starts.push(tokens.end);
        for pair in starts.windows(2) {
            let [from, to] = pair else { continue };
            let Some(name) = words.name(from + 1) else {
                continue;
            };
            // The `END` after the last one belongs to the package.
            let is_last = *to == tokens.end;
            let last = if is_last {
                self.before_final_end(*to)
            } else {
                *to - 1
            };
            let last = last.max(*from);
            let end = words.tokens[last].end;
            let span = self.with_comments(words.tokens[*from].start)..end;
            let member = Head {
                defines: Defines::Procedure("procedure"),
                name,
            };
            let inside = self.body(*from..last + 1, &member).map(|from| from..end);
            findings.nodes.push(FoundNode {
                kind: NodeKind::Procedure,
                detail: if words.is(*from, "function") {
                    "function"
                } else {
                    "procedure"
                },
                name: member.name.simple().to_owned(),
                qualified: format!("{}.{}", head.name.qualified(), member.name.simple()),
                span,
                inside: inside.into_iter().collect(),
            });
        }
    }

    /// The last token before the `END name;` of a package.
    fn before_final_end(&self, end: usize) -> usize {
        /// `END`, the name and its schema, the semicolon.
        const TOKENS: usize = 6;
        let from = end.saturating_sub(TOKENS);
        (from..end)
            .rev()
            .find(|&index| self.words.is(index, "end"))
            .map_or(end - 1, |index| index.saturating_sub(1))
    }

    /// Where the comments directly above an offset begin.
    fn with_comments(&self, start: usize) -> usize {
        let mut from = start;
        let before = self
            .comments
            .partition_point(|comment| comment.end <= start);
        for comment in self.comments[..before].iter().rev() {
            let between = self.words.text.get(comment.end..from).unwrap_or_default();
            let feeds = between.bytes().filter(|&byte| byte == b'\n').count();
            if !between.trim().is_empty() || feeds > 2 {
                break;
            }
            from = comment.start;
        }
        from
    }
}

/// The delimiter that a `DELIMITER` line sets.
fn delimiter(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let is_command = words.next()?.eq_ignore_ascii_case("delimiter");
    is_command.then(|| words.next()).flatten()
}

#[cfg(test)]
mod tests {
    use crate::lex::executed::HINTS_PASSED;
    use crate::nodes::{Reading, nodes};

    /// How many hints are passed to read a procedure with this many in a row.
    fn hints_passed(hints: usize) -> usize {
        let hints = "/*+ x */ ".repeat(hints);
        let text = format!("CREATE PROCEDURE p AS BEGIN\n{hints}\nDELETE FROM t; END\n");
        HINTS_PASSED.set(0);
        assert_eq!(nodes(&text, Reading::Sql).nodes.len(), 2);
        HINTS_PASSED.take()
    }

    #[test]
    fn a_run_of_hints_is_passed_once() {
        let (some, twice_as_many) = (hints_passed(5_000), hints_passed(10_000));
        assert_eq!((some, twice_as_many), (5_000, 10_000));
    }
}
