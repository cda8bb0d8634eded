//! Merges the deltas of a streamed message.
//!
//! Providers add fields, so the merge is generic: strings are concatenated, arrays are extended,
//! objects are merged recursively.

use serde_json::{Map, Value};

/// Merges a piece into a value. Null changes nothing.
pub(super) fn merge(known: &mut Value, piece: &Value) {
    match (known, piece) {
        (_, Value::Null) => {}
        (Value::String(known), Value::String(piece)) => known.push_str(piece),
        (Value::Object(known), Value::Object(piece)) => merge_members(known, piece, &[]),
        (Value::Array(known), Value::Array(piece)) => merge_items(known, piece),
        // Even a first array may contain several pieces of one item.
        (known, Value::Array(piece)) => {
            let mut items = Vec::new();
            merge_items(&mut items, piece);
            *known = Value::Array(items);
        }
        (known, piece) => *known = piece.clone(),
    }
}

/// Merges the members of a piece, except for some.
pub(super) fn merge_members(
    known: &mut Map<String, Value>,
    piece: &Map<String, Value>,
    except: &[&str],
) {
    let members = piece.iter().filter(|(_, value)| !value.is_null());
    for (name, value) in members.filter(|(name, _)| !except.contains(&name.as_str())) {
        let place = known.entry(name.as_str()).or_insert(Value::Null);
        let is_known = match name.as_str() {
            "role" | "id" | "type" | "format" => is_set(place),
            // Some servers send it in pieces, others in full every time.
            "name" => place == value,
            _ => false,
        };
        if !is_known {
            merge(place, value);
        }
    }
}

fn is_set(value: &Value) -> bool {
    !value.is_null() && value != ""
}

/// How many recent items of an array are searched. Searching all of a long array for every piece
/// would take quadratic time.
const RECENT: usize = 256;

/// Appends items to an array. Items with an `index` are merged into the item with the same index.
fn merge_items(known: &mut Vec<Value>, piece: &[Value]) {
    for item in piece {
        let index = item.get("index").filter(|index| index.is_u64());
        let same = index.and_then(|index| {
            let mut known = known.iter_mut().rev().take(RECENT);
            known.find(|known| known.get("index") == Some(index))
        });
        match same {
            Some(known) => merge(known, item),
            None => known.push(item.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(pieces: &[Value], whole: &Value) {
        let mut known = Value::Null;
        for piece in pieces {
            merge(&mut known, piece);
        }
        assert_eq!(&known, whole, "{pieces:?}");
    }

    proptest! {
        #[test]
        fn merges_a_text_split_anywhere(texts in prop::collection::vec(".*", 1..6)) {
            let pieces: Vec<Value> = texts
                .iter()
                .map(|text| json!({ "a": { "text": text }, "l": [{ "index": 3, "text": text }] }))
                .collect();
            let text = texts.concat();
            let whole = json!({ "a": { "text": text }, "l": [{ "index": 3, "text": text }] });
            check(&pieces, &whole);
        }

        #[test]
        fn merges_an_array_split_anywhere(
            numbers in prop::collection::vec(any::<i64>(), 0..20), at in 0_usize..20,
        ) {
            let (one, other) = numbers.split_at(at.min(numbers.len()));
            check(&[json!({ "l": one }), json!({ "l": other })], &json!({ "l": numbers }));
        }
    }

    #[test]
    fn identifying_members_are_not_concatenated() {
        let piece = json!({ "role": "assistant", "id": "1", "type": "text", "name": "w" });
        check(&[piece.clone(), piece.clone(), piece.clone()], &piece);
        check(
            &[json!({ "id": "" }), json!({ "id": "1" })],
            &json!({ "id": "1" }),
        );
    }

    #[test]
    fn a_name_may_come_in_pieces() {
        let pieces = [json!({ "name": "get_" }), json!({ "name": "weather" })];
        check(&pieces, &json!({ "name": "get_weather" }));
    }

    #[test]
    fn null_changes_nothing() {
        check(
            &[json!({ "a": "b" }), json!({ "a": null })],
            &json!({ "a": "b" }),
        );
    }

    #[test]
    fn items_are_merged_by_index() {
        let pieces = [
            json!([{ "index": 1, "t": "a" }, { "index": 0, "t": "b" }, { "index": 1, "t": "c" }]),
            json!([{ "index": 0, "t": "d" }, { "t": "e" }]),
        ];
        let whole = json!([{ "index": 1, "t": "ac" }, { "index": 0, "t": "bd" }, { "t": "e" }]);
        check(&pieces, &whole);
    }

    #[test]
    fn numbers_and_literals_are_replaced() {
        check(
            &[json!({ "n": 1, "b": true }), json!({ "n": 2, "b": false })],
            &json!({ "n": 2, "b": false }),
        );
        check(
            &[json!({ "n": 1 }), json!({ "n": "one" })],
            &json!({ "n": "one" }),
        );
    }
}
