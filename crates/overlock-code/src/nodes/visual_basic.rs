//! Finds types and methods in Visual Basic, line by line.
//!
//! The language ends what it opens in words on a line of their own, so that no grammar is needed.
//! What a line calls is taken from its tokens, as far as they can be read.

use std::ops::Range;

use super::tree::{Findings, Found};
use super::{MentionKind, NodeKind};
use crate::lex::visual_basic::VisualBasic;
use crate::lex::{Kind, Lexer, Token};

/// What has been opened and not ended.
struct Open {
    /// The word that ends it, after `End`.
    ends: &'static str,
    found: Option<usize>,
    /// How long the qualified name was before it.
    prefix: usize,
}

pub(super) fn find(text: &str, findings: &mut Findings) -> bool {
    let mut finder = Finder {
        text,
        open: Vec::new(),
        prefix: String::new(),
        comments: None,
    };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        finder.line(line, at..at + line.len(), findings);
        at += line.len();
    }
    calls(text, findings) && finder.open.is_empty()
}

struct Finder<'a> {
    text: &'a str,
    open: Vec<Open>,
    prefix: String,
    /// Comments that may belong to the next declaration.
    comments: Option<usize>,
}

/// What a line opens.
#[derive(Clone, Copy)]
struct Opens {
    ends: &'static str,
    detail: &'static str,
    kind: Option<NodeKind>,
}

const OPENS: [Opens; 9] = [
    Opens {
        ends: "namespace",
        detail: "namespace",
        kind: None,
    },
    Opens {
        ends: "class",
        detail: "class",
        kind: Some(NodeKind::Type),
    },
    Opens {
        ends: "module",
        detail: "module",
        kind: Some(NodeKind::Type),
    },
    Opens {
        ends: "structure",
        detail: "struct",
        kind: Some(NodeKind::Type),
    },
    Opens {
        ends: "interface",
        detail: "interface",
        kind: Some(NodeKind::Type),
    },
    Opens {
        ends: "enum",
        detail: "enum",
        kind: Some(NodeKind::Type),
    },
    Opens {
        ends: "sub",
        detail: "method",
        kind: Some(NodeKind::Method),
    },
    Opens {
        ends: "function",
        detail: "method",
        kind: Some(NodeKind::Method),
    },
    Opens {
        ends: "operator",
        detail: "operator",
        kind: Some(NodeKind::Method),
    },
];

const MODIFIERS: [&str; 20] = [
    "public",
    "private",
    "protected",
    "friend",
    "partial",
    "shared",
    "overridable",
    "overrides",
    "notoverridable",
    "notinheritable",
    "mustinherit",
    "shadows",
    "overloads",
    "async",
    "iterator",
    "default",
    "readonly",
    "widening",
    "narrowing",
    "static",
];

impl Finder<'_> {
    fn line(&mut self, line: &str, span: Range<usize>, findings: &mut Findings) {
        let trimmed = line.trim_start_matches('\u{feff}').trim();
        let indent = span.start + (line.len() - line.trim_start().len());
        if trimmed.starts_with('\'') || trimmed.starts_with('<') {
            // Attributes stand above what they belong to, like comments.
            self.comments.get_or_insert(indent);
            return;
        }
        let comments = self.comments.take();
        let mut words = trimmed.split_whitespace();
        let first = words.next().unwrap_or_default().to_ascii_lowercase();
        if first == "end" {
            self.end(words.next().unwrap_or_default(), span, findings);
            return;
        }
        if first == "inherits" || first == "implements" {
            let kind = if first == "inherits" {
                MentionKind::Inherits
            } else {
                MentionKind::Implements
            };
            for base in trimmed[first.len()..].split(',') {
                findings.mention(indent, kind, simple(base), None);
            }
            return;
        }
        let rest = without_modifiers(trimmed);
        // What an interface asks for, or another library does, has no end.
        let has_body = !has_word(trimmed, &["mustoverride", "declare", "delegate"])
            && self.open.last().is_none_or(|open| open.ends != "interface");
        let Some((opens, after)) = opened_by(rest) else {
            return;
        };
        if opens.kind == Some(NodeKind::Method) && !has_body {
            return;
        }
        self.opened(opens, after, comments.unwrap_or(indent)..span.end, findings);
    }

    fn opened(&mut self, opens: Opens, after: &str, span: Range<usize>, findings: &mut Findings) {
        /// Deeper than code is nested, so that no text can make names grow without end.
        const LONGEST: usize = 1024;
        let name = after
            .split(|c: char| c.is_whitespace() || c == '(')
            .next()
            .unwrap_or_default()
            .trim_matches(['[', ']']);
        let prefix = self.prefix.len();
        if prefix + name.len() < LONGEST {
            if prefix > 0 {
                self.prefix.push('.');
            }
            self.prefix.push_str(name);
        }
        let inside = span.end..self.text.len();
        let found = opens.kind.map(|kind| {
            findings.found.push(Found {
                kind,
                detail: if name.eq_ignore_ascii_case("new") {
                    "constructor"
                } else {
                    opens.detail
                },
                name: name.to_owned(),
                qualified: self.prefix.clone(),
                inside: vec![inside],
                span: span.start..self.text.len(),
            });
            findings.found.len() - 1
        });
        self.open.push(Open {
            ends: opens.ends,
            found,
            prefix,
        });
    }

    /// Ends the innermost thing of that name, and with it what is open inside.
    fn end(&mut self, what: &str, span: Range<usize>, findings: &mut Findings) {
        let Some(depth) = self
            .open
            .iter()
            .rposition(|open| open.ends.eq_ignore_ascii_case(what))
        else {
            return;
        };
        let end = self.text[..span.end].trim_end().len().max(span.start);
        for ended in self.open.drain(depth..).rev() {
            self.prefix.truncate(ended.prefix);
            if let Some(found) = ended.found.and_then(|found| findings.found.get_mut(found)) {
                found.span.end = end;
                for inside in &mut found.inside {
                    inside.end = span.start;
                }
            }
        }
    }
}

fn without_modifiers(line: &str) -> &str {
    let mut rest = line;
    loop {
        let word = rest
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        if !MODIFIERS
            .iter()
            .any(|modifier| word.eq_ignore_ascii_case(modifier))
        {
            return rest;
        }
        rest = rest[word.len()..].trim_start();
    }
}

fn opened_by(line: &str) -> Option<(Opens, &str)> {
    let word = line.split_whitespace().next()?;
    let opens = OPENS
        .into_iter()
        .find(|opens| word.eq_ignore_ascii_case(opens.ends))?;
    let after = line[word.len()..].trim_start();
    after
        .starts_with(|first: char| first.is_alphabetic() || "_[+-*/=<>&".contains(first))
        .then_some((opens, after))
}

fn has_word(line: &str, words: &[&str]) -> bool {
    line.split_whitespace()
        .any(|word| words.iter().any(|one| word.eq_ignore_ascii_case(one)))
}

/// The name of a type without what it is qualified with and its arguments.
fn simple(written: &str) -> &str {
    let name = written.split(['(', '\'']).next().unwrap_or_default().trim();
    name.rsplit('.').next().unwrap_or_default()
}

/// Reports what is called and what is made; whether all of the text could be read.
fn calls(text: &str, findings: &mut Findings) -> bool {
    let mut lexer = VisualBasic::new(text);
    let mut before: [Option<Token>; 2] = [None, None];
    loop {
        let token = match lexer.next() {
            Ok(Some(token)) => token,
            Ok(None) => return true,
            Err(_) => return false,
        };
        if let [earlier, Some(name)] = before
            && name.kind == Kind::Word
            && token.is_mark(text, b'(')
        {
            let is = |word: &str| earlier.is_some_and(|earlier| earlier.is_word(text, word));
            let written = name.text(text);
            if is("new") {
                findings.mention(name.start, MentionKind::Calls, written, None);
            } else if !is("as") && !is("sub") && !is("function") && !is_keyword(written) {
                if earlier.is_some_and(|earlier| earlier.is_mark(text, b'.')) {
                    findings.call_of_unknown(name.start, written);
                } else {
                    findings.mention(name.start, MentionKind::Calls, written, None);
                }
            }
        }
        if let [Some(earlier), Some(name)] = before
            && name.kind == Kind::Word
            && (earlier.is_word(text, "as") || earlier.is_word(text, "new"))
            && !token.is_mark(text, b'.')
        {
            findings.mention(name.start, MentionKind::References, name.text(text), None);
        }
        before = [before[1], Some(token)];
    }
}

fn is_keyword(word: &str) -> bool {
    const KEYWORDS: [&str; 24] = [
        "if",
        "elseif",
        "while",
        "for",
        "each",
        "and",
        "or",
        "not",
        "andalso",
        "orelse",
        "return",
        "in",
        "is",
        "isnot",
        "of",
        "ctype",
        "directcast",
        "cint",
        "cstr",
        "gettype",
        "nameof",
        "byval",
        "byref",
        "new",
    ];
    KEYWORDS
        .iter()
        .any(|keyword| word.eq_ignore_ascii_case(keyword))
}
