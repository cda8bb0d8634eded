//! Explains how a part of a file differs from its schema.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::LocationSegment;
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::findings::clipped;
use super::schema::{Part, PartSchema, part_schema};
use super::tree::{Kind, Node, number};
use crate::suggest::{listed, meant, nearest};

/// A difference between a part and its schema.
pub(super) struct Fault {
    pub(super) spot: Spot,
    pub(super) path: Vec<String>,
    pub(super) message: String,
    pub(super) help: String,
}

/// What a fault is about.
pub(super) enum Spot {
    /// The key itself.
    Key,
    /// Its value.
    Value,
    /// A missing key of the map at the path.
    Missing,
}

/// The result of validating a part against its schema.
pub(super) struct Validation {
    /// Whether it is valid.
    pub(super) is_valid: bool,
    /// The differences that were not reported before.
    pub(super) faults: Vec<Fault>,
}

/// Validates a part against its schema. `node` is its site in the file, if it is from the file.
pub(super) fn validate(part: Part, value: &Value, node: Option<&Node>) -> Validation {
    let schema = part_schema(part);
    let errors: Vec<ValidationError<'_>> = schema.validator.iter_errors(value).collect();
    let unknown: Vec<(Vec<String>, &str)> = errors
        .iter()
        .filter_map(|error| match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => Some((error, unexpected)),
            _ => None,
        })
        .flat_map(|(error, unexpected)| {
            let path = path(error);
            unexpected
                .iter()
                .map(move |key| (path.clone(), key.as_str()))
        })
        .collect();
    let mut faults = Vec::new();
    for error in &errors {
        let site = ErrorSite {
            part,
            schema,
            path: path(error),
            is_item: matches!(
                error.instance_path().iter().last(),
                Some(LocationSegment::Index(_))
            ),
            node: node.and_then(|node| node_at(node, &path(error))),
        };
        if site
            .node
            .is_some_and(|node| matches!(node.kind, Kind::Broken))
        {
            continue;
        }
        if let ValidationErrorKind::Required { property } = error.kind()
            && let Some(name) = property.as_str()
        {
            // A misspelt required key is reported once, as misspelt.
            let is_misspelt = unknown
                .iter()
                .any(|(path, key)| *path == site.path && nearest(key, site.keys()) == Some(name));
            if !is_misspelt {
                faults.push(site.missing(name));
            }
            continue;
        }
        if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
            faults.extend(unexpected.iter().map(|key| site.unknown(key)));
            continue;
        }
        faults.push(site.wrong(error));
    }
    Validation {
        is_valid: errors.is_empty(),
        faults,
    }
}

fn path(error: &ValidationError<'_>) -> Vec<String> {
    let segments = error.instance_path().iter();
    segments.map(|segment| segment.to_string()).collect()
}

/// The node at a path.
pub(super) fn node_at<'n>(node: &'n Node, path: &[String]) -> Option<&'n Node> {
    path.iter().try_fold(node, |node, name| match &node.kind {
        Kind::Map(_) => node.get(name),
        Kind::List(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The context of a validation error.
struct ErrorSite<'a> {
    part: Part,
    schema: &'a PartSchema,
    path: Vec<String>,
    /// Whether the path leads to an item of a list.
    is_item: bool,
    node: Option<&'a Node>,
}

impl ErrorSite<'_> {
    fn keys(&self) -> Vec<&str> {
        self.schema.keys(&self.path)
    }

    /// How messages refer to the value.
    fn name(&self) -> String {
        match (self.path.as_slice(), self.part) {
            ([], Part::Envelope) => "`pipeline`".to_owned(),
            ([], Part::Settings) => "`settings`".to_owned(),
            ([], Part::Step(action)) => format!("`{action}`"),
            ([.., list, index], _) if self.is_item => {
                let number = index.parse::<usize>().map_or(0, |index| index + 1);
                format!("item {number} of `{}`", clipped(list))
            }
            ([.., key], _) => format!("`{}`", clipped(key)),
        }
    }

    fn missing(&self, name: &str) -> Fault {
        let mut schema_path = self.path.clone();
        schema_path.push(name.to_owned());
        let about = self.schema.description(&schema_path).unwrap_or_default();
        let about = about.trim_end_matches('.');
        Fault {
            spot: Spot::Missing,
            path: self.path.clone(),
            message: format!("{} needs `{name}`", self.name()),
            help: format!("add `{name}: …`: {}", lower_first(about)),
        }
    }

    fn unknown(&self, key: &str) -> Fault {
        let keys = self.keys();
        let mut path = self.path.clone();
        path.push(key.to_owned());
        Fault {
            spot: Spot::Key,
            path,
            message: format!("{} has no `{}`", self.name(), clipped(key)),
            help: match nearest(key, keys.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("it has {}", listed(&keys)),
            },
        }
    }

    fn wrong(&self, error: &ValidationError<'_>) -> Fault {
        let name = self.name();
        let instance = error.instance();
        let must = |what: String| {
            let message = format!("{name} must be {what}, not {}", shown(instance));
            (message, String::new())
        };
        let (message, help) = match error.kind() {
            ValidationErrorKind::Type { kind } => self.wrong_type(kind, instance),
            ValidationErrorKind::Enum { options } => {
                let options = options.as_array();
                let options = options.into_iter().flatten().filter_map(Value::as_str);
                let options: Vec<&str> = options.collect();
                let text = instance.as_str().unwrap_or_default();
                (
                    format!("{name} cannot be {}", shown(instance)),
                    meant(text, &options),
                )
            }
            ValidationErrorKind::Minimum { limit } => must(format!("at least {}", grouped(limit))),
            ValidationErrorKind::Maximum { limit } => must(format!("at most {}", grouped(limit))),
            ValidationErrorKind::ExclusiveMinimum { limit } => {
                must(format!("more than {}", grouped(limit)))
            }
            ValidationErrorKind::MinLength { .. } => {
                let about = self.schema.description(&self.path).unwrap_or_default();
                let about = lower_first(about.trim_end_matches('.'));
                (
                    format!("{name} is empty"),
                    format!("give it a value: {about}"),
                )
            }
            ValidationErrorKind::MinItems { .. } | ValidationErrorKind::MinProperties { .. } => (
                format!("{name} is empty"),
                "put at least one into it".to_owned(),
            ),
            ValidationErrorKind::MaxItems { limit } => {
                (format!("{name} has more than {limit} items"), String::new())
            }
            _ => (
                format!("{name} is wrong: {}", clipped(&error.to_string())),
                String::new(),
            ),
        };
        Fault {
            spot: Spot::Value,
            path: self.path.clone(),
            message,
            help,
        }
    }

    fn wrong_type(&self, kind: &TypeKind, instance: &Value) -> (String, String) {
        let name = self.name();
        let TypeKind::Single(expected) = kind else {
            let message = format!("{name} cannot be {}", shown(instance));
            return (message, String::new());
        };
        if instance.is_null() {
            let message = format!("{name} has no value");
            let help = if self.schema.is_required(&self.path) {
                "give it one"
            } else {
                "give it one, or leave it out"
            };
            return (message, help.to_owned());
        }
        if let Some(explained) = self.wrong_notation(*expected) {
            return explained;
        }
        let what = match expected {
            JsonType::String => "a text",
            JsonType::Integer => "a whole number",
            JsonType::Number => "a number",
            JsonType::Boolean => "`true` or `false`",
            JsonType::Array => "a list",
            JsonType::Object => "a map",
            JsonType::Null => "nothing",
        };
        let message = format!("{name} must be {what}, not {}", shown(instance));
        let help = match (expected, instance) {
            (JsonType::String, Value::Object(members)) if members.is_empty() => {
                "quote it: `\"{}\"`".to_owned()
            }
            (JsonType::String, Value::Number(_) | Value::Bool(_)) => {
                let written = self.written().unwrap_or_default();
                format!("quote it: `\"{}\"`", clipped(written))
            }
            (JsonType::Array, Value::Object(_)) => {
                "begin each item of the list with `- `".to_owned()
            }
            (JsonType::Array, Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
                let written = self.written().unwrap_or_default();
                format!("make it a list of one: `[{}]`", clipped(written))
            }
            (JsonType::Object, _) => {
                let keys = self.keys();
                if keys.is_empty() {
                    "write `key: value` pairs under it".to_owned()
                } else {
                    format!("it has {}", listed(&keys))
                }
            }
            _ => String::new(),
        };
        (message, help)
    }

    /// The value as written in the file, without quotes.
    fn written(&self) -> Option<&str> {
        match &self.node?.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Explains values that YAML reads as another type than intended.
    fn wrong_notation(&self, expected: JsonType) -> Option<(String, String)> {
        let Kind::Scalar { text, is_plain } = &self.node?.kind else {
            return None;
        };
        let shown = clipped(text);
        match expected {
            JsonType::Boolean => {
                let word = text.to_ascii_lowercase();
                let truth = match word.as_str() {
                    "yes" | "on" | "y" | "true" => "true",
                    "no" | "off" | "n" | "false" => "false",
                    _ => return None,
                };
                let message = if *is_plain {
                    format!("`{shown}` is a text in YAML")
                } else {
                    format!("`\"{shown}\"` is a text because of its quotes")
                };
                Some((message, format!("write `{truth}`")))
            }
            JsonType::Integer | JsonType::Number => {
                if !is_plain && number(text).is_some() {
                    return Some((
                        format!("`\"{shown}\"` is a text because of its quotes"),
                        format!("write `{shown}`"),
                    ));
                }
                let digits = text.replace(['_', ',', '\'', ' '], "");
                if *is_plain && digits != *text && number(&digits).is_some() {
                    return Some((
                        format!("`{shown}` is a text in YAML"),
                        format!("write `{}`", clipped(&digits)),
                    ));
                }
                None
            }
            _ => None,
        }
    }
}

/// How messages show a value.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(is) => format!("`{is}`"),
        Value::Number(number) => clipped(&number.to_string()),
        Value::String(text) => format!("`{}`", clipped(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    }
}

/// A number with its digits in groups of three.
fn grouped(number: &Value) -> String {
    if let Some(number) = number.as_u64() {
        return thousands(number);
    }
    // A float is shown without `.0`.
    let float = number.as_f64().map(|number| number.to_string());
    float.unwrap_or_else(|| number.to_string())
}

/// A number with its digits in groups of three: `12,345`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (site, digit) in digits.chars().enumerate() {
        if site > 0 && (digits.len() - site).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}
