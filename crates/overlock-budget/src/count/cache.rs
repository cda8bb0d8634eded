//! Caches token counts.
//!
//! A conversation is counted again with every turn, and all but the last message was counted before.
//! Cached texts are compared byte by byte, not only by digest, so no text gets the count of another.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::mem::size_of;
use std::sync::{Mutex, PoisonError};

use super::encoding::words;
use super::{CountTokens, Keep};

/// A counter with a cache of bounded size.
///
/// Entries that were not used for a while are evicted.
///
/// ```
/// use overlock_budget::{Cached, CountTokens, Encoding};
///
/// let counter = Cached::new(Encoding::O200kBase, 1_000_000);
/// let message = "What goes in fits the model's window; what comes out is never cut off. ".repeat(3);
/// assert_eq!(counter.count(&message), Encoding::O200kBase.count(&message));
/// assert_eq!(counter.count(&message), Encoding::O200kBase.count(&message));
/// assert!(counter.held_bytes() > message.len());
/// ```
#[derive(Debug)]
pub struct Cached<C> {
    counter: C,
    most_bytes: usize,
    /// Makes collisions of digests unpredictable for clients.
    key: u64,
    shelf: Mutex<Shelf>,
}

/// Counting a shorter text is as fast as a lookup.
const SHORTEST: usize = 64;
/// The size of an entry without its text, including its slot in the map.
const ENTRY: usize = size_of::<Entry>() + 2 * size_of::<(u64, usize)>();

impl<C: CountTokens> Cached<C> {
    /// A counter with a cache of at most `most_bytes`.
    pub fn new(counter: C, most_bytes: usize) -> Self {
        Self {
            counter,
            most_bytes,
            key: RandomState::new().hash_one(0),
            shelf: Mutex::default(),
        }
    }

    /// The counter for texts that are not cached.
    pub fn counter(&self) -> &C {
        &self.counter
    }

    /// The current size of the cache, never above the bound.
    pub fn held_bytes(&self) -> usize {
        self.with_shelf(|shelf| shelf.held)
    }

    fn with_shelf<R>(&self, act: impl FnOnce(&mut Shelf) -> R) -> R {
        // The shelf is consistent between any two operations, and none of them panics.
        act(&mut self.shelf.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn digest(&self, text: &str) -> u64 {
        // Four lanes, because each multiplication depends on the one before.
        let mut lanes = [self.key; 4];
        let mut take = |block: &[u8; 64]| {
            for (lane, bytes) in lanes.iter_mut().zip(block.as_chunks().0) {
                let [low, high] = words(bytes);
                *lane = folded(*lane ^ low, self.key ^ high);
            }
        };
        let (blocks, rest) = text.as_bytes().as_chunks();
        blocks.iter().for_each(&mut take);
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        take(&last);
        lanes.into_iter().fold(text.len() as u64, |digest, lane| {
            folded(digest.rotate_left(32) ^ lane, MULTIPLIER)
        })
    }
}

impl<C: CountTokens> CountTokens for Cached<C> {
    fn name(&self) -> &str {
        self.counter.name()
    }

    fn is_exact(&self) -> bool {
        self.counter.is_exact()
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
        // Rejecting a text far above the limit is faster than hashing it.
        let is_far_above = text.len() as u64 / SHORTEST as u64 > limit;
        if text.len() < SHORTEST || is_far_above {
            return self.counter.count_up_to(text, limit);
        }
        let digest = self.digest(text);
        match self.with_shelf(|shelf| shelf.find(digest, text)) {
            Some(Known::Count(count)) => return (count <= limit).then_some(count),
            Some(Known::MoreThan(least)) if limit <= least => return None,
            _ => {}
        }
        let count = self.counter.count_up_to(text, limit);
        let known = count.map_or(Known::MoreThan(limit), Known::Count);
        self.with_shelf(|shelf| shelf.put(digest, text, known, self.most_bytes));
        count
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str {
        self.counter.truncate_to(text, tokens, keep)
    }
}

/// An odd number with well distributed bits.
const MULTIPLIER: u64 = 0xD6E8_FEB8_6659_FD93;

/// Mixes two words into one that depends on every bit of both.
#[inline]
fn folded(one: u64, other: u64) -> u64 {
    let (low, high) = one.carrying_mul(other, 0);
    low ^ high
}

/// The result of counting a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It has this many tokens.
    Count(u64),
    /// It has more than this limit.
    MoreThan(u64),
}

/// Cached texts with their counts; a clock hand finds entries to evict.
#[derive(Debug, Default)]
struct Shelf {
    entries: Vec<Entry>,
    /// The index of the entry for a digest. Of two texts with one digest, the later one stays.
    places: HashMap<u64, usize, BuildHasherDefault<Digested>>,
    hand: usize,
    held: usize,
}

#[derive(Debug)]
struct Entry {
    digest: u64,
    text: Box<str>,
    known: Known,
    /// Whether it was used since the hand passed.
    is_used: bool,
}

impl Shelf {
    fn find(&mut self, digest: u64, text: &str) -> Option<Known> {
        let entry = &mut self.entries[*self.places.get(&digest)?];
        if *entry.text != *text {
            return None;
        }
        entry.is_used = true;
        Some(entry.known)
    }

    fn put(&mut self, digest: u64, text: &str, known: Known, most_bytes: usize) {
        let size = text.len() + ENTRY;
        if size > most_bytes {
            return;
        }
        if let Some(place) = self.places.get(&digest) {
            self.remove(*place);
        }
        while self.held + size > most_bytes {
            self.hand %= self.entries.len();
            if std::mem::take(&mut self.entries[self.hand].is_used) {
                self.hand += 1;
            } else {
                self.remove(self.hand);
            }
        }
        self.held += size;
        self.places.insert(digest, self.entries.len());
        self.entries.push(Entry {
            digest,
            text: text.into(),
            known,
            is_used: false,
        });
    }

    /// Removes an entry; the last one moves to its index.
    fn remove(&mut self, place: usize) {
        let taken = self.entries.swap_remove(place);
        self.held -= taken.text.len() + ENTRY;
        self.places.remove(&taken.digest);
        if let Some(moved) = self.entries.get(place) {
            self.places.insert(moved.digest, place);
        }
    }
}

/// Digests are distributed already.
#[derive(Default)]
struct Digested(u64);

impl Hasher for Digested {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Encoding;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts bytes, and how often it is asked to.
    #[derive(Default)]
    struct Counting(AtomicU64);

    impl CountTokens for Counting {
        fn name(&self) -> &'static str {
            "bytes"
        }

        fn is_exact(&self) -> bool {
            true
        }

        fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let count = text.bytes().map(|byte| u64::from(byte % 3)).sum();
            (count <= limit).then_some(count)
        }

        fn truncate_to<'text>(&self, _: &'text str, _: u64, _: Keep) -> &'text str {
            ""
        }
    }

    fn texts() -> impl Strategy<Value = Vec<(String, u64)>> {
        // Few different texts, so that many come again.
        let text = (0..6_usize, 0..4_usize, 0..200_u64);
        vec(text, 1..80).prop_map(|texts| {
            let text = |which: usize, size: usize| format!("message {which} ").repeat(3 + 7 * size);
            texts
                .into_iter()
                .map(|(which, size, limit)| (text(which, size), limit))
                .collect()
        })
    }

    proptest! {
        #[test]
        fn counts_the_same_and_stays_within_its_bound(texts in texts(), bound in 0..3000_usize) {
            let cached = Cached::new(Encoding::O200kBase, bound);
            for (text, limit) in texts {
                prop_assert_eq!(cached.count(&text), Encoding::O200kBase.count(&text));
                prop_assert_eq!(
                    cached.count_up_to(&text, limit),
                    Encoding::O200kBase.count_up_to(&text, limit)
                );
                prop_assert!(cached.held_bytes() <= bound);
                let held = cached.with_shelf(|shelf| {
                    shelf.entries.iter().map(|entry| entry.text.len() + ENTRY).sum::<usize>()
                });
                prop_assert_eq!(cached.held_bytes(), held);
            }
        }

        #[test]
        fn texts_with_one_digest_keep_their_own_counts(texts in texts()) {
            let mut shelf = Shelf::default();
            for (text, _) in texts {
                let known = Known::Count(text.len() as u64);
                if let Some(found) = shelf.find(7, &text) {
                    prop_assert_eq!(found, known);
                }
                shelf.put(7, &text, known, 100_000);
                prop_assert_eq!(shelf.find(7, &text), Some(known));
                prop_assert_eq!(shelf.entries.len(), 1);
            }
        }
    }

    #[test]
    fn counts_a_text_once_while_it_is_held() {
        let cached = Cached::new(Counting::default(), 100_000);
        let messages: Vec<String> = (0..50).map(|number| format!("{number:0>200}")).collect();
        for _ in 0..5 {
            for message in &messages {
                cached.count(message);
            }
        }
        assert_eq!(cached.counter().0.load(Ordering::Relaxed), 50);
    }

    #[test]
    fn a_text_above_the_limit_is_counted_again_only_for_a_larger_one() {
        let cached = Cached::new(Counting::default(), 100_000);
        let text = "a".repeat(200);
        for limit in [90, 90, 50, 100, 99, 100, 1000, 1000] {
            let count = 200 * u64::from(b'a' % 3);
            assert_eq!(
                cached.count_up_to(&text, limit),
                (count <= limit).then_some(count)
            );
        }
        assert_eq!(cached.counter().0.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn evicts_unused_texts_first() {
        let cached = Cached::new(Counting::default(), 20 * (200 + ENTRY));
        let often = "often".repeat(40);
        cached.count(&often);
        for number in 0..500 {
            cached.count(&format!("{number:0>200}"));
            cached.count(&often);
        }
        assert_eq!(cached.counter().0.load(Ordering::Relaxed), 501);
    }
}
