//! What a step did, in words.

use overlock_runs::TraceEvent;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::draw::{self, CUT, FAINT, NEW, STRONG, amount, grouped_tokens};

/// The room for a name in a line.
const NAME_ROOM: usize = 48;

/// What stands before the lines of a step: its number and its mark.
const INDENT: usize = 7;

/// The story of a step.
pub(crate) struct Story {
    /// What it did.
    pub(crate) head: Vec<String>,
    /// Why.
    pub(crate) details: Vec<String>,
    /// What somebody should look at.
    pub(crate) warnings: Vec<String>,
}

impl Story {
    /// The story that an event tells, in lines of this width at most.
    pub(crate) fn of(event: &TraceEvent, width: usize) -> Self {
        let text = |key: &str| event.get(key).and_then(Value::as_str).map(draw::plain);
        let action = text("action").unwrap_or_default();
        let details = match action.as_str() {
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
        let warnings = warnings.map(|warning| format!("warning: {}", draw::plain(warning)));
        let error = text("error").map(|error| format!("error: {error}"));
        Self {
            head: head(event, &action, width),
            details: indented(details.into_iter().chain(mail), width),
            warnings: indented(warnings.chain(error), width),
        }
    }

    /// All of it.
    pub(crate) fn lines(self) -> impl Iterator<Item = String> {
        let below = self.details.into_iter().chain(self.warnings);
        self.head.into_iter().chain(below)
    }
}

/// What a step is called and does, on as many lines as that takes.
fn head(event: &TraceEvent, action: &str, width: usize) -> Vec<String> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).map(draw::plain);
    let number = number(event, "number").unwrap_or_default();
    let mark = if event.contains_key("error") {
        format!("{CUT}✗{CUT:#}")
    } else {
        format!("{NEW}✓{NEW:#}")
    };
    let id = text("step_id").unwrap_or_default();
    let leads = match (text("decision"), text("next")) {
        (Some(decision), Some(next)) => format!("{decision} → {next}"),
        (None, Some(next)) => format!("→ {next}"),
        (_, None) => String::new(),
    };
    let took = event.get("took_ms").and_then(Value::as_u64);
    let took = took.map(|took| format!("{took} ms")).unwrap_or_default();
    let told = [did(event), leads, took];
    let told: Vec<String> = told.into_iter().filter(|told| !told.is_empty()).collect();
    let name = format!("{number:>3}  {mark} {STRONG}{id}{STRONG:#}  {FAINT}{action}{FAINT:#}");
    let one_line = format!("{id}  {action}  {}", told.join("  "));
    if INDENT + one_line.width() <= width {
        return vec![format!("{name}  {}", told.join("  "))];
    }
    let rest = indented(told.into_iter(), width);
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

/// What the step did, in a few words.
fn did(event: &TraceEvent) -> String {
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
    // What a step that failed would have told is not there.
    let action = event.get("action").and_then(Value::as_str);
    let tells = matches!(action, Some("manage_context_budget" | "route"));
    if event.contains_key("error") && !tells {
        return String::new();
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
        "route" => match text("said").as_str() {
            "" => String::new(),
            said => format!("the response says `{said}`"),
        },
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

/// A name or a text that leaves room for more in its line.
fn shortened(text: &str) -> String {
    match text {
        "" => String::new(),
        text => draw::path(text, NAME_ROOM),
    }
}

/// What became of each text.
fn nodes(event: &TraceEvent) -> Vec<String> {
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
            let name = shortened(hit["name"].as_str().unwrap_or_default());
            format!(
                "{name}  {}",
                shortened(hit["path"].as_str().unwrap_or_default())
            )
        })
        .collect()
}

fn skipped(event: &TraceEvent) -> Vec<String> {
    let skipped = list(event, "skipped").iter();
    skipped
        .map(|node| {
            let path = shortened(node["path"].as_str().unwrap_or_default());
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
