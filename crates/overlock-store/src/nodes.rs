//! What is kept of source text: nodes, what they mention, the edges between them, and how they are
//! found.
//!
//! A file becomes nodes, one for each thing it defines. A node mentions others by name only, since
//! what it speaks of may be in a file that comes later, or never. Mentions are kept, and
//! [`Nodes::resolve`] makes edges of them: a node that appears is found by those that spoke of it
//! all along, and one that goes takes its edges with it.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::StoreError;
use crate::paths::PathPattern;

/// What a store keeps of source text.
pub trait Nodes {
    /// The repositories of which something is kept, by name.
    fn repositories(&self) -> Result<Vec<RepositorySummary>, StoreError>;

    /// The files of a repository by path, so that unchanged ones can be skipped and those that are
    /// gone removed.
    fn files(&self, repository: &str) -> Result<Vec<KeptFile>, StoreError>;

    /// Says which folder a repository is made from: this one, if it was made from none so far or
    /// from the one it is to be made from no longer. Which one it is then.
    fn settle(
        &self,
        repository: &str,
        folder: &str,
        instead_of: Option<&str>,
    ) -> Result<String, StoreError>;

    /// Keeps files: all of them or, if that fails, none. What was kept of them before is replaced;
    /// a node that is the same as before keeps its vectors.
    fn put_files(&self, repository: &str, files: &[NewFile<'_>]) -> Result<(), StoreError>;

    /// Removes files and all that was kept of them. Those that are not there are no error.
    fn remove_files(&self, repository: &str, paths: &[&str]) -> Result<(), StoreError>;

    /// Makes edges of mentions: of the new ones, and of those whose names have come to be or are
    /// gone. Until then only those edges may be missing: none is there that should not be, but for
    /// a name that means something else by now.
    fn resolve(&self, repository: &str) -> Result<Resolved, StoreError>;

    /// Nodes by their ids, in that order; those that are not there are left out.
    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<Node>, StoreError>;

    /// The edges both ends of which are among these nodes, by their ends.
    fn edges(&self, among: &[NodeId]) -> Result<Vec<Edge>, StoreError>;

    /// Nodes of a repository that have no vector of a model, with their texts. One call after the
    /// other gives all of them, if each is told the last node that the one before gave.
    fn without_vector(
        &self,
        repository: &str,
        model: &str,
        after: Option<&NodeId>,
        limit: u32,
    ) -> Result<Vec<(NodeId, String)>, StoreError>;

    /// Keeps vectors of a model: all of them or, if that fails, none. Those of nodes that are gone
    /// meanwhile are left out.
    fn put_vectors(&self, model: &str, vectors: &[(NodeId, &[f32])]) -> Result<(), StoreError>;

    /// The nodes that answer a query best, the best first.
    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, StoreError>;

    /// The nodes that are reached over edges, the nearest first, beginning with those it starts
    /// from, in their order.
    fn walk(&self, from: &[NodeId], walk: &Walk<'_>) -> Result<Vec<Reached>, StoreError>;
}

/// The name of a node: sixteen letters and digits that follow from where it is and what it is
/// called, so that it is the same after the file has been indexed again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(String);

/// Digits and letters without those that look like others.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl NodeId {
    /// The id of a node, of which the file has so many of the same kind and name before it.
    pub fn new(
        repository: &str,
        path: &str,
        kind: NodeKind,
        qualified: &str,
        ordinal: usize,
    ) -> Self {
        let mut digest = Sha256::new();
        for part in [repository, path, kind.as_str(), qualified] {
            // Its length first, or a letter could move from one part to the next.
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.update((ordinal as u64).to_le_bytes());
        let digest = digest.finalize();
        // Five bytes are eight letters.
        let letters = digest[..10].chunks(5).flat_map(|bytes| {
            let number = bytes
                .iter()
                .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            (0..8).rev().map(move |place| {
                let index = usize::try_from((number >> (5 * place)) & 31).unwrap_or_default();
                char::from(ALPHABET[index])
            })
        });
        Self(letters.collect())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Any text may be asked for; one that is no id names no node.
impl From<String> for NodeId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for NodeId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Display for NodeId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Writes an enum whose members have names, and the way back from the names.
macro_rules! named {
    ($(#[$about:meta])* $name:ident, $what:literal: $($(#[$doc:meta])* $member:ident = $text:literal,)+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $member,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$member),+];

            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$member => $text,)+
                }
            }
        }

        impl Display for $name {
            fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                match text {
                    $($text => Ok(Self::$member),)+
                    _ => Err(UnknownName {
                        name: text.to_owned(),
                        what: $what,
                        known: concat!($("`", $text, "` "),+),
                    }),
                }
            }
        }
    };
}

/// A text that names no member of a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not {what}; there are {}", known.trim_end().replace(' ', ", "))]
pub struct UnknownName {
    name: String,
    what: &'static str,
    known: &'static str,
}

named! {
    /// What a node is.
    NodeKind, "a kind of node":
    /// What of a file no other node holds.
    File = "file",
    /// A class, record, structure, enumeration or delegate.
    Type = "type",
    /// An interface.
    Interface = "interface",
    /// A method, constructor, operator or accessor.
    Method = "method",
    /// The properties, fields and events of a type.
    PropertyGroup = "property_group",
    /// A procedure of a database.
    Procedure = "procedure",
    /// A function of a database.
    Function = "function",
    /// A trigger.
    Trigger = "trigger",
    /// A view.
    View = "view",
    /// A table.
    Table = "table",
    /// A part of a document.
    Section = "section",
}

named! {
    /// What an edge says.
    EdgeKind, "a kind of edge":
    /// One calls the other.
    Calls = "calls",
    /// One speaks of the other.
    References = "references",
    /// One is derived from the other.
    Inherits = "inherits",
    /// One is an implementation of the other.
    Implements = "implements",
    /// One reads from the table or view that the other is.
    ReadsTable = "reads_table",
    /// One changes the table or view that the other is.
    WritesTable = "writes_table",
    /// One is inside the other.
    Contains = "contains",
}

/// What is to be kept of a file.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    /// Where it is in its repository, with `/` between folders.
    pub path: &'a str,
    /// What its content and whatever made nodes of it come to, so that a change is noticed.
    pub hash: &'a str,
    /// The namespaces and types whose members it may name without them, each in full.
    pub imports: &'a [String],
    /// What it defines, with parents before their children.
    pub nodes: &'a [NewNode],
    /// What its nodes speak of.
    pub mentions: &'a [Mention],
}

impl NewFile<'_> {
    /// Says what contradicts itself.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let unfit = |reason| {
            Err(StoreError::UnfitFile {
                path: self.path.to_owned(),
                reason,
            })
        };
        for (place, node) in self.nodes.iter().enumerate() {
            let name = &node.qualified;
            if node.parent.is_some_and(|parent| parent >= place) {
                return unfit(format!("the parent of `{name}` does not come before it"));
            }
            let (lines, span) = (node.lines, &node.span);
            if lines.0 > lines.1 || span.start > span.end || i64::try_from(span.end).is_err() {
                return unfit(format!("`{name}` ends before it begins, or never"));
            }
        }
        let count = self.nodes.len();
        match self.mentions.iter().find(|mention| mention.from >= count) {
            Some(Mention { from, name, .. }) => unfit(format!(
                "node {from} mentions `{name}`, but there are only {count}, counted from 0"
            )),
            None => Ok(()),
        }
    }

    /// The ids of its nodes, in their order.
    pub fn ids(&self, repository: &str) -> Vec<NodeId> {
        let mut known = std::collections::HashMap::new();
        let nodes = self.nodes.iter();
        nodes
            .map(|node| {
                let before: &mut usize = known.entry((node.kind, &*node.qualified)).or_default();
                let id = NodeId::new(repository, self.path, node.kind, &node.qualified, *before);
                *before += 1;
                id
            })
            .collect()
    }
}

/// A thing that a file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// What it is.
    pub kind: NodeKind,
    /// What it is called: the last part of `qualified`.
    pub name: String,
    /// What it is called in full, with a dot between the parts.
    pub qualified: String,
    /// Its place among the nodes of the file, if it is inside another one, which comes before it.
    pub parent: Option<usize>,
    /// What it is written in.
    pub language: String,
    /// The lines it is on, counted from 1, the last one included.
    pub lines: (u32, u32),
    /// The bytes of the file it is.
    pub span: Range<u64>,
    /// Its text.
    pub text: String,
    /// What else is known of it, a JSON object.
    pub metadata: String,
}

/// A name that a node speaks of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mention {
    /// The place of the node among those of its file.
    pub from: usize,
    /// What the edge will say; whether it is inherited from or implemented follows from what is meant.
    pub kind: EdgeKind,
    /// The name, qualified by as much as the text tells for certain, with a dot between the parts.
    /// A node answers to it whose qualified name agrees with it from the end on, as far as both go.
    pub name: String,
    /// Where the node of that name is looked for.
    pub scope: Scope,
}

named! {
    /// Where a name is looked for.
    Scope, "a scope":
    /// As a name alone is: what stands in a namespace or type around the node that speaks of it, the
    /// innermost first, else in one that its file imports, else what shares most of its qualified
    /// name with it.
    Nearest = "nearest",
    /// Anywhere, as a member of something unknown is.
    Anywhere = "anywhere",
}

/// A file of which nodes are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// Where it is in its repository.
    pub path: String,
    /// What its content came to.
    pub hash: String,
}

/// What is kept of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositorySummary {
    /// Its name.
    pub name: String,
    /// The folder that it is made from, if that was said.
    pub folder: Option<String>,
    /// How many files it has.
    pub files: u64,
    /// How many nodes.
    pub nodes: u64,
    /// How many edges go out from them.
    pub edges: u64,
}

/// What [`Nodes::resolve`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// How many mentions it looked at.
    pub mentions: u64,
    /// How many edges came of them.
    pub edges: u64,
}

/// A node as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// The repository it is in.
    pub repository: String,
    /// The file it is in.
    pub path: String,
    /// What it is.
    pub kind: NodeKind,
    /// What it is called.
    pub name: String,
    /// What it is called in full.
    pub qualified: String,
    /// The node it is inside, if it is.
    pub parent: Option<NodeId>,
    /// What it is written in.
    pub language: String,
    /// The lines it is on, counted from 1, the last one included.
    pub lines: (u32, u32),
    /// The bytes of the file it is.
    pub span: Range<u64>,
    /// Its text.
    pub text: String,
    /// What else is known of it, a JSON object.
    pub metadata: String,
}

/// An edge between two nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// Where it begins.
    pub from: NodeId,
    /// What it says.
    pub kind: EdgeKind,
    /// Where it ends.
    pub to: NodeId,
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// How, and what.
    pub search: Search<'a>,
    /// Where.
    pub filter: Filter<'a>,
    /// How many are wanted.
    pub limit: u32,
}

/// How nodes are found.
#[derive(Clone, Copy, Debug)]
pub enum Search<'a> {
    /// By words: first those with all of them, then those with any of the rarest. `order service`
    /// finds `OrderService` and `order_service`.
    Keyword(&'a str),
    /// By their vectors.
    Semantic(Vector<'a>),
    /// By both, those first that come early in either (reciprocal ranks, k = 60).
    Hybrid(&'a str, Vector<'a>),
}

/// A vector, and the model whose vectors it can be compared with.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a> {
    /// The model.
    pub model: &'a str,
    /// Its numbers.
    pub numbers: &'a [f32],
}

/// Where nodes are looked for: what is left out restricts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// In this repository.
    pub repository: Option<&'a str>,
    /// In this language.
    pub language: Option<&'a str>,
    /// In files whose paths look like this.
    pub path: Option<&'a PathPattern>,
}

/// A node that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The node.
    pub node: Node,
    /// How well it answers; only hits of one search can be compared.
    pub score: f64,
    /// Its place among those found by words, counted from 1.
    pub keyword: Option<u32>,
    /// Its place among those found by vectors, counted from 1.
    pub semantic: Option<u32>,
}

impl Walk<'_> {
    /// Nothing is followed over more edges than this.
    pub const DEEPEST: u32 = 32;
}

/// How far edges are followed.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    /// Over so many edges at most, and never over more than [`Walk::DEEPEST`].
    pub depth: u32,
    /// To so many nodes at most, those it starts from included. Which of the farthest are left out
    /// is up to the store, and the same each time.
    pub count: u32,
    /// Over edges of these kinds; over all if there are none.
    pub kinds: &'a [EdgeKind],
    /// Which way.
    pub direction: Direction,
}

/// Which way edges are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From where they begin to where they end.
    Forward,
    /// From where they end to where they begin.
    Backward,
    /// Both.
    Both,
}

/// A node that a walk reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The node.
    pub id: NodeId,
    /// Over how many edges, at least.
    pub depth: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_read_again() {
        for kind in NodeKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
        }
        for kind in EdgeKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
        }
    }

    #[test]
    fn a_name_that_is_not_known_is_told_with_those_that_are() {
        let error = "nearby".parse::<Scope>().expect_err("it is none");
        assert_eq!(
            error.to_string(),
            "`nearby` is not a scope; there are `nearest`, `anywhere`"
        );
    }

    #[test]
    fn ids_tell_every_part_apart_and_stay_the_same() {
        let id = |repository, path, kind, name, ordinal| {
            NodeId::new(repository, path, kind, name, ordinal).to_string()
        };
        let ids = [
            id("a", "b", NodeKind::Type, "C", 0),
            id("ab", "", NodeKind::Type, "C", 0),
            id("a", "b", NodeKind::Table, "C", 0),
            id("a", "b", NodeKind::Type, "D", 0),
            id("a", "b", NodeKind::Type, "C", 1),
        ];
        let mut different = ids.to_vec();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), ids.len());
        // An index that was made before must find its nodes again.
        assert_eq!(ids[0], "9jzyd50gamfms1mn");
    }
}
