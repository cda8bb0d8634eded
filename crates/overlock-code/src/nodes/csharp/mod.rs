//! Finds types, members and what they speak of in C#, by its grammar.
//!
//! Namespaces are part of names and no nodes. Local functions belong to the method around them.
//! Both branches of a directive are read, since nobody here knows which one is compiled.

mod literals;
mod names;
mod spoken;

use std::ops::Range;

use tree_sitter::{Node, Tree};

use super::NodeKind;
use super::strings::Strings;
use super::tree::{Findings, Found};
use crate::outline::csharp::parse;
use names::{Names, TypeName, type_name};
use spoken::is_interface;

/// Reports what is in the text; whether all of it could be read.
pub(super) fn find(text: &str, findings: &mut Findings) -> bool {
    let Some(tree) = parse(text) else {
        return false;
    };
    let mut finder = Finder {
        text,
        findings,
        kinds: Vec::new(),
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
    let Finder { names, strings, .. } = finder;
    names.report(findings);
    strings.report(findings);
    !tree.root_node().has_error()
}

/// What a syntax node above the current one is.
#[derive(Clone, Copy)]
struct Above<'a> {
    kind: &'a str,
    role: Role,
}

/// What a name says by where it stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    None,
    /// A type.
    Type,
    /// A type that another is made from.
    Base,
}

/// A declaration or a namespace around the current place.
struct Scope<'a> {
    /// How many syntax nodes are above it.
    depth: usize,
    /// How long the qualified name was before it.
    prefix: usize,
    span: Range<usize>,
    is: ScopeKind,
    /// Of a type, what it is.
    own: Option<OwnType<'a>>,
}

/// A type around the current place.
struct OwnType<'a> {
    name: &'a str,
    /// The class it is made from.
    base: Option<TypeName<'a>>,
    /// Whether it may have other parts.
    is_partial: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Namespace,
    Type { bases: Bases },
    Member,
}

/// What the list of bases of a type says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bases {
    /// A class may come first, and interfaces follow.
    Mixed,
    Inherited,
    Implemented,
    /// The type behind an enum.
    Neither,
}

/// Members without a body of their own that stand together.
struct Group {
    depth: usize,
    qualified: String,
    span: Range<usize>,
    names: Vec<String>,
    inside: Vec<Range<usize>>,
}

struct Finder<'a, 'f> {
    text: &'a str,
    findings: &'f mut Findings,
    /// From the root down to the parent of the current syntax node.
    kinds: Vec<Above<'a>>,
    scopes: Vec<Scope<'a>>,
    /// The qualified name of the innermost scope.
    prefix: String,
    /// Comments that may belong to the next declaration.
    comments: Option<Range<usize>>,
    group: Option<Group>,
    /// A run of statements at the top level.
    statements: Option<Range<usize>>,
    names: Names<'a>,
    strings: Strings,
}

impl<'a> Finder<'a, '_> {
    /// Visits every syntax node in the order of the text, without recursion: nesting is up to the text.
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
                self.kinds.push(Above {
                    kind: node.kind(),
                    role,
                });
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                self.kinds.pop();
            }
        }
    }

    fn leave_scopes(&mut self) {
        let depth = self.kinds.len();
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
        self.kinds.last().map_or("", |above| above.kind)
    }

    fn role(&self, node: Node<'_>, field: Option<&str>) -> Role {
        let Some(above) = self.kinds.last() else {
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
            // What follows is its sibling in this grammar, and goes on to the end.
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
        /// Deeper than code is nested, so that no text can make names grow without end.
        const LONGEST: usize = 1024;
        if self.prefix.len() + name.len() < LONGEST {
            if !self.prefix.is_empty() {
                self.prefix.push('.');
            }
            self.prefix.push_str(name.trim());
        }
    }

    fn open(&mut self, node: Node<'_>, is: ScopeKind, own: Option<OwnType<'a>>) {
        let prefix = self.prefix.len();
        let name = self.field_text(node, "name");
        match node.child_by_field_name("name") {
            _ if is == ScopeKind::Member => {}
            Some(_) => self.extend_prefix(name),
            None => {}
        }
        self.scopes.push(Scope {
            depth: self.kinds.len(),
            prefix,
            span: node.byte_range(),
            is,
            own,
        });
    }

    /// Where names are known that are declared here: in the member, else in the type.
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
        let own = OwnType {
            name,
            base: self.base_of(node, bases),
            is_partial: is_partial(self.text, node),
        };
        self.open(node, ScopeKind::Type { bases }, Some(own));
        self.findings.found.push(Found {
            kind: NodeKind::Type,
            detail,
            name: name.to_owned(),
            qualified: self.prefix.clone(),
            span,
            inside: inside.into_iter().collect(),
        });
    }

    /// The class that a type is made from, if it says so.
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
        self.findings.found.push(Found {
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
        /// Constants by the thousand are more than one wants to see at once.
        const LONGEST: usize = 4096;
        let depth = self.kinds.len();
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
            // The names of fields come with their declarators.
            _ => (None, Vec::new()),
        };
        if node.kind() == "property_declaration" {
            self.variable(node, "name");
        }
        let qualified = self.qualified("properties");
        let group = self.group.get_or_insert_with(|| Group {
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

    /// Ends a group or a run of statements at a syntax node that does not go on with it.
    fn end_runs(&mut self, kind: &str) {
        let depth = self.kinds.len();
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
        self.findings.found.push(Found::properties(
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
        self.findings.found.push(Found {
            kind: NodeKind::Method,
            detail: "statements",
            name: "Main".to_owned(),
            qualified: "Program.Main".to_owned(),
            inside: vec![run.clone()],
            span: run,
        });
    }

    /// Comments on lines of their own, one below the other, belong to what follows them.
    fn comment(&mut self, node: Node<'_>) {
        let span = node.byte_range();
        let line = span.start.saturating_sub(node.start_position().column);
        let before = self.text.get(line..span.start).unwrap_or_default();
        if !before.trim_start().is_empty() {
            return;
        }
        let goes_on = self
            .comments
            .as_ref()
            .is_some_and(|run| self.touches(run.end, span.start));
        let from = self.comments.as_ref().map_or(span.start, |run| run.start);
        self.comments = Some(if goes_on { from..span.end } else { span });
    }

    /// Whether there is nothing but the end of a line between two places.
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

/// What stands between the braces of a body, or after its arrow.
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

/// The bodies of accessors, and what stands after an arrow.
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
