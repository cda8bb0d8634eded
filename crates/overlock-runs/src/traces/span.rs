//! Spans in the JSON encoding of OTLP.

use std::borrow::Cow;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::context::TraceContext;

/// A finished span.
#[derive(Debug)]
pub struct Span {
    /// Its ids.
    pub context: TraceContext,
    /// The id of its parent span.
    pub parent: Option<u64>,
    /// Its name.
    pub name: String,
    /// The side of the connection it describes.
    pub kind: Kind,
    /// When it began.
    pub begun: Moment,
    /// How long it took.
    pub took: Duration,
    /// Its attributes.
    pub attributes: Attributes,
    /// Whether it failed.
    pub has_failed: bool,
}

/// The side of a connection that a span describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No connection.
    Internal,
    /// The server.
    Server,
    /// The client.
    Client,
}

/// A time at which a span begins.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The wall-clock time.
    at: SystemTime,
    /// The monotonic time.
    instant: Instant,
}

/// The attributes of a span, with OpenTelemetry's names.
#[derive(Debug, Default)]
pub struct Attributes(Vec<Value>);

/// The maximum length in characters of a text not chosen by us.
const LONGEST: usize = 256;

impl Moment {
    /// The current time.
    pub fn now() -> Self {
        Self {
            at: SystemTime::now(),
            instant: Instant::now(),
        }
    }

    /// A time in milliseconds since 1970.
    pub fn at_milliseconds(milliseconds: u64) -> Self {
        let since = Duration::from_millis(milliseconds);
        Self {
            at: UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH),
            instant: Instant::now(),
        }
    }

    /// The time since then.
    pub fn elapsed(self) -> Duration {
        self.instant.elapsed()
    }
}

impl Attributes {
    /// Adds a text.
    pub fn text(&mut self, name: &str, text: impl AsRef<str>) {
        self.add(name, &string(text.as_ref()));
    }

    /// Adds a text, if there is one.
    pub fn maybe(&mut self, name: &str, text: Option<impl AsRef<str>>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// Adds a number.
    pub fn number(&mut self, name: &str, number: u64) {
        // OTLP writes 64-bit integers as strings, and signed.
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.add(name, &json!({ "intValue": number.to_string() }));
    }

    /// Adds a list of texts.
    pub fn texts(&mut self, name: &str, texts: &[String]) {
        let values: Vec<Value> = texts.iter().map(|text| string(text)).collect();
        self.add(name, &json!({ "arrayValue": { "values": values } }));
    }

    fn add(&mut self, name: &str, value: &Value) {
        self.0.push(json!({ "key": name, "value": value }));
    }

    pub(crate) fn into_json(self) -> Value {
        Value::Array(self.0)
    }
}

fn string(text: &str) -> Value {
    json!({ "stringValue": &*shortened(text) })
}

/// Shortens a text to the maximum length of an attribute.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        None => Cow::Borrowed(text),
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
    }
}

impl Span {
    pub(crate) fn into_json(self) -> Value {
        let begun = self.begun.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let kind = match self.kind {
            Kind::Internal => 1,
            Kind::Server => 2,
            Kind::Client => 3,
        };
        let mut span = json!({
            "traceId": format!("{:032x}", self.context.trace),
            "spanId": format!("{:016x}", self.context.span),
            "name": self.name,
            "kind": kind,
            "startTimeUnixNano": begun.as_nanos().to_string(),
            "endTimeUnixNano": begun.saturating_add(self.took).as_nanos().to_string(),
            "attributes": self.attributes.into_json(),
            "status": {},
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        if self.has_failed {
            span["status"] = json!({ "code": 2 });
        }
        span
    }
}
