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

#[cfg(test)]
mod tests {
    use overlock_json::{Base, StitchOptions, stitch};

    use super::SeamDrawing;

    fn drawn(base: &str, fragment: &str, expected: &str, width: usize) -> Vec<String> {
        let mut base = Base::read(base).expect("a document has begun");
        let options = StitchOptions {
            expected_overlap: Some(expected),
            ..StitchOptions::default()
        };
        let seam = stitch(&mut base, fragment, &options);
        SeamDrawing::new(base.text().as_bytes(), fragment.as_bytes(), &seam)
            .lines("seam", width)
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect()
    }

    #[test]
    fn the_two_edges_meet_in_one_column() {
        assert_eq!(
            drawn(
                "[\"one\", \"two and a ha",
                "\"two and a half\"]",
                "\"two and a ha",
                60
            ),
            [
                "seam  overlap: 13 characters repeated, 4 bytes added",
                "  base           [\"one\", \"two and a ha│",
                "  next                   \"two and a ha│lf\"]",
                "                         ~~~~~~~~~~~~~ 13 repeated",
            ]
        );
    }

    #[test]
    fn a_refused_piece_is_shown_with_the_reason() {
        let lines = drawn("[\"one\", 2, ", "I'm sorry, I cannot.", "\"one\", 2, ", 60);
        assert_eq!(lines[0], "seam  no-match: nothing was joined");
        assert!(lines[1].starts_with("  why   "), "{lines:?}");
        assert!(lines[3].starts_with("  next  I'm sorry"), "{lines:?}");
    }

    #[test]
    fn no_edge_is_wider_than_the_terminal() {
        let document = format!("[\"{}\", \"{}\"]", "wide 日本 ".repeat(30), "x".repeat(200));
        for width in 40..140 {
            for cut in [20, 60, 300, 420] {
                let cut = document.floor_char_boundary(cut);
                let overlap = document.floor_char_boundary(cut - 15);
                let (base, fragment) = (&document[..cut], &document[overlap..]);
                for line in &drawn(base, fragment, &document[overlap..cut], width)[1..] {
                    let columns = unicode_width::UnicodeWidthStr::width(line.as_str());
                    assert!(columns <= width, "{line:?} in {width}");
                }
            }
        }
    }
}
