//! What a step did, in words.

use overlock_pipeline::TraceEvent;
use serde_json::Value;

use crate::draw::{self, CUT, FAINT, NEW, STRONG, amount, grouped_tokens};

/// The room for a name in a line.
const NAME_ROOM: usize = 48;

/// The story of a step: what it did in the first line, why in those below.
pub(crate) fn lines(event: &TraceEvent) -> Vec<String> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).map(draw::plain);
    let number = event
        .get("number")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let (id, action) = (
        text("step_id").unwrap_or_default(),
        text("action").unwrap_or_default(),
    );
    let mark = if event.contains_key("error") {
        format!("{CUT}✗{CUT:#}")
    } else {
        format!("{NEW}✓{NEW:#}")
    };
    let did = did(event);
    let leads = match (text("decision"), text("next")) {
        (Some(decision), Some(next)) => format!("  {decision} → {next}"),
        (None, Some(next)) => format!("  → {next}"),
        (_, None) => String::new(),
    };
    let took = event
        .get("took_ms")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let mut lines = vec![format!(
        "{number:>3}  {mark} {STRONG}{id}{STRONG:#}  {FAINT}{action}{FAINT:#}  {did}{leads}  {FAINT}{took} ms{FAINT:#}"
    )];
    let below = match action.as_str() {
        "manage_context_budget" => nodes(event),
        "call_model" => window(event),
        "search_nodes" => found(event),
        "fetch_node_texts" => skipped(event),
        _ => Vec::new(),
    };
    let mail = ["consumed", "sent"]
        .into_iter()
        .flat_map(|way| mail(event, way));
    let warnings = list(event, "warnings").iter().filter_map(Value::as_str);
    let warnings = warnings.map(|warning| format!("{CUT}warning:{CUT:#} {}", draw::plain(warning)));
    let error = text("error").map(|error| format!("{CUT}error:{CUT:#} {error}"));
    let below = below.into_iter().chain(mail).chain(warnings).chain(error);
    lines.extend(below.map(|line| format!("       {line}")));
    lines
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

/// What the step did, in a few words.
fn did(event: &TraceEvent) -> String {
    let text = |key: &str| {
        let text = event.get(key).and_then(Value::as_str).unwrap_or_default();
        draw::path(text, NAME_ROOM)
    };
    let count = |key: &str| grouped_tokens(number(event, key).unwrap_or_default());
    let some = |key: &str, what: &str| amount(number(event, key).unwrap_or_default(), what);
    let why = event.get("why").and_then(Value::as_str).map(draw::plain);
    if let Some(why) = why {
        return why;
    }
    match event
        .get("action")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
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
                "{} tokens of context, {} with what is new, {} at most",
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
        "load_memories" => format!("{} remembered of `{}`", count("memories"), text("persona")),
        "repeat_query_guard" => format!("`{}`", text("query")),
        "set_variables" => {
            let set = list(event, "set").iter().filter_map(Value::as_str);
            set.map(draw::plain).collect::<Vec<_>>().join(", ")
        }
        "route" => format!("the response says `{}`", text("said")),
        "send" => "sent".to_owned(),
        "finalize" => {
            let stored = event.get("stored").and_then(Value::as_str);
            stored.map_or(String::new(), |room| {
                format!("kept in `{}`", draw::plain(room))
            })
        }
        _ => String::new(),
    }
}

/// What became of each text.
fn nodes(event: &TraceEvent) -> Vec<String> {
    let nodes = list(event, "nodes").iter();
    nodes
        .map(|node| {
            let text = |key: &str| draw::plain(node[key].as_str().unwrap_or("–"));
            let tokens = |key: &str| grouped_tokens(node[key].as_u64().unwrap_or_default());
            let name = draw::path(
                node["path"].as_str().or(node["id"].as_str()).unwrap_or("–"),
                NAME_ROOM,
            );
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

/// Where the tokens of a call went.
fn window(event: &TraceEvent) -> Vec<String> {
    let Some(window) = event.get("window") else {
        return Vec::new();
    };
    let tokens = |value: &Value| grouped_tokens(value.as_u64().unwrap_or_default());
    let parts = window["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let mut told: Vec<String> = parts
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
    told.push(format!("margin {}", tokens(&window["margin"])));
    let counter = draw::plain(window["counter"].as_str().unwrap_or_default());
    let provenance = draw::plain(window["provenance"].as_str().unwrap_or_default());
    vec![
        format!(
            "window of {}: {}",
            tokens(&window["tokens"]),
            told.join(", ")
        ),
        format!("counted by {counter} ({provenance})"),
    ]
}

fn found(event: &TraceEvent) -> Vec<String> {
    let found = list(event, "found").iter();
    found
        .map(|hit| {
            let name = draw::path(hit["name"].as_str().unwrap_or_default(), NAME_ROOM);
            format!(
                "{name}  {}",
                draw::path(hit["path"].as_str().unwrap_or_default(), NAME_ROOM)
            )
        })
        .collect()
}

fn skipped(event: &TraceEvent) -> Vec<String> {
    let skipped = list(event, "skipped").iter();
    skipped
        .map(|node| {
            let path = draw::path(node["path"].as_str().unwrap_or_default(), NAME_ROOM);
            format!("{path}  too large for what is left")
        })
        .collect()
}

fn mail(event: &TraceEvent, way: &str) -> Vec<String> {
    let mail = event
        .get("inbox")
        .and_then(|inbox| inbox.get(way)?.as_array());
    let mail = mail.into_iter().flatten();
    mail.map(|mail| {
        let text = |key: &str| draw::plain(mail[key].as_str().unwrap_or_default());
        match way {
            "sent" => format!("mail for {}: {}", text("target_step_id"), text("topic")),
            _ => format!("took mail: {}", text("topic")),
        }
    })
    .collect()
}
