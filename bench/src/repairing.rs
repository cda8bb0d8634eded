//! Measures how fast text is repaired.

use std::time::Duration;

use anyhow::Result;

use crate::Options;
use crate::clock::{best_of, once, rate, shown_rate};
use crate::closing;
use crate::documents::report;
use crate::outside::{self, Outside};
use crate::peers::{REPAIRERS, quietly};
use crate::table::Table;
use crate::tokens::{is_valid, same};

/// A peer is skipped at a size at which it would take longer than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Repairs valid, damaged and cut reports with every peer.
pub(crate) fn run(options: &Options) -> Result<()> {
    let sizes: &[usize] = if options.quick {
        &[100_000, 1_000_000]
    } else {
        &[100_000, 1_000_000, 13_000_000]
    };
    let mut table = Table::new(["repair", "size", "valid", "damaged", "cut"]);
    let mut given_up = Vec::new();
    for size in sizes {
        let valid = report(*size, 7);
        let damaged = damaged(&valid);
        let cut = &valid[..(0..=size / 2)
            .rev()
            .find(|end| valid.is_char_boundary(*end))
            .unwrap_or(0)];
        let tokens = crate::tokens::tokens(&valid);
        let texts = [valid.as_str(), damaged.as_str(), cut];
        let is_right = |text: &str, repaired: &str| {
            if text == cut {
                closing::is_right(&tokens, cut.len(), repaired)
            } else {
                same(&tokens, &crate::tokens::tokens(repaired))
            }
        };
        let shown_size = if *size < 1_000_000 {
            format!("{} kB", size / 1000)
        } else {
            format!("{} MB", size / 1_000_000)
        };
        for peer in REPAIRERS {
            if given_up.contains(&peer.name) {
                table.row([
                    peer.name.to_owned(),
                    shown_size.clone(),
                    "too slow at the size before".to_owned(),
                ]);
                continue;
            }
            eprintln!("   repairing {shown_size} with {}", peer.name);
            let mut cells = vec![peer.name.to_owned(), shown_size.clone()];
            for text in texts {
                let (first, repaired) = quietly(|| once(|| peer.run(text)));
                if first * 15 > PATIENCE && !given_up.contains(&peer.name) {
                    given_up.push(peer.name);
                }
                let again = if first > Duration::from_secs(1) { 0 } else { 5 };
                let time =
                    (0..again).fold(first, |best, _| best.min(best_of(1, || peer.run(text))));
                cells.push(shown(text, time, repaired.as_deref(), is_right));
            }
            table.row(cells);
        }
        // The slowest of these needs a second for a megabyte.
        if *size <= 1_000_000 {
            for peer in outside::REPAIRERS {
                eprintln!("   repairing {shown_size} with {}", peer.name);
                let mut cells = vec![peer.name.to_owned(), shown_size.clone()];
                for text in texts {
                    cells.push(match peer.run(&[text]) {
                        Outside::Answers { answers, time } => shown(
                            text,
                            time,
                            answers.first().and_then(Option::as_deref),
                            is_right,
                        ),
                        Outside::Missing(reason) => reason,
                    });
                }
                table.row(cells);
            }
        }
    }
    table.print("Repair");
    Ok(())
}

fn shown(
    text: &str,
    time: Duration,
    repaired: Option<&str>,
    is_right: impl Fn(&str, &str) -> bool,
) -> String {
    let rate = shown_rate(rate(text.len(), time));
    match repaired {
        None => "refused".to_owned(),
        Some(repaired) if !is_valid(repaired) => format!("{rate} (not JSON)"),
        Some(repaired) if !is_right(text, repaired) => format!("{rate} (wrong)"),
        Some(_) => rate,
    }
}

/// A report with the mistakes models make, spread evenly: trailing commas, comments,
/// single quotes, bare keys, Python's literals, line breaks in strings.
fn damaged(text: &str) -> String {
    text.replace(r#""tags":["a","b"]"#, r#""tags":["a","b",],"#)
        .replace(
            r#""content_type":"paragraph""#,
            "'content_type': 'paragraph'",
        )
        .replace(
            r#""content_type":"table""#,
            "content_type: \"table\" /* hourly */",
        )
        .replace(r#""active":true"#, r#""active":True"#)
        .replace(r#""parent":null"#, r#""parent":None"#)
        .replace(r"\n", "\n")
}
