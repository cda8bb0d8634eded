//! What code speaks of: the names that are declared, called and used in it.

use tree_sitter::Node;

use super::super::MentionKind;
use super::names::{Call, Receiver, simple_name};
use super::{Bases, Finder, Role, ScopeKind};

impl Finder<'_, '_> {
    pub(super) fn variable(&mut self, node: Node<'_>, field: &str) {
        let declared = node
            .child_by_field_name("type")
            .and_then(|of| simple_name(self.text, of));
        let name = self.field_text(node, field);
        self.names.declare(name, declared, self.scope());
    }

    pub(super) fn variables(&mut self, node: Node<'_>) {
        let declared = node
            .child_by_field_name("type")
            .and_then(|of| simple_name(self.text, of));
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
                .and_then(|of| simple_name(self.text, of));
            self.names.declare(name, declared.or(created), self.scope());
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
                let receiver = expression.map_or(Receiver::Own, |of| Receiver::of(self.text, of));
                (receiver, function.child_by_field_name("name"))
            }
            "conditional_access_expression" => {
                let condition = function.child_by_field_name("condition");
                let receiver =
                    condition.map_or(Receiver::Unknown, |of| Receiver::of(self.text, of));
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
        self.names.call(Call {
            at: node.start_byte(),
            name,
            receiver,
        });
    }

    pub(super) fn creation(&mut self, node: Node<'_>) {
        if let Some(created) = node
            .child_by_field_name("type")
            .and_then(|of| simple_name(self.text, of))
        {
            self.findings
                .mention(node.start_byte(), MentionKind::Calls, created, None);
        }
    }

    /// What a static member is taken from may be a type.
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
                // Of a qualified name only the last part is the type.
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
        self.names.named(node.start_byte(), kind, name);
        if is_attribute && !name.ends_with("Attribute") {
            let full = format!("{name}Attribute");
            self.findings.mention(node.start_byte(), kind, &full, None);
        }
    }

    fn base_kind(&self, name: &str) -> Option<MentionKind> {
        let bases = self.scopes.iter().rev().find_map(|scope| match scope.is {
            ScopeKind::Type { bases } => Some(bases),
            _ => None,
        })?;
        let mut letters = name.chars();
        let is_interface =
            letters.next() == Some('I') && letters.next().is_some_and(char::is_uppercase);
        match bases {
            Bases::Neither => None,
            Bases::Implemented => Some(MentionKind::Implements),
            Bases::Mixed if is_interface => Some(MentionKind::Implements),
            Bases::Inherited | Bases::Mixed => Some(MentionKind::Inherits),
        }
    }
}
