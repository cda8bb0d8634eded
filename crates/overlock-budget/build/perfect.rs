//! Builds perfect hash tables, in which every key has its own slot.

use std::cmp::Reverse;

use crate::hash;

/// The seeds of the buckets, and the key in each slot.
pub(crate) struct Perfect {
    pub(crate) seeds: Vec<u16>,
    pub(crate) slots: Vec<Option<usize>>,
}

/// Keys to a bucket, on average.
const BUCKET: usize = 4;
/// Slots for every hundred keys: fewer make seeds hard to find.
const SLOTS: usize = 106;

/// Lays out keys, given by their spread values.
pub(crate) fn lay_out(hashes: &[u64]) -> Perfect {
    let mut buckets = vec![Vec::new(); hashes.len() / BUCKET + 1];
    for (key, hash) in hashes.iter().enumerate() {
        let count = buckets.len();
        buckets[hash::bucket(*hash, count)].push(key);
    }
    let mut order: Vec<usize> = (0..buckets.len()).collect();
    order.sort_by_key(|bucket| Reverse(buckets[*bucket].len()));

    let mut slots = vec![None; hashes.len() * SLOTS / 100 + 1];
    let mut seeds = vec![0; buckets.len()];
    let mut places = Vec::new();
    for bucket in order {
        let keys = &buckets[bucket];
        let seed = (0..u16::MAX).find(|seed| {
            places.clear();
            keys.iter().all(|key| {
                let place = hash::slot(hashes[*key], *seed, slots.len());
                let free = slots[place].is_none() && !places.contains(&place);
                places.push(place);
                free
            })
        });
        seeds[bucket] = seed.expect("some seed gives every key of the bucket a free slot");
        for (key, place) in keys.iter().zip(&places) {
            slots[*place] = Some(*key);
        }
    }
    Perfect { seeds, slots }
}
