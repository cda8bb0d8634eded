//! The parts of SQL statements that an outline keeps, by the tokens of `sqlparser`.

use std::collections::BTreeSet;

use sqlparser::dialect::Dialect;
use sqlparser::tokenizer::Token;

use super::{File, Kept, sql_tokens};

/// A kind of thing, and its name.
type Named = (&'static str, String);

/// Records which names of a file are in its outline, if `sqlparser` can read the file.
pub(super) fn compare(
    file: &File,
    outline: &str,
    dialect: &dyn Dialect,
    kept: &mut Kept,
    differences: bool,
) {
    let Some(before) = sql_tokens(&without_prose(&file.text), dialect) else {
        return;
    };
    // A mark is not SQL.
    let outline = without_prose(outline).replace('…', " ");
    let after = sql_tokens(&outline, dialect).map_or_else(BTreeSet::new, |it| named(&it));
    for thing in named(&before) {
        let is_kept = after.contains(&thing);
        kept.note(thing.0, is_kept);
        if !is_kept && differences {
            println!("lost: {thing:?} of {}", file.path.display());
        }
    }
}

/// The text without SQL*Plus commands: remarks, messages and file names.
fn without_prose(text: &str) -> String {
    let is_prose = |line: &&str| {
        let word = line.split_whitespace().next().unwrap_or_default();
        ["rem", "remark", "prompt", "spool"]
            .iter()
            .any(|command| word.eq_ignore_ascii_case(command))
    };
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !is_prose(line)).collect()
}

fn named(tokens: &[Token]) -> BTreeSet<Named> {
    let mut found = BTreeSet::new();
    let mut reader = Reader { tokens, at: 0 };
    while let Some(word) = reader.next_word() {
        match word.as_str() {
            "create" => reader.created(&mut found),
            // It reads a cursor and writes variables.
            "fetch" | "close" | "immediate" | "grant" | "revoke" | "copy" => reader.end(),
            "from" | "join" | "into" | "update" | "merge" => {
                reader.skip(&["into", "only", "table"]);
                found.extend(reader.table());
            }
            _ => {}
        }
    }
    found
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Reader<'_> {
    /// The next unquoted word, in lower case. Other tokens are skipped.
    fn next_word(&mut self) -> Option<String> {
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            if let Token::Word(word) = token
                && word.quote_style.is_none()
            {
                return Some(word.value.to_lowercase());
            }
        }
        None
    }

    fn peek_word(&self) -> Option<String> {
        match self.tokens.get(self.at)? {
            Token::Word(word) => Some(word.value.to_lowercase()),
            _ => None,
        }
    }

    fn skip(&mut self, words: &[&str]) {
        while self
            .peek_word()
            .is_some_and(|word| words.contains(&word.as_str()))
        {
            self.at += 1;
        }
    }

    /// A qualified name; nothing if another token follows.
    fn name(&mut self) -> Option<String> {
        let mut name = self.peek_word()?;
        self.at += 1;
        while self.tokens.get(self.at) == Some(&Token::Period) {
            let Some(Token::Word(part)) = self.tokens.get(self.at + 1) else {
                break;
            };
            name = format!("{name}.{}", part.value.to_lowercase());
            self.at += 2;
        }
        Some(name)
    }

    /// A table name; nothing for a variable, a function or a keyword.
    fn table(&mut self) -> Option<Named> {
        const NO_TABLE: &[&str] = &["select", "lateral", "unnest", "set", "of", "the"];
        let name = self.name()?;
        let calls = self.tokens.get(self.at) == Some(&Token::LParen);
        let is_table =
            !calls && !name.starts_with(['@', ':']) && !NO_TABLE.contains(&name.as_str());
        is_table.then_some(("tables read or written", name))
    }

    /// Goes to the end of the statement.
    fn end(&mut self) {
        let rest = &self.tokens[self.at..];
        let is_end = |token: &Token| matches!(token, Token::SemiColon | Token::LParen);
        self.at += rest.iter().position(is_end).unwrap_or(rest.len());
    }

    /// The object of a `CREATE`, with its parameters or columns.
    fn created(&mut self, found: &mut BTreeSet<Named>) {
        self.skip(&[
            "or",
            "alter",
            "replace",
            "force",
            "editionable",
            "global",
            "temporary",
            "unlogged",
        ]);
        let kind = match self.peek_word().as_deref() {
            Some("proc" | "procedure" | "function") => "procedures and functions",
            Some("view") => "views",
            Some("trigger") => "triggers",
            Some("table") => "tables",
            _ => return,
        };
        self.at += 1;
        self.skip(&["if", "not", "exists"]);
        let Some(name) = self.name() else {
            return;
        };
        match kind {
            "tables" => self.listed(&name, "columns", found),
            "procedures and functions" => {
                self.variables(&name, found);
                self.listed(&name, "parameters", found);
            }
            _ => {}
        }
        found.insert((kind, name));
    }

    /// The parameters of T-SQL, which begin with `@`.
    fn variables(&self, owner: &str, found: &mut BTreeSet<Named>) {
        for token in &self.tokens[self.at..] {
            let Token::Word(word) = token else {
                continue;
            };
            if word.quote_style.is_none()
                && matches!(
                    word.value.to_lowercase().as_str(),
                    "as" | "begin" | "returns"
                )
            {
                break;
            }
            if word.value.starts_with('@') {
                found.insert((
                    "parameters",
                    format!("{owner} {}", word.value.to_lowercase()),
                ));
            }
        }
    }

    /// The first word of each item of a list in parentheses.
    fn listed(&self, owner: &str, kind: &'static str, found: &mut BTreeSet<Named>) {
        const NO_COLUMN: &[&str] = &[
            "constraint",
            "primary",
            "foreign",
            "unique",
            "key",
            "index",
            "check",
            "like",
            "fulltext",
            "period",
            "exclude",
            "spatial",
            "select",
        ];
        if self.tokens.get(self.at) != Some(&Token::LParen) {
            return;
        }
        let (mut depth, mut is_first) = (0, false);
        for token in &self.tokens[self.at..] {
            match token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 1 => return,
                Token::RParen => depth -= 1,
                _ => {}
            }
            match token {
                Token::LParen | Token::Comma if depth == 1 => is_first = true,
                Token::Word(word) if is_first => {
                    let word = word.value.to_lowercase();
                    if !NO_COLUMN.contains(&word.as_str()) {
                        found.insert((kind, format!("{owner} {word}")));
                    }
                    is_first = false;
                }
                _ => is_first = false,
            }
        }
    }
}
