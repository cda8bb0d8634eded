//! Keeps `overlock.example.toml` complete and true.

use std::collections::BTreeMap;
use std::path::Path;

use overlock_budget::{Model, Sharing};

use super::file::parse;
use super::keys::{KEYS, MODEL_KEYS};
use super::{Config, OwnModel};

const EXAMPLE: &str = include_str!("../../../../overlock.example.toml");

/// A setting of the example.
struct Shown {
    value: String,
    /// The comment above it.
    comment: String,
}

/// The settings of the example by their full names, without looking at them as a parser does.
fn shown() -> BTreeMap<String, Shown> {
    let mut shown = BTreeMap::new();
    let mut table = String::new();
    let mut comment = String::new();
    for line in EXAMPLE.lines() {
        if line.is_empty() {
            comment.clear();
        } else if let Some(text) = line.strip_prefix("# ") {
            comment.push_str(text);
            comment.push(' ');
        } else if let Some(name) = line.strip_prefix("#[") {
            name.trim_end_matches(']').clone_into(&mut table);
        } else if let Some((key, value)) = line.trim_start_matches('#').split_once(" = ") {
            let setting = Shown {
                value: value.to_owned(),
                comment: comment.clone(),
            };
            let earlier = shown.insert(format!("{table}.{key}"), setting);
            assert!(earlier.is_none(), "`{key}` is shown twice");
        }
    }
    shown
}

fn uncommented() -> String {
    let lines = EXAMPLE.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.is_empty() && !setting.starts_with(' ') => setting,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn as_it_is_it_changes_nothing() {
    let config = parse(Path::new("overlock.toml"), EXAMPLE).expect("comments are TOML");
    assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
}

#[test]
fn uncommented_it_is_a_configuration() {
    let config = parse(Path::new("/here/overlock.toml"), &uncommented());
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.budget.model.as_deref(), Some("gpt-4o"));
    assert_eq!(config.models["my-model"].window, Some(32_768));
    let file = Path::new("/here/tokenizers/llama3/tokenizer.json");
    assert_eq!(config.tokenizers["llama3"], file);
}

#[test]
fn every_key_is_shown_with_its_default_and_its_variable() {
    let shown = shown();
    for key in KEYS {
        let Some(setting) = shown.get(key.name) else {
            panic!("`{}` is not in the example", key.name);
        };
        check(
            key.name,
            setting,
            (key.field)(&mut Config::default()).written(),
        );
        let variable = key.variable();
        let words: Vec<_> = setting.comment.split([' ', ';']).collect();
        assert!(
            words.contains(&variable.as_str()),
            "`{}` hides {variable}",
            key.name
        );
    }
    for key in MODEL_KEYS {
        let name = format!("models.\"my-model\".{}", key.name);
        let Some(setting) = shown.get(&name) else {
            panic!("`{name}` is not in the example");
        };
        check(&name, setting, (key.field)(&mut unknown_model()).written());
    }
    // What is shown and not known does not parse; only the tokenizer is left.
    assert_eq!(shown.len(), KEYS.len() + MODEL_KEYS.len() + 1);
}

#[track_caller]
fn check(name: &str, setting: &Shown, default: Option<String>) {
    let says_none = setting.comment.contains("no default");
    assert_eq!(
        says_none,
        default.is_none(),
        "`{name}`: {}",
        setting.comment
    );
    if let Some(default) = default {
        assert_eq!(setting.value, default, "the default of `{name}`");
    }
}

/// What holds for a model that is not in the table.
fn unknown_model() -> OwnModel {
    let model = Model::default();
    OwnModel {
        shared: Some(model.sharing == Sharing::Shared),
        answer_cap: model.answer_cap,
        prefill: Some(model.prefill),
        json: Some(model.json),
        tools: Some(model.tools),
        ..OwnModel::default()
    }
}
