//! Compares repaired texts with two public suites.
//!
//! The suites agree with each other on about half of the cases, so there is no ground truth, and
//! differences only need an explanation. Ours rejects a text without JSON where one suite expects
//! an empty string; that is counted separately.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Options;
use crate::outside::{self, Outside};
use crate::peers::{REPAIRERS, quietly};
use crate::table::{Table, share};

const SUITES: &[(&str, &str)] = &[
    ("jsonrepair's suite", "repair-jsonrepair.json"),
    ("json_repair's suite", "repair-json_repair.json"),
];

/// A text and the value its suite expects.
struct Case {
    text: String,
    expected: Value,
}

/// The agreement of every peer with every suite.
pub(crate) fn run(options: &Options) -> Result<()> {
    let Some(folder) = &options.data else {
        println!(
            "\n## Suites\n\nThe recorded suites are missing: set their folder with `--data DIR`."
        );
        return Ok(());
    };
    for (title, file) in SUITES {
        let cases = read(&folder.join(file))?;
        eprintln!("   {title}: {} cases", cases.len());
        let mut table = Table::new([title, "cases", "as expected", "", "refused for \"\""]);
        for peer in REPAIRERS {
            let answers: Vec<Option<String>> =
                quietly(|| cases.iter().map(|case| peer.run(&case.text)).collect());
            table.row(row(peer.name, &cases, &answers));
            if options.differences && peer.name == REPAIRERS[0].name {
                print_differences(title, &cases, &answers);
            }
        }
        for peer in outside::REPAIRERS {
            let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
            match peer.run(&texts) {
                Outside::Answers { answers, .. } => table.row(row(peer.name, &cases, &answers)),
                Outside::Missing(reason) => table.row([peer.name.to_owned(), reason]),
            }
        }
        table.print(title);
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<Case>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("could not read `{}`", path.display()))?;
    let cases: Vec<Value> = serde_json::from_str(&text).context("the suite is not a list")?;
    let case = |case: &Value| Case {
        text: case["in"].as_str().unwrap_or_default().to_owned(),
        expected: case["expected"].clone(),
    };
    Ok(cases.iter().map(case).collect())
}

fn row(name: &str, cases: &[Case], answers: &[Option<String>]) -> [String; 5] {
    let reached = cases
        .iter()
        .zip(answers)
        .filter(|(case, answer)| is_expected(case, answer.as_deref()))
        .count();
    let refused = cases
        .iter()
        .zip(answers)
        .filter(|(case, answer)| answer.is_none() && case.expected == "")
        .count();
    [
        name.to_owned(),
        cases.len().to_string(),
        reached.to_string(),
        share(reached, cases.len()),
        refused.to_string(),
    ]
}

fn is_expected(case: &Case, answer: Option<&str>) -> bool {
    // A peer that writes nothing means the empty string.
    let value = match answer {
        Some("") => Some(Value::String(String::new())),
        Some(answer) => serde_json::from_str(answer).ok(),
        None => None,
    };
    value.is_some_and(|value| same(&value, &case.expected))
}

/// Equal as values: `1.0` is `1`, and the order of members does not count.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other
                || one
                    .as_f64()
                    .is_some_and(|number| Some(number) == other.as_f64())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same_member = |(key, value): (&String, &Value)| {
                other.get(key).is_some_and(|other| same(value, other))
            };
            one.len() == other.len() && one.iter().all(same_member)
        }
        _ => one == other,
    }
}

fn print_differences(title: &str, cases: &[Case], answers: &[Option<String>]) {
    println!("\n## {title}: where ours gives another value");
    for (case, answer) in cases.iter().zip(answers) {
        if !is_expected(case, answer.as_deref()) {
            println!("\ntext:     {:?}", case.text);
            println!("expected: {}", case.expected);
            println!("ours:     {}", answer.as_deref().unwrap_or("refused"));
        }
    }
}
