//! A JSON value as it is written, and ways to lay it out.
//!
//! A value of our own, not serde's: keys may repeat, numbers keep their spelling and strings their
//! escapes, so that "the same" can be checked to the letter.

/// A JSON value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number, literal or string in its own spelling (strings with their quotes).
    Leaf(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

/// How a document is laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Layout {
    Compact,
    Spaced,
    Pretty,
}

impl Value {
    pub(crate) fn write(&self, layout: Layout) -> String {
        enum Step<'a> {
            Value(&'a Value, usize),
            Text(String),
        }
        let mut out = String::new();
        let mut steps = vec![Step::Value(self, 0)];
        let line = |level: usize| match layout {
            Layout::Pretty => format!("\n{}", "  ".repeat(level.min(40))),
            _ => String::new(),
        };
        let comma = if layout == Layout::Spaced { ", " } else { "," };
        let colon = if layout == Layout::Compact { ":" } else { ": " };
        while let Some(step) = steps.pop() {
            let (value, level) = match step {
                Step::Text(text) => {
                    out.push_str(&text);
                    continue;
                }
                Step::Value(value, level) => (value, level),
            };
            let (open, close, len) = match value {
                Value::Leaf(spelling) => {
                    out.push_str(spelling);
                    continue;
                }
                Value::Array(items) => ("[", "]", items.len()),
                Value::Object(members) => ("{", "}", members.len()),
            };
            out.push_str(open);
            let mut inner = Vec::new();
            for at in 0..len {
                let separator = if at == 0 { "" } else { comma };
                let mut before = format!("{separator}{}", line(level + 1));
                let item = match value {
                    Value::Array(items) => &items[at],
                    Value::Object(members) => {
                        before.push_str(&members[at].0);
                        before.push_str(colon);
                        &members[at].1
                    }
                    Value::Leaf(_) => unreachable!("leaves were written above"),
                };
                inner.push(Step::Text(before));
                inner.push(Step::Value(item, level + 1));
            }
            let end = if len == 0 { String::new() } else { line(level) };
            inner.push(Step::Text(format!("{end}{close}")));
            steps.extend(inner.into_iter().rev());
        }
        out
    }
}
