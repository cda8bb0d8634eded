//! Source code: nodes, mentions, the edges between nodes, and search.
//!
//! A file has one node for each definition in it. A node mentions others by name, since they may be in
//! a file that is added later, or never. Mentions are stored, and [`Nodes::resolve`] turns them into
//! edges: a new node gets edges from all nodes that already mention it, and a removed node loses its
//! edges.

use std::fmt::{self, Display, Formatter};
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::StoreError;
use crate::paths::PathPattern;

/// Stores source code.
pub trait Nodes {
    /// The repositories that have files, by name.
    fn repositories(&self) -> Result<Vec<RepositorySummary>, StoreError>;

    /// The files of a repository by path, to skip unchanged files and to remove deleted ones.
    fn files(&self, repository: &str) -> Result<Vec<StoredFile>, StoreError>;

    /// Sets the folder that a repository is indexed from, if it has none yet or has the folder
    /// `instead_of`. Returns the folder that it has then.
    fn set_folder(
        &self,
        repository: &str,
        folder: &str,
        instead_of: Option<&str>,
    ) -> Result<String, StoreError>;

    /// Adds or replaces files: either all of them or none. A node that has not changed keeps its
    /// vectors.
    fn put_files(&self, repository: &str, files: &[NewFile<'_>]) -> Result<(), StoreError>;

    /// Removes files with their nodes. Unknown files are ignored.
    fn remove_files(&self, repository: &str, paths: &[&str]) -> Result<(), StoreError>;

    /// Makes edges of new mentions, and of those whose names were added or removed. Until then those
    /// edges may be missing, and an edge may lead to a node that its name no longer means.
    fn resolve(&self, repository: &str) -> Result<Resolved, StoreError>;

    /// Nodes by their ids, in that order. Unknown ids are left out.
    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<Node>, StoreError>;

    /// The edges between these nodes, sorted.
    fn edges(&self, among: &[NodeId]) -> Result<Vec<Edge>, StoreError>;

    /// Nodes of a repository that have no vector of a model, with their texts. To read all of them
    /// page by page, pass the last node of a page as `after`.
    fn without_vector(
        &self,
        repository: &str,
        model: &str,
        after: Option<&NodeId>,
        limit: u32,
    ) -> Result<Vec<(NodeId, String)>, StoreError>;

    /// Stores vectors of a model: either all of them or none. Those of unknown nodes are ignored.
    fn put_vectors(&self, model: &str, vectors: &[(NodeId, &[f32])]) -> Result<(), StoreError>;

    /// The best nodes for a query, the best first.
    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, StoreError>;

    /// The nodes that can be reached over edges, the nearest first. It begins with the start nodes, in
    /// their order.
    fn walk(&self, from: &[NodeId], walk: &Walk<'_>) -> Result<Vec<Reached>, StoreError>;
}

/// The id of a node: sixteen letters and digits computed from its path and name, so that it stays
/// the same when the file is indexed again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(String);

/// Digits and letters without those that look like others.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl NodeId {
    /// The id of a node; `ordinal` is the number of nodes of the same kind and name before it in the
    /// file.
    pub fn new(
        repository: &str,
        path: &str,
        kind: NodeKind,
        qualified: &str,
        ordinal: usize,
    ) -> Self {
        let mut digest = Sha256::new();
        for part in [repository, path, kind.as_str(), qualified] {
            // The length comes first, so that no letter can move from one part to the next.
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

/// Every text is accepted; one that is not an id matches no node.
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

/// Defines an enum whose members have names, with the conversions in both directions.
macro_rules! named {
    ($(#[$about:meta])* $name:ident, $what:literal: $($(#[$doc:meta])* $member:ident = $text:literal,)+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $member,)+
        }

        impl $name {
            /// All members.
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

/// A text that is not the name of a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not {what}; there are {}", known.trim_end().replace(' ', ", "))]
pub struct UnknownName {
    name: String,
    what: &'static str,
    known: &'static str,
}

named! {
    /// The kind of a node.
    NodeKind, "a kind of node":
    /// The text of a file that is in no other node.
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
    /// The kind of an edge from one node, the source, to another, the target.
    EdgeKind, "a kind of edge":
    /// The source calls the target.
    Calls = "calls",
    /// The source refers to the target.
    References = "references",
    /// The source is derived from the target.
    Inherits = "inherits",
    /// The source implements the target.
    Implements = "implements",
    /// The source reads from the target, a table or view.
    ReadsTable = "reads_table",
    /// The source changes the target, a table or view.
    WritesTable = "writes_table",
    /// The source contains the target.
    Contains = "contains",
}

/// A file to store.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    /// Its path in the repository, with `/` between folders.
    pub path: &'a str,
    /// A digest of its content and of the version of the parser, to detect changes.
    pub hash: &'a str,
    /// The qualified names of the namespaces and types that it imports.
    pub imports: &'a [String],
    /// Its nodes, with parents before their children.
    pub nodes: &'a [NewNode],
    /// The mentions in its nodes.
    pub mentions: &'a [Mention],
}

impl NewFile<'_> {
    /// Checks that its nodes and mentions are consistent.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let unfit = |reason| {
            Err(StoreError::InvalidFile {
                path: self.path.to_owned(),
                reason,
            })
        };
        for (index, node) in self.nodes.iter().enumerate() {
            let name = &node.qualified;
            if node.parent.is_some_and(|parent| parent >= index) {
                return unfit(format!("the parent of `{name}` does not come before it"));
            }
            let (lines, span) = (node.lines, &node.span);
            if lines.0 > lines.1 || span.start > span.end || i64::try_from(span.end).is_err() {
                return unfit(format!("`{name}` has an invalid range"));
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

/// A definition in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// Its kind.
    pub kind: NodeKind,
    /// The last part of its qualified name.
    pub name: String,
    /// Its qualified name, with dots between the parts.
    pub qualified: String,
    /// The index of the node that contains it, if there is one.
    pub parent: Option<usize>,
    /// Its language.
    pub language: String,
    /// Its first and last line, counted from 1.
    pub lines: (u32, u32),
    /// Its byte range in the file.
    pub span: Range<u64>,
    /// Its text.
    pub text: String,
    /// Further properties, a JSON object.
    pub metadata: String,
}

/// A name that a node refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mention {
    /// The index of the node in its file.
    pub from: usize,
    /// The kind of the edge. Whether a type is inherited or implemented is decided by the target.
    pub kind: EdgeKind,
    /// The name with the qualifiers in the text, with dots between the parts. It matches a node if
    /// their names have the same last parts, as many as the shorter name has.
    pub name: String,
    /// Which nodes of that name are candidates.
    pub scope: Scope,
}

named! {
    /// How a mentioned name is resolved.
    Scope, "a scope":
    /// Like a name without qualifier: first in the namespaces and types around the node, the innermost
    /// first, then in those that its file imports, then by the longest common qualified name.
    Nearest = "nearest",
    /// Anywhere, like a member of an object of unknown type.
    Anywhere = "anywhere",
}

/// A stored file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Its path in the repository.
    pub path: String,
    /// The digest that was stored with it.
    pub hash: String,
}

/// A repository in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositorySummary {
    /// Its name.
    pub name: String,
    /// The folder that it is indexed from, if it is known.
    pub folder: Option<String>,
    /// The number of its files.
    pub files: u64,
    /// The number of its nodes.
    pub nodes: u64,
    /// The number of edges from its nodes.
    pub edges: u64,
}

/// The result of [`Nodes::resolve`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The number of mentions that were resolved.
    pub mentions: u64,
    /// The number of edges that were made.
    pub edges: u64,
}

/// A stored node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// Its repository.
    pub repository: String,
    /// The path of its file.
    pub path: String,
    /// Its kind.
    pub kind: NodeKind,
    /// Its name.
    pub name: String,
    /// Its qualified name.
    pub qualified: String,
    /// The node that contains it, if there is one.
    pub parent: Option<NodeId>,
    /// Its language.
    pub language: String,
    /// Its first and last line, counted from 1.
    pub lines: (u32, u32),
    /// Its byte range in the file.
    pub span: Range<u64>,
    /// Its text.
    pub text: String,
    /// Further properties, a JSON object.
    pub metadata: String,
}

/// A stored node that is replaced or removed.
pub(crate) struct PreviousNode {
    pub(crate) key: i64,
    pub(crate) name: String,
    pub(crate) language: String,
    pub(crate) text: String,
}

impl PreviousNode {
    /// Whether its words and vectors are those of a new node.
    pub(crate) fn has_same_text(&self, node: &NewNode) -> bool {
        (&self.name, &self.language, &self.text) == (&node.name, &node.language, &node.text)
    }
}

/// An edge between two nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// Its source.
    pub from: NodeId,
    /// Its kind.
    pub kind: EdgeKind,
    /// Its target.
    pub to: NodeId,
}

/// A search query.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The kind of search and its input.
    pub search: Search<'a>,
    /// Which nodes are searched.
    pub filter: Filter<'a>,
    /// The most hits to return.
    pub limit: u32,
}

/// The kind of search.
#[derive(Clone, Copy, Debug)]
pub enum Search<'a> {
    /// By keywords: first nodes with all of them, then nodes with any of the rarest. `order service`
    /// finds `OrderService` and `order_service`.
    Keyword(&'a str),
    /// By vectors.
    Semantic(Vector<'a>),
    /// By both, merged by reciprocal rank fusion with k = 60.
    Hybrid(&'a str, Vector<'a>),
}

/// A vector, with the name of its embedding model.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a> {
    /// The model.
    pub model: &'a str,
    /// Its numbers.
    pub numbers: &'a [f32],
}

/// Restricts a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// Only nodes of this repository.
    pub repository: Option<&'a str>,
    /// Only nodes in this language.
    pub language: Option<&'a str>,
    /// Only nodes of files whose path matches.
    pub path: Option<&'a PathPattern>,
}

/// A result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The node.
    pub node: Node,
    /// Its score, which is comparable only within one search.
    pub score: f64,
    /// Its rank in the keyword search, counted from 1.
    pub keyword: Option<u32>,
    /// Its rank in the vector search, counted from 1.
    pub semantic: Option<u32>,
}

impl Walk<'_> {
    /// The greatest depth of a walk.
    pub const DEEPEST: u32 = 32;
}

/// Which edges are followed, and how far.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    /// The most edges to a node; at most [`Walk::DEEPEST`].
    pub depth: u32,
    /// The most nodes to return, including the start nodes. Which of the farthest are left out
    /// depends on the engine, but is the same each time.
    pub count: u32,
    /// The kinds of edges to follow; all if this is empty.
    pub kinds: &'a [EdgeKind],
    /// The direction.
    pub direction: Direction,
}

/// The direction in which edges are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From source to target.
    Forward,
    /// From target to source.
    Backward,
    /// In both directions.
    Both,
}

/// A node that a walk reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The node.
    pub id: NodeId,
    /// The number of edges on the shortest way to it.
    pub depth: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_names_of_kinds() {
        for kind in NodeKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
        }
        for kind in EdgeKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
        }
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_known_ones() {
        let error = "nearby".parse::<Scope>().expect_err("it is none");
        assert_eq!(
            error.to_string(),
            "`nearby` is not a scope; there are `nearest`, `anywhere`"
        );
    }

    #[test]
    fn ids_depend_on_every_part_and_are_stable() {
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
        // Ids in existing stores must stay valid.
        assert_eq!(ids[0], "9jzyd50gamfms1mn");
    }
}
