//! How large is a JSON Schema with its references resolved?
//!
//! A `$ref` stands for a copy of its target, so definitions that name one another grow the schema
//! by multiplication. Each target is counted once and the result is remembered, which keeps the
//! count linear in the text. A recursive reference ends the count where it comes back: what it
//! costs further down depends on the document, whose values are visited once each.

use std::collections::{HashMap, HashSet};
use std::ptr;

use jsonschema::{Draft, Registry, RegistryBuilder, uri};
use referencing::Resolver;
use serde_json::{Map, Value};

/// The most values a schema may have with its references resolved.
pub const MOST_VALUES: u64 = 100_000;

/// How deep a schema may be nested with its references resolved.
pub const MOST_LEVELS: usize = 256;

/// How many different patterns a schema may have.
pub const MOST_PATTERNS: usize = 64;

/// Why a schema is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaTooLarge {
    /// It has too many values.
    #[error(
        "the schema has {values} values with its references resolved, and at most {MOST_VALUES} \
         are allowed"
    )]
    Values {
        /// How many, or the largest number there is.
        values: u64,
    },
    /// It is nested too deep.
    #[error(
        "the schema is nested more than {MOST_LEVELS} levels deep with its references resolved"
    )]
    Levels,
    /// It has too many patterns.
    #[error("the schema has more than {MOST_PATTERNS} different patterns")]
    Patterns,
    /// A reference leads back to itself without going into the document.
    #[error("the reference `{reference}` of the schema leads back to itself")]
    Endless {
        /// The reference.
        reference: String,
    },
    /// Its references depend on the path that leads to them, so its size cannot be known.
    #[error("the schema uses `{keyword}`, which is not supported: use `$ref`")]
    Dynamic {
        /// The keyword.
        keyword: String,
    },
}

/// A schema with its references resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    /// How many values it has.
    pub(super) values: u64,
    /// How many of them are patterns.
    pub(super) patterns: u64,
    /// How many different patterns there are.
    pub(super) different_patterns: usize,
    /// How many bytes the different patterns have together.
    pub(super) pattern_bytes: usize,
    /// Whether a reference leads back to a schema around it.
    pub(super) is_recursive: bool,
    /// Whether it has `anyOf` or `oneOf`.
    pub(super) has_alternatives: bool,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    /// How many values there are.
    values: u64,
    /// How many of them are patterns.
    patterns: u64,
    /// How deep they are nested.
    levels: usize,
}

impl Size {
    const ONE: Self = Self {
        values: 1,
        patterns: 0,
        levels: 1,
    };

    /// One value with these inside it.
    fn around(inside: Self) -> Self {
        Self {
            values: inside.values.saturating_add(1),
            patterns: inside.patterns,
            levels: inside.levels + 1,
        }
    }

    /// Side by side with another.
    fn and(self, other: Self) -> Self {
        Self {
            values: self.values.saturating_add(other.values),
            patterns: self.patterns.saturating_add(other.patterns),
            levels: self.levels.max(other.levels),
        }
    }
}

/// Which part of a schema is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reach {
    /// All of it.
    All,
    /// What is applied to the same value of a document as the schema itself.
    SameValue,
}

/// Counts a schema, unless it is too large to be used.
pub(super) fn expanded(schema: &Value) -> Result<Expanded, SchemaTooLarge> {
    let mut count = Count {
        targets: HashMap::new(),
        patterns: HashSet::new(),
        is_recursive: false,
        has_alternatives: false,
    };
    let draft = Draft::default().detect(schema);
    let resource = draft.create_resource_ref(schema);
    let base = resource.id().and_then(|id| uri::from_str(id).ok());
    let base = base.unwrap_or_else(|| uri::from_str(ROOT).expect("it is an address"));
    let registry = Registry::new().draft(draft).add(base.as_str(), resource);
    let registry = registry.and_then(RegistryBuilder::prepare);
    let size = match &registry {
        Ok(registry) => {
            let place = Place {
                draft,
                resolver: &registry.resolver(base),
                reach: Reach::All,
                depth: 0,
            };
            count.resource(schema, place)?
        }
        // References that lead nowhere are resolved by nobody: the schema cannot be used at all.
        Err(_) => plain(schema),
    };
    if size.values > MOST_VALUES {
        return Err(SchemaTooLarge::Values {
            values: size.values,
        });
    }
    Ok(Expanded {
        values: size.values,
        patterns: size.patterns,
        different_patterns: count.patterns.len(),
        pattern_bytes: count.patterns.iter().map(String::len).sum(),
        is_recursive: count.is_recursive,
        has_alternatives: count.has_alternatives,
    })
}

/// The address of a schema that names none.
const ROOT: &str = "json-schema:///";

/// Where the count is.
#[derive(Clone, Copy)]
struct Place<'p, 'r> {
    draft: Draft,
    resolver: &'p Resolver<'r>,
    reach: Reach,
    depth: usize,
}

/// A target of references. The same value resolves its own references differently if it is reached
/// by an address of another resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Target {
    value: *const Value,
    base: String,
    draft: Draft,
    reach: Reach,
}

struct Count {
    /// The sizes of the targets of references; nothing for those that are being counted.
    targets: HashMap<Target, Option<Size>>,
    /// The different patterns.
    patterns: HashSet<String>,
    is_recursive: bool,
    has_alternatives: bool,
}

impl Count {
    /// Counts a subschema, or an array of them. Its `$schema` selects its draft.
    fn value(&mut self, value: &Value, place: Place<'_, '_>) -> Result<Size, SchemaTooLarge> {
        let draft = place.draft.detect(value);
        self.resource(value, Place { draft, ..place })
    }

    /// Counts a schema whose draft is known.
    fn resource(&mut self, value: &Value, place: Place<'_, '_>) -> Result<Size, SchemaTooLarge> {
        if place.depth > MOST_LEVELS {
            return Err(SchemaTooLarge::Levels);
        }
        let place = Place {
            depth: place.depth + 1,
            ..place
        };
        let inside = match value {
            Value::Object(members) => {
                let resource = place.draft.create_resource_ref(value);
                let resolver = place.resolver.in_subresource(resource);
                let resolver = resolver.as_ref().unwrap_or(place.resolver);
                self.members(members, Place { resolver, ..place })?
            }
            Value::Array(values) => self.all(values, place)?,
            _ => return Ok(Size::ONE),
        };
        Ok(Size::around(inside))
    }

    fn all<'v>(
        &mut self,
        values: impl IntoIterator<Item = &'v Value>,
        place: Place<'_, '_>,
    ) -> Result<Size, SchemaTooLarge> {
        let mut sum = Size::default();
        for value in values {
            sum = sum.and(self.value(value, place)?);
        }
        Ok(sum)
    }

    /// Counts an object whose members are schemas under names of the client's choice, which may be
    /// those of keywords.
    fn named(
        &mut self,
        schemas: &Map<String, Value>,
        place: Place<'_, '_>,
    ) -> Result<Size, SchemaTooLarge> {
        let depth = place.depth + 1;
        let inside = self.all(schemas.values(), Place { depth, ..place })?;
        Ok(Size::around(inside))
    }

    fn pattern(&mut self, pattern: &str) -> Result<Size, SchemaTooLarge> {
        if !self.patterns.contains(pattern) {
            self.patterns.insert(pattern.to_owned());
        }
        if self.patterns.len() > MOST_PATTERNS {
            return Err(SchemaTooLarge::Patterns);
        }
        Ok(Size {
            patterns: 1,
            ..Size::ONE
        })
    }

    /// Counts the keywords of a schema.
    fn members(
        &mut self,
        members: &Map<String, Value>,
        place: Place<'_, '_>,
    ) -> Result<Size, SchemaTooLarge> {
        let mut sum = Size::default();
        for (name, member) in members {
            self.has_alternatives |= matches!(name.as_str(), "anyOf" | "oneOf");
            let size = match (name.as_str(), member) {
                ("$ref", Value::String(reference)) => self.target(reference, place)?,
                ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                    let keyword = name.clone();
                    return Err(SchemaTooLarge::Dynamic { keyword });
                }
                ("allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else", _) => {
                    self.value(member, place)?
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    self.named(schemas, place)?
                }
                ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
                ("patternProperties", Value::Object(schemas)) => {
                    let mut size = Size::ONE;
                    for pattern in schemas.keys() {
                        size = size.and(self.pattern(pattern)?);
                    }
                    if place.reach == Reach::All {
                        size = size.and(self.named(schemas, place)?);
                    }
                    size
                }
                ("properties" | "$defs" | "definitions", Value::Object(schemas))
                    if place.reach == Reach::All =>
                {
                    self.named(schemas, place)?
                }
                ("enum" | "const" | "required" | "default" | "examples", _) => plain(member),
                _ if place.reach == Reach::All => self.value(member, place)?,
                _ => Size::ONE,
            };
            sum = sum.and(size);
        }
        // To find what is left over for these, all that stands beside them is applied several times.
        let applied_again = ["unevaluatedProperties", "unevaluatedItems"];
        if applied_again.iter().any(|it| members.contains_key(*it)) {
            sum.values = sum.values.saturating_mul(4);
            sum.patterns = sum.patterns.saturating_mul(4);
        }
        Ok(sum)
    }

    fn target(&mut self, reference: &str, place: Place<'_, '_>) -> Result<Size, SchemaTooLarge> {
        let Ok(found) = place.resolver.lookup(reference) else {
            return Ok(Size::ONE);
        };
        let (target, resolver, draft) = found.into_inner();
        let key = Target {
            value: ptr::from_ref(target),
            base: resolver.base_uri().as_str().to_owned(),
            draft,
            reach: place.reach,
        };
        let size = match (self.targets.get(&key), place.reach) {
            (Some(Some(size)), _) => *size,
            (Some(None), Reach::SameValue) => {
                let reference = reference.to_owned();
                return Err(SchemaTooLarge::Endless { reference });
            }
            (Some(None), Reach::All) => {
                self.is_recursive = true;
                let reach = Reach::SameValue;
                return self.target(reference, Place { reach, ..place });
            }
            (None, _) => {
                self.targets.insert(key.clone(), None);
                let resolver = &resolver;
                let inside = Place {
                    draft,
                    resolver,
                    ..place
                };
                // `jsonschema` gives a target the draft of the resource that holds it.
                let size = self.resource(target, inside)?;
                self.targets.insert(key, Some(size));
                size
            }
        };
        if place.depth + size.levels > MOST_LEVELS {
            return Err(SchemaTooLarge::Levels);
        }
        Ok(size)
    }
}

/// The size of a value that is no schema.
fn plain(value: &Value) -> Size {
    let inside = |values: &mut dyn Iterator<Item = &Value>| {
        Size::around(values.map(plain).fold(Size::default(), Size::and))
    };
    match value {
        Value::Object(members) => inside(&mut members.values()),
        Value::Array(values) => inside(&mut values.iter()),
        _ => Size::ONE,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Definitions that each name the one before twice.
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

    /// Definitions that are written as data, and so count only where they are used.
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

    /// A draft 4 schema inside a newer one, which its `id` makes a resource of its own: `#` in it
    /// means itself. The definitions of one are empty, those of the other multiply.
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

    /// A path from the outer schema does not know the `id` of the inner one, so `#` in its target
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
    fn a_reference_that_does_not_go_into_the_document_is_refused() {
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
}
