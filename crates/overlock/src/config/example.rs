//! Generates `overlock.example.toml` from the declarations of all settings.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use overlock_budget::{Model, Sharing};

use super::file::parse;
use super::settings::{KEYS, Key, MODEL_KEYS, TABLES};
use super::{Config, OwnModel};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../overlock.example.toml");

const HEAD: &[&str] = &[
    "Every setting of Overlock, with its default.",
    "",
    "Copy this file to `overlock.toml` in the current folder, or to `overlock/overlock.toml` in your \
     configuration folder (such as ~/.config), or name it with `--config FILE` or OVERLOCK_CONFIG. \
     Remove the `#` before a table and before a setting that you want to change.",
    "",
    "Flags override environment variables, which override this file. The variable of a setting is \
     named above it. Relative paths start from the folder of this file. Durations have a unit: s, m, \
     h or d.",
];

const TOKENIZERS: &str = "The `tokenizer.json` of each family of models, by the name that `overlock \
                          models` shows. Without it counts are estimates.";

const MODELS: &str = "A model of yours, or changes to one in the table. Settings that are left out \
                      keep the value of the table; a model that is not in the table needs a `window`.";

const WIDTH: usize = 98;

/// The example file.
fn example() -> String {
    let mut text = String::new();
    for paragraph in HEAD {
        comment(&mut text, paragraph);
    }
    for (table, doc) in TABLES {
        text.push_str("\n\n");
        comment(&mut text, doc);
        let _ = writeln!(text, "#[{table}]"); // a string takes everything
        let of_table = |key: &&Key<Config>| key.name.rsplit_once('.').map(|it| it.0) == Some(table);
        for key in KEYS.iter().filter(of_table) {
            setting(&mut text, key, &mut Config::default(), Some(key.variable()));
        }
    }
    text.push_str("\n\n");
    comment(&mut text, TOKENIZERS);
    text.push_str("#[tokenizers]\n#llama3 = \"tokenizers/llama3/tokenizer.json\"\n\n\n");
    comment(&mut text, MODELS);
    text.push_str("#[models.\"my-model\"]\n");
    for key in MODEL_KEYS {
        setting(&mut text, key, &mut unknown_model(), None);
    }
    text
}

fn setting<T>(text: &mut String, key: &Key<T>, target: &mut T, variable: Option<String>) {
    text.push('\n');
    let default = (key.field)(target).written();
    let none = default.is_none().then(|| " No default.".to_owned());
    let doc: Vec<&str> = key.doc.iter().map(|line| line.trim()).collect();
    comment(text, &(doc.join(" ") + &none.unwrap_or_default()));
    if let Some(variable) = variable {
        comment(text, &variable);
    }
    let example = key.example.first().map(|example| (*example).to_owned());
    let value = default.or(example);
    let value = value.unwrap_or_else(|| panic!("`{}` has no default and no example", key.name));
    let name = key.name.rsplit('.').next().unwrap_or(key.name);
    let _ = writeln!(text, "#{name} = {value}"); // a string takes everything
}

/// Wraps a comment.
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if line.len() + word.len() >= WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

fn uncommented(example: &str) -> String {
    let lines = example.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.is_empty() && !setting.starts_with(' ') => setting,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_file_is_up_to_date() {
    let example = example();
    if env::var_os("OVERLOCK_WRITE_EXAMPLE").is_some() {
        fs::write(PATH, &example).expect("the example can be written");
    }
    let file = fs::read_to_string(PATH).expect("the example is there");
    assert!(
        file == example,
        "set OVERLOCK_WRITE_EXAMPLE=1 and run this test to write overlock.example.toml"
    );
}

#[test]
fn every_setting_is_in_a_table_of_the_example() {
    let example = example();
    for key in KEYS {
        assert!(example.contains(&key.variable()), "`{}`", key.name);
    }
}

#[test]
fn the_example_changes_nothing() {
    let config = parse(Path::new("overlock.toml"), &example()).expect("comments are TOML");
    assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
}

#[test]
fn the_example_without_comment_signs_is_a_configuration() {
    let config = parse(Path::new("/here/overlock.toml"), &uncommented(&example()));
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.budget.model.as_deref(), Some("gpt-4o"));
    assert_eq!(config.models["my-model"].window, Some(32_768));
    let file = Path::new("/here/tokenizers/llama3/tokenizer.json");
    assert_eq!(config.tokenizers["llama3"], file);
}

/// The defaults of a model that is not in the table.
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
