//! Finds types and members in Visual Basic, statement by statement.
//!
//! Blocks end with statements such as `End Class`, so no parser is needed. A statement ends with its
//! line or at a colon. Mentions are collected from the tokens, as far as they can be read.

mod mentions;
mod statements;

use std::collections::HashSet;
use std::ops::Range;

use super::tree::{Findings, FoundNode};
use super::{MentionKind, NodeKind};
use statements::{
    first_word, has_word, name_of, statements, without_attributes, without_modifiers,
};

/// Reports the nodes and mentions of a text; returns whether all of it could be read.
pub(super) fn find(text: &str, findings: &mut Findings) -> bool {
    let mut finder = VisualBasicFinder {
        text,
        open: Vec::new(),
        prefix: String::new(),
        comments: None,
        group: None,
        may_have_accessors: false,
        types: Vec::new(),
    };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        finder.line(line, at, findings);
        at += line.len();
    }
    finder.end_group(findings);
    mentions::find(text, &finder.types, findings) && finder.open.is_empty()
}

/// A block that has not ended.
struct OpenBlock {
    /// The keyword after `End` that ends it.
    ends: &'static str,
    found: Option<usize>,
    /// Its index among the types, if it is one.
    own: Option<usize>,
    /// The length of the prefix before it.
    prefix: usize,
    /// Where its body begins.
    inside: usize,
}

/// A declared type.
struct DeclaredType {
    span: Range<usize>,
    name: String,
    base: Option<String>,
    /// The names of its methods, in lower case.
    methods: HashSet<String>,
    /// Whether it may have other parts in other files.
    is_partial: bool,
}

/// Adjacent properties, fields and events.
struct PropertyGroup {
    span: Range<usize>,
    names: Vec<String>,
    inside: Vec<Range<usize>>,
}

struct VisualBasicFinder<'a> {
    text: &'a str,
    open: Vec<OpenBlock>,
    prefix: String,
    /// Comments and attributes that may belong to the next declaration.
    comments: Option<usize>,
    group: Option<PropertyGroup>,
    /// The last statement was a property, so accessors may follow.
    may_have_accessors: bool,
    types: Vec<DeclaredType>,
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

const fn opens(ends: &'static str, detail: &'static str, kind: Option<NodeKind>) -> Opens {
    Opens { ends, detail, kind }
}

const OPENS: [Opens; 9] = [
    opens("namespace", "namespace", None),
    opens("class", "class", Some(NodeKind::Type)),
    opens("module", "module", Some(NodeKind::Type)),
    opens("structure", "struct", Some(NodeKind::Type)),
    opens("interface", "interface", Some(NodeKind::Type)),
    opens("enum", "enum", Some(NodeKind::Type)),
    opens("sub", "method", Some(NodeKind::Method)),
    opens("function", "method", Some(NodeKind::Method)),
    opens("operator", "operator", Some(NodeKind::Method)),
];

impl VisualBasicFinder<'_> {
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
            // Attributes are above a declaration, like comments, or at its start.
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
        let may_have_accessors = std::mem::take(&mut self.may_have_accessors);
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
                // `import` ignores aliases.
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
            "get" | "set" if may_have_accessors => {
                // The accessors begin with the attributes before this one.
                let inside = self
                    .group
                    .as_ref()
                    .map_or(span.start, |group| group.span.end);
                self.push("property", None, None, inside);
            }
            "property" if name_of(after).is_some() => {
                self.member(span, name_of(after).unwrap_or_default(), findings);
                self.may_have_accessors = true;
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

    /// Begins a type, a namespace or a member with a body, or adds a member without one.
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
        // Members of interfaces and abstract members have no body.
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
            findings.nodes.push(FoundNode {
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
            findings.nodes.len() - 1
        });
        let own = (kind == Some(NodeKind::Type)).then(|| {
            self.types.push(DeclaredType {
                span: span.start..self.text.len(),
                name: name.to_owned(),
                base: None,
                methods: HashSet::new(),
                is_partial: has_word(statement.written, &["partial"]),
            });
            self.types.len() - 1
        });
        self.open.push(OpenBlock {
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
        self.open.push(OpenBlock {
            ends,
            found,
            own,
            prefix: self.prefix.len(),
            inside,
        });
    }

    fn extend_prefix(&mut self, name: &str) {
        /// Bounds the length of names in deeply nested text.
        const LONGEST: usize = 1024;
        if self.prefix.len() + name.len() < LONGEST {
            if !self.prefix.is_empty() {
                self.prefix.push('.');
            }
            self.prefix.push_str(name);
        }
    }

    /// Reports a declaration without a body.
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
        findings.nodes.push(FoundNode {
            kind,
            detail,
            name: name.to_owned(),
            qualified: self.prefix.clone(),
            span,
            inside: Vec::new(),
        });
        self.prefix.truncate(prefix);
    }

    /// `Delegate Sub Name(…)`, or `Declare Function Name Lib "…"` for an external function.
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

    /// A field is inside a type and begins with a modifier.
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

    /// Adds a property, field or event to the current group.
    fn member(&mut self, span: Range<usize>, name: &str, findings: &mut Findings) {
        /// Splits long groups, such as thousands of constants.
        const LONGEST: usize = 4096;
        if self.open.last().is_none_or(|open| open.own.is_none()) {
            return;
        }
        let is_long = |group: &PropertyGroup| span.end.saturating_sub(group.span.start) > LONGEST;
        if self.group.as_ref().is_some_and(is_long) {
            self.end_group(findings);
        }
        let group = self.group.get_or_insert_with(|| PropertyGroup {
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
        findings.nodes.push(FoundNode::properties(
            &group.names,
            qualified,
            group.span,
            group.inside,
        ));
        self.prefix.truncate(prefix);
    }

    /// Ends the innermost block of that kind, and all blocks open inside.
    fn end(&mut self, what: &str, statement: Statement<'_>, findings: &mut Findings) {
        let Some(depth) = self
            .open
            .iter()
            .rposition(|open| open.ends.eq_ignore_ascii_case(what))
        else {
            return;
        };
        let ended: Vec<OpenBlock> = self.open.drain(depth..).rev().collect();
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
            if let Some(found) = ended.found.and_then(|found| findings.nodes.get_mut(found)) {
                found.span.end = statement.end;
                for inside in &mut found.inside {
                    inside.end = statement.from;
                }
            }
        }
    }
}

fn opened_by(statement: &str) -> Option<(Opens, &str)> {
    let word = first_word(statement);
    let opens = OPENS
        .into_iter()
        .find(|opens| word.eq_ignore_ascii_case(opens.ends))?;
    Some((opens, statement[word.len()..].trim_start()))
}
