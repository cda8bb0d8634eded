//! Describes what a step did, from its trace event.

use overlock_runs::TraceEvent;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::draw::{self, CUT, FAINT, NEW, STRONG, amount, grouped_tokens};

const NAME_COLUMNS: usize = 48;

/// The columns of the number and the mark of a step.
const INDENT: usize = 7;

/// The lines that describe a step.
pub(crate) struct StepSummary {
    head: Vec<String>,
    /// Shown with `--explain` only.
    pub(super) details: Vec<String>,
    warnings: Vec<String>,
}

impl StepSummary {
    /// Describes an event in lines of at most this width.
    pub(crate) fn new(event: &TraceEvent, width: usize) -> Self {
        let text = |key: &str| event.get(key).and_then(Value::as_str).map(draw::plain);
        let action = text("action").unwrap_or_default();
        let details = match action.as_str() {
            "manage_context_budget" => node_lines(event),
            "call_model" => window_lines(event),
            "search_nodes" => hit_lines(event),
            "fetch_node_texts" => skipped_lines(event),
            _ => Vec::new(),
        };
        let mail = ["consumed", "sent"]
            .into_iter()
            .flat_map(|direction| mail_lines(event, direction));
        let warnings = list(event, "warnings").iter().filter_map(Value::as_str);
        let warnings = warnings.map(|warning| format!("warning: {}", draw::plain(warning)));
        let error = text("error").map(|error| format!("error: {error}"));
        Self {
            head: head(event, &action, width),
            details: indented(details.into_iter().chain(mail), width),
            warnings: indented(warnings.chain(error), width),
        }
    }

    pub(crate) fn lines(self) -> impl Iterator<Item = String> {
        let below = self.details.into_iter().chain(self.warnings);
        self.head.into_iter().chain(below)
    }
}

/// The number, name, action and result of a step; on one line if it fits.
fn head(event: &TraceEvent, action: &str, width: usize) -> Vec<String> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).map(draw::plain);
    let number = number(event, "number").unwrap_or_default();
    let mark = if event.contains_key("error") {
        format!("{CUT}✗{CUT:#}")
    } else {
        format!("{NEW}✓{NEW:#}")
    };
    let id = text("step_id").unwrap_or_default();
    let next = match (text("decision"), text("next")) {
        (Some(decision), Some(next)) => format!("{decision} → {next}"),
        (None, Some(next)) => format!("→ {next}"),
        (_, None) => String::new(),
    };
    let took = event.get("took_ms").and_then(Value::as_u64);
    let took = took.map(|took| format!("{took} ms")).unwrap_or_default();
    let parts = [result(event), next, took];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let name = format!("{number:>3}  {mark} {STRONG}{id}{STRONG:#}  {FAINT}{action}{FAINT:#}");
    let one_line = format!("{id}  {action}  {}", parts.join("  "));
    if INDENT + one_line.width() <= width {
        return vec![format!("{name}  {}", parts.join("  "))];
    }
    let rest = indented(parts.into_iter(), width);
    std::iter::once(name).chain(rest).collect()
}

/// Lines below the head of a step.
fn indented(lines: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let room = width.saturating_sub(INDENT).max(INDENT);
    let lines = lines.flat_map(|line| draw::wrap_words(&line, room));
    lines.map(|line| format!("{:INDENT$}{line}", "")).collect()
}

fn list<'a>(event: &'a TraceEvent, key: &str) -> &'a [Value] {
    event
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn number(event: &TraceEvent, key: &str) -> Option<u64> {
    event.get(key).and_then(Value::as_u64)
}

/// The result of a step in a few words.
fn result(event: &TraceEvent) -> String {
    let text = |key: &str| {
        let text = event.get(key).and_then(Value::as_str).unwrap_or_default();
        shortened(text)
    };
    let count = |key: &str| grouped_tokens(number(event, key).unwrap_or_default());
    let some = |key: &str, what: &str| amount(number(event, key).unwrap_or_default(), what);
    let why = event.get("why").and_then(Value::as_str).map(draw::plain);
    if let Some(why) = why {
        return why;
    }
    let action = event.get("action").and_then(Value::as_str);
    let action = action.unwrap_or_default();
    // Only these actions record their fields even if they fail.
    if event.contains_key("error") && !matches!(action, "manage_context_budget" | "route") {
        return String::new();
    }
    match action {
        "search_nodes" => format!("{} for `{}`", some("hits", "hit"), text("query")),
        "expand_dependency_tree" => format!("{}, {}", some("nodes", "node"), some("edges", "edge")),
        "fetch_node_texts" => format!(
            "{}, {} of {} {}",
            some("texts", "text"),
            count("used"),
            count("budget"),
            text("unit")
        ),
        "manage_context_budget" => {
            let after =
                number(event, "context_tokens").or_else(|| number(event, "current_context_tokens"));
            format!(
                "{} tokens of context, {} with the new texts, limit {}",
                count("current_context_tokens"),
                grouped_tokens(after.unwrap_or_default()),
                count("max_context_tokens")
            )
        }
        "call_model" => format!(
            "{}: {} tokens in, {} out, in {}",
            text("model"),
            grouped_tokens(
                event
                    .get("window")
                    .and_then(|window| window["input_token_count"].as_u64())
                    .unwrap_or_default()
            ),
            count("output_tokens"),
            amount(number(event, "calls").unwrap_or_default(), "call")
        ),
        "loop_guard" => format!(
            "passed {} of {} times",
            count("passed"),
            count("max_turn_loops")
        ),
        "load_history" => format!("{} of `{}`", some("messages", "message"), text("room")),
        "load_memories" => format!("{} memories of `{}`", count("memories"), text("persona")),
        "repeat_query_guard" => format!("`{}`", text("query")),
        "set_variables" => {
            let set = list(event, "set").iter().filter_map(Value::as_str);
            set.map(draw::plain).collect::<Vec<_>>().join(", ")
        }
        "route" => match text("said").as_str() {
            "" => String::new(),
            said => format!("the response contains `{said}`"),
        },
        "send" => "sent".to_owned(),
        "finalize" => {
            let stored = event.get("stored").and_then(Value::as_str);
            stored.map_or(String::new(), |room| {
                format!("stored in `{}`", draw::plain(room))
            })
        }
        _ => String::new(),
    }
}

fn shortened(text: &str) -> String {
    match text {
        "" => String::new(),
        text => draw::path(text, NAME_COLUMNS),
    }
}

/// How each text was used.
fn node_lines(event: &TraceEvent) -> Vec<String> {
    let nodes = list(event, "nodes").iter();
    nodes
        .map(|node| {
            let text = |key: &str| draw::plain(node[key].as_str().unwrap_or("–"));
            let tokens = |key: &str| grouped_tokens(node[key].as_u64().unwrap_or_default());
            let name = shortened(node["path"].as_str().or(node["id"].as_str()).unwrap_or("–"));
            let sizes = if node["compacted"] == true {
                format!(
                    "{} → {} tokens",
                    tokens("tokens_raw"),
                    tokens("tokens_final")
                )
            } else {
                format!("{} tokens", tokens("tokens_raw"))
            };
            format!("{name}  {}  {sizes}  {}", text("language"), text("reason"))
        })
        .collect()
}

/// How the window of a call was divided.
fn window_lines(event: &TraceEvent) -> Vec<String> {
    let Some(window) = event.get("window") else {
        return Vec::new();
    };
    let tokens = |value: &Value| grouped_tokens(value.as_u64().unwrap_or_default());
    let parts = window["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let mut figures: Vec<String> = parts
        .iter()
        .map(|part| {
            let (asked, given) = (tokens(&part["asked"]), tokens(&part["given"]));
            let name = draw::plain(part["part"].as_str().unwrap_or_default());
            if asked == given {
                format!("{name} {given}")
            } else {
                format!("{name} {given} of {asked}")
            }
        })
        .collect();
    figures.push(format!("margin {}", tokens(&window["margin"])));
    let counter = draw::plain(window["counter"].as_str().unwrap_or_default());
    let provenance = draw::plain(window["provenance"].as_str().unwrap_or_default());
    vec![
        format!(
            "window of {}: {}",
            tokens(&window["tokens"]),
            figures.join(", ")
        ),
        format!("counted with {counter} ({provenance})"),
    ]
}

fn hit_lines(event: &TraceEvent) -> Vec<String> {
    let hits = list(event, "found").iter();
    hits.map(|hit| {
        let text = |key: &str| shortened(hit[key].as_str().unwrap_or_default());
        format!("{}  {}", text("name"), text("path"))
    })
    .collect()
}

fn skipped_lines(event: &TraceEvent) -> Vec<String> {
    let skipped = list(event, "skipped").iter();
    skipped
        .map(|node| {
            let path = shortened(node["path"].as_str().unwrap_or_default());
            format!("{path}  too large for the remaining budget")
        })
        .collect()
}

fn mail_lines(event: &TraceEvent, direction: &str) -> Vec<String> {
    let mail = event
        .get("inbox")
        .and_then(|inbox| inbox.get(direction)?.as_array());
    let mail = mail.into_iter().flatten();
    mail.map(|mail| {
        let text = |key: &str| draw::plain(mail[key].as_str().unwrap_or_default());
        match direction {
            "sent" => format!("sent mail to {}: {}", text("target_step_id"), text("topic")),
            _ => format!("read mail: {}", text("topic")),
        }
    })
    .collect()
}
