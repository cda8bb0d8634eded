//! Reads words and names from the tokens of SQL.

use crate::lex::{Kind, Token};

/// The code tokens of a text.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [Token],
}

/// A qualified name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// Its parts without quotes: server, database, schema, name.
    pub(super) parts: Vec<String>,
    /// The first token after it.
    pub(super) end: usize,
}

impl Name {
    pub(super) fn simple(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }

    /// The schema.
    pub(super) fn schema(&self) -> Option<&str> {
        let before = self.parts.len().checked_sub(2)?;
        self.parts.get(before).map(String::as_str)
    }

    pub(super) fn qualified(&self) -> String {
        self.parts.join(".")
    }

    /// Whether it has no schema.
    pub(super) fn is_single(&self) -> bool {
        self.parts.len() == 1
    }
}

impl<'a> Words<'a> {
    /// The word at a token; empty if that is not a word.
    pub(super) fn word(&self, index: usize) -> &'a str {
        self.tokens
            .get(index)
            .filter(|token| token.kind == Kind::Word)
            .map_or("", |token| token.text(self.text))
    }

    pub(super) fn is(&self, index: usize, word: &str) -> bool {
        self.word(index).eq_ignore_ascii_case(word)
    }

    pub(super) fn is_any(&self, index: usize, words: &[&str]) -> bool {
        let here = self.word(index);
        !here.is_empty() && words.iter().any(|word| here.eq_ignore_ascii_case(word))
    }

    pub(super) fn is_mark(&self, index: usize, mark: u8) -> bool {
        self.tokens
            .get(index)
            .is_some_and(|token| token.is_mark(self.text, mark))
    }

    /// Whether the previous word is one of these.
    pub(super) fn is_any_before(&self, index: usize, words: &[&str]) -> bool {
        index
            .checked_sub(1)
            .is_some_and(|before| self.is_any(before, words))
    }

    /// The name at a token; none if it is built at run time.
    pub(super) fn name(&self, index: usize) -> Option<Name> {
        /// Server, database, schema and name.
        const PARTS: usize = 4;
        let mut parts = Vec::new();
        let mut at = index;
        loop {
            let part = self.part(at, parts.is_empty())?;
            // A name next to a placeholder is only a part of the real name.
            if self.tokens.get(at + 1).is_some_and(|next| {
                next.start == self.tokens[at].end
                    && (next.is_mark(self.text, b'{') || next.is_mark(self.text, b'$'))
            }) {
                return None;
            }
            parts.push(part);
            at += 1;
            let mut dots = 0;
            while self.is_mark(at, b'.') && dots < 2 {
                dots += 1;
                at += 1;
            }
            if dots == 0 || parts.len() == PARTS {
                break;
            }
        }
        Some(Name { parts, end: at })
    }

    fn part(&self, index: usize, is_first: bool) -> Option<String> {
        let token = *self.tokens.get(index)?;
        let written = token.text(self.text);
        match token.kind {
            Kind::Word => {
                // With an `@`, it is a variable or a parameter.
                let is_other = written.contains('@')
                    || written.starts_with(|first: char| first.is_ascii_digit())
                    || is_first && is_reserved(written);
                (!is_other).then(|| written.to_owned())
            }
            Kind::Quoted => {
                let quotes = match written.as_bytes() {
                    [b'[', .., b']'] => ("]]", "]"),
                    [b'"', .., b'"'] => ("\"\"", "\""),
                    [b'`', .., b'`'] => ("``", "`"),
                    _ => return None,
                };
                let inside = written.get(1..written.len() - 1)?;
                let name = inside.replace(quotes.0, quotes.1);
                (!name.trim().is_empty() && !name.contains(['{', '$'])).then_some(name)
            }
            _ => None,
        }
    }
}

/// Whether a word can be a name only if it is quoted.
pub(super) fn is_reserved(word: &str) -> bool {
    const RESERVED: &str = "add all alter and any as asc begin between by case check column \
        commit constraint create \
        cross cursor declare default delete desc distinct drop else end exec execute exists fetch \
        for foreign from full function go grant group having if in index inner insert into is \
        join key lateral left like limit loop merge not null of on only or order outer over \
        partition primary procedure references return returning right select set stdin stdout \
        table then to trigger truncate union unique update using values when where with";
    is_one_of(word, RESERVED)
}

/// Whether a called name is a built-in function or a type.
pub(super) fn is_built_in(word: &str) -> bool {
    const BUILT_IN: &str = "abs array array_agg avg bigint binary bit bool_or cast ceiling \
        char charindex character \
        checksum coalesce col_length concat concat_ws convert count count_big cume_dist \
        current_date date date_format date_part dateadd datediff datename datepart datetime2 \
        datetimeoffset day extract db_id db_name decimal decode dense_rank error_message error_number \
        float floor format getdate greatest group_concat hashbytes identity ifnull iif int isnull \
        json_value lag lead least len length lower lpad ltrim max min mod money month nchar newid \
        now ntile nullif number numeric nvarchar nvarchar2 nvl object_id power quotename \
        raiserror rank replace round row_number rtrim scope_identity sign sqrt stuff substr \
        substring sum sysdate \
        time timestamp to_char to_date trim try_cast try_convert upper varbinary varchar varchar2 xml \
        year";
    is_one_of(word, BUILT_IN)
}

/// Whether a word alone is a complete statement.
pub(super) fn is_statement(word: &str) -> bool {
    const STATEMENTS: &str = "abort begin break checkpoint commit continue end exit go leave null \
        quit raise return rollback start throw";
    is_one_of(word, STATEMENTS)
}

fn is_one_of(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::{is_built_in, is_reserved};

    #[test]
    fn keywords_are_case_insensitive() {
        assert!(is_reserved("With") && is_reserved("ADD") && is_reserved("join"));
        assert!(is_built_in("Abs") && is_built_in("SYSDATE") && is_built_in("stuff"));
        assert!(!is_reserved("orders") && !is_built_in("orders"));
    }
}
