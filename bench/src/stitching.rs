//! Does a fragment join its base into the document the model wrote?
//!
//! A compact simulator of how models continue. A join is right if the tokens
//! are those of the document; it is silently wrong if the result is valid JSON
//! and another document, the one outcome nobody notices.

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
    /// What the model was asked to repeat.
    asked: String,
}

/// How a model continues; nothing where it makes no sense at this cut.
struct Behaviour {
    name: &'static str,
    fragment: fn(&Cut) -> Option<String>,
    /// How ours is called: as asked where the model does as asked.
    asked: Asked,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Repeat this overlap.
    Overlap,
    /// Go on exactly at the cut.
    Prefill,
    /// The model did not do what it was asked.
    Nothing,
}

const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "exact, as asked",
        asked: Asked::Prefill,
        fragment: |cut| overlapping(cut, 0),
    },
    Behaviour {
        name: "overlap, as asked",
        asked: Asked::Overlap,
        fragment: as_asked,
    },
    Behaviour {
        name: "overlap of 8",
        asked: Asked::Nothing,
        fragment: |cut| overlapping(cut, 8),
    },
    Behaviour {
        name: "overlap of 40",
        asked: Asked::Nothing,
        fragment: |cut| overlapping(cut, 40),
    },
    Behaviour {
        name: "overlap of 200",
        asked: Asked::Nothing,
        fragment: |cut| overlapping(cut, 200),
    },
    Behaviour {
        name: "overlap of 1000",
        asked: Asked::Nothing,
        fragment: |cut| overlapping(cut, 1000),
    },
    Behaviour {
        name: "as asked, in a fence",
        asked: Asked::Overlap,
        fragment: |cut| Some(format!("```json\n{}\n```", as_asked(cut)?)),
    },
    Behaviour {
        name: "as asked, prose around it",
        asked: Asked::Overlap,
        fragment: |cut| {
            Some(format!(
                "Here is the rest of the document:\n\n{}\n\nLet me know!",
                as_asked(cut)?
            ))
        },
    },
    Behaviour {
        name: "as asked, prose and fence",
        asked: Asked::Overlap,
        fragment: |cut| {
            Some(format!(
                "Continuing:\n```json\n{}\n```\nThat is all.",
                as_asked(cut)?
            ))
        },
    },
    Behaviour {
        name: "restart at the root",
        asked: Asked::Nothing,
        fragment: |cut| Some(cut.text.to_owned()),
    },
    Behaviour {
        name: "restart at the root, re-indented",
        asked: Asked::Nothing,
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
        asked: Asked::Nothing,
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
        asked: Asked::Nothing,
        fragment: |cut| from_item(cut, Style::default()),
    },
    Behaviour {
        name: "restart at the item, re-indented",
        asked: Asked::Nothing,
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
        asked: Asked::Nothing,
        fragment: other_white_space,
    },
];

/// A way to join a base and a fragment: the joined text, or nothing if it refuses.
type Join = fn(&Cut, &str, Asked) -> Option<String>;

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

/// How one way to join did with one behaviour.
#[derive(Clone, Copy, Default)]
struct Tally {
    all: usize,
    right: usize,
    refused: usize,
    broken: usize,
    silent: usize,
}

impl Tally {
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

/// Every behaviour at many cuts of many documents.
pub(crate) fn run(options: &Options) -> Result<()> {
    let count = if options.quick { 6 } else { 24 };
    let cuts_each = if options.quick { 20 } else { 60 };
    let mut documents = small(count);
    documents.extend((0..count as u64 / 3).map(|seed| report(6000, seed)));

    let mut sums = [Tally::default(); JOINS.len()];
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
        let mut tallies = [Tally::default(); JOINS.len()];
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
    table.print("Stitching, beside plain rules");

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
    Ok(())
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

fn ours(cut: &Cut, fragment: &str, asked: Asked) -> Option<String> {
    let (outcome, text) = stitched(cut, fragment, asked)?;
    outcome.is_accepted().then_some(text)
}

fn stitched(cut: &Cut, fragment: &str, asked: Asked) -> Option<(Outcome, String)> {
    let mut base = PartialDocument::read(&cut.text[..cut.at]).ok()?;
    let mut options = StitchOptions::default();
    match asked {
        Asked::Overlap => options.expected_overlap = Some(&cut.asked),
        Asked::Prefill => options.protocol = Protocol::Prefill,
        Asked::Nothing => {}
    }
    let seam = stitch(&mut base, fragment, &options);
    Some((seam.outcome, base.text().to_owned()))
}

fn judge(cut: &Cut, joined: Option<String>) -> Tally {
    let mut tally = Tally {
        all: 1,
        ..Tally::default()
    };
    match joined {
        None => tally.refused = 1,
        Some(joined) if !is_valid(&joined) => tally.broken = 1,
        Some(joined) if same(&tokens(&joined), cut.tokens) => tally.right = 1,
        Some(_) => tally.silent = 1,
    }
    tally
}

/// Shows where ours did not come to the document, or says nothing.
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

/// The rule everyone starts with: the longest end of the base with which the fragment begins is left out.
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
