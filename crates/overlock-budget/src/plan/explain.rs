//! Says how every figure of a plan came about.

use super::{Part, Plan, PlannedPart};
use crate::chat::{ChatRequest, tool_name};
use crate::flex::Blocker;
use crate::models::Sharing;

impl Plan {
    /// How every figure came about, a line each.
    pub fn explanation(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "window: {} tokens, of which {} are left free because {}",
            self.window, self.margin.tokens, self.margin.reason
        )];
        let told = |planned: &&PlannedPart| planned.asked > 0 || planned.dropped > 0;
        lines.extend(self.parts.iter().filter(told).map(explain_part));
        let from = match self.sharing {
            Sharing::Shared => "in the window",
            Sharing::Separate => "beside the window",
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

fn explain_part(planned: &PlannedPart) -> String {
    let PlannedPart {
        part,
        asked,
        at_least,
        share,
        given,
        change,
        kept,
        dropped,
        ..
    } = planned;
    let at_least = if *at_least { "at least " } else { "" };
    let rest = if *part == Part::Completion && given > share {
        let more = given - share;
        format!("; {more} more that nothing whole fits into")
    } else if *part != Part::Completion && given < share {
        format!("; whole pieces take {given} of its share of {share}")
    } else {
        String::new()
    };
    let stay = if *dropped > 0 {
        let all = kept + dropped;
        format!("; {kept} of {all} {} stay", pieces(*part))
    } else {
        String::new()
    };
    let name = part.name();
    format!("{name}: {given} of {at_least}{asked} tokens, {change}{rest}{stay}")
}

fn pieces(part: Part) -> &'static str {
    match part {
        Part::Tools => "tools",
        Part::Context => "blocks",
        Part::Memories => "memories",
        _ => "messages",
    }
}

/// What stands in the way of more, in a sentence.
pub(super) fn blocker(blocker: Blocker, parts: &[PlannedPart], window: u64) -> String {
    let name = |index: usize| parts.get(index).map_or("", |planned| planned.part.name());
    match blocker {
        Blocker::Floor { index, tokens } => format!(
            "what stands in the way most is `{}`, which holds {tokens} and gives no more",
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

/// What tools are called.
pub(super) fn tool_names(request: &ChatRequest, places: &[usize]) -> Vec<String> {
    let name = |place: &usize| {
        tool_name(&request.tools()[*place])
            .unwrap_or_default()
            .to_owned()
    };
    places.iter().map(name).collect()
}
