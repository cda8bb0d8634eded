//! How the items of an answer become choices of the assembler: a text, and the tool calls after it.

use std::collections::BTreeMap;

use crate::assembler::{Assembler, Delta, PartText};

/// A choice of the assembler and the index of a call in it.
pub(super) type PartKey = (u64, Option<usize>);

/// How the items of an answer become choices. A part is found by its place in the protocol.
pub(super) struct Choices<P> {
    pub(super) parts: BTreeMap<P, PartKey>,
    pub(super) tools: BTreeMap<PartKey, String>,
    /// The last choice.
    pub(super) last: u64,
    has_text: bool,
    calls: usize,
    is_opaque: bool,
}

impl<P> Default for Choices<P> {
    fn default() -> Self {
        Self {
            parts: BTreeMap::new(),
            tools: BTreeMap::new(),
            last: 0,
            has_text: false,
            calls: 0,
            is_opaque: false,
        }
    }
}

impl<P: Copy + Ord> Choices<P> {
    /// Begins another choice, unless the last one is empty.
    fn turn(&mut self, assembler: &mut Assembler) {
        if !self.has_text && self.calls == 0 && !self.is_opaque {
            return;
        }
        let finish = if self.calls > 0 || self.is_opaque {
            "tool_calls"
        } else {
            "stop"
        };
        assembler.feed(self.last, Delta::Finish(finish));
        self.last += 1;
        (self.has_text, self.calls, self.is_opaque) = (false, 0, false);
    }

    /// The text at a place.
    pub(super) fn text(&mut self, place: P, assembler: &mut Assembler) -> PartKey {
        if let Some(key) = self.parts.get(&place) {
            return *key;
        }
        self.turn(assembler);
        self.has_text = true;
        let key = (self.last, None);
        assembler.feed(self.last, Delta::Text(""));
        self.parts.insert(place, key);
        key
    }

    /// The arguments of the call at a place.
    pub(super) fn call(
        &mut self,
        place: P,
        tool: Option<&str>,
        assembler: &mut Assembler,
    ) -> PartKey {
        if let Some(key) = self.parts.get(&place) {
            return *key;
        }
        if self.is_opaque {
            self.turn(assembler);
        }
        let key = (self.last, Some(self.calls));
        self.calls += 1;
        assembler.feed(self.last, delta(key, ""));
        self.parts.insert(place, key);
        self.tools.insert(key, tool.unwrap_or_default().to_owned());
        key
    }

    /// An item that is never continued, such as a call of a custom tool.
    pub(super) fn opaque(&mut self, tool: &str, assembler: &mut Assembler) {
        self.turn(assembler);
        self.is_opaque = true;
        assembler.feed(self.last, Delta::FunctionArguments(""));
        self.tools.insert((self.last, None), tool.to_owned());
    }

    pub(super) fn end(&self, finish: &str, assembler: &mut Assembler) {
        let has_calls = self.calls > 0 || self.is_opaque;
        let finish = if finish == "stop" && has_calls {
            "tool_calls"
        } else {
            finish
        };
        assembler.feed(self.last, Delta::Finish(finish));
    }
}

pub(super) fn delta((_, call): PartKey, text: &str) -> Delta<'_> {
    match call {
        None => Delta::Text(text),
        Some(call) => Delta::ToolArguments { call, text },
    }
}

/// A part that is being assembled.
pub(super) fn part_in(assembler: &Assembler, (choice, call): PartKey) -> Option<&PartText> {
    let mut choices = assembler.choices();
    let (_, parts) = choices.find(|(index, _)| *index == choice)?;
    match call {
        None => Some(&parts.content),
        Some(call) => parts.calls.get(call),
    }
}
