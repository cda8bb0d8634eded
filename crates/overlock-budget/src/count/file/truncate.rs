//! Finds the longest start or end of a text with at most a number of tokens.
//!
//! Counts neither add up nor grow with the text, so a binary search is wrong. At the
//! [places](super::places) where counts add up, they also grow, which leaves one stretch between two
//! places to search. In a short stretch, every length is tried, the longest first. In a long one,
//! such as a text of one letter, that would take quadratic time: there, likely lengths are found by
//! counting only the end of the part, and the longest of them that fits when the whole part is
//! counted is returned.

use super::{CountTokens, Keep, TokenizerFile, piece_size};

/// In a stretch up to this many bytes, every length is tried.
const SHORT: usize = 256;

/// How much of a long stretch is counted at a time to find the approximate limit.
const STRIDE: usize = 4096;

/// How much before a cut is counted to find the effect of the cut.
const TAIL: usize = 512;

/// How many likely lengths are counted in full before the safe one is used.
const TRIES: usize = 16;

/// How many bytes may be counted only to check whether a guess was too high.
const WORTH: usize = 1 << 20;

pub(super) fn longest<'text>(
    counter: &TokenizerFile,
    text: &'text str,
    tokens: u64,
    keep: Keep,
) -> &'text str {
    let text = TextEnd { text, keep };
    let (mut sure, mut room) = (0, tokens);
    let longest = loop {
        (sure, room) = whole_stretches(counter, text, sure, room);
        let stretch = text.between(sure, text.next_place(counter, sure));
        let length = longest_in_stretch(counter, stretch, room);
        if length < stretch.len() || stretch.len() == 0 {
            break sure + length;
        }
        // A long stretch that fits after all.
        room = room.saturating_sub(counter.count_undivided(stretch.text));
        sure += length;
    };
    // Both were counted in pieces; the result must fit when it is counted as a whole.
    let lengths = [longest, sure];
    let mut parts = lengths.into_iter().map(|length| text.part(length));
    parts
        .find(|part| counter.count_up_to(part, tokens).is_some())
        .unwrap_or("")
}

/// A text whose lengths are measured from the end that is kept.
#[derive(Clone, Copy)]
struct TextEnd<'text> {
    text: &'text str,
    keep: Keep,
}

impl<'text> TextEnd<'text> {
    fn len(self) -> usize {
        self.text.len()
    }

    /// The part of this length.
    fn part(self, length: usize) -> &'text str {
        self.between(0, length).text
    }

    fn between(self, from: usize, to: usize) -> Self {
        let text = match self.keep {
            Keep::Start => &self.text[from..to],
            Keep::End => &self.text[self.len() - to..self.len() - from],
        };
        Self { text, ..self }
    }

    fn is_boundary(self, length: usize) -> bool {
        match self.keep {
            Keep::Start => self.text.is_char_boundary(length),
            Keep::End => self.text.is_char_boundary(self.len() - length),
        }
    }

    /// The largest length up to this one that splits no character.
    fn floor(self, length: usize) -> usize {
        let lengths = (0..=length.min(self.len())).rev();
        lengths
            .take(4)
            .find(|length| self.is_boundary(*length))
            .unwrap_or(0)
    }

    /// The length at the first place beyond this one, or the whole length.
    fn next_place(self, counter: &TokenizerFile, from: usize) -> usize {
        let rest = self.between(from, self.len());
        let place = match self.keep {
            Keep::Start => counter.places.at_or_after(rest.text, 1),
            Keep::End => {
                let place = counter.places.at_or_before(rest.text, 1);
                place.map(|place| rest.len() - place)
            }
        };
        place.map_or(self.len(), |place| from + place)
    }
}

/// The length up to the last place within the limit, and the tokens left there.
///
/// It ends before a long stretch, which is not counted as a whole here.
fn whole_stretches(
    counter: &TokenizerFile,
    text: TextEnd<'_>,
    from: usize,
    tokens: u64,
) -> (usize, u64) {
    let mut sure = from;
    let mut room = tokens;
    let mut size = piece_size(tokens);
    while sure < text.len() {
        let next = text.next_place(counter, sure);
        if next - sure > STRIDE {
            break;
        }
        let mut end = next;
        while end - sure < size && end < text.len() {
            let beyond = text.next_place(counter, end);
            if beyond - end > STRIDE {
                break;
            }
            end = beyond;
        }
        let taken = counter.count_undivided(text.between(sure, end).text);
        if taken <= room {
            sure = end;
            room -= taken;
        } else if end == next {
            break;
        } else {
            size = size.min(end - sure) / 2;
        }
    }
    (sure, room)
}

/// The longest length of a stretch without places that has at most `room` tokens.
fn longest_in_stretch(counter: &TokenizerFile, stretch: TextEnd<'_>, room: u64) -> usize {
    let fits = |length: &usize| counter.count_undivided(stretch.part(*length)) <= room;
    if stretch.len() <= SHORT {
        let mut lengths = (1..=stretch.len()).rev();
        return lengths
            .find(|length| stretch.is_boundary(*length) && fits(length))
            .unwrap_or(0);
    }
    let sure = approach(counter, stretch, room);
    // A guess may be one too high, so lengths that seem just too long are tried, too, while that is
    // cheap.
    let mut doubtful = (WORTH / stretch.len()).clamp(2, TRIES);
    let mut tries = TRIES;
    for guess in likely_lengths(counter, stretch, sure, room).iter().rev() {
        let left = if guess.tokens > room {
            &mut doubtful
        } else {
            &mut tries
        };
        if *left > 0 {
            *left -= 1;
            if fits(&guess.length) {
                return guess.length;
            }
        }
    }
    sure.length
}

/// A length, and the tokens of its part.
#[derive(Clone, Copy)]
struct Counted {
    length: usize,
    tokens: u64,
}

/// A length that fits, not far below the longest one.
fn approach(counter: &TokenizerFile, stretch: TextEnd<'_>, room: u64) -> Counted {
    let mut sure = Counted {
        length: 0,
        tokens: 0,
    };
    let mut allowance = room;
    for _ in 0..TRIES {
        let length = stride_on(counter, stretch, sure.length, allowance);
        if length == sure.length {
            break;
        }
        let tokens = counter.count_undivided(stretch.part(length));
        if tokens <= room {
            sure = Counted { length, tokens };
            allowance = room - tokens;
        } else {
            // The strides were underestimated, by as much as is added now.
            allowance = allowance.saturating_sub(tokens - room).min(allowance / 2);
        }
    }
    sure
}

/// The length that complete strides from `from` would reach if their counts added up.
fn stride_on(counter: &TokenizerFile, stretch: TextEnd<'_>, from: usize, allowance: u64) -> usize {
    let mut at = from;
    let mut left = allowance;
    while at < stretch.len() {
        let next = stretch.floor(at + STRIDE);
        let taken = counter.count_undivided(stretch.between(at, next).text);
        if taken > left {
            break;
        }
        left -= taken;
        at = next;
    }
    at
}

/// The lengths beyond a counted one that fit, or nearly, if the last few tokens alone decide.
fn likely_lengths(
    counter: &TokenizerFile,
    stretch: TextEnd<'_>,
    sure: Counted,
    room: u64,
) -> Vec<Counted> {
    let mut near = NearTail::new(counter, stretch, sure);
    let mut step = 2 * STRIDE;
    while step > TAIL / 8 {
        let length = stretch.floor(near.end.length + step);
        let tokens = near.tokens(counter, stretch, length);
        if length > near.end.length && tokens <= room {
            near = NearTail::new(counter, stretch, Counted { length, tokens });
        } else {
            step /= 2;
        }
    }
    // A longer part shares all tokens but the last with one that is at most a token shorter. So if
    // no part within the length of a token fits, no longer one does.
    let reach = near.end.length + 2 * step + counter.longest_token.min(STRIDE);
    let lengths = near.end.length..=reach.min(stretch.len());
    lengths
        .filter(|length| stretch.is_boundary(*length))
        .map(|length| Counted {
            length,
            tokens: near.tokens(counter, stretch, length),
        })
        .filter(|guess| guess.tokens <= room.saturating_add(1) || guess.length == stretch.len())
        .collect()
}

/// The end of a part with known tokens, from which longer parts are counted.
struct NearTail {
    from: usize,
    end: Counted,
    /// The tokens of the tail alone.
    alone: u64,
}

impl NearTail {
    fn new(counter: &TokenizerFile, stretch: TextEnd<'_>, end: Counted) -> Self {
        let from = stretch.floor(end.length.saturating_sub(TAIL));
        let alone = counter.count_undivided(stretch.between(from, end.length).text);
        Self { from, end, alone }
    }

    /// The tokens of a longer part if it differs from this one only in the tail.
    fn tokens(&self, counter: &TokenizerFile, stretch: TextEnd<'_>, length: usize) -> u64 {
        let longer = counter.count_undivided(stretch.between(self.from, length).text);
        let before = self.end.tokens.saturating_sub(self.alone);
        before.saturating_add(longer)
    }
}
