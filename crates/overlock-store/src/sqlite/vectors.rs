//! Finds the nearest vectors in SQLite, without an extension.
//!
//! Of every vector there is a code: one bit for each number of it, after it was turned. How many
//! bits of two codes differ tells the angle between their vectors, within an error that is known.
//! The codes are in memory. The vectors, which are a hundred times as large, are on the disk, and
//! are read in the order of their codes, until no other can be nearer than those found.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::f32::consts::PI;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Transaction, params};

use super::search::Place;
use super::{nodes, signed};
use crate::error::StoreError;
use crate::nodes::{NodeId, Vector};
use crate::vectors::unit;

/// How far a code may be off: in one case of a thousand it is more than this many times the
/// deviation that is expected.
const DEVIATIONS: f32 = 3.0;

/// The fewest bits of a code. Short vectors need more than one bit for each number.
const FEWEST_BITS: usize = 256;

/// The codes of each model that was searched, as long as they are true.
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
    /// How often its vectors had changed when this was read.
    changes: i64,
    /// What each code is of.
    nodes: Vec<Known>,
    /// The codes, one after the other.
    words: Vec<u64>,
}

/// What is known of a node without looking at it.
struct Known {
    key: i64,
    file: i64,
    language: i64,
}

/// A model whose vectors are kept.
struct Model {
    key: i64,
    numbers: usize,
    changes: i64,
}

fn model(transaction: &Transaction<'_>, name: &str) -> Result<Option<Model>, StoreError> {
    let mut select =
        transaction.prepare_cached("SELECT key, numbers, changes FROM models WHERE name = ?1")?;
    let found = select.query_row([name], |row| {
        Ok(Model {
            key: row.get(0)?,
            numbers: row.get::<_, u32>(1)? as usize,
            changes: row.get(2)?,
        })
    });
    Ok(found.optional()?)
}

/// Nodes that have no vector.
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

/// Keeps vectors.
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

/// Removes the vector of a node, and says whether there was one.
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

/// The nodes with the nearest vectors, the nearest first, with the cosines of their angles.
pub(super) fn nearest(
    transaction: &Transaction<'_>,
    codes: &Codes,
    vector: Vector<'_>,
    place: &Place<'_>,
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let Some(model) = model(transaction, vector.model)? else {
        return Ok(Vec::new());
    };
    let unit = unit(vector.model, model.numbers, vector.numbers)?;
    let known = codes.of(transaction, &model)?;
    let mut select =
        transaction.prepare_cached("SELECT vector FROM vectors WHERE model = ?1 AND node = ?2")?;
    let mut best: BinaryHeap<Near> = BinaryHeap::new();
    let files = place.files(transaction)?;
    let language = place.language();
    let is_wanted = |known: &Known| {
        language.is_none_or(|wanted| wanted == known.language)
            && files
                .as_ref()
                .is_none_or(|files| files.contains(&known.file))
    };
    for (bound, node) in known.by_bound(&code(&unit), is_wanted) {
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

/// A node whose vector was read. The farthest is the greatest, so that it is the one at hand.
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
    /// The codes of a model as they are now.
    fn of(&self, transaction: &Transaction<'_>, model: &Model) -> Result<Arc<Coded>, StoreError> {
        // What is in it is replaced as a whole.
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
    fn read(transaction: &Transaction<'_>, model: &Model) -> Result<Self, StoreError> {
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
                    "the code of a vector is too short or too long".into(),
                ));
            }
            let words = words.map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes));
            coded.words.extend(words);
            let language = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
            coded.nodes.push(Known {
                key: row.get(0)?,
                file: row.get(2)?,
                language: super::search::number(language),
            });
        }
        Ok(coded)
    }

    /// The nodes in the order of how near their vectors can be at most, with that.
    fn by_bound(
        &self,
        code: &[u64],
        is_wanted: impl Fn(&Known) -> bool,
    ) -> impl Iterator<Item = (f32, i64)> {
        let bits = code.len() * 64;
        let mut by_difference: Vec<Vec<i64>> = vec![Vec::new(); bits + 1];
        for (known, words) in self.nodes.iter().zip(self.words.chunks_exact(code.len())) {
            if is_wanted(known) {
                by_difference[difference(code, words)].push(known.key);
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

/// The greatest cosine of the angle between two vectors whose codes differ in so many bits.
#[expect(
    clippy::cast_precision_loss,
    reason = "there are as many bits as numbers in a vector"
)]
fn bound(difference: usize, bits: usize) -> f32 {
    let share = difference as f32 / bits as f32;
    let deviation = (share * (1.0 - share) / bits as f32).sqrt();
    let angle = PI * (share - DEVIATIONS * deviation).max(0.0);
    // Rounding must not make anything nearer than itself.
    angle.cos() + 1e-5
}

/// The cosine of the angle to a vector on the disk.
fn cosine(unit: &[f32], bytes: ValueRef<'_>) -> f32 {
    let bytes = bytes.as_blob().unwrap_or_default();
    // Several sums at once, which the processor can work on side by side.
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

/// How many bits there are for vectors of so many numbers.
fn bits(numbers: usize) -> usize {
    numbers.next_power_of_two().max(FEWEST_BITS)
}

/// The signs of the numbers of a vector, after it has been turned in a way that is always the same:
/// what all vectors of a model have in common is spread over all bits.
fn code(unit: &[f32]) -> Vec<u64> {
    let mut numbers = unit.to_vec();
    numbers.resize(bits(unit.len()), 0.0);
    let mut seed = 0_u64;
    for _ in 0..3 {
        for number in &mut numbers {
            if mixed(&mut seed) & 1 == 1 {
                *number = -*number;
            }
        }
        spread(&mut numbers);
    }
    let words = numbers.chunks_exact(64).map(|numbers| {
        let bits = numbers.iter().enumerate();
        bits.fold(0, |word, (place, number)| {
            word | u64::from(*number >= 0.0) << place
        })
    });
    words.collect()
}

/// The next of a series of numbers that look as if by chance (`SplitMix64`).
fn mixed(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Makes every number a sum of all, with one sign or the other (the transformation of Walsh and
/// Hadamard), which changes lengths alike and angles not at all.
fn spread(numbers: &mut [f32]) {
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
