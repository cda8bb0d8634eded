//! Reads the KPIs that a model proposes to count.
//!
//! The model is asked once, after the first cut. The answer is repaired and read leniently; the
//! values are then counted in the document, not taken from the answer.

use overlock_json::{RepairOptions, Several, repair};
use serde_json::Value;

use super::measured::MeasuredKpi;

/// The maximum of proposed KPIs that are counted.
pub(crate) const MOST_KPIS: usize = 8;

/// The largest plausible target.
const LARGEST_TARGET: u64 = 1_000_000_000;

/// The maximum length of a path; names and descriptions are cut to it.
const MOST_CHARACTERS: usize = 200;

/// The KPIs that an answer proposes, or why none is usable.
pub(crate) fn proposed_kpis(answer: &[u8]) -> Result<Vec<MeasuredKpi>, String> {
    let options = RepairOptions {
        several: Several::First,
    };
    let repaired = repair(answer, &options).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&repaired.json).map_err(|error| error.to_string())?;
    let mut reason = None;
    let mut kpis: Vec<MeasuredKpi> = Vec::new();
    for item in listed(&value) {
        match read_kpi(item, kpis.len() + 1) {
            Ok(kpi)
                if kpis
                    .iter()
                    .all(|known| known.json_path() != kpi.json_path()) =>
            {
                kpis.push(kpi);
            }
            Ok(_) => {}
            Err(error) => reason = reason.or(Some(error)),
        }
        if kpis.len() == MOST_KPIS {
            break;
        }
    }
    if kpis.is_empty() {
        return Err(reason.unwrap_or_else(|| "it proposes nothing to count".to_owned()));
    }
    Ok(kpis)
}

/// The list of KPIs, wherever it is in the answer.
fn listed(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        Value::Object(members) if members.contains_key("json_path") => std::slice::from_ref(value),
        Value::Object(members) => members
            .values()
            .find_map(Value::as_array)
            .map_or(&[], Vec::as_slice),
        _ => &[],
    }
}

fn read_kpi(item: &Value, number: usize) -> Result<MeasuredKpi, String> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let short = |text: &str| text.chars().take(MOST_CHARACTERS).collect::<String>();
    let path = text("json_path").trim();
    if path.is_empty() || path.chars().count() > MOST_CHARACTERS {
        return Err("a KPI has no `json_path` of a valid length".to_owned());
    }
    let target = item.get("target_value").and_then(whole_number);
    let target = target.filter(|target| (1..=LARGEST_TARGET).contains(target));
    let target = target.ok_or_else(|| format!("`{path}` has no valid `target_value`"))?;
    let id = match short(text("id").trim()) {
        id if id.is_empty() => format!("kpi-{number}"),
        id => id,
    };
    MeasuredKpi::new(id, short(text("description").trim()), path, target)
        .map_err(|error| error.to_string())
}

/// A whole number, written as a number or a string.
fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(answer: &str, expected: &[(&str, &str, u64)]) {
        let proposed = proposed_kpis(answer.as_bytes()).expect(answer);
        let kpis: Vec<_> = proposed
            .iter()
            .map(|kpi| (kpi.id.as_str(), kpi.json_path(), kpi.target_value))
            .collect();
        assert_eq!(kpis, expected, "{answer}");
    }

    #[test]
    fn reads_what_models_write() {
        let rows = r#"{"id": "rows", "description": "rows", "json_path": "$.rows[*]", "target_value": 60}"#;
        let expected = [("rows", "$.rows[*]", 60)];
        check(&format!(r#"{{"kpis": [{rows}]}}"#), &expected);
        check(&format!("[{rows}]"), &expected);
        check(rows, &expected);
        check(
            &format!("Sure!\n```json\n{{\"kpis\": [{rows},]}}\n```"),
            &expected,
        );
        check(
            &format!(r#"{{"kpis": [{rows}, {{"id": "cut", "json_"#),
            &expected,
        );
        check(
            "{kpis: [{json_path: '$.rows', target_value: '60'}]}",
            &[("kpi-1", "$.rows", 60)],
        );
    }

    #[test]
    fn skips_invalid_kpis() {
        check(
            r#"[{"json_path": "rows", "target_value": 3}, {"json_path": "$.a", "target_value": 0},
                {"json_path": "$.b", "target_value": -1}, {"json_path": "$.c", "target_value": 1e12},
                {"target_value": 3}, 7, {"id": "d", "json_path": "$.d", "target_value": 3},
                {"id": "again", "json_path": "$.d", "target_value": 4}]"#,
            &[("d", "$.d", 3)],
        );
        let many: Vec<_> = (0..100)
            .map(|number| format!(r#"{{"json_path": "$.a{number}", "target_value": 3}}"#))
            .collect();
        let kpis = proposed_kpis(format!("[{}]", many.join(",")).as_bytes()).expect("some");
        assert_eq!(kpis.len(), MOST_KPIS);
    }

    #[test]
    fn says_why_no_kpi_is_usable() {
        for (answer, expected) in [
            ("", "empty"),
            ("I cannot say.", "no object"),
            ("{}", "nothing to count"),
            (r#"[{"json_path": "rows", "target_value": 3}]"#, "`$`"),
            (r#"[{"json_path": "$.rows"}]"#, "target_value"),
        ] {
            let reason = proposed_kpis(answer.as_bytes()).expect_err(answer);
            assert!(reason.contains(expected), "{answer}: {reason}");
        }
    }

    proptest! {
        #[test]
        fn the_number_of_kpis_is_bounded(answer in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(kpis) = proposed_kpis(&answer) {
                prop_assert!((1..=MOST_KPIS).contains(&kpis.len()));
            }
        }
    }
}
