//! Short definitions of files, and reproducible random numbers.

use overlock_store::{
    Edge, EdgeKind, Mention, NewFile, NewNode, Node, NodeId, NodeKind, Scope, Store,
};

/// A file with its nodes and mentions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sketch {
    pub(crate) path: String,
    pub(crate) hash: String,
    pub(crate) imports: Vec<String>,
    pub(crate) nodes: Vec<NewNode>,
    pub(crate) mentions: Vec<Mention>,
}

impl Sketch {
    pub(crate) fn new(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            hash: "1".to_owned(),
            ..Self::default()
        }
    }

    /// Adds a node.
    pub(crate) fn node(mut self, kind: NodeKind, qualified: &str, text: &str) -> Self {
        let name = qualified.rsplit('.').next().unwrap_or_default();
        let is_sql = self.path.rsplit('.').next() == Some("sql");
        self.nodes.push(NewNode {
            kind,
            name: name.to_owned(),
            qualified: qualified.to_owned(),
            parent: None,
            language: if is_sql { "sql" } else { "csharp" }.to_owned(),
            lines: (1, 2),
            span: 0..text.len() as u64,
            text: text.to_owned(),
            metadata: "{}".to_owned(),
        });
        self
    }

    /// Makes an earlier node the parent of the last one.
    pub(crate) fn inside(mut self, parent: usize) -> Self {
        self.nodes.last_mut().expect("a node").parent = Some(parent);
        self
    }

    /// Adds a mention to the last node.
    pub(crate) fn mentions(mut self, kind: EdgeKind, name: &str) -> Self {
        self.mentions.push(Mention {
            from: self.nodes.len() - 1,
            kind,
            name: name.to_owned(),
            scope: Scope::Nearest,
        });
        self
    }

    pub(crate) fn file(&self) -> NewFile<'_> {
        NewFile {
            path: &self.path,
            hash: &self.hash,
            imports: &self.imports,
            nodes: &self.nodes,
            mentions: &self.mentions,
        }
    }

    pub(crate) fn ids(&self) -> Vec<NodeId> {
        self.file().ids("shop")
    }
}

/// Stores files in the repository `shop` and resolves their mentions.
pub(crate) fn put(store: &dyn Store, sketches: &[Sketch]) {
    let files: Vec<NewFile<'_>> = sketches.iter().map(Sketch::file).collect();
    store.put_files("shop", &files).expect("stored files");
    store.resolve("shop").expect("edges");
}

/// A node that must exist.
#[track_caller]
pub(crate) fn node(store: &dyn Store, id: &NodeId) -> Node {
    let mut nodes = store.nodes(std::slice::from_ref(id)).expect("an answer");
    nodes.pop().expect("a recorded value")
}

/// The edges between these nodes as text.
pub(crate) fn edges(store: &dyn Store, among: &[NodeId]) -> Vec<String> {
    let edges = store.edges(among).expect("edges");
    let mut edges: Vec<String> = edges.iter().map(|edge| shown(store, edge)).collect();
    edges.sort();
    edges
}

fn shown(store: &dyn Store, edge: &Edge) -> String {
    let [from, to] = [&edge.from, &edge.to].map(|id| node(store, id).qualified);
    format!("{from} {} {to}", edge.kind)
}

/// A name that is longer than a page of a database, also when it is compressed.
pub(crate) fn long_name(seed: u64) -> String {
    let mut random = Random(seed);
    let numbers: Vec<String> = (0..5_000).map(|_| random.next().to_string()).collect();
    numbers.concat()
}

/// Pseudorandom numbers (`SplitMix64`).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("a number below the limit")
    }

    /// An approximately normally distributed number: the sum of twelve uniform ones.
    pub(crate) fn normal(&mut self) -> f32 {
        let sum: f32 = (0..12)
            .map(|_| f32::from(u16::try_from(self.next() >> 48).expect("16 bits")) / 65536.0)
            .sum();
        sum - 6.0
    }
}
