//! Gives nodes the vectors of an embedding model.
//!
//! Whoever computes them is passed in. Every batch is kept as it comes, so that one that fails
//! leaves the others done.

use std::error::Error;

use overlock_store::{Store, StoreError};

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// How many nodes have a vector now that had none.
    pub vectors: u64,
    /// Of how many of them only the beginning was looked at.
    pub shortened: u64,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
}

/// Why not all nodes have vectors.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError<E: Error + 'static> {
    /// Whoever computes them failed.
    #[error(transparent)]
    Embed(E),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// As many texts as are embedded at once.
const BATCH: u32 = 64;

/// As much of a text as is embedded: models take some eight thousand tokens, and code has two bytes
/// for a token at worst.
const LONGEST: usize = 16_000;

/// Gives every node of a repository a vector that has none of this model. `advanced` is told after
/// every batch how many there are, and says whether to go on.
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
        // There is nothing to say of a text without a word in it.
        let texts: Vec<_> = nodes
            .iter()
            .filter(|(_, text)| !text.trim().is_empty())
            .collect();
        let shortened: Vec<&str> = texts
            .iter()
            .map(|(_, text)| &text[..text.floor_char_boundary(LONGEST)])
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
                .filter(|(_, text)| text.len() > LONGEST)
                .count() as u64;
        }
        if !advanced(filled.vectors) {
            filled.is_stopped = true;
            return Ok(filled);
        }
    }
}
