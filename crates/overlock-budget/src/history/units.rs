//! Divides a conversation into units that stay or go as a whole.
//!
//! A unit is a run of messages: a question with all that answers it, or, after the last question,
//! a single message. A run that would separate a tool call from its result is joined with all up
//! to that result. What always stays may lie within a unit, and stays when the unit goes.

use std::collections::HashMap;
use std::ops::Range;

use super::{Message, Role};

#[derive(Clone, Debug, Default)]
pub(crate) struct Units {
    /// Where each unit begins; the last ends with the conversation.
    starts: Vec<usize>,
    /// For each message whether it always stays.
    required: Vec<bool>,
    question: Option<usize>,
}

impl Units {
    pub(crate) fn of<M: Message>(messages: &[M]) -> Self {
        let is_question: Vec<bool> = messages.iter().map(is_question).collect();
        let question = is_question.iter().rposition(|is_question| *is_question);
        let required = messages
            .iter()
            .enumerate()
            .map(|(place, message)| message.role() == Role::System || question == Some(place));

        let reach = reach(messages);
        let mut starts = Vec::new();
        let mut joined_up_to = 0;
        for place in 0..messages.len() {
            let may_start = is_question[place] || question.is_none_or(|question| place > question);
            if place == 0 || (may_start && place > joined_up_to) {
                starts.push(place);
            }
            joined_up_to = joined_up_to.max(reach[place]);
        }
        Self {
            starts,
            required: required.collect(),
            question,
        }
    }

    /// The place of the last question.
    pub(crate) fn question(&self) -> Option<usize> {
        self.question
    }

    pub(crate) fn newest_first(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.starts.iter().skip(1).copied();
        let ends: Vec<usize> = ends.chain([self.required.len()]).collect();
        let starts = self.starts.iter().copied();
        starts.zip(ends).map(|(start, end)| start..end).rev()
    }

    /// The messages of a unit that may go.
    pub(crate) fn free(&self, unit: Range<usize>) -> impl Iterator<Item = usize> {
        unit.filter(|&place| !self.required[place])
    }

    /// What stays if everything before `start` goes that may.
    pub(crate) fn kept_from(&self, start: usize) -> impl Iterator<Item = usize> {
        (0..self.required.len()).filter(move |&place| place >= start || self.required[place])
    }

    /// What goes if everything before `start` goes that may.
    pub(crate) fn dropped_before(&self, start: usize) -> impl Iterator<Item = usize> {
        self.free(0..start)
    }
}

/// Some providers send the results of tools as the user; these ask nothing.
fn is_question<M: Message>(message: &M) -> bool {
    message.role() == Role::User && message.answers().is_empty()
}

/// For each message the last place it must not be separated from; itself if there is none.
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
        // A result that does not say of which call belongs to what came just before it.
        if answers.is_empty() && message.role() == Role::Tool && place > 0 {
            reach[place - 1] = place;
        }
        callers.extend(message.calls().into_iter().map(|call| (call, place)));
    }
    reach
}
