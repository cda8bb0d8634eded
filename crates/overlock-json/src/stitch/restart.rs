//! Finds where a fragment says again, in its own way, what the base already has.
//!
//! Token by token: with other white space, other escapes or other number spelling, from the
//! middle of the base or from the beginning of a container that holds the cut.

use super::evidence::ENOUGH;
use super::remainder::{opens, read_value};
use super::{Attempt, Candidate, Outcome};
use crate::borders::common_prefixes;
use crate::cut::CutPlace;
use crate::plain;
use crate::scan::{Container, Coordinate, Frame};
use crate::strings::{code_points, decode};
use crate::tokens::{Token, TokenKind, Tokens, is_inside_string};

/// Text said again is looked for in this many bytes at the end of the base.
const WINDOW: usize = 16 * 1024;
/// So many times the bytes may the base take to say the same, with its white space and escapes.
const LONGEST_SPELLING: usize = 64;
/// So many joins are tried for one reading of the fragment.
const MOST_OFFERS: usize = 8;
/// So many of the innermost and of the outermost containers are looked at for a restart.
const MOST_FRAMES: usize = 16;

/// So many items at the beginning may be missing in a document that is begun again.
pub(super) const MOST_LEFT_OUT: usize = 4;
/// So many tokens are compared to tell whether a document is begun again.
const MOST_COMPARED: usize = 400;

/// What looking for restarts has shown.
#[derive(Default)]
struct Restarts<'f> {
    found: Vec<Candidate<'f>>,
    /// The fragment begins again with so many bits of the base and ends before it comes to the cut.
    falls_short: Option<u32>,
}

/// How a fragment that begins again departs from the base.
pub(super) enum Difference {
    /// It ends before it comes to the cut.
    FallsShort { bits: u32 },
    /// It says something else.
    Other,
}

/// The end of the base, as far as it is compared.
struct Tail<'b> {
    /// Whole tokens.
    tokens: Vec<Token<'b>>,
    /// The token in which the base stops.
    half: Option<Token<'b>>,
}

impl<'b, 'f> Attempt<'b, 'f> {
    /// Every way in which the fragment says the end of the base again, and how many bits it repeats
    /// if it begins to but ends before it comes to the cut.
    pub(super) fn restarts(&self) -> (Vec<Candidate<'f>>, Option<u32>) {
        let mut restarts = Restarts::default();
        let window = self.window_start();
        let tail = self.tail_from(window);
        self.restarts_in_tail(&tail, &mut restarts);
        if let Some(half) = tail.half.filter(|half| half.kind == TokenKind::String) {
            self.restarts_in_string(&half, &mut restarts);
        }
        self.restarts_of_containers(window, &mut restarts);
        (restarts.found, restarts.falls_short)
    }

    /// Where comparing begins: a window before the end, or where the element that was cut
    /// begins, if the fragment is long enough to say all of that again.
    fn window_start(&self) -> usize {
        let text = self.base.text();
        let window = text.ceil_char_boundary(text.len().saturating_sub(WINDOW));
        match self.base.scanner().elements().0 {
            Some(element) if text.len() - element <= self.fragment.len() => window.min(element),
            _ => window,
        }
    }

    fn tail_from(&self, start: usize) -> Tail<'b> {
        let text = self.base.text();
        self.count(text.len() - start);
        let place = self.base.scanner().place();
        let ends_in_string = matches!(
            place,
            Some(CutPlace::String | CutPlace::Escape | CutPlace::Key)
        );
        let ends_in_word = matches!(place, Some(CutPlace::Number | CutPlace::Literal));
        let inside = is_inside_string(text, start, ends_in_string);
        let mut tokens: Vec<_> = Tokens::new(text, start, inside).collect();
        let half = if ends_in_string || ends_in_word {
            tokens.pop()
        } else {
            None
        };
        Tail { tokens, half }
    }

    fn restarts_in_tail(&self, tail: &Tail<'b>, restarts: &mut Restarts<'f>) {
        let longest = tail.tokens.len() + 2;
        for (inside_string, headless) in [(false, 0), (false, 1), (true, 1)] {
            let tokens: Vec<_> = Tokens::new(self.fragment, 0, inside_string)
                .take(longest)
                .collect();
            self.count(tokens.last().map_or(0, |token| token.end));
            // A token whose beginning is not in the fragment is compared on its own.
            let Some((headless, whole)) = tokens.split_at_checked(headless) else {
                continue;
            };
            let sequence: Vec<Option<&Token<'_>>> = whole
                .iter()
                .map(Some)
                .chain([None])
                .chain(tail.tokens.iter().map(Some))
                .collect();
            let same = common_prefixes(&sequence);
            // Longest first: in text that offers many, the first few show that it is too regular.
            let mut offers = 0;
            for start in 0..=tail.tokens.len() {
                let first = start + headless.len();
                let Some(count) = tail.tokens.len().checked_sub(first) else {
                    continue;
                };
                let reaches_end = count == 0 || same[sequence.len() - count] == count;
                let head_matches = headless
                    .iter()
                    .all(|head| ends_with(&tail.tokens[start], head));
                if !reaches_end || !head_matches {
                    continue;
                }
                offers += 1;
                if offers > MOST_OFFERS {
                    break;
                }
                let count = headless.len() + count;
                let first = tail.tokens.get(start).or(tail.half.as_ref());
                // Of a token that came without its beginning, about as much as came.
                let start = first.map_or(self.base.text().len(), |first| match headless {
                    [head] => first.end.saturating_sub(head.end).max(first.start),
                    _ => first.start,
                });
                self.offer(start, tail.half.as_ref(), &tokens, count, restarts);
            }
        }
    }

    /// The base stops inside a string, and the fragment goes on in the same string with other
    /// escapes.
    fn restarts_in_string(&self, half: &Token<'b>, restarts: &mut Restarts<'f>) {
        let Some(string) = Tokens::new(self.fragment, 0, true).next() else {
            return;
        };
        if !string.raw.contains('\\') && !half.raw.contains('\\') {
            return;
        }
        let written: Vec<(u32, usize)> = code_points(self.whole_content(half)).collect();
        let written = &written[written.len().saturating_sub(WINDOW / 4)..];
        let said: Vec<u32> = written.iter().map(|(character, _)| *character).collect();
        let again: Vec<(u32, usize)> = code_points(string.raw).take(said.len()).collect();
        let sequence: Vec<Option<u32>> = again
            .iter()
            .map(|(character, _)| Some(*character))
            .chain([None])
            .chain(said.iter().copied().map(Some))
            .collect();
        let same = common_prefixes(&sequence);
        let lengths = (1..=again.len())
            .rev()
            .filter(|n| same[sequence.len() - n] == *n)
            .take(2);
        for length in lengths.collect::<Vec<_>>() {
            let from = again[length - 1].1;
            let base_len = self.base.scanner().whole_text_end();
            if let Ok(join) = self.join(Outcome::Reformatted, base_len, "", from, length) {
                let before = (written.len() - length).checked_sub(1);
                let start = before.map_or(0, |before| written[before].1);
                restarts.found.push(Candidate {
                    bits: self.evidence.since(half.content_start() + start),
                    from,
                    join,
                });
            }
        }
    }

    /// The fragment begins again at an open container. Those that opened in the window have been
    /// looked at, except for whether the fragment goes further than the base.
    fn restarts_of_containers(&self, window: usize, restarts: &mut Restarts<'f>) {
        let scanner = self.base.scanner();
        let outermost = scanner.depth().saturating_sub(MOST_FRAMES);
        for (at, frame) in scanner.open_frames().enumerate() {
            if at < MOST_FRAMES || at >= outermost {
                self.restart_at(frame.opener, frame.opener < window, restarts);
            }
        }
    }

    fn restart_at(&self, opener: usize, is_new: bool, restarts: &mut Restarts<'f>) {
        match self.compare_from(opener, 0) {
            Ok(_) if !is_new => {}
            Ok((from, base_len, matched)) => {
                let join = self.join(Outcome::Resumed, base_len, "", from, matched);
                restarts.found.extend(join.map(|join| Candidate {
                    bits: self.evidence.since(opener),
                    from,
                    join,
                }));
            }
            Err(Difference::FallsShort { bits }) => {
                let falls_short = Some(bits).filter(|bits| *bits >= ENOUGH);
                restarts.falls_short = restarts.falls_short.max(falls_short);
            }
            Err(Difference::Other) => {}
        }
    }

    /// Compares the fragment from `at` with the base from a container's opener on. Says where
    /// the fragment goes on, how much of the base stays, and how many characters were equal.
    pub(super) fn compare_from(
        &self,
        opener: usize,
        at: usize,
    ) -> Result<(usize, usize, usize), Difference> {
        // What the fragment cannot reach is not read, however long a string of the base is.
        let text = self.base.text();
        let reach = opener + WINDOW + LONGEST_SPELLING * (self.fragment.len() - at);
        let reached = &text[..text.floor_char_boundary(reach)];
        let is_all = reached.len() == text.len();
        let ends_in_token = self.ends_in_token() || !is_all;
        let mut base = Tokens::new(reached, opener, false).peekable();
        let mut again = Tokens::new(self.fragment, at, false);
        let (mut matched, mut end, mut known) = (0, at, opener);
        let half = loop {
            let Some(token) = base.next() else { break None };
            if ends_in_token && base.peek().is_none() {
                break Some(token);
            }
            self.count(token.end - token.start);
            match again.next() {
                Some(other) if other == token && !other.endless => {
                    matched += other.characters();
                    (end, known) = (other.end, token.end);
                }
                Some(other) if !other.endless => return Err(Difference::Other),
                _ => {
                    let bits = self.evidence.of(opener, known);
                    return Err(Difference::FallsShort { bits });
                }
            }
        };
        if !is_all {
            return Err(Difference::Other);
        }
        let from = self.after_half(half.as_ref(), again.next().as_ref(), end);
        matched += half.map_or(0, |half| self.half_characters(&half));
        Ok((
            from.ok_or(Difference::Other)?,
            self.kept_len(half.as_ref()),
            matched,
        ))
    }

    /// Whether the fragment begins like one of the containers that hold the cut, but says something
    /// else there: a document begun again in other words.
    pub(super) fn is_like_the_document(&self) -> bool {
        let scanner = self.base.scanner();
        if scanner.depth() > MOST_FRAMES {
            return false;
        }
        let mut frames: Vec<Frame<'b>> = scanner.open_frames().collect();
        frames.reverse();
        let first = Tokens::new(self.fragment, 0, false).next();
        first.is_some_and(|first| {
            (0..frames.len()).any(|level| {
                opens(&first, frames[level].container)
                    && self.likeness(&frames[level..], self.base.text().len(), first.end) >= ENOUGH
            })
        })
    }

    /// What the values say that the fragment has from `at` on as the outermost of some containers
    /// has them up to `end`, if need be without the first items or in another order.
    pub(super) fn likeness(&self, frames: &[Frame<'b>], end: usize, at: usize) -> u32 {
        let Some((frame, inner)) = frames.split_first() else {
            return 0;
        };
        let text = &self.base.text()[..end];
        let start = (frame.opener + 1).min(end);
        let mut again = Tokens::new(self.fragment, at, false);
        if frame.container == Container::Array {
            let mut known = Tokens::new(text, start, false);
            let shifted = (0..MOST_LEFT_OUT).map(|_| {
                let bits = self.equal_values(known.clone(), again.clone());
                let _ = (read_value(&mut known), known.next());
                bits
            });
            return shifted.max().unwrap_or(0);
        }
        let members = self.members_of(frame.opener);
        let open = inner.first().and_then(|frame| frame.coordinate);
        let mut bits = 0;
        for _ in 0..MOST_LEFT_OUT {
            let (Some(key), Some(_colon)) = (again.next(), again.next()) else {
                break;
            };
            let key = decode(key.raw.as_bytes());
            if let Some((start, end)) = members.get(&key) {
                bits += self.equal_values(Tokens::new(&text[..*end], *start, false), again.clone());
            } else if matches!(open, Some(Coordinate::Key(open)) if decode(open) == key)
                && let Some(opener) = again.clone().next()
            {
                bits += self.likeness(inner, end, opener.end);
            }
            if read_value(&mut again).is_none() || again.next().is_none() {
                break;
            }
        }
        bits
    }

    /// The bits of the values that stand in the same places of the base and of the fragment.
    pub(super) fn equal_values(&self, known: Tokens<'_>, again: Tokens<'_>) -> u32 {
        let mut pairs = known.zip(again).take(MOST_COMPARED).peekable();
        let mut bits = 0;
        while let Some((known, again)) = pairs.next() {
            self.count(known.end - known.start);
            let is_key = pairs.peek().is_some_and(|(next, _)| next.is_mark(":"));
            let is_same = known == again && !known.endless
                || again.endless && known.kind == again.kind && known.raw.starts_with(again.raw);
            // Any two rows may have the same literals.
            let is_literal = matches!(known.raw, "true" | "false" | "null");
            if is_same && known.kind != TokenKind::Mark && !is_key && !is_literal {
                bits += self
                    .evidence
                    .of(known.start, known.end.min(known.start + again.raw.len()));
            }
        }
        bits
    }

    /// Adds the join after `count` of the fragment's tokens, which say the base from `start` on
    /// again, and after the half token of the base.
    fn offer(
        &self,
        start: usize,
        half: Option<&Token<'b>>,
        tokens: &[Token<'f>],
        count: usize,
        restarts: &mut Restarts<'f>,
    ) {
        let end = count.checked_sub(1).map_or(0, |last| tokens[last].end);
        let Some(from) = self.after_half(half, tokens.get(count), end) else {
            if count > 0 && count == tokens.len() {
                let end = half.map_or(self.base.text().len(), |half| half.start);
                let said = self.evidence.of(start, end);
                restarts.falls_short = restarts.falls_short.max(Some(said));
            }
            return;
        };
        if count == 0 && half.is_none_or(|half| self.half_characters(half) == 0) {
            return;
        }
        let begins_container = self
            .base
            .scanner()
            .open_frames()
            .take_while(|frame| frame.opener >= start)
            .any(|frame| frame.opener == start);
        let outcome = if begins_container {
            Outcome::Resumed
        } else {
            Outcome::Reformatted
        };
        let base_len = self.kept_len(half);
        if let Ok(join) = self.join(
            outcome,
            base_len,
            "",
            from,
            self.fragment[..from].chars().count(),
        ) {
            restarts.found.push(Candidate {
                bits: self.evidence.since(start),
                from,
                join,
            });
        }
    }

    /// Where the fragment goes on after it has said the base's half token again; after `end` if
    /// there is none.
    fn after_half(
        &self,
        half: Option<&Token<'_>>,
        again: Option<&Token<'_>>,
        end: usize,
    ) -> Option<usize> {
        let Some(half) = half else {
            // White space that the base ends with already is not written again.
            let is_spaced = self.base.text().ends_with([' ', '\n', '\r', '\t']);
            let next = plain::skip_white_space(self.fragment.as_bytes(), end);
            return Some(if is_spaced { next } else { end });
        };
        let again = again.filter(|again| again.kind == half.kind && !again.headless)?;
        if half.kind == TokenKind::Word {
            // A number that is spelled in another way and means the same was whole already.
            let is_respelled = !again.endless && again == half;
            return match again.raw.strip_prefix(half.raw) {
                Some(_) => Some(again.start + half.raw.len()),
                None => is_respelled.then_some(again.end),
            };
        }
        let mut at = 0;
        let mut characters = code_points(again.raw);
        for (wanted, _) in code_points(self.whole_content(half)) {
            let (character, end) = characters.next()?;
            if character != wanted {
                return None;
            }
            at = end;
        }
        let half_escape = &self.base.text()[self.base.scanner().whole_text_end()..];
        may_complete(half_escape, &again.raw[at..]).then(|| again.content_start() + at)
    }

    /// What is written of the string in which the base stops, without half an escape.
    fn whole_content(&self, half: &Token<'b>) -> &'b str {
        let text = self.base.text();
        let end = self
            .base
            .scanner()
            .whole_text_end()
            .max(half.content_start());
        &text[half.content_start()..end]
    }

    /// How many characters of the base's half token can be said again.
    fn half_characters(&self, half: &Token<'b>) -> usize {
        match half.kind {
            TokenKind::String => 1 + self.whole_content(half).chars().count(),
            _ => half.raw.chars().count(),
        }
    }

    /// How much of the base stays if its half token is written on by the fragment.
    fn kept_len(&self, half: Option<&Token<'_>>) -> usize {
        match half {
            Some(half) if half.kind == TokenKind::String => self.base.scanner().whole_text_end(),
            _ => self.base.text().len(),
        }
    }

    pub(super) fn ends_in_token(&self) -> bool {
        let place = self.base.scanner().place();
        matches!(
            place,
            Some(
                CutPlace::String
                    | CutPlace::Escape
                    | CutPlace::Key
                    | CutPlace::Number
                    | CutPlace::Literal
            )
        )
    }
}

/// Whether a text may begin with the character of which half an escape is written.
fn may_complete(half_escape: &str, text: &str) -> bool {
    let Some(next) = text.chars().next().filter(|_| !half_escape.is_empty()) else {
        return true;
    };
    let Some(digits) = half_escape.strip_prefix("\\u") else {
        return matches!(next, '\\' | '/') || !next.is_ascii();
    };
    let written = match text.strip_prefix("\\u") {
        Some(written) => written.to_owned(),
        None if next == '\\' => return true,
        None => format!("{:04x}", next.encode_utf16(&mut [0; 2])[0]),
    };
    let mut both = digits.bytes().zip(written.bytes());
    both.all(|(a, b)| a.eq_ignore_ascii_case(&b))
}

/// Whether a token ends the way another one does, of which the beginning is missing.
fn ends_with(token: &Token<'_>, head: &Token<'_>) -> bool {
    let text = |raw| {
        code_points(raw)
            .map(|(code_point, _)| code_point)
            .collect::<Vec<_>>()
    };
    match (token.kind, head.kind) {
        _ if head.endless => false,
        (TokenKind::String, TokenKind::String) => text(token.raw).ends_with(&text(head.raw)),
        (TokenKind::Word, TokenKind::Word) => token.raw.ends_with(head.raw),
        _ => false,
    }
}
