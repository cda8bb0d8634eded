//! Chooses the pieces of a text to show if not even its outline fits.
//!
//! The order is: relevant declarations and the types around them, other types, other declarations,
//! imports. A text whose declarations are unknown is chosen from by lines. Pieces stay in the order
//! of the text, with `…` where something was left out.

use std::cmp::Reverse;
use std::ops::Range;

use super::{Relevant, without_pieces};
use crate::compact::Source;
use crate::compact::layout::Docs;
use crate::language::Syntax;
use crate::outline::Elision;
use crate::outline::csharp::{Bodies, bodies};
use crate::outline::declarations::{Declaration, DeclarationKind, declarations};

/// A text that can be shown in part.
pub(super) trait Choice {
    /// How many pieces there are.
    fn len(&self) -> usize;
    /// How many pieces must be shown to include the most important one.
    fn least(&self) -> usize;
    /// The text with only the `pieces` most important ones; none if it cannot be written.
    fn show(&self, pieces: usize) -> Option<String>;
}

/// Replaces pieces that are left out; the note at the end says how much that is.
const MARK: &str = "…";

/// How important a piece is; the smallest rank comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its declaration contains relevant words, or it contains such a piece; more words rank higher.
    Relevant(Reverse<usize>),
    Type,
    /// Only its body, which is left out, contains relevant words.
    RelevantInside(Reverse<usize>),
    Other,
    /// An import or a frame around other declarations.
    Last,
}

/// The indices of the pieces, the most important first.
fn order(ranks: &[Rank]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by_key(|&piece| (ranks[piece], piece));
    order
}

/// For each piece, whether it is among the first `pieces` of the order.
fn chosen(order: &[usize], pieces: usize) -> Vec<bool> {
    let mut chosen = vec![false; order.len()];
    for &piece in &order[..pieces] {
        chosen[piece] = true;
    }
    chosen
}

/// The declarations of a C# file.
pub(super) struct RankedDeclarations<'a> {
    text: &'a str,
    docs: Docs,
    declarations: Vec<Declaration>,
    bodies: Vec<Elision>,
    order: Vec<usize>,
    least: usize,
}

impl<'a> RankedDeclarations<'a> {
    /// None if the text cannot be parsed or declares nothing.
    pub(super) fn new(text: &'a str, docs: Docs, relevant: &Relevant) -> Option<Self> {
        let declarations = declarations(text)?;
        if declarations.is_empty() {
            return None;
        }
        let Bodies { bodies, .. } = bodies(text)?;
        let bodies: Vec<Elision> = bodies.into_iter().map(|body| body.elision).collect();
        let mut ranks = ranks(text, &declarations, &bodies, relevant);
        let first = order(&ranks).first().copied();
        // A declaration is at least as important as what it contains.
        for index in (0..declarations.len()).rev() {
            if let Some(parent) = declarations[index].parent {
                ranks[parent] = ranks[parent].min(ranks[index]);
            }
        }
        let order = order(&ranks);
        let first = order.iter().position(|&index| Some(index) == first);
        Some(Self {
            text,
            docs,
            declarations,
            bodies,
            least: first? + 1,
            order,
        })
    }

    /// The pieces to leave out if only the chosen declarations stay, including their bodies.
    fn elisions(&self, chosen: &[bool]) -> Vec<Elision> {
        let mut gone: Vec<Range<usize>> = Vec::new();
        let mut joined_until = 0;
        let left_out = self
            .declarations
            .iter()
            .zip(chosen)
            .filter(|(_, stays)| !**stays);
        for (declaration, _) in left_out {
            let Range { start, end } = declaration.range;
            // It is inside a declaration that is left out.
            if start < joined_until {
                continue;
            }
            match gone.last_mut() {
                Some(last) if is_blank(&self.text[last.end..start]) => last.end = end,
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
            // Before a closing brace, the mark shares its line.
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

impl Choice for RankedDeclarations<'_> {
    fn len(&self) -> usize {
        self.declarations.len()
    }

    fn least(&self) -> usize {
        self.least
    }

    fn show(&self, pieces: usize) -> Option<String> {
        let elisions = self.elisions(&chosen(&self.order, pieces));
        without_pieces(self.text, &elisions, self.docs)
    }
}

/// The rank of each declaration, regardless of what it contains.
fn ranks(
    text: &str,
    declarations: &[Declaration],
    bodies: &[Elision],
    relevant: &Relevant,
) -> Vec<Rank> {
    let mut bodies = bodies.iter().peekable();
    let mut ranks: Vec<Rank> = Vec::with_capacity(declarations.len());
    for declaration in declarations {
        let Range { start, end } = declaration.head;
        while bodies.next_if(|body| body.range.end <= start).is_some() {}
        let inside = bodies.peek().filter(|body| body.range.start < end);
        let head_end = inside.map_or(end, |body| body.range.start.max(start));
        let outside = relevant.words_in(&text[start..head_end]);
        let inside = relevant.words_in(&text[head_end..end]);
        let matches = 3 * outside + inside;
        ranks.push(match declaration.kind {
            DeclarationKind::Import | DeclarationKind::Frame => Rank::Last,
            _ if outside > 0 => Rank::Relevant(Reverse(matches)),
            DeclarationKind::Type => Rank::Type,
            DeclarationKind::Member if inside > 0 => Rank::RelevantInside(Reverse(matches)),
            DeclarationKind::Member => Rank::Other,
        });
    }
    ranks
}

/// The lines of a text.
pub(super) struct RankedLines<'a> {
    lines: Vec<&'a str>,
    order: Vec<usize>,
}

impl<'a> RankedLines<'a> {
    pub(super) fn new(text: &'a str, source: Option<Source>, relevant: &Relevant) -> Self {
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
            matches => Rank::Relevant(Reverse(matches)),
        };
        let ranks: Vec<Rank> = lines.iter().map(rank).collect();
        Self {
            lines,
            order: order(&ranks),
        }
    }

    /// The most important line.
    pub(super) fn first(&self) -> &'a str {
        self.order.first().map_or("", |&first| self.lines[first])
    }
}

impl Choice for RankedLines<'_> {
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

/// Whether there are only blank lines and `#region` directives.
fn is_blank(between: &str) -> bool {
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
