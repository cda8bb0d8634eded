//! Takes away what models put around a fragment: fences, prose, thoughts.
//!
//! A fragment begins in the middle of a document, so that it cannot be found as a document is.
//! All readings are offered, the raw one first, and the joins decide.

/// Prose before the fragment is looked for in this many bytes at most.
const LONGEST_PREAMBLE: usize = 2_000;

/// The fragment as it came and in every way it may be unwrapped.
pub(super) fn readings(fragment: &str) -> Vec<&str> {
    let mut readings = vec![fragment];
    let trimmed = without_thoughts(fragment.trim_start_matches('\u{feff}').trim_start());
    push_new(&mut readings, trimmed);
    if let Some(inside) = inside_fence(trimmed) {
        push_new(&mut readings, inside);
        push_new(&mut readings, inside.trim_start());
    }
    for body in [trimmed, inside_fence(trimmed).unwrap_or(trimmed)] {
        for (newline, _) in body.match_indices('\n').take(12) {
            let (preamble, rest) = body.split_at(newline + 1);
            if preamble.len() > LONGEST_PREAMBLE || !is_preamble(preamble) {
                break;
            }
            push_new(&mut readings, rest.trim_start());
        }
    }
    readings
}

fn push_new<'a>(readings: &mut Vec<&'a str>, reading: &'a str) {
    let known = |other: &&str| other.len() == reading.len() && other.as_ptr() == reading.as_ptr();
    if !reading.is_empty() && !readings.iter().any(known) {
        readings.push(reading);
    }
}

/// Where a text that the model was asked to begin with comes after a preamble, if it does.
pub(super) fn after_preamble(fragment: &str, expected: &str) -> Option<usize> {
    let window = &fragment[..fragment.floor_char_boundary(LONGEST_PREAMBLE + expected.len())];
    let at = window.find(expected)?;
    let before = &fragment[..at];
    // Whole lines of talk may have braces and quotes in them.
    let is_talk = before.ends_with('\n') && begins_with_talk(before);
    (at <= LONGEST_PREAMBLE && (is_talk || is_preamble(before))).then_some(at)
}

/// Whether a text reads like the words before a document, and not like a piece of one.
fn is_preamble(text: &str) -> bool {
    let text = text.trim();
    !text.contains(['{', '}', '[', ']'])
        && !text.starts_with(['"', ',', ':', '-', '\''])
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && !text.contains("\":")
        && !text.contains("\",")
}

/// Whether what follows a whole document is talk, and not more of some document.
pub(super) fn is_prose(text: &str) -> bool {
    !text
        .trim_start()
        .starts_with(['{', '}', '[', ']', ',', ':', '"'])
}

/// Whether a text begins the way models begin to talk about an answer.
pub(super) fn begins_with_talk(text: &str) -> bool {
    const OPENINGS: [&str; 24] = [
        "i'm ",
        "i’m ",
        "i am ",
        "i apolog",
        "i can't",
        "i can’t",
        "i cannot",
        "i will",
        "i'll",
        "i have",
        "sorry",
        "apologies",
        "my apologies",
        "here is",
        "here's",
        "here’s",
        "here are",
        "sure",
        "certainly",
        "of course",
        "unfortunately",
        "continuing",
        "as an ai",
        "okay",
    ];
    let start: String = text
        .trim_start()
        .chars()
        .take(20)
        .flat_map(char::to_lowercase)
        .collect();
    OPENINGS.iter().any(|opening| start.starts_with(opening))
}

fn without_thoughts(fragment: &str) -> &str {
    match fragment
        .strip_prefix("<think>")
        .and_then(|rest| rest.split_once("</think>"))
    {
        Some((_, answer)) => answer.trim_start(),
        None => fragment,
    }
}

/// What stands between the first fence and the one that closes it, or the end.
fn inside_fence(fragment: &str) -> Option<&str> {
    let fence = fragment
        .match_indices("```")
        .map(|(at, _)| at)
        .find(|at| *at == 0 || fragment[..*at].ends_with('\n'))?;
    let preamble = &fragment[..fence];
    if fence > LONGEST_PREAMBLE || !is_preamble(preamble) {
        return None;
    }
    let (_, inside) = fragment[fence..].split_once('\n')?;
    // The last fence closes the block: one inside a string may stand before it.
    let end = inside.rfind("\n```").unwrap_or(inside.len());
    Some(&inside[..end])
}
