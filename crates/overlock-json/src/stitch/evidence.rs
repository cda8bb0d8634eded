//! How much does a text that the base and a fragment have in common say about where they join?
//!
//! Its information, in bits: the length of its code under an order-2 model of the end of the base.
//! Indentation, punctuation and repeated rows cost almost nothing there, so they say almost nothing.

use std::cell::OnceCell;

use crate::partial_document::PartialDocument;
use crate::tokens::{Token, TokenKind, Tokens, is_inside_string};

/// A join needs so many bits of its own, and so many more than any other join that gives another
/// document: the chance of an accident is one in a million.
pub(crate) const ENOUGH: u32 = 20;
/// What the model was asked to repeat is expected there.
pub(super) const ASKED: u32 = 10;
/// In the prefill protocol the answer is expected to start at the cut.
pub(super) const PREFILLED: u32 = 2 * ENOUGH;

/// So many bytes at the end of the base are modelled.
const WINDOW: usize = 4_000;
/// More bits than this decide nothing more.
const PLENTY: f32 = 4_000.0;

/// In a string any text may come: a character says no more than it does in English.
const MOST_IN_STRING: f32 = 2.5;

/// What a whole value says at most: the next record may have it again.
fn most_of_value(len: usize) -> f32 {
    let rest = u16::try_from(len.saturating_sub(LONGEST_TERM)).unwrap_or(u16::MAX);
    MOST_OF_TERM + f32::from(rest)
}

/// Names, numbers and stock phrases are rarely longer, and no other text comes twice.
const LONGEST_TERM: usize = 32;
const MOST_OF_TERM: f32 = 6.0;

/// What the text of a base says.
pub(crate) struct Evidence<'b> {
    /// The text, without half an escape at its end.
    text: &'b [u8],
    /// Where the string begins in which the text ends.
    string: Option<usize>,
    model: OnceCell<Model>,
}

/// Whether the end of a base that a model was asked to repeat tells where an answer belongs, even
/// if a slip of syntax follows.
pub(crate) fn is_telling(base: &PartialDocument<'_>, asked: &str) -> bool {
    let start = base.text().len() - asked.len();
    Evidence::new(base).since(start) + ASKED >= ENOUGH
}

impl<'b> Evidence<'b> {
    pub(crate) fn new(base: &'b PartialDocument<'_>) -> Self {
        let text = &base.text().as_bytes()[..base.settled_len()];
        let is_in_string = base.scanner().is_in_string();
        let quote = text.iter().rposition(|byte| *byte == b'"');
        Self {
            text,
            string: quote.filter(|_| is_in_string).map(|quote| quote + 1),
            model: OnceCell::new(),
        }
    }

    /// Where the values begin and end that are whole in the window.
    fn values(&self, window: usize) -> impl Iterator<Item = (usize, usize)> {
        let text = std::str::from_utf8(self.text).unwrap_or_default();
        let window = text.ceil_char_boundary(window.min(text.len()));
        let is_inside = is_inside_string(text, window, self.string.is_some());
        let tokens = Tokens::new(text, window, is_inside);
        let is_value = |token: &Token<'_>| !token.endless && token.kind != TokenKind::Mark;
        tokens
            .filter(is_value)
            .map(|token| (token.start, token.end))
    }

    /// Where the shortest end of the base begins that says so many bits, if the window does.
    pub(crate) fn shortest(&self, bits: u32) -> usize {
        let window = self.window();
        let starts = (window..self.text.len()).rev();
        starts
            .into_iter()
            .find(|start| self.since(*start) >= bits)
            .unwrap_or(window)
    }

    /// The bits of the base from a byte on. The root comes once; of any other part, the next record
    /// may say the same.
    pub(super) fn since(&self, start: usize) -> u32 {
        if self.text[..start.min(self.text.len())]
            .trim_ascii()
            .is_empty()
        {
            return self.of(0, self.text.len());
        }
        let sums = &self.model().among_records;
        bits(sums[start.clamp(self.window(), self.text.len()) - self.window()])
    }

    /// The bits of a part of the base.
    pub(super) fn of(&self, start: usize, end: usize) -> u32 {
        let window = self.window();
        let model = self.model();
        let from = |at: usize| model.sums[at.clamp(window, self.text.len()) - window];
        let mut sum = from(start) - from(end);
        for at in start..end.min(window) {
            if sum > PLENTY {
                break;
            }
            sum += model.code_len(self.text, at, 0);
        }
        bits(sum)
    }

    fn window(&self) -> usize {
        self.text.len().saturating_sub(WINDOW)
    }

    fn model(&self) -> &Model {
        let window = self.window();
        let string = self.string.unwrap_or(self.text.len());
        self.model
            .get_or_init(|| Model::new(self.text, window, string, self.values(window)))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of few numbers from 0 to 8"
)]
fn bits(sum: f32) -> u32 {
    sum.clamp(0.0, PLENTY) as u32
}

/// How often each byte follows each of the contexts before it. A text that stands elsewhere in the
/// window as well, such as a row of a table, costs little even after its first characters.
struct Model {
    counts: HashCounts,
    /// The hash of the text up to each byte of the window, and of the longest context before it.
    hashes: Vec<u32>,
    hashed_from: usize,
    /// The code length from each byte of the window to the end.
    sums: Vec<f32>,
    /// The same, if no value says more than another record may repeat.
    among_records: Vec<f32>,
}

/// The lengths of the contexts that are counted.
const CONTEXTS: [usize; 7] = [0, 1, 2, 3, 5, 8, 12];
const LONGEST_CONTEXT: usize = 12;

impl Model {
    /// Models a text from the window on. It ends in a string that begins at `string`; the values
    /// are where the other strings, numbers and literals begin and end.
    fn new(
        text: &[u8],
        window: usize,
        string: usize,
        values: impl Iterator<Item = (usize, usize)>,
    ) -> Self {
        let hashed_from = window.saturating_sub(LONGEST_CONTEXT);
        let mut model = Self {
            counts: HashCounts::new(2 * CONTEXTS.len() * (text.len() - window)),
            hashes: Vec::with_capacity(text.len() - hashed_from + 1),
            hashed_from,
            sums: Vec::new(),
            among_records: Vec::new(),
        };
        let mut hash = 0_u32;
        model.hashes.push(hash);
        for byte in &text[hashed_from..] {
            hash = hash
                .wrapping_mul(HASH_BASE)
                .wrapping_add(u32::from(*byte) + 1);
            model.hashes.push(hash);
        }
        for at in window..text.len() {
            for len in CONTEXTS.into_iter().filter(|len| at >= hashed_from + len) {
                let context = model.context(text, at, len);
                model.counts.add(context);
                model.counts.add(followed(context, text[at]));
            }
        }
        // A byte is no evidence of itself.
        let code_len = |at: usize| model.code_len(text, at, 1);
        let mut lengths: Vec<f32> = (window..text.len()).map(code_len).collect();
        for length in lengths.iter_mut().skip(string.saturating_sub(window)) {
            *length = length.min(MOST_IN_STRING);
        }
        model.sums = sums_to_end(&lengths);
        for (start, end) in values {
            let value = &mut lengths[start - window..end - window];
            let most = most_of_value(value.len());
            let sum: f32 = value.iter().sum();
            for length in value {
                *length *= (most / sum).min(1.0);
            }
        }
        model.among_records = sums_to_end(&lengths);
        model
    }

    /// The bits that a byte takes, if so many of its kind are not counted.
    fn code_len(&self, text: &[u8], at: usize, left_out: u16) -> f32 {
        // No byte says more than it does in any JSON text.
        let least = match text[at] {
            b'"' => 1.0 / 8.0,
            b' ' | b'\n' | b'\r' | b'\t' => 1.0,
            // How deep a text is shows in its white space, and that says nothing.
            b'}' | b']' => 1.0 / 2.0,
            b'{' | b'[' | b',' | b':' => 1.0 / 32.0,
            _ => 1.0 / 256.0,
        };
        let mut probability: f32 = least;
        for len in CONTEXTS.into_iter().filter(|len| at >= *len) {
            let context = self.context(text, at, len);
            let all = self.counts.of(context).saturating_sub(left_out);
            // No longer context has been there either.
            if all == 0 {
                break;
            }
            let same = self.counts.of(followed(context, text[at]));
            let same = same.saturating_sub(left_out);
            probability = (f32::from(same) + probability) / (f32::from(all) + 1.0);
        }
        -f32::log2(probability.clamp(least, 1.0))
    }

    /// The hash of the bytes before a byte.
    fn context(&self, text: &[u8], at: usize, len: usize) -> u32 {
        let hash = if at >= self.hashed_from + len {
            let end = self.hashes[at - self.hashed_from];
            let start = self.hashes[at - len - self.hashed_from];
            end.wrapping_sub(start.wrapping_mul(POWERS[len]))
        } else {
            text[at - len..at].iter().fold(0, |hash: u32, byte| {
                hash.wrapping_mul(HASH_BASE)
                    .wrapping_add(u32::from(*byte) + 1)
            })
        };
        hash.wrapping_add(POWERS[LONGEST_CONTEXT + 1 + len])
    }
}

/// The sum of the numbers from each one on.
fn sums_to_end(lengths: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0; lengths.len() + 1];
    for (at, length) in lengths.iter().enumerate().rev() {
        sums[at] = sums[at + 1] + length;
    }
    sums
}

/// The base of the hash of a text.
const HASH_BASE: u32 = 0x0100_0193;

/// The powers of the base.
const POWERS: [u32; 2 * LONGEST_CONTEXT + 2] = {
    let mut powers = [1_u32; 2 * LONGEST_CONTEXT + 2];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1].wrapping_mul(HASH_BASE);
        exponent += 1;
    }
    powers
};

/// The hash of a context with the byte that follows.
fn followed(context: u32, byte: u8) -> u32 {
    (context ^ u32::from(byte))
        .wrapping_mul(0x9E37_79B1)
        .rotate_left(15)
        ^ u32::from(byte)
}

/// How often each hash has come.
struct HashCounts {
    slots: Vec<(u32, u16)>,
}

impl HashCounts {
    /// Room for so many different hashes.
    fn new(most: usize) -> Self {
        Self {
            slots: vec![(0, 0); (most + 1).next_power_of_two()],
        }
    }

    fn add(&mut self, hash: u32) {
        let slot = self.slot(hash);
        let (_, count) = self.slots[slot];
        self.slots[slot] = (hash, count + 1);
    }

    fn of(&self, hash: u32) -> u16 {
        self.slots[self.slot(hash)].1
    }

    /// Where a hash is counted, or may be: there is always a free slot.
    fn slot(&self, hash: u32) -> usize {
        let last = self.slots.len() - 1;
        let mut slot = (hash.wrapping_mul(0x85EB_CA6B) >> 7) as usize & last;
        while self.slots[slot].1 > 0 && self.slots[slot].0 != hash {
            slot = (slot + 1) & last;
        }
        slot
    }
}
