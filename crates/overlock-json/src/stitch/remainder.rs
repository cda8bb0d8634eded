//! Joins a document of its own that holds only what was missing.
//!
//! A model that is held to valid JSON cannot go on in the middle. It sends the remaining items
//! as an array, or in the same wrapper as the base's: the keys on the way to the cut, repeated.

use super::decide::progress;
use super::{Attempt, Join, Outcome};
use crate::cut::Place;
use crate::scan::{Container, Coordinate, Frame, Scanner};
use crate::tokens::{Token, TokenKind, Tokens, decoded};

/// A wrapper deeper than this is not looked for.
const DEEPEST_WRAPPER: usize = 64;

impl<'b, 'f> Attempt<'b, 'f> {
    /// The join of the items that were missing; nothing if the fragment is no such document.
    pub(super) fn remainder(&self) -> Option<Result<Join<'f>, Outcome>> {
        if self.base.scanner().depth() > DEEPEST_WRAPPER || !self.is_document() {
            return None;
        }
        let mut frames: Vec<Frame<'b>> = self.base.scanner().open_frames().collect();
        frames.reverse();
        let arrays = (0..frames.len()).filter(|level| frames[*level].container == Container::Array);
        let mut joins: Vec<Result<Join<'f>, Outcome>> = Vec::new();
        for level in arrays {
            let innermost = level + 1 == frames.len();
            let wrapped = self.inside_wrapper(&frames[..=level]);
            let names_a_key = frames[..=level].iter().any(|f| matches!(f.coordinate, Some(Coordinate::Key(_))));
            let bare = self.fragment.trim_start().starts_with('[') && innermost;
            let bare = bare.then(|| self.fragment.len() - self.fragment.trim_start().len() + 1);
            for (items, is_tied) in [(wrapped, names_a_key), (bare, false)] {
                let Some(items) = items else { continue };
                joins.extend(self.items_from(items, &frames, level, is_tied));
            }
        }
        let mut joins = joins.into_iter();
        let first = joins.next()?;
        let document = |join: &Result<Join<'_>, Outcome>| {
            join.as_ref().ok().map(|join| (join.separator, join.addition.as_ptr()))
        };
        let rival = joins.find(|join| document(join) != document(&first));
        Some(match rival {
            Some(_) => Err(Outcome::Ambiguous { shorter: 0, longer: 0 }),
            None => first.and_then(progress),
        })
    }

    fn is_document(&self) -> bool {
        let mut scanner = Scanner::new();
        scanner.feed(self.fragment.as_bytes());
        self.fragment.trim_start().starts_with(['{', '[']) && scanner.depth() <= DEEPEST_WRAPPER
            && scanner.offence().is_none_or(|offence| {
                offence.kind == crate::scan::OffenceKind::TrailingText
                    && super::unwrap::is_prose(&self.fragment[offence.offset..])
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
            opener = tokens.next().filter(|token| opens(token, frame.container))?;
            parent = frame;
        }
        Some(opener.end)
    }

    /// Reads members up to the one of that name. Those before it must say what the base says.
    fn find_member(&self, tokens: &mut Tokens<'f>, parent: &Frame<'_>, key: &[u8]) -> Option<()> {
        loop {
            let name = tokens.next().filter(|token| token.kind == TokenKind::String)?;
            tokens.next().filter(|token| token.is_mark(":"))?;
            if decoded(name.raw) == crate::strings::decode(key) {
                return Some(());
            }
            let (start, end) = read_value(tokens)?;
            let text = self.base.text();
            let known = member_value(text, parent.opener, &name)?;
            self.count(known.1 - parent.opener);
            if !Tokens::new(&text[..known.1], known.0, false)
                .eq(Tokens::new(&self.fragment[..end], start, false))
            {
                return None;
            }
            tokens.next().filter(|token| token.is_mark(","))?;
        }
    }

    /// Joins the items that begin at a byte of the fragment to the base's array at a level.
    fn items_from(
        &self,
        items: usize,
        frames: &[Frame<'b>],
        level: usize,
        is_tied: bool,
    ) -> Option<Result<Join<'f>, Outcome>> {
        let text = self.base.text();
        let scanner = self.base.scanner();
        let place = scanner.cut()?.place;
        let innermost = level + 1 == frames.len();
        let between = matches!(place, Place::ContainerStart | Place::AfterComma | Place::AfterValue);
        if !innermost || !between {
            // The element that was cut must come again, and from there on go further.
            let element = frames.get(level + 1).map_or(scanner.elements().0?, |frame| frame.opener);
            let (from, base_len) = self.says_again(element, items)?;
            if !is_tied && !self.begins_like(Tokens::new(text, element, false), items) {
                return None;
            }
            return self.join(Outcome::Remainder, base_len, "", from, 0).ok().map(Ok);
        }
        let first = Tokens::new(self.fragment, items, false).next()?;
        let previous = scanner.elements().1;
        if let Some((start, end)) = previous {
            let opener = frames[level].opener;
            let same_as = |from: usize, to: usize| {
                let mut item = Tokens::new(self.fragment, first.start, false);
                read_value(&mut item).is_some_and(|(start, end)| {
                    Tokens::new(&text[..to], from, false)
                        .eq(Tokens::new(&self.fragment[..end], start, false))
                })
            };
            let end = text[..end].trim_end_matches([' ', '\n', '\r', '\t']).len();
            // The last item once more, or the first one: a repetition, or a document begun anew.
            if same_as(start, end) || self.begins_anew(opener, first.start) {
                return Some(Err(Outcome::Ambiguous { shorter: 0, longer: 0 }));
            }
            if !is_tied && !self.begins_like(Tokens::new(&text[..end], start, false), first.start) {
                return None;
            }
        } else if !is_tied {
            return None;
        }
        let separator = match place {
            Place::AfterValue if !first.is_mark("]") => ",",
            _ => "",
        };
        self.join(Outcome::Remainder, text.len(), separator, first.start, 0).ok().map(Ok)
    }

    /// Whether the item at a byte of the fragment begins as the array's first item does, with
    /// the same first member or the same value.
    fn begins_anew(&self, array: usize, item: usize) -> bool {
        let known = Tokens::new(self.base.text(), array + 1, false);
        let item = Tokens::new(self.fragment, item, false);
        known.zip(item).take(4).all(|(one, another)| one == another)
    }

    /// Where the fragment goes on after it has said again, from `at`, all that the base has from
    /// `element` to its cut; and how much of the base stays.
    fn says_again(&self, element: usize, at: usize) -> Option<(usize, usize)> {
        let (from, base_len, _) = self.compare_from(element, at).ok()?;
        Some((from, base_len))
    }
}

fn opens(token: &Token<'_>, container: Container) -> bool {
    token.is_mark(match container {
        Container::Object => "{",
        Container::Array => "[",
    })
}

/// Reads one value and says where it begins and ends.
fn read_value(tokens: &mut Tokens<'_>) -> Option<(usize, usize)> {
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

/// The value of a member of the object that opens at a byte.
fn member_value(text: &str, opener: usize, name: &Token<'_>) -> Option<(usize, usize)> {
    let mut tokens = Tokens::new(text, opener, false);
    tokens.next()?;
    loop {
        let key = tokens.next()?;
        tokens.next().filter(|token| token.is_mark(":"))?;
        let value = read_value(&mut tokens)?;
        if key == *name {
            return Some(value);
        }
        tokens.next().filter(|token| token.is_mark(","))?;
    }
}
