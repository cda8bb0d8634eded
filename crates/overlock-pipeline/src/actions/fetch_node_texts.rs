//! `fetch_node_texts`: loads the texts of nodes within a budget.

use std::collections::HashSet;

use overlock_store::NodeId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{ActionError, Next, Perform, Target, Work, exclusive};
use crate::file::Findings;
use overlock_runs::NodeText;

/// Loads the texts of the search results and of related nodes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct FetchNodeTexts {
    /// The maximum tokens of all texts together (default: 70 % of `max_context_tokens`).
    #[schemars(range(min = 1))]
    pub budget_tokens: Option<u64>,
    /// The maximum characters, instead of tokens.
    #[schemars(range(min = 1))]
    pub max_chars: Option<u64>,
    /// Which texts come first.
    #[serde(default)]
    pub prioritization: Prioritization,
}

/// Which texts come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Prioritization {
    /// The search results, then related nodes.
    #[default]
    SeedFirst,
    /// Related nodes, then the search results.
    GraphFirst,
    /// Search results and related nodes in turn.
    Balanced,
}

impl FetchNodeTexts {
    /// The budget in tokens, if it is not in characters.
    pub(crate) fn tokens(&self, max_context_tokens: Option<u64>) -> Option<u64> {
        match (self.budget_tokens, self.max_chars) {
            (Some(tokens), _) => Some(tokens),
            (None, Some(_)) => None,
            // Divides first, to avoid overflow.
            (None, None) => max_context_tokens.map(|max| max / 10 * 7 + max % 10 * 7 / 10),
        }
    }
}

impl Perform for FetchNodeTexts {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    fn check(&self, findings: &mut Findings<'_>) {
        if self.budget_tokens.is_some() && self.max_chars.is_some() {
            exclusive(findings, "budget_tokens", "max_chars");
        }
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let ids = order(
            self.prioritization,
            work.state.search_hits.iter().map(|hit| hit.id.as_str()),
            work.state.graph_nodes.iter().map(|node| node.id.as_str()),
        );
        let nodes = work.world.store.nodes(&ids)?;
        let tokens = self.tokens(work.settings.max_context_tokens);
        let limit = tokens.or(self.max_chars).unwrap_or(u64::MAX);
        let mut spent = 0_u64;
        let mut skipped = Vec::new();
        let mut texts = Vec::new();
        for node in nodes {
            let left = limit - spent;
            let size = match tokens {
                Some(_) => work.world.counter.count_up_to(&node.text, left),
                None => Some(node.text.chars().count() as u64).filter(|chars| *chars <= left),
            };
            let Some(size) = size else {
                skipped.push(json!({ "id": node.id, "path": node.path }));
                continue;
            };
            spent += size;
            texts.push(NodeText {
                id: Some(node.id.as_str().to_owned()),
                path: Some(node.path),
                text: node.text,
                ..NodeText::default()
            });
        }
        let unit = if tokens.is_some() { "tokens" } else { "chars" };
        work.note("unit", unit);
        work.note("budget", limit);
        work.note("used", spent);
        work.note("texts", texts.len());
        work.note("skipped", skipped);
        work.state.node_texts = texts;
        Ok(Next::Onward)
    }
}

/// The ids in order, without duplicates.
fn order<'a>(
    prioritization: Prioritization,
    seeds: impl Iterator<Item = &'a str>,
    graph: impl Iterator<Item = &'a str>,
) -> Vec<NodeId> {
    let seeds: Vec<&str> = seeds.collect();
    let known: HashSet<&str> = seeds.iter().copied().collect();
    // A walk includes the nodes it starts from.
    let graph: Vec<&str> = graph.filter(|id| !known.contains(id)).collect();
    let all: Vec<&str> = match prioritization {
        Prioritization::SeedFirst => seeds.into_iter().chain(graph).collect(),
        Prioritization::GraphFirst => graph.into_iter().chain(seeds).collect(),
        Prioritization::Balanced => {
            let turns = seeds.len().max(graph.len());
            let turns = 0..turns;
            turns
                .flat_map(|turn| [seeds.get(turn), graph.get(turn)])
                .flatten()
                .copied()
                .collect()
        }
    };
    let mut seen = HashSet::new();
    let all = all.into_iter().filter(|id| seen.insert(*id));
    all.map(NodeId::from).collect()
}
