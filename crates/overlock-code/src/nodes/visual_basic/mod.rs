//! Finds types and members in Visual Basic, statement by statement.
//!
//! The language ends what it opens in words that begin a statement, so that no grammar is needed. A
//! statement ends with its line or at a colon. What it speaks of is taken from its tokens, as far as
//! they can be read.

mod spoken;

use std::collections::HashSet;
use std::ops::Range;

use super::tree::{Findings, Found};
use super::{MentionKind, NodeKind};

/// Reports what is in the text; whether all of it could be read.
pub(super) fn find(text: &str, findings: &mut Findings) -> bool {
    let mut finder = Finder {
        text,
        open: Vec::new(),
        prefix: String::new(),
        comments: None,
        group: None,
        may_go_on: false,
        types: Vec::new(),
    };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        finder.line(line, at, findings);
        at += line.len();
    }
    finder.end_group(findings);
    spoken::find(text, &finder.types, findings) && finder.open.is_empty()
}

/// What has been opened and not ended.
struct Open {
    /// The word that ends it, after `End`.
    ends: &'static str,
    found: Option<usize>,
    /// Its place among the types, if it is one.
    own: Option<usize>,
    /// How long the qualified name was before it.
    prefix: usize,
    /// Where its inside begins.
    inside: usize,
}

/// A type, and what is known of it.
struct OwnType {
    span: Range<usize>,
    name: String,
    base: Option<String>,
    /// The names of its methods, in small letters.
    methods: HashSet<String>,
    /// Whether it may have other parts.
    is_partial: bool,
}

/// Properties, fields and events that stand together.
struct Group {
    span: Range<usize>,
    names: Vec<String>,
    inside: Vec<Range<usize>>,
}

struct Finder<'a> {
    text: &'a str,
    open: Vec<Open>,
    prefix: String,
    /// Comments and attributes that may belong to the next declaration.
    comments: Option<usize>,
    group: Option<Group>,
    /// The last statement was a property, which accessors may follow.
    may_go_on: bool,
    types: Vec<OwnType>,
}

/// A statement and where it is.
#[derive(Clone, Copy)]
struct Statement<'a> {
    written: &'a str,
    /// Where it begins, and where with the white space before it.
    start: usize,
    from: usize,
    /// Where it ends, and where what follows it begins.
    end: usize,
    next: usize,
}

/// What a statement opens.
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

const MODIFIERS: [&str; 26] = [
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
    "mustoverride",
    "shadows",
    "overloads",
    "async",
    "iterator",
    "default",
    "readonly",
    "writeonly",
    "widening",
    "narrowing",
    "static",
    "withevents",
    "custom",
    "dim",
    "const",
];

impl Finder<'_> {
    fn line(&mut self, line: &str, at: usize, findings: &mut Findings) {
        let trimmed = line.trim_start_matches('\u{feff}').trim();
        let indent = at + (line.len() - line.trim_start().len());
        if trimmed.starts_with('\'') {
            self.comments.get_or_insert(indent);
            return;
        }
        for piece in statements(line) {
            let whole = &line[piece.clone()];
            let written = whole.trim_start_matches('\u{feff}').trim();
            // Attributes stand above what they belong to, like comments, or before it.
            let declared = without_attributes(written);
            let is_last = line.len() - piece.end <= 1 || line[piece.end..].trim().is_empty();
            let start = at + piece.start + (whole.len() - whole.trim_start().len());
            if declared.is_empty() && !written.is_empty() {
                self.comments.get_or_insert(start);
                continue;
            }
            let statement = Statement {
                written: declared,
                start,
                from: at + piece.start,
                end: at + piece.start + whole.trim_end().len(),
                next: if is_last {
                    at + line.len()
                } else {
                    at + piece.end + 1
                },
            };
            if declared.is_empty() {
                self.comments = None;
            } else {
                self.statement(statement, findings);
            }
        }
    }

    fn statement(&mut self, statement: Statement<'_>, findings: &mut Findings) {
        let written = statement.written;
        let comments = self.comments.take();
        let span = comments.unwrap_or(statement.start)..statement.end;
        let mut words = written.split_whitespace();
        let first = words.next().unwrap_or_default().to_ascii_lowercase();
        let may_go_on = std::mem::take(&mut self.may_go_on);
        match first.as_str() {
            "end" => {
                self.end(words.next().unwrap_or_default(), statement, findings);
                return;
            }
            "inherits" | "implements" => {
                self.bases(&first, statement, findings);
                return;
            }
            "imports" => {
                // What is given another name is not imported.
                for name in written[first.len()..].split(',') {
                    findings.import(name.trim());
                }
                return;
            }
            _ => {}
        }
        let rest = without_modifiers(written);
        let word = first_word(rest).to_ascii_lowercase();
        let after = rest[word.len()..].trim_start();
        match word.as_str() {
            "get" | "set" if may_go_on => {
                // The accessors begin before this one, with whatever attributes it has.
                let inside = self
                    .group
                    .as_ref()
                    .map_or(span.start, |group| group.span.end);
                self.push("property", None, None, inside);
            }
            "property" if name_of(after).is_some() => {
                self.member(span, name_of(after).unwrap_or_default(), findings);
                self.may_go_on = true;
            }
            "event" if name_of(after).is_some() => {
                let inside = statement.end;
                self.member(span, name_of(after).unwrap_or_default(), findings);
                if has_word(written, &["custom"]) {
                    self.push("event", None, None, inside);
                }
            }
            "delegate" | "declare" => self.without_body(&word, after, span, findings),
            _ => match opened_by(rest) {
                Some((opens, after)) => self.opens(opens, after, statement, span, findings),
                None => self.field(written, rest, span, findings),
            },
        }
    }

    fn bases(&mut self, first: &str, statement: Statement<'_>, findings: &mut Findings) {
        let kind = if first == "inherits" {
            MentionKind::Inherits
        } else {
            MentionKind::Implements
        };
        for (place, base) in statement.written[first.len()..].split(',').enumerate() {
            let base = base.split('(').next().unwrap_or_default().trim();
            findings.mention_qualified(statement.start, kind, base);
            let own = self.open.last().and_then(|open| open.own);
            if let Some(own) = own.filter(|_| place == 0 && kind == MentionKind::Inherits) {
                self.types[own].base = Some(base.to_owned());
            }
        }
    }

    /// A type, a namespace or a member with a body begins, or a member without one.
    fn opens(
        &mut self,
        opens: Opens,
        after: &str,
        statement: Statement<'_>,
        span: Range<usize>,
        findings: &mut Findings,
    ) {
        let Some(name) = name_of(after) else {
            return;
        };
        self.end_group(findings);
        if opens.kind == Some(NodeKind::Method)
            && let Some(own) = self.open.last().and_then(|open| open.own)
        {
            let methods = &mut self.types[own].methods;
            methods.insert(name.to_ascii_lowercase());
        }
        // What an interface asks for, or what is left to those who inherit it, has no end.
        let is_in_interface = self
            .open
            .last()
            .is_some_and(|open| open.ends == "interface");
        let has_body = !is_in_interface && !has_word(statement.written, &["mustoverride"]);
        let kind = match opens.kind {
            Some(NodeKind::Method) if !has_body => {
                self.report(NodeKind::Method, opens.detail, name, span, findings);
                return;
            }
            kind => kind,
        };
        let prefix = self.prefix.len();
        self.extend_prefix(name);
        let inside = statement.next..self.text.len();
        let found = kind.map(|kind| {
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
        let own = (kind == Some(NodeKind::Type)).then(|| {
            self.types.push(OwnType {
                span: span.start..self.text.len(),
                name: name.to_owned(),
                base: None,
                methods: HashSet::new(),
                is_partial: has_word(statement.written, &["partial"]),
            });
            self.types.len() - 1
        });
        self.open.push(Open {
            ends: opens.ends,
            found,
            own,
            prefix,
            inside: statement.next,
        });
    }

    fn push(
        &mut self,
        ends: &'static str,
        found: Option<usize>,
        own: Option<usize>,
        inside: usize,
    ) {
        self.open.push(Open {
            ends,
            found,
            own,
            prefix: self.prefix.len(),
            inside,
        });
    }

    fn extend_prefix(&mut self, name: &str) {
        /// Deeper than code is nested, so that no text can make names grow without end.
        const LONGEST: usize = 1024;
        if self.prefix.len() + name.len() < LONGEST {
            if !self.prefix.is_empty() {
                self.prefix.push('.');
            }
            self.prefix.push_str(name);
        }
    }

    /// Something that is declared and has no inside.
    fn report(
        &mut self,
        kind: NodeKind,
        detail: &'static str,
        name: &str,
        span: Range<usize>,
        findings: &mut Findings,
    ) {
        let prefix = self.prefix.len();
        self.extend_prefix(name);
        findings.found.push(Found {
            kind,
            detail,
            name: name.to_owned(),
            qualified: self.prefix.clone(),
            span,
            inside: Vec::new(),
        });
        self.prefix.truncate(prefix);
    }

    /// `Delegate Sub Name(…)`, or `Declare Function Name Lib "…"`, which another library does.
    fn without_body(
        &mut self,
        word: &str,
        after: &str,
        span: Range<usize>,
        findings: &mut Findings,
    ) {
        const BEFORE_NAME: [&str; 5] = ["ansi", "auto", "unicode", "sub", "function"];
        let mut rest = after;
        while BEFORE_NAME
            .iter()
            .any(|before| first_word(rest).eq_ignore_ascii_case(before))
        {
            rest = rest[first_word(rest).len()..].trim_start();
        }
        let (kind, detail) = match word {
            "delegate" => (NodeKind::Type, "delegate"),
            _ => (NodeKind::Method, "method"),
        };
        if let Some(name) = name_of(rest) {
            self.end_group(findings);
            self.report(kind, detail, name, span, findings);
        }
    }

    /// A field stands in a type and begins with a modifier.
    fn field(&mut self, written: &str, rest: &str, span: Range<usize>, findings: &mut Findings) {
        let is_in_type = self
            .open
            .last()
            .is_some_and(|open| matches!(open.ends, "class" | "module" | "structure"));
        if is_in_type
            && rest.len() < written.len()
            && let Some(name) = name_of(rest)
        {
            self.member(span, name, findings);
        }
    }

    /// Adds a property, field or event to those that stand before it.
    fn member(&mut self, span: Range<usize>, name: &str, findings: &mut Findings) {
        /// Constants by the thousand are more than one wants to see at once.
        const LONGEST: usize = 4096;
        if self.open.last().is_none_or(|open| open.own.is_none()) {
            return;
        }
        let is_long = |group: &Group| span.end.saturating_sub(group.span.start) > LONGEST;
        if self.group.as_ref().is_some_and(is_long) {
            self.end_group(findings);
        }
        let group = self.group.get_or_insert_with(|| Group {
            span: span.clone(),
            names: Vec::new(),
            inside: Vec::new(),
        });
        group.span.end = span.end;
        group.names.push(name.to_owned());
    }

    fn end_group(&mut self, findings: &mut Findings) {
        let Some(group) = self.group.take() else {
            return;
        };
        let prefix = self.prefix.len();
        self.extend_prefix("properties");
        let qualified = self.prefix.clone();
        findings.found.push(Found::properties(
            &group.names,
            qualified,
            group.span,
            group.inside,
        ));
        self.prefix.truncate(prefix);
    }

    /// Ends the innermost thing of that name, and with it what is open inside.
    fn end(&mut self, what: &str, statement: Statement<'_>, findings: &mut Findings) {
        let Some(depth) = self
            .open
            .iter()
            .rposition(|open| open.ends.eq_ignore_ascii_case(what))
        else {
            return;
        };
        let ended: Vec<Open> = self.open.drain(depth..).rev().collect();
        for ended in ended {
            if let Some(group) = self
                .group
                .as_mut()
                .filter(|_| matches!(ended.ends, "property" | "event"))
            {
                group.inside.push(ended.inside..statement.from);
                group.span.end = statement.end;
                continue;
            }
            self.end_group(findings);
            self.prefix.truncate(ended.prefix);
            if let Some(own) = ended.own {
                self.types[own].span.end = statement.end;
            }
            if let Some(found) = ended.found.and_then(|found| findings.found.get_mut(found)) {
                found.span.end = statement.end;
                for inside in &mut found.inside {
                    inside.end = statement.from;
                }
            }
        }
    }
}

/// The statements of a line, without the comment after them. Colons are between them.
fn statements(line: &str) -> Vec<Range<usize>> {
    let bytes = line.as_bytes();
    let mut pieces = Vec::new();
    let (mut from, mut end) = (0, bytes.len());
    let (mut is_quoted, mut has_begun, mut is_attribute) = (false, false, false);
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'\'' => {
                end = at;
                break;
            }
            b'<' if !has_begun => is_attribute = true,
            b'>' if is_attribute => {
                is_attribute = false;
                has_begun = false;
                continue;
            }
            // In an attribute it says what the attribute is for, and `:=` gives an argument.
            b':' if !is_attribute && bytes.get(at + 1) != Some(&b'=') => {
                pieces.push(from..at);
                from = at + 1;
                has_begun = false;
                continue;
            }
            _ => {}
        }
        has_begun |= !byte.is_ascii_whitespace();
    }
    pieces.push(from..end.max(from));
    pieces
}

/// What stands after the attributes in angle brackets.
fn without_attributes(statement: &str) -> &str {
    let mut rest = statement;
    while rest.starts_with('<') {
        let mut is_quoted = false;
        let close = rest.bytes().position(|byte| {
            is_quoted ^= byte == b'"';
            byte == b'>' && !is_quoted
        });
        match close {
            Some(close) => rest = rest[close + 1..].trim_start(),
            None => return "",
        }
    }
    rest.strip_suffix('_')
        .filter(|rest| rest.is_empty())
        .unwrap_or(rest)
}

fn first_word(statement: &str) -> &str {
    statement
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default()
}

/// The name that a declaration gives, or the operator that it defines.
fn name_of(after: &str) -> Option<&str> {
    let is_name =
        after.starts_with(|first: char| first.is_alphabetic() || "_[+-*/=<>&".contains(first));
    let name = after
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ',' | '?'))
        .next()
        .unwrap_or_default()
        .trim_matches(['[', ']']);
    (is_name && !name.is_empty()).then_some(name)
}

fn without_modifiers(statement: &str) -> &str {
    let mut rest = statement;
    loop {
        let word = first_word(rest);
        if !MODIFIERS
            .iter()
            .any(|modifier| word.eq_ignore_ascii_case(modifier))
        {
            return rest;
        }
        rest = rest[word.len()..].trim_start();
    }
}

fn opened_by(statement: &str) -> Option<(Opens, &str)> {
    let word = first_word(statement);
    let opens = OPENS
        .into_iter()
        .find(|opens| word.eq_ignore_ascii_case(opens.ends))?;
    Some((opens, statement[word.len()..].trim_start()))
}

fn has_word(statement: &str, words: &[&str]) -> bool {
    statement
        .split_whitespace()
        .any(|word| words.iter().any(|one| word.eq_ignore_ascii_case(one)))
}
