//! Checks that fragments are joined into the original document.
//!
//! Simulates how models continue. A join is right if its tokens are those of the document. It is
//! silently wrong if the result is valid JSON but another document.

use anyhow::Result;
use overlock_json::{ContextOptions, Outcome, PartialDocument, Protocol, StitchOptions, stitch};

use crate::Options;
use crate::documents::{report, small};
use crate::peers::quietly;
use crate::table::{Table, share};
use crate::tokens::{Kind, Style, Token, is_valid, same, tokens, written};

/// A document, its tokens and a cut in it.
struct Cut<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    /// The overlap that the model was asked to repeat.
    asked: String,
}

/// A behaviour of models; nothing where it does not apply to a cut.
struct Behaviour {
    name: &'static str,
    fragment: fn(&Cut) -> Option<String>,
    /// The options of our call, which match the request if the model follows it.
    asked: Requested,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Requested {
    /// Repeat this overlap.
    Overlap,
    /// Continue exactly at the cut.
    Prefill,
    /// The model did not follow the request.
    Nothing,
}

const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "exact, as asked",
        asked: Requested::Prefill,
        fragment: |cut| overlapping(cut, 0),
    },
    Behaviour {
        name: "overlap, as asked",
        asked: Requested::Overlap,
        fragment: as_asked,
    },
    Behaviour {
        name: "overlap of 8",
        asked: Requested::Nothing,
        fragment: |cut| overlapping(cut, 8),
    },
    Behaviour {
        name: "overlap of 40",
        asked: Requested::Nothing,
        fragment: |cut| overlapping(cut, 40),
    },
    Behaviour {
        name: "overlap of 200",
        asked: Requested::Nothing,
        fragment: |cut| overlapping(cut, 200),
    },
    Behaviour {
        name: "overlap of 1000",
        asked: Requested::Nothing,
        fragment: |cut| overlapping(cut, 1000),
    },
    Behaviour {
        name: "as asked, in a fence",
        asked: Requested::Overlap,
        fragment: |cut| Some(format!("```json\n{}\n```", as_asked(cut)?)),
    },
    Behaviour {
        name: "as asked, prose around it",
        asked: Requested::Overlap,
        fragment: |cut| {
            Some(format!(
                "Here is the rest of the document:\n\n{}\n\nLet me know!",
                as_asked(cut)?
            ))
        },
    },
    Behaviour {
        name: "as asked, prose and fence",
        asked: Requested::Overlap,
        fragment: |cut| {
            Some(format!(
                "Continuing:\n```json\n{}\n```\nThat is all.",
                as_asked(cut)?
            ))
        },
    },
    Behaviour {
        name: "restart at the root",
        asked: Requested::Nothing,
        fragment: |cut| Some(cut.text.to_owned()),
    },
    Behaviour {
        name: "restart at the root, re-indented",
        asked: Requested::Nothing,
        fragment: |cut| {
            Some(written(
                cut.text,
                cut.tokens,
                0,
                Style {
                    indent: Some(4),
                    ..Style::default()
                },
            ))
        },
    },
    Behaviour {
        name: "restart at the root, re-escaped",
        asked: Requested::Nothing,
        fragment: |cut| {
            Some(written(
                cut.text,
                cut.tokens,
                0,
                Style {
                    escapes: true,
                    ..Style::default()
                },
            ))
        },
    },
    Behaviour {
        name: "restart at the item",
        asked: Requested::Nothing,
        fragment: |cut| from_item(cut, Style::default()),
    },
    Behaviour {
        name: "restart at the item, re-indented",
        asked: Requested::Nothing,
        fragment: |cut| {
            from_item(
                cut,
                Style {
                    indent: Some(2),
                    ..Style::default()
                },
            )
        },
    },
    Behaviour {
        name: "overlap with other white space",
        asked: Requested::Nothing,
        fragment: other_white_space,
    },
];

/// Joins a base and a fragment; nothing if it refuses.
type Join = fn(&Cut, &str, Requested) -> Option<String>;

const JOINS: &[(&str, Join)] = &[
    ("overlock-json", ours),
    ("plain join", |cut, fragment, _| {
        Some(format!("{}{fragment}", &cut.text[..cut.at]))
    }),
    ("longest overlap", |cut, fragment, _| {
        Some(longest_overlap(&cut.text[..cut.at], fragment))
    }),
    ("longest overlap, fence stripped", |cut, fragment, _| {
        Some(longest_overlap(
            &cut.text[..cut.at],
            without_fence(fragment),
        ))
    }),
];

/// The results of one way to join with one behaviour.
#[derive(Clone, Copy, Default)]
struct JoinTally {
    all: usize,
    right: usize,
    refused: usize,
    broken: usize,
    silent: usize,
}

impl JoinTally {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.right += other.right;
        self.refused += other.refused;
        self.broken += other.broken;
        self.silent += other.silent;
    }

    fn cells(self) -> [String; 5] {
        [
            self.all.to_string(),
            share(self.right, self.all),
            self.refused.to_string(),
            self.broken.to_string(),
            self.silent.to_string(),
        ]
    }
}

/// Simulates every behaviour at many cuts of many documents.
pub(crate) fn run(options: &Options) -> Result<()> {
    let count = if options.quick { 6 } else { 24 };
    let cuts_each = if options.quick { 20 } else { 60 };
    let mut documents = small(count);
    documents.extend((0..count as u64 / 3).map(|seed| report(6000, seed)));

    let mut sums = [JoinTally::default(); JOINS.len()];
    let mut table = Table::new([
        "stitching: ours",
        "cuts",
        "right",
        "refused",
        "not JSON",
        "silently wrong",
    ]);
    let mut kept = Vec::new();
    for behaviour in BEHAVIOURS {
        eprintln!("   stitching: {}", behaviour.name);
        let mut tallies = [JoinTally::default(); JOINS.len()];
        for text in &documents {
            let tokens = tokens(text);
            for index in 1..cuts_each {
                let Some(cut) = cut_at(text, &tokens, text.len() * index / cuts_each) else {
                    continue;
                };
                let Some(fragment) = (behaviour.fragment)(&cut) else {
                    continue;
                };
                if options.differences {
                    print_difference(&cut, &fragment, behaviour);
                }
                for ((_, join), tally) in JOINS.iter().zip(&mut tallies) {
                    tally.add(judge(
                        &cut,
                        quietly(|| join(&cut, &fragment, behaviour.asked)),
                    ));
                }
            }
        }
        table.row(
            [behaviour.name.to_owned()]
                .into_iter()
                .chain(tallies[0].cells()),
        );
        for (sum, tally) in sums.iter_mut().zip(tallies) {
            sum.add(tally);
        }
        kept.push((behaviour.name, tallies));
    }
    table.print("Stitching, by behaviour");

    let mut table = Table::new([
        "right, by behaviour",
        JOINS[0].0,
        JOINS[1].0,
        JOINS[2].0,
        JOINS[3].0,
    ]);
    for (name, tallies) in kept {
        let shares = tallies.iter().map(|tally| share(tally.right, tally.all));
        table.row([name.to_owned()].into_iter().chain(shares));
    }
    table.print("Stitching, compared with simple rules");

    let mut table = Table::new([
        "stitching, all behaviours",
        "cuts",
        "right",
        "refused",
        "not JSON",
        "silently wrong",
    ]);
    for ((name, _), sum) in JOINS.iter().zip(sums) {
        table.row([(*name).to_owned()].into_iter().chain(sum.cells()));
    }
    table.print("Stitching, in all");
    crate::hostile::run(options)
}

fn cut_at<'a>(text: &'a str, tokens: &'a [Token], near: usize) -> Option<Cut<'a>> {
    let at = (1..=near).rev().find(|at| text.is_char_boundary(*at))?;
    let base = PartialDocument::read(&text[..at]).ok()?;
    let asked = base.contexts(&ContextOptions::default()).overlap_context;
    Some(Cut {
        text,
        tokens,
        at,
        asked,
    })
}

fn as_asked(cut: &Cut) -> Option<String> {
    Some(format!("{}{}", cut.asked, &cut.text[cut.at..]))
}

fn overlapping(cut: &Cut, characters: usize) -> Option<String> {
    let mut starts = cut.text[..cut.at]
        .char_indices()
        .rev()
        .map(|(start, _)| start);
    let start = if characters == 0 {
        cut.at
    } else {
        starts.nth(characters - 1)?
    };
    Some(cut.text[start..].to_owned())
}

/// The innermost item of an array that holds the cut, and everything after it.
fn from_item(cut: &Cut, style: Style) -> Option<String> {
    let mut open: Vec<(usize, bool)> = Vec::new();
    for (index, token) in cut
        .tokens
        .iter()
        .enumerate()
        .take_while(|(_, token)| token.end <= cut.at)
    {
        match token.kind {
            Kind::Open(_) => {
                let parent = open.last().map(|(parent, _)| &cut.tokens[*parent].kind);
                open.push((index, parent == Some(&Kind::Open(b'['))));
            }
            Kind::Close(_) => {
                open.pop();
            }
            _ => {}
        }
    }
    let (item, _) = open.into_iter().rfind(|(_, is_item)| *is_item)?;
    if style.indent.is_none() {
        return Some(cut.text[cut.tokens[item].start..].to_owned());
    }
    Some(written(cut.text, cut.tokens, item, style))
}

/// The last tokens before the cut and everything after, written with other white space.
fn other_white_space(cut: &Cut) -> Option<String> {
    let before = cut
        .tokens
        .iter()
        .take_while(|token| token.end <= cut.at)
        .count();
    let from = before.checked_sub(12)?;
    let was_indented = cut.text.contains('\n');
    let style = if was_indented {
        Style {
            spaces: true,
            ..Style::default()
        }
    } else {
        Style {
            indent: Some(2),
            ..Style::default()
        }
    };
    Some(written(cut.text, cut.tokens, from, style))
}

fn ours(cut: &Cut, fragment: &str, asked: Requested) -> Option<String> {
    let (outcome, text) = stitched(cut, fragment, asked)?;
    outcome.is_accepted().then_some(text)
}

fn stitched(cut: &Cut, fragment: &str, asked: Requested) -> Option<(Outcome, String)> {
    let mut base = PartialDocument::read(&cut.text[..cut.at]).ok()?;
    let mut options = StitchOptions::default();
    match asked {
        Requested::Overlap => options.expected_overlap = Some(&cut.asked),
        Requested::Prefill => options.protocol = Protocol::Prefill,
        Requested::Nothing => {}
    }
    let seam = stitch(&mut base, fragment, &options);
    Some((seam.outcome, base.text().to_owned()))
}

fn judge(cut: &Cut, joined: Option<String>) -> JoinTally {
    let mut tally = JoinTally {
        all: 1,
        ..JoinTally::default()
    };
    match joined {
        None => tally.refused = 1,
        Some(joined) if !is_valid(&joined) => tally.broken = 1,
        Some(joined) if same(&tokens(&joined), cut.tokens) => tally.right = 1,
        Some(_) => tally.silent = 1,
    }
    tally
}

/// Prints a seam where our result differs from the document.
fn print_difference(cut: &Cut, fragment: &str, behaviour: &Behaviour) {
    let Some((outcome, text)) = stitched(cut, fragment, behaviour.asked) else {
        return;
    };
    if judge(cut, outcome.is_accepted().then_some(text)).right == 1 {
        return;
    }
    let base = &cut.text[..cut.at];
    let begin = (0..=base.len().saturating_sub(120)).rfind(|at| base.is_char_boundary(*at));
    println!("\n{outcome:?}: {}, cut at {}", behaviour.name, cut.at);
    println!("base:     …{:?}", &base[begin.unwrap_or(0)..]);
    println!(
        "fragment: {:?}…",
        fragment.chars().take(120).collect::<String>()
    );
}

/// The simplest rule: drop the longest prefix of the fragment with which the base ends.
fn longest_overlap(base: &str, fragment: &str) -> String {
    let overlap = (0..=base.len().min(fragment.len()))
        .rev()
        .find(|length| base.as_bytes().ends_with(&fragment.as_bytes()[..*length]))
        .unwrap_or(0);
    format!("{base}{}", fragment.get(overlap..).unwrap_or_default())
}

fn without_fence(fragment: &str) -> &str {
    let Some((_, rest)) = fragment.split_once("```json\n") else {
        return fragment;
    };
    rest.split_once("\n```").map_or(rest, |(inside, _)| inside)
}
