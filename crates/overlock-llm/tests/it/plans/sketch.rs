//! Compact descriptions of requests: roles and numbers of words.
//!
//! A sketch is small enough for a property test to shrink, and for a million of them to be
//! generated.

use overlock_budget::{
    ContextBlock, CountTokens, Keep, Memory, PlanOptions, ResultOptions, Sharing, Trim,
};
use serde_json::{Value, json};

/// A word is a token. It goes by the name of an encoding, since only these count chats exactly.
pub(crate) struct Words;

impl CountTokens for Words {
    fn name(&self) -> &'static str {
        "cl100k_base"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
        let words = text.split_ascii_whitespace().count() as u64;
        (words <= limit).then_some(words)
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str {
        let words = usize::try_from(tokens).unwrap_or(usize::MAX);
        let pieces = text.split_inclusive(' ');
        match keep {
            Keep::Start => &text[..pieces.take(words).map(str::len).sum()],
            Keep::End => {
                let kept = pieces.rev().take(words).map(str::len).sum::<usize>();
                &text[text.len() - kept..]
            }
        }
    }
}

/// A request, its extras and its plan options.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the switches are independent"
)]
pub(crate) struct Sketch {
    /// Role and number of words of each message. `s`, `u` and `a` are roles; a capital calls a tool
    /// and its lower case is the result; `F` and `f` are the older form of both; `p` is a user's picture.
    pub(crate) messages: Vec<(u8, u8)>,
    /// The number of words in the description of each tool.
    pub(crate) tools: Vec<u8>,
    /// The tool that must be called.
    pub(crate) named: Option<u8>,
    /// Whether the request has a JSON Schema.
    pub(crate) schema: bool,
    /// Importance in tenths, age in days, words.
    pub(crate) memories: Vec<(u8, u8, u8)>,
    /// The number of words of each block.
    pub(crate) context: Vec<u8>,
    pub(crate) requested: Option<u16>,
    pub(crate) window: u16,
    pub(crate) cap: Option<u16>,
    pub(crate) separate: bool,
    pub(crate) grow: bool,
    pub(crate) truncate: bool,
    pub(crate) fill_gaps: bool,
    /// The last exchanges whose results stay, and the size of a batch of older ones.
    pub(crate) results: (u8, u8),
    pub(crate) trim: Trim,
}

pub(crate) const LETTERS: &[u8] = b"suuaaXYZxyzFfp";

/// The tokens to which a result can be truncated.
pub(crate) const RESULT_FLOOR: u64 = 20;

impl Sketch {
    pub(crate) fn request(&self) -> Value {
        let messages: Vec<Value> = self.messages.iter().copied().map(message).collect();
        let mut whole = json!({"model": "words", "messages": messages});
        if !self.tools.is_empty() {
            let tools = self.tools.iter().enumerate();
            whole["tools"] = tools.map(|(place, words)| tool(place, *words)).collect();
            whole["parallel_tool_calls"] = json!(false);
        }
        if let Some(named) = self.named {
            whole["tool_choice"] =
                json!({"type": "function", "function": {"name": format!("tool{named}")}});
        }
        if self.schema {
            let schema = json!({"name": "answer", "schema": {"type": "object"}});
            whole["response_format"] = json!({"type": "json_schema", "json_schema": schema});
        }
        if let Some(requested) = self.requested {
            whole["max_tokens"] = json!(requested);
        }
        whole
    }

    /// The memories and the context with these texts.
    pub(crate) fn extras<'a>(
        &self,
        texts: &'a [String],
    ) -> (Vec<Memory<'a>>, Vec<ContextBlock<'a>>) {
        let (memories, context) = texts.split_at(self.memories.len());
        let memory = |(text, (importance, age, _)): (&'a String, &(u8, u8, u8))| Memory {
            text,
            importance: f64::from(*importance) / 10.0,
            age_days: f64::from(*age),
        };
        let memories = memories.iter().zip(&self.memories).map(memory);
        let context = context.iter().map(|text| ContextBlock {
            name: "block",
            text,
        });
        (memories.collect(), context.collect())
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        let memories = self.memories.iter().map(|(_, _, count)| words(*count));
        memories
            .chain(self.context.iter().map(|count| words(*count)))
            .collect()
    }

    pub(crate) fn options(&self) -> PlanOptions {
        PlanOptions {
            window: self.window.into(),
            sharing: if self.separate {
                Sharing::Separate
            } else {
                Sharing::Shared
            },
            answer_cap: self.cap.map(u64::from),
            requested: 300,
            answer_floor: 50,
            grow: self.grow,
            trim: self.trim,
            summary_tokens: 60,
            truncate_context: self.truncate,
            fill_gaps: self.fill_gaps,
            results: ResultOptions {
                keep: self.results.0.into(),
                batch: self.results.1.into(),
                trigger: None,
                floor: RESULT_FLOOR,
            },
            ..PlanOptions::default()
        }
    }
}

fn message((letter, count): (u8, u8)) -> Value {
    let id = (letter.to_ascii_lowercase() as char).to_string();
    let text = words(count);
    let call = |name: &str| json!({"name": name, "arguments": text});
    match letter {
        b's' => json!({"role": "system", "content": text}),
        b'u' => json!({"role": "user", "content": text}),
        b'p' => json!({"role": "user", "content": [
            {"type": "text", "text": text},
            {"type": "image_url", "image_url": {"url": "https://example.com/x", "detail": "low"}},
        ]}),
        b'a' => json!({"role": "assistant", "content": text}),
        b'F' => json!({"role": "assistant", "content": null, "function_call": call("f")}),
        b'f' => json!({"role": "function", "name": "f", "content": text}),
        letter if letter.is_ascii_uppercase() => json!({
            "role": "assistant",
            "content": null,
            "tool_calls": [{"id": id, "type": "function", "function": call("tool0")}],
        }),
        _ => json!({"role": "tool", "tool_call_id": id, "content": text}),
    }
}

fn tool(place: usize, count: u8) -> Value {
    let properties = json!({"x": {"type": "string"}});
    json!({"type": "function", "function": {
        "name": format!("tool{place}"),
        "description": words(count),
        "parameters": {"type": "object", "properties": properties},
    }})
}

fn words(count: u8) -> String {
    let count = usize::from(count);
    "ab cd ef gh ij kl mn op ".repeat(count / 8 + 1)[..count * 3].to_owned()
}
