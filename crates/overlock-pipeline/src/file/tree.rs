//! A YAML file as a tree that knows where everything stands.
//!
//! Reading is bounded: a file cannot be larger, deeper or, once its aliases are followed, longer
//! than a person would write one. Plain words are read by the core schema of YAML 1.2, in which
//! `no` is a text.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError};
use serde_json::{Number, Value};

use super::findings::{Report, clipped};
use crate::suggest::meant;

/// Where something stands, in bytes.
pub(crate) type Span = Range<usize>;

/// A file is not larger than this.
const MOST_BYTES: usize = 1 << 20;

/// It is not nested deeper than this.
const MOST_DEPTH: usize = 64;

/// No map has more keys: they are looked for one by one.
const MOST_KEYS: usize = 1000;

/// It does not hold more, with its aliases followed.
const MOST_NODES: usize = 100_000;

/// Nor is its text longer than this, with its aliases followed.
const MOST_EXPANDED_BYTES: usize = 8 << 20;

/// Up to here a float that looks whole is exactly the number that was written.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A value in the file.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A text, a number, a truth or nothing; only what is plain may be other than a text.
    Scalar { text: String, is_plain: bool },
    /// A list.
    List(Vec<Node>),
    /// A map, with its keys in order, each once.
    Map(Vec<Entry>),
    /// Something that was complained about already.
    Broken,
}

/// A key with its value. Keys are texts, whatever they look like.
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

    /// The entries of a map; none of anything else.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, is_plain } if !is_plain || plain(text).is_string() => Some(text),
            _ => None,
        }
    }

    /// It as JSON.
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

    /// Where to point to: at all of it if it is one line, else at its beginning.
    pub(crate) fn mark(&self) -> Span {
        match &self.kind {
            Kind::Map(entries) => match entries.first() {
                Some(entry) => entry.key_span.clone(),
                None => self.span.clone(),
            },
            Kind::List(items) => match items.first() {
                Some(item) => item.mark(),
                None => self.span.clone(),
            },
            _ => self.span.clone(),
        }
    }
}

/// A plain word as the core schema reads it.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    number(text).map_or_else(|| text.into(), Value::Number)
}

/// The number that a text writes. A whole one is one however it is written: `5.0`, `0x5`.
pub(crate) fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
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
    // `from_str_radix` would take a sign.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let number = u64::from_str_radix(digits, radix).ok()?;
    is_plain.then(|| number.into())
}

/// The tree of a file. What is wrong with it is told; nothing comes back if it cannot be read on.
pub(crate) fn parse(text: &str, report: &mut Report<'_>) -> Option<Node> {
    if text.len() > MOST_BYTES {
        report.error(
            0..0,
            "the file is larger than 1 MB",
            "a pipeline is a few pages; longer prompts belong into files (`prompt_key`)",
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
        nodes: 0,
        bytes: 0,
        documents: 0,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        let going_on = match event {
            Ok((event, span)) => {
                let range = span.byte_range().unwrap_or_default();
                let tag = span.tag_span().and_then(|span| span.byte_range());
                builder.take(event, range, tag)
            }
            Err(error) => {
                syntax(&error, text, builder.report);
                return None;
            }
        };
        going_on?;
    }
    builder.root
}

/// A collection that has begun.
struct Open {
    kind: Kind,
    span: Span,
    anchor: usize,
    /// The key whose value comes next.
    key: Option<(String, Span)>,
    /// The keys there are, and where.
    keys: HashMap<String, usize>,
    /// Whether a key was complained about, so that its value goes nowhere.
    skips: bool,
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// What an anchor stands for.
struct Anchored {
    node: Node,
    nodes: usize,
    bytes: usize,
    depth: usize,
}

struct Builder<'r, 't> {
    report: &'r mut Report<'t>,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Anchored>,
    names: Vec<String>,
    nodes: usize,
    bytes: usize,
    documents: usize,
}

impl Builder<'_, '_> {
    /// Takes one event; nothing comes back if there is no going on.
    fn take(&mut self, event: Event<'_>, span: Span, tag: Option<Span>) -> Option<()> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.report.error(
                        span,
                        "a second document begins here",
                        "a file holds one pipeline; take out the `---`, or make two files",
                    );
                    return None;
                }
            }
            Event::Anchor(_, name) => self.names.push(name.into_owned()),
            Event::Scalar(text, style, anchor, scalar_tag) => {
                let kind = if scalar_tag.is_some() {
                    self.refuse_tag(tag.unwrap_or_else(|| span.clone()));
                    Kind::Broken
                } else {
                    Kind::Scalar {
                        text: text.into_owned(),
                        is_plain: style == ScalarStyle::Plain,
                    }
                };
                let bytes = span.len();
                let anchored = Anchored {
                    node: Node { kind, span },
                    nodes: 1,
                    bytes,
                    depth: 0,
                };
                self.grow(1, bytes, &anchored.node.span.clone())?;
                self.put(anchored, anchor)?;
            }
            Event::SequenceStart(_, anchor, list_tag) => {
                if list_tag.is_some() {
                    self.refuse_tag(tag.unwrap_or_else(|| span.clone()));
                }
                self.begin(Kind::List(Vec::new()), span, anchor)?;
            }
            Event::MappingStart(_, anchor, map_tag) => {
                if map_tag.is_some() {
                    self.refuse_tag(tag.unwrap_or_else(|| span.clone()));
                }
                self.begin(Kind::Map(Vec::new()), span, anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let open = self.open.pop()?;
                let span = open.span.start..span.end.max(open.span.end);
                let anchored = Anchored {
                    node: Node {
                        kind: open.kind,
                        span,
                    },
                    nodes: open.nodes,
                    bytes: open.bytes,
                    depth: open.depth,
                };
                self.put(anchored, open.anchor)?;
            }
            Event::Alias(anchor) => self.follow(anchor, span)?,
            Event::UnresolvedAlias(name) => {
                let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
                let help = meant(&name, &names);
                self.report.error(
                    span.clone(),
                    format!("no anchor `&{}` stands before this", clipped(&name)),
                    help,
                );
                self.put(broken(span), 0)?;
            }
            _ => {}
        }
        Some(())
    }

    fn refuse_tag(&mut self, span: Span) {
        self.report.error(
            span,
            "tags such as `!!int` are not used in pipelines",
            "leave it out: in quotes a value is a text, without them a number is a number",
        );
    }

    fn begin(&mut self, kind: Kind, span: Span, anchor: usize) -> Option<()> {
        if self.open.len() >= MOST_DEPTH {
            self.too_deep(span);
            return None;
        }
        self.grow(1, 0, &span)?;
        self.open.push(Open {
            kind,
            span,
            anchor,
            key: None,
            keys: HashMap::new(),
            skips: false,
            nodes: 1,
            bytes: 0,
            depth: 1,
        });
        Some(())
    }

    fn too_deep(&mut self, span: Span) {
        self.report.error(
            span,
            format!("the file is nested deeper than {MOST_DEPTH} levels"),
            "no pipeline needs more than a few",
        );
    }

    fn grow(&mut self, nodes: usize, bytes: usize, span: &Span) -> Option<()> {
        self.nodes += nodes;
        self.bytes += bytes;
        if self.nodes <= MOST_NODES && self.bytes <= MOST_EXPANDED_BYTES {
            return Some(());
        }
        let message = if self.nodes > MOST_NODES {
            format!(
                "the file, with its aliases followed if it has any, holds more than {MOST_NODES} values"
            )
        } else {
            "with its aliases followed, the file is longer than 8 MB".to_owned()
        };
        let help = "write out what is meant instead of repeating it by `*alias`";
        self.report.error(span.clone(), message, help);
        None
    }

    /// Puts what an anchor stands for where its alias is.
    fn follow(&mut self, anchor: usize, span: Span) -> Option<()> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            self.report.error(
                span,
                "this alias stands inside of what it stands for",
                "a value cannot hold itself; write out what is meant",
            );
            return None;
        };
        let (nodes, bytes, depth) = (anchored.nodes, anchored.bytes, anchored.depth);
        // Counted before anything is copied.
        self.grow(nodes, bytes, &span)?;
        if self.open.len() + depth > MOST_DEPTH {
            self.too_deep(span);
            return None;
        }
        let node = self.anchors.get(&anchor)?.node.clone();
        let copy = Anchored {
            node,
            nodes,
            bytes,
            depth,
        };
        self.put(copy, 0)
    }

    /// Puts a value that is whole into what is open; nothing comes back if there is no going on.
    fn put(&mut self, value: Anchored, anchor: usize) -> Option<()> {
        if let Some(open) = self.open.last_mut() {
            open.nodes += value.nodes;
            open.bytes += value.bytes;
            open.depth = open.depth.max(value.depth + 1);
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
                    "if this is a value with `{` or `[` at its beginning, put it into quotes",
                );
            }
            return Some(());
        };
        if text == "<<" {
            open.skips = true;
            self.report.error(
                node.span,
                "merge keys (`<<`) are not used in pipelines",
                "write out the fields, or repeat one value by `*alias`",
            );
            return Some(());
        }
        if let Some(first) = open.keys.get(&text) {
            open.skips = true;
            let line = self.report.line(*first);
            self.report.error(
                node.span,
                format!("`{}` is there already, in line {line}", clipped(&text)),
                "take one of them out",
            );
            return Some(());
        }
        if open.keys.len() >= MOST_KEYS {
            self.report.error(
                node.span,
                format!("a map has more than {MOST_KEYS} keys"),
                "no pipeline needs more than a few",
            );
            return None;
        }
        open.keys.insert(text.clone(), node.span.start);
        open.key = Some((text, node.span));
        Some(())
    }
}

fn broken(span: Span) -> Anchored {
    Anchored {
        node: Node {
            kind: Kind::Broken,
            span,
        },
        nodes: 1,
        bytes: 0,
        depth: 0,
    }
}

/// Tells what is wrong with the YAML itself.
fn syntax(error: &ScanError, text: &str, report: &mut Report<'_>) {
    let offset = error.marker().byte_offset().unwrap_or_default();
    let offset = offset.min(text.len());
    if let Some(tab) = tab_near(error, text, offset) {
        report.error(
            tab..tab + 1,
            "a tab stands where only spaces may",
            "YAML is indented with spaces: put spaces in place of the tab",
        );
        return;
    }
    let (message, help) = match error.kind() {
        ErrorKind::RecursionLimitExceeded => (
            format!("the file is nested deeper than {MOST_DEPTH} levels"),
            "no pipeline needs more than a few",
        ),
        ErrorKind::UnclosedQuotedScalar => (
            "a quote is opened here and never closed".to_owned(),
            "close it, or put a text that has a quote in it into the other kind of quotes",
        ),
        ErrorKind::InvalidQuotedScalarIndent => (
            "a quote above is not closed, or this line of its text has no spaces before it"
                .to_owned(),
            "close the quote, or put this line under the text it belongs to",
        ),
        ErrorKind::InvalidTrailingSingleQuotedScalar => (
            "the text ended at the quote before this".to_owned(),
            "inside of single quotes a quote is written twice: `'it''s'`",
        ),
        ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            "the text ended at the quote before this".to_owned(),
            "inside of double quotes a quote is written `\\\"`",
        ),
        ErrorKind::MisplacedFlowCollectionEnd => (
            "this bracket was never opened".to_owned(),
            "take it out, or put the text into quotes",
        ),
        ErrorKind::UnclosedFlowCollection { open } => (
            format!("`{open}` is never closed"),
            "close it, or put the text into quotes",
        ),
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => (
            format!("`{open}` is closed by `{close}`"),
            "brackets close as they were opened: `{ }`, `[ ]`",
        ),
        ErrorKind::MappingValueNotAllowed
        | ErrorKind::InvalidColonPlacement
        | ErrorKind::InvalidMappingValueWhitespace => (
            "a `:` stands where no key is".to_owned(),
            "a key has as many spaces before it as those beside it, and a text with `: ` in it has quotes",
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (
            "this is no `key: value`".to_owned(),
            "put a `:` and a space after the key, and more spaces before the lines of a longer text",
        ),
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::InvalidIndentation
        | ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::MappingKeyNotAllowed => (
            "this line does not stand under those it belongs to".to_owned(),
            "what belongs together has the same number of spaces before it",
        ),
        ErrorKind::ExpectedFlowMappingSeparator => (
            "a `,` or `}` is missing before this".to_owned(),
            "put a text that has `,`, `{` or `}` in it into quotes",
        ),
        ErrorKind::ExpectedFlowSequenceSeparator => (
            "a `,` or `]` is missing before this".to_owned(),
            "put a text that has `,`, `[` or `]` in it into quotes",
        ),
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => (
            format!("`{character}` cannot stand in a file"),
            "in double quotes it can be written as an escape, such as `\\e` or `\\u001b`",
        ),
        ErrorKind::UnexpectedCharacter { character } => (
            format!("no text begins with `{character}` without quotes"),
            "put it into quotes",
        ),
        ErrorKind::UnknownQuotedScalarEscape => (
            "this is no escape that YAML knows".to_owned(),
            "write `\\\\` for a backslash, or use single quotes, in which it is itself",
        ),
        _ => (
            format!("this is not YAML: {}", error.info()),
            "a text with characters that mean something to YAML goes into quotes",
        ),
    };
    report.error(offset..offset, message, help);
}

/// The tab that an error is about.
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
    // Whatever the parser calls it, a tab before a line is what is wrong with it.
    let within = rest[..before].find('\t');
    let later = || text[offset..].find('\t').map(|at| offset + at);
    within
        .map(|at| line + at)
        .or_else(|| later().filter(|_| is_tab))
}
