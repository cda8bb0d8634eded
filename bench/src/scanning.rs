//! Measures how fast cut documents are scanned and fragments added.

use std::time::Duration;

use anyhow::Result;
use jiter::{JsonValue, PartialMode};
use overlock_json::{Closing, Scanner, close_trusted, close_trusted_portable};
use serde::de::IgnoredAny;
use sonic_rs::LazyValue;

use crate::Options;
use crate::clock::{best_of, rate, shown_rate, shown_time};
use crate::documents::cut_report;
use crate::table::Table;

/// Reads a whole text. The returned number keeps the compiler from removing the work.
type Scan = fn(&[u8]) -> usize;

const SCANS: &[(&str, Scan)] = &[
    ("structural scan: overlock-json `close_trusted`", |text| {
        kept_len(close_trusted(text))
    }),
    ("structural scan: the same, portable", |text| {
        kept_len(close_trusted_portable(text))
    }),
    ("validating scan: overlock-json `Scanner`", |text| {
        let mut scanner = Scanner::new();
        scanner.feed(text);
        kept_len(scanner.closing(false))
    }),
    ("validating scan: serde_json `IgnoredAny`", |text| {
        serde_json::from_slice::<IgnoredAny>(text)
            .map_or_else(|error| error.column(), |_| text.len())
    }),
    ("validating scan: sonic-rs `LazyValue`", |text| {
        sonic_rs::from_slice::<LazyValue<'_>>(text)
            .map_or_else(|error| error.offset(), |_| text.len())
    }),
    ("validating scan: sonic-rs `IgnoredAny`", |text| {
        sonic_rs::from_slice::<IgnoredAny>(text).map_or_else(|error| error.offset(), |_| text.len())
    }),
    ("one byte searched for: memchr", |text| {
        memchr::memchr(0, text).unwrap_or(text.len())
    }),
];

fn kept_len(closing: Option<Closing>) -> usize {
    closing.map_or(0, |closing| closing.kept_len)
}

fn sizes(options: &Options) -> &'static [usize] {
    if options.quick {
        &[1_000_000, 13_000_000]
    } else {
        &[1_000_000, 13_000_000, 158_000_000]
    }
}

/// Compares structural and validating scans with parsers and memory bandwidth.
pub(crate) fn scan(options: &Options) -> Result<()> {
    let mut table = Table::new(["scan of a cut document", "size", "rate", "× jiter"]);
    for size in sizes(options) {
        let text = cut_report(*size);
        let text = text.as_bytes();
        let shown_size = format!("{} MB", size / 1_000_000);
        let runs = if *size > 100_000_000 { 3 } else { 9 };
        eprintln!("   scanning {shown_size}");
        let jiter = best_of(runs.min(5), || parse_with_jiter(text));
        for (name, scan) in SCANS {
            let time = best_of(runs, || scan(text));
            table.row([
                (*name).to_owned(),
                shown_size.clone(),
                shown_rate(rate(text.len(), time)),
                format!("{:.1}", jiter.as_secs_f64() / time.as_secs_f64().max(1e-9)),
            ]);
        }
        table.row([
            "partial parse: jiter (trailing strings)".to_owned(),
            shown_size,
            shown_rate(rate(text.len(), jiter)),
            "1".to_owned(),
        ]);
    }
    table.print("Scan");
    Ok(())
}

fn parse_with_jiter(text: &[u8]) -> Option<JsonValue<'_>> {
    JsonValue::parse_with_config(text, false, PartialMode::TrailingStrings).ok()
}

/// Closes a document after each of a hundred fragments.
pub(crate) fn fragments(options: &Options) -> Result<()> {
    let size = if options.quick { 1_000_000 } else { 13_000_000 };
    eprintln!("   100 fragments of {} MB in all", size / 1_000_000);
    let text = cut_report(size);
    let text = text.as_bytes();
    let ends: Vec<usize> = (1..=100).map(|part| text.len() * part / 100).collect();

    let one_pass = best_of(9, || {
        let mut scanner = Scanner::new();
        scanner.feed(text);
        scanner.closing(false)
    });
    let kept = best_of(9, || {
        let mut scanner = Scanner::new();
        let mut begun = 0;
        for end in &ends {
            scanner.feed(&text[begun..*end]);
            std::hint::black_box(scanner.closing(false));
            begun = *end;
        }
        scanner
    });
    let parsed_again = best_of(if options.quick { 3 } else { 1 }, || {
        for end in &ends {
            std::hint::black_box(parse_with_jiter(&text[..*end]));
        }
    });

    let mut table = Table::new(["100 fragments, closed after each", "CPU time", "× one pass"]);
    let mut row = |name: &str, time: Duration| {
        let ratio = time.as_secs_f64() / one_pass.as_secs_f64().max(1e-9);
        table.row([name.to_owned(), shown_time(time), format!("{ratio:.2}")]);
    };
    row("overlock-json, one pass over the whole", one_pass);
    row("overlock-json, the scanner kept between fragments", kept);
    row("jiter, parsing again from the start", parsed_again);
    table.print("Fragments");
    Ok(())
}
