//! How much does a text that the base and a fragment have in common say about where they join?
//!
//! Its information, in bits: the length of its code under an order-2 model of the end of the base.
//! Indentation, punctuation and repeated rows cost almost nothing there, so they say almost nothing.

use std::cell::OnceCell;

use crate::partial_document::PartialDocument;

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

/// What the text of a base says.
pub(crate) struct Evidence<'b> {
    /// The text, without half an escape at its end.
    text: &'b [u8],
    /// Where the string begins in which the text ends.
    string: usize,
    model: OnceCell<Model>,
}

impl<'b> Evidence<'b> {
    pub(crate) fn new(base: &'b PartialDocument<'_>) -> Self {
        let text = &base.text().as_bytes()[..base.settled_len()];
        let quote = text.iter().rposition(|byte| *byte == b'"');
        let string = quote.filter(|_| base.scanner().is_in_string());
        Self {
            text,
            string: string.map_or(text.len(), |quote| quote + 1),
            model: OnceCell::new(),
        }
    }

    /// Where the shortest end of the base begins that says so many bits, if the window does.
    pub(crate) fn shortest(&self, bits: u32) -> usize {
        let window = self.text.len().saturating_sub(WINDOW);
        let starts = (window..self.text.len()).rev();
        starts
            .into_iter()
            .find(|start| self.since(*start) >= bits)
            .unwrap_or(window)
    }

    /// The bits of the base from a byte on.
    pub(super) fn since(&self, start: usize) -> u32 {
        self.of(start, self.text.len())
    }

    /// The bits of a part of the base.
    pub(super) fn of(&self, start: usize, end: usize) -> u32 {
        let window = self.text.len().saturating_sub(WINDOW);
        let model = self
            .model
            .get_or_init(|| Model::new(self.text, window, self.string));
        let from = |at: usize| model.sums[at.clamp(window, self.text.len()) - window];
        let mut bits = from(start) - from(end);
        for at in start..end.min(window) {
            if bits > PLENTY {
                break;
            }
            bits += model.code_len(self.text, at, 0.0);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a sum of few numbers from 0 to 8"
        )]
        let bits = bits.clamp(0.0, PLENTY) as u32;
        bits
    }
}

/// How often each byte follows the two, the one and the none before it.
struct Model {
    /// How often each byte comes, and which of the different ones it is.
    bytes: [(f32, usize); 256],
    different: usize,
    /// Which of the different pairs two bytes are; 0 if none.
    pair_ids: Vec<u16>,
    /// How often each pair comes.
    pairs: Vec<f32>,
    /// How often each of the different bytes follows each pair.
    triples: Vec<f32>,
    /// The code length from each byte of the window to the end.
    sums: Vec<f32>,
}

impl Model {
    fn new(text: &[u8], window: usize, string: usize) -> Self {
        let mut model = Self {
            bytes: [(0.0, 0); 256],
            different: 0,
            pair_ids: vec![0; 1 << 16],
            pairs: vec![0.0],
            triples: Vec::new(),
            sums: vec![0.0; text.len() - window + 1],
        };
        for at in window..text.len() {
            let (count, rank) = &mut model.bytes[usize::from(text[at])];
            if *count == 0.0 {
                *rank = model.different;
                model.different += 1;
            }
            *count += 1.0;
            let id = &mut model.pair_ids[pair(text, at)];
            if *id == 0 {
                *id = u16::try_from(model.pairs.len()).expect("the window has few pairs");
                model.pairs.push(0.0);
            }
            model.pairs[usize::from(*id)] += 1.0;
        }
        model.triples = vec![0.0; model.pairs.len() * model.different];
        for at in window..text.len() {
            let triple = model.triple(text, at);
            model.triples[triple] += 1.0;
        }
        for at in (window..text.len()).rev() {
            let sum = model.sums[at - window + 1];
            let most = if at < string {
                f32::MAX
            } else {
                MOST_IN_STRING
            };
            // A byte is no evidence of itself.
            model.sums[at - window] = sum + model.code_len(text, at, 1.0).min(most);
        }
        model
    }

    /// The bits that a byte takes, if so many of its kind are not counted.
    fn code_len(&self, text: &[u8], at: usize, left_out: f32) -> f32 {
        // No byte says more than it does in any JSON text.
        let least = match text[at] {
            b'"' => 1.0 / 8.0,
            b' ' | b'\n' | b'\r' | b'\t' => 1.0,
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1.0 / 32.0,
            _ => 1.0 / 256.0,
        };
        let before = at.checked_sub(1);
        let pair_count = |at: usize| self.pairs[usize::from(self.pair_ids[pair(text, at)])];
        let length = f32::from(u16::try_from(self.sums.len() - 1).unwrap_or(u16::MAX));
        let orders = [
            (length, self.bytes[usize::from(text[at])].0),
            (
                before.map_or(0.0, |before| self.bytes[usize::from(text[before])].0),
                pair_count(at),
            ),
            (
                before.map_or(0.0, pair_count),
                self.triples
                    .get(self.triple(text, at))
                    .copied()
                    .unwrap_or(0.0),
            ),
        ];
        let probability = orders.iter().fold(least, |probability, (all, same)| {
            ((same - left_out).max(0.0) + probability) / ((all - left_out).max(0.0) + 1.0)
        });
        -f32::log2(probability.max(least))
    }

    /// Where a byte after the two before it is counted.
    fn triple(&self, text: &[u8], at: usize) -> usize {
        let before = at.checked_sub(1).map_or(0, |before| pair(text, before));
        usize::from(self.pair_ids[before]) * self.different + self.bytes[usize::from(text[at])].1
    }
}

/// A byte and the one before it.
fn pair(text: &[u8], at: usize) -> usize {
    let before = at.checked_sub(1).map_or(0, |before| text[before]);
    usize::from(before) << 8 | usize::from(text[at])
}
