//! Takes the text of a list or an object apart, so that what stays in it stays as it was written.
//!
//! A value that was read is written in one way, however it came: `1e3` becomes `1e+3`, and an
//! escape the character it stands for. That is the same JSON, but not what somebody signed.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

/// A list or an object, cut at its commas.
pub(super) struct Pieces<'a> {
    /// All up to the opening bracket, and with it.
    opening: &'a str,
    pub(super) items: Vec<Piece<'a>>,
    /// All behind the last value.
    closing: &'a str,
}

/// One item, as it stands between its commas.
#[derive(Clone)]
pub(super) struct Piece<'a> {
    /// The key of a member.
    pub(super) key: Option<String>,
    /// All that precedes the value: blanks, and the key of a member.
    before: Cow<'a, str>,
    pub(super) value: Cow<'a, str>,
    after: &'a str,
}

impl<'a> Pieces<'a> {
    /// The members of an object that has some, unless two of them have the same key.
    pub(super) fn of_object(text: &'a str) -> Option<Self> {
        let values: HashMap<String, &'a RawValue> = serde_json::from_str(text).ok()?;
        let values = values.into_iter();
        let values = values.map(|(key, value)| (Some(key), value.get()));
        Self::cut(text, values.collect())
    }

    /// The items of a list that has some.
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
            // Something else precedes the value if its key was there already.
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
        let found = items.find(|item| item.key.as_deref() == Some(key));
        found.map(|item| &mut item.value)
    }

    /// Leaves a member out, if it is there.
    pub(super) fn remove(&mut self, key: &str) {
        self.items.retain(|item| item.key.as_deref() != Some(key));
    }

    /// All of it, as it is now.
    pub(super) fn text(&self) -> String {
        let items = self.items.iter();
        let items = items.map(|item| [&item.before, &item.value, item.after].concat());
        let items: Vec<String> = items.collect();
        [self.opening, &items.join(","), self.closing].concat()
    }
}

impl Piece<'_> {
    /// Another one, with the same blanks around it.
    pub(super) fn beside(&self, key: Option<&str>, value: String) -> Self {
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

/// The key in what precedes the value of a member.
fn read_key(before: &str) -> Option<String> {
    serde_json::from_str(before.trim_end().strip_suffix(':')?).ok()
}
