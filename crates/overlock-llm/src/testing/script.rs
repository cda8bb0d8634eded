//! The scripted model.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::wire::chat::ChatRequest;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, future, stream};
use overlock_budget::{ChatCounter, Models};
use overlock_json::{CutPlace, Scanner};
use serde_json::{Value, json};

use super::behaviour::Behaviour;
use super::document_search::DocumentSearch;
use super::random::Random;
use super::state::ModelState;
use crate::backend::{Backend, BackendError, Call, Event, Events, Usage};
use crate::prompt::{KPI_FORM, OVERLAP, WRITTEN};

/// The document and the behaviours of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The document.
    pub document: String,
    /// The minimum and maximum length of a piece in bytes.
    pub breath: (usize, usize),
    /// The behaviours for continuations. They are used in random order, each once before any comes
    /// twice. If empty, [`Behaviour::AsAsked`].
    pub behaviours: Vec<Behaviour>,
    /// The seed of all randomness.
    pub seed: u64,
}

/// A model that plays a script.
///
/// Like a real model, it finds in the prompt where it had stopped, so a call may be repeated or
/// made by another process.
pub struct ScriptedModel {
    script: Script,
    search: DocumentSearch,
    state: Mutex<ModelState>,
}

/// What a prompt asks for.
enum PromptKind<'a> {
    Document,
    /// The text after this one, which the answer should repeat.
    Overlap(&'a str),
    /// The text after this one, without repeating it.
    Prefill(&'a str),
    /// The part of the document after this text, as a separate document.
    Remainder(&'a str),
    /// The KPIs of the document.
    Kpis,
}

/// The answer to a call.
struct ScriptedAnswer {
    text: String,
    is_cut: bool,
}

impl ScriptedModel {
    /// A model that plays this script.
    pub fn new(script: Script) -> Self {
        Self {
            search: DocumentSearch::new(&script.document),
            state: Mutex::new(ModelState::new(script.seed)),
            script,
        }
    }

    /// Its behaviour in each call for its document so far.
    pub fn behaved(&self) -> Vec<Behaviour> {
        self.state().behaved.clone()
    }

    /// The answer to a call.
    fn answer(&self, call: &Call) -> ScriptedAnswer {
        let state = &mut *self.state();
        let kind = match &call.prefill {
            Some(prefill) => PromptKind::Prefill(prefill),
            None => PromptKind::from_prompt(last_message(call)),
        };
        let words = kind.without_quotation(last_message(call));
        let find = |text: &str| {
            let again = state.place(&self.script.document, words, text);
            again.or_else(|| self.search.end_of(text, state.furthest))
        };
        let (from, repeated) = match kind {
            PromptKind::Kpis => {
                return ScriptedAnswer {
                    text: list_kpis(&self.script.document),
                    is_cut: false,
                };
            }
            PromptKind::Document => (Some(0), ""),
            PromptKind::Overlap(text) => (find(text), text),
            PromptKind::Remainder(text) => (find(text), ""),
            // A raw completion has the prompt before the prefill, so only the end is searched.
            PromptKind::Prefill(text) => {
                let ends = [200, 100, 60, 40, 20].map(|count| last_characters(text, count));
                (ends.into_iter().find_map(find), "")
            }
        };
        // A prompt without a part of the document asks for all of it.
        let mut from = from.unwrap_or(0);
        if matches!(kind, PromptKind::Prefill(_)) && self.remembers_blanks() {
            let unseen = self.script.document.get(from..state.furthest);
            if unseen.is_some_and(|unseen| unseen.trim().is_empty()) {
                from = state.furthest;
            }
        }
        let document = &self.script.document;
        let end = state.next_stop(&self.script, from);
        let piece = NextPiece {
            document,
            from,
            end,
            repeated,
        };
        let (behaviour, text) = match kind {
            PromptKind::Document | PromptKind::Kpis | PromptKind::Prefill(_) => {
                (Behaviour::AsAsked, document[from..end].to_owned())
            }
            PromptKind::Remainder(_) => (Behaviour::AsAsked, piece.as_remainder()),
            PromptKind::Overlap(_) => {
                let cut_in_space = repeated.ends_with([' ', '\n', '\r', '\t']);
                let behaviour = state.next_behaviour(&self.script, from, cut_in_space);
                piece.write(behaviour, &mut state.random)
            }
        };
        let answer_end = if behaviour.has_new_text() { end } else { from };
        state.record(behaviour, words, from..answer_end);
        ScriptedAnswer {
            text,
            is_cut: answer_end < document.len() && behaviour.has_new_text(),
        }
    }

    fn state(&self) -> MutexGuard<'_, ModelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remembers_blanks(&self) -> bool {
        self.script.behaviours == [Behaviour::RemembersBlanks]
    }
}

impl<'a> PromptKind<'a> {
    fn from_prompt(prompt: &'a str) -> Self {
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

    /// The prompt without the quoted end of the document. A prefill grows when its answer was accepted, and so stands for its prompt.
    fn without_quotation(&self, prompt: &'a str) -> &'a str {
        match self {
            Self::Overlap(text) | Self::Remainder(text) => {
                prompt.rfind(text).map_or(prompt, |at| &prompt[..at])
            }
            Self::Prefill(text) => text,
            Self::Document | Self::Kpis => prompt,
        }
    }
}

impl Backend for ScriptedModel {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        const PIECE: usize = 160;
        let ScriptedAnswer { text, is_cut } = self.answer(&call);
        let mut events: Vec<_> = pieces(&text, PIECE)
            .map(|piece| Ok(Event::Text(piece.to_owned())))
            .collect();
        let finish = if is_cut { "length" } else { "stop" };
        events.push(Ok(Event::Finish(finish.to_owned())));
        events.push(Ok(Event::Usage(usage(call, &text))));
        future::ready(Ok(stream::iter(events).boxed())).boxed()
    }
}

/// The usage of a call, counted with the model's tokenizer.
fn usage(call: Call, answer: &str) -> Usage {
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

/// The top-level arrays of a document as KPIs.
fn list_kpis(document: &str) -> String {
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

/// The next piece of a document, and the text before it that should be repeated.
struct NextPiece<'a> {
    document: &'a str,
    from: usize,
    end: usize,
    repeated: &'a str,
}

impl NextPiece<'_> {
    /// Writes the piece. If the document contains the repeated text elsewhere, an inexact
    /// repetition could be joined there, so it is written as asked instead.
    fn write(&self, behaviour: Behaviour, random: &mut Random) -> (Behaviour, String) {
        let text = self.text(behaviour, random);
        let rest = &self.document[self.from..self.end];
        let repeated_end = text.find(self.repeated).map(|at| at + self.repeated.len());
        if behaviour.repeats_exactly() || repeated_end.is_none_or(|end| text[end..] == *rest) {
            return (behaviour, text);
        }
        (Behaviour::AsAsked, format!("{}{rest}", self.repeated))
    }

    fn text(&self, behaviour: Behaviour, random: &mut Random) -> String {
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
                let count = (repeated.chars().count() * 2 / 3).max(30);
                format!("{}{rest}", last_characters(repeated, count))
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

    /// The missing part of the outermost open array, in its containers. The cut item is written
    /// again from its start.
    fn as_remainder(&self) -> String {
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
                let _ = write!(text, "{key}: "); // writing to a string cannot fail
            }
            text.push_str(&before[opener..=opener]);
        }
        let items = depth.checked_sub(1).map_or(0, |last| open[last] + 1);
        let item = last_comma(&before[items..]).map_or(items, |at| items + at + 1);
        let begun = before[item..].trim_start();
        let rest = &self.document[self.from..self.end];
        // A complete item is not missing.
        if open.len() == depth && place(before) == Some(CutPlace::AfterValue) {
            let rest = rest.trim_start();
            return text + rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        text + begun + rest
    }

    /// The start of an item that contains the cut.
    fn item_start(&self) -> usize {
        let before = &self.document[..self.from];
        let open = open_containers(before);
        // An item equal to an earlier one would be ambiguous.
        let is_unique = |start: usize| {
            let near = self
                .document
                .floor_char_boundary(start.saturating_sub(LONGEST_RESTART));
            let end = self.document.floor_char_boundary(self.from - 1);
            !self.document[near..end].contains(&before[start..])
        };
        let inner = open
            .into_iter()
            .skip(1)
            .find(|&start| self.from - start <= LONGEST_RESTART && is_unique(start));
        inner.unwrap_or(self.from.saturating_sub(self.repeated.len()))
    }

    /// The repeated text with other white space.
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

/// The maximum length that is repeated.
const LONGEST_RESTART: usize = 4000;

/// The place of the cut in a text, if it is cut.
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

/// The last comma of a text outside containers and strings.
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

/// The quoted key at the end of a text, if its value comes next.
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

/// A text with escaped non-ASCII characters, as some models write it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(escaped, "\\u{unit:04x}"); // writing to a string cannot fail
        }
    }
    escaped
}

fn last_characters(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().take(count).last();
    &text[start.map_or(text.len(), |(start, _)| start)..]
}

/// A text in pieces of about this length.
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
