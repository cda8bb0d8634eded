//! Resolves names in C# as far as one file allows.
//!
//! A call contains only the name of a method. The type of the method is the declared type of the
//! receiver, if that is declared in the same member or type. Declarations may follow their uses, so
//! all names are collected first and resolved at the end.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tree_sitter::Node;

use super::super::MentionKind;
use super::super::tree::Findings;

/// The receiver of a call.
#[derive(Clone, Debug)]
pub(super) enum Receiver<'a> {
    /// `this`, or none.
    Own,
    /// `base`.
    Base,
    /// A variable, a property, or a type.
    Named(&'a str),
    /// A dotted name whose first parts may be namespaces: the complete name and its last part.
    Chain(String, &'a str),
    /// Certainly a type.
    Type(TypeName<'a>),
    /// The result of an expression.
    Unknown,
}

/// The name of a type, qualified as in the text.
pub(super) type TypeName<'a> = Cow<'a, str>;

impl<'a> Receiver<'a> {
    pub(super) fn new(text: &'a str, node: Node<'_>) -> Self {
        let node = match node.kind() {
            "postfix_unary_expression" | "parenthesized_expression" => match node.named_child(0) {
                Some(inner) => inner,
                None => return Self::Unknown,
            },
            _ => node,
        };
        match node.kind() {
            "this" | "this_expression" => Self::Own,
            "base" | "base_expression" => Self::Base,
            "identifier" | "generic_name" => {
                simple_name(text, node).map_or(Self::Unknown, Self::Named)
            }
            "member_access_expression" => {
                let name = node.child_by_field_name("name");
                match (chain(text, node), name.and_then(|of| simple_name(text, of))) {
                    (Some(chain), Some(name)) => Self::Chain(chain, name),
                    (None, Some(name)) => Self::Named(name),
                    (_, None) => Self::Unknown,
                }
            }
            "object_creation_expression" => node
                .child_by_field_name("type")
                .and_then(|of| type_name(text, of))
                .map_or(Self::Unknown, Self::Type),
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

/// A declared variable, parameter or member.
#[derive(Debug)]
struct DeclaredName<'a> {
    scope: Range<usize>,
    of: Option<TypeName<'a>>,
}

/// All names of a file.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    declared: HashMap<&'a str, Vec<DeclaredName<'a>>>,
    type_parameters: HashSet<&'a str>,
    /// Aliases from `using A = B.C;`.
    aliases: HashMap<&'a str, String>,
    /// The first parts of the namespaces that the file declares or imports.
    roots: HashSet<&'a str>,
    calls: Vec<Call<'a>>,
    /// Names in positions where only a type can be, and those where a type may be.
    types: Vec<(usize, MentionKind, TypeName<'a>)>,
    maybe_types: Vec<(usize, &'a str)>,
}

impl<'a> Names<'a> {
    pub(super) fn declare(&mut self, name: &'a str, of: Option<TypeName<'a>>, scope: Range<usize>) {
        if !name.is_empty() {
            let declared = self.declared.entry(name).or_default();
            declared.push(DeclaredName { scope, of });
        }
    }

    pub(super) fn type_parameter(&mut self, name: &'a str) {
        self.type_parameters.insert(name);
    }

    pub(super) fn alias(&mut self, name: &'a str, of: String) {
        self.aliases.insert(name, of);
    }

    /// Adds the name of a namespace.
    pub(super) fn namespace(&mut self, name: &'a str) {
        let root = name.split('.').next().unwrap_or_default();
        self.roots.insert(root.trim());
    }

    pub(super) fn call(&mut self, call: Call<'a>) {
        self.calls.push(call);
    }

    /// Adds the name of a type.
    pub(super) fn add_type(&mut self, at: usize, kind: MentionKind, name: TypeName<'a>) {
        self.types.push((at, kind, name));
    }

    /// Adds a name that is a type unless it is a variable.
    pub(super) fn maybe_type(&mut self, at: usize, name: &'a str) {
        if name.starts_with(char::is_uppercase) {
            self.maybe_types.push((at, name));
        }
    }

    /// Resolves all names and reports the mentions.
    pub(super) fn report(mut self, findings: &mut Findings) {
        for declared in self.declared.values_mut() {
            declared.sort_by_key(|one| one.scope.start);
        }
        for (at, kind, name) in &self.types {
            if !self.type_parameters.contains(&**name) {
                findings.mention_qualified(*at, *kind, &self.in_full(name));
            }
        }
        for &(at, name) in &self.maybe_types {
            if self.declared_at(name, at).is_none() {
                findings.mention_qualified(at, MentionKind::References, &self.in_full(name));
            }
        }
        for call in &self.calls {
            self.report_call(call, findings);
        }
    }

    fn report_call(&self, call: &Call<'_>, findings: &mut Findings) {
        let of = match &call.receiver {
            Receiver::Own => {
                // Calls of local functions and delegate variables are not mentions.
                if call.name != "nameof" && self.declared_at(call.name, call.at).is_none() {
                    findings.mention(call.at, MentionKind::Calls, call.name, None);
                }
                return;
            }
            Receiver::Named(name) => self.type_of(name, call.at),
            Receiver::Chain(chain, name) => {
                let root = chain.split('.').next().unwrap_or_default();
                let is_namespace = self.roots.contains(root) || self.aliases.contains_key(root);
                if is_namespace && self.declared_at(root, call.at).is_none() {
                    Some(&**chain)
                } else {
                    self.type_of(name, call.at)
                }
            }
            Receiver::Type(of) => Some(&**of),
            Receiver::Base | Receiver::Unknown => None,
        };
        match of.filter(|of| !self.type_parameters.contains(of)) {
            Some(of) => {
                let of = self.in_full(of);
                findings.mention(call.at, MentionKind::Calls, call.name, Some(&of));
            }
            None => findings.call_of_unknown(call.at, call.name),
        }
    }

    /// The type of the variable of this name, or the name itself if it is a type.
    fn type_of<'n>(&'n self, name: &'n str, at: usize) -> Option<&'n str> {
        match self.declared_at(name, at) {
            Some(declared) => declared.of.as_deref(),
            None => name.starts_with(char::is_uppercase).then_some(name),
        }
    }

    /// The name of a type with aliases resolved.
    fn in_full<'n>(&self, name: &'n str) -> Cow<'n, str> {
        let (first, rest) = name
            .split_once('.')
            .map_or((name, None), |(first, rest)| (first, Some(rest)));
        match (self.aliases.get(first), rest) {
            (None, _) => Cow::Borrowed(name),
            (Some(of), None) => Cow::Owned(of.clone()),
            (Some(of), Some(rest)) => Cow::Owned(format!("{of}.{rest}")),
        }
    }

    /// The innermost declaration of a name that is visible at an offset.
    fn declared_at(&self, name: &str, at: usize) -> Option<&DeclaredName<'a>> {
        /// Bounds the work for a name that is declared very often.
        const LOOK_BACK: usize = 32;
        let declared = self.declared.get(name)?;
        let after = declared.partition_point(|one| one.scope.start <= at);
        let before = declared[..after].iter().rev().take(LOOK_BACK);
        before
            .filter(|one| at < one.scope.end)
            .min_by_key(|one| one.scope.len())
    }
}

/// The name of a type or a member, without qualifier and type arguments.
pub(super) fn simple_name<'a>(text: &'a str, node: Node<'_>) -> Option<&'a str> {
    /// `A?[]*` and the like are not nested deeper.
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

/// The qualified name of a type, without type arguments.
pub(super) fn type_name<'a>(text: &'a str, node: Node<'_>) -> Option<TypeName<'a>> {
    /// Deeper than namespaces are nested.
    const DEPTH: usize = 16;
    let mut node = node;
    let mut name: Option<TypeName<'a>> = None;
    let mut before = |part: &'a str| {
        name = Some(match name.take() {
            None => Cow::Borrowed(part),
            Some(name) => Cow::Owned(format!("{part}.{name}")),
        });
    };
    for _ in 0..DEPTH {
        node = match node.kind() {
            "identifier" => {
                before(text.get(node.byte_range())?);
                return name;
            }
            "generic_name" => node.child(0)?,
            "nullable_type" | "ref_type" | "scoped_type" => node.child_by_field_name("type")?,
            "qualified_name" => {
                before(simple_name(text, node.child_by_field_name("name")?)?);
                node.child_by_field_name("qualifier")?
            }
            "alias_qualified_name" => {
                before(simple_name(text, node.child_by_field_name("name")?)?);
                let alias = node.child_by_field_name("alias")?;
                if text.get(alias.byte_range()) == Some("global") {
                    return name;
                }
                alias
            }
            _ => return None,
        };
    }
    None
}

/// A chain of names with dots between them.
fn chain(text: &str, node: Node<'_>) -> Option<String> {
    let written = text.get(node.byte_range())?;
    let written = written.strip_prefix("global::").unwrap_or(written);
    let is_name = |part: &str| {
        part.starts_with(char::is_uppercase)
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    written.split('.').all(is_name).then(|| written.to_owned())
}
