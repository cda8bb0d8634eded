//! Draws a seam: both edges, one above the other, with the repeated text marked.

use overlock_json::{Outcome, Seam};
use overlock_llm::StepResult;

use super::cells::{Drawn, head, tail};
use super::words::grouped;
use super::{CUT, FAINT, NEW, REPEATED, STRONG};

/// The result of joining a fragment.
#[derive(Clone, Debug)]
pub(crate) enum Join {
    Made {
        /// The name of the outcome.
        name: String,
        /// Where in the base the new text begins.
        offset: usize,
        /// The number of repeated characters.
        overlap: usize,
        /// The number of new bytes.
        added: usize,
    },
    Rejected {
        name: &'static str,
        reason: String,
    },
}

/// A seam and the texts on both sides of it.
pub(crate) struct SeamDrawing<'a> {
    join: &'a Join,
    /// The base up to the seam.
    base: &'a [u8],
    /// The fragment before and after its first new byte.
    repeated: &'a [u8],
    new: &'a [u8],
}

impl Join {
    /// The result as a part of a line.
    pub(crate) fn phrase(&self) -> String {
        match self {
            Self::Rejected { reason, .. } => format!("rejected: {reason}"),
            Self::Made {
                name,
                overlap,
                added,
                ..
            } => {
                let repeated = match *overlap {
                    0 => String::new(),
                    overlap => format!("{} characters repeated, ", grouped(overlap)),
                };
                format!("{name}, {repeated}{} bytes added", grouped(*added))
            }
        }
    }

    /// The result as the title of the drawing.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Rejected { name, .. } => format!("{CUT}{name}{CUT:#}: nothing was joined"),
            Self::Made {
                name,
                overlap,
                added,
                ..
            } => format!(
                "{NEW}{name}{NEW:#}: {} characters repeated, {} bytes added",
                grouped(*overlap),
                grouped(*added)
            ),
        }
    }
}

impl From<&Seam> for Join {
    fn from(seam: &Seam) -> Self {
        let name = seam.outcome.name();
        let reason = match &seam.outcome {
            Outcome::Repeat => "it adds nothing new".into(),
            Outcome::Ambiguous { shorter, longer } => format!(
                "two joins are possible, after {} or {} characters",
                grouped(*shorter),
                grouped(*longer)
            ),
            Outcome::NoMatch(mismatch) => mismatch.to_string(),
            _ => {
                return Self::Made {
                    name: name.to_owned(),
                    offset: seam.offset,
                    overlap: seam.overlap,
                    added: seam.added,
                };
            }
        };
        Self::Rejected { name, reason }
    }
}

impl From<&StepResult> for Join {
    fn from(result: &StepResult) -> Self {
        match result {
            StepResult::Failed { failure, .. } => Self::Rejected {
                name: failure.name(),
                reason: failure.to_string(),
            },
            StepResult::Grown {
                seam,
                overlap,
                offset,
                added_bytes,
                ..
            } => Self::Made {
                name: seam.clone(),
                offset: *offset,
                overlap: *overlap,
                added: *added_bytes,
            },
        }
    }
}

impl<'a> SeamDrawing<'a> {
    /// `base` is the document after the stitch, `fragment` the unchanged piece.
    pub(crate) fn new(base: &'a [u8], fragment: &'a [u8], join: &'a Join) -> Self {
        let Join::Made {
            name,
            offset,
            overlap,
            ..
        } = join
        else {
            return Self {
                join,
                base,
                repeated: &[],
                new: fragment,
            };
        };
        let (base, joined) = base.split_at((*offset).min(base.len()));
        let is_overlap = name == Outcome::Overlap.name();
        let (repeated, new) = split_fragment(base, joined, fragment, *overlap, is_overlap);
        Self {
            join,
            base,
            repeated,
            new,
        }
    }

    /// The drawing: the result, then the two edges.
    pub(crate) fn lines(&self, title: &str, width: usize) -> Vec<String> {
        let mut lines = vec![format!(
            "{STRONG}{title}{STRONG:#}  {}",
            self.join.sentence()
        )];
        // One column is for the seam.
        let room = width.saturating_sub(LABEL + 3);
        let left = room * 3 / 5;
        let base = tail(self.base, left);
        let edge = format!(
            "{}{}{FAINT}│{FAINT:#}",
            " ".repeat(left - base.width),
            base.text
        );
        match self.join {
            Join::Rejected { reason, .. } => {
                lines.push(label("why", &head(reason.as_bytes(), room).text));
                if !self.new.is_empty() {
                    lines.push(label("base", &edge));
                    lines.push(label("next", &head(self.new, room).text));
                }
            }
            Join::Made { overlap, .. } => {
                let repeated = tail(self.repeated, left);
                let new = head(self.new, room - left);
                lines.push(label("base", &edge));
                lines.push(label(
                    "next",
                    &format!(
                        "{}{REPEATED}{}{REPEATED:#}{FAINT}│{FAINT:#}{NEW}{}{NEW:#}",
                        " ".repeat(left - repeated.width),
                        repeated.text,
                        new.text
                    ),
                ));
                lines.extend(mark(*overlap, &repeated, left));
            }
        }
        lines
    }
}

/// The line under the repeated part.
fn mark(overlap: usize, repeated: &Drawn, left: usize) -> Option<String> {
    if overlap == 0 || repeated.width == 0 {
        return None;
    }
    let words = format!(" {} repeated", grouped(overlap));
    let strokes = "~".repeat(repeated.width);
    let indent = " ".repeat(left - repeated.width);
    Some(label(
        "",
        &format!("{indent}{REPEATED}{strokes}{REPEATED:#}{FAINT}{words}{FAINT:#}"),
    ))
}

const LABEL: usize = 6;

fn label(name: &str, line: &str) -> String {
    format!("  {FAINT}{name:<LABEL$}{FAINT:#}{line}")
}

/// Splits the fragment at its first new byte: the text that the base has too, without a fence or
/// prose, and the new text.
fn split_fragment<'a>(
    base: &'a [u8],
    joined: &'a [u8],
    fragment: &'a [u8],
    overlap: usize,
    is_overlap: bool,
) -> (&'a [u8], &'a [u8]) {
    /// Enough to find the edge, since only a short part is drawn.
    const EDGE: usize = 200;
    if is_overlap {
        let repeated = last_characters(base, overlap);
        let edge = &repeated[..repeated.len().min(EDGE)];
        let start = find(fragment, edge);
        if let Some(found) =
            start.and_then(|start| fragment[start..].split_at_checked(repeated.len()))
        {
            return found;
        }
    } else if let Some(start) = find(fragment, &joined[..joined.len().min(EDGE)]) {
        let (before, new) = fragment.split_at(start);
        return (last_characters(before, overlap), new);
    }
    // The fragment was changed before it was joined, so the joined text is shown.
    (&[], joined)
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
    use overlock_json::{PartialDocument, StitchOptions, stitch};

    use super::{Join, SeamDrawing};

    fn drawn(base: &str, fragment: &str, expected: &str, width: usize) -> Vec<String> {
        let mut base = PartialDocument::read(base).expect("a document has begun");
        let options = StitchOptions {
            expected_overlap: Some(expected),
            ..StitchOptions::default()
        };
        let join = Join::from(&stitch(&mut base, fragment, &options));
        SeamDrawing::new(base.text().as_bytes(), fragment.as_bytes(), &join)
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
    fn shows_why_a_piece_was_rejected() {
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
