//! How many tokens was a text, the last time?
//!
//! A conversation is counted again with every turn, and all of it but the last message was counted
//! before. A text is known again by all of its bytes, never by a digest alone, so no text, however
//! it is made, gets the count of another.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::mem::size_of;
use std::sync::{Mutex, PoisonError};

use super::encoding::{mix_two, words};
use super::{CountTokens, Keep};

/// A counter that remembers what it counted, within a bound on the bytes it holds.
///
/// What was not asked for in a while makes room for what is new.
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
    /// Keeps others from choosing texts that displace each other.
    key: u64,
    shelf: Mutex<Shelf>,
}

/// Shorter texts are counted as fast as they are found.
const SHORTEST: usize = 64;
/// What an entry takes beside its text, with its place in the map.
const ENTRY: usize = size_of::<Entry>() + 2 * size_of::<(u64, usize)>();

impl<C: CountTokens> Cached<C> {
    /// A counter that remembers up to so many bytes.
    pub fn new(counter: C, most_bytes: usize) -> Self {
        Self {
            counter,
            most_bytes,
            key: RandomState::new().hash_one(0),
            shelf: Mutex::default(),
        }
    }

    /// The counter that counts what is new.
    pub fn counter(&self) -> &C {
        &self.counter
    }

    /// The bytes held now, never above the bound.
    pub fn held_bytes(&self) -> usize {
        self.with_shelf(|shelf| shelf.held)
    }

    fn with_shelf<R>(&self, act: impl FnOnce(&mut Shelf) -> R) -> R {
        // A shelf is whole between any two of its own operations, and none of them panics.
        act(&mut self.shelf.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn digest(&self, text: &str) -> u64 {
        // Two lanes, because a multiplication waits for the one before.
        let (blocks, rest) = text.as_bytes().as_chunks::<16>();
        let mut lanes = [self.key, self.key ^ text.len() as u64];
        for block in blocks {
            let [low, high] = words(block);
            lanes = [mix_two(lanes[0], low), mix_two(lanes[1], high)];
        }
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        let [low, high] = words(&last);
        mix_two(mix_two(lanes[0], low), lanes[1] ^ high)
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
        // A text far above the limit is refused sooner than it is read to be found.
        let is_far_above = text.len() as u64 / SHORTEST as u64 > limit;
        if text.len() < SHORTEST || is_far_above {
            return self.counter.count_up_to(text, limit);
        }
        let digest = self.digest(text);
        if let Some(count) = self.with_shelf(|shelf| shelf.find(digest, text)) {
            return (count <= limit).then_some(count);
        }
        let count = self.counter.count_up_to(text, limit)?;
        self.with_shelf(|shelf| shelf.put(digest, text, count, self.most_bytes));
        Some(count)
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str {
        self.counter.truncate_to(text, tokens, keep)
    }
}

/// Texts with their counts, in no order; a hand goes round to find what may leave.
#[derive(Debug, Default)]
struct Shelf {
    entries: Vec<Entry>,
    /// Where the text of a digest is. Of two texts with one digest the later one stays.
    places: HashMap<u64, usize, BuildHasherDefault<Digested>>,
    hand: usize,
    held: usize,
}

#[derive(Debug)]
struct Entry {
    digest: u64,
    text: Box<str>,
    count: u64,
    /// Whether it was asked for since the hand passed.
    asked_for: bool,
}

impl Shelf {
    fn find(&mut self, digest: u64, text: &str) -> Option<u64> {
        let entry = &mut self.entries[*self.places.get(&digest)?];
        if *entry.text != *text {
            return None;
        }
        entry.asked_for = true;
        Some(entry.count)
    }

    fn put(&mut self, digest: u64, text: &str, count: u64, most_bytes: usize) {
        let size = text.len() + ENTRY;
        if size > most_bytes {
            return;
        }
        if let Some(place) = self.places.get(&digest) {
            self.take(*place);
        }
        while self.held + size > most_bytes {
            self.hand %= self.entries.len();
            if std::mem::take(&mut self.entries[self.hand].asked_for) {
                self.hand += 1;
            } else {
                self.take(self.hand);
            }
        }
        self.held += size;
        self.places.insert(digest, self.entries.len());
        self.entries.push(Entry {
            digest,
            text: text.into(),
            count,
            asked_for: false,
        });
    }

    /// Takes an entry away; the last one takes its place.
    fn take(&mut self, place: usize) {
        let taken = self.entries.swap_remove(place);
        self.held -= taken.text.len() + ENTRY;
        self.places.remove(&taken.digest);
        if let Some(moved) = self.entries.get(place) {
            self.places.insert(moved.digest, place);
        }
    }
}

/// Digests are spread already.
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
                if let Some(count) = shelf.find(7, &text) {
                    prop_assert_eq!(count, text.len() as u64);
                }
                shelf.put(7, &text, text.len() as u64, 100_000);
                prop_assert_eq!(shelf.find(7, &text), Some(text.len() as u64));
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
    fn what_is_asked_for_stays_when_room_is_needed() {
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
