//! The model that plays a script.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::wire::chat::ChatRequest;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, future, stream};
use overlock_budget::{ChatCounter, Models};
use overlock_json::{CutPlace, Scanner};
use serde_json::{Value, json};

use super::behaviour::Behaviour;
use super::place::Places;
use super::random::Random;
use super::turn::Turns;
use crate::backend::{Backend, BackendError, Call, Event, Events, Usage};
use crate::prompt::{KPI_FORM, OVERLAP, WRITTEN};

/// What the model knows and how it behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The document it is asked for.
    pub document: String,
    /// How many bytes it says at once, at least and at most.
    pub breath: (usize, usize),
    /// What it may do when it is asked to go on: each comes once, in an order of its own, before
    /// any comes twice. None is [`Behaviour::AsAsked`].
    pub behaviours: Vec<Behaviour>,
    /// What is drawn depends on this alone.
    pub seed: u64,
}

/// A model that plays a script.
///
/// It is asked like any other model and finds in the prompt where it had stopped, so that it may
/// be asked twice, or by another process.
pub struct ScriptedModel {
    script: Script,
    places: Places,
    turns: Mutex<Turns>,
}

/// What it is asked for.
enum Asked<'a> {
    Document,
    /// What follows this, which it is to repeat.
    Overlap(&'a str),
    /// What follows this, which it need not repeat.
    Prefill(&'a str),
    /// What is missing after this, as a document of its own.
    Remainder(&'a str),
    /// What can be counted in it.
    Kpis,
}

/// What it says.
struct Reply {
    text: String,
    is_cut: bool,
}

impl ScriptedModel {
    /// A model that plays this script.
    pub fn new(script: Script) -> Self {
        Self {
            places: Places::of(&script.document),
            turns: Mutex::new(Turns::new(script.seed)),
            script,
        }
    }

    /// What it did so far at each call for its document.
    pub fn behaved(&self) -> Vec<Behaviour> {
        self.turns().behaved.clone()
    }

    /// What it says to a call.
    fn reply(&self, call: &Call) -> Reply {
        let turns = &mut *self.turns();
        let asked = match &call.prefill {
            Some(prefill) => Asked::Prefill(prefill),
            None => Asked::of(last_message(call)),
        };
        let words = asked.words(last_message(call));
        let find = |text: &str| {
            let again = turns.place(&self.script.document, words, text);
            again.or_else(|| self.places.end_of(text, turns.furthest))
        };
        let (from, repeated) = match asked {
            Asked::Kpis => {
                return Reply {
                    text: lists(&self.script.document),
                    is_cut: false,
                };
            }
            Asked::Document => (Some(0), ""),
            Asked::Overlap(text) => (find(text), text),
            Asked::Remainder(text) => (find(text), ""),
            // What stands before the end of it may be a prompt.
            Asked::Prefill(text) => {
                let ends = [200, 100, 60, 40, 20].map(|count| last_characters(text, count));
                (ends.into_iter().find_map(find), "")
            }
        };
        // It was never that far: a prompt that holds none of the document is a new one.
        let mut from = from.unwrap_or(0);
        if matches!(asked, Asked::Prefill(_)) && self.remembers_blanks() {
            let unseen = self.script.document.get(from..turns.furthest);
            if unseen.is_some_and(|unseen| unseen.trim().is_empty()) {
                from = turns.furthest;
            }
        }
        let document = &self.script.document;
        let end = turns.next_stop(&self.script, from);
        let piece = Piece {
            document,
            from,
            end,
            repeated,
        };
        let (behaviour, text) = match asked {
            Asked::Document | Asked::Kpis | Asked::Prefill(_) => {
                (Behaviour::AsAsked, document[from..end].to_owned())
            }
            Asked::Remainder(_) => (Behaviour::AsAsked, piece.in_wrapper()),
            Asked::Overlap(_) => {
                let cut_in_space = repeated.ends_with([' ', '\n', '\r', '\t']);
                let behaviour = turns.next_behaviour(&self.script, from, cut_in_space);
                piece.say(behaviour, &mut turns.random)
            }
        };
        let end_said = if behaviour.goes_on() { end } else { from };
        turns.took(behaviour, words, from..end_said);
        Reply {
            text,
            is_cut: end_said < document.len() && behaviour.goes_on(),
        }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remembers_blanks(&self) -> bool {
        self.script.behaviours == [Behaviour::RemembersBlanks]
    }
}

impl<'a> Asked<'a> {
    fn of(prompt: &'a str) -> Self {
        if let Some(overlap) = OVERLAP.find(prompt) {
            return Self::Overlap(overlap);
        }
        if prompt.trim_end().ends_with(KPI_FORM) {
            return Self::Kpis;
        }
        match WRITTEN.find(prompt) {
            Some(written) => Self::Remainder(written),
            None => Self::Document,
        }
    }

    /// The prompt without what it quotes of the end of the document.
    fn words<'b>(&self, prompt: &'b str) -> &'b str {
        match self {
            Self::Overlap(text) | Self::Remainder(text) => {
                prompt.rfind(text).map_or(prompt, |at| &prompt[..at])
            }
            Self::Document | Self::Kpis | Self::Prefill(_) => prompt,
        }
    }
}

impl Backend for ScriptedModel {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        const PIECE: usize = 160;
        let Reply { text, is_cut } = self.reply(&call);
        let mut events: Vec<_> = pieces(&text, PIECE)
            .map(|piece| Ok(Event::Text(piece.to_owned())))
            .collect();
        let finish = if is_cut { "length" } else { "stop" };
        events.push(Ok(Event::Finish(finish.to_owned())));
        events.push(Ok(Event::Usage(taken(call, &text))));
        future::ready(Ok(stream::iter(events).boxed())).boxed()
    }
}

/// What a call and its answer take, counted as the provider of the model does.
fn taken(call: Call, answer: &str) -> Usage {
    let request = ChatRequest::from_value(Value::Object(call.request)).ok();
    let name = request.as_ref().and_then(ChatRequest::model);
    let counter = ChatCounter::for_model(&Models::default().find(name.unwrap_or_default()));
    Usage {
        input: request.map_or(0, |request| counter.count(&request).tokens),
        output: counter.tokens().count(answer),
        cached: None,
    }
}

fn last_message(call: &Call) -> &str {
    let messages = call.request.get("messages").and_then(Value::as_array);
    let content = messages.and_then(|messages| messages.last()?.get("content")?.as_str());
    content.unwrap_or_default()
}

/// The lists at the top of a document, as things to count.
fn lists(document: &str) -> String {
    let document: Value = serde_json::from_str(document).unwrap_or_default();
    let kpi = |name: &str, path: &str, list: &Vec<Value>| json!({ "id": name, "description": name, "json_path": path, "target_value": list.len() });
    let kpis: Vec<Value> = match &document {
        Value::Array(list) => vec![kpi("items", "$[*]", list)],
        Value::Object(members) => members
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_array()?)))
            .map(|(name, list)| kpi(name, &format!("$['{name}'][*]"), list))
            .collect(),
        _ => Vec::new(),
    };
    json!({ "kpis": kpis }).to_string()
}

/// The next piece of a document, and what of the text before it is to be repeated.
struct Piece<'a> {
    document: &'a str,
    from: usize,
    end: usize,
    repeated: &'a str,
}

impl Piece<'_> {
    /// What is said, and what that is: in a document that repeats itself the very words that were
    /// asked for may come elsewhere than before the rest, and nobody could tell.
    fn say(&self, behaviour: Behaviour, random: &mut Random) -> (Behaviour, String) {
        let text = self.words(behaviour, random);
        let rest = &self.document[self.from..self.end];
        let found = text.find(self.repeated).map(|at| at + self.repeated.len());
        if behaviour.repeats_to_the_byte() || found.is_none_or(|end| text[end..] == *rest) {
            return (behaviour, text);
        }
        (Behaviour::AsAsked, format!("{}{rest}", self.repeated))
    }

    fn words(&self, behaviour: Behaviour, random: &mut Random) -> String {
        let rest = &self.document[self.from..self.end];
        let before = &self.document[..self.from];
        let repeated = self.repeated;
        let is_cut = self.end < self.document.len();
        match behaviour {
            Behaviour::RestartsDocument if before.len() <= LONGEST_RESTART => {
                format!("{before}{rest}")
            }
            Behaviour::AsAsked | Behaviour::RestartsDocument | Behaviour::RemembersBlanks => {
                format!("{repeated}{rest}")
            }
            Behaviour::Fenced if is_cut => {
                format!("Sure! Here it is:\n\n```json\n{repeated}{rest}")
            }
            Behaviour::Fenced => format!("```json\n{repeated}{rest}\n```\n\nThat is all of it."),
            Behaviour::Thinking => {
                format!("<think>I must repeat the end and go on.</think>\n{repeated}{rest}")
            }
            Behaviour::TellsProgress => {
                let share = self.end * 100 / self.document.len().max(1);
                format!("PROGRESS: {share}\n{repeated}{rest}")
            }
            Behaviour::RestartsItem => format!("{}{rest}", &before[self.item_start()..]),
            Behaviour::OtherSpaces => format!("{}{rest}", self.respaced()),
            Behaviour::OtherEscapes => format!("{}{rest}", escaped(repeated)),
            Behaviour::RepeatsLess => {
                let kept = (repeated.chars().count() * 2 / 3).max(30);
                format!("{}{rest}", last_characters(repeated, kept))
            }
            Behaviour::RepeatsMore => {
                let more = repeated.chars().count() + 20 + random.below(60);
                format!("{}{rest}", last_characters(before, more))
            }
            Behaviour::Apologises => {
                "I'm sorry, but I can't continue this text in the middle of a value.".to_owned()
            }
            Behaviour::OnlyRepeats => repeated.to_owned(),
            Behaviour::SaysNothing => String::new(),
            Behaviour::SendsForeignJson => {
                r#"{"error": {"message": "overloaded", "type": "server_error"}}"#.to_owned()
            }
        }
    }

    /// What is missing of the outermost open array, in the containers around it. The item that was
    /// cut is written again, whole.
    fn in_wrapper(&self) -> String {
        let before = &self.document[..self.from];
        let open = open_containers(before);
        let is_array = |opener: &usize| before.as_bytes()[*opener] == b'[';
        let depth = open
            .iter()
            .position(is_array)
            .map_or(open.len(), |array| array + 1);
        let mut text = String::new();
        for (index, &opener) in open[..depth].iter().enumerate() {
            let key = key_before(&before[..opener]).filter(|_| index > 0);
            if let Some(key) = key {
                let _ = write!(text, "{key}: "); // a string takes everything
            }
            text.push_str(&before[opener..=opener]);
        }
        let items = depth.checked_sub(1).map_or(0, |last| open[last] + 1);
        let item = last_comma(&before[items..]).map_or(items, |at| items + at + 1);
        let (begun, rest) = (
            before[item..].trim_start(),
            &self.document[self.from..self.end],
        );
        // An item that is whole is not missing.
        if open.len() == depth && place(before) == Some(CutPlace::AfterValue) {
            let rest = rest.trim_start();
            return text + rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        text + begun + rest
    }

    /// Where an item begins that holds the cut.
    fn item_start(&self) -> usize {
        let before = &self.document[..self.from];
        let open = open_containers(before);
        // An item like the one before it could be either of them to a reader.
        let is_alone = |start: usize| {
            let near = self
                .document
                .floor_char_boundary(start.saturating_sub(LONGEST_RESTART));
            let end = self.document.floor_char_boundary(self.from - 1);
            !self.document[near..end].contains(&before[start..])
        };
        let inner = open
            .into_iter()
            .skip(1)
            .find(|&start| self.from - start <= LONGEST_RESTART && is_alone(start));
        inner.unwrap_or(self.from.saturating_sub(self.repeated.len()))
    }

    /// What is repeated, as somebody with another taste would set it.
    fn respaced(&self) -> String {
        let start = self.from.saturating_sub(self.repeated.len());
        let place = place(&self.document[..self.document.floor_char_boundary(start)]);
        let mut in_string = matches!(
            place,
            Some(CutPlace::String | CutPlace::Escape | CutPlace::Key)
        );
        let mut is_escaped = false;
        let mut text = String::with_capacity(self.repeated.len());
        for character in self.repeated.chars() {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' if in_string => is_escaped = true,
                '"' => in_string = !in_string,
                ' ' | '\n' | '\r' | '\t' if !in_string => continue,
                _ => {}
            }
            text.push(character);
            if !in_string && matches!(character, ',' | '{' | '[') {
                text.push('\n');
            }
        }
        if !in_string {
            text.truncate(text.trim_end_matches('\n').len());
        }
        text
    }
}

/// Nobody says more than this again.
const LONGEST_RESTART: usize = 4000;

/// What a text is in the middle of, if it is cut.
fn place(text: &str) -> Option<CutPlace> {
    let mut scanner = Scanner::new();
    scanner.feed(text.as_bytes());
    scanner.cut().map(|cut| cut.place)
}

/// The brackets that are open at the end of a text, outermost first.
fn open_containers(text: &str) -> Vec<usize> {
    let mut open = Vec::new();
    outside_strings(text, |at, byte| match byte {
        b'{' | b'[' => open.push(at),
        b'}' | b']' => drop(open.pop()),
        _ => {}
    });
    open
}

/// The last comma that is in no container and no string of a text.
fn last_comma(text: &str) -> Option<usize> {
    let (mut depth, mut comma) = (0_usize, None);
    outside_strings(text, |at, byte| match byte {
        b'{' | b'[' => depth += 1,
        b'}' | b']' => depth = depth.saturating_sub(1),
        b',' if depth == 0 => comma = Some(at),
        _ => {}
    });
    comma
}

fn outside_strings(text: &str, mut visit: impl FnMut(usize, u8)) {
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if !in_string => visit(at, byte),
            _ => {}
        }
    }
}

/// The name, with its quotes, of the member whose value a text stops before.
fn key_before(text: &str) -> Option<&str> {
    let key = text.trim_end().strip_suffix(':')?.trim_end();
    let inside = key.strip_suffix('"')?;
    let start = inside.rmatch_indices('"').map(|(at, _)| at).find(|&at| {
        inside[..at]
            .bytes()
            .rev()
            .take_while(|byte| *byte == b'\\')
            .count()
            % 2
            == 0
    })?;
    Some(&key[start..])
}

/// Everything beyond ASCII as an escape, as some models write it.
fn escaped(text: &str) -> String {
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
    let start = text.char_indices().rev().take(count).last();
    &text[start.map_or(text.len(), |(start, _)| start)..]
}

/// A text in pieces of about so many bytes.
fn pieces(text: &str, len: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.ceil_char_boundary(len.min(rest.len()));
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}
