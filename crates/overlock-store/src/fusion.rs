//! Merges the results of keyword search and vector search.

use std::collections::{HashMap, HashSet};

use crate::error::StoreError;
use crate::nodes::{Query, Search, Vector};

/// How many results of each search are merged, at least.
const FUSED: usize = 60;

/// The constant `k` of reciprocal rank fusion.
const DAMPING: f64 = 60.0;

/// A result of one search or of both.
pub(crate) struct RankedNode {
    /// Its key in the engine.
    pub(crate) node: i64,
    pub(crate) score: f64,
    pub(crate) keyword: Option<u32>,
    pub(crate) semantic: Option<u32>,
}

/// Nodes in tiers, each node once: all nodes of a tier come before those of the next one.
pub(crate) struct Tiers {
    /// The keys of the nodes with their scores, the best first.
    pub(crate) nodes: Vec<(i64, f64)>,
    known: HashSet<i64>,
    limit: usize,
    base: f64,
}

impl Tiers {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            nodes: Vec::new(),
            known: HashSet::new(),
            limit,
            base: 4.0,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.nodes.len() >= self.limit
    }

    /// Adds a tier of the nodes that match and are not known yet. Scores are scaled to less than 1
    /// above the base of the tier, so that the list is sorted by its scores.
    pub(crate) fn add(
        &mut self,
        nodes: Vec<(i64, f64)>,
        matches: impl Fn(i64) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        for (node, score) in nodes {
            if self.is_full() {
                break;
            }
            if self.known.insert(node) && matches(node)? {
                self.nodes.push((node, self.base + score / (1.0 + score)));
            }
        }
        self.base -= 1.0;
        Ok(())
    }
}

/// The keys of nodes with the scores of one search, the best first.
type Scored = Result<Vec<(i64, f64)>, StoreError>;

/// The best nodes for a query. Each search is called with the number of results to return.
pub(crate) fn ranked(
    query: &Query<'_>,
    by_words: impl FnOnce(&str, usize) -> Scored,
    by_vectors: impl FnOnce(Vector<'_>, usize) -> Scored,
) -> Result<Vec<RankedNode>, StoreError> {
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let mut found = match query.search {
        Search::Keyword(text) => fused(&by_words(text, limit)?, &[], |_, score| score),
        Search::Semantic(vector) => fused(&[], &by_vectors(vector, limit)?, |_, score| score),
        Search::Hybrid(text, vector) => {
            let count = limit.max(FUSED);
            fused(
                &by_words(text, count)?,
                &by_vectors(vector, count)?,
                |rank, _| 1.0 / (DAMPING + f64::from(rank)),
            )
        }
    };
    found.truncate(limit);
    Ok(found)
}

/// Merges two lists by the sum of `worth` of each rank and score.
fn fused(
    by_words: &[(i64, f64)],
    by_vectors: &[(i64, f64)],
    worth: impl Fn(u32, f64) -> f64,
) -> Vec<RankedNode> {
    let mut indexes: HashMap<i64, usize> = HashMap::new();
    let mut found: Vec<RankedNode> = Vec::new();
    for (is_by_words, list) in [(true, by_words), (false, by_vectors)] {
        for (rank, (node, score)) in (1..).zip(list) {
            let index = *indexes.entry(*node).or_insert(found.len());
            if index == found.len() {
                found.push(RankedNode {
                    node: *node,
                    score: 0.0,
                    keyword: None,
                    semantic: None,
                });
            }
            let found = &mut found[index];
            found.score += worth(rank, *score);
            let list = if is_by_words {
                &mut found.keyword
            } else {
                &mut found.semantic
            };
            *list = Some(rank);
        }
    }
    // The sort is stable, so equal scores keep their order.
    found.sort_by(|one, other| other.score.total_cmp(&one.score));
    found
}
