//! Splits the text of an array or object, so that unchanged values keep their formatting.
//!
//! Parsing and printing a value normalizes it: `1e3` becomes `1e+3`, and escapes become characters.
//! That is the same JSON, but breaks signatures.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// An array or object, split at its commas.
pub(super) struct Pieces<'a> {
    /// The text up to and including the opening bracket.
    opening: &'a str,
    pub(super) items: Vec<Piece<'a>>,
    /// The text after the last value.
    closing: &'a str,
}

/// One item with the text around it up to the commas.
#[derive(Clone)]
pub(super) struct Piece<'a> {
    /// The key of a member.
    pub(super) key: Option<String>,
    /// The text before the value: white space and the key.
    before: Cow<'a, str>,
    pub(super) value: Cow<'a, str>,
    after: &'a str,
}

impl<'a> Pieces<'a> {
    /// The members of an object; `None` if it is empty or has a duplicate key.
    pub(super) fn of_object(text: &'a str) -> Option<Self> {
        let values: HashMap<String, &'a RawValue> = serde_json::from_str(text).ok()?;
        let values = values.into_iter();
        let values = values.map(|(key, value)| (Some(key), value.get()));
        Self::cut(text, values.collect())
    }

    /// The items of an array; `None` if it is empty.
    pub(super) fn of_list(text: &'a str) -> Option<Self> {
        let values: Vec<&'a RawValue> = serde_json::from_str(text).ok()?;
        let values = values.into_iter().map(|value| (None, value.get()));
        Self::cut(text, values.collect())
    }

    fn cut(text: &'a str, mut values: Vec<(Option<String>, &'a str)>) -> Option<Self> {
        // The values are parts of the text.
        let start = |value: &str| value.as_ptr().addr() - text.as_ptr().addr();
        values.sort_unstable_by_key(|(_, value)| start(value));
        let (opening, mut rest) = text.split_at(text.find(['{', '['])? + 1);
        let mut items: Vec<Piece> = Vec::with_capacity(values.len());
        for (key, value) in values {
            let offset = start(value) - (text.len() - rest.len());
            let (mut before, from_value) = rest.split_at(offset);
            if let Some(last) = items.last_mut() {
                (last.after, before) = before.split_once(',')?;
            }
            // With a duplicate key, another member precedes the value.
            if key != read_key(before) {
                return None;
            }
            items.push(Piece {
                key,
                before: before.into(),
                value: value.into(),
                after: "",
            });
            rest = &from_value[value.len()..];
        }
        (!items.is_empty()).then_some(Self {
            opening,
            items,
            closing: rest,
        })
    }

    /// The value of a member.
    pub(super) fn value(&mut self, key: &str) -> Option<&mut Cow<'a, str>> {
        let mut items = self.items.iter_mut();
        let member = items.find(|item| item.key.as_deref() == Some(key));
        member.map(|item| &mut item.value)
    }

    /// Sets the value of a member of an object.
    pub(super) fn set(&mut self, key: &'static str, value: String) {
        if let Some(old) = self.value(key) {
            *old = value.into();
        } else if let Some(last) = self.items.last_mut() {
            let member = last.new_sibling(Some(key), value);
            self.items.push(member);
        }
    }

    /// Removes a member, if it exists.
    pub(super) fn remove(&mut self, key: &str) {
        self.items.retain(|item| item.key.as_deref() != Some(key));
    }

    /// The edited text.
    pub(super) fn text(&self) -> String {
        let items = self.items.iter();
        let items = items.map(|item| [&item.before, &item.value, item.after].concat());
        let items: Vec<String> = items.collect();
        [self.opening, &items.join(","), self.closing].concat()
    }
}

impl Piece<'_> {
    /// A new item with the same white space around it.
    pub(super) fn new_sibling(&self, key: Option<&str>, value: String) -> Self {
        let before = &self.before;
        let blanks = &before[..before.len() - before.trim_start().len()];
        let after_colon = &before[before.trim_end().len()..];
        let before = match key {
            Some(key) => format!("{blanks}\"{key}\":{after_colon}"),
            None => blanks.to_owned(),
        };
        Self {
            key: key.map(str::to_owned),
            before: before.into(),
            value: value.into(),
            after: self.after,
        }
    }
}

impl Piece<'_> {
    /// The same object with this text as a member; nothing if it has a duplicate key.
    pub(super) fn with_text(&self, key: &str, text: &str) -> Option<Self> {
        let mut members = Pieces::of_object(&self.value)?;
        *members.value(key)? = Value::from(text).to_string().into();
        Some(Self {
            value: members.text().into(),
            ..self.clone()
        })
    }
}

/// The key in the text before the value of a member.
fn read_key(before: &str) -> Option<String> {
    serde_json::from_str(before.trim_end().strip_suffix(':')?).ok()
}
