//! Plans that can be checked by hand, and the laws of all plans.

use serde_json::{Value, json};

use super::*;
use crate::count::{CountTokens, Keep};
use crate::models::{Found, How, Model};

/// A word is a token.
struct Words;

impl CountTokens for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
        let words = text.split_whitespace().count() as u64;
        (words <= limit).then_some(words)
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, _: Keep) -> &'text str {
        let end = text
            .split_inclusive(' ')
            .take(usize::try_from(tokens).unwrap_or(usize::MAX));
        &text[..end.map(str::len).sum()]
    }
}

fn counter() -> ChatCounter<'static> {
    let found = Found {
        entry: Some("words".to_owned()),
        model: Model {
            tokenizer: Some("words".into()),
            ..Model::default()
        },
        how: How::Exact,
    };
    ChatCounter::with_counter(&found, &Words)
}

fn words(count: usize) -> String {
    vec!["word"; count].join(" ")
}

/// A conversation of messages of ten tokens: `s`, `u` and `a` speak as their roles.
fn conversation(letters: &str) -> Vec<Value> {
    let message = |letter: char| {
        let role = match letter {
            's' => "system",
            'u' => "user",
            _ => "assistant",
        };
        json!({"role": role, "content": words(6)})
    };
    letters.chars().map(message).collect()
}

#[test]
fn the_oldest_messages_go_first() {
    let messages = conversation("suauau");
    let request = ChatRequest::from_value(json!({"messages": messages, "max_tokens": 20}));
    let request = request.expect("it is a request");
    let options = PlanOptions {
        window: 50 + 20 + 3 + 45,
        ..PlanOptions::default()
    };
    let plan = plan(&request, &Extras::default(), &counter(), &options).expect("it fits");
    assert_eq!(plan.kept_messages, [0, 3, 4, 5]);
    assert_eq!(plan.input_token_count, 43);
    assert!(plan.fits());
}
