//! Does an answer match the schemas of its request, and can it be called complete?
//!
//! A document is compared with the schema of `response_format`, the arguments of a tool call with
//! the `parameters` of the tool. A violation keeps an answer from being complete where the schema is
//! strict, and where a tool call lacks a required member. Before that the model is asked once to
//! correct it, while nothing of it was sent to the client.

use std::sync::Arc;

use overlock_model::Outcome;
use serde_json::{Map, Value, json};

use super::Job;
use super::joining::{Cut, Joined, Joiner, found};
use super::reading::Found;
use super::wish::Continues;
use crate::error::ApiError;
use crate::record::Recording;
use crate::schema::{BoundedSchema, Comparison};

/// What comparing the parts of one answer with the schemas of the request found.
#[derive(Default)]
pub(crate) struct Compliance {
    content: Comparison,
    calls: Comparison,
}

/// What a part of an answer is once it is compared with its schema.
pub(crate) struct Compared {
    found: Found,
    comparison: Comparison,
}

impl Compared {
    /// A part that has to match a schema and is not even JSON.
    pub(crate) fn not_json(part: &str) -> Self {
        Self {
            found: Found::Invalid,
            comparison: Comparison::Violates(format!("{part} is not one JSON document")),
        }
    }

    /// How it violates a schema that it has to match, if it does.
    pub(crate) fn violation(&self) -> Option<&str> {
        let is_invalid = self.found == Found::Invalid;
        self.comparison.violation().filter(|_| is_invalid)
    }
}

impl From<Found> for Compared {
    /// A part that is not compared with anything.
    fn from(found: Found) -> Self {
        let comparison = Comparison::Matches;
        Self { found, comparison }
    }
}

impl Joiner<'_> {
    /// Compares a part of an answer with its schema: content with that of `response_format`,
    /// arguments with the parameters of the tool.
    pub(crate) async fn compare(&self, cut: Cut<'_>, found: Found, text: &str) -> Compared {
        match cut {
            Cut::Content => self.compare_content(found, text).await,
            Cut::Arguments(tool) => self.compare_arguments(found, tool, text).await,
        }
    }

    async fn compare_content(&self, found: Found, document: &str) -> Compared {
        let schema = self.wish.schema.as_ref();
        let Some(schema) = schema.filter(|_| found == Found::Whole) else {
            return Compared::from(found);
        };
        let (bounded, document) = (Arc::clone(&schema.bounded), document.to_owned());
        let comparisons = &self.gateway.comparisons;
        let compared = comparisons.compare(bounded, document, self.deadline);
        let comparison = Box::pin(compared).await;
        let is_invalid = schema.is_strict && comparison.violation().is_some();
        let found = if is_invalid { Found::Invalid } else { found };
        Compared { found, comparison }
    }

    async fn compare_arguments(&self, found: Found, tool: &str, arguments: &str) -> Compared {
        // Some servers leave out the arguments of a call that has none.
        let is_empty = arguments.trim().is_empty();
        let rules = self.wish.tools.iter().find(|rules| rules.name == tool);
        if !is_empty && found == Found::Unclear && rules.is_some_and(|rules| rules.is_strict) {
            return Compared::not_json(&format!("the text of the arguments of a call of `{tool}`"));
        }
        let Some(rules) = rules.filter(|_| found == Found::Whole || is_empty) else {
            return Compared::from(found);
        };
        let arguments = if is_empty { NO_ARGUMENTS } else { arguments }.to_owned();
        let (rules, is_strict) = (Arc::clone(rules), rules.is_strict);
        let comparisons = &self.gateway.comparisons;
        let compared = comparisons.decide(move || rules.compare(&arguments), self.deadline);
        let comparison = match Box::pin(compared).await {
            // Nobody asked for the comparison of a tool that is not strict.
            Comparison::Undecided(_) if !is_strict => Comparison::Matches,
            comparison => comparison,
        };
        let is_invalid = comparison.violation().is_some();
        let found = if is_invalid { Found::Invalid } else { found };
        Compared { found, comparison }
    }

    /// Compares a document with its schema. One that has to match and does not is corrected by the
    /// model, with one more call, unless the client wants no more calls or a limit is reached.
    pub(crate) async fn compare_or_correct(
        &self,
        cut: Cut<'_>,
        joined: &mut Joined,
        recording: Option<&mut Recording>,
    ) -> Result<Compared, ApiError> {
        let run = &joined.run;
        let compared = self.compare(cut, found(run), run.text()).await;
        let is_wanted = self.wish.continues != Continues::Nothing;
        let Some(violation) = compared.violation().filter(|_| is_wanted) else {
            return Ok(compared);
        };
        let mut corrected = None;
        let check = async |document: &str| {
            let compared = self.compare(cut, Found::Whole, document).await;
            match &compared.comparison {
                Comparison::Matches => {
                    corrected = Some(compared);
                    Ok(())
                }
                Comparison::Undecided(why) | Comparison::Violates(why) => Err(why.clone()),
            }
        };
        let correction = self.correct(cut, joined, violation, check, recording);
        correction.await?;
        Ok(corrected.unwrap_or(compared))
    }
}

/// The arguments of a call that has none.
pub(crate) const NO_ARGUMENTS: &str = "{}";

impl Compliance {
    /// Takes note of what comparing a part found; what the part is.
    pub(crate) fn add(&mut self, cut: Cut<'_>, compared: Compared) -> Found {
        let all = match cut {
            Cut::Content => &mut self.content,
            Cut::Arguments(_) => &mut self.calls,
        };
        *all = std::mem::take(all).and(compared.comparison);
        compared.found
    }

    /// What all comparisons together found.
    pub(crate) fn comparison(&self) -> Comparison {
        self.content.clone().and(self.calls.clone())
    }

    /// Why the gateway refuses to pass on the answer, if it does.
    pub(crate) fn refusal(&self, job: &Job) -> Option<String> {
        let is_refused = job.gateway.settings.strict_schema;
        let violation = self.content.violation().filter(|_| is_refused);
        violation.map(str::to_owned)
    }

    /// Tells in the last object of an answer why it is not complete, if it violates a schema that
    /// it has to match; whether it does.
    pub(crate) fn report(
        &self,
        job: &Job,
        outcome: &Outcome,
        last: &mut Map<String, Value>,
    ) -> bool {
        let content = self.content.violation().filter(|_| job.wish.is_strict());
        let Some(violation) = content.or(self.calls.violation()) else {
            return false;
        };
        let reason = outcome.reason().map(overlock_model::Reason::name);
        let report = json!({
            "outcome": outcome.name(), "reason": reason, "violation": violation,
        });
        last.insert(REPORT.to_owned(), report);
        true
    }
}

/// The member of a completion, or of the last chunk of a stream, that tells of a violation.
pub(crate) const REPORT: &str = "overlock";

/// What the arguments of a tool are compared with.
#[derive(Debug)]
pub(crate) struct ToolRules {
    name: String,
    schema: Value,
    is_strict: bool,
}

impl ToolRules {
    /// Those of all tools of a request that have any.
    pub(crate) fn of(request: &Map<String, Value>) -> Vec<Arc<Self>> {
        let list = |name| {
            let list = request.get(name).and_then(Value::as_array);
            list.into_iter().flatten()
        };
        let tools = list("tools").filter_map(|tool| tool.get("function"));
        let functions = tools.chain(list("functions"));
        functions
            .filter_map(|function| Self::of_function(function).map(Arc::new))
            .collect()
    }

    fn of_function(function: &Value) -> Option<Self> {
        let name = function.get("name")?.as_str()?.to_owned();
        let parameters = function.get("parameters").filter(|it| it.is_object())?;
        let is_strict = function.get("strict") == Some(&Value::Bool(true));
        let schema = if is_strict {
            parameters.clone()
        } else {
            let mut required = required_members(parameters)?;
            required["type"] = json!("object");
            required
        };
        Some(Self {
            name,
            schema,
            is_strict,
        })
    }

    fn compare(&self, arguments: &str) -> Comparison {
        match BoundedSchema::new(self.schema.clone()) {
            Ok(schema) => {
                let name = &self.name;
                let violates =
                    format!("the arguments of a call of `{name}` violate the tool's parameters");
                schema.compare(arguments, &violates)
            }
            Err(error) => Comparison::undecided(error),
        }
    }
}

/// What a schema says about required members, and nothing else: whatever violates this violates
/// the schema.
fn required_members(schema: &Value) -> Option<Value> {
    let schema = schema.as_object()?;
    // Beside a reference nothing else counts, in older drafts.
    if schema.contains_key("$ref") {
        return None;
    }
    let mut rules = Map::new();
    let required = schema.get("required").and_then(Value::as_array);
    if let Some(names) =
        required.filter(|names| !names.is_empty() && names.iter().all(Value::is_string))
    {
        rules.insert("required".to_owned(), json!(names));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties: Map<String, Value> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.clone(), required_members(schema)?)))
        .collect();
    if !properties.is_empty() {
        rules.insert("properties".to_owned(), Value::Object(properties));
    }
    if let Some(items) = schema.get("items").and_then(required_members) {
        rules.insert("items".to_owned(), items);
    }
    (!rules.is_empty()).then_some(Value::Object(rules))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(function: &Value, rules: Option<&Value>) {
        let found = ToolRules::of_function(function);
        assert_eq!(
            found.as_ref().map(|found| &found.schema),
            rules,
            "{function}"
        );
    }

    #[test]
    fn of_a_tool_that_is_not_strict_only_required_members_count() {
        let point = json!({ "type": "object", "required": ["x"], "maxProperties": 2 });
        let parameters = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {
                "a": { "type": "string" }, "b": point, "c": { "type": "array", "items": point },
            },
        });
        let function = json!({ "name": "f", "parameters": parameters });
        let rules = json!({
            "required": ["a"], "type": "object",
            "properties": { "b": { "required": ["x"] }, "c": { "items": { "required": ["x"] } } },
        });
        check(&function, Some(&rules));
        let strict = json!({ "name": "f", "strict": true, "parameters": parameters });
        check(&strict, Some(&parameters));
    }

    #[test]
    fn a_tool_without_required_members_has_no_rules() {
        for parameters in [
            json!(null),
            json!({}),
            json!({ "required": [] }),
            json!({ "required": "a" }),
            json!({ "$ref": "#/$defs/a", "required": ["a"] }),
            json!({ "anyOf": [{ "required": ["a"] }] }),
        ] {
            check(&json!({ "name": "f", "parameters": parameters }), None);
        }
    }
}
