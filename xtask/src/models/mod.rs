//! Generates the table of models from the registries.
//!
//! The manual part of `models.toml` stays unchanged at the top. A name without a host means the
//! model as its maker offers it; a host that offers it with other limits has a separate entry.

mod facts;
mod registries;
mod tokenizer;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::shell::root;
use facts::{Entry, Fact, bare, merge};

const TABLE: &str = "crates/overlock-budget/models.toml";

/// Everything from this line on is generated.
const DRAWN: &str = "# Drawn by `cargo xtask models` from packages under the MIT licence:\n";

/// `cargo xtask models`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("`cargo xtask models` takes no argument, not `{argument}`");
    }
    let path = root().join(TABLE);
    let table = fs::read_to_string(&path).with_context(|| format!("could not read `{TABLE}`"))?;
    let by_hand = table
        .split_once(DRAWN)
        .map_or(table.as_str(), |(by_hand, _)| by_hand);

    let mut facts = registries::litellm()?;
    facts.extend(registries::models_dev()?);
    let names = names_in(by_hand);
    let generated = generate(&facts);
    let entries = without_repetitions(&generated, &names);
    let disputed = entries.values().filter(|entry| entry.disputed.is_some());
    println!(
        "{} manual entries, {} generated, {} of them disputed",
        names.len(),
        entries.len(),
        disputed.count()
    );

    let mut text = format!("{by_hand}{DRAWN}{}\n", registries::notice());
    for (name, entry) in &entries {
        writeln!(text, "\"{name}\" = {entry}")?;
    }
    fs::write(&path, text).with_context(|| format!("could not write `{TABLE}`"))
}

/// The names of the entries in a part of the table.
fn names_in(part: &str) -> HashSet<&str> {
    let names = part.lines().filter_map(|line| line.strip_prefix('"'));
    names
        .filter_map(|line| line.split_once('"').map(|(name, _)| name))
        .collect()
}

/// Makes an entry for each name without a host, and for each host that differs from it.
fn generate(facts: &[Fact]) -> BTreeMap<String, Entry> {
    let mut by_name: BTreeMap<&str, Vec<&Fact>> = BTreeMap::new();
    for fact in facts.iter().filter(|fact| fact.is_usable()) {
        by_name.entry(fact.bare()).or_default().push(fact);
    }
    let mut entries = BTreeMap::new();
    for (name, facts) in by_name {
        let mut makers: Vec<&Fact> = facts.clone();
        makers.retain(|fact| fact.is_by_its_maker());
        let alone = merge(name, if makers.is_empty() { &facts } else { &makers });

        let mut by_host: BTreeMap<&str, Vec<&Fact>> = BTreeMap::new();
        for fact in facts.iter().filter(|fact| !fact.is_by_its_maker()) {
            by_host.entry(&fact.key).or_default().push(fact);
        }
        for (key, facts) in by_host {
            let hosted = merge(name, &facts);
            if !hosted.has_the_sizes_of(&alone) {
                entries.insert(key.to_owned(), hosted);
            }
        }
        entries.insert(name.to_owned(), alone);
    }
    entries
}

/// Removes models of the manual part at any host, and dated releases with the same limits as the
/// model without the date, which a look-up finds anyway.
fn without_repetitions<'a>(
    generated: &'a BTreeMap<String, Entry>,
    by_hand: &HashSet<&str>,
) -> BTreeMap<&'a str, &'a Entry> {
    let repeats = |name: &str, entry: &Entry| {
        let model = undated(name).and_then(|model| generated.get(model));
        model.is_some_and(|model| entry.can_be_the_same_as(model))
    };
    generated
        .iter()
        .filter(|(name, entry)| !by_hand.contains(bare(name)) && !repeats(name, entry))
        .map(|(name, entry)| (name.as_str(), entry))
        .collect()
}

/// The name before a date such as `-2024-08-06`, `-20240806` or `@20240806`.
fn undated(name: &str) -> Option<&str> {
    ["-0000-00-00", "-00000000", "@00000000"]
        .iter()
        .find_map(|shape| {
            let (model, date) = name.split_at_checked(name.len().checked_sub(shape.len())?)?;
            let fits = |(byte, shape): (u8, u8)| match shape {
                b'0' => byte.is_ascii_digit(),
                shape => byte == shape,
            };
            let is_date = date.bytes().zip(shape.bytes()).all(fits);
            Some(model).filter(|_| is_date)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(key: &str, window: u64) -> Fact {
        Fact {
            key: key.to_owned(),
            window,
            ..Fact::default()
        }
    }

    #[track_caller]
    fn check_generate(facts: &[Fact], by_hand: &[&str], expected: &[(&str, u64)]) {
        let generated = generate(facts);
        let entries = without_repetitions(&generated, &by_hand.iter().copied().collect());
        let windows: Vec<_> = entries
            .iter()
            .map(|(name, entry)| (*name, entry.window))
            .collect();
        assert_eq!(windows, expected, "generating from {facts:?}");
    }

    #[test]
    fn a_host_has_an_entry_only_where_it_differs_from_the_maker() {
        check_generate(
            &[fact("m", 100), fact("big/m", 200), fact("same/m", 100)],
            &[],
            &[("big/m", 200), ("m", 100)],
        );
        check_generate(&[fact("m", 100), fact("openai/m", 200)], &[], &[("m", 100)]);
    }

    #[test]
    fn without_a_maker_the_smallest_window_counts() {
        check_generate(
            &[fact("one/m", 100), fact("two/m", 200)],
            &[],
            &[("m", 100), ("two/m", 200)],
        );
    }

    #[test]
    fn generates_no_entry_for_models_of_the_manual_part() {
        check_generate(
            &[fact("m", 100), fact("host/m", 50), fact("n", 1)],
            &["m"],
            &[("n", 1)],
        );
    }

    #[test]
    fn a_release_has_an_entry_only_where_it_differs_from_the_model() {
        check_generate(
            &[
                fact("m", 100),
                fact("m-2024-08-06", 100),
                fact("m@20240806", 100),
                fact("m-20250101", 200),
                fact("n-20250101", 100),
            ],
            &["m"],
            &[("m-20250101", 200), ("n-20250101", 100)],
        );
    }

    #[test]
    fn a_name_that_cannot_be_written_plainly_is_left_out() {
        check_generate(&[fact("a\"b", 100), fact("", 1), fact("n", 0)], &[], &[]);
    }

    #[test]
    fn finds_the_names_of_a_part() {
        let part = "# \"no\"\n\"a\" = { window = 1 }\n\"b:c\" = { window = 2 }\n";
        assert_eq!(names_in(part), HashSet::from(["a", "b:c"]));
    }
}
