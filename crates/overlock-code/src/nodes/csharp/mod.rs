//! Finds types, members and mentions in C# with a parser.
//!
//! Namespaces are part of names, not nodes. Local functions belong to the method around them. Both
//! branches of a directive are read, because it is unknown which one is compiled.

mod literals;
mod mentions;
mod names;

use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::NodeKind;
use super::strings::Strings;
use super::tree::{Findings, FoundNode};
use crate::outline::csharp::parse;
use mentions::is_interface;
use names::{Names, TypeName, type_name};

/// Reports the nodes and mentions of a text; returns whether all of it could be parsed.
pub(super) fn find(text: &str, findings: &mut Findings) -> bool {
    let Some(tree) = parse(text) else {
        return false;
    };
    let mut finder = CSharpFinder {
        text,
        findings,
        ancestors: Vec::new(),
        scopes: Vec::new(),
        prefix: String::new(),
        comments: None,
        group: None,
        statements: None,
        names: Names::default(),
        strings: Strings::default(),
    };
    finder.walk(&tree);
    finder.end_group();
    finder.end_statements();
    let CSharpFinder { names, strings, .. } = finder;
    names.report(findings);
    strings.report(findings);
    !tree.root_node().has_error()
}

/// A syntax node above the current one.
#[derive(Clone, Copy)]
struct Ancestor<'a> {
    kind: &'a str,
    role: Role,
}

/// What the position of a name says about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    None,
    /// A type.
    Type,
    /// A type in the base list of another.
    Base,
}

/// A declaration or a namespace around the current syntax node.
struct Scope<'a> {
    /// How many syntax nodes are above it.
    depth: usize,
    /// The length of the prefix before it.
    prefix: usize,
    span: Range<usize>,
    is: ScopeKind,
    /// The type, if it is one.
    own: Option<EnclosingType<'a>>,
}

/// The type around the current syntax node.
struct EnclosingType<'a> {
    name: &'a str,
    /// Its base class.
    base: Option<TypeName<'a>>,
    /// Whether it may have other parts in other files.
    is_partial: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Namespace,
    Type { bases: Bases },
    Member,
}

/// What the base list of a type contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bases {
    /// A class may come first; interfaces follow.
    Mixed,
    Inherited,
    Implemented,
    /// The underlying type of an enum, or no base list.
    Neither,
}

/// Adjacent properties, fields and events.
struct MemberGroup {
    depth: usize,
    qualified: String,
    span: Range<usize>,
    names: Vec<String>,
    inside: Vec<Range<usize>>,
}

struct CSharpFinder<'a, 'f> {
    text: &'a str,
    findings: &'f mut Findings,
    /// From the root down to the parent of the current syntax node.
    ancestors: Vec<Ancestor<'a>>,
    scopes: Vec<Scope<'a>>,
    /// The qualified name of the innermost scope.
    prefix: String,
    /// Comments that may belong to the next declaration.
    comments: Option<Range<usize>>,
    group: Option<MemberGroup>,
    /// Adjacent top-level statements.
    statements: Option<Range<usize>>,
    names: Names<'a>,
    strings: Strings,
}

impl<'a> CSharpFinder<'a, '_> {
    /// Visits every syntax node in the order of the text, without recursion: the text decides the
    /// depth.
    fn walk(&mut self, tree: &'a Tree) {
        let mut cursor = tree.walk();
        loop {
            let (node, field) = (cursor.node(), cursor.field_name());
            self.leave_scopes();
            let role = self.role(node, field);
            if node.is_named() {
                self.enter(node, field, role);
            }
            if cursor.goto_first_child() {
                self.ancestors.push(Ancestor {
                    kind: node.kind(),
                    role,
                });
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                self.ancestors.pop();
            }
        }
    }

    fn leave_scopes(&mut self) {
        let depth = self.ancestors.len();
        while let Some(left) = self.scopes.pop_if(|scope| scope.depth >= depth) {
            self.prefix.truncate(left.prefix);
        }
    }

    fn text_of(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn field_text(&self, node: Node<'_>, field: &str) -> &'a str {
        node.child_by_field_name(field)
            .map_or("", |child| self.text_of(child))
    }

    fn parent_kind(&self) -> &'a str {
        self.ancestors.last().map_or("", |above| above.kind)
    }

    fn role(&self, node: Node<'_>, field: Option<&str>) -> Role {
        let Some(above) = self.ancestors.last() else {
            return Role::None;
        };
        let is_name = matches!(
            node.kind(),
            "identifier" | "generic_name" | "qualified_name" | "primary_constructor_base_type"
        );
        match (above.kind, field) {
            (_, Some("qualifier")) => Role::None,
            ("base_list", _) if is_name => Role::Base,
            ("primary_constructor_base_type", Some("type")) => above.role,
            (_, Some("type" | "returns")) => Role::Type,
            ("generic_name" | "qualified_name" | "alias_qualified_name", _)
                if matches!(node.kind(), "identifier" | "generic_name") =>
            {
                above.role
            }
            ("type_argument_list" | "explicit_interface_specifier" | "constant_pattern", _)
            | ("attribute", Some("name"))
            | ("as_expression" | "is_expression", Some("right"))
                if is_name =>
            {
                Role::Type
            }
            _ => Role::None,
        }
    }

    fn enter(&mut self, node: Node<'_>, field: Option<&str>, role: Role) {
        let kind = node.kind();
        if kind == "comment" {
            self.comment(node);
            return;
        }
        self.end_runs(kind);
        match kind {
            "using_directive" => self.using(node),
            "namespace_declaration" => {
                self.names.namespace(self.field_text(node, "name"));
                self.open(node, ScopeKind::Namespace, None);
            }
            // In this grammar, the declarations that follow are its siblings.
            "file_scoped_namespace_declaration" => {
                let name = self.field_text(node, "name");
                self.names.namespace(name);
                self.extend_prefix(name);
            }
            "class_declaration"
            | "record_declaration"
            | "struct_declaration"
            | "interface_declaration"
            | "enum_declaration"
            | "delegate_declaration" => {
                self.declared_type(node);
            }
            "method_declaration"
            | "constructor_declaration"
            | "destructor_declaration"
            | "operator_declaration"
            | "conversion_operator_declaration" => self.method(node),
            "local_function_statement" => self.local_function(node),
            "field_declaration"
            | "event_field_declaration"
            | "property_declaration"
            | "event_declaration"
            | "indexer_declaration" => self.property(node),
            "global_statement" => self.statement(node),
            "parameter" | "declaration_pattern" | "declaration_expression" => {
                self.variable(node, "name");
            }
            "foreach_statement" => self.variable(node, "left"),
            "variable_declaration" => self.variables(node),
            "type_parameter" => self.names.type_parameter(self.field_text(node, "name")),
            "invocation_expression" => self.call(node),
            "object_creation_expression" => self.creation(node),
            "constructor_initializer" => self.initializer(node),
            "argument_list"
                if matches!(
                    self.parent_kind(),
                    "base_list" | "primary_constructor_base_type"
                ) =>
            {
                self.base_arguments(node);
            }
            "member_access_expression" => self.access(node),
            "identifier" => self.name(node, field, role),
            "string_literal"
            | "verbatim_string_literal"
            | "raw_string_literal"
            | "interpolated_string_expression" => {
                let content = literals::content(self.text, node);
                self.strings.add(self.text, node.byte_range(), content);
            }
            _ => {}
        }
    }

    fn extend_prefix(&mut self, name: &str) {
        /// Bounds the length of names in deeply nested text.
        const LONGEST: usize = 1024;
        if self.prefix.len() + name.len() < LONGEST {
            if !self.prefix.is_empty() {
                self.prefix.push('.');
            }
            self.prefix.push_str(name.trim());
        }
    }

    fn open(&mut self, node: Node<'_>, is: ScopeKind, own: Option<EnclosingType<'a>>) {
        let prefix = self.prefix.len();
        let name = self.field_text(node, "name");
        match node.child_by_field_name("name") {
            _ if is == ScopeKind::Member => {}
            Some(_) => self.extend_prefix(name),
            None => {}
        }
        self.scopes.push(Scope {
            depth: self.ancestors.len(),
            prefix,
            span: node.byte_range(),
            is,
            own,
        });
    }

    /// The range in which a name declared here is visible: the member, else the type.
    fn scope(&self) -> Range<usize> {
        self.scopes
            .iter()
            .rev()
            .find(|scope| scope.is != ScopeKind::Namespace)
            .map_or(0..self.text.len(), |scope| scope.span.clone())
    }

    fn declared_type(&mut self, node: Node<'_>) {
        let kind = node.kind();
        let (detail, bases) = match kind {
            "class_declaration" => ("class", Bases::Mixed),
            "struct_declaration" => ("struct", Bases::Implemented),
            "interface_declaration" => ("interface", Bases::Inherited),
            "enum_declaration" => ("enum", Bases::Neither),
            "delegate_declaration" => ("delegate", Bases::Neither),
            _ if is_record_struct(node) => ("record", Bases::Implemented),
            _ => ("record", Bases::Mixed),
        };
        let span = self.with_comments(node);
        let inside = node.child_by_field_name("body").map(braced);
        let name = self.field_text(node, "name");
        let own = EnclosingType {
            name,
            base: self.base_of(node, bases),
            is_partial: is_partial(self.text, node),
        };
        self.open(node, ScopeKind::Type { bases }, Some(own));
        self.findings.nodes.push(FoundNode {
            kind: NodeKind::Type,
            detail,
            name: name.to_owned(),
            qualified: self.prefix.clone(),
            span,
            inside: inside.into_iter().collect(),
        });
    }

    /// The base class of a type, if it names one.
    fn base_of(&self, node: Node<'_>, bases: Bases) -> Option<TypeName<'a>> {
        if bases != Bases::Mixed {
            return None;
        }
        let mut cursor = node.walk();
        let list = node
            .named_children(&mut cursor)
            .find(|child| child.kind() == "base_list")?;
        let first = list.named_child(0)?;
        let first = first.child_by_field_name("type").unwrap_or(first);
        type_name(self.text, first)
            .filter(|name| !is_interface(name.rsplit('.').next().unwrap_or_default()))
    }

    fn method(&mut self, node: Node<'_>) {
        let name = self.field_text(node, "name");
        let (detail, name) = match node.kind() {
            "constructor_declaration" => ("constructor", name.to_owned()),
            "destructor_declaration" => ("destructor", format!("~{name}")),
            "operator_declaration" => {
                let operator = self.field_text(node, "operator");
                (
                    "operator",
                    format!("operator {operator}").trim_end().to_owned(),
                )
            }
            "conversion_operator_declaration" => {
                let to = self.field_text(node, "type");
                ("operator", format!("operator {to}"))
            }
            _ => ("method", name.to_owned()),
        };
        self.push_method(node, detail, &name);
    }

    fn push_method(&mut self, node: Node<'_>, detail: &'static str, name: &str) {
        let span = self.with_comments(node);
        let inside = node.child_by_field_name("body").map(braced);
        self.findings.nodes.push(FoundNode {
            kind: NodeKind::Method,
            detail,
            qualified: self.qualified(name),
            name: name.to_owned(),
            span,
            inside: inside.into_iter().collect(),
        });
        self.open(node, ScopeKind::Member, None);
    }

    fn qualified(&self, name: &str) -> String {
        if self.prefix.is_empty() {
            return name.to_owned();
        }
        format!("{}.{name}", self.prefix)
    }

    /// A function at the top level is a method; one in a method is a part of it.
    fn local_function(&mut self, node: Node<'_>) {
        let name = self.field_text(node, "name");
        if self.parent_kind() == "global_statement" {
            self.end_statements();
            self.push_method(node, "function", name);
        } else {
            self.names.declare(name, None, self.scope());
        }
    }

    fn property(&mut self, node: Node<'_>) {
        /// Splits long groups, such as thousands of constants.
        const LONGEST: usize = 4096;
        let depth = self.ancestors.len();
        let span = self.with_comments(node);
        if self.group.as_ref().is_some_and(|group| {
            group.depth != depth || span.end.saturating_sub(group.span.start) > LONGEST
        }) {
            self.end_group();
        }
        let (name, inside) = match node.kind() {
            "indexer_declaration" => (Some("this".to_owned()), bodies_of(node)),
            "property_declaration" | "event_declaration" => (
                Some(self.field_text(node, "name").to_owned()),
                bodies_of(node),
            ),
            // The names of fields are in their declarators.
            _ => (None, Vec::new()),
        };
        if node.kind() == "property_declaration" {
            self.variable(node, "name");
        }
        let qualified = self.qualified("properties");
        let group = self.group.get_or_insert_with(|| MemberGroup {
            depth,
            qualified,
            span: span.clone(),
            names: Vec::new(),
            inside: Vec::new(),
        });
        group.span.end = span.end;
        group.names.extend(name);
        group.inside.extend(inside);
        if matches!(
            node.kind(),
            "property_declaration" | "event_declaration" | "indexer_declaration"
        ) {
            self.open(node, ScopeKind::Member, None);
        }
    }

    /// Ends a group of members or statements at a syntax node that does not belong to it.
    fn end_runs(&mut self, kind: &str) {
        let depth = self.ancestors.len();
        let is_property = matches!(
            kind,
            "field_declaration"
                | "event_field_declaration"
                | "property_declaration"
                | "event_declaration"
                | "indexer_declaration"
        );
        if let Some(group) = &self.group
            && (depth < group.depth || depth == group.depth && !is_property)
        {
            self.end_group();
        }
        if self.statements.is_some() && depth <= 1 && kind != "global_statement" {
            self.end_statements();
        }
    }

    fn end_group(&mut self) {
        let Some(group) = self.group.take() else {
            return;
        };
        self.findings.nodes.push(FoundNode::properties(
            &group.names,
            group.qualified,
            group.span,
            group.inside,
        ));
    }

    fn statement(&mut self, node: Node<'_>) {
        let is_function = node
            .child(0)
            .is_some_and(|child| child.kind() == "local_function_statement");
        if is_function {
            self.end_statements();
            return;
        }
        let span = self.with_comments(node);
        let from = self.statements.as_ref().map_or(span.start, |run| run.start);
        self.statements = Some(from..span.end);
    }

    fn end_statements(&mut self) {
        let Some(run) = self.statements.take() else {
            return;
        };
        self.findings.nodes.push(FoundNode {
            kind: NodeKind::Method,
            detail: "statements",
            name: "Main".to_owned(),
            qualified: "Program.Main".to_owned(),
            inside: vec![run.clone()],
            span: run,
        });
    }

    /// Adjacent comments on separate lines belong to the declaration after them.
    fn comment(&mut self, node: Node<'_>) {
        let span = node.byte_range();
        let line = span.start.saturating_sub(node.start_position().column);
        let before = self.text.get(line..span.start).unwrap_or_default();
        if !before.trim_start().is_empty() {
            return;
        }
        let continues = self
            .comments
            .as_ref()
            .is_some_and(|run| self.touches(run.end, span.start));
        let from = self.comments.as_ref().map_or(span.start, |run| run.start);
        self.comments = Some(if continues { from..span.end } else { span });
    }

    /// Whether there is at most one line break between two offsets.
    fn touches(&self, end: usize, start: usize) -> bool {
        self.text.get(end..start).is_some_and(|between| {
            between.trim().is_empty() && between.bytes().filter(|&byte| byte == b'\n').count() <= 1
        })
    }

    fn with_comments(&mut self, node: Node<'_>) -> Range<usize> {
        let span = node.byte_range();
        match self.comments.take() {
            Some(run) if self.touches(run.end, span.start) => run.start..span.end,
            _ => span,
        }
    }
}

fn is_partial(text: &str, node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .take_while(|child| child.kind() != "identifier")
        .any(|child| text.get(child.byte_range()) == Some("partial"))
}

fn is_record_struct(node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .take_while(|child| child.kind() != "identifier")
        .any(|child| child.kind() == "struct")
}

/// The range between the braces of a body, or after its arrow.
fn braced(body: Node<'_>) -> Range<usize> {
    let span = body.byte_range();
    let last = body.child(body.child_count().saturating_sub(1));
    let opens = body.child(0).is_some_and(|first| first.kind() == "{");
    let closes = last.is_some_and(|last| last.kind() == "}" && !last.is_missing());
    match (opens, body.kind()) {
        (true, _) => span.start + 1..span.end - usize::from(closes && span.len() > 1),
        (false, "arrow_expression_clause") => span.start + 2..span.end,
        (false, _) => span,
    }
}

/// The bodies of accessors, and the expression after an arrow.
fn bodies_of(node: Node<'_>) -> Vec<Range<usize>> {
    let mut bodies = Vec::new();
    if let Some(value) = node.child_by_field_name("value") {
        if value.kind() == "arrow_expression_clause" {
            bodies.push(braced(value));
        } else if value.start_position().row != value.end_position().row {
            bodies.push(value.byte_range());
        }
    }
    if let Some(accessors) = node.child_by_field_name("accessors") {
        let mut cursor = accessors.walk();
        for accessor in accessors.named_children(&mut cursor) {
            bodies.extend(accessor.child_by_field_name("body").map(braced));
        }
    }
    bodies
}
