//! Computes the size of a JSON Schema with its references resolved.
//!
//! A `$ref` acts like a copy of its target, so nested references multiply. The size of each target
//! is cached, so the count is linear in the text. The count stops at a recursive reference: its cost
//! further down depends on the document, whose values are visited once each.

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

/// Why a schema is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaTooLarge {
    /// It has too many values.
    #[error(
        "the schema has {values} values with its references resolved, and at most {MOST_VALUES} \
         are allowed"
    )]
    Values {
        /// How many, or `u64::MAX`.
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
    /// A reference leads back to itself for the same value of the document.
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

/// The size of a schema with its references resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    /// How many values it has.
    pub(super) values: u64,
    /// How many of them are patterns.
    pub(super) patterns: u64,
    /// How many different patterns there are.
    pub(super) different_patterns: usize,
    /// The total length of the different patterns.
    pub(super) pattern_bytes: usize,
    /// Whether a reference is recursive.
    pub(super) is_recursive: bool,
    /// Whether it has `anyOf` or `oneOf`.
    pub(super) has_alternatives: bool,
}

/// The size of a part of a schema.
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

    /// The size of one value that contains these.
    fn around(inside: Self) -> Self {
        Self {
            values: inside.values.saturating_add(1),
            patterns: inside.patterns,
            levels: inside.levels + 1,
        }
    }

    /// The size of both, next to each other.
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
    /// The part that applies to the same value of a document as the schema itself.
    SameValue,
}

/// Counts a schema, unless it is too large.
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
            let position = SchemaPosition {
                draft,
                resolver: &registry.resolver(base),
                reach: Reach::All,
                depth: 0,
            };
            count.resource(schema, position)?
        }
        // With unresolvable references, the schema cannot be used at all.
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

/// The URI of a schema without one.
const ROOT: &str = "json-schema:///";

/// The position of the count in the schema.
#[derive(Clone, Copy)]
struct SchemaPosition<'p, 'r> {
    draft: Draft,
    resolver: &'p Resolver<'r>,
    reach: Reach,
    depth: usize,
}

/// A target of references. The base is part of it, because the references inside a target are
/// resolved relative to the resource through which it was reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Target {
    value: *const Value,
    base: String,
    draft: Draft,
    reach: Reach,
}

struct Count {
    /// The sizes of the targets of references; none while a target is being counted.
    targets: HashMap<Target, Option<Size>>,
    /// The different patterns.
    patterns: HashSet<String>,
    is_recursive: bool,
    has_alternatives: bool,
}

impl Count {
    /// Counts a subschema, or an array of them. Its `$schema` selects its draft.
    fn value(
        &mut self,
        value: &Value,
        position: SchemaPosition<'_, '_>,
    ) -> Result<Size, SchemaTooLarge> {
        let draft = position.draft.detect(value);
        self.resource(value, SchemaPosition { draft, ..position })
    }

    /// Counts a schema whose draft is known.
    fn resource(
        &mut self,
        value: &Value,
        position: SchemaPosition<'_, '_>,
    ) -> Result<Size, SchemaTooLarge> {
        if position.depth > MOST_LEVELS {
            return Err(SchemaTooLarge::Levels);
        }
        let position = SchemaPosition {
            depth: position.depth + 1,
            ..position
        };
        let inside = match value {
            Value::Object(members) => {
                let resource = position.draft.create_resource_ref(value);
                let resolver = position.resolver.in_subresource(resource);
                let resolver = resolver.as_ref().unwrap_or(position.resolver);
                self.members(
                    members,
                    SchemaPosition {
                        resolver,
                        ..position
                    },
                )?
            }
            Value::Array(values) => self.all(values, position)?,
            _ => return Ok(Size::ONE),
        };
        Ok(Size::around(inside))
    }

    fn all<'v>(
        &mut self,
        values: impl IntoIterator<Item = &'v Value>,
        position: SchemaPosition<'_, '_>,
    ) -> Result<Size, SchemaTooLarge> {
        let mut sum = Size::default();
        for value in values {
            sum = sum.and(self.value(value, position)?);
        }
        Ok(sum)
    }

    /// Counts an object of named schemas. The names are arbitrary and may equal keywords.
    fn named_schemas(
        &mut self,
        schemas: &Map<String, Value>,
        position: SchemaPosition<'_, '_>,
    ) -> Result<Size, SchemaTooLarge> {
        let depth = position.depth + 1;
        let inside = self.all(schemas.values(), SchemaPosition { depth, ..position })?;
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
        position: SchemaPosition<'_, '_>,
    ) -> Result<Size, SchemaTooLarge> {
        let mut sum = Size::default();
        for (name, member) in members {
            self.has_alternatives |= matches!(name.as_str(), "anyOf" | "oneOf");
            let size = match (name.as_str(), member) {
                ("$ref", Value::String(reference)) => self.target(reference, position)?,
                ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                    let keyword = name.clone();
                    return Err(SchemaTooLarge::Dynamic { keyword });
                }
                ("allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else", _) => {
                    self.value(member, position)?
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    self.named_schemas(schemas, position)?
                }
                ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
                ("patternProperties", Value::Object(schemas)) => {
                    let mut size = Size::ONE;
                    for pattern in schemas.keys() {
                        size = size.and(self.pattern(pattern)?);
                    }
                    if position.reach == Reach::All {
                        size = size.and(self.named_schemas(schemas, position)?);
                    }
                    size
                }
                ("properties" | "$defs" | "definitions", Value::Object(schemas))
                    if position.reach == Reach::All =>
                {
                    self.named_schemas(schemas, position)?
                }
                ("enum" | "const" | "required" | "default" | "examples", _) => plain(member),
                _ if position.reach == Reach::All => self.value(member, position)?,
                _ => Size::ONE,
            };
            sum = sum.and(size);
        }
        // For these keywords, all other keywords of the schema are applied several times.
        let applied_again = ["unevaluatedProperties", "unevaluatedItems"];
        if applied_again.iter().any(|it| members.contains_key(*it)) {
            sum.values = sum.values.saturating_mul(4);
            sum.patterns = sum.patterns.saturating_mul(4);
        }
        Ok(sum)
    }

    fn target(
        &mut self,
        reference: &str,
        position: SchemaPosition<'_, '_>,
    ) -> Result<Size, SchemaTooLarge> {
        let Ok(found) = position.resolver.lookup(reference) else {
            return Ok(Size::ONE);
        };
        let (target, resolver, draft) = found.into_inner();
        let key = Target {
            value: ptr::from_ref(target),
            base: resolver.base_uri().as_str().to_owned(),
            draft,
            reach: position.reach,
        };
        let size = match (self.targets.get(&key), position.reach) {
            (Some(Some(size)), _) => *size,
            (Some(None), Reach::SameValue) => {
                let reference = reference.to_owned();
                return Err(SchemaTooLarge::Endless { reference });
            }
            (Some(None), Reach::All) => {
                self.is_recursive = true;
                let reach = Reach::SameValue;
                return self.target(reference, SchemaPosition { reach, ..position });
            }
            (None, _) => {
                self.targets.insert(key.clone(), None);
                let resolver = &resolver;
                let inside = SchemaPosition {
                    draft,
                    resolver,
                    ..position
                };
                // `jsonschema` gives a target the draft of the resource that contains it.
                let size = self.resource(target, inside)?;
                self.targets.insert(key, Some(size));
                size
            }
        };
        if position.depth + size.levels > MOST_LEVELS {
            return Err(SchemaTooLarge::Levels);
        }
        Ok(size)
    }
}

/// The size of a value that is not a schema.
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
mod tests;
