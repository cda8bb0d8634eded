//! Which pieces of a text come first if not even its outline fits?
//!
//! What has to do with the question, and the types that it is in; then the other types; then all
//! other declarations in their order; imports last. A text whose declarations are not known is
//! chosen from by its lines. Pieces stay in the order of the text, with `…` where something went.

use std::cmp::Reverse;
use std::ops::Range;

use super::{Relevant, shown_without};
use crate::compact::Source;
use crate::compact::layout::Docs;
use crate::language::Syntax;
use crate::outline::Elision;
use crate::outline::csharp::{Bodies, bodies};
use crate::outline::declarations::{Declaration, Kind, declarations};

/// A text of which some pieces can be shown.
pub(super) trait Choice {
    /// How many pieces there are.
    fn len(&self) -> usize;
    /// How many have to be there for the one that matters most to be there.
    fn least(&self) -> usize;
    /// The text with only so many of them, those that matter most; nothing if it cannot be written.
    fn show(&self, pieces: usize) -> Option<String>;
}

/// What stands where something went; how much it was is said at the end.
const MARK: &str = "…";

/// How much a piece matters; the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It speaks of what is asked, or holds what does; the more of it the better.
    Asked(Reverse<usize>),
    Type,
    /// Only what is left out of it speaks of what is asked.
    AskedInside(Reverse<usize>),
    Other,
    /// An import, or what only stands around others.
    Last,
}

/// The places of pieces, those that matter most first.
fn order(ranks: &[Rank]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by_key(|&piece| (ranks[piece], piece));
    order
}

/// Which pieces are among the first so many.
fn chosen(order: &[usize], pieces: usize) -> Vec<bool> {
    let mut chosen = vec![false; order.len()];
    for &piece in &order[..pieces] {
        chosen[piece] = true;
    }
    chosen
}

/// The declarations of a file of C#.
pub(super) struct Declarations<'a> {
    text: &'a str,
    docs: Docs,
    found: Vec<Declaration>,
    bodies: Vec<Elision>,
    order: Vec<usize>,
    least: usize,
}

impl<'a> Declarations<'a> {
    /// Nothing if the text cannot be parsed, or declares nothing.
    pub(super) fn of(text: &'a str, docs: Docs, relevant: &Relevant) -> Option<Self> {
        let found = declarations(text)?;
        if found.is_empty() {
            return None;
        }
        let Bodies { bodies, .. } = bodies(text)?;
        let bodies: Vec<Elision> = bodies.into_iter().map(|body| body.elision).collect();
        let mut ranks = ranks(text, &found, &bodies, relevant);
        let first = order(&ranks).first().copied();
        // Nothing matters more than what it is in.
        for place in (0..found.len()).rev() {
            if let Some(parent) = found[place].parent {
                ranks[parent] = ranks[parent].min(ranks[place]);
            }
        }
        let order = order(&ranks);
        let first = order.iter().position(|&place| Some(place) == first);
        Some(Self {
            text,
            docs,
            found,
            bodies,
            least: first? + 1,
            order,
        })
    }

    /// What goes if these stay, with the bodies of those that do.
    fn elisions(&self, chosen: &[bool]) -> Vec<Elision> {
        let mut gone: Vec<Range<usize>> = Vec::new();
        let mut joined_until = 0;
        for (declaration, _) in self.found.iter().zip(chosen).filter(|(_, stays)| !**stays) {
            let Range { start, end } = declaration.range;
            // It is in something that goes.
            if start < joined_until {
                continue;
            }
            match gone.last_mut() {
                Some(last) if says_nothing(&self.text[last.end..start]) => last.end = end,
                _ => gone.push(start..end),
            }
            joined_until = end;
        }
        let mut elisions = Vec::with_capacity(gone.len() + self.bodies.len());
        let mut bodies = self.bodies.iter().peekable();
        for mut range in gone {
            while let Some(body) = bodies.next_if(|body| body.range.end <= range.start) {
                elisions.push(body.clone());
            }
            while bodies
                .next_if(|body| body.range.start < range.end)
                .is_some()
            {}
            // The mark needs no line of its own before a brace.
            let rest = &self.text[range.end..];
            if rest.trim_start().starts_with('}') {
                range.end += rest.len() - rest.trim_start().len();
            }
            let mark = MARK.to_owned();
            elisions.push(Elision { range, mark });
        }
        elisions.extend(bodies.cloned());
        elisions
    }
}

impl Choice for Declarations<'_> {
    fn len(&self) -> usize {
        self.found.len()
    }

    fn least(&self) -> usize {
        self.least
    }

    fn show(&self, pieces: usize) -> Option<String> {
        let elisions = self.elisions(&chosen(&self.order, pieces));
        shown_without(self.text, &elisions, self.docs)
    }
}

/// How much each declaration matters by itself.
fn ranks(text: &str, found: &[Declaration], bodies: &[Elision], relevant: &Relevant) -> Vec<Rank> {
    let mut bodies = bodies.iter().peekable();
    let mut ranks: Vec<Rank> = Vec::with_capacity(found.len());
    for declaration in found {
        let Range { start, end } = declaration.head;
        while bodies.next_if(|body| body.range.end <= start).is_some() {}
        let inside = bodies.peek().filter(|body| body.range.start < end);
        let head_end = inside.map_or(end, |body| body.range.start.max(start));
        let outside = relevant.words_in(&text[start..head_end]);
        let inside = relevant.words_in(&text[head_end..end]);
        let asked = 3 * outside + inside;
        ranks.push(match declaration.kind {
            Kind::Import | Kind::Frame => Rank::Last,
            _ if outside > 0 => Rank::Asked(Reverse(asked)),
            Kind::Type => Rank::Type,
            Kind::Member if inside > 0 => Rank::AskedInside(Reverse(asked)),
            Kind::Member => Rank::Other,
        });
    }
    ranks
}

/// The lines of a text.
pub(super) struct Lines<'a> {
    lines: Vec<&'a str>,
    order: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str, source: Option<Source>, relevant: &Relevant) -> Self {
        let lines: Vec<&str> = text.trim_end().split('\n').collect();
        let import = match source {
            Some(Source::Dotnet(Syntax::VisualBasic)) => Some("Imports"),
            Some(Source::Dotnet(_)) => Some("using"),
            _ => None,
        };
        let rank = |line: &&str| match relevant.words_in(line) {
            _ if import.is_some_and(|import| starts_with_word(line, import)) => Rank::Last,
            0 if import.is_some() && is_type(line) => Rank::Type,
            0 => Rank::Other,
            asked => Rank::Asked(Reverse(asked)),
        };
        let ranks: Vec<Rank> = lines.iter().map(rank).collect();
        Self {
            lines,
            order: order(&ranks),
        }
    }

    /// The line that matters most.
    pub(super) fn first(&self) -> &'a str {
        self.order.first().map_or("", |&first| self.lines[first])
    }
}

impl Choice for Lines<'_> {
    fn len(&self) -> usize {
        self.lines.len()
    }

    fn least(&self) -> usize {
        1
    }

    fn show(&self, pieces: usize) -> Option<String> {
        let mut shown: Vec<&str> = Vec::new();
        for (line, stays) in self.lines.iter().zip(chosen(&self.order, pieces)) {
            if stays {
                shown.push(line);
            } else if shown.last() != Some(&MARK) {
                shown.push(MARK);
            }
        }
        Some(shown.join("\n"))
    }
}

/// Whether there are only blank lines and borders of regions.
fn says_nothing(between: &str) -> bool {
    let mut lines = between.lines().map(str::trim);
    lines.all(|line| {
        line.is_empty() || line.starts_with("#region") || line.starts_with("#endregion")
    })
}

fn starts_with_word(line: &str, word: &str) -> bool {
    let first = line.split_whitespace().next();
    first.is_some_and(|first| first.eq_ignore_ascii_case(word))
}

/// Whether a line begins a type: `Public Class Form1`, `internal sealed record Item(int Id);`.
fn is_type(line: &str) -> bool {
    const TYPES: [&str; 7] = [
        "class",
        "module",
        "structure",
        "struct",
        "interface",
        "enum",
        "record",
    ];
    const BEFORE: [&str; 15] = [
        "public",
        "private",
        "protected",
        "internal",
        "friend",
        "partial",
        "shadows",
        "mustinherit",
        "notinheritable",
        "static",
        "sealed",
        "abstract",
        "readonly",
        "ref",
        "unsafe",
    ];
    let is_one_of =
        |word: &str, words: &[&str]| words.iter().any(|one| one.eq_ignore_ascii_case(word));
    let mut words = line.split_whitespace();
    let word = words.find(|word| !is_one_of(word, &BEFORE));
    word.is_some_and(|word| is_one_of(word, &TYPES))
}
