//! Stores embedding vectors of nodes.
//!
//! The caller passes in the function that computes them. Every batch is stored at once, so a failed
//! batch does not undo the ones before it.

use std::error::Error;

use overlock_store::{Store, StoreError};

/// How many vectors were stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// How many nodes got a vector.
    pub vectors: u64,
    /// How many of their texts were truncated first.
    pub shortened: u64,
    /// Whether the caller stopped it early.
    pub is_stopped: bool,
}

/// Why vectors could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError<E: Error + 'static> {
    /// The embedding function failed.
    #[error(transparent)]
    Embed(E),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How many texts are embedded at once.
const BATCH: u32 = 64;

/// How many bytes of a text are embedded: models take about 8,000 tokens, and code has at least two
/// bytes per token.
const MAX_TEXT_BYTES: usize = 16_000;

/// Stores a vector for every node of a repository that has none of this model. `advanced` gets the
/// number of vectors after every batch and returns whether to continue.
pub fn fill_vectors<E: Error>(
    store: &dyn Store,
    repository: &str,
    model: &str,
    mut embed: impl FnMut(&[&str]) -> Result<Vec<Vec<f32>>, E>,
    mut advanced: impl FnMut(u64) -> bool,
) -> Result<Filled, VectorsError<E>> {
    let mut filled = Filled::default();
    let mut after = None;
    loop {
        let nodes = store.without_vector(repository, model, after.as_ref(), BATCH)?;
        let Some((last, _)) = nodes.last() else {
            return Ok(filled);
        };
        after = Some(last.clone());
        // Blank texts get no vector.
        let texts: Vec<_> = nodes
            .iter()
            .filter(|(_, text)| !text.trim().is_empty())
            .collect();
        let shortened: Vec<&str> = texts
            .iter()
            .map(|(_, text)| &text[..text.floor_char_boundary(MAX_TEXT_BYTES)])
            .collect();
        if !texts.is_empty() {
            let vectors = embed(&shortened).map_err(VectorsError::Embed)?;
            let named: Vec<_> = texts
                .iter()
                .zip(&vectors)
                .map(|((id, _), vector)| (id.clone(), vector.as_slice()))
                .collect();
            store.put_vectors(model, &named)?;
            filled.vectors += named.len() as u64;
            filled.shortened += texts
                .iter()
                .filter(|(_, text)| text.len() > MAX_TEXT_BYTES)
                .count() as u64;
        }
        if !advanced(filled.vectors) {
            filled.is_stopped = true;
            return Ok(filled);
        }
    }
}
