//! Finds out how much of a text is sound, so that only the rest is read leniently.
//!
//! Most malformed texts are well-formed nearly all the way. The scanner, which is several times
//! as fast as the parser, has read them up to the first syntax error; the parser begins a little
//! before it, since what is wrong there may have begun earlier.

use super::brackets::Kind;
use super::parser::Expect;
use crate::scan::{Container, Frame, Scanner};

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

/// How much of the text before the syntax error is read again at most.
const MOST_AGAIN: usize = 1 << 16;

/// The place to begin at in a text that `scanner` has read; nothing if it is the beginning.
pub(super) fn checkpoint(scanner: &Scanner, text: &[u8]) -> Option<Checkpoint> {
    let sound = scanner
        .syntax_error()
        .map_or(text.len(), |syntax_error| syntax_error.offset);
    let nearest = sound.saturating_sub(MOST_AGAIN).max(1);
    if scanner.depth() == 0 {
        return after_root(text, sound);
    }
    // The outermost container that is short enough is read again as a whole.
    let mut frames = scanner.open_frames().peekable();
    let mut short = None;
    while let Some(frame) = frames.next_if(|frame| frame.opener >= nearest) {
        short = Some(frame.opener);
    }
    if let (Some(at), Some(parent)) = (short, frames.peek()) {
        let opener = parent.opener;
        return Some(Checkpoint {
            at,
            stack: outermost_first(frames),
            opener,
            expect: Expect::Value,
        });
    }
    let (_, previous) = scanner.elements();
    let (at, _) = previous.filter(|&(start, _)| start >= nearest)?;
    let innermost = scanner.open_frames().next()?;
    Some(Checkpoint {
        at,
        stack: outermost_first(scanner.open_frames()),
        opener: innermost.opener,
        expect: match innermost.container {
            Container::Object => Expect::Key,
            Container::Array => Expect::Value,
        },
    })
}

fn outermost_first<'a>(innermost_first: impl Iterator<Item = Frame<'a>>) -> Vec<Kind> {
    let kinds = innermost_first.map(|frame| match frame.container {
        Container::Object => Kind::Object,
        Container::Array => Kind::Array,
    });
    let mut stack: Vec<_> = kinds.collect();
    stack.reverse();
    stack
}

/// The end of a whole document with prose, a fence or another document after it.
fn after_root(text: &[u8], syntax_error: usize) -> Option<Checkpoint> {
    let document = text[..syntax_error].trim_ascii_end();
    let follower = text.get(syntax_error)?;
    let apart = follower.is_ascii_alphabetic() || matches!(follower, b'`' | b'{' | b'[');
    let is_container = matches!(document.last(), Some(b'}' | b']'));
    (apart && is_container).then_some(Checkpoint {
        at: document.len(),
        stack: Vec::new(),
        opener: document.len(),
        expect: Expect::Done,
    })
}
