//! Explains the figures of a plan.

use super::{Part, Plan, PlannedPart};
use crate::chat::Tool;
use crate::flex::{Blocker, Change};
use crate::models::Sharing;

impl Plan {
    /// An explanation of every figure, one per line.
    pub fn explanation(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "window: {} tokens, of which {} are left free because {}",
            self.window, self.margin.tokens, self.margin.reason
        )];
        let told = |planned: &&PlannedPart| planned.asked > 0 || planned.dropped > 0;
        lines.extend(self.parts.iter().filter(told).map(explain_part));
        let from = match self.sharing {
            Sharing::Shared => "in the window",
            Sharing::Separate => "outside the window",
        };
        lines.push(format!(
            "answer: {} requested, {} available {from}, {} given ({})",
            self.requested,
            self.available,
            self.adjusted_max_tokens,
            self.adjustment.name()
        ));
        lines.extend(self.blocker.clone());
        lines
    }
}

impl PlannedPart {
    /// Explains the tokens of the part.
    ///
    /// The share is mentioned only if it differs: messages and tools are dropped as a whole, and the
    /// unused rest of their shares goes to the answer.
    pub fn explanation(&self) -> String {
        let Self {
            part, share, given, ..
        } = *self;
        if part == Part::Results && self.dropped > 0 {
            let all = self.kept + self.dropped;
            return format!("{} of {all} results became marks", self.dropped);
        }
        let mut told = vec![self.change_text()];
        if part == Part::Completion && given > share && given < self.asked {
            let more = given - share;
            told.push(format!(
                "{share} are its share, {more} more are what others leave"
            ));
        }
        if self.dropped > 0 && given < share {
            let pieces = pieces(part);
            told.push(format!(
                "whole {pieces} take {given} of its share of {share}"
            ));
        }
        if self.dropped > 0 {
            let all = self.kept + self.dropped;
            told.push(format!("{} of {all} {} stay", self.kept, pieces(part)));
        }
        told.join("; ")
    }

    /// The difference to the requested tokens, and why.
    fn change_text(&self) -> String {
        let Self {
            part,
            asked,
            share,
            given,
            ..
        } = *self;
        if given == asked && !self.at_least {
            return "as wanted".to_owned();
        }
        if part == Part::OpenTurn && given < asked {
            return format!("results truncated by {} in the middle", asked - given);
        }
        if part == Part::Frame {
            return "as the chat template has it".to_owned();
        }
        if let Some(by) = given.checked_sub(asked).filter(|by| *by > 0) {
            return match self.change {
                Change::Grew {
                    weight, weights, ..
                } => format!("grew by {by} (weight {weight} of {weights})"),
                _ => format!("{by} more than asked"),
            };
        }
        let at_least = if self.at_least { "at least " } else { "" };
        let by = asked - given;
        match self.change {
            Change::Shrank {
                weight,
                weights,
                to_floor,
                ..
            } => {
                let is_floor = to_floor && given == share;
                let end = if is_floor { ", to its minimum" } else { "" };
                format!("shrank by {at_least}{by} (weight {weight} of {weights}){end}")
            }
            Change::Dropped { floor } if given == 0 => {
                format!("dropped: it needs at least {floor}")
            }
            _ => {
                let is_capped = part == Part::Completion && given == share;
                let why = match (is_capped, self.dropped) {
                    (true, _) => ", since the model says no more",
                    (false, 0) => "",
                    (false, _) => ", since no more fits",
                };
                format!("{at_least}{by} less than asked{why}")
            }
        }
    }
}

fn explain_part(planned: &PlannedPart) -> String {
    let at_least = if planned.at_least { "at least " } else { "" };
    format!(
        "{}: {} of {at_least}{} tokens, {}",
        planned.part.name(),
        planned.given,
        planned.asked,
        planned.explanation()
    )
}

fn pieces(part: Part) -> &'static str {
    match part {
        Part::Tools => "tools",
        Part::Context => "blocks",
        Part::Memories => "memories",
        _ => "messages",
    }
}

/// What limits the plan, in a sentence.
pub(super) fn blocker(blocker: Blocker, parts: &[PlannedPart], window: u64) -> String {
    let name = |index: usize| parts.get(index).map_or("", |planned| planned.part.name());
    match blocker {
        Blocker::Floor { index, tokens } => format!(
            "what takes the most room and cannot shrink is `{}`, which keeps at least {tokens} tokens",
            name(index)
        ),
        Blocker::Priority { index, tokens } => format!(
            "what takes the most room is `{}`, with {tokens} tokens, which shrinks only after other parts",
            name(index)
        ),
        Blocker::Window => {
            format!("only a window of more than {window} tokens would help")
        }
        Blocker::Ceiling { index, tokens } => format!(
            "room is left because `{}` takes no more than {tokens}",
            name(index)
        ),
    }
}

/// The names of tools.
pub(super) fn tool_names(tools: &[Tool], places: &[usize]) -> Vec<String> {
    let names = places.iter().map(|&place| tools[place].name.to_owned());
    names.collect()
}
