//! Other crates, as functions from a text to JSON.

use std::fmt::Write;
use std::panic::catch_unwind;

use jiter::{JsonValue, PartialMode};
use overlock_json::{CloseOptions, RepairOptions, close, repair};

/// A crate that turns cut or malformed text into JSON.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    run: fn(&str) -> Option<String>,
}

impl Peer {
    /// The result of the crate; nothing if it fails or panics.
    pub(crate) fn run(&self, text: &str) -> Option<String> {
        catch_unwind(|| (self.run)(text)).ok().flatten()
    }
}

/// Ours first, for cut text.
pub(crate) const CLOSERS: &[Peer] = &[
    Peer {
        name: "overlock-json",
        run: |text| Some(close(text, &CloseOptions::default()).ok()?.json),
    },
    Peer {
        name: "jiter (partial, trailing strings)",
        run: jiter_partial,
    },
    Peer {
        name: "repair_json",
        run: |text| repair_json::repair(text).ok(),
    },
    Peer {
        name: "partial-json-fixer",
        run: |text| Some(partial_json_fixer::fix_json(text)),
    },
    Peer {
        name: "json_partial (jsonish)",
        run: jsonish,
    },
    Peer {
        name: "json-stream-parser",
        run: |text| serde_json::to_string(&json_stream_parser::parse_stream(text).ok()?).ok(),
    },
    JSONFIX,
    JSONREPAIR_RS,
    JSONREPAIR,
    LLM_JSON,
];

/// Ours first, for malformed text.
pub(crate) const REPAIRERS: &[Peer] = &[
    Peer {
        name: "overlock-json",
        run: |text| Some(repair(text, &RepairOptions::default()).ok()?.json),
    },
    JSONREPAIR_RS,
    JSONREPAIR,
    JSONFIX,
    LLM_JSON,
    Peer {
        name: "json_partial (jsonish)",
        run: jsonish,
    },
];

const JSONFIX: Peer = Peer {
    name: "jsonfix",
    run: |text| jsonfix::repair_extract(text).ok(),
};
const JSONREPAIR_RS: Peer = Peer {
    name: "jsonrepair-rs",
    run: |text| jsonrepair_rs::jsonrepair(text).ok(),
};
const JSONREPAIR: Peer = Peer {
    name: "jsonrepair (Rust)",
    run: |text| jsonrepair::repair_to_string(text, &jsonrepair::Options::default()).ok(),
};
const LLM_JSON: Peer = Peer {
    name: "llm_json",
    run: |text| llm_json::repair_json(text, &llm_json::RepairOptions::default()).ok(),
};

fn jsonish(text: &str) -> Option<String> {
    use json_partial::jsonish::{ParseOptions, parse, to_json_string};
    to_json_string(&parse(text, ParseOptions::default()).ok()?).ok()
}

fn jiter_partial(text: &str) -> Option<String> {
    let value =
        JsonValue::parse_with_config(text.as_bytes(), false, PartialMode::TrailingStrings).ok()?;
    let mut out = String::new();
    write_jiter(&value, &mut out);
    Some(out)
}

fn write_jiter(value: &JsonValue<'_>, out: &mut String) {
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    match value {
        JsonValue::Null => out.push_str("null"),
        JsonValue::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        JsonValue::Int(int) => out.push_str(&int.to_string()),
        JsonValue::BigInt(int) => out.push_str(&int.to_string()),
        JsonValue::Float(float) => {
            let _ = write!(out, "{float:?}");
        }
        JsonValue::Str(text) => out.push_str(&quoted(text)),
        JsonValue::Array(values) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_jiter(value, out);
            }
            out.push(']');
        }
        JsonValue::Object(members) => {
            out.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&quoted(key));
                out.push(':');
                write_jiter(value, out);
            }
            out.push('}');
        }
    }
}

/// Silences the panics of peers during `run`; they count as failures.
pub(crate) fn quietly<T>(run: impl FnOnce() -> T) -> T {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = run();
    std::panic::set_hook(usual);
    result
}
