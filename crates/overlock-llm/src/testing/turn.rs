//! What does the model do at its next turn, and how far does it get?

use std::ops::Range;

use overlock_json::{CutPlace, Scanner};

use super::behaviour::Behaviour;
use super::random::Random;
use super::script::Script;

/// What a model remembers from turn to turn.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) random: Random,
    /// How far it has come in its document.
    pub(super) furthest: usize,
    last: Option<Turn>,
    /// What it has done so far.
    pub(super) behaved: Vec<Behaviour>,
    /// What it is still to do before it does anything twice, the next one last.
    deck: Vec<Behaviour>,
    /// Where it has been cut off so far.
    places: Vec<CutPlace>,
}

/// What it said at its last turn.
#[derive(Debug)]
struct Turn {
    /// What it was told, but for the end of its document.
    words: String,
    /// Where in its document the piece begins and ends.
    piece: Range<usize>,
}

impl Turns {
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

    /// Where the text that it is to go on from ends: where the last piece does, or where that began
    /// if it was not taken. In a document that repeats itself both may be, but what a model is
    /// told changes with every piece that is taken.
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

    /// Remembers a turn.
    pub(super) fn took(&mut self, behaviour: Behaviour, words: &str, piece: Range<usize>) {
        self.furthest = self.furthest.max(piece.end);
        self.behaved.push(behaviour);
        self.last = Some(Turn {
            words: words.to_owned(),
            piece,
        });
    }

    /// What it does when it is asked to repeat something and to go on.
    ///
    /// Everything in the script comes once, in an order of its own, before anything comes twice.
    /// Where the script leaves a choice, a model that is asked again does as it is told, and what
    /// was cut in white space is repeated to the byte: otherwise the space at the seam might come
    /// out differently, which is the same JSON but not the same text.
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
        let is_asked_again = self
            .last
            .as_ref()
            .is_some_and(|last| last.piece.start == from);
        let suits = |behaviour: &Behaviour| match (is_asked_again, cut_in_space) {
            (true, _) => Behaviour::AS_ASKED.contains(behaviour),
            (false, true) => behaviour.repeats_to_the_byte(),
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

    /// Where it is cut off next: at a kind of place that it has not seen yet, if one is near.
    pub(super) fn next_stop(&mut self, script: &Script, from: usize) -> usize {
        const TRIES: usize = 12;
        /// No character is longer.
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
            // Nobody could tell that a number goes on which is all there is.
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
