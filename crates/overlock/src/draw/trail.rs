//! Draws the open containers at a cut, from the root inwards.

use overlock_json::{Closing, Cut, CutPlace, PartialDocument};

use super::cells::head;
use super::words::grouped;

/// The levels that are shown from the root and from the cut, if there are too many.
const OUTER: usize = 4;
const INNER: usize = 6;
/// The longest key that is shown in full.
const KEY_COLUMNS: usize = 24;

/// The open containers from the root inwards, each with the step taken into it:
/// `{ sections: [ 1: { content: "`.
pub(crate) fn open_trail(base: &PartialDocument<'_>, cut: &Cut, closing: &Closing) -> String {
    let depth = base.scanner().depth();
    let trail = Trail {
        // The closers end with the brackets of the containers, the outermost last.
        brackets: closing
            .closers
            .as_bytes()
            .split_at(closing.closers.len().saturating_sub(depth))
            .1,
        steps: cut.path.split('/').skip(1).map(unescape).collect(),
        depth,
        leads_inside: leads_inside(cut.place),
    };
    let mut words = Vec::new();
    if depth <= OUTER + INNER {
        words.extend((0..depth).flat_map(|level| trail.level(level)));
    } else {
        words.extend((0..OUTER).flat_map(|level| trail.level(level)));
        words.push(format!("… {} levels …", grouped(depth - OUTER - INNER)));
        words.extend((depth - INNER..depth).flat_map(|level| trail.level(level)));
    }
    if matches!(
        cut.place,
        CutPlace::String | CutPlace::Escape | CutPlace::Key
    ) {
        words.push("\"".into());
    }
    words.join(" ")
}

struct Trail<'a> {
    brackets: &'a [u8],
    /// The steps of the path; the middle of a very long path may be missing.
    steps: Vec<String>,
    depth: usize,
    /// Whether the path's last step leads into the innermost container.
    leads_inside: bool,
}

impl Trail<'_> {
    /// The bracket of a level, and the key or index of the next level.
    fn level(&self, level: usize) -> Vec<String> {
        let bracket = match self.brackets.get(self.depth - 1 - level) {
            Some(b'}') => "{",
            Some(b']') => "[",
            _ => "…",
        };
        let mut words = vec![bracket.to_owned()];
        words.extend(
            self.step(level)
                .map(|step| format!("{}:", head(step.as_bytes(), KEY_COLUMNS).text)),
        );
        words
    }

    /// Counts from the root for the outer levels and from the cut for the inner ones, because the
    /// middle of a very long path may be missing.
    fn step(&self, level: usize) -> Option<&String> {
        let steps = self.depth - usize::from(!self.leads_inside);
        if level >= steps {
            return None;
        }
        if level < OUTER {
            return self.steps.get(level);
        }
        let from_end = steps - level;
        self.steps
            .len()
            .checked_sub(from_end)
            .and_then(|index| self.steps.get(index))
    }
}

/// Whether the path of a cut at this place points into the innermost container instead of at it.
fn leads_inside(place: CutPlace) -> bool {
    match place {
        CutPlace::AfterKey
        | CutPlace::AfterColon
        | CutPlace::String
        | CutPlace::Escape
        | CutPlace::Number
        | CutPlace::Literal => true,
        CutPlace::Root
        | CutPlace::ContainerStart
        | CutPlace::Key
        | CutPlace::AfterValue
        | CutPlace::AfterComma => false,
    }
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
