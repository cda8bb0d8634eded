//! Sizes of schemas with nested and recursive references.

use serde_json::json;

use super::*;

/// Definitions that each refer twice to the one before.
fn doubling(levels: usize) -> Value {
    let mut definitions = Map::new();
    definitions.insert("d0".to_owned(), json!({ "type": "object" }));
    for level in 1..=levels {
        let before = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
        definitions.insert(format!("d{level}"), json!({ "allOf": [before, before] }));
    }
    json!({ "$defs": definitions, "$ref": format!("#/$defs/d{levels}") })
}

#[track_caller]
fn check_refused(schema: &Value, why: &str) {
    let error = expanded(schema).expect_err("it is too large").to_string();
    assert!(error.contains(why), "{error}");
}

#[track_caller]
fn check_accepted(schema: &Value, is_recursive: bool) {
    let counted = expanded(schema).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(counted.is_recursive, is_recursive);
}

#[test]
fn references_multiply() {
    check_accepted(&doubling(10), false);
    check_refused(
        &doubling(27),
        "values with its references resolved, and at most 100000",
    );
    check_refused(&doubling(80), &u64::MAX.to_string());
}

#[test]
fn references_by_anchor_and_by_address_multiply_too() {
    let text = doubling(27).to_string();
    for level in 0..=27 {
        let definition = format!("\"d{level}\":{{");
        assert!(text.contains(&definition), "{text}");
    }
    let named = |member: &str, name: fn(usize) -> String, reference: fn(usize) -> String| {
        let mut text = text.clone();
        for level in 0..=27 {
            let (from, to) = (
                format!("#/$defs/d{level}\""),
                format!("{}\"", reference(level)),
            );
            text = text.replace(&from, &to);
            let from = format!("\"d{level}\":{{");
            let to = format!("{from}\"{member}\":\"{}\",", name(level));
            text = text.replace(&from, &to);
        }
        serde_json::from_str(&text).expect("JSON")
    };
    let by_anchor: Value = named("$anchor", |at| format!("n{at}"), |at| format!("#n{at}"));
    check_refused(&by_anchor, "values");
    let address = |at| format!("https://example.com/{at}");
    check_refused(&named("$id", address, address), "values");
}

/// Definitions inside data, which count only where they are referred to.
fn doubling_data(levels: usize) -> Value {
    let text = doubling(levels).to_string().replace("$defs", "default");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn references_into_data_are_counted_as_schemas() {
    check_refused(&doubling_data(40), "values");
}

#[test]
fn a_schema_with_the_name_of_a_keyword_is_counted() {
    let data = doubling_data(40);
    for names in [
        "properties",
        "patternProperties",
        "dependentSchemas",
        "$defs",
        "definitions",
    ] {
        for name in ["default", "const", "enum", "required", "examples"] {
            let schema = json!({
                "default": data["default"],
                names: { name: { "$ref": data["$ref"] } },
            });
            check_refused(&schema, "values");
        }
    }
}

/// A draft 4 schema inside a newer one. Its `id` makes it a separate resource, in which `#` means
/// itself. The definitions of one schema are empty, those of the other multiply.
fn nested_draft_4(levels: usize, inner_multiplies: bool, others: &[Value]) -> Value {
    let doubling = doubling_data(levels);
    let reference = json!({ "$ref": format!("#/default/d{levels}") });
    let with_use = |mut definitions: Value| {
        definitions["use"] = reference.clone();
        definitions
    };
    let empty = (0..=levels).map(|level| (format!("d{level}"), json!({})));
    let empty = Value::Object(empty.collect());
    let (mut outer, mut inner) = (doubling["default"].clone(), empty);
    if inner_multiplies {
        std::mem::swap(&mut outer, &mut inner);
    }
    let mut all = vec![json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "https://example.com/inner",
        "default": with_use(inner),
        "allOf": [reference],
    })];
    all.extend_from_slice(others);
    json!({ "$id": "https://example.com/outer", "default": outer, "allOf": all })
}

#[test]
fn a_nested_schema_is_counted_by_its_own_draft() {
    let validator = jsonschema::validator_for(&nested_draft_4(3, true, &[]));
    assert!(!validator.expect("a schema").is_valid(&json!(1)));
    check_refused(&nested_draft_4(40, true, &[]), "values");
}

/// A pointer from the outer schema does not see the `id` of the inner one, so `#` in its target
/// means the outer schema.
#[test]
fn a_target_is_counted_again_for_another_base() {
    let references = [
        json!({ "$ref": "https://example.com/inner#/default/use" }),
        json!({ "$ref": "#/allOf/0/default/use" }),
    ];
    let validator = jsonschema::validator_for(&nested_draft_4(3, false, &references));
    assert!(!validator.expect("a schema").is_valid(&json!(1)));
    check_refused(&nested_draft_4(40, false, &references), "values");
}

#[test]
fn large_schemas_without_multiplication_are_accepted() {
    let property = json!({ "type": "string", "description": "A name.", "enum": ["a", "b"] });
    let names = (0..2000).map(|number| (format!("p{number}"), property.clone()));
    let properties: Map<String, Value> = names.collect();
    let required: Vec<&String> = properties.keys().collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    check_accepted(&schema, false);
    let entries: Vec<u64> = (0..MOST_VALUES).collect();
    check_refused(&json!({ "enum": entries }), "values");
}

#[test]
fn recursive_schemas_are_accepted() {
    let node = json!({ "$ref": "#/$defs/node" });
    let tree = json!({
        "$defs": { "node": {
            "type": "object",
            "properties": {
                "left": node, "right": node,
                "children": { "type": "array", "items": node },
            },
        } },
        "$ref": "#/$defs/node",
    });
    check_accepted(&tree, true);
    let expression = |operator: &str| {
        json!({
            "properties": {
                "operator": { "const": operator }, "left": { "$ref": "#" }, "right": { "$ref": "#" },
            },
            "required": ["operator", "left", "right"],
        })
    };
    let operators = [
        "add", "subtract", "multiply", "divide", "power", "and", "or",
    ];
    let expressions: Vec<Value> = operators.into_iter().map(expression).collect();
    check_accepted(&json!({ "anyOf": expressions }), true);
}

#[test]
fn refuses_a_reference_to_the_same_value() {
    check_refused(
        &json!({ "$ref": "#" }),
        "`#` of the schema leads back to itself",
    );
    let schema = json!({ "anyOf": [{ "type": "string" }, { "not": { "$ref": "#" } }] });
    check_refused(&schema, "leads back to itself");
    check_refused(&json!({ "$dynamicRef": "#a" }), "`$dynamicRef`");
}

#[test]
fn nested_unevaluated_keywords_multiply() {
    let nested = |levels: usize| {
        let inner = json!({ "properties": { "a": true } });
        let around = |schema, _| json!({ "allOf": [schema], "unevaluatedProperties": false });
        (0..levels).fold(inner, around)
    };
    check_accepted(&nested(2), false);
    check_refused(&nested(16), "values");
}

#[test]
fn different_patterns_are_limited() {
    let patterns = |count: usize| {
        let pattern = |number| json!({ "pattern": format!("^a{number}$") });
        let by_name = |number| (format!("^b{number}$"), json!(true));
        let half = count / 2;
        json!({
            "items": { "anyOf": (half..count).map(pattern).collect::<Vec<_>>() },
            "patternProperties": (0..half).map(by_name).collect::<Map<_, _>>(),
        })
    };
    check_accepted(&patterns(MOST_PATTERNS), false);
    check_refused(
        &patterns(MOST_PATTERNS + 1),
        "more than 64 different patterns",
    );
    let same = vec![json!({ "pattern": "^a$" }); 1000];
    let counted = expanded(&json!({ "anyOf": same })).expect("one pattern");
    assert_eq!((counted.patterns, counted.pattern_bytes), (1000, 3));
}

#[test]
fn a_long_chain_of_references_is_refused() {
    let chain = |levels: usize| {
        let mut definitions = Map::new();
        definitions.insert("d0".to_owned(), json!({}));
        for level in 1..=levels {
            let before = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
            definitions.insert(format!("d{level}"), before);
        }
        json!({ "$defs": definitions, "$ref": format!("#/$defs/d{levels}") })
    };
    check_accepted(&chain(50), false);
    check_refused(&chain(10_000), "levels deep");
}
