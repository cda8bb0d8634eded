//! What names mean in C#, as far as one file tells.
//!
//! A call says only the name of a method. Whose method it is follows from the declared type of what
//! it is called on, if that was declared in the same member or type. Declarations may come after
//! their use, so that everything is noted first and worked out at the end.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tree_sitter::Node;

use super::super::MentionKind;
use super::super::tree::Findings;

/// What a method is called on.
#[derive(Clone, Debug)]
pub(super) enum Receiver<'a> {
    /// The object itself, or nothing.
    Own,
    /// The object as what it is made from.
    Base,
    /// A variable, a property, or a type.
    Named(&'a str),
    /// A name after others, which may be namespaces: all of it, and the name.
    Chain(String, &'a str),
    /// What can only be a type.
    Type(TypeName<'a>),
    /// The result of something.
    Unknown,
}

/// A type by as much of its name as is written, with a dot between the parts.
pub(super) type TypeName<'a> = Cow<'a, str>;

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

/// A name that was given to something.
#[derive(Debug)]
struct Declared<'a> {
    scope: Range<usize>,
    of: Option<TypeName<'a>>,
}

/// All names of a file.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    declared: HashMap<&'a str, Vec<Declared<'a>>>,
    type_parameters: HashSet<&'a str>,
    /// What `using A = B.C;` calls by another name.
    aliases: HashMap<&'a str, String>,
    /// The first parts of the namespaces that the file is in or speaks of.
    roots: HashSet<&'a str>,
    calls: Vec<Call<'a>>,
    /// Names that stand where only a type can, and those where a type may stand.
    types: Vec<(usize, MentionKind, TypeName<'a>)>,
    maybe_types: Vec<(usize, &'a str)>,
}

impl<'a> Names<'a> {
    pub(super) fn declare(&mut self, name: &'a str, of: Option<TypeName<'a>>, scope: Range<usize>) {
        if !name.is_empty() {
            let declared = self.declared.entry(name).or_default();
            declared.push(Declared { scope, of });
        }
    }

    pub(super) fn type_parameter(&mut self, name: &'a str) {
        self.type_parameters.insert(name);
    }

    pub(super) fn alias(&mut self, name: &'a str, of: String) {
        self.aliases.insert(name, of);
    }

    /// A namespace is named here.
    pub(super) fn namespace(&mut self, name: &'a str) {
        let root = name.split('.').next().unwrap_or_default();
        self.roots.insert(root.trim());
    }

    pub(super) fn call(&mut self, call: Call<'a>) {
        self.calls.push(call);
    }

    /// A type is named here.
    pub(super) fn named(&mut self, at: usize, kind: MentionKind, name: TypeName<'a>) {
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
                // A local function, or a delegate in a variable: it is called where it is declared.
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

    /// The type of what has this name, or the type of this name.
    fn type_of<'n>(&'n self, name: &'n str, at: usize) -> Option<&'n str> {
        match self.declared_at(name, at) {
            Some(declared) => declared.of.as_deref(),
            None => name.starts_with(char::is_uppercase).then_some(name),
        }
    }

    /// The name of a type as it is without aliases.
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

/// The name of a type with what it is qualified with, without arguments.
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

/// Names with nothing but dots between them, as a member of a member is written.
fn chain(text: &str, node: Node<'_>) -> Option<String> {
    let written = text.get(node.byte_range())?;
    let written = written.strip_prefix("global::").unwrap_or(written);
    let is_name = |part: &str| {
        part.starts_with(char::is_uppercase)
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    written.split('.').all(is_name).then(|| written.to_owned())
}
