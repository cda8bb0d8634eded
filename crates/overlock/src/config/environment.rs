//! Applies environment variables: every key has a variable with its name.
//!
//! The address of traces also has the standard `OTEL_…` variables, which override the file; our own
//! variable overrides them.
//!
//! An invalid value of one of our variables is an error. Other variables with our prefix may belong
//! to another program, so they are ignored, with a note if the name is similar to one of ours.

use std::ffi::OsString;
use std::path::Path;

use super::keys::WrittenValue;
use super::settings::{KEYS, Key};
use super::{Config, ConfigError};
use crate::suggest::nearest;

const PREFIX: &str = "OVERLOCK_";
/// The path of the file, which is read elsewhere.
const FILE: &str = "OVERLOCK_CONFIG";

/// The variables for the address of traces, with the path appended to each; the last one wins.
const TRACES: [(&str, &str); 2] = [
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "/v1/traces"),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""),
];

/// Overrides the configuration by variables. Returns notes for the user.
pub(super) fn apply(
    config: &mut Config,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<String>, ConfigError> {
    let mut variables: Vec<(String, OsString)> = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .collect();
    variables.sort();
    for (standard, path) in TRACES {
        let variable = variables.iter().find(|(name, _)| name == standard);
        let value = variable.map(|(_, value)| value.to_string_lossy());
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let url = match path {
                "" => value.into_owned(),
                path => format!("{}{path}", value.trim_end_matches('/')),
            };
            config.serve.traces_url = Some(url);
        }
    }
    let ours = variables
        .into_iter()
        .filter(|(name, _)| name.starts_with(PREFIX) && name != FILE);
    let mut notes = Vec::new();
    for (name, value) in ours {
        let Some(key) = KEYS.iter().find(|key| key.variable() == name) else {
            notes.extend(near_miss(&name));
            continue;
        };
        // Shells set a variable to empty to remove it for one command.
        if value.is_empty() {
            continue;
        }
        let value = value.to_string_lossy().into_owned();
        (key.field)(config)
            .set(&WrittenValue::Bare(value), Path::new(""))
            .map_err(|problem| ConfigError::Variable {
                name,
                problem,
                hint: format!("it overrides `{}`; correct or unset it", key.name),
            })?;
    }
    Ok(notes)
}

fn near_miss(name: &str) -> Option<String> {
    let variables: Vec<String> = KEYS.iter().map(Key::variable).collect();
    // Without the common prefix, which would make all names similar.
    let ends = variables.iter().map(|variable| &variable[PREFIX.len()..]);
    let meant = nearest(&name[PREFIX.len()..], ends.chain(["CONFIG"]))?;
    Some(format!(
        "the variable `{name}` is not a known setting; did you mean `{PREFIX}{meant}`?"
    ))
}

#[cfg(test)]
mod tests {
    use overlock_budget::Trim;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<(Config, Vec<String>), ConfigError> {
        let mut config = Config::default();
        let variables = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        let notes = apply(&mut config, variables)?;
        Ok((config, notes))
    }

    #[test]
    fn variables_set_the_settings_of_their_keys() {
        let set = [
            ("OVERLOCK_BUDGET_MODEL", "gpt-4o"),
            ("OVERLOCK_BUDGET_MARGIN", "75"),
            ("OVERLOCK_BUDGET_TRIM", "summary"),
            ("OVERLOCK_BUDGET_GROW", "true"),
            ("OVERLOCK_BUDGET_MAX_TOKENS", ""),
            ("OVERLOCK_BUDGET_MEMORY_IMPORTANCE", "0.75"),
            ("OVERLOCK_BUDGET_HISTORY_PRIORITY", "-7"),
        ];
        let (config, notes) = read(&set).expect("all are right");
        assert_eq!(config.budget.model.as_deref(), Some("gpt-4o"));
        let plan = config.budget.plan;
        assert_eq!((plan.margin, plan.trim), (Some(75), Trim::Summary));
        assert_eq!((plan.grow, plan.requested), (true, 3000));
        assert!((plan.memory.importance - 0.75).abs() < f64::EPSILON);
        assert_eq!(plan.history.priority, -7);
        assert_eq!(notes, [""; 0]);
    }

    #[test]
    fn reports_the_variable_of_an_invalid_value() {
        for (name, value) in [
            ("OVERLOCK_BUDGET_MAX_TOKENS", "-3"),
            ("OVERLOCK_BUDGET_MAX_TOKENS", "many"),
            (
                "OVERLOCK_BUDGET_MARGIN",
                "99999999999999999999999999999999999999999999",
            ),
            ("OVERLOCK_BUDGET_GROW", "yes"),
            ("OVERLOCK_COMPLETE_DEADLINE", "18446744073709551615h"),
            ("OVERLOCK_COMPLETE_DEADLINE", "900"),
            ("OVERLOCK_UPSTREAM_RESPONSE_TIMEOUT", "366d"),
            ("OVERLOCK_UPSTREAM_IDLE_TIMEOUT", "0s"),
            ("OVERLOCK_BUDGET_TRIM", "newest"),
            ("OVERLOCK_BUDGET_MEMORY_DAYS", "NaN"),
            ("OVERLOCK_BUDGET_HISTORY_SHRINK", "4294967296"),
        ] {
            let error = read(&[(name, value)]).expect_err(name).to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn the_more_specific_address_of_traces_wins() {
        let all = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b:4318/spans/"),
            ("OVERLOCK_SERVE_TRACES_URL", "http://c:4318"),
        ];
        let expected = [
            "http://a:4318/v1/traces",
            "http://b:4318/spans/",
            "http://c:4318",
        ];
        for (count, expected) in (1..).zip(expected) {
            let (config, _) = read(&all[..count]).expect("all are right");
            assert_eq!(config.serve.traces_url.as_deref(), Some(expected));
        }
        let (config, _) = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]).expect("it is empty");
        assert_eq!(config.serve.traces_url, None);
    }

    #[test]
    fn notes_only_similar_names() {
        let (_, notes) = read(&[
            ("OVERLOCK_BUDGET_MODLE", "gpt-4o"),
            ("OVERLOCK_JSON_TEST_SUITE", "/suite"),
            ("OVERLOCK_HOME", "/"),
            ("OVERLOCKER", "1"),
        ])
        .expect("none is ours");
        assert_eq!(
            notes,
            [
                "the variable `OVERLOCK_BUDGET_MODLE` is not a known setting; \
              did you mean `OVERLOCK_BUDGET_MODEL`?"
            ]
        );
    }
}
