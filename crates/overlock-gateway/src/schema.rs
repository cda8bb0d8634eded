//! Does a document match the JSON Schema that a client sent?
//!
//! Schemas come from clients, so the work they can ask for is bounded. [`BoundedSchema::new`]
//! refuses a schema that is too large with its references resolved. Comparing a document then takes
//! at most that size for each value of the document, and never happens on the event loop.

mod size;

use std::sync::Arc;
use std::thread;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use size::{Expanded, expanded};
pub use size::{MOST_LEVELS, MOST_VALUES, SchemaTooLarge};

/// The most work that one comparison may take: values of the schema times bytes of the document.
const MOST_WORK: u64 = 20_000_000_000;

/// The most work after which the place of a violation is named where a schema has alternatives: the
/// errors of all of them are collected, and take memory.
const MOST_ERRORS: u64 = 10_000_000;

/// How often a pattern may backtrack in one text before the match counts as undecided.
const MOST_BACKTRACKS: usize = 100_000;

/// The stack of a comparison, which recurses over the schema and the document. Pages are only
/// committed when they are used.
const STACK_BYTES: usize = 256 << 20;

/// A JSON Schema of a size that is safe to use.
#[derive(Clone, Debug)]
pub struct BoundedSchema {
    schema: Value,
    size: Expanded,
}

impl BoundedSchema {
    /// Refuses a schema that is too large.
    pub fn new(schema: Value) -> Result<Self, SchemaTooLarge> {
        let size = expanded(&schema)?;
        Ok(Self { schema, size })
    }

    /// The schema as it was written.
    pub fn value(&self) -> &Value {
        &self.schema
    }

    /// The validator for it; an error if it is not a JSON Schema.
    pub fn validator(&self) -> Result<Validator, String> {
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MOST_BACKTRACKS);
        let options = jsonschema::options().with_pattern_options(patterns);
        let validator = options.build(&self.schema);
        validator.map_err(|error| error.to_string())
    }

    /// How a document violates the schema; nothing if it does not. What is not a JSON Schema
    /// allows every document.
    fn violation(&self, document: &str) -> Option<String> {
        let work = self.size.values.saturating_mul(document.len() as u64);
        if work > MOST_WORK {
            return Some(not_compared(&format!(
                "{} bytes are too many for a schema of {} values",
                document.len(),
                self.size.values
            )));
        }
        let validator = self.validator().ok()?;
        let value = match serde_json::from_str(document) {
            Ok(value) => value,
            Err(error) => return Some(not_compared(&error.to_string())),
        };
        if validator.is_valid(&value) {
            return None;
        }
        let violates = "the document violates the schema of the request";
        // Only `is_valid` remembers what a recursive reference gave for a value. To look for the
        // place without that can take a time exponential in the depth of the document.
        let is_bounded =
            !self.size.is_recursive && (!self.size.has_alternatives || work <= MOST_ERRORS);
        if !is_bounded {
            return Some(violates.to_owned());
        }
        let first = validator.validate(&value).err()?;
        let place = first.instance_path().to_string();
        let place = if place.is_empty() { "/" } else { &place };
        Some(format!("{violates} at `{place}`: {}", first.masked()))
    }
}

fn not_compared(why: &str) -> String {
    format!("the document could not be compared with the schema of the request: {why}")
}

/// Compares documents with schemas on threads of its own, a few at a time.
pub(crate) struct Comparisons {
    permits: Arc<Semaphore>,
}

impl Default for Comparisons {
    /// Half of the cores: the others are left to the event loop.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::at_once((cores / 2).max(1))
    }
}

impl Comparisons {
    fn at_once(most: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(most)),
        }
    }

    /// How a document violates a schema. A comparison that waits for its turn is never started once
    /// this is dropped or the deadline has passed.
    pub(crate) async fn violation(
        &self,
        schema: Arc<BoundedSchema>,
        document: String,
        deadline: Instant,
    ) -> Option<String> {
        let compared = self.run(move || schema.violation(&document));
        match timeout_at(deadline, compared).await {
            Ok(Some(violation)) => violation,
            Ok(None) => Some(not_compared("the comparison failed")),
            Err(_) => Some(not_compared("there was no time left")),
        }
    }

    /// Runs work on a thread of its own; nothing if it panics.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        let (sender, done) = oneshot::channel();
        let work = move || {
            let result = work();
            drop(permit);
            // The client may have left meanwhile.
            let _ = sender.send(result);
        };
        let thread = thread::Builder::new().name("schema".to_owned());
        thread.stack_size(STACK_BYTES).spawn(work).ok()?;
        done.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, document: &str, violation: Option<&str>) {
        let schema = BoundedSchema::new(schema).expect("it is small");
        let found = schema.violation(document);
        match violation {
            None => assert_eq!(found, None, "{document}"),
            Some(text) => assert!(
                found.as_ref().is_some_and(|found| found.contains(text)),
                "{document}: {found:?}"
            ),
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

    /// A node that holds its child twice, so that a depth of `n` costs 2^n unless results are
    /// remembered.
    #[test]
    fn a_recursive_schema_takes_no_exponential_time() {
        let child = json!({ "properties": { "c": { "$ref": "#" } } });
        let schema = json!({ "type": "object", "allOf": [child, child] });
        let valid = "{\"c\":".repeat(60) + "{}" + &"}".repeat(60);
        check(schema.clone(), &valid, None);
        let invalid = "{\"c\":".repeat(60) + "1" + &"}".repeat(60);
        check(schema, &invalid, Some("violates"));
    }

    #[test]
    fn a_pattern_that_backtracks_is_given_up() {
        let schema = json!({ "pattern": "^(a|a)*(?=b)b$" });
        let document = format!("\"{}\"", "a".repeat(200));
        let schema = BoundedSchema::new(schema).expect("it is small");
        assert!(schema.violation(&document).is_some());
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

    #[tokio::test(flavor = "current_thread")]
    async fn the_event_loop_runs_on_during_a_comparison() {
        let comparisons = Comparisons::at_once(1);
        let (release, blocked) = mpsc::channel();
        let compared = comparisons.run(move || blocked.recv());
        // The comparison ends only because this future is polled beside it.
        let (done, sent) = tokio::join!(compared, async { release.send(()) });
        assert_eq!((done, sent), (Some(Ok(())), Ok(())));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_comparison_whose_client_left_is_never_started() {
        let comparisons = Comparisons::at_once(1);
        let (release, blocked) = mpsc::channel::<()>();
        let mut running = Box::pin(comparisons.run(move || blocked.recv()));
        assert!(running.as_mut().now_or_never().is_none());
        let has_run = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&has_run);
        let mut waiting = Box::pin(comparisons.run(move || flag.store(true, Ordering::SeqCst)));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        drop(release);
        assert!(running.await.is_some());
        assert_eq!(comparisons.run(|| 1).await, Some(1));
        assert!(!has_run.load(Ordering::SeqCst));
    }

    #[test]
    fn the_deepest_schema_and_document_fit_the_stack() {
        let mut definitions = serde_json::Map::new();
        let last = json!({ "properties": { "c": { "$ref": "#/$defs/d100" } } });
        definitions.insert("d0".to_owned(), last);
        for level in 1..=100 {
            let before = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
            definitions.insert(format!("d{level}"), before);
        }
        let schema = json!({ "$defs": definitions, "$ref": "#/$defs/d100" });
        let document = "{\"c\":".repeat(120) + "{}" + &"}".repeat(120);
        let schema = BoundedSchema::new(schema).expect("it is small");
        let compared = move || schema.violation(&document);
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let compared = thread.spawn(compared).expect("a thread").join();
        assert_eq!(compared.expect("no panic"), None);
    }
}
