//! The fast path for elements that are completely in one piece.
//!
//! Nearly all elements are, so this path decides the speed. An unusual element (a token cut by the
//! end of the piece, a syntax error) is left to the state machine from its beginning.

use super::reader::Reader;
use super::state::State;
use super::{Container, Scalar, Visitor};
use crate::{plain, vector};

/// What is expected next in a container.
#[derive(Clone, Copy, PartialEq)]
enum Expected {
    /// The first element of a container, or its end.
    First,
    /// An element.
    Element,
    /// A comma or the end of the container.
    After,
}

impl Expected {
    fn state_in(self, container: Container) -> State {
        match (self, container) {
            (Self::First, Container::Object) => State::ObjectStart,
            (Self::First, Container::Array) => State::ArrayStart,
            (Self::Element, Container::Object) => State::NextKey,
            (Self::Element, Container::Array) => State::NextItem,
            (Self::After, _) => State::AfterValue,
        }
    }
}

/// How many containers are kept outside of the frames at most.
const MOST_HELD: usize = 32;

/// A container that opened in this piece. Most close in it, too, and are never added to the frames.
#[derive(Clone, Copy)]
struct Held {
    container: Container,
    opener: usize,
    element: usize,
    /// Where its key is in the piece.
    key: (usize, usize),
    /// The index of its current item.
    index: usize,
}

impl<V: Visitor> Reader<'_, V> {
    /// Reads elements as long as they are complete and valid; returns the state before the first
    /// other one.
    #[expect(
        clippy::too_many_lines,
        reason = "one loop over local state that calls would have to carry about"
    )]
    pub(super) fn whole_elements(&mut self, state: State) -> State {
        let piece = self.piece;
        let offset = self.scanner.offset;
        let mut expect = match state {
            State::ArrayStart | State::ObjectStart => Expected::First,
            State::NextItem | State::NextKey => Expected::Element,
            State::AfterValue => Expected::After,
            other => return other,
        };
        let mut held: Vec<Held> = Vec::new();
        let mut element = self.scanner.element;
        let mut rollback = self.scanner.rollback;
        let mut previous = self.scanner.previous;
        let mut container = self.scanner.frames.innermost();
        let mut at = self.at;
        'elements: loop {
            let mut start = plain::skip_white_space(piece, at);
            let is_empty =
                expect == Expected::First && piece.get(start) == Some(&closer(container));
            if expect != Expected::After && !is_empty {
                let Some(found) = whole_element(piece, start, container) else {
                    break;
                };
                if container == Container::Object {
                    self.visitor.key(&piece[found.key.0..found.key.1]);
                }
                element = offset + start;
                at = found.end;
                match found.kind {
                    ElementKind::Scalar(scalar) => {
                        let quotes = usize::from(scalar == Scalar::String);
                        let raw = &piece[found.value + quotes..at - quotes];
                        self.visitor.whole_scalar(scalar, raw);
                        expect = Expected::After;
                        start = plain::skip_white_space(piece, at);
                    }
                    ElementKind::Opens(inner) => {
                        self.visitor.open(inner);
                        if held.len() == MOST_HELD {
                            self.release(&mut held);
                        }
                        let (opener, key) = (offset + found.value, found.key);
                        let nested = nested_arrays(piece, found.value);
                        if nested > MOST_HELD {
                            self.release(&mut held);
                            let key = &piece[key.0..key.1];
                            let frames = &mut self.scanner.frames;
                            frames.push_nested_arrays(nested, opener, element, key);
                            (1..nested).for_each(|_| self.visitor.open(inner));
                            container = inner;
                            element = opener + nested - 1;
                            rollback = opener + nested;
                            previous = None;
                            expect = Expected::First;
                            at = found.value + nested;
                            continue;
                        }
                        held.push(Held {
                            container: inner,
                            opener,
                            element,
                            key,
                            index: 0,
                        });
                        container = inner;
                        rollback = opener + 1;
                        previous = None;
                        expect = Expected::First;
                        continue;
                    }
                }
            }
            loop {
                match piece.get(start) {
                    Some(b',') => {
                        previous = Some((element, offset + start));
                        rollback = offset + start;
                        match (held.last_mut(), container) {
                            (_, Container::Object) => {}
                            (Some(innermost), _) => innermost.index += 1,
                            (None, _) => self.scanner.frames.next_index(),
                        }
                        expect = Expected::Element;
                        at = start + 1;
                        continue 'elements;
                    }
                    Some(byte) if *byte == closer(container) => {
                        self.visitor.close(container);
                        element = match held.pop() {
                            Some(closed) => closed.element,
                            None => self.scanner.frames.pop(),
                        };
                        previous = None;
                        at = start + 1;
                        expect = Expected::After;
                        container = match held.last() {
                            Some(innermost) => innermost.container,
                            None if self.scanner.frames.is_empty() => break 'elements,
                            None => self.scanner.frames.innermost(),
                        };
                        start = plain::skip_white_space(piece, at);
                    }
                    _ => break 'elements,
                }
            }
        }
        self.release(&mut held);
        self.at = at;
        self.scanner.element = element;
        self.scanner.previous = previous;
        self.scanner.rollback = rollback;
        if self.scanner.frames.is_empty() {
            return State::End;
        }
        expect.state_in(container)
    }

    /// Adds the containers that are still open to the frames.
    fn release(&mut self, held: &mut Vec<Held>) {
        for one in held.drain(..) {
            let key = &self.piece[one.key.0..one.key.1];
            self.scanner
                .frames
                .push(one.container, one.opener, one.element, key);
            self.scanner.frames.set_index(one.index);
        }
    }
}

/// How many arrays open directly inside one another from an opener on; one if it is an object's.
#[inline]
fn nested_arrays(piece: &[u8], at: usize) -> usize {
    if piece.get(at + 1) != Some(&b'[') || piece[at] != b'[' {
        return 1;
    }
    let rest = &piece[at..];
    rest.iter()
        .position(|&byte| byte != b'[')
        .unwrap_or(rest.len())
}

fn closer(container: Container) -> u8 {
    match container {
        Container::Object => b'}',
        Container::Array => b']',
    }
}

/// An element that is completely in the piece; of a container, only its opener.
struct Element {
    /// Where its key is, in an object.
    key: (usize, usize),
    value: usize,
    end: usize,
    kind: ElementKind,
}

enum ElementKind {
    Scalar(Scalar),
    Opens(Container),
}

#[expect(
    clippy::inline_always,
    reason = "it is called in one place, for every element, and what it returns is large"
)]
#[inline(always)]
fn whole_element(piece: &[u8], start: usize, container: Container) -> Option<Element> {
    let (key, value) = match container {
        Container::Array => ((start, start), start),
        Container::Object => key_and_value(piece, start)?,
    };
    let (kind, end) = match piece.get(value)? {
        b'"' => (
            ElementKind::Scalar(Scalar::String),
            string_end(piece, value + 1)? + 1,
        ),
        b'{' => (ElementKind::Opens(Container::Object), value + 1),
        b'[' => (ElementKind::Opens(Container::Array), value + 1),
        b'-' | b'0'..=b'9' => (
            ElementKind::Scalar(Scalar::Number),
            number_end(piece, value)?,
        ),
        _ => literal_end(piece, value)?,
    };
    Some(Element {
        key,
        value,
        end,
        kind,
    })
}

/// The range of a key, without its quotes, and where its value begins.
#[inline]
fn key_and_value(piece: &[u8], start: usize) -> Option<((usize, usize), usize)> {
    if piece.get(start) != Some(&b'"') {
        return None;
    }
    let end = string_end(piece, start + 1)?;
    let colon = plain::skip_white_space(piece, end + 1);
    if piece.get(colon) != Some(&b':') {
        return None;
    }
    let value = plain::skip_white_space(piece, colon + 1);
    Some(((start + 1, end), value))
}

/// The quote that ends the string whose content begins at a byte, if the content is valid.
#[inline]
fn string_end(piece: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = vector::string_stop(piece, at);
        match piece.get(at)? {
            b'"' => return Some(at),
            b'\\' => match piece.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                b'u' if piece.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => at += 6,
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// The kind of a complete literal and where it ends.
#[inline]
fn literal_end(piece: &[u8], start: usize) -> Option<(ElementKind, usize)> {
    let (scalar, spelling): (_, &[u8]) = match piece[start] {
        b't' => (Scalar::Bool, b"true"),
        b'f' => (Scalar::Bool, b"false"),
        b'n' => (Scalar::Null, b"null"),
        _ => return None,
    };
    piece[start..]
        .starts_with(spelling)
        .then_some((ElementKind::Scalar(scalar), start + spelling.len()))
}

/// Where a valid number ends, if something follows it.
#[inline]
fn number_end(piece: &[u8], start: usize) -> Option<usize> {
    let digits = |from: usize| {
        let at = vector::digits_end(piece, from);
        (at > from).then_some(at)
    };
    let mut at = start + usize::from(piece[start] == b'-');
    at = if piece.get(at) == Some(&b'0') {
        at + 1
    } else {
        digits(at)?
    };
    if piece.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = piece.get(at) {
        let sign = usize::from(matches!(piece.get(at + 1), Some(b'+' | b'-')));
        at = digits(at + 1 + sign)?;
    }
    // A digit here follows a leading zero: the state machine reports the syntax error.
    (at < piece.len() && !piece[at].is_ascii_digit()).then_some(at)
}
