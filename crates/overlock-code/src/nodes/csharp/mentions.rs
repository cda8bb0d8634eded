//! Collects the names that C# code declares, calls and uses.

use std::borrow::Cow;

use tree_sitter::Node;

use super::super::MentionKind;
use super::names::{Call, Receiver, TypeName, simple_name, type_name};
use super::{Bases, CSharpFinder, EnclosingType, Role, ScopeKind};

impl<'a> CSharpFinder<'a, '_> {
    pub(super) fn variable(&mut self, node: Node<'_>, field: &str) {
        let declared = node
            .child_by_field_name("type")
            .and_then(|of| type_name(self.text, of));
        let name = self.field_text(node, field);
        self.names.declare(name, declared, self.scope());
    }

    pub(super) fn variables(&mut self, node: Node<'_>) {
        let declared = node
            .child_by_field_name("type")
            .and_then(|of| type_name(self.text, of));
        let mut cursor = node.walk();
        for declarator in node.named_children(&mut cursor) {
            if declarator.kind() != "variable_declarator" {
                continue;
            }
            let name = self.field_text(declarator, "name");
            let last = declarator.child_count().saturating_sub(1);
            let created = declarator
                .child(last)
                .filter(|value| value.kind() == "object_creation_expression")
                .and_then(|value| value.child_by_field_name("type"))
                .and_then(|of| type_name(self.text, of));
            let of = declared.clone().or(created);
            self.names.declare(name, of, self.scope());
            let is_member = matches!(
                self.parent_kind(),
                "field_declaration" | "event_field_declaration"
            );
            if is_member && let Some(group) = &mut self.group {
                group.names.push(name.to_owned());
            }
        }
    }

    pub(super) fn call(&mut self, node: Node<'_>) {
        let Some(function) = node.child_by_field_name("function") else {
            return;
        };
        let (receiver, name) = match function.kind() {
            "identifier" | "generic_name" => (Receiver::Own, Some(function)),
            "member_access_expression" => {
                let expression = function.child_by_field_name("expression");
                let receiver = expression.map_or(Receiver::Own, |of| Receiver::new(self.text, of));
                (receiver, function.child_by_field_name("name"))
            }
            "conditional_access_expression" => {
                let condition = function.child_by_field_name("condition");
                let receiver =
                    condition.map_or(Receiver::Unknown, |of| Receiver::new(self.text, of));
                let last = function.child_count().saturating_sub(1);
                let binding = function.child(last);
                (
                    receiver,
                    binding.and_then(|binding| binding.child_by_field_name("name")),
                )
            }
            _ => return,
        };
        let Some(name) = name.and_then(|name| simple_name(self.text, name)) else {
            return;
        };
        let receiver = match receiver {
            Receiver::Base => match self.base() {
                Some(base) => Receiver::Type(base),
                // Another part of the type may name its base class.
                None if self.own_type().is_some_and(|own| own.is_partial) => Receiver::Unknown,
                None => return,
            },
            other => other,
        };
        self.names.call(Call {
            at: node.start_byte(),
            name,
            receiver,
        });
    }

    pub(super) fn creation(&mut self, node: Node<'_>) {
        if let Some(created) = node
            .child_by_field_name("type")
            .and_then(|of| type_name(self.text, of))
        {
            let at = node.start_byte();
            self.names.add_type(at, MentionKind::Calls, created);
        }
    }

    /// `: base(…)` or `: this(…)` after the parameters of a constructor.
    pub(super) fn initializer(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let mut words = node.children(&mut cursor).map(|child| child.kind());
        let called = if words.any(|word| word == "this") {
            let own = self.own_type().map(|own| own.name);
            own.map(|own| Cow::Owned(format!("{own}.{own}")))
        } else {
            self.base()
        };
        if let Some(called) = called {
            let at = node.start_byte();
            self.names.add_type(at, MentionKind::Calls, called);
        }
    }

    /// `using A.B;`, `using static A.B;` or `using A = B.C;`.
    pub(super) fn using(&mut self, node: Node<'_>) {
        let alias = node.child_by_field_name("name");
        let mut cursor = node.walk();
        let used = node
            .named_children(&mut cursor)
            .filter(|child| Some(*child) != alias)
            .find_map(|child| Some((child, type_name(self.text, child)?)));
        let Some((place, used)) = used else {
            return;
        };
        if let Some(alias) = alias {
            self.names.alias(self.text_of(alias), used.into_owned());
            return;
        }
        self.names.namespace(self.text_of(place));
        // It may be a namespace inside the current one.
        if !self.prefix.is_empty() {
            self.findings.import(&self.qualified(&used));
        }
        self.findings.import(&used);
    }

    /// The type around the current syntax node.
    fn own_type(&self) -> Option<&EnclosingType<'a>> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.own.as_ref())
    }

    /// The base class of the type around the current syntax node.
    fn base(&self) -> Option<TypeName<'a>> {
        self.own_type().and_then(|own| own.base.clone())
    }

    /// Arguments after the base class call its constructor: `class A(int b) : C(b)`.
    pub(super) fn base_arguments(&mut self, node: Node<'_>) {
        if let Some(base) = self.base() {
            let at = node.start_byte();
            self.names.add_type(at, MentionKind::Calls, base);
        }
    }

    /// The owner of a static member may be a type.
    pub(super) fn access(&mut self, node: Node<'_>) {
        if let Some(of) = node.child_by_field_name("expression")
            && of.kind() == "identifier"
        {
            self.names.maybe_type(of.start_byte(), self.text_of(of));
        }
    }

    pub(super) fn name(&mut self, node: Node<'_>, field: Option<&str>, role: Role) {
        let name = self.text_of(node);
        if name == "StoredProcedure" {
            self.strings.calls_procedure(self.scope());
        }
        let kind = match role {
            Role::None => return,
            Role::Type => {
                if self.parent_kind() == "constant_pattern" {
                    self.names.maybe_type(node.start_byte(), name);
                    return;
                }
                MentionKind::References
            }
            Role::Base => {
                // In a qualified name, only the last part is the type.
                if self.parent_kind() == "qualified_name" && field != Some("name") {
                    return;
                }
                match self.base_kind(name) {
                    Some(kind) => kind,
                    None => return,
                }
            }
        };
        let is_attribute = self.parent_kind() == "attribute";
        let in_full = self.in_full(node).unwrap_or(Cow::Borrowed(name));
        self.names.add_type(node.start_byte(), kind, in_full);
        if is_attribute && !name.ends_with("Attribute") {
            let full = format!("{name}Attribute");
            self.findings.mention(node.start_byte(), kind, &full, None);
        }
    }

    /// The qualified name of the type that ends with this syntax node.
    fn in_full(&self, node: Node<'_>) -> Option<TypeName<'a>> {
        let is_qualified = |kind: &str| matches!(kind, "qualified_name" | "alias_qualified_name");
        let mut above = self.ancestors.iter().rev().map(|above| above.kind);
        let (parent, next) = (above.next()?, above.next().unwrap_or_default());
        let around = match () {
            () if is_qualified(parent) => node.parent()?,
            () if parent == "generic_name" && is_qualified(next) => node.parent()?.parent()?,
            () => return None,
        };
        type_name(self.text, around)
    }

    fn base_kind(&self, name: &str) -> Option<MentionKind> {
        let bases = self.scopes.iter().rev().find_map(|scope| match scope.is {
            ScopeKind::Type { bases } => Some(bases),
            _ => None,
        })?;
        match bases {
            Bases::Neither => None,
            Bases::Implemented => Some(MentionKind::Implements),
            Bases::Mixed if is_interface(name) => Some(MentionKind::Implements),
            Bases::Inherited | Bases::Mixed => Some(MentionKind::Inherits),
        }
    }
}

/// Whether a name looks like that of an interface: `IName`.
pub(super) fn is_interface(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next() == Some('I') && letters.next().is_some_and(char::is_uppercase)
}
