//! Finds the nearest vectors in SQLite, without an extension.
//!
//! Every vector has a code: the signs of its components after a fixed rotation. The Hamming distance
//! of two codes estimates the angle between their vectors with a known error. The codes are in memory.
//! The vectors, which are up to 32 times as large, stay on the disk and are read in the order of their codes,
//! until no other one can be nearer than those found.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::f32::consts::PI;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Transaction, params};

use super::nodes;
use super::search::IndexFilter;
use crate::error::StoreError;
use crate::nodes::{NodeId, Vector};
use crate::store::signed;
use crate::vectors::unit;

/// The error of a code that is allowed for, in standard deviations: about one code in a thousand has
/// a larger one.
const DEVIATIONS: f32 = 3.0;

/// The fewest bits of a code. Short vectors need more than one bit for each component.
const FEWEST_BITS: usize = 256;

/// The cached codes of each model that was searched.
#[derive(Default)]
pub(super) struct Codes {
    models: Mutex<HashMap<i64, Arc<Coded>>>,
}

impl std::fmt::Debug for Codes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Codes").finish_non_exhaustive()
    }
}

/// The codes of a model.
struct Coded {
    /// The change counter of the model when the codes were read.
    changes: i64,
    /// The node of each code.
    nodes: Vec<CodedNode>,
    /// The codes, one after the other.
    words: Vec<u64>,
}

/// The properties of a node that filters need.
struct CodedNode {
    key: i64,
    file: i64,
    language: i64,
}

/// An embedding model with vectors.
struct CodedModel {
    key: i64,
    numbers: usize,
    changes: i64,
}

fn model(transaction: &Transaction<'_>, name: &str) -> Result<Option<CodedModel>, StoreError> {
    let mut select =
        transaction.prepare_cached("SELECT key, numbers, changes FROM models WHERE name = ?1")?;
    let found = select.query_row([name], |row| {
        Ok(CodedModel {
            key: row.get(0)?,
            numbers: row.get::<_, u32>(1)? as usize,
            changes: row.get(2)?,
        })
    });
    Ok(found.optional()?)
}

/// Nodes without a vector.
pub(super) fn without(
    transaction: &Transaction<'_>,
    repository: &str,
    model: &str,
    after: Option<&NodeId>,
    limit: u32,
) -> Result<Vec<(NodeId, String)>, StoreError> {
    let Some(repository) = nodes::repository(transaction, repository)? else {
        return Ok(Vec::new());
    };
    let model = self::model(transaction, model)?.map(|model| model.key);
    let mut select = transaction.prepare_cached(
        "SELECT nodes.id, nodes.text FROM nodes JOIN files ON files.key = nodes.file \
         WHERE nodes.key > coalesce((SELECT key FROM nodes WHERE id = ?3), 0) \
         AND files.repository = ?1 \
         AND NOT EXISTS (SELECT 1 FROM codes WHERE model = ?2 AND node = nodes.key) \
         ORDER BY nodes.key LIMIT ?4",
    )?;
    let after = after.map(NodeId::as_str);
    let nodes = select.query_map(params![repository, model, after, limit], |row| {
        Ok((NodeId::from(row.get::<_, String>(0)?), row.get(1)?))
    })?;
    Ok(nodes.collect::<Result<_, _>>()?)
}

/// Stores vectors.
pub(super) fn put(
    transaction: &Transaction<'_>,
    name: &str,
    vectors: &[(NodeId, &[f32])],
) -> Result<(), StoreError> {
    let Some((_, first)) = vectors.first() else {
        return Ok(());
    };
    transaction
        .prepare_cached(
            "INSERT INTO models (name, numbers, changes) VALUES (?1, ?2, 1) \
             ON CONFLICT (name) DO UPDATE SET changes = changes + 1",
        )?
        .execute(params![name, signed(first.len() as u64)])?;
    let Some(model) = model(transaction, name)? else {
        return Ok(());
    };
    let mut select = transaction.prepare_cached("SELECT key FROM nodes WHERE id = ?1")?;
    for (id, vector) in vectors {
        let unit = unit(name, model.numbers, vector)?;
        let node: Option<i64> = select
            .query_row([id.as_str()], |row| row.get(0))
            .optional()?;
        let Some(node) = node else {
            continue;
        };
        let code: Vec<u8> = code(&unit).into_iter().flat_map(u64::to_le_bytes).collect();
        let bytes: Vec<u8> = unit.into_iter().flat_map(f32::to_le_bytes).collect();
        transaction
            .prepare_cached("INSERT OR REPLACE INTO codes (model, node, code) VALUES (?1, ?2, ?3)")?
            .execute(params![model.key, node, code])?;
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO vectors (model, node, vector) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![model.key, node, bytes])?;
    }
    Ok(())
}

/// Removes the vector of a node. Returns whether there was one.
pub(super) fn remove(
    transaction: &Transaction<'_>,
    model: i64,
    node: i64,
) -> Result<bool, StoreError> {
    let removed = transaction
        .prepare_cached("DELETE FROM codes WHERE model = ?1 AND node = ?2")?
        .execute([model, node])?;
    if removed > 0 {
        transaction
            .prepare_cached("DELETE FROM vectors WHERE model = ?1 AND node = ?2")?
            .execute([model, node])?;
    }
    Ok(removed > 0)
}

/// The nodes with the nearest vectors and their cosine similarity, the nearest first.
pub(super) fn nearest(
    transaction: &Transaction<'_>,
    codes: &Codes,
    vector: Vector<'_>,
    filter: &IndexFilter<'_>,
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let Some(model) = model(transaction, vector.model)? else {
        return Ok(Vec::new());
    };
    let unit = unit(vector.model, model.numbers, vector.numbers)?;
    let loaded = codes.get(transaction, &model)?;
    let mut select =
        transaction.prepare_cached("SELECT vector FROM vectors WHERE model = ?1 AND node = ?2")?;
    let mut best: BinaryHeap<Near> = BinaryHeap::new();
    let files = filter.files(transaction)?;
    let language = filter.language();
    let matches = |node: &CodedNode| {
        language.is_none_or(|language| language == node.language)
            && files
                .as_ref()
                .is_none_or(|files| files.contains(&node.file))
    };
    for (bound, node) in loaded.by_bound(&code(&unit), matches) {
        let is_full = best.len() >= limit;
        if is_full && best.peek().is_none_or(|farthest| bound < farthest.cosine) {
            break;
        }
        let cosine =
            select.query_row([model.key, node], |row| Ok(cosine(&unit, row.get_ref(0)?)))?;
        best.push(Near { cosine, node });
        if is_full {
            best.pop();
        }
    }
    let best = best.into_sorted_vec().into_iter();
    Ok(best
        .map(|near| (near.node, f64::from(near.cosine)))
        .collect())
}

/// A node whose vector was read. The farthest is the greatest, so that it is on top of the heap.
struct Near {
    cosine: f32,
    node: i64,
}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> Ordering {
        let nearer = other.cosine.total_cmp(&self.cosine);
        nearer.then(self.node.cmp(&other.node))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Near {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Near {}

impl Codes {
    /// The current codes of a model.
    fn get(
        &self,
        transaction: &Transaction<'_>,
        model: &CodedModel,
    ) -> Result<Arc<Coded>, StoreError> {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = models.get(&model.key)
            && known.changes == model.changes
        {
            return Ok(Arc::clone(known));
        }
        let coded = Arc::new(Coded::read(transaction, model)?);
        models.insert(model.key, Arc::clone(&coded));
        Ok(coded)
    }
}

impl Coded {
    fn read(transaction: &Transaction<'_>, model: &CodedModel) -> Result<Self, StoreError> {
        let mut coded = Self {
            changes: model.changes,
            nodes: Vec::new(),
            words: Vec::new(),
        };
        let mut select = transaction.prepare_cached(
            "SELECT codes.node, codes.code, nodes.file, nodes.language \
             FROM codes JOIN nodes ON nodes.key = codes.node WHERE codes.model = ?1",
        )?;
        let mut rows = select.query([model.key])?;
        while let Some(row) = rows.next()? {
            let code = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            let words = code.chunks_exact(8);
            if words.len() != bits(model.numbers) / 64 {
                return Err(StoreError::Database(
                    "the code of a vector has a wrong length".into(),
                ));
            }
            let words = words.map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes));
            coded.words.extend(words);
            let language = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
            coded.nodes.push(CodedNode {
                key: row.get(0)?,
                file: row.get(2)?,
                language: super::search::hash(language),
            });
        }
        Ok(coded)
    }

    /// The nodes by the upper bound of their cosine similarity, the highest first, with that bound.
    fn by_bound(
        &self,
        code: &[u64],
        matches: impl Fn(&CodedNode) -> bool,
    ) -> impl Iterator<Item = (f32, i64)> {
        let bits = code.len() * 64;
        let mut by_difference: Vec<Vec<i64>> = vec![Vec::new(); bits + 1];
        for (node, words) in self.nodes.iter().zip(self.words.chunks_exact(code.len())) {
            if matches(node) {
                by_difference[difference(code, words)].push(node.key);
            }
        }
        let bounds = (0..=bits).map(move |difference| bound(difference, bits));
        let nodes = bounds.zip(by_difference);
        nodes.flat_map(|(bound, nodes)| nodes.into_iter().map(move |node| (bound, node)))
    }
}

fn difference(one: &[u64], other: &[u64]) -> usize {
    let bits = one
        .iter()
        .zip(other)
        .map(|(one, other)| (one ^ other).count_ones());
    bits.sum::<u32>() as usize
}

/// The upper bound of the cosine similarity of two vectors whose codes differ in `difference` bits.
#[expect(
    clippy::cast_precision_loss,
    reason = "there are about as many bits as components of a vector"
)]
fn bound(difference: usize, bits: usize) -> f32 {
    let share = difference as f32 / bits as f32;
    let deviation = (share * (1.0 - share) / bits as f32).sqrt();
    let angle = PI * (share - DEVIATIONS * deviation).max(0.0);
    // Allows for rounding.
    angle.cos() + 1e-5
}

/// The cosine similarity to a stored vector.
fn cosine(unit: &[f32], bytes: ValueRef<'_>) -> f32 {
    let bytes = bytes.as_blob().unwrap_or_default();
    // Several sums, so that the compiler can use vector instructions.
    let mut sums = [0.0_f32; 16];
    for (ones, others) in unit.chunks(16).zip(bytes.chunks(64)) {
        let others = others
            .chunks_exact(4)
            .map(|bytes| bytes.try_into().map_or(0.0, f32::from_le_bytes));
        for ((sum, one), other) in sums.iter_mut().zip(ones).zip(others) {
            *sum += one * other;
        }
    }
    sums.iter().sum()
}

/// The number of bits of the codes of vectors with this many components.
fn bits(numbers: usize) -> usize {
    numbers.next_power_of_two().max(FEWEST_BITS)
}

/// The code of a vector: the signs of its components after a fixed pseudorandom rotation, which
/// spreads what all vectors of a model have in common over all bits.
fn code(unit: &[f32]) -> Vec<u64> {
    let mut numbers = unit.to_vec();
    numbers.resize(bits(unit.len()), 0.0);
    let mut seed = 0_u64;
    for _ in 0..3 {
        for number in &mut numbers {
            if next_random(&mut seed) & 1 == 1 {
                *number = -*number;
            }
        }
        walsh_hadamard(&mut numbers);
    }
    let words = numbers.chunks_exact(64).map(|numbers| {
        let bits = numbers.iter().enumerate();
        bits.fold(0, |word, (place, number)| {
            word | u64::from(*number >= 0.0) << place
        })
    });
    words.collect()
}

/// The next pseudorandom number (`SplitMix64`).
fn next_random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The Walsh–Hadamard transform, which keeps angles and scales all lengths alike.
fn walsh_hadamard(numbers: &mut [f32]) {
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (first, second) = pair.split_at_mut(half);
            for (one, other) in first.iter_mut().zip(second) {
                (*one, *other) = (*one + *other, *one - *other);
            }
        }
        half *= 2;
    }
}
