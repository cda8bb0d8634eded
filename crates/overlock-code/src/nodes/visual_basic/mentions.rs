//! Collects the names that Visual Basic code declares, calls and uses.

use std::collections::HashMap;
use std::ops::Range;

use super::super::strings::{HOLE, Strings};
use super::super::tree::Findings;
use super::super::{MentionKind, NodeKind};
use super::DeclaredType;
use crate::lex::visual_basic::VisualBasic;
use crate::lex::{Kind, Lexer, Token};

/// Reports the mentions of a text; returns whether all of it could be read.
pub(super) fn find(text: &str, types: &[DeclaredType], findings: &mut Findings) -> bool {
    let mut lexer = VisualBasic::new(text);
    let mut tokens = Vec::new();
    let is_whole = loop {
        match lexer.next() {
            Ok(Some(token)) if token.kind.is_code() => tokens.push(token),
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let mut members: Vec<Range<usize>> = findings
        .nodes
        .iter()
        .filter(|found| found.kind == NodeKind::Method)
        .map(|found| found.span.clone())
        .collect();
    members.sort_by_key(|member| member.start);
    let mut finder = MentionFinder {
        text,
        tokens: &tokens,
        types,
        members: &members,
        declared: HashMap::new(),
        strings: Strings::default(),
        findings,
    };
    finder.declare();
    for index in 0..tokens.len() {
        finder.token(index);
    }
    finder.strings.report(findings);
    is_whole
}

/// A variable: the member it is declared in, if it is in one, and its type.
struct Variable {
    member: Option<usize>,
    of: String,
}

struct MentionFinder<'a, 'f> {
    text: &'a str,
    tokens: &'a [Token],
    types: &'a [DeclaredType],
    members: &'a [Range<usize>],
    /// By their names in lower case.
    declared: HashMap<String, Vec<Variable>>,
    strings: Strings,
    findings: &'f mut Findings,
}

impl<'a> MentionFinder<'a, '_> {
    fn is(&self, index: usize, word: &str) -> bool {
        self.tokens
            .get(index)
            .is_some_and(|token| token.is_word(self.text, word))
    }

    fn is_mark(&self, index: usize, mark: u8) -> bool {
        self.tokens
            .get(index)
            .is_some_and(|token| token.is_mark(self.text, mark))
    }

    fn word(&self, index: usize) -> Option<&'a str> {
        self.tokens
            .get(index)
            .filter(|token| token.kind == Kind::Word)
            .map(|token| token.text(self.text))
    }

    /// The dotted name that begins at a token, and the token after it.
    fn name_from(&self, index: usize) -> Option<(String, usize)> {
        /// Deeper than namespaces are nested.
        const PARTS: usize = 16;
        let mut name = self.word(index)?.to_owned();
        let mut next = index + 1;
        for _ in 1..PARTS {
            let Some(part) = self.word(next + 1).filter(|_| self.is_mark(next, b'.')) else {
                break;
            };
            name.push('.');
            name.push_str(part);
            next += 2;
        }
        Some((name.replace("Global.", ""), next))
    }

    /// Collects the types of variables, parameters and fields.
    fn declare(&mut self) {
        for index in 1..self.tokens.len() {
            if !self.is(index, "as") {
                continue;
            }
            let of = if self.is(index + 1, "new") {
                index + 2
            } else {
                index + 1
            };
            if let Some(name) = self.word(index - 1)
                && let Some((of, _)) = self.name_from(of)
            {
                let member = self.member_at(self.tokens[index].start);
                let declared = self.declared.entry(name.to_lowercase()).or_default();
                declared.push(Variable { member, of });
            }
        }
    }

    fn member_at(&self, at: usize) -> Option<usize> {
        let before = self.members.partition_point(|member| member.start <= at);
        let last = before.checked_sub(1)?;
        (at < self.members[last].end).then_some(last)
    }

    fn own_type(&self, at: usize) -> Option<&'a DeclaredType> {
        /// Bounds the work in a text with very many types.
        const LOOK_BACK: usize = 64;
        let before = self.types.partition_point(|own| own.span.start <= at);
        let mut before = self.types[..before].iter().rev().take(LOOK_BACK);
        before.find(|own| at < own.span.end)
    }

    fn token(&mut self, index: usize) {
        let token = self.tokens[index];
        if token.kind == Kind::Quoted {
            let content = content(token.text(self.text));
            self.strings.add(self.text, token.start..token.end, content);
            return;
        }
        let Some(word) = self.word(index) else {
            return;
        };
        if word.eq_ignore_ascii_case("StoredProcedure") {
            if let Some(member) = self.member_at(token.start) {
                self.strings.calls_procedure(self.members[member].clone());
            }
            return;
        }
        let follows = |word: &str| index > 0 && self.is(index - 1, word);
        let is_created = follows("new");
        if is_created || follows("as") || follows("of") {
            self.type_name(index, is_created);
        } else if self.is_mark(index + 1, b'(')
            && !["sub", "function", "property", "event", "operator"]
                .iter()
                .any(|declares| follows(declares))
        {
            self.called(index, word);
        }
    }

    /// Reports the type named here, and its constructor after `New`.
    fn type_name(&mut self, index: usize, is_created: bool) {
        let at = self.tokens[index].start;
        let Some((name, _)) = self.name_from(index).filter(|_| !self.is(index, "new")) else {
            return;
        };
        let kind = MentionKind::References;
        self.findings.mention_qualified(at, kind, &name);
        if is_created {
            let kind = MentionKind::Calls;
            self.findings.mention_qualified(at, kind, &name);
        }
    }

    fn called(&mut self, index: usize, name: &str) {
        let at = self.tokens[index].start;
        let is_member = index > 0 && self.is_mark(index - 1, b'.');
        let receiver = index
            .checked_sub(2)
            .filter(|_| is_member)
            .and_then(|before| self.word(before));
        if !is_member {
            if !is_keyword(name) {
                self.findings.mention(at, MentionKind::Calls, name, None);
            }
            return;
        }
        let is_of_type = index > 3 && self.is_type_before(index - 2);
        match receiver.map(str::to_lowercase).as_deref() {
            // The last part of a name after `New` or `As`.
            _ if is_of_type => {}
            Some("me" | "myclass") => self.own_called(at, name),
            Some("mybase") => self.base_called(at, name),
            Some(receiver) => {
                let is_first = index < 3 || !self.is_mark(index - 3, b'.');
                match self.type_of(receiver, at).filter(|_| is_first) {
                    Some(of) => {
                        let kind = MentionKind::Calls;
                        self.findings.mention(at, kind, name, Some(&of));
                    }
                    None => self.findings.call_of_unknown(at, name),
                }
            }
            None => self.findings.call_of_unknown(at, name),
        }
    }

    /// Whether the dotted name that contains this token is that of a type.
    fn is_type_before(&self, index: usize) -> bool {
        let mut first = index;
        while first >= 2 && self.is_mark(first - 1, b'.') && self.word(first - 2).is_some() {
            first -= 2;
        }
        first > 0 && (self.is(first - 1, "new") || self.is(first - 1, "as"))
    }

    fn type_of(&self, name: &str, at: usize) -> Option<String> {
        let declared = self.declared.get(name)?;
        let member = self.member_at(at);
        let here = declared.iter().find(|one| one.member == member);
        let found = here.or_else(|| declared.iter().find(|one| one.member.is_none()))?;
        Some(found.of.clone())
    }

    /// Reports a call on `Me`: a method of the type, of another part of it, or of its base class.
    fn own_called(&mut self, at: usize, name: &str) {
        let Some(own) = self.own_type(at) else {
            self.findings.call_of_unknown(at, name);
            return;
        };
        let kind = MentionKind::Calls;
        self.findings.mention(at, kind, name, Some(&own.name));
        if !own.methods.contains(&name.to_lowercase())
            && let Some(base) = &own.base
        {
            self.findings.mention(at, kind, name, Some(base));
        }
    }

    fn base_called(&mut self, at: usize, name: &str) {
        let Some(own) = self.own_type(at) else {
            return;
        };
        match &own.base {
            Some(base) => {
                let kind = MentionKind::Calls;
                self.findings.mention(at, kind, name, Some(base));
                if name.eq_ignore_ascii_case("new") {
                    self.findings.mention_qualified(at, kind, base);
                }
            }
            // Another part of the type may name its base class.
            None if own.is_partial => self.findings.call_of_unknown(at, name),
            None => {}
        }
    }
}

/// The content of a string, precise enough to read SQL in it.
fn content(literal: &str) -> String {
    let is_interpolated = literal.starts_with('$');
    let inside = literal.trim_start_matches('$');
    let inside = inside.strip_prefix('"').unwrap_or(inside);
    let inside = inside.strip_suffix('"').unwrap_or(inside);
    let content = inside.replace("\"\"", "\"");
    if !is_interpolated {
        return content;
    }
    let mut out = String::with_capacity(content.len());
    let mut depth = 0_usize;
    for character in content.chars() {
        match character {
            '{' => {
                if depth == 0 {
                    out.push_str(HOLE);
                }
                depth += 1;
            }
            '}' => depth = depth.saturating_sub(1),
            other if depth == 0 => out.push(other),
            _ => {}
        }
    }
    out
}

/// Whether a word before a parenthesis is a keyword, so that it is not called.
fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &str = "addhandler and andalso as await byref byval call case cbool cbyte cchar \
        cdate cdbl cdec cint clng cobj cshort csng cstr ctype directcast do each else elseif end \
        erase for from function get gettype handles if implements in is isnot let like loop mod \
        nameof new not of on or orelse raiseevent redim removehandler return select set step sub \
        synclock then throw to trycast typeof until using when where while with xor yield";
    KEYWORDS
        .split_ascii_whitespace()
        .any(|keyword| word.eq_ignore_ascii_case(keyword))
}
