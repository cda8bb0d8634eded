//! Joins a document of its own that holds only what was missing.
//!
//! A model that is held to valid JSON cannot go on in the middle. It sends the remaining items
//! as an array, or in the same wrapper as the base's: the keys on the way to the cut, repeated.

use std::borrow::Cow;
use std::collections::HashMap;

use super::evidence::{ASKED, ENOUGH};
use super::restart::MOST_LEFT_OUT;
use super::{Attempt, Candidate, Mismatch, Outcome, Protocol};
use crate::cut::CutPlace;
use crate::scan::{Container, Coordinate, Frame};
use crate::strings::decode;
use crate::tokens::{Token, TokenKind, Tokens};

/// A wrapper deeper than this is not looked for.
const DEEPEST_WRAPPER: usize = 16;

/// So many members after the items are looked up in the base.
const MOST_KEYS: usize = 16;

impl<'b, 'f> Attempt<'b, 'f> {
    /// The join of the items that were missing; nothing if the fragment is no such document.
    pub(super) fn remainder(&self) -> Option<Result<Candidate<'f>, Outcome>> {
        if self.base.scanner().depth() > DEEPEST_WRAPPER || !self.stands_alone() {
            return None;
        }
        let mut frames: Vec<Frame<'b>> = self.base.scanner().open_frames().collect();
        frames.reverse();
        let arrays = (0..frames.len()).filter(|level| frames[*level].container == Container::Array);
        let mut found: Vec<Result<Candidate<'f>, Outcome>> = Vec::new();
        for level in arrays {
            let wrapped = self.inside_wrapper(&frames[..=level]);
            let has_key = |frame: &Frame<'_>| matches!(frame.coordinate, Some(Coordinate::Key(_)));
            let is_tied = frames[..=level].iter().any(has_key);
            let blank = self.fragment.len() - self.fragment.trim_start().len();
            let bare = self.fragment[blank..].starts_with('[').then_some(blank + 1);
            for (items, is_tied) in [(wrapped, is_tied), (bare, false)] {
                let Some(items) = items else { continue };
                found.extend(self.items_from(items, &frames, level, is_tied));
            }
            // A wrapper whose first item is the array's own first item leads nowhere further in.
            let begins_anew = |items| {
                let inner = frames.get(level + 1);
                inner.is_some_and(|f| self.begins_anew(frames[level].opener, f.opener, items))
            };
            if wrapped.is_some_and(begins_anew) {
                break;
            }
        }
        // Saying again what was cut is proof; where nothing was to be said again, two readings
        // are one too many.
        found.sort_by_key(|one| std::cmp::Reverse(one.as_ref().map_or(0, |c| c.bits)));
        let mut found = found.into_iter();
        let best = found.next()?;
        let place = |c: &Candidate<'_>| (c.join.separator, c.join.addition.as_ptr());
        let rival = found.find(|other| match (&best, other) {
            (Ok(best), Ok(other)) => best.bits - other.bits < ENOUGH && place(best) != place(other),
            (Ok(best), Err(_)) => best.bits < ENOUGH,
            (Err(_), _) => false,
        });
        Some(match (best, rival) {
            (Ok(_), Some(_)) => Err(Outcome::Ambiguous {
                shorter: 0,
                longer: 0,
            }),
            (best, _) => best,
        })
    }

    /// Whether the fragment is a document whose array at the cut begins with two equal items.
    /// It may begin the base again, or be what remains of a document that repeats itself.
    pub(super) fn begins_with_equal_items(&self) -> bool {
        let scanner = self.base.scanner();
        if scanner.depth() > DEEPEST_WRAPPER || !self.stands_alone() {
            return false;
        }
        let mut frames: Vec<Frame<'b>> = scanner.open_frames().collect();
        frames.reverse();
        (0..frames.len())
            .filter(|level| frames[*level].container == Container::Array)
            .any(|level| {
                let Some(items) = self.inside_wrapper(&frames[..=level]) else {
                    return false;
                };
                let mut tokens = Tokens::new(self.fragment, items, false);
                let first = read_value(&mut tokens);
                let comma = tokens.next().is_some_and(|token| token.is_mark(","));
                match (first, read_value(&mut tokens)) {
                    (Some((start, end)), Some((next, next_end))) if comma => Tokens::new(
                        &self.fragment[..end],
                        start,
                        false,
                    )
                    .eq(Tokens::new(&self.fragment[..next_end], next, false)),
                    _ => false,
                }
            })
    }

    /// Follows the base's keys in the fragment and says where the array's first item would be.
    fn inside_wrapper(&self, frames: &[Frame<'b>]) -> Option<usize> {
        let mut tokens = Tokens::new(self.fragment, 0, false);
        let (root, inner) = frames.split_first()?;
        let mut opener = tokens.next().filter(|token| opens(token, root.container))?;
        let mut parent = root;
        for frame in inner {
            if let Coordinate::Key(key) = frame.coordinate? {
                self.find_member(&mut tokens, parent, key)?;
            }
            opener = tokens
                .next()
                .filter(|token| opens(token, frame.container))?;
            parent = frame;
        }
        Some(opener.end)
    }

    /// Reads members up to the one of that name. Those before it must say what the base says.
    fn find_member(&self, tokens: &mut Tokens<'f>, parent: &Frame<'_>, key: &[u8]) -> Option<()> {
        let mut members = None;
        loop {
            let name = tokens
                .next()
                .filter(|token| token.kind == TokenKind::String)?;
            tokens.next().filter(|token| token.is_mark(":"))?;
            if name.raw.as_bytes() == key || decode(name.raw.as_bytes()) == decode(key) {
                return Some(());
            }
            let (start, end) = read_value(tokens)?;
            let text = self.base.text();
            let members = members.get_or_insert_with(|| self.members_of(parent.opener));
            let known = *members.get(&decode(name.raw.as_bytes()))?;
            if !Tokens::new(&text[..known.1], known.0, false).eq(Tokens::new(
                &self.fragment[..end],
                start,
                false,
            )) {
                return None;
            }
            tokens.next().filter(|token| token.is_mark(","))?;
        }
    }

    /// Where the values of the base's object that opens at a byte are, as far as they are whole.
    /// All at once: looking each of them up from the start would take the square of the time.
    pub(super) fn members_of(&self, opener: usize) -> HashMap<Cow<'b, str>, (usize, usize)> {
        let text = self.base.text();
        self.count(text.len() - opener);
        let mut tokens = Tokens::new(text, opener + 1, false);
        let mut members = HashMap::new();
        while let (Some(key), Some(_colon)) = (tokens.next(), tokens.next())
            && let Some(value) = read_value(&mut tokens)
        {
            members.entry(decode(key.raw.as_bytes())).or_insert(value);
            tokens.next();
        }
        members
    }

    /// Joins the items that begin at a byte of the fragment to the base's array at a level.
    fn items_from(
        &self,
        items: usize,
        frames: &[Frame<'b>],
        level: usize,
        is_tied: bool,
    ) -> Option<Result<Candidate<'f>, Outcome>> {
        let place = self.base.scanner().place()?;
        let innermost = level + 1 == frames.len();
        let between = matches!(
            place,
            CutPlace::ContainerStart | CutPlace::AfterComma | CutPlace::AfterValue
        );
        let mut first = Tokens::new(self.fragment, items, false);
        if first.next().is_some_and(|token| token.is_mark("{["))
            && first.next().is_some_and(|token| token.is_mark("}]"))
        {
            // An empty item: one that was left out, or a document begun anew, cut and closed.
            return Some(Err(Outcome::Ambiguous {
                shorter: 0,
                longer: 0,
            }));
        }
        if innermost && between {
            self.next_items_from(items, &frames[..=level], place, is_tied)
        } else {
            self.cut_element_from(items, frames, level, is_tied)
        }
    }

    /// The element that was cut comes again, and from there on the fragment goes further.
    fn cut_element_from(
        &self,
        items: usize,
        frames: &[Frame<'b>],
        level: usize,
        is_tied: bool,
    ) -> Option<Result<Candidate<'f>, Outcome>> {
        let (text, scanner) = (self.base.text(), self.base.scanner());
        let innermost = level + 1 == frames.len();
        let open = frames.get(level + 1).map(|frame| frame.opener);
        let element = open.or(scanner.elements().0)?;
        // What is like the beginning of the array, or has a member again, begins it all again.
        let like = |at| self.likeness(&frames[level..=level], element, at);
        let ambiguous = |longer| Some(Err(Outcome::Ambiguous { shorter: 0, longer }));
        let Ok((from, base_len, matched)) = self.compare_from(element, items) else {
            let restart = Err(Outcome::NoMatch(Mismatch::Restart));
            return (like(items) >= ENOUGH).then_some(restart);
        };
        let array = frames[level].opener;
        // What was asked for is expected, and nothing else is.
        let bits = match self.protocol {
            Protocol::Remainder => self.evidence.of(element, text.len()) + ASKED,
            _ => self.evidence.since(element),
        };
        if !is_tied && !innermost && bits < ENOUGH {
            return None;
        }
        let is_weak = if self.protocol == Protocol::Remainder {
            bits < ENOUGH && self.repeats_items(array, element, items)
        } else {
            let is_like = |at| like(at) >= ENOUGH;
            bits < ENOUGH || is_like(items) || self.after_value(items).is_some_and(is_like)
        };
        if is_weak
            || bits < 2 * ENOUGH && self.stands_in_array(array, element, items)
            || self.begins_anew(array, element, items)
            || self.has_members_again(&frames[..=level], items)
        {
            return ambiguous(matched);
        }
        if !is_tied && !self.begins_like(Tokens::new(text, element, false), items) {
            return None;
        }
        let join = self
            .join(Outcome::Remainder, base_len, "", from, matched)
            .ok()?;
        Some(Ok(Candidate { bits, from, join }))
    }

    /// The fragment has the items after the last whole one of the innermost of some containers.
    fn next_items_from(
        &self,
        items: usize,
        frames: &[Frame<'b>],
        place: CutPlace,
        is_tied: bool,
    ) -> Option<Result<Candidate<'f>, Outcome>> {
        let (text, scanner) = (self.base.text(), self.base.scanner());
        let first = Tokens::new(self.fragment, items, false).next()?;
        let previous = scanner.elements().1;
        if let Some((start, end)) = previous {
            let opener = frames.last()?.opener;
            let same_as = |from: usize, to: usize| {
                let mut item = Tokens::new(self.fragment, first.start, false);
                read_value(&mut item).is_some_and(|(start, end)| {
                    Tokens::new(&text[..to], from, false).eq(Tokens::new(
                        &self.fragment[..end],
                        start,
                        false,
                    ))
                })
            };
            let end = text[..end].trim_end_matches([' ', '\n', '\r', '\t']).len();
            let is_like = if self.protocol == Protocol::Remainder {
                self.repeats_items(opener, text.len(), first.start)
            } else {
                self.likeness(&frames[frames.len() - 1..], text.len(), first.start) >= ENOUGH
            };
            // The last item once more, or the first one: a repetition, or a document begun anew.
            // So may be a document without any of the items, if there are few to miss.
            if same_as(start, end)
                || self.protocol != Protocol::Remainder && self.said_after_first(opener) < ENOUGH
                || self.begins_anew(opener, text.len(), first.start)
                || is_like
                || self.has_members_again(frames, first.start)
            {
                return Some(Err(Outcome::Ambiguous {
                    shorter: 0,
                    longer: 0,
                }));
            }
            if !is_tied && !self.begins_like(Tokens::new(&text[..end], start, false), first.start) {
                return None;
            }
        } else if !is_tied {
            return None;
        } else if self.protocol != Protocol::Remainder {
            return Some(Err(Outcome::Ambiguous {
                shorter: 0,
                longer: 0,
            }));
        }
        let separator = match place {
            CutPlace::AfterValue if !first.is_mark("]") => ",",
            _ => "",
        };
        let join = self
            .join(Outcome::Remainder, text.len(), separator, first.start, 0)
            .ok()?;
        Some(Ok(Candidate {
            bits: 0,
            from: first.start,
            join,
        }))
    }

    /// Whether the fragment goes on after the items with members that the base has already in the
    /// containers around them.
    fn has_members_again(&self, frames: &[Frame<'b>], items: usize) -> bool {
        let mut tokens = Tokens::new(self.fragment, items, false).peekable();
        let (mut depth, mut keys) = (frames.len(), 0);
        while let Some(token) = tokens.next() {
            if token.is_mark("{[") {
                depth += 1;
            } else if token.is_mark("}]") {
                depth -= 1;
            }
            let Some(last) = depth.checked_sub(1) else {
                return false;
            };
            let is_key = token.kind == TokenKind::String
                && tokens.peek().is_some_and(|next| next.is_mark(":"));
            if is_key && depth < frames.len() && keys < MOST_KEYS {
                let members = self.members_of(frames[last].opener);
                if members.contains_key(&decode(token.raw.as_bytes())) {
                    return true;
                }
                keys += 1;
            }
        }
        false
    }

    /// Whether one of the first two items from a byte of the fragment on says what one of the first
    /// items of the base's array says, up to the one that was cut. Rows of a table may all have the
    /// same values in some columns: what the last row says as well says nothing.
    fn repeats_items(&self, array: usize, cut: usize, items: usize) -> bool {
        let text = &self.base.text()[..cut];
        self.count(cut - array);
        let mut tokens = Tokens::new(text, array + 1, false);
        let mut known = Vec::new();
        while let Some(value) = read_value(&mut tokens) {
            known.push(value);
            tokens.next();
        }
        let item = |at| read_value(&mut Tokens::new(self.fragment, at, false));
        let Some(first) = item(items) else {
            return false;
        };
        let second = self.after_value(items).and_then(item);
        let said = |known: (usize, usize), item: (usize, usize)| {
            self.equal_values(
                Tokens::new(&text[..known.1], known.0, false),
                Tokens::new(&self.fragment[..item.1], item.0, false),
            )
        };
        let last = known.last().filter(|_| known.len() > 2);
        let in_columns = last.map_or(0, |last| said(*last, first));
        known.iter().take(MOST_LEFT_OUT).any(|known| {
            let most = said(*known, first).max(second.map_or(0, |second| said(*known, second)));
            most >= in_columns + ENOUGH - ASKED
        })
    }

    /// What the base's array says after those first items that a document begun anew may leave out.
    fn said_after_first(&self, array: usize) -> u32 {
        let text = self.base.text();
        let mut tokens = Tokens::new(text, array + 1, false);
        let mut start = text.len();
        for _ in 0..MOST_LEFT_OUT {
            if read_value(&mut tokens).is_none() {
                return 0;
            }
            let comma = tokens.next();
            start = comma.map_or(text.len(), |comma| comma.end);
        }
        self.count(start - array);
        self.evidence.since(start)
    }

    /// Where the next item begins in the fragment after one that begins at a byte.
    fn after_value(&self, item: usize) -> Option<usize> {
        let mut tokens = Tokens::new(self.fragment, item, false);
        read_value(&mut tokens)?;
        tokens
            .next()
            .filter(|token| token.is_mark(","))
            .map(|comma| comma.end)
    }

    /// Whether the item at a byte of the fragment is one of those that the base's array has had
    /// before the one that was cut.
    fn stands_in_array(&self, array: usize, cut: usize, item: usize) -> bool {
        let text = &self.base.text()[..cut];
        self.count(cut - array);
        let mut again = Tokens::new(self.fragment, item, false);
        let Some((start, end)) = read_value(&mut again) else {
            return false;
        };
        let mut known = Tokens::new(text, array + 1, false);
        while let Some((known_start, known_end)) = read_value(&mut known) {
            let one = Tokens::new(&text[..known_end], known_start, false);
            if one.eq(Tokens::new(&self.fragment[..end], start, false)) {
                return true;
            }
            known.next();
        }
        false
    }

    /// Whether the item at a byte of the fragment begins as the array's first item does, with
    /// the same first member or the same value, and as the item that was cut does not.
    fn begins_anew(&self, array: usize, cut: usize, item: usize) -> bool {
        let text = self.base.text();
        let Some(first) = Tokens::new(text, array + 1, false)
            .next()
            .filter(|first| first.start < cut)
        else {
            return false;
        };
        let head = match first.raw {
            "{" if first.is_mark("{") => 4,
            "[" if first.is_mark("[") => 2,
            _ => 1,
        };
        let begins_as = |known: usize| {
            let item = Tokens::new(self.fragment, item, false).take(head);
            Tokens::new(text, known, false)
                .zip(item)
                .all(|(a, b)| a == b)
        };
        let is_whole = Tokens::new(text, cut, false).nth(head).is_some();
        begins_as(first.start) && !(is_whole && begins_as(cut))
    }
}

pub(super) fn opens(token: &Token<'_>, container: Container) -> bool {
    token.is_mark(match container {
        Container::Object => "{",
        Container::Array => "[",
    })
}

/// Reads one value and says where it begins and ends.
pub(super) fn read_value(tokens: &mut Tokens<'_>) -> Option<(usize, usize)> {
    let first = tokens.next()?;
    let (mut last, mut depth) = (first, 0_usize);
    loop {
        if last.is_mark("{[") {
            depth += 1;
        } else if last.is_mark("}]") {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 {
            return Some((first.start, last.end));
        }
        last = tokens.next()?;
    }
}
