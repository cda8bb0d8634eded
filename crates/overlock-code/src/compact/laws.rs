//! Properties of compaction that hold for every text.

use proptest::prelude::*;

use super::layout::{Docs, Style, lay_out};
use crate::lex::csharp::CSharp;
use crate::lex::dialect::Dialect;
use crate::lex::executed::executed_tokens;
use crate::lex::sql::Sql;
use crate::lex::visual_basic::VisualBasic;
use crate::lex::{Ambiguous, Lexer};
use crate::outline::sql::outline_in;

/// Pieces that open, close or interrupt something in one of the languages.
const PIECES: [&str; 121] = [
    "\"",
    "\"\"",
    "\"\"\"",
    "\"\"\"\"",
    "'",
    "''",
    "`",
    "@\"",
    "$\"",
    "$@\"",
    "@$\"",
    "$\"\"\"",
    "$$\"\"\"",
    "{",
    "}",
    "{{",
    "}}",
    "(",
    ")",
    "[",
    "]",
    "]]",
    ";",
    ",",
    ".",
    ":",
    "::",
    "?",
    "//",
    "///",
    "/*",
    "*/",
    "/**",
    "/*+",
    "/*!",
    "--",
    "--+",
    "-",
    "/",
    "*",
    "#",
    "#if X\n",
    "#endif\n",
    "#else\n",
    "#region a\n",
    "#endregion\n",
    "\n#pragma warning disable\n",
    "\\",
    "\\\"",
    "\\'",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "\u{a0}",
    "\u{2028}",
    "\u{85}",
    "\u{feff}",
    "é",
    "漢字",
    "\u{201c}",
    "$$",
    "$a$",
    "$1",
    "$(x)",
    "q'[",
    "]'",
    "nq'{",
    "}'",
    "N'",
    "E'",
    "e'\\",
    "U&'",
    "x",
    "a b",
    "1",
    "1.5e+3",
    "0xFF",
    "@x",
    "@@y",
    "#t",
    "##g",
    "<",
    ">",
    "=",
    "<=",
    "=>",
    ">>",
    "<@",
    "< @x",
    "+",
    "!",
    "|",
    "\nGO\n",
    "\nGO",
    "\n/\n",
    "\nDELIMITER $$\n",
    "\nPROMPT it's\n",
    "\nREM don't\n",
    "\n\\echo it's\n",
    "\n:setvar a \"b\n",
    "COPY t FROM stdin;\n",
    "\n\\.\n",
    "SELECT",
    "FROM t",
    " AS ",
    "DO ",
    "; CREATE JAVA SOURCE x ",
    "LANGUAGE x ",
    "IF @a DELETE t",
    "CREATE TABLE t",
    "varchar2",
    "nvarchar",
    "plpgsql",
    "ENGINE=InnoDB",
    "class C",
    "void M()",
    "return",
    "Rem c",
    "' c",
];

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[ -~\n]{0,12}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// The language and dialect of a text, given, because detecting it may depend on comments that
/// compaction removes.
#[derive(Clone, Copy, Debug)]
enum Lexing {
    Sql(Option<Dialect>),
    CSharp,
    VisualBasic,
}

const LEXINGS: [Lexing; 7] = [
    Lexing::Sql(None),
    Lexing::Sql(Some(Dialect::TSql)),
    Lexing::Sql(Some(Dialect::Postgres)),
    Lexing::Sql(Some(Dialect::MySql)),
    Lexing::Sql(Some(Dialect::Oracle)),
    Lexing::CSharp,
    Lexing::VisualBasic,
];

impl Lexing {
    fn lossless(self, text: &str, docs: Docs) -> Result<String, Ambiguous> {
        let laid_out = match self {
            Self::Sql(dialect) => lay_out(&mut Sql::with_dialect(text, dialect), docs, Style::Sql),
            Self::CSharp => lay_out(&mut CSharp::new(text), docs, Style::CSharp),
            Self::VisualBasic => lay_out(&mut VisualBasic::new(text), docs, Style::VisualBasic),
        };
        laid_out.map(|laid_out| laid_out.text)
    }

    /// The tokens that a compiler would read.
    fn code(self, text: &str) -> Result<Vec<String>, Ambiguous> {
        match self {
            Self::Sql(dialect) => code(&mut Sql::with_dialect(text, dialect)),
            Self::CSharp => code(&mut CSharp::new(text)),
            Self::VisualBasic => code(&mut VisualBasic::new(text)),
        }
    }
}

fn code<'a>(lexer: &mut impl Lexer<'a>) -> Result<Vec<String>, Ambiguous> {
    let text = lexer.text();
    let mut code = Vec::new();
    while let Some(token) = lexer.next()? {
        assert!(token.start < token.end, "an empty token at {}", token.start);
        if token.kind.is_code() {
            code.push(token.text(text).to_owned());
        }
    }
    Ok(code)
}

/// The tokens that a database would read, including those in executed comments.
fn pieces_run(text: &str, dialect: Option<Dialect>) -> Result<Vec<&str>, Ambiguous> {
    let tokens = executed_tokens(text, dialect)?;
    Ok(tokens.iter().map(|token| token.text(text)).collect())
}

/// The tokens of an outline without bodies in strings, which are outlined separately.
fn without_bodies<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let is = |at: Option<usize>, words: &[&str]| {
        at.is_some_and(|at| {
            words
                .iter()
                .any(|word| tokens[at].eq_ignore_ascii_case(word))
        })
    };
    let is_body = |at: usize| {
        tokens[at].starts_with('$')
            && (is(at.checked_sub(1), &["as", "do"]) || is(at.checked_sub(2), &["language"]))
    };
    let rest = (0..tokens.len()).filter(|&at| !is_body(at));
    rest.map(|at| tokens[at]).collect()
}

/// The tokens of an outline without marks such as `… 3 more lines like it`.
fn without_marks(tokens: Vec<&str>) -> Vec<&str> {
    let mut in_mark = false;
    let mut rest = tokens;
    rest.retain(|token| {
        let counts = token.bytes().all(|byte| byte.is_ascii_digit());
        let says = ["line", "lines", "more", "like", "it"].contains(token);
        in_mark = token.trim_start().starts_with('…') || in_mark && (counts || says);
        !in_mark
    });
    rest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn an_outline_of_sql_leaves_out_tokens_and_changes_none(text in text()) {
        for lexing in LEXINGS {
            let Lexing::Sql(dialect) = lexing else {
                continue;
            };
            let Ok(outline) = outline_in(&text, dialect) else {
                continue;
            };
            let before = pieces_run(&text, dialect).expect("what was outlined can be read");
            let after = pieces_run(&outline.text, dialect).expect("an outline can be read");
            let mut left = before.iter();
            for token in without_marks(without_bodies(&after)) {
                prop_assert!(
                    left.any(|before| *before == token),
                    "{:?}: {:?} in {:?} is no token of {:?}", dialect, token, &outline.text, &text
                );
            }
        }
    }

    #[test]
    fn compaction_changes_no_token_and_adds_no_byte(text in text(), keep in any::<bool>()) {
        let docs = if keep { Docs::Keep } else { Docs::Drop };
        for lexing in LEXINGS {
            let shorter = lexing.lossless(&text, docs);
            prop_assert_eq!(shorter.is_err(), lexing.code(&text).is_err());
            if let Ok(shorter) = shorter {
                prop_assert!(shorter.len() <= text.len());
                prop_assert_eq!(lexing.code(&text), lexing.code(&shorter), "{:?}: {:?} became {:?}", lexing, &text, &shorter);
            }
        }
    }

    #[test]
    fn compacting_twice_changes_nothing_more(text in text(), keep in any::<bool>()) {
        let docs = if keep { Docs::Keep } else { Docs::Drop };
        for lexing in LEXINGS {
            if let Ok(once) = lexing.lossless(&text, docs) {
                let twice = lexing.lossless(&once, docs);
                prop_assert_eq!(Ok(once), twice, "{:?}: {:?}", lexing, &text);
            }
        }
    }
}
