//! Reads the built-in table.
//!
//! Registries spell one name differently, `claude-sonnet-4.5` and `claude-sonnet-4-5`, and disagree
//! on sizes. The smallest size is used for all spellings, because a prompt that is too long is
//! rejected. Entries kept by hand are not changed.
//!
//! The table is TOML of a simple form, one entry per line. Only the names are read at first, and an
//! entry when it is looked up, so that looking up one model is fast. A test compares the result with
//! that of a full TOML parser.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::name::spelling;
use super::{Model, Sharing, WindowSource};

const TEXT: &str = include_str!("../../models.toml");

/// The line before the entries that are not kept by hand.
const DRAWN: &str = "\n# Drawn by ";

/// Why a table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A line is neither an entry, a comment nor the heading.
    #[error("line {line} is not an entry such as `\"gpt-4o\" = {{ window = 128000 }}`")]
    Entry {
        /// The number of the line, from 1.
        line: usize,
    },
    /// It has no entries.
    #[error("there are no entries")]
    Empty,
}

/// The entries of a table in the form of `models.toml`, with the smallest sizes of all spellings.
pub(super) fn parse(text: &str) -> Result<Vec<(String, Model)>, TableError> {
    let is_other = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "[models]"
    };
    let mut lines = text.lines().enumerate();
    let wrong = lines.find(|(_, line)| !is_other(line) && !is_entry(line));
    if let Some((place, _)) = wrong {
        return Err(TableError::Entry { line: place + 1 });
    }
    let index = NameIndex::of(text);
    if index.lines.is_empty() {
        return Err(TableError::Empty);
    }
    let names = index.lines.keys();
    let entries = names.filter_map(|name| Some(((*name).to_owned(), index.get(name)?)));
    Ok(entries.collect())
}

/// Whether a line is an entry with a window and known members only.
fn is_entry(line: &str) -> bool {
    let Some((name, fields)) = split(line.trim_end()) else {
        return false;
    };
    let is_known = |field: &str| {
        let Some((key, value)) = field.split_once(" = ") else {
            return false;
        };
        match key {
            "window" | "answer_cap" => value.parse::<u64>().is_ok_and(|number| number > 0),
            "disputed" => value.parse::<u64>().is_ok(),
            "shared" | "prefill" | "json" | "tools" => matches!(value, "true" | "false"),
            "tokenizer" => value.len() > 2 && value.starts_with('"') && value.ends_with('"'),
            _ => false,
        }
    };
    let has_window = fields.starts_with("window = ");
    has_window && name == name.to_ascii_lowercase() && fields.split(", ").all(is_known)
}

/// The model with exactly this name, with the smallest sizes of all its spellings.
pub(super) fn get(name: &str) -> Option<Model> {
    table().get(name)
}

/// The name of an entry that is another spelling of this one, with the smallest window of them.
pub(super) fn spelled_like(name: &str) -> Option<&'static str> {
    let names = table().spellings.get(&spelling(name))?.iter().copied();
    names.min_by_key(|name| (get(name).map(|model| model.window), *name))
}

/// All names, in no order.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    table().lines.keys().copied()
}

/// The length of the longest name.
pub(super) fn longest() -> usize {
    table().longest
}

struct NameIndex<'t> {
    /// From the name to its entry.
    lines: HashMap<&'t str, Line<'t>>,
    /// From the normalized name to the names with that form.
    spellings: HashMap<String, Vec<&'t str>>,
    longest: usize,
}

#[derive(Clone, Copy)]
struct Line<'t> {
    /// The text between the braces.
    fields: &'t str,
    by_hand: bool,
}

fn table() -> &'static NameIndex<'static> {
    static TABLE: OnceLock<NameIndex<'static>> = OnceLock::new();
    TABLE.get_or_init(|| NameIndex::of(TEXT))
}

impl<'t> NameIndex<'t> {
    fn of(text: &'t str) -> Self {
        let drawn = text.find(DRAWN).unwrap_or(text.len());
        let read = |text: &'t str, by_hand| {
            let lines = text.lines().filter_map(|line| split(line.trim_end()));
            lines.map(move |(name, fields)| (name, Line { fields, by_hand }))
        };
        let lines: HashMap<_, _> = read(&text[..drawn], true)
            .chain(read(&text[drawn..], false))
            .collect();
        let mut spellings: HashMap<String, Vec<&str>> = HashMap::with_capacity(lines.len());
        for name in lines.keys() {
            spellings.entry(spelling(name)).or_default().push(name);
        }
        Self {
            longest: lines.keys().map(|name| name.len()).max().unwrap_or(0),
            lines,
            spellings,
        }
    }

    fn get(&self, name: &str) -> Option<Model> {
        let line = self.lines.get(name)?;
        let mut model = read(line.fields);
        if !line.by_hand {
            for other in &self.spellings[&spelling(name)] {
                take_smaller(&mut model, &read(self.lines[other].fields));
            }
        }
        Some(model)
    }
}

/// The name and the fields of a line, if it is an entry.
fn split(line: &str) -> Option<(&str, &str)> {
    let (name, fields) = line.strip_prefix('"')?.split_once("\" = { ")?;
    Some((name, fields.strip_suffix(" }")?))
}

fn read(fields: &str) -> Model {
    let mut model = Model {
        window_source: WindowSource::Known,
        ..Model::default()
    };
    for (key, value) in fields
        .split(", ")
        .filter_map(|field| field.split_once(" = "))
    {
        let number = value.parse().ok();
        match key {
            "window" => model.window = number.unwrap_or(model.window),
            "shared" if value == "false" => model.sharing = Sharing::Separate,
            "answer_cap" => model.answer_cap = number,
            "tokenizer" => model.tokenizer = Some(value.trim_matches('"').to_owned().into()),
            "prefill" => model.prefill = value == "true",
            "json" => model.json = value == "true",
            "tools" => model.tools = value == "true",
            "disputed" => model.disputed = number,
            _ => {}
        }
    }
    model
}

/// Takes the smaller sizes of two entries for one model.
fn take_smaller(model: &mut Model, other: &Model) {
    let stated = [model.disputed, other.disputed, Some(other.window)];
    let largest = stated.into_iter().flatten().fold(model.window, u64::max);
    model.window = model.window.min(other.window);
    model.disputed = Some(largest).filter(|largest| *largest > model.window);
    // A missing cap is unknown, not unlimited.
    model.answer_cap = [model.answer_cap, other.answer_cap]
        .into_iter()
        .flatten()
        .min();
    // Assuming a shared window is safe for both.
    if other.sharing == Sharing::Shared {
        model.sharing = Sharing::Shared;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write;

    use toml::Value;

    use super::*;

    /// The same entry, read by a full TOML parser.
    fn read_fully(entry: &Value) -> Model {
        let number = |key| entry.get(key).map(|value| value.as_integer().expect(key));
        let tokens = |key| number(key).map(|number| u64::try_from(number).expect(key));
        let flag = |key, otherwise| {
            entry
                .get(key)
                .map_or(otherwise, |value| value.as_bool().expect(key))
        };
        let sharing = if flag("shared", true) {
            Sharing::Shared
        } else {
            Sharing::Separate
        };
        let tokenizer = entry
            .get("tokenizer")
            .map(|value| value.as_str().expect("a text"));
        Model {
            window: tokens("window").expect("every entry has a window"),
            window_source: WindowSource::Known,
            sharing,
            answer_cap: tokens("answer_cap"),
            tokenizer: tokenizer.map(|tokenizer| tokenizer.to_owned().into()),
            prefill: flag("prefill", false),
            json: flag("json", false),
            tools: flag("tools", false),
            disputed: tokens("disputed"),
            prices: None,
        }
    }

    #[test]
    fn reads_every_entry_as_a_full_parser_does() {
        const KEYS: &[&str] = &[
            "window",
            "shared",
            "answer_cap",
            "tokenizer",
            "prefill",
            "json",
            "tools",
            "disputed",
        ];
        let file: toml::Table = TEXT.parse().expect("the table is TOML");
        let entries = file["models"]
            .as_table()
            .expect("the entries are one table");
        assert_eq!(entries.len(), table().lines.len());
        for (name, entry) in entries {
            let line = table().lines[name.as_str()];
            assert_eq!(read(line.fields), read_fully(entry), "reading {name:?}");
            let keys = entry.as_table().expect("an entry is a table").keys();
            for key in keys {
                assert!(
                    KEYS.contains(&key.as_str()),
                    "{name:?} has an unknown {key:?}"
                );
            }
        }
    }

    #[test]
    fn parses_the_built_in_table_and_names_a_line_that_is_not_an_entry() {
        let entries = parse(TEXT).expect("it is a table");
        assert_eq!(entries.len(), table().lines.len());
        let wrong = |text: &str, line| assert_eq!(parse(text), Err(TableError::Entry { line }));
        wrong("[models]\n\"m\" = { window = 1 }\nm = { window = 1 }\n", 3);
        wrong("\"m\" = { window = 0 }", 1);
        wrong("\"m\" = { answer_cap = 5 }", 1);
        wrong("\"m\" = { window = 1, price = 5 }", 1);
        wrong("\"M\" = { window = 1 }", 1);
        wrong("\"m\" = { window = 1, tools = yes }", 1);
        wrong("<!DOCTYPE html>", 1);
        assert_eq!(parse("# nothing\n\n[models]\n"), Err(TableError::Empty));
    }

    fn sizes(model: &Model) -> (u64, Option<u64>, bool) {
        let is_shared = model.sharing == Sharing::Shared;
        (model.window, model.answer_cap, is_shared)
    }

    fn shown(model: &Model) -> String {
        let (window, cap, is_shared) = sizes(model);
        let cap = cap.map_or("-".to_owned(), |cap| cap.to_string());
        let separate = if is_shared { "" } else { " separate" };
        format!("{window}/{cap}{separate}")
    }

    /// Every name with several spellings and different sizes: the window and the longest answer of
    /// each spelling, and those used for all of them.
    ///
    /// After updating the table, review the difference, then write the list again:
    /// `OVERLOCK_WRITE_SPELLINGS=1 cargo test -p overlock-budget spellings`.
    #[test]
    fn spellings_that_disagree_are_listed() {
        let mut listed = String::new();
        let spellings: BTreeMap<_, _> = table().spellings.iter().collect();
        for names in spellings.values() {
            let mut names = (*names).clone();
            names.sort_unstable();
            let stated = |name: &str| read(table().lines[name].fields);
            let first = sizes(&stated(names[0]));
            if names.iter().all(|name| sizes(&stated(name)) == first) {
                continue;
            }
            for name in names {
                let taken = get(name).expect("it is one of the names");
                let (stated, taken) = (shown(&stated(name)), shown(&taken));
                writeln!(listed, "{name}: {stated}, taken {taken}").expect("a string takes all");
            }
        }
        if std::env::var_os("OVERLOCK_WRITE_SPELLINGS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/models/spellings.txt");
            std::fs::write(path, &listed).expect("the list can be written");
        }
        assert_eq!(listed, include_str!("spellings.txt"));
    }

    #[test]
    fn spellings_of_one_name_have_the_same_sizes() {
        for names in table().spellings.values() {
            let drawn = names.iter().filter(|name| !table().lines[*name].by_hand);
            let taken: Vec<Model> = drawn.filter_map(|name| get(name)).collect();
            assert!(
                taken
                    .windows(2)
                    .all(|pair| sizes(&pair[0]) == sizes(&pair[1])),
                "{names:?}"
            );
            for stated in names.iter().map(|name| read(table().lines[name].fields)) {
                assert!(taken.iter().all(|taken| taken.window <= stated.window));
            }
        }
    }

    #[test]
    fn every_entry_is_possible() {
        for name in names() {
            assert_eq!(name, name.to_ascii_lowercase());
            let model = get(name).expect("it is one of the names");
            assert!(model.window > 0, "{name:?} has no window");
            assert_ne!(model.answer_cap, Some(0), "{name:?} cannot answer");
            let separate = model.sharing == Sharing::Separate;
            assert!(
                !separate || model.answer_cap.is_some(),
                "{name:?} has no room to answer"
            );
            assert!(
                model.disputed.is_none_or(|larger| larger > model.window),
                "{name:?}"
            );
        }
    }
}
