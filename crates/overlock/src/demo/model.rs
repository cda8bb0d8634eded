//! A model that knows one document by heart, and is cut off every time it recites it.
//!
//! What it says next is drawn by a seeded generator: how far it gets, and in which of
//! the ways of real models the next piece comes back.

use std::fmt::Write;

use overlock_json::{Cut, Place, Protocol, Scanner};

use super::random::Random;

/// How a model sends the next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    AsAsked,
    Fenced,
    Thinking,
    RestartsItem,
    RestartsDocument,
    OtherSpaces,
    OtherEscapes,
    RepeatsLess,
    RepeatsMore,
    GoesStraightOn,
    Apologises,
    OnlyRepeats,
}

impl Behaviour {
    const ALL: [Self; 12] = [
        Self::AsAsked,
        Self::Fenced,
        Self::Thinking,
        Self::RestartsItem,
        Self::RestartsDocument,
        Self::OtherSpaces,
        Self::OtherEscapes,
        Self::RepeatsLess,
        Self::RepeatsMore,
        Self::GoesStraightOn,
        Self::Apologises,
        Self::OnlyRepeats,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AsAsked => "as-asked",
            Self::Fenced => "fenced",
            Self::Thinking => "thinking",
            Self::RestartsItem => "restarts-item",
            Self::RestartsDocument => "restarts-document",
            Self::OtherSpaces => "other-spaces",
            Self::OtherEscapes => "other-escapes",
            Self::RepeatsLess => "repeats-less",
            Self::RepeatsMore => "repeats-more",
            Self::GoesStraightOn => "goes-straight-on",
            Self::Apologises => "apologises",
            Self::OnlyRepeats => "only-repeats",
        }
    }

    /// What the model does, as the title of its answer.
    pub(crate) fn told(self) -> &'static str {
        match self {
            Self::AsAsked => "repeats the end as it was asked to, and goes on",
            Self::Fenced => "wraps the piece in a fence and small talk",
            Self::Thinking => "thinks aloud first",
            Self::RestartsItem => "starts the whole item again",
            Self::RestartsDocument => "starts the whole document again",
            Self::OtherSpaces => "repeats the end with other white space",
            Self::OtherEscapes => "repeats the end with other escapes",
            Self::RepeatsLess => "repeats less than it was asked to",
            Self::RepeatsMore => "repeats more than it was asked to",
            Self::GoesStraightOn => "goes straight on from a prefilled answer",
            Self::Apologises => "apologises",
            Self::OnlyRepeats => "says what it said before, and nothing new",
        }
    }

    /// Whether most models do this sooner or later.
    fn is_frequent(self) -> bool {
        matches!(
            self,
            Self::Fenced | Self::RestartsItem | Self::OtherSpaces | Self::Apologises
        )
    }

    /// Whether what is repeated, if anything is, is the overlap to the byte.
    fn keeps_to_the_overlap(self) -> bool {
        match self {
            Self::AsAsked
            | Self::Fenced
            | Self::Thinking
            | Self::GoesStraightOn
            | Self::Apologises
            | Self::OnlyRepeats => true,
            Self::RestartsItem
            | Self::RestartsDocument
            | Self::OtherSpaces
            | Self::OtherEscapes
            | Self::RepeatsLess
            | Self::RepeatsMore => false,
        }
    }

    /// How the piece is asked for when the model is going to behave like this: only one
    /// whose answer can be prefilled goes straight on.
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::GoesStraightOn => Protocol::Prefill,
            _ => Protocol::Overlap,
        }
    }
}

/// One answer of the model.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) behaviour: Behaviour,
    /// Whether the model was cut off, rather than done.
    pub(crate) cut_off: bool,
}

pub(crate) struct Model<'a> {
    document: &'a str,
    random: Random,
    /// The behaviours to come, last first.
    script: Vec<Behaviour>,
    /// About how many bytes it says at once.
    breath: usize,
    /// Where it was cut off so far: it is cut at as many different places as there are.
    places: Vec<Place>,
    /// The state of the document up to `scanned`.
    scanner: Scanner,
    scanned: usize,
}

impl<'a> Model<'a> {
    pub(crate) fn new(document: &'a str, seed: u64) -> Self {
        const PIECES: usize = 8;
        const SHORTEST_BREATH: usize = 12;
        Self {
            document,
            random: Random::new(seed),
            script: Vec::new(),
            breath: (document.len() / PIECES).max(SHORTEST_BREATH),
            places: Vec::new(),
            scanner: Scanner::new(),
            scanned: 0,
        }
    }

    /// The first answer, to the prompt itself.
    pub(crate) fn begin(&mut self) -> Answer {
        let end = self.next_stop(0);
        let piece = &self.document[..end];
        let is_container = piece.starts_with(['{', '[']);
        let behaviour = match self.random.below(2) {
            0 if is_container => Behaviour::Fenced,
            _ => Behaviour::AsAsked,
        };
        self.answer(behaviour, "", 0, end)
    }

    /// The next answer. `have` is how much of the document has arrived, and `overlap` its
    /// end, which the model was asked to repeat; asked again, it does as it is told.
    pub(crate) fn go_on(&mut self, have: usize, overlap: &str, again: bool) -> Answer {
        let behaviour = if again {
            Behaviour::AsAsked
        } else {
            self.next_behaviour(overlap.ends_with([' ', '\n', '\r', '\t']))
        };
        let end = self.next_stop(have);
        self.answer(behaviour, overlap, have, end)
    }

    fn answer(&mut self, behaviour: Behaviour, overlap: &str, have: usize, end: usize) -> Answer {
        let rest = &self.document[have..end];
        let cut_off = end < self.document.len();
        let text = self.words(behaviour, overlap, have, end);
        match behaviour {
            Behaviour::Apologises | Behaviour::OnlyRepeats => Answer {
                text,
                behaviour,
                cut_off: false,
            },
            // In a document that repeats itself a restart may begin with the very words that
            // were asked for. Nobody could tell, so the model does as it was asked.
            _ if !overlap.is_empty() && text.starts_with(overlap) => Answer {
                text: format!("{overlap}{rest}"),
                behaviour: Behaviour::AsAsked,
                cut_off,
            },
            _ => Answer {
                text,
                behaviour,
                cut_off,
            },
        }
    }

    fn words(&mut self, behaviour: Behaviour, overlap: &str, have: usize, end: usize) -> String {
        let rest = &self.document[have..end];
        let cut_off = end < self.document.len();
        match behaviour {
            Behaviour::AsAsked => format!("{overlap}{rest}"),
            Behaviour::Fenced => {
                let closing = if cut_off {
                    ""
                } else {
                    "\n```\n\nThat is all of it. Anything else?"
                };
                format!("Sure! Here it is:\n\n```json\n{overlap}{rest}{closing}")
            }
            Behaviour::Thinking => format!(
                "<think>I must repeat the last {} characters and go on from there.</think>\n{overlap}{rest}",
                overlap.chars().count()
            ),
            Behaviour::RestartsItem => format!("{}{rest}", self.item_before(have, overlap)),
            Behaviour::RestartsDocument => {
                format!("{}{rest}", self.document_before(have, overlap))
            }
            Behaviour::OtherSpaces => format!("{}{rest}", self.respace(have, overlap)),
            Behaviour::OtherEscapes => format!("{}{rest}", escape(overlap)),
            Behaviour::RepeatsLess => {
                let kept = (overlap.chars().count() * 2 / 3).max(30);
                format!("{}{rest}", last_characters(overlap, kept))
            }
            Behaviour::RepeatsMore => {
                let more = overlap.chars().count() + 20 + self.random.below(60);
                format!("{}{rest}", last_characters(&self.document[..have], more))
            }
            Behaviour::GoesStraightOn => rest.to_owned(),
            Behaviour::Apologises => {
                "I'm sorry, but I can't continue this text in the middle of a value. \
                 Would you like me to summarise it instead?"
                    .to_owned()
            }
            Behaviour::OnlyRepeats => overlap.to_owned(),
        }
    }

    /// Every behaviour comes once, in an order of its own, before any comes twice.
    ///
    /// Cut between two values, the space at the seam may come out otherwise than it was in the
    /// document unless the overlap is repeated to the byte. That is the same JSON, but no
    /// longer the same bytes, so the others wait for another cut.
    fn next_behaviour(&mut self, cut_in_space: bool) -> Behaviour {
        const EARLY: usize = 8;
        if self.script.is_empty() {
            let mut script = Behaviour::ALL.to_vec();
            self.random.shuffle(&mut script);
            // The document may be whole before the script ends, and these must be seen.
            script.sort_by_key(|behaviour| !behaviour.is_frequent());
            self.random.shuffle(&mut script[..EARLY]);
            script.reverse();
            self.script = script;
        }
        let suits = |behaviour: &Behaviour| !cut_in_space || behaviour.keeps_to_the_overlap();
        match self.script.iter().rposition(suits) {
            Some(index) => self.script.remove(index),
            None => Behaviour::AsAsked,
        }
    }

    /// Where the model is cut off next: at a kind of place that has not been seen yet, if
    /// one is near.
    fn next_stop(&mut self, have: usize) -> usize {
        const TRIES: usize = 12;
        self.scanner
            .feed(&self.document.as_bytes()[self.scanned..have]);
        self.scanned = have;
        let left = self.document.len() - have;
        let mut stop = None;
        for _ in 0..TRIES {
            let breath = self.breath * 2 / 3 + self.random.below(self.breath * 2 / 3 + 1);
            // A very short document is still cut once.
            let breath = if have == 0 {
                breath.min(left / 2)
            } else {
                breath
            };
            let candidate = self.document.floor_char_boundary(have + breath.max(1));
            if candidate <= have || candidate >= self.document.len() {
                continue;
            }
            let mut scanner = self.scanner.clone();
            scanner.feed(&self.document.as_bytes()[have..candidate]);
            // Nothing could tell that a number at the root goes on.
            let Some(Cut { place, .. }) = scanner.cut() else {
                continue;
            };
            if !self.places.contains(&place) {
                self.places.push(place);
                return candidate;
            }
            stop.get_or_insert(candidate);
        }
        stop.unwrap_or(self.document.len())
    }

    /// The document from the beginning of an item that holds the cut, up to the cut.
    fn item_before(&self, have: usize, overlap: &str) -> &'a str {
        const LONGEST: usize = 1500;
        let arrived = &self.document[..have];
        let mut open = Vec::new();
        let mut in_string = false;
        let mut escaped = false;
        for (offset, byte) in arrived.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => open.push(offset),
                b'}' | b']' if !in_string => {
                    open.pop();
                }
                _ => {}
            }
        }
        // An item like the one before it could be either of them to a reader.
        let is_alone = |start: usize| {
            let near = self
                .document
                .floor_char_boundary(start.saturating_sub(LONGEST));
            let end = self.document.floor_char_boundary(have - 1);
            !self.document[near..end].contains(&arrived[start..])
        };
        let item = open
            .into_iter()
            .skip(1)
            .find(|&start| have - start <= LONGEST && is_alone(start));
        item.map_or(&arrived[have - overlap.len()..], |start| &arrived[start..])
    }

    /// The document up to the cut, if it is not yet too long to be said again.
    fn document_before(&self, have: usize, overlap: &str) -> &'a str {
        const LONGEST: usize = 4000;
        if have <= LONGEST {
            &self.document[..have]
        } else {
            &self.document[have - overlap.len()..have]
        }
    }

    /// The overlap as somebody with another taste would set it.
    fn respace(&self, have: usize, overlap: &str) -> String {
        let mut in_string = self.is_in_string(have - overlap.len());
        let mut escaped = false;
        let mut respaced = String::with_capacity(overlap.len());
        for character in overlap.chars() {
            match character {
                _ if escaped => escaped = false,
                '\\' if in_string => escaped = true,
                '"' => in_string = !in_string,
                ' ' | '\n' | '\r' | '\t' if !in_string => continue,
                _ => {}
            }
            respaced.push(character);
            if !in_string && matches!(character, ',' | '{' | '[') {
                respaced.push('\n');
            }
        }
        if !in_string {
            respaced.truncate(respaced.trim_end_matches('\n').len());
        }
        respaced
    }

    fn is_in_string(&self, offset: usize) -> bool {
        let mut scanner = Scanner::new();
        scanner.feed(&self.document.as_bytes()[..offset]);
        let place = scanner.cut().map(|cut| cut.place);
        matches!(place, Some(Place::String | Place::Escape | Place::Key))
    }
}

/// Everything beyond ASCII as an escape, as some models write it.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(escaped, "\\u{unit:04x}"); // a string takes everything
        }
    }
    escaped
}

fn last_characters(text: &str, count: usize) -> &str {
    let start = text
        .char_indices()
        .rev()
        .take(count)
        .last()
        .map_or(text.len(), |(start, _)| start);
    &text[start..]
}
