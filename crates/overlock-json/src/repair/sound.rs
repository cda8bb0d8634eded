//! Finds out how much of a text is sound, so that only the rest is read leniently.
//!
//! Most malformed texts are well-formed nearly all the way. The scanner, which is several times
//! as fast as the parser, has read them up to the first offence; the parser begins a little
//! before it, since what is wrong there may have begun earlier.

use super::brackets::Kind;
use super::parser::Expect;
use crate::scan::{Container, Scanner};

/// Where to begin to read, and what the grammar wants there.
pub(super) struct Checkpoint {
    /// Counted from where the scanner began.
    pub(super) at: usize,
    /// The containers that are open there, outermost first.
    pub(super) stack: Vec<Kind>,
    /// The bracket of the innermost of them.
    pub(super) opener: usize,
    pub(super) expect: Expect,
}

/// How much of the text before the offence is read again at most.
const MOST_AGAIN: usize = 1 << 16;

/// The place to begin at in a text that `scanner` has read; nothing if it is the beginning.
pub(super) fn checkpoint(scanner: &Scanner, text: &[u8]) -> Option<Checkpoint> {
    let sound = scanner
        .offence()
        .map_or(text.len(), |offence| offence.offset);
    let nearest = sound.saturating_sub(MOST_AGAIN).max(1);
    if scanner.depth() == 0 {
        return after_root(text, sound);
    }
    let mut frames: Vec<_> = scanner
        .open_frames()
        .map(|frame| (kind(frame.container), frame.opener))
        .collect();
    frames.reverse();
    let stack = |depth: usize| frames[..depth].iter().map(|&(kind, _)| kind).collect();
    // The outermost container that is short enough is read again as a whole.
    let short = frames.iter().position(|&(_, opener)| opener >= nearest);
    if let Some(depth) = short.filter(|&depth| depth > 0) {
        return Some(Checkpoint {
            at: frames[depth].1,
            stack: stack(depth),
            opener: frames[depth - 1].1,
            expect: Expect::Value,
        });
    }
    let (_, previous) = scanner.elements();
    let (at, _) = previous.filter(|&(start, _)| start >= nearest)?;
    let &(innermost, opener) = frames.last()?;
    Some(Checkpoint {
        at,
        stack: stack(frames.len()),
        opener,
        expect: if innermost.has_keys() {
            Expect::Key
        } else {
            Expect::Value
        },
    })
}

/// The end of a whole document with prose, a fence or another document after it.
fn after_root(text: &[u8], offence: usize) -> Option<Checkpoint> {
    let document = text[..offence].trim_ascii_end();
    let follower = text.get(offence)?;
    let apart = follower.is_ascii_alphabetic() || matches!(follower, b'`' | b'{' | b'[');
    let is_container = matches!(document.last(), Some(b'}' | b']'));
    (apart && is_container).then_some(Checkpoint {
        at: document.len(),
        stack: Vec::new(),
        opener: document.len(),
        expect: Expect::Done,
    })
}

fn kind(container: Container) -> Kind {
    match container {
        Container::Object => Kind::Object,
        Container::Array => Kind::Array,
    }
}
