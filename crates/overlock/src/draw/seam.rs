//! Shows a seam: the two edges one above the other, with what came twice marked.

use overlock_json::{Outcome, Seam};

use super::cells::{Drawn, head, tail};
use super::words::grouped;
use super::{CUT, FAINT, NEW, REPEATED, STRONG};

/// A seam and the texts on both sides of it, ready to be drawn.
pub(crate) struct SeamDrawing<'a> {
    seam: &'a Seam,
    /// The base up to the seam.
    base: &'a [u8],
    /// What the fragment said before it brought anything new, and after.
    repeated: &'a [u8],
    new: &'a [u8],
}

impl<'a> SeamDrawing<'a> {
    /// `base` is the document after the stitch, and `fragment` the piece as it came.
    pub(crate) fn new(base: &'a [u8], fragment: &'a [u8], seam: &'a Seam) -> Self {
        let (base, joined) = base.split_at(seam.offset.min(base.len()));
        let (repeated, new) = if seam.outcome.is_accepted() {
            split_fragment(base, joined, fragment, seam)
        } else {
            (&fragment[..0], fragment)
        };
        Self {
            seam,
            base,
            repeated,
            new,
        }
    }

    /// The drawing: what happened, then the two edges.
    pub(crate) fn lines(&self, title: &str, width: usize) -> Vec<String> {
        let mut lines = vec![format!(
            "{STRONG}{title}{STRONG:#}  {}",
            sentence(self.seam)
        )];
        // One column is the seam's own.
        let room = width.saturating_sub(LABEL + 3);
        if let Some(reason) = reason(&self.seam.outcome) {
            lines.push(label("why", &head(reason.as_bytes(), room).text));
        }
        let left = room * 3 / 5;
        let base = tail(self.base, left);
        lines.push(label(
            "base",
            &format!(
                "{}{}{FAINT}│{FAINT:#}",
                " ".repeat(left - base.width),
                base.text
            ),
        ));
        let repeated = tail(self.repeated, left);
        if self.seam.outcome.is_accepted() {
            let new = head(self.new, room - left);
            lines.push(label(
                "next",
                &format!(
                    "{}{REPEATED}{}{REPEATED:#}{FAINT}│{FAINT:#}{NEW}{}{NEW:#}",
                    " ".repeat(left - repeated.width),
                    repeated.text,
                    new.text
                ),
            ));
            lines.extend(self.mark(&repeated, left));
        } else {
            lines.push(label("next", &head(self.new, room).text));
        }
        lines
    }

    /// The line under the repeated part.
    fn mark(&self, repeated: &Drawn, left: usize) -> Option<String> {
        let count = self.seam.overlap;
        if count == 0 || repeated.width == 0 {
            return None;
        }
        let words = format!(" {} repeated", grouped(count));
        let strokes = "~".repeat(repeated.width);
        let indent = " ".repeat(left - repeated.width);
        Some(label(
            "",
            &format!("{indent}{REPEATED}{strokes}{REPEATED:#}{FAINT}{words}{FAINT:#}"),
        ))
    }
}

/// What became of a piece, in words.
fn sentence(seam: &Seam) -> String {
    let name = seam.outcome.name();
    if !seam.outcome.is_accepted() {
        return format!("{CUT}{name}{CUT:#}: nothing was joined");
    }
    format!(
        "{NEW}{name}{NEW:#}: {} characters repeated, {} bytes added",
        grouped(seam.overlap),
        grouped(seam.added)
    )
}

/// Why a piece was not joined.
fn reason(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Repeat => Some("all of it is there already".into()),
        Outcome::Ambiguous { shorter, longer } => Some(format!(
            "two joins are lawful, after {} or {} characters",
            grouped(*shorter),
            grouped(*longer)
        )),
        Outcome::NoMatch(mismatch) => Some(mismatch.to_string()),
        _ => None,
    }
}

const LABEL: usize = 6;

fn label(name: &str, line: &str) -> String {
    format!("  {FAINT}{name:<LABEL$}{FAINT:#}{line}")
}

/// Finds where in the fragment the new part begins, so that its raw edge can be shown.
fn split_fragment<'a>(
    base: &'a [u8],
    joined: &'a [u8],
    fragment: &'a [u8],
    seam: &Seam,
) -> (&'a [u8], &'a [u8]) {
    /// What is drawn is short, and so is what must be found.
    const EDGE: usize = 200;
    let new_start = match seam.outcome {
        Outcome::Overlap => {
            let overlap = last_characters(base, seam.overlap);
            let edge = &overlap[..overlap.len().min(EDGE)];
            find(fragment, edge).map(|start| start + overlap.len())
        }
        _ => find(fragment, &joined[..joined.len().min(EDGE)]),
    };
    match new_start.and_then(|start| fragment.split_at_checked(start)) {
        Some((before, new)) => (repeated_part(before, base, seam), new),
        // It was joined in another form than it came in: show what was joined.
        None => (&fragment[..0], joined),
    }
}

/// Of what stands before the new part, only what the base has too: no fence, no prose.
fn repeated_part<'a>(before: &'a [u8], base: &[u8], seam: &Seam) -> &'a [u8] {
    match seam.outcome {
        Outcome::Overlap => {
            let length = last_characters(base, seam.overlap).len();
            &before[before.len().saturating_sub(length)..]
        }
        _ => last_characters(before, seam.overlap),
    }
}

fn last_characters(text: &[u8], count: usize) -> &[u8] {
    let mut left = count;
    let mut start = text.len();
    while left > 0 && start > 0 {
        start -= 1;
        left -= usize::from(text[start] & 0xC0 != 0x80);
    }
    &text[start..]
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return None;
    }
    text.windows(needle.len())
        .position(|window| window == needle)
}
