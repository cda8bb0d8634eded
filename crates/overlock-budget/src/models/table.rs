//! Reads the built-in table.
//!
//! The table is TOML of one simple shape, an entry a line. Only the names are read at first, once,
//! and an entry when it is asked for, so that a program which looks up one model does not wait for
//! thousands; a test compares the result with that of a full TOML parser, so nothing in the file
//! can be misread or passed over.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use super::{Model, Sharing, WindowSource};

const TEXT: &str = include_str!("../../models.toml");

/// What is known about the model with exactly this name.
pub(super) fn get(name: &str) -> Option<Model> {
    table().lines.get(name).map(|fields| read(fields))
}

/// All names, in no order.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    table().lines.keys().copied()
}

/// The length of the longest name.
pub(super) fn longest() -> usize {
    table().longest
}

struct Table {
    /// From the name to what stands between the braces.
    lines: HashMap<&'static str, &'static str>,
    longest: usize,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lines: HashMap<_, _> = TEXT.lines().filter_map(split).collect();
        let longest = lines.keys().map(|name| name.len()).max().unwrap_or(0);
        Table { lines, longest }
    })
}

/// The name and the fields of a line, if it holds an entry.
fn split(line: &'static str) -> Option<(&'static str, &'static str)> {
    let (name, fields) = line.strip_prefix('"')?.split_once("\" = { ")?;
    Some((name, fields.strip_suffix(" }")?))
}

fn read(fields: &'static str) -> Model {
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
            "tokenizer" => model.tokenizer = Some(Cow::Borrowed(value.trim_matches('"'))),
            "prefill" => model.prefill = value == "true",
            "json" => model.json = value == "true",
            "tools" => model.tools = value == "true",
            "disputed" => model.disputed = number,
            _ => {}
        }
    }
    model
}

#[cfg(test)]
mod tests {
    use toml::Value;

    use super::*;

    /// The same entry, read by a parser that knows all of TOML.
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
            tokenizer: tokenizer.map(|tokenizer| Cow::Owned(tokenizer.to_owned())),
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
            assert_eq!(get(name), Some(read_fully(entry)), "reading {name:?}");
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
