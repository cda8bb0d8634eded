//! The syntax tree of a YAML file, with positions.
//!
//! The size of a file, its depth and its length with expanded aliases are limited. Unquoted values
//! follow the core schema of YAML 1.2, in which `no` is a text.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError};
use serde_json::{Number, Value};

use super::findings::{Report, clipped};
use crate::suggest::meant;

/// A range of bytes in the file.
pub(crate) type Span = Range<usize>;

/// The maximum size of a file.
const MOST_BYTES: usize = 1 << 20;

/// The maximum nesting depth.
const MOST_DEPTH: usize = 64;

/// The maximum number of keys of a map, because lookup is linear.
const MOST_KEYS: usize = 1000;

/// The maximum number of values, with aliases expanded.
const MOST_NODES: usize = 100_000;

/// The maximum length of all texts, with aliases expanded.
const MOST_EXPANDED_BYTES: usize = 8 << 20;

/// The limit up to which a float represents every integer exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

const FEW_ARE_ENOUGH: &str = "no pipeline needs more than a few";

/// A value with its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// The kind of a value.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A text, number, boolean or null. Quoted values are always texts.
    Scalar { text: String, is_plain: bool },
    /// A list.
    List(Vec<Node>),
    /// A map with distinct keys, in the order of the file.
    Map(Vec<Entry>),
    /// A value for which an error was already reported.
    Broken,
}

/// A key with its value. Keys are always texts.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

impl Node {
    /// The entry of a map.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The entries of a map; none for other values.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The text, if the value is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, is_plain } if !is_plain || plain(text).is_string() => Some(text),
            _ => None,
        }
    }

    /// The value as JSON.
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Scalar {
                text,
                is_plain: true,
            } => plain(text),
            Kind::Scalar { text, .. } => text.as_str().into(),
            Kind::List(items) => items.iter().map(Self::to_value).collect(),
            Kind::Map(entries) => {
                let members = entries.iter();
                let members = members.map(|entry| (entry.key.clone(), entry.value.to_value()));
                Value::Object(members.collect())
            }
            Kind::Broken => Value::Null,
        }
    }

    /// The position to show: a scalar itself, else the first key or item.
    pub(crate) fn mark(&self) -> Span {
        let first = match &self.kind {
            Kind::Map(entries) => entries.first().map(|entry| entry.key_span.clone()),
            Kind::List(items) => items.first().map(Self::mark),
            _ => None,
        };
        first.unwrap_or_else(|| self.span.clone())
    }
}

/// An unquoted value by the core schema.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    number(text).map_or_else(|| text.into(), Value::Number)
}

/// Parses a number. Integers can also be written as `5.0` or `0x5`.
pub(crate) fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = unsigned
        .split_once(['e', 'E'])
        .map_or((unsigned, None), |(mantissa, rest)| (mantissa, Some(rest)));
    let (whole, fraction) = mantissa
        .split_once('.')
        .map_or((mantissa, None), |(whole, rest)| (whole, Some(rest)));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_digits = !whole.is_empty() || fraction.is_some_and(|fraction| !fraction.is_empty());
    let is_exponent = |text: &str| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        !digits.is_empty() && are_digits(digits)
    };
    if !has_digits
        || !are_digits(whole)
        || !fraction.is_none_or(are_digits)
        || !exponent.is_none_or(is_exponent)
    {
        return None;
    }
    let written = text.strip_prefix('+').unwrap_or(text);
    if fraction.is_none() && exponent.is_none() {
        if let Ok(number) = written.parse::<u64>() {
            return Some(number.into());
        }
        if let Ok(number) = written.parse::<i64>() {
            return Some(number.into());
        }
    }
    let float: f64 = written.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
    if float.fract() == 0.0 && float.abs() < EXACT {
        return Some((float as i64).into());
    }
    Number::from_f64(float)
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    // `from_str_radix` would accept a sign.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let number = u64::from_str_radix(digits, radix).ok()?;
    is_plain.then(|| number.into())
}

/// Parses a file and reports errors; nothing if an error stops the parser.
pub(crate) fn parse(text: &str, report: &mut Report<'_>) -> Option<Node> {
    if text.len() > MOST_BYTES {
        report.error(
            0..0,
            "the file is larger than 1 MB",
            "move long prompts into files (`prompt_key`)",
        );
        return None;
    }
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
    };
    let mut builder = Builder {
        report,
        open: Vec::new(),
        root: None,
        anchors: HashMap::new(),
        names: Vec::new(),
        size: Size::default(),
    };
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => {
                let range = span.byte_range().unwrap_or_default();
                let tag = span.tag_span().and_then(|span| span.byte_range());
                builder.add(event, range, tag)?;
            }
            Err(error) => {
                report_syntax_error(&error, text, builder.report);
                return None;
            }
        }
    }
    builder.root
}

/// A list or map whose end has not been read.
struct Open {
    kind: Kind,
    span: Span,
    anchor: usize,
    /// The key of the next value.
    key: Option<(String, Span)>,
    /// The offsets of the keys so far.
    keys: HashMap<String, usize>,
    /// Whether the next value is dropped because its key is invalid.
    skips: bool,
    size: Size,
}

/// The size of a value with aliases expanded.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// A complete value, which aliases may refer to.
struct Measured {
    node: Node,
    size: Size,
}

struct Builder<'r, 't> {
    report: &'r mut Report<'t>,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Measured>,
    names: Vec<String>,
    size: Size,
}

impl Builder<'_, '_> {
    /// Adds an event; nothing if an error stops the parser.
    fn add(&mut self, event: Event<'_>, span: Span, tag: Option<Span>) -> Option<()> {
        let is_tagged = matches!(
            &event,
            Event::Scalar(.., Some(_))
                | Event::SequenceStart(.., Some(_))
                | Event::MappingStart(.., Some(_))
        );
        if is_tagged {
            self.report.error(
                tag.unwrap_or_else(|| span.clone()),
                "tags such as `!!int` are not supported",
                "remove it: a quoted value is a text, an unquoted number is a number",
            );
        }
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                self.report.error(
                    span,
                    "a second document begins here",
                    "a file holds one pipeline; remove the `---`, or make two files",
                );
                return None;
            }
            Event::Anchor(_, name) => self.names.push(name.into_owned()),
            Event::Scalar(text, style, anchor, _) => {
                let kind = if is_tagged {
                    Kind::Broken
                } else {
                    Kind::Scalar {
                        text: text.into_owned(),
                        is_plain: style == ScalarStyle::Plain,
                    }
                };
                let size = Size {
                    nodes: 1,
                    bytes: span.len(),
                    depth: 0,
                };
                self.grow(size, &span)?;
                let node = Node { kind, span };
                self.put(Measured { node, size }, anchor)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.begin(Kind::List(Vec::new()), span, anchor)?;
            }
            Event::MappingStart(_, anchor, _) => {
                self.begin(Kind::Map(Vec::new()), span, anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let open = self.open.pop()?;
                let node = Node {
                    kind: open.kind,
                    span: open.span.start..span.end.max(open.span.end),
                };
                let size = open.size;
                self.put(Measured { node, size }, open.anchor)?;
            }
            Event::Alias(anchor) => self.follow(anchor, span)?,
            Event::UnresolvedAlias(name) => {
                let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
                let help = meant(&name, &names);
                let message = format!("unknown anchor `&{}`", clipped(&name));
                self.report.error(span.clone(), message, help);
                let node = Node {
                    kind: Kind::Broken,
                    span,
                };
                let size = Size::default();
                self.put(Measured { node, size }, 0)?;
            }
            _ => {}
        }
        Some(())
    }

    fn begin(&mut self, kind: Kind, span: Span, anchor: usize) -> Option<()> {
        if self.open.len() >= MOST_DEPTH {
            self.too_deep(span);
            return None;
        }
        let size = Size {
            nodes: 1,
            bytes: 0,
            depth: 1,
        };
        self.grow(size, &span)?;
        self.open.push(Open {
            kind,
            span,
            anchor,
            key: None,
            keys: HashMap::new(),
            skips: false,
            size,
        });
        Some(())
    }

    fn too_deep(&mut self, span: Span) {
        self.report.error(
            span,
            format!("the file is nested deeper than {MOST_DEPTH} levels"),
            FEW_ARE_ENOUGH,
        );
    }

    fn grow(&mut self, size: Size, span: &Span) -> Option<()> {
        self.size.nodes += size.nodes;
        self.size.bytes += size.bytes;
        let message = if self.size.nodes > MOST_NODES {
            format!("with its aliases expanded, the file holds more than {MOST_NODES} values")
        } else if self.size.bytes > MOST_EXPANDED_BYTES {
            "with its aliases expanded, the file is longer than 8 MB".to_owned()
        } else {
            return Some(());
        };
        let help = "write values out instead of repeating them by `*alias`";
        self.report.error(span.clone(), message, help);
        None
    }

    /// Copies the value of an anchor to an alias.
    fn follow(&mut self, anchor: usize, span: Span) -> Option<()> {
        let Some(size) = self.anchors.get(&anchor).map(|value| value.size) else {
            self.report.error(
                span,
                "this alias refers to a value that contains it",
                "a value cannot contain itself; write the value out",
            );
            return None;
        };
        // Checked before anything is copied.
        self.grow(size, &span)?;
        if self.open.len() + size.depth > MOST_DEPTH {
            self.too_deep(span);
            return None;
        }
        let node = self.anchors.get(&anchor)?.node.clone();
        self.put(Measured { node, size }, 0)
    }

    /// Adds a complete value to its parent; nothing if an error stops the parser.
    fn put(&mut self, value: Measured, anchor: usize) -> Option<()> {
        if let Some(open) = self.open.last_mut() {
            open.size.nodes += value.size.nodes;
            open.size.bytes += value.size.bytes;
            open.size.depth = open.size.depth.max(value.size.depth + 1);
        }
        let node = if anchor == 0 {
            value.node
        } else {
            let node = value.node.clone();
            self.anchors.insert(anchor, value);
            node
        };
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        let entries = match &mut open.kind {
            Kind::List(items) => {
                items.push(node);
                return Some(());
            }
            Kind::Map(entries) => entries,
            _ => return Some(()),
        };
        if open.skips {
            open.skips = false;
            return Some(());
        }
        if let Some((key, key_span)) = open.key.take() {
            entries.push(Entry {
                key,
                key_span,
                value: node,
            });
            return Some(());
        }
        let Kind::Scalar { text, .. } = node.kind else {
            open.skips = true;
            if !matches!(node.kind, Kind::Broken) {
                self.report.error(
                    node.span.start..node.span.start + 1,
                    "a key is a text, not a list or a map",
                    "quote a text that begins with `{` or `[`",
                );
            }
            return Some(());
        };
        if text == "<<" {
            open.skips = true;
            self.report.error(
                node.span,
                "merge keys (`<<`) are not supported",
                "write the fields out, or repeat one value by `*alias`",
            );
            return Some(());
        }
        if let Some(first) = open.keys.get(&text) {
            open.skips = true;
            let line = self.report.line(*first);
            self.report.error(
                node.span,
                format!(
                    "duplicate key `{}` (first defined in line {line})",
                    clipped(&text)
                ),
                "remove one of them",
            );
            return Some(());
        }
        if open.keys.len() >= MOST_KEYS {
            let message = format!("a map has more than {MOST_KEYS} keys");
            self.report.error(node.span, message, FEW_ARE_ENOUGH);
            return None;
        }
        open.keys.insert(text.clone(), node.span.start);
        open.key = Some((text, node.span));
        Some(())
    }
}

/// Reports an error of the YAML parser.
fn report_syntax_error(error: &ScanError, text: &str, report: &mut Report<'_>) {
    let offset = error.marker().byte_offset().unwrap_or_default();
    let offset = offset.min(text.len());
    if let Some(tab) = tab_near(error, text, offset) {
        report.error(tab..tab + 1, "tab in the indentation", "indent with spaces");
        return;
    }
    let (message, help) = explain(error);
    report.error(offset..offset, message, help);
}

/// The message and help for an error of the YAML parser.
fn explain(error: &ScanError) -> (String, &'static str) {
    let (message, help) = match error.kind() {
        ErrorKind::RecursionLimitExceeded => {
            let message = format!("the file is nested deeper than {MOST_DEPTH} levels");
            return (message, FEW_ARE_ENOUGH);
        }
        ErrorKind::UnclosedFlowCollection { open } => {
            let help = "close it, or quote the text";
            return (format!("`{open}` is never closed"), help);
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            let help = "brackets are closed as they were opened: `{ }`, `[ ]`";
            return (format!("`{open}` is closed by `{close}`"), help);
        }
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => {
            let help = "in double quotes it can be escaped, such as `\\e` or `\\u001b`";
            return (format!("invalid character `{character}`"), help);
        }
        ErrorKind::UnexpectedCharacter { character } => {
            let message = format!("a text that begins with `{character}` needs quotes");
            return (message, "quote it");
        }
        ErrorKind::UnclosedQuotedScalar => (
            "unclosed quote",
            "close it, or use the other kind of quotes for a text with a quote in it",
        ),
        ErrorKind::InvalidQuotedScalarIndent => (
            "a quote above is not closed, or this line of its text is not indented",
            "close the quote, or indent this line",
        ),
        ErrorKind::InvalidTrailingSingleQuotedScalar => (
            "unexpected text after a closing quote",
            "in single quotes a quote is written twice: `'it''s'`",
        ),
        ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            "unexpected text after a closing quote",
            "in double quotes a quote is written `\\\"`",
        ),
        ErrorKind::MisplacedFlowCollectionEnd => (
            "this bracket was never opened",
            "remove it, or quote the text",
        ),
        ErrorKind::MappingValueNotAllowed
        | ErrorKind::InvalidColonPlacement
        | ErrorKind::InvalidMappingValueWhitespace => (
            "unexpected `:`",
            "indent keys of a map alike, and quote a text with `: ` in it",
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (
            "expected `key: value`",
            "put `: ` after the key, and indent the lines of a longer text",
        ),
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::InvalidIndentation
        | ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::MappingKeyNotAllowed => (
            "wrong indentation",
            "indent the keys of a map, or the items of a list, by the same number of spaces",
        ),
        ErrorKind::ExpectedFlowMappingSeparator => (
            "a `,` or `}` is missing before this",
            "quote a text with `,`, `{` or `}` in it",
        ),
        ErrorKind::ExpectedFlowSequenceSeparator => (
            "a `,` or `]` is missing before this",
            "quote a text with `,`, `[` or `]` in it",
        ),
        ErrorKind::UnknownQuotedScalarEscape => (
            "unknown escape sequence",
            "write `\\\\` for a backslash, or use single quotes",
        ),
        _ => {
            let help = "quote a text with characters that have a meaning in YAML";
            return (format!("invalid YAML: {}", error.info()), help);
        }
    };
    (message.to_owned(), help)
}

/// The tab that causes an error.
fn tab_near(error: &ScanError, text: &str, offset: usize) -> Option<usize> {
    let is_tab = matches!(
        error.kind(),
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabInPlainScalar
            | ErrorKind::TabAtBlockScalarStart
    );
    let offset = (0..=offset).rev().find(|at| text.is_char_boundary(*at))?;
    let line = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let rest = text[line..].split('\n').next()?;
    let before = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    // A tab in the indentation causes various errors.
    let within = rest[..before].find('\t');
    let later = || text[offset..].find('\t').map(|at| offset + at);
    within
        .map(|at| line + at)
        .or_else(|| later().filter(|_| is_tab))
}
