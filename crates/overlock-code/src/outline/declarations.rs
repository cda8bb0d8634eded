//! What does a file of C# declare, and inside of what?
//!
//! Whatever is a declaration by itself can go as a whole, and so can a branch from its `#if` to its
//! `#endif`. What is neither, such as something that does not parse, belongs to what is around it.

use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::csharp::parse;

/// Something that is declared.
pub(crate) struct Declaration {
    /// With the comments before it.
    pub(crate) range: Range<usize>,
    /// What it says of itself: a type without its members.
    pub(crate) head: Range<usize>,
    /// The declaration that it is in, by its place in the list.
    pub(crate) parent: Option<usize>,
    pub(crate) kind: Kind,
}

/// What kind of thing is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `using System;`
    Import,
    /// A type with what it declares.
    Type,
    /// What only stands around declarations: a namespace with braces, or `#if` and `#endif`.
    Frame,
    /// A member, or anything else.
    Member,
}

/// What a text declares, in its order, or nothing if it cannot be parsed at all.
pub(crate) fn declarations(text: &str) -> Option<Vec<Declaration>> {
    let tree = parse(text)?;
    let mut finder = Finder {
        text,
        branches: Branches::of(text),
        found: Vec::new(),
        around: Vec::new(),
    };
    finder.walk(&tree);
    Some(finder.found)
}

struct Finder<'a> {
    text: &'a str,
    branches: Branches,
    found: Vec<Declaration>,
    /// The containers around the node that is looked at.
    around: Vec<usize>,
}

impl Finder<'_> {
    /// Visits the nodes in the order of the text, without recursion: nesting is up to the text.
    fn walk(&mut self, tree: &Tree) {
        let mut cursor = tree.walk();
        // Where the comments begin that stand before the next declaration.
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

    /// Looks at a node; whether there may be declarations inside.
    fn enters(&mut self, node: Node<'_>, comments: Option<usize>) -> bool {
        let end = node.end_byte();
        let (kind, head_end) = match node.kind() {
            "compilation_unit" | "declaration_list" | "preproc_else" | "preproc_elif" => {
                return true;
            }
            "preproc_if" if node.has_error() => return true,
            "preproc_if" | "namespace_declaration" => (Kind::Frame, node.start_byte()),
            "using_directive" | "extern_alias_directive" => (Kind::Import, end),
            "class_declaration"
            | "struct_declaration"
            | "interface_declaration"
            | "record_declaration"
            | "record_struct_declaration" => match node.child_by_field_name("body") {
                Some(body) => (Kind::Type, body.start_byte()),
                None => (Kind::Member, end),
            },
            "global_statement" => (Kind::Member, end),
            kind if kind.ends_with("_declaration") => (Kind::Member, end),
            _ => return false,
        };
        let start = comments.unwrap_or(node.start_byte());
        self.add(Declaration {
            range: start..start + self.text[start..end].trim_end().len(),
            head: node.start_byte()..head_end,
            parent: None,
            kind,
        });
        matches!(kind, Kind::Type | Kind::Frame)
    }

    /// Adds a declaration, unless only a part of a branch would go with it.
    fn add(&mut self, mut declaration: Declaration) {
        let Range { start, end } = declaration.range;
        while let Some(&last) = self.around.last()
            && self.found[last].range.end <= start
        {
            self.around.pop();
        }
        if start == end || self.branches.at(start) != self.branches.at(end) {
            return;
        }
        declaration.parent = self.around.last().copied();
        if matches!(declaration.kind, Kind::Type | Kind::Frame) {
            self.around.push(self.found.len());
        }
        self.found.push(declaration);
    }
}

/// The branches of a text, between `#if`, `#else` and `#endif`, each with a number of its own.
struct Branches {
    /// Where a branch begins or goes on, and which it is. A directive that opens one is before its
    /// beginning, and one that closes it is behind its end, so that both are around it.
    begin: Vec<(usize, usize)>,
}

impl Branches {
    fn of(text: &str) -> Self {
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
            // What closes nothing is a border as well.
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

    /// The branch that a place is in.
    fn at(&self, place: usize) -> usize {
        let before = self.begin.partition_point(|(begin, _)| *begin < place);
        before.checked_sub(1).map_or(0, |last| self.begin[last].1)
    }
}
