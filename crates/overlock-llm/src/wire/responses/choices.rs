//! How the items of a response become choices of the assembler: a text, and the function calls after
//! it.

use std::collections::BTreeMap;

use super::writer::{PartKey, PartPlace};
use crate::assembler::{Assembler, Delta};

/// How the items of a response become choices.
#[derive(Default)]
pub(super) struct Choices {
    pub(super) parts: BTreeMap<PartPlace, PartKey>,
    pub(super) tools: BTreeMap<PartKey, String>,
    /// The last choice.
    pub(super) last: u64,
    has_text: bool,
    calls: usize,
    is_opaque: bool,
}

impl Choices {
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
    pub(super) fn text(&mut self, place: PartPlace, assembler: &mut Assembler) -> PartKey {
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
        output: u64,
        tool: Option<&str>,
        assembler: &mut Assembler,
    ) -> PartKey {
        let content = None;
        let place = PartPlace { output, content };
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

/// Whether an item is neither a message nor a function call, and acts.
pub(super) fn is_opaque(kind: &str) -> bool {
    !matches!(
        kind,
        "message" | "function_call" | "reasoning" | "compaction"
    )
}
