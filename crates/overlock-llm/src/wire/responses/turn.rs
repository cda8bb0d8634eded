//! A turn of a conversation that the upstream has not stored as the client got it.
//!
//! The upstream stores its own response: of a continued one, the part before the cut. A request that
//! names it in `previous_response_id` would continue that part, so the turn is sent as input
//! instead.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer::ResponsesAnswer;
use super::object::{assistant_message, finish_of};
use super::writer::kind_of;
use crate::assembler::{Assembler, Delivery, PartKind};
use crate::wire::pieces::Pieces;

const PREVIOUS: &str = "previous_response_id";

/// The response that a request continues, by its id.
pub fn previous_response_id(request: &str) -> Option<String> {
    let members: HashMap<String, &RawValue> = serde_json::from_str(request).ok()?;
    serde_json::from_str(members.get(PREVIOUS)?.get()).ok()
}

/// The id of a response that the upstream stores for a request.
pub fn stored_id<'a>(request: &str, response: &'a Value) -> Option<&'a str> {
    let members: HashMap<String, &RawValue> = serde_json::from_str(request).ok()?;
    let is_stored = members
        .get("store")
        .is_none_or(|store| store.get() != "false");
    let id = response.get("id")?.as_str()?;
    is_stored.then_some(id)
}

/// Whether a stored response may have been continued by a gateway: its document or its last call is
/// cut, or its text, if texts are continued.
pub fn may_have_been_joined(response: &Value, are_texts_continued: bool) -> bool {
    let format = response
        .pointer("/text/format/type")
        .and_then(Value::as_str);
    let is_json = matches!(format, Some("json_object" | "json_schema"));
    let kind = if is_json {
        PartKind::Document
    } else {
        PartKind::Detect
    };
    let mut assembler = Assembler::new(kind, Delivery::AtEnd);
    ResponsesAnswer::complete(response.clone(), &mut assembler);
    let is_open = assembler.choices().any(|(_, choice)| {
        let parts = std::iter::once(&choice.content).chain(&choice.calls);
        parts
            .into_iter()
            .any(|part| part.is_open() || part.needs_reread())
    });
    let items = response.get("output").and_then(Value::as_array);
    let ends_in_text = items
        .and_then(|items| items.last())
        .is_some_and(|item| kind_of(item) == "message");
    let is_plain_text = ends_in_text && !is_json && !are_texts_continued;
    is_open || finish_of(response) == Some("length") && !is_plain_text
}

/// The input of a request and its response, as the client got it.
#[derive(Clone, Debug)]
pub struct ResponsesTurn {
    /// What the request itself continues.
    previous: Option<String>,
    /// The items, as JSON with commas between them.
    items: String,
}

impl ResponsesTurn {
    /// A turn; `None` if it has an item that only the upstream can send again.
    pub fn new(request: &str, response: &Value) -> Option<Self> {
        let mut members = Pieces::of_object(request)?;
        let mut items = vec![input_items(members.value("input")?)?];
        for item in response.get("output")?.as_array()? {
            items.extend(as_input(item)?.iter().map(Value::to_string));
        }
        Some(Self {
            previous: previous_response_id(request),
            items: items.join(","),
        })
    }

    /// Its length in bytes.
    pub fn size(&self) -> usize {
        self.items.len()
    }

    /// A request that continues this turn, with the turn as its input. All else stays as it is.
    pub fn inlined(&self, request: &str) -> Option<String> {
        let mut members = Pieces::of_object(request)?;
        let input = members.value("input")?;
        *input = format!("[{},{}]", self.items, input_items(input)?).into();
        match &self.previous {
            Some(id) => *members.value(PREVIOUS)? = json!(id).to_string().into(),
            None => members.remove(PREVIOUS),
        }
        Some(members.text())
    }
}

/// The items of an input, as JSON with commas between them.
fn input_items(input: &str) -> Option<String> {
    let input = input.trim();
    if input.starts_with('"') {
        return Some(format!("{{\"role\":\"user\",\"content\":{input}}}"));
    }
    let items = input.strip_prefix('[')?.strip_suffix(']')?;
    (!items.trim().is_empty()).then(|| items.to_owned())
}

/// An item of a response as input. Reasoning is left out, because it must be followed by the item
/// that the upstream has stored. Ids are left out for the same reason.
fn as_input(item: &Value) -> Option<Vec<Value>> {
    let with = |names: &[&str]| {
        let members = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone())));
        Some(vec![Value::Object(members.collect())])
    };
    match kind_of(item) {
        "message" => {
            let parts = item.get("content")?.as_array()?;
            let texts = parts.iter().map(|part| match kind_of(part) {
                "output_text" => part.get("text")?.as_str(),
                "refusal" => part.get("refusal")?.as_str(),
                _ => None,
            });
            let text: Option<String> = texts.collect();
            Some(vec![assistant_message(&text?)])
        }
        "function_call" => with(&["type", "call_id", "name", "arguments"]),
        "custom_tool_call" => with(&["type", "call_id", "name", "input"]),
        "reasoning" => Some(Vec::new()),
        _ => None,
    }
}
