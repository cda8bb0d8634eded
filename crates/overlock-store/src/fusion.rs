//! One list of what was found by words and what was found by vectors.

use std::collections::HashMap;

use crate::error::StoreError;
use crate::nodes::{Query, Search, Vector};

/// How many of each list come into the common one, at least.
const FUSED: usize = 60;

/// How much less the first places of a list mean (reciprocal rank fusion).
const DAMPING: f64 = 60.0;

/// A node that was found by one list or by both.
pub(crate) struct Found {
    /// Where the engine keeps it.
    pub(crate) node: i64,
    pub(crate) score: f64,
    pub(crate) keyword: Option<u32>,
    pub(crate) semantic: Option<u32>,
}

/// What one way of searching finds, the best first, with scores of its own.
type List = Result<Vec<(i64, f64)>, StoreError>;

/// The nodes that answer a query best, out of so many that each way of searching is asked for.
pub(crate) fn ranked(
    query: &Query<'_>,
    by_words: impl FnOnce(&str, usize) -> List,
    by_vectors: impl FnOnce(Vector<'_>, usize) -> List,
) -> Result<Vec<Found>, StoreError> {
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

/// One list of two, by the sum of what each place and its score are worth.
fn fused(
    by_words: &[(i64, f64)],
    by_vectors: &[(i64, f64)],
    worth: impl Fn(u32, f64) -> f64,
) -> Vec<Found> {
    let mut places: HashMap<i64, usize> = HashMap::new();
    let mut found: Vec<Found> = Vec::new();
    for (is_by_words, list) in [(true, by_words), (false, by_vectors)] {
        for (rank, (node, score)) in (1..).zip(list) {
            let place = *places.entry(*node).or_insert(found.len());
            if place == found.len() {
                found.push(Found {
                    node: *node,
                    score: 0.0,
                    keyword: None,
                    semantic: None,
                });
            }
            let found = &mut found[place];
            found.score += worth(rank, *score);
            let list = if is_by_words {
                &mut found.keyword
            } else {
                &mut found.semantic
            };
            *list = Some(rank);
        }
    }
    // Equals stay in the order they were found in.
    found.sort_by(|one, other| other.score.total_cmp(&one.score));
    found
}
