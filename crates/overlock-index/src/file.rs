//! Prepares one file for the store.

use std::fmt::Write;

use overlock_code::{
    MentionKind, Node, NodeKind as CodeKind, Owner, Reading, nodes, with_line_feeds,
};
use overlock_store::{EdgeKind, Mention, NewFile, NewNode, NodeKind, Scope};
use sha2::{Digest, Sha256};

/// The version of the splitting into nodes. It is part of every file's hash, so a new version
/// indexes all files again.
pub const VERSION: u32 = 4;

/// The hash of a file's content and of [`VERSION`].
pub(crate) fn hash(bytes: &[u8]) -> String {
    let mut digest = Sha256::new();
    digest.update(VERSION.to_le_bytes());
    digest.update(bytes);
    let mut hex = String::with_capacity(64);
    for byte in digest.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// A file split into nodes.
#[derive(Debug)]
pub(crate) struct Prepared {
    path: String,
    hash: String,
    imports: Vec<String>,
    nodes: Vec<NewNode>,
    mentions: Vec<Mention>,
    /// Whether all of it could be parsed.
    pub(crate) is_parsed: bool,
}

impl Prepared {
    pub(crate) fn new(path: String, hash: String, text: &str) -> Self {
        let text = &*with_line_feeds(text);
        let reading = Reading::of_file(&path, text);
        let parts = nodes(text, reading);
        let nodes = parts.nodes.iter().enumerate();
        let nodes =
            nodes.map(|(index, node)| new_node(&path, reading, node, parts.text_of(text, index)));
        let mentions = parts.nodes.iter().enumerate().flat_map(|(from, node)| {
            node.mentions
                .iter()
                .map(move |mention| new_mention(from, mention))
        });
        Self {
            nodes: nodes.collect(),
            mentions: mentions.collect(),
            is_parsed: parts.parsed,
            imports: parts.imports,
            path,
            hash,
        }
    }

    pub(crate) fn as_new_file(&self) -> NewFile<'_> {
        NewFile {
            path: &self.path,
            hash: &self.hash,
            imports: &self.imports,
            nodes: &self.nodes,
            mentions: &self.mentions,
        }
    }

    pub(crate) fn node_count(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// The approximate number of bytes to write.
    pub(crate) fn approximate_bytes(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| node.text.len() + 200)
            .sum::<usize>()
            + self.mentions.len() * 40
    }
}

fn new_node(path: &str, reading: Reading, node: &Node, text: String) -> NewNode {
    let line = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    // The text of a file does not contain the file's name.
    let (name, qualified) = match node.kind {
        CodeKind::File => (path.rsplit('/').next().unwrap_or(path), path),
        _ => (node.name.as_str(), node.qualified.as_str()),
    };
    NewNode {
        kind: kind(node),
        name: name.to_owned(),
        qualified: qualified.to_owned(),
        parent: node.parent,
        language: reading.language().rule_name().to_owned(),
        lines: (line(node.first_line), line(node.last_line)),
        span: node.span.start as u64..node.span.end as u64,
        text,
        // Neither value needs escaping in JSON.
        metadata: format!(
            r#"{{"syntax":"{}","detail":"{}"}}"#,
            reading.name(),
            node.detail
        ),
    }
}

fn kind(node: &Node) -> NodeKind {
    match (node.kind, node.detail) {
        (CodeKind::File, _) => NodeKind::File,
        (CodeKind::Type, "interface") => NodeKind::Interface,
        (CodeKind::Type, _) => NodeKind::Type,
        (CodeKind::Method, _) => NodeKind::Method,
        (CodeKind::PropertyGroup, _) => NodeKind::PropertyGroup,
        (CodeKind::Procedure, "function") => NodeKind::Function,
        (CodeKind::Procedure, "trigger") => NodeKind::Trigger,
        (CodeKind::Procedure, _) => NodeKind::Procedure,
        (CodeKind::View, _) => NodeKind::View,
        (CodeKind::Table, _) => NodeKind::Table,
        (CodeKind::Section, _) => NodeKind::Section,
    }
}

fn new_mention(from: usize, mention: &overlock_code::Mention) -> Mention {
    let kind = match mention.kind {
        MentionKind::Calls => EdgeKind::Calls,
        MentionKind::References => EdgeKind::References,
        MentionKind::Inherits => EdgeKind::Inherits,
        MentionKind::Implements => EdgeKind::Implements,
        MentionKind::ReadsTable => EdgeKind::ReadsTable,
        MentionKind::WritesTable => EdgeKind::WritesTable,
    };
    let (name, scope) = match &mention.owner {
        Owner::Named(of) => (format!("{of}.{}", mention.name), Scope::Nearest),
        Owner::Nearest => (mention.name.clone(), Scope::Nearest),
        Owner::Unknown => (mention.name.clone(), Scope::Anywhere),
    };
    Mention {
        from,
        kind,
        name,
        scope,
    }
}
