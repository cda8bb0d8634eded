//! `expand_dependency_tree`: follows dependencies from the search results.

use overlock_store::{Direction, EdgeKind, NodeId, Walk};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ActionError, KeyPath, Next, Perform, Target, Work, exclusive};
use crate::file::Findings;
use overlock_runs::GraphNode;

/// Follows edges from the results of the last search.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ExpandDependencyTree {
    /// The maximum number of edges from a result (default 2).
    #[schemars(range(min = 0, max = 32))]
    pub max_depth: Option<u32>,
    /// The setting with that number.
    pub max_depth_from_settings: Option<String>,
    /// The maximum number of nodes, including the results (default 50).
    #[schemars(range(min = 1, max = 100_000))]
    pub max_nodes: Option<u32>,
    /// The setting with that number.
    pub max_nodes_from_settings: Option<String>,
    /// The kinds of edges to follow; all by default.
    #[schemars(length(min = 1))]
    pub edge_types: Option<Vec<EdgeType>>,
    /// The setting with these kinds.
    pub edge_types_from_settings: Option<String>,
    /// The direction.
    #[serde(default)]
    pub direction: WalkDirection,
}

/// A kind of edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the store")]
pub enum EdgeType {
    Calls,
    References,
    Inherits,
    Implements,
    ReadsTable,
    WritesTable,
    Contains,
}

impl From<EdgeType> for EdgeKind {
    fn from(kind: EdgeType) -> Self {
        match kind {
            EdgeType::Calls => Self::Calls,
            EdgeType::References => Self::References,
            EdgeType::Inherits => Self::Inherits,
            EdgeType::Implements => Self::Implements,
            EdgeType::ReadsTable => Self::ReadsTable,
            EdgeType::WritesTable => Self::WritesTable,
            EdgeType::Contains => Self::Contains,
        }
    }
}

/// The direction in which edges are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WalkDirection {
    /// From a node to what it depends on.
    #[default]
    Forward,
    /// From a node to what depends on it.
    Backward,
    /// In both directions.
    Both,
}

impl Perform for ExpandDependencyTree {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    fn settings(&self) -> Vec<(KeyPath, &str)> {
        let named = [
            ("max_depth_from_settings", &self.max_depth_from_settings),
            ("max_nodes_from_settings", &self.max_nodes_from_settings),
        ];
        let named = named.into_iter();
        named
            .filter_map(|(key, name)| Some((KeyPath::of(key), name.as_deref()?)))
            .collect()
    }

    fn list_settings(&self) -> Vec<(KeyPath, &str)> {
        let named = self.edge_types_from_settings.as_deref();
        named
            .map(|name| (KeyPath::of("edge_types_from_settings"), name))
            .into_iter()
            .collect()
    }

    fn check(&self, findings: &mut Findings<'_>) {
        let pairs = [
            (
                self.max_depth.is_some(),
                "max_depth",
                self.max_depth_from_settings.is_some(),
            ),
            (
                self.max_nodes.is_some(),
                "max_nodes",
                self.max_nodes_from_settings.is_some(),
            ),
            (
                self.edge_types.is_some(),
                "edge_types",
                self.edge_types_from_settings.is_some(),
            ),
        ];
        for (plain, key, named) in pairs {
            if plain && named {
                exclusive(findings, key, &format!("{key}_from_settings"));
            }
        }
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        if work.state.search_hits.is_empty() {
            work.state.graph_nodes.clear();
            work.state.graph_edges.clear();
            work.note("why", "there are no hits to start from");
            return Ok(Next::Onward);
        }
        let settings = work.settings;
        let number = |plain: Option<u32>, name: Option<&String>, default: u32| {
            let named = name.and_then(|name| settings.number(name));
            let named = named.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
            plain.or(named).unwrap_or(default)
        };
        let kinds: Vec<EdgeKind> = match (&self.edge_types, &self.edge_types_from_settings) {
            (Some(kinds), _) => kinds.iter().copied().map(Into::into).collect(),
            (None, Some(name)) => named_kinds(settings.own.get(name)),
            (None, None) => Vec::new(),
        };
        let from: Vec<NodeId> = work
            .state
            .search_hits
            .iter()
            .map(|hit| NodeId::from(hit.id.as_str()))
            .collect();
        let reached = work.world.store.walk(
            &from,
            &Walk {
                depth: number(self.max_depth, self.max_depth_from_settings.as_ref(), 2),
                count: number(self.max_nodes, self.max_nodes_from_settings.as_ref(), 50),
                kinds: &kinds,
                direction: match self.direction {
                    WalkDirection::Forward => Direction::Forward,
                    WalkDirection::Backward => Direction::Backward,
                    WalkDirection::Both => Direction::Both,
                },
            },
        )?;
        let ids: Vec<NodeId> = reached.iter().map(|node| node.id.clone()).collect();
        work.state.graph_edges = work.world.store.edges(&ids)?;
        work.state.graph_nodes = reached
            .into_iter()
            .map(|node| GraphNode {
                id: node.id.as_str().to_owned(),
                depth: node.depth,
            })
            .collect();
        work.note("nodes", work.state.graph_nodes.len());
        work.note("edges", work.state.graph_edges.len());
        Ok(Next::Onward)
    }
}

/// The kinds listed in a setting, which was checked before the run.
fn named_kinds(setting: Option<&serde_json::Value>) -> Vec<EdgeKind> {
    let names = setting.and_then(serde_json::Value::as_array);
    let names = names.into_iter().flatten();
    names
        .filter_map(|name| name.as_str()?.parse().ok())
        .collect()
}
