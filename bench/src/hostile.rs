//! Joins hostile continuations: the adversary of the stitching laws, with a large budget.
//!
//! Every seed gives other documents, cuts and answers, and none is fixed here, so that no result
//! was tuned to it. A join is wrong if it was accepted and its text is not the document's. The
//! adversary marks what no reader could decide; that is counted on its own.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::Options;
use crate::table::{Table, share};

#[path = "../../crates/overlock-json/tests/it/adversary/mod.rs"]
mod adversary;

use adversary::random::Random;
use adversary::value::{Layout, Value};
use adversary::{Findings, Tally};

/// Shorter documents cannot be cut in many places, longer ones take most of the time.
const LENGTHS: std::ops::RangeInclusive<usize> = 60..=20_000;

/// Prints the figures of documents of our own, and of those in the corpus.
pub(crate) fn run(options: &Options) -> Result<()> {
    let joins = if options.quick { 5_000 } else { 100_000 };
    let seed = match std::env::var("OVERLOCK_SEED") {
        Ok(seed) => seed.parse().context("`OVERLOCK_SEED` is no number")?,
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
    };
    eprintln!("   stitching: hostile continuations, seed {seed}");
    let findings = adversary::run(adversary::documents::document, joins, seed);
    print_rows(&findings, seed);
    print_sums("Hostile continuations, in all", &findings);
    let Some(corpus) = &options.corpus else {
        println!(
            "\nHostile continuations of a corpus: not measured, since no `--corpus DIR` is given"
        );
        return Ok(());
    };
    let values = instances(corpus)?;
    eprintln!("   stitching: {} instances of the corpus", values.len());
    let layouts = [Layout::Compact, Layout::Spaced, Layout::Pretty];
    let document = |random: &mut Random| {
        let value = values[random.below(values.len())].clone();
        (value, random.pick(&layouts))
    };
    let findings = adversary::run(document, joins, seed);
    let title = format!("Hostile continuations of {} instances", values.len());
    print_sums(&title, &findings);
    Ok(())
}

const COLUMNS: [&str; 7] = [
    "hostile continuations",
    "mode",
    "joins",
    "right",
    "only a part",
    "refused",
    "silently wrong",
];

fn cells(name: &str, mode: &str, tally: Tally) -> [String; 7] {
    [
        name.to_owned(),
        mode.to_owned(),
        tally.joins.to_string(),
        share(tally.right, tally.joins),
        tally.short.to_string(),
        tally.refused.to_string(),
        tally.wrong.to_string(),
    ]
}

fn print_rows(findings: &Findings, seed: u64) {
    let mut table = Table::new(COLUMNS);
    for (row, tally) in &findings.rows {
        table.row(cells(&row.name, &format!("{:?}", row.mode), *tally));
    }
    table.print(&format!("Hostile continuations, by behaviour, seed {seed}"));
}

fn print_sums(title: &str, findings: &Findings) {
    let mut table = Table::new(COLUMNS);
    for ((mode, duty), tally) in &findings.sums {
        table.row(cells(duty, &format!("{mode:?}"), *tally));
    }
    for (mode, tally) in &findings.chains {
        table.row(cells(
            "chains of 2 to 10 pieces",
            &format!("{mode:?}"),
            *tally,
        ));
    }
    table.print(title);
    let otherwise = findings.rows.values().map(|tally| tally.streamed_otherwise);
    println!(
        "\nStreamed with another result: {}",
        otherwise.sum::<usize>()
    );
}

/// The valid instances in files of `{"tests": [{"valid": true, "data": …}]}`, in all folders.
fn instances(folder: &Path) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("could not read `{}`", folder.display()))?;
        let mut paths = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()?;
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                let file: serde_json::Value = serde_json::from_slice(&fs::read(&path)?)
                    .with_context(|| format!("`{}` is not JSON", path.display()))?;
                let tests = file["tests"].as_array().into_iter().flatten();
                let valid = tests.filter(|test| test["valid"] == true);
                let data = valid.filter_map(|test| test.get("data"));
                let data = data.filter(|data| data.is_object() || data.is_array());
                values.extend(data.map(value));
            }
        }
    }
    values.retain(|value: &Value| LENGTHS.contains(&value.write(Layout::Compact).len()));
    anyhow::ensure!(
        !values.is_empty(),
        "`{}` has no instances",
        folder.display()
    );
    Ok(values)
}

/// The value as the adversary writes it. Instances are not nested deeply.
fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Array(items) => Value::Array(items.iter().map(value).collect()),
        serde_json::Value::Object(members) => {
            let key = |key: &String| serde_json::Value::from(key.as_str()).to_string();
            let members = members.iter().map(|(name, json)| (key(name), value(json)));
            Value::Object(members.collect())
        }
        leaf => Value::Leaf(leaf.to_string()),
    }
}
