//! Chooses the model's next behaviour and where its answer is cut.

use std::ops::Range;

use overlock_json::{CutPlace, Scanner};

use super::behaviour::Behaviour;
use super::random::Random;
use super::script::Script;

/// The state of a model between calls.
#[derive(Debug)]
pub(super) struct ModelState {
    pub(super) random: Random,
    /// The furthest offset in the document so far.
    pub(super) furthest: usize,
    last: Option<LastCall>,
    /// The behaviours so far.
    pub(super) behaved: Vec<Behaviour>,
    /// The behaviours that are left before any comes twice, in reverse order.
    deck: Vec<Behaviour>,
    /// The kinds of places where it was cut so far.
    places: Vec<CutPlace>,
}

/// The last call.
#[derive(Debug)]
struct LastCall {
    /// The prompt without the quoted end of the document.
    words: String,
    /// The range of the piece in the document.
    piece: Range<usize>,
}

impl ModelState {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            furthest: 0,
            last: None,
            behaved: Vec::new(),
            deck: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Where the text to continue ends: at the end of the last piece, or at its start if that piece
    /// was rejected. If the document repeats itself, both are possible; the prompt differs if the
    /// piece was accepted.
    pub(super) fn place(&self, document: &str, words: &str, text: &str) -> Option<usize> {
        let last = self.last.as_ref().filter(|_| !text.is_empty())?;
        let Range { start, end } = last.piece;
        let likely = if last.words == words {
            [start, end]
        } else {
            [end, start]
        };
        let mut likely = likely.into_iter();
        likely.find(|&at| document[..at].ends_with(text))
    }

    /// Records a call.
    pub(super) fn record(&mut self, behaviour: Behaviour, words: &str, piece: Range<usize>) {
        self.furthest = self.furthest.max(piece.end);
        self.behaved.push(behaviour);
        self.last = Some(LastCall {
            words: words.to_owned(),
            piece,
        });
    }

    /// The behaviour for a call with an overlap.
    ///
    /// All behaviours of the script come once, in random order, before any comes twice. If the
    /// script allows it, a repeated call is answered as asked. After a cut in white space the
    /// overlap is repeated exactly: otherwise the joined text could differ in white space.
    pub(super) fn next_behaviour(
        &mut self,
        script: &Script,
        from: usize,
        cut_in_space: bool,
    ) -> Behaviour {
        if self.deck.is_empty() {
            self.deck.clone_from(&script.behaviours);
            self.random.shuffle(&mut self.deck);
        }
        let is_repeated_call = self
            .last
            .as_ref()
            .is_some_and(|last| last.piece.start == from);
        let suits = |behaviour: &Behaviour| match (is_repeated_call, cut_in_space) {
            (true, _) => Behaviour::AS_ASKED.contains(behaviour),
            (false, true) => behaviour.repeats_exactly(),
            (false, false) => true,
        };
        if let Some(index) = self.deck.iter().rposition(suits) {
            return self.deck.remove(index);
        }
        let suitable: Vec<_> = script.behaviours.iter().copied().filter(suits).collect();
        match suitable.get(self.random.below(suitable.len())) {
            Some(behaviour) => *behaviour,
            None => self.deck.pop().unwrap_or(Behaviour::AsAsked),
        }
    }

    /// Where the answer is cut: at a new kind of place, if one is near.
    pub(super) fn next_stop(&mut self, script: &Script, from: usize) -> usize {
        const TRIES: usize = 12;
        /// The length of the longest character.
        const LEAST: usize = 4;
        let document = script.document.as_str();
        let mut before = Scanner::new();
        before.feed(&document.as_bytes()[..from]);
        let (least, most) = script.breath;
        let range = most.saturating_sub(least);
        let mut stop = None;
        for _ in 0..if range == 0 { 1 } else { TRIES } {
            let breath = least + self.random.below(range + 1);
            let end = document.floor_char_boundary(from.saturating_add(breath.max(LEAST)));
            if end >= document.len() {
                continue;
            }
            let mut scanner = before.clone();
            scanner.feed(&document.as_bytes()[from..end]);
            // A cut top-level number would look complete.
            if scanner.is_complete() {
                continue;
            }
            if let Some(cut) = scanner.cut()
                && !self.places.contains(&cut.place)
            {
                self.places.push(cut.place);
                return end;
            }
            stop.get_or_insert(end);
        }
        stop.unwrap_or(document.len())
    }
}
