//! Finds the bodies in C# that an outline leaves out.
//!
//! Types, members, parameters, attributes, constraints, enum members and directives stay. Left out
//! are the bodies of methods and accessors, expressions after an arrow, long initial values, and
//! top-level statements; the SQL in their strings stays next to the mark. A body that does not parse
//! stays, because its end is unknown. The parser's steps are limited by the length of the text; a
//! text that needs more counts as not parsed.

use std::ops::{ControlFlow, Range};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::{Elision, lines_mark};
use crate::classify::embedded;
use crate::compact::Source;
use crate::compact::layout::Docs;
use crate::language::Syntax;
use crate::lex::has_branch;

/// The bodies found in a text.
pub(crate) struct Bodies {
    /// In the order of the text; they do not nest.
    pub(crate) bodies: Vec<Body>,
    /// Whether every declaration could be parsed.
    pub(crate) parsed: bool,
}

/// A body and the declaration it belongs to.
pub(crate) struct Body {
    pub(crate) elision: Elision,
    /// The declaration it belongs to, up to the body.
    pub(crate) head: Range<usize>,
}

/// The longest text that is parsed.
const LONGEST: usize = 4 << 20;

/// The bodies of a text, or none if it cannot be parsed at all.
pub(crate) fn bodies(text: &str) -> Option<Bodies> {
    let tree = parse(text)?;
    let mut finder = BodyFinder {
        text,
        bodies: Vec::new(),
        statements: None,
    };
    finder.walk(&tree);
    finder.end_statements();
    let mut bodies = finder.bodies;
    // The value of a property is visited before its accessors.
    bodies.sort_by_key(|body| body.elision.range.start);
    Some(Bodies {
        bodies,
        parsed: !tree.root_node().has_error(),
    })
}

/// The tree of a text, unless it is too long or takes too many steps.
pub(crate) fn parse(text: &str) -> Option<Tree> {
    /// Real code takes at most one call of the callback per 40 bytes, on average one per 90.
    const BYTES_PER_CALL: usize = 32;
    const CALLS_AT_LEAST: usize = 1_500;
    /// Three times the calls for a megabyte of real code. A call among syntax errors is slow.
    const CALLS_AT_MOST: usize = 30_000;
    if text.len() > LONGEST {
        return None;
    }
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_c_sharp::LANGUAGE.into())
        .ok()?;
    let mut calls_left = (text.len() / BYTES_PER_CALL + CALLS_AT_LEAST).min(CALLS_AT_MOST);
    let mut patience = |_: &tree_sitter::ParseState| {
        calls_left = calls_left.saturating_sub(1);
        if calls_left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut patience);
    let bytes = text.as_bytes();
    let mut read = |at: usize, _| &bytes[at.min(bytes.len())..];
    parser.parse_with_options(&mut read, None, Some(options))
}

struct BodyFinder<'a> {
    text: &'a str,
    bodies: Vec<Body>,
    /// A run of top-level statements.
    statements: Option<Range<usize>>,
}

impl BodyFinder<'_> {
    /// Visits declarations in the order of the text, without recursion: the text decides the depth.
    fn walk(&mut self, tree: &Tree) {
        let mut cursor = tree.walk();
        loop {
            if self.enters(cursor.node()) && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    /// Visits a node; whether its children must be visited.
    fn enters(&mut self, node: Node<'_>) -> bool {
        let kind = node.kind();
        if kind != "global_statement" && kind != "comment" && node.is_named() {
            self.end_statements();
        }
        match kind {
            "block" => {
                self.body(node);
                false
            }
            "arrow_expression_clause" => {
                self.arrow(node);
                false
            }
            "variable_declarator" => {
                self.initial_value(node);
                false
            }
            "global_statement" => {
                let is_function = node
                    .child(0)
                    .is_some_and(|child| child.kind() == "local_function_statement");
                if is_function {
                    self.end_statements();
                    return true;
                }
                if !node.has_error() {
                    let range = node.byte_range();
                    let from = self
                        .statements
                        .as_ref()
                        .map_or(range.start, |run| run.start);
                    self.statements = Some(from..range.end);
                }
                false
            }
            "property_declaration" => {
                if let Some(value) = node.child_by_field_name("value")
                    && value.kind() != "arrow_expression_clause"
                {
                    self.value(value, node);
                }
                true
            }
            "compilation_unit"
            | "namespace_declaration"
            | "file_scoped_namespace_declaration"
            | "declaration_list"
            | "class_declaration"
            | "struct_declaration"
            | "interface_declaration"
            | "record_declaration"
            | "record_struct_declaration"
            | "method_declaration"
            | "constructor_declaration"
            | "destructor_declaration"
            | "operator_declaration"
            | "conversion_operator_declaration"
            | "local_function_statement"
            | "indexer_declaration"
            | "event_declaration"
            | "accessor_list"
            | "accessor_declaration"
            | "field_declaration"
            | "variable_declaration"
            | "preproc_if"
            | "preproc_else"
            | "preproc_elif"
            | "preproc_if_in_top_level"
            | "ERROR" => true,
            _ => false,
        }
    }

    fn body(&mut self, block: Node<'_>) {
        let Some(owner) = block.parent() else {
            return;
        };
        let named = owner
            .child_by_field_name("name")
            .map(|name| &self.text[name.byte_range()]);
        // The grammar parses an extension block as a constructor; its members are declarations.
        if owner.kind() == "ERROR" || named == Some("extension") {
            return;
        }
        let inside = block.start_byte() + 1..block.end_byte().saturating_sub(1);
        if inside.start >= inside.end
            || block
                .child(block.child_count().saturating_sub(1))
                .is_none_or(|last| last.is_missing())
        {
            return;
        }
        self.elide(block, inside, owner, " ");
    }

    fn arrow(&mut self, arrow: Node<'_>) {
        if let Some(owner) = arrow.parent()
            && let Some(expression) = arrow.child(1)
        {
            self.elide(arrow, expression.start_byte()..arrow.end_byte(), owner, "");
        }
    }

    fn initial_value(&mut self, declarator: Node<'_>) {
        let last = declarator
            .child_count()
            .checked_sub(1)
            .and_then(|last| declarator.child(last));
        if let Some(value) = last
            && declarator.child_count() > 2
        {
            self.value(value, declarator);
        }
    }

    /// A value of several lines is left out: unlike a constant, a table says little in an outline.
    fn value(&mut self, value: Node<'_>, owner: Node<'_>) {
        if value.start_position().row != value.end_position().row {
            self.elide(value, value.byte_range(), owner, "");
        }
    }

    fn elide(&mut self, node: Node<'_>, range: Range<usize>, owner: Node<'_>, around: &str) {
        let inside = &self.text[range.clone()];
        // Leaving out half a branch would break the other half.
        if node.has_error() || (has_branch(&format!("\n{inside}")) && !has_whole_branches(inside)) {
            return;
        }
        let mark = format!("{around}{}{around}", mark(inside, !around.is_empty()));
        if is_worth(inside, &mark) {
            self.bodies.push(Body {
                elision: Elision {
                    range: range.clone(),
                    mark,
                },
                head: owner.start_byte()..range.start,
            });
        }
    }

    fn end_statements(&mut self) {
        let Some(run) = self.statements.take() else {
            return;
        };
        let inside = &self.text[run.clone()];
        let mark = mark(inside, true);
        if is_worth(inside, &mark)
            && (!has_branch(&format!("\n{inside}")) || has_whole_branches(inside))
        {
            self.bodies.push(Body {
                head: run.start..run.start,
                elision: Elision { range: run, mark },
            });
        }
    }
}

/// The mark for a body, with the SQL in it, written so that all but the mark is code:
/// `… 3 lines; _ = "DELETE FROM Orders";` for statements, `… 1 line + "DELETE FROM Orders"` elsewhere.
fn mark(inside: &str, has_statements: bool) -> String {
    let statements = embedded::statements(inside);
    if statements.is_empty() {
        return lines_mark(inside);
    }
    let mut gone = String::with_capacity(inside.len());
    let mut kept = String::new();
    let mut at = 0;
    for statement in statements {
        gone.push_str(&inside[at..statement.start]);
        kept.push_str(if has_statements { "; _ = " } else { " + " });
        kept.push_str(&inside[statement.clone()]);
        at = statement.end;
    }
    gone.push_str(&inside[at..]);
    let end = if has_statements { ";" } else { "" };
    format!("{}{kept}{end}", lines_mark(&gone))
}

/// Whether a mark is clearly shorter than the piece without its layout.
fn is_worth(inside: &str, mark: &str) -> bool {
    const GAIN: usize = 8;
    if inside.len() <= mark.len() + GAIN {
        return false;
    }
    let shortest = Source::Dotnet(Syntax::CSharp).lossless(inside, Docs::Drop);
    shortest.is_ok_and(|shortest| shortest.len() > mark.len() + GAIN)
}

fn has_whole_branches(inside: &str) -> bool {
    let mut open = 0_usize;
    for line in inside.lines() {
        let Some(directive) = line.trim_start().strip_prefix('#') else {
            continue;
        };
        let directive = directive.trim_start();
        match () {
            () if directive.starts_with("if") => open += 1,
            () if directive.starts_with("endif") => match open.checked_sub(1) {
                Some(left) => open = left,
                None => return false,
            },
            () if directive.starts_with("el") && open == 0 => return false,
            () => {}
        }
    }
    open == 0
}
