//! Checks that every cut is closed correctly.
//!
//! A closed text is correct if it is valid JSON; its tokens are those of the document up to some
//! point, followed only by closers; the last token may be the beginning of a string; and every
//! value that was complete before the cut is there. For peers that take text a cut character is
//! removed first.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::Options;
use crate::documents::small;
use crate::outside::{self, Outside};
use crate::peers::{CLOSERS, quietly};
use crate::table::{Table, share};
use crate::tokens::{Kind, Token, is_valid, tokens};

/// The verdict on a closed text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Right,
    /// No result, or not JSON.
    Invalid,
    /// It has something that the document does not, such as a shortened number.
    Invented,
    /// A value that was complete before the cut is missing.
    Lost,
}

/// The results of one peer.
#[derive(Default)]
struct Tally {
    counts: [usize; 4],
    all: usize,
}

impl Tally {
    fn add(&mut self, verdict: Verdict) {
        self.counts[verdict as usize] += 1;
        self.all += 1;
    }

    fn row(&self, name: String) -> [String; 6] {
        let [right, invalid, invented, lost] = self.counts;
        let counts = [invalid, invented, lost].map(|count| count.to_string());
        let [invalid, invented, lost] = counts;
        [
            name,
            self.all.to_string(),
            share(right, self.all),
            invalid,
            invented,
            lost,
        ]
    }
}

/// The time limit of a peer for all cuts.
const PATIENCE: Duration = Duration::from_mins(1);

/// Closes every cut of 81 documents with every peer.
pub(crate) fn run(options: &Options) -> Result<()> {
    let documents = small(81);
    let step = if options.quick { 7 } else { 1 };
    let documents: Vec<(String, Vec<Token>)> = documents
        .into_iter()
        .map(|text| (text.clone(), tokens(&text)))
        .collect();

    let mut table = Table::new([
        "closing every cut",
        "cuts",
        "right",
        "invalid",
        "invented",
        "lost",
    ]);
    for peer in CLOSERS {
        eprintln!("   closing with {}", peer.name);
        let mut tally = Tally::default();
        let begun = Instant::now();
        quietly(|| {
            for (text, tokens) in &documents {
                for (cut, prefix) in cuts(text, step) {
                    if begun.elapsed() < PATIENCE {
                        tally.add(judge(tokens, cut, peer.run(prefix).as_deref()));
                    }
                }
            }
        });
        table.row(tally.row(peer.name.to_owned()));
    }

    let prefixes: Vec<&str> = documents
        .iter()
        .flat_map(|(text, _)| cuts(text, step).map(|(_, prefix)| prefix))
        .collect();
    let judged: Vec<(usize, &[Token])> = documents
        .iter()
        .flat_map(|(text, tokens)| cuts(text, step).map(|(cut, _)| (cut, tokens.as_slice())))
        .collect();
    for peer in outside::CLOSERS {
        eprintln!("   closing with {}", peer.name);
        match peer.run(&prefixes) {
            Outside::Answers { answers, .. } => {
                let mut tally = Tally::default();
                for ((cut, tokens), answer) in judged.iter().zip(&answers) {
                    tally.add(judge(tokens, *cut, answer.as_deref()));
                }
                table.row(tally.row(peer.name.to_owned()));
            }
            Outside::Missing(reason) => table.row([peer.name.to_owned(), reason]),
        }
    }
    table.print("Closing");
    Ok(())
}

/// Every cut after the root has begun, with the text before it up to the last whole character.
fn cuts(text: &str, step: usize) -> impl Iterator<Item = (usize, &str)> {
    (1..text.len()).step_by(step).map(|cut| {
        let whole = (0..=cut)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        (cut, &text[..whole])
    })
}

/// Checks a closed text against its document.
pub(crate) fn is_right(document: &[Token], cut: usize, closed: &str) -> bool {
    judge(document, cut, Some(closed)) == Verdict::Right
}

fn judge(document: &[Token], cut: usize, closed: Option<&str>) -> Verdict {
    let Some(closed) = closed.filter(|closed| is_valid(closed)) else {
        return Verdict::Invalid;
    };
    let closed = tokens(closed);
    let mut agreed = document
        .iter()
        .zip(&closed)
        .take_while(|(one, other)| one.kind == other.kind)
        .count();
    let mut rest = &closed[agreed..];
    // A name without a value does not count, and the closed text may not end with one.
    if let (
        Some(token),
        Some(Token {
            kind: Kind::String(half),
            ..
        }),
    ) = (document.get(agreed), rest.first())
        && let Kind::String(whole) = &token.kind
        && whole.starts_with(half)
        && token.end > cut
    {
        rest = &rest[1..];
        agreed += 1;
    }
    if rest
        .iter()
        .any(|token| !matches!(token.kind, Kind::Close(_)))
    {
        return Verdict::Invented;
    }
    let is_complete_leaf = |index: usize, token: &Token| match token.kind {
        Kind::String(_) | Kind::Literal(_) => token.end <= cut,
        // A number is complete only once a delimiter follows.
        Kind::Number(..) => token.end < cut,
        Kind::Close(_) => {
            token.end <= cut && index > 0 && matches!(document[index - 1].kind, Kind::Open(_))
        }
        Kind::Open(_) | Kind::Key(_) => false,
    };
    let missing = document
        .iter()
        .enumerate()
        .skip(agreed)
        .any(|(index, token)| is_complete_leaf(index, token));
    // Closers can match those of the document by chance.
    if missing {
        Verdict::Lost
    } else {
        Verdict::Right
    }
}
