//! Finds the valid beginning of a text, so that only the rest is parsed leniently.
//!
//! Most malformed texts are mostly well-formed. The scanner, which is several times faster than the
//! parser, has read the text up to the first syntax error. The parser begins a little before it,
//! because the cause of the error may be earlier.

use super::brackets::Bracket;
use super::parser::Expect;
use crate::scan::{Container, Frame, Scanner};

/// Where parsing begins, with the state of the parser there.
pub(super) struct Checkpoint {
    /// The offset from where the scanner began.
    pub(super) at: usize,
    /// The open containers, outermost first.
    pub(super) stack: Vec<Bracket>,
    /// The offset of the innermost opening bracket.
    pub(super) opener: usize,
    pub(super) expect: Expect,
}

/// How many bytes before the syntax error are read again at most.
const MAX_REREAD: usize = 1 << 16;

/// Where to begin parsing a text that `scanner` has read; none if at its start.
pub(super) fn checkpoint(scanner: &Scanner, text: &[u8]) -> Option<Checkpoint> {
    let valid_end = scanner
        .syntax_error()
        .map_or(text.len(), |syntax_error| syntax_error.offset);
    let nearest = valid_end.saturating_sub(MAX_REREAD).max(1);
    if scanner.depth() == 0 {
        return after_root(text, valid_end);
    }
    // The outermost container that is short enough is read again completely.
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

fn outermost_first<'a>(innermost_first: impl Iterator<Item = Frame<'a>>) -> Vec<Bracket> {
    let kinds = innermost_first.map(|frame| match frame.container {
        Container::Object => Bracket::Object,
        Container::Array => Bracket::Array,
    });
    let mut stack: Vec<_> = kinds.collect();
    stack.reverse();
    stack
}

/// The end of a complete document that prose, a fence or another document follows.
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
