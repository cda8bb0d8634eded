//! What names mean in C#, as far as one file tells.
//!
//! A call says only the name of a method. Whose method it is follows from the declared type of what
//! it is called on, if that was declared in the same member or type. Declarations may come after
//! their use, so that everything is noted first and worked out at the end.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tree_sitter::Node;

use super::super::MentionKind;
use super::super::tree::Findings;

/// What a method is called on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Receiver<'a> {
    /// The object itself, or nothing.
    Own,
    /// A variable, a property, or a type.
    Named(&'a str),
    /// The result of something.
    Unknown,
}

impl<'a> Receiver<'a> {
    pub(super) fn of(text: &'a str, node: Node<'_>) -> Self {
        let node = match node.kind() {
            "postfix_unary_expression" | "parenthesized_expression" => match node.named_child(0) {
                Some(inner) => inner,
                None => return Self::Unknown,
            },
            _ => node,
        };
        match node.kind() {
            "this" | "base" | "this_expression" | "base_expression" => Self::Own,
            "identifier" | "generic_name" => {
                simple_name(text, node).map_or(Self::Unknown, Self::Named)
            }
            "member_access_expression" => node
                .child_by_field_name("name")
                .and_then(|name| simple_name(text, name))
                .map_or(Self::Unknown, Self::Named),
            "object_creation_expression" => node
                .child_by_field_name("type")
                .and_then(|of| simple_name(text, of))
                .map_or(Self::Unknown, Self::Named),
            _ => Self::Unknown,
        }
    }
}

/// A call of a method.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) at: usize,
    pub(super) name: &'a str,
    pub(super) receiver: Receiver<'a>,
}

/// A name that was given to something.
#[derive(Debug)]
struct Declared<'a> {
    scope: Range<usize>,
    of: Option<&'a str>,
}

/// All names of a file.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    declared: HashMap<&'a str, Vec<Declared<'a>>>,
    type_parameters: HashSet<&'a str>,
    calls: Vec<Call<'a>>,
    /// Names that stand where only a type can, and those where a type may stand.
    types: Vec<(usize, MentionKind, &'a str)>,
    maybe_types: Vec<(usize, &'a str)>,
}

impl<'a> Names<'a> {
    pub(super) fn declare(&mut self, name: &'a str, of: Option<&'a str>, scope: Range<usize>) {
        if !name.is_empty() {
            let declared = self.declared.entry(name).or_default();
            declared.push(Declared { scope, of });
        }
    }

    pub(super) fn type_parameter(&mut self, name: &'a str) {
        self.type_parameters.insert(name);
    }

    pub(super) fn call(&mut self, call: Call<'a>) {
        self.calls.push(call);
    }

    /// A type is named here.
    pub(super) fn named(&mut self, at: usize, kind: MentionKind, name: &'a str) {
        self.types.push((at, kind, name));
    }

    /// A type is named here, unless it is a variable.
    pub(super) fn maybe_type(&mut self, at: usize, name: &'a str) {
        if name.starts_with(char::is_uppercase) {
            self.maybe_types.push((at, name));
        }
    }

    /// Works out what was meant.
    pub(super) fn report(mut self, findings: &mut Findings) {
        for declared in self.declared.values_mut() {
            declared.sort_by_key(|one| one.scope.start);
        }
        for &(at, kind, name) in &self.types {
            if !self.type_parameters.contains(name) {
                findings.mention(at, kind, name, None);
            }
        }
        for &(at, name) in &self.maybe_types {
            if self.declared_at(name, at).is_none() {
                findings.mention(at, MentionKind::References, name, None);
            }
        }
        for call in &self.calls {
            self.report_call(call, findings);
        }
    }

    fn report_call(&self, call: &Call<'_>, findings: &mut Findings) {
        let of = match call.receiver {
            Receiver::Own => {
                // A local function, or a delegate in a variable: it is called where it is declared.
                if call.name != "nameof" && self.declared_at(call.name, call.at).is_none() {
                    findings.mention(call.at, MentionKind::Calls, call.name, None);
                }
                return;
            }
            Receiver::Named(name) => match self.declared_at(name, call.at) {
                Some(declared) => declared.of,
                None => name.starts_with(char::is_uppercase).then_some(name),
            },
            Receiver::Unknown => None,
        };
        match of.filter(|of| !self.type_parameters.contains(of)) {
            Some(of) => findings.mention(call.at, MentionKind::Calls, call.name, Some(of)),
            None => findings.call_of_unknown(call.at, call.name),
        }
    }

    /// The innermost declaration of a name around a place.
    fn declared_at(&self, name: &str, at: usize) -> Option<&Declared<'a>> {
        /// So many scopes with the same name are looked at, so that no text takes long.
        const LOOK_BACK: usize = 32;
        let declared = self.declared.get(name)?;
        let after = declared.partition_point(|one| one.scope.start <= at);
        let before = declared[..after].iter().rev().take(LOOK_BACK);
        before
            .filter(|one| at < one.scope.end)
            .min_by_key(|one| one.scope.len())
    }
}

/// The name of a type or a member without what it is qualified with and its arguments.
pub(super) fn simple_name<'a>(text: &'a str, node: Node<'_>) -> Option<&'a str> {
    /// `A?[]*` and the like; nobody nests them deeper.
    const DEPTH: usize = 4;
    let mut node = node;
    for _ in 0..DEPTH {
        node = match node.kind() {
            "identifier" => return text.get(node.byte_range()),
            "generic_name" => node.child(0)?,
            "nullable_type" | "ref_type" | "scoped_type" => node.child_by_field_name("type")?,
            "qualified_name" | "alias_qualified_name" => node.child_by_field_name("name")?,
            _ => return None,
        };
    }
    None
}
