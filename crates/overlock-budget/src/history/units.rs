//! Divides a conversation into units that are kept or dropped as a whole.
//!
//! A unit is a turn: a user message with its answers. Turns are joined if a tool call would be
//! separated from its result. The last unit is the open turn, which the model has not answered, so it
//! always stays. System messages always stay in every unit.

use std::collections::HashMap;
use std::ops::Range;

use super::{Message, Role};

/// Which messages of a conversation stay or go together.
#[derive(Clone, Debug, Default)]
pub struct Units {
    /// Where each unit begins; the last is the open turn, which ends with the conversation.
    starts: Vec<usize>,
    /// For each message, whether it always stays.
    required: Vec<bool>,
    last_user_message: Option<usize>,
}

impl Units {
    /// The units of a conversation.
    pub fn of<M: Message>(messages: &[M]) -> Self {
        let reach = reach(messages);
        let mut starts = Vec::new();
        let mut last_user_message = None;
        let mut joined_up_to = 0;
        for (place, message) in messages.iter().enumerate() {
            let is_user_message = is_user_message(message);
            if is_user_message {
                last_user_message = Some(place);
            }
            if place == 0 || (is_user_message && place > joined_up_to) {
                starts.push(place);
            }
            joined_up_to = joined_up_to.max(reach[place]);
        }
        let open = starts.last().copied().unwrap_or(0);
        let required = messages
            .iter()
            .enumerate()
            .map(|(place, message)| place >= open || message.role() == Role::System)
            .collect();
        Self {
            starts,
            required,
            last_user_message,
        }
    }

    /// Makes the open turn begin at a message or before.
    pub fn open_from(&mut self, start: usize) {
        self.starts.retain(|&unit| unit <= start);
        let open = self.open_start();
        self.required[open..].fill(true);
    }

    /// The index of the last user message.
    pub(crate) fn last_user_message(&self) -> Option<usize> {
        self.last_user_message
    }

    /// Where the open turn begins.
    ///
    /// Without a user message, the whole conversation is open.
    pub fn open_start(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The units that may be dropped: all but the open turn.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.starts.iter().skip(1);
        let units = self.starts.iter().zip(ends);
        units.map(|(&start, &end)| start..end).rev()
    }

    /// The messages of a unit that may be dropped.
    pub(crate) fn free(&self, unit: Range<usize>) -> impl Iterator<Item = usize> {
        unit.filter(|&place| !self.required[place])
    }

    /// The messages that stay if all before `start` that may be dropped are dropped.
    pub(crate) fn kept_from(&self, start: usize) -> impl Iterator<Item = usize> {
        (0..self.required.len()).filter(move |&place| place >= start || self.required[place])
    }

    /// The messages before `start` that may be dropped.
    pub(crate) fn dropped_before(&self, start: usize) -> impl Iterator<Item = usize> {
        self.free(0..start)
    }
}

/// Some providers send tool results as user messages, which the user did not write.
fn is_user_message<M: Message>(message: &M) -> bool {
    message.role() == Role::User && message.answers().is_empty()
}

/// For each message, the last message it must not be separated from; itself if there is none.
fn reach<M: Message>(messages: &[M]) -> Vec<usize> {
    let mut reach: Vec<usize> = (0..messages.len()).collect();
    let mut callers: HashMap<&str, usize> = HashMap::new();
    for (place, message) in messages.iter().enumerate() {
        let answers = message.answers();
        for call in &answers {
            if let Some(&caller) = callers.get(call) {
                reach[caller] = place;
            }
        }
        // A result without an identifier belongs to the message before it.
        if answers.is_empty() && message.role() == Role::Tool && place > 0 {
            reach[place - 1] = place;
        }
        callers.extend(message.calls().into_iter().map(|call| (call, place)));
    }
    reach
}
