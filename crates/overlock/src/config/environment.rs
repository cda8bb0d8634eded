//! What the environment sets: for every key that stands alone a variable of its name.
//!
//! Where traces go has names that many programs share; those stand over the file, and ours over
//! them.
//!
//! A variable of ours with a bad value is an error. One that only looks like ours may belong to
//! another program, so it is passed over, with a word if it was probably meant for us.

use std::ffi::OsString;
use std::path::Path;

use super::keys::Value;
use super::settings::{KEYS, Key};
use super::{Config, ConfigError};
use crate::suggest::nearest;

const PREFIX: &str = "OVERLOCK_";
/// Read elsewhere: it says where the file is.
const FILE: &str = "OVERLOCK_CONFIG";

/// The variables for the address of traces, and what is put after each; the last one stands over
/// the first.
const TRACES: [(&str, &str); 2] = [
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "/v1/traces"),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""),
];

/// Puts the variables over the configuration. What comes back is worth a note each.
pub(super) fn apply(
    config: &mut Config,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<String>, ConfigError> {
    let mut variables: Vec<(String, OsString)> = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .collect();
    variables.sort();
    for (shared, below) in TRACES {
        let found = variables.iter().find(|(name, _)| name == shared);
        let value = found.map(|(_, value)| value.to_string_lossy());
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let url = match below {
                "" => value.into_owned(),
                below => format!("{}{below}", value.trim_end_matches('/')),
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
        // Empty is how a shell takes a variable away for one command.
        if value.is_empty() {
            continue;
        }
        let value = value.to_string_lossy().into_owned();
        (key.field)(config)
            .set(&Value::Bare(value), Path::new(""))
            .map_err(|what| ConfigError::Variable {
                name,
                what,
                hint: format!(
                    "it stands over `{}` in the configuration; unset it or set it right",
                    key.name
                ),
            })?;
    }
    Ok(notes)
}

fn near_miss(name: &str) -> Option<String> {
    let variables: Vec<String> = KEYS.iter().map(Key::variable).collect();
    // Without what all of them share, or everything would be alike.
    let ends = variables.iter().map(|variable| &variable[PREFIX.len()..]);
    let meant = nearest(&name[PREFIX.len()..], ends.chain(["CONFIG"]))?;
    Some(format!(
        "the variable `{name}` sets nothing; did you mean `{PREFIX}{meant}`?"
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
    fn variables_set_what_their_keys_set() {
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
    fn a_bad_value_names_its_variable() {
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
    fn the_more_exact_address_of_traces_stands_over_the_others() {
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
    fn only_a_near_miss_is_worth_a_word() {
        let (_, notes) = read(&[
            ("OVERLOCK_BUDGET_MODLE", "gpt-4o"),
            ("OVERLOCK_JSON_TEST_SUITE", "/suite"),
            ("OVERLOCK_HOME", "/"),
            ("OVERLOCKER", "1"),
        ])
        .expect("none is ours");
        assert_eq!(
            notes,
            ["the variable `OVERLOCK_BUDGET_MODLE` sets nothing; \
              did you mean `OVERLOCK_BUDGET_MODEL`?"]
        );
    }
}
