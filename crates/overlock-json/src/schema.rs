//! Validates documents against the JSON Schema of a client.
//!
//! Schemas come from clients, so their cost is bounded. [`BoundedSchema::new`] rejects a schema that
//! is too large with its references resolved. A comparison then costs at most that size for each
//! value of the document. It cannot be cancelled, so one that could take more than about a second is
//! not started.

mod required;
mod size;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use required::required_members;
use size::{Expanded, expanded};
pub use size::{MOST_LEVELS, MOST_PATTERNS, MOST_VALUES, SchemaTooLarge};

/// The most work that one comparison may take: values of the schema times bytes of the document.
const MOST_WORK: u64 = 1_000_000_000;

/// The most work for which the location of a violation is reported if a schema has alternatives: the
/// errors of all alternatives are collected, which takes memory.
const MOST_ERRORS: u64 = 10_000_000;

/// How often a pattern may backtrack in one text before the match counts as undecided.
const MOST_BACKTRACKS: usize = 10_000;

/// The most memory for a pattern that counts as simple and is matched in linear time.
const SIMPLE_PATTERN_BYTES: usize = 256 << 10;

/// The most memory for one compiled pattern.
const PATTERN_BYTES: usize = 10 << 20;

/// The most memory for all compiled patterns of a schema.
const ALL_PATTERN_BYTES: usize = 64 << 20;

/// How many values a pattern counts as if all patterns of the schema are simple.
const SIMPLE_PATTERN_WORK: u64 = 1_000;

/// How many values a pattern counts as if one of them is large or may backtrack.
const PATTERN_WORK: u64 = 20_000;

/// The stack of a comparison, which recurses over the schema and the document. Unused pages take no
/// memory.
pub const STACK_BYTES: usize = 256 << 20;

/// The result of comparing a document with a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// The document matches, or there is no schema.
    #[default]
    Matches,
    /// The document was not compared, or only in part, for this reason.
    Undecided(String),
    /// The document violates the schema in this way.
    Violates(String),
}

impl Comparison {
    /// Combines the results of two documents: the first violation, else the first undecided one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Matches, _) | (Self::Undecided(_), Self::Violates(_)) => other,
            (Self::Undecided(_) | Self::Violates(_), _) => self,
        }
    }

    /// The name in replies; none if the document matches.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Self::Matches => None,
            Self::Undecided(_) => Some("unchecked"),
            Self::Violates(_) => Some("violated"),
        }
    }

    /// How the document violates the schema, if that is certain.
    pub fn violation(&self) -> Option<&str> {
        match self {
            Self::Violates(violation) => Some(violation),
            Self::Matches | Self::Undecided(_) => None,
        }
    }

    /// The document was not compared, for this reason.
    pub fn undecided(why: impl std::fmt::Display) -> Self {
        Self::Undecided(format!(
            "the document could not be compared with the schema of the request: {why}"
        ))
    }
}

/// A JSON Schema of a size that is safe to use.
#[derive(Clone, Debug)]
pub struct BoundedSchema {
    schema: Value,
    size: Expanded,
}

/// A schema that is ready to be compared with documents.
struct Compiled {
    validator: Validator,
    /// How many values each of its patterns counts as.
    pattern_work: u64,
    /// Whether a match may be abandoned because it backtracks too often.
    may_backtrack: bool,
}

impl BoundedSchema {
    /// Rejects a schema that is too large.
    pub fn new(schema: Value) -> Result<Self, SchemaTooLarge> {
        let size = expanded(&schema)?;
        Ok(Self { schema, size })
    }

    /// The schema.
    pub fn value(&self) -> &Value {
        &self.schema
    }

    /// The validator for it; an error if it is not a JSON Schema.
    pub fn validator(&self) -> Result<Validator, String> {
        self.compiled().map(|compiled| compiled.validator)
    }

    /// Compiles it for the cheapest way to match its patterns.
    fn compiled(&self) -> Result<Compiled, String> {
        let linear = |size: usize| {
            let patterns = PatternOptions::regex().size_limit(size);
            let options = jsonschema::options().with_pattern_options(patterns);
            options.build(&self.schema)
        };
        if let Ok(validator) = linear(SIMPLE_PATTERN_BYTES) {
            return Ok(Compiled {
                validator,
                pattern_work: SIMPLE_PATTERN_WORK,
                may_backtrack: false,
            });
        }
        let each = |parts: usize| PATTERN_BYTES.min(ALL_PATTERN_BYTES / parts.max(1));
        if let Ok(validator) = linear(each(self.size.different_patterns)) {
            return Ok(Compiled {
                validator,
                pattern_work: PATTERN_WORK,
                may_backtrack: false,
            });
        }
        // Only look-around and back-references remain. Such a pattern is compiled in parts, at most
        // one for each of its bytes.
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(MOST_BACKTRACKS)
            .size_limit(each(self.size.pattern_bytes));
        let options = jsonschema::options().with_pattern_options(patterns);
        let validator = options.build(&self.schema);
        Ok(Compiled {
            validator: validator.map_err(|error| error.to_string())?,
            pattern_work: PATTERN_WORK,
            may_backtrack: true,
        })
    }

    /// Compares a document. A violation begins with these words, and its place follows.
    pub fn compare(&self, document: &str, violates: &str) -> Comparison {
        let compiled = match self.compiled() {
            Ok(compiled) => compiled,
            Err(error) => return Comparison::undecided(error),
        };
        let patterns = self.size.patterns.saturating_mul(compiled.pattern_work);
        let values = self.size.values.saturating_add(patterns);
        let work = values.saturating_mul(document.len() as u64);
        if work > MOST_WORK {
            return Comparison::undecided(format_args!(
                "{} bytes are too many for a schema of {} values and {} patterns",
                document.len(),
                self.size.values,
                self.size.patterns
            ));
        }
        let value = match serde_json::from_str(document) {
            Ok(value) => value,
            Err(error) => return Comparison::undecided(error),
        };
        let validator = compiled.validator;
        if validator.is_valid(&value) {
            return Comparison::Matches;
        }
        let given_up = || Comparison::undecided("a pattern backtracks too often");
        // Only `is_valid` caches the results of recursive references. Without the cache, finding the
        // location can take time exponential in the depth of the document.
        let is_bounded =
            !self.size.is_recursive && (!self.size.has_alternatives || work <= MOST_ERRORS);
        if !is_bounded {
            return if compiled.may_backtrack {
                given_up()
            } else {
                Comparison::Violates(violates.to_owned())
            };
        }
        let Err(first) = validator.validate(&value) else {
            return given_up();
        };
        if matches!(
            first.kind(),
            ValidationErrorKind::BacktrackLimitExceeded { .. }
        ) {
            return given_up();
        }
        let place = first.instance_path().to_string();
        let place = if place.is_empty() { "/" } else { &place };
        Comparison::Violates(format!("{violates} at `{place}`: {}", first.masked()))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use serde_json::json;

    use super::*;

    #[track_caller]
    fn compare(schema: Value, document: &str) -> Comparison {
        let schema = BoundedSchema::new(schema).expect("it is small");
        schema.compare(document, "it violates the schema")
    }

    #[track_caller]
    fn check(schema: Value, document: &str, violation: Option<&str>) {
        let found = compare(schema, document);
        match violation {
            None => assert_eq!(found, Comparison::Matches, "{document}"),
            Some(text) => assert!(
                found.violation().is_some_and(|found| found.contains(text)),
                "{document}: {found:?}"
            ),
        }
    }

    #[track_caller]
    fn check_undecided(schema: Value, document: &str, why: &str) {
        match compare(schema, document) {
            Comparison::Undecided(found) => assert!(found.contains(why), "{found}"),
            decided => panic!("{decided:?}"),
        }
    }

    #[test]
    fn names_the_first_violation() {
        let schema = json!({ "properties": { "a": { "type": "integer" } } });
        check(schema.clone(), "{\"a\": 1}", None);
        check(schema, "{\"a\": \"b\"}", Some("at `/a`"));
        let schema = json!({ "items": { "anyOf": [{ "const": 1 }, { "const": 2 }] } });
        check(schema.clone(), "[1, 3]", Some("at `/1`"));
        let many = format!("[{}3]", "3,".repeat(1_000_000));
        check(schema, &many, Some("violates"));
    }

    /// A node that validates its child twice, so a depth of `n` costs 2^n without a cache.
    #[test]
    fn a_recursive_schema_takes_linear_time() {
        let child = json!({ "properties": { "c": { "$ref": "#" } } });
        let schema = json!({ "type": "object", "allOf": [child, child] });
        let valid = "{\"c\":".repeat(60) + "{}" + &"}".repeat(60);
        check(schema.clone(), &valid, None);
        let invalid = "{\"c\":".repeat(60) + "1" + &"}".repeat(60);
        check(schema, &invalid, Some("violates"));
    }

    #[test]
    fn abandons_a_pattern_that_backtracks() {
        let document = format!("\"{}\"", "a".repeat(200));
        let pattern = "^(a|a)*(?=b)b$";
        let why = "backtracks";
        check_undecided(json!({ "pattern": pattern }), &document, why);
        let recursive = json!({ "pattern": pattern, "items": { "$ref": "#" } });
        check_undecided(recursive, &document, why);
        check(json!({ "pattern": "^(?=a)b" }), &document, Some("at `/`"));
    }

    #[test]
    fn undecided_if_it_cannot_be_compared() {
        check_undecided(json!({ "type": "no type" }), "1", "could not be compared");
        check_undecided(json!({}), &"[".repeat(1000), "could not be compared");
        let large = json!({ "enum": (0..50_000).collect::<Vec<u32>>() });
        check(large.clone(), "1", None);
        let document = format!("[{}1]", "1,".repeat(20_000));
        check_undecided(large, &document, "40003 bytes are too many");
    }

    #[test]
    fn patterns_count_by_their_possible_cost() {
        let check_most = |pattern: &str, most: usize| {
            let schema = json!({ "items": { "pattern": pattern } });
            let document = |bytes: usize| format!("[\"{}\"]", "a".repeat(bytes - 4));
            check(schema.clone(), &document(most), None);
            check_undecided(schema, &document(most * 2), "too many");
        };
        check_most("^a*$", 500_000);
        check_most("^a(?=a)", 25_000);
        check_most(r"^\p{L}{1,100}", 25_000);
    }

    #[test]
    fn compiled_patterns_share_their_memory() {
        let pattern = |number| json!({ "pattern": format!(r"^\p{{L}}{{1,100}}{number}$") });
        let schema = |count: usize| {
            let schema = json!({ "anyOf": (0..count).map(pattern).collect::<Vec<_>>() });
            BoundedSchema::new(schema).expect("it is small")
        };
        assert_eq!(schema(1).validator().err(), None);
        assert!(schema(MOST_PATTERNS).validator().is_err());
        // Each look-ahead is compiled separately.
        let parts = json!({ "pattern": r"(?=\p{L}{1,100})".repeat(100) });
        let parts = BoundedSchema::new(parts).expect("it is small");
        assert!(parts.validator().is_err());
    }

    #[test]
    fn a_violation_outweighs_an_undecided_result() {
        let violates = Comparison::Violates("a".to_owned());
        let undecided = Comparison::Undecided("b".to_owned());
        let matches = Comparison::Matches;
        assert_eq!(matches.clone().and(undecided.clone()), undecided);
        assert_eq!(undecided.clone().and(matches.clone()), undecided);
        assert_eq!(undecided.and(violates.clone()), violates);
        assert_eq!(violates.clone().and(matches), violates);
    }

    #[test]
    fn common_patterns_are_compiled() {
        for pattern in [
            r"^[\p{L}\p{N} .,'-]{1,100}$",
            r"^\w{1,1000}$",
            r"^.{1,4000}$",
            r"^[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,63}$",
            r"^(?=.*[a-z])(?=.*\d).{8,64}$",
        ] {
            let schema = BoundedSchema::new(json!({ "pattern": pattern })).expect("it is small");
            assert_eq!(schema.validator().err(), None, "{pattern}");
        }
    }

    /// Definitions that each refer to the one before. Each level of a document goes through all.
    fn chain(links: usize) -> Value {
        let mut definitions = serde_json::Map::new();
        let top = json!({ "$ref": format!("#/$defs/d{links}") });
        let last = json!({ "properties": { "c": top } });
        definitions.insert("d0".to_owned(), last);
        for link in 1..=links {
            let before = json!({ "$ref": format!("#/$defs/d{}", link - 1) });
            definitions.insert(format!("d{link}"), before);
        }
        json!({ "$defs": definitions, "$ref": format!("#/$defs/d{links}") })
    }

    #[test]
    fn the_deepest_schema_and_document_fit_the_stack() {
        // The cycle is counted once up to its recursive reference, and once for the value there.
        let links = (MOST_LEVELS - 10) / 2;
        let deeper = BoundedSchema::new(chain(links + 1)).err();
        assert_eq!(deeper, Some(SchemaTooLarge::Levels));
        let document = "{\"c\":".repeat(120) + "{}" + &"}".repeat(120);
        let schema = BoundedSchema::new(chain(links)).expect("it is accepted");
        let compared = move || schema.compare(&document, "it violates the schema");
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let compared = thread.spawn(compared).expect("a thread").join();
        assert_eq!(compared.expect("no panic"), Comparison::Matches);
    }
}
