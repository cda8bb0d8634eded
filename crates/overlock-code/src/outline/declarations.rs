//! Finds the declarations of a C# file and how they nest.
//!
//! A declaration can be left out as a whole, and so can a branch from its `#if` to its `#endif`.
//! Everything else, such as text that does not parse, belongs to the declaration around it.

use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::csharp::parse;

/// A declaration.
pub(crate) struct Declaration {
    /// With the comments before it.
    pub(crate) range: Range<usize>,
    /// The declaration without its members.
    pub(crate) head: Range<usize>,
    /// The index of the declaration around it.
    pub(crate) parent: Option<usize>,
    pub(crate) kind: DeclarationKind,
}

/// What is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclarationKind {
    /// `using System;`
    Import,
    /// A type with its members.
    Type,
    /// A namespace with braces, or `#if` and `#endif`.
    Frame,
    /// A member, or anything else.
    Member,
}

/// The declarations of a text, in its order, or none if it cannot be parsed at all.
pub(crate) fn declarations(text: &str) -> Option<Vec<Declaration>> {
    let tree = parse(text)?;
    let mut finder = DeclarationFinder {
        text,
        branches: Branches::new(text),
        found: Vec::new(),
        around: Vec::new(),
    };
    finder.walk(&tree);
    Some(finder.found)
}

struct DeclarationFinder<'a> {
    text: &'a str,
    branches: Branches,
    found: Vec<Declaration>,
    /// The containers around the current node.
    around: Vec<usize>,
}

impl DeclarationFinder<'_> {
    /// Visits the nodes in the order of the text, without recursion: the text decides the depth.
    fn walk(&mut self, tree: &Tree) {
        let mut cursor = tree.walk();
        // Where the comments before the next declaration begin.
        let mut comments = None;
        loop {
            let node = cursor.node();
            if node.kind() == "comment" {
                comments = comments.or(Some(node.start_byte()));
            } else if self.enters(node, comments.take()) && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                comments = None;
            }
        }
    }

    /// Visits a node; whether there may be declarations inside.
    fn enters(&mut self, node: Node<'_>, comments: Option<usize>) -> bool {
        let end = node.end_byte();
        let (kind, head_end) = match node.kind() {
            "compilation_unit" | "declaration_list" | "preproc_else" | "preproc_elif" => {
                return true;
            }
            "preproc_if" if node.has_error() => return true,
            "preproc_if" | "namespace_declaration" => (DeclarationKind::Frame, node.start_byte()),
            "using_directive" | "extern_alias_directive" => (DeclarationKind::Import, end),
            "class_declaration"
            | "struct_declaration"
            | "interface_declaration"
            | "record_declaration"
            | "record_struct_declaration" => match node.child_by_field_name("body") {
                Some(body) => (DeclarationKind::Type, body.start_byte()),
                None => (DeclarationKind::Member, end),
            },
            "global_statement" => (DeclarationKind::Member, end),
            kind if kind.ends_with("_declaration") => (DeclarationKind::Member, end),
            _ => return false,
        };
        let start = comments.unwrap_or(node.start_byte());
        self.add(Declaration {
            range: start..start + self.text[start..end].trim_end().len(),
            head: node.start_byte()..head_end,
            parent: None,
            kind,
        });
        matches!(kind, DeclarationKind::Type | DeclarationKind::Frame)
    }

    /// Adds a declaration, unless only a part of a branch would go with it.
    fn add(&mut self, mut declaration: Declaration) {
        let Range { start, end } = declaration.range;
        while let Some(&last) = self.around.last()
            && self.found[last].range.end <= start
        {
            self.around.pop();
        }
        if start == end || self.branches.branch_at(start) != self.branches.branch_at(end) {
            return;
        }
        declaration.parent = self.around.last().copied();
        if matches!(
            declaration.kind,
            DeclarationKind::Type | DeclarationKind::Frame
        ) {
            self.around.push(self.found.len());
        }
        self.found.push(declaration);
    }
}

/// The numbered branches of a text, between `#if`, `#else` and `#endif`.
struct Branches {
    /// Where each branch begins or continues, and its number. The directives that open and close a
    /// branch are outside of it.
    begin: Vec<(usize, usize)>,
}

impl Branches {
    fn new(text: &str) -> Self {
        let mut begin = Vec::new();
        let mut open = vec![0];
        let mut last = 0;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
            let word = directive.map(|directive| {
                let end = directive.find(|c: char| !c.is_ascii_alphabetic());
                &directive[..end.unwrap_or(directive.len())]
            });
            let (closes, opens) = match word {
                Some("if") => (false, true),
                Some("elif" | "else") => (true, true),
                Some("endif") => (true, false),
                _ => (false, false),
            };
            if closes {
                open.pop();
            }
            // A directive that closes nothing is a border, too.
            if opens || (closes && open.is_empty()) {
                last += 1;
                open.push(last);
            }
            if let (true, Some(&top)) = (opens || closes, open.last()) {
                let indent = line.len() - line.trim_start().len();
                begin.push((at + indent, top));
            }
            at += line.len();
        }
        Self { begin }
    }

    /// The branch at an offset.
    fn branch_at(&self, offset: usize) -> usize {
        let before = self.begin.partition_point(|(begin, _)| *begin < offset);
        before.checked_sub(1).map_or(0, |last| self.begin[last].1)
    }
}
