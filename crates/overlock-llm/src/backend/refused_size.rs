//! Reads the sizes that a server names when it rejects a request as too large.
//!
//! llama.cpp has fields for them; other servers name them in the message.

use std::ops::RangeInclusive;

use serde_json::Value;

/// The sizes in the error of a request that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedSize {
    /// The context window of the model in tokens.
    pub window: Option<u64>,
    /// The tokens of the request without the answer, or a lower bound.
    pub input: Option<u64>,
}

/// The text before the size of the window.
const BEFORE_WINDOW: [&str; 5] = [
    "maximum context length is ",
    "maximum context length of ",
    "context length (",
    "available context size (",
    "context window of ",
];

/// The text before the size of the request.
const BEFORE_INPUT: [&str; 4] = [
    "messages resulted in ",
    "the input (",
    "prompt is too long: ",
    "your request has ",
];

/// The text after the size of the request.
const AFTER_INPUT: [&str; 4] = [
    " in the messages",
    " in your prompt",
    " input tokens",
    " tokens from the input messages",
];

impl RefusedSize {
    /// Reads the body of an error; `None` if it is not about the size of the request, or contains
    /// no number.
    ///
    /// ```
    /// use overlock_llm::RefusedSize;
    /// use serde_json::json;
    ///
    /// let body = json!({ "error": {
    ///     "code": 400, "type": "exceed_context_size_error",
    ///     "message": "the request exceeds the available context size, try increasing it",
    ///     "n_prompt_tokens": 4516, "n_ctx": 2048,
    /// } });
    /// let size = RefusedSize::read(&body).expect("it is about the size");
    /// assert_eq!((size.window, size.input), (Some(2048), Some(4516)));
    /// ```
    pub fn read(body: &Value) -> Option<Self> {
        let error = body.get("error").filter(|it| it.is_object());
        let error = error.unwrap_or(body);
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let figure = |name: &str| error.get(name).and_then(Value::as_u64);
        let message = text("message").to_lowercase();
        let window = figure("n_ctx").or_else(|| {
            let mut places = BEFORE_WINDOW.iter();
            let window = places.find_map(|before| number_after(&message, before));
            window.or_else(|| number_before(&message, " maximum"))
        });
        let input = figure("n_prompt_tokens").or_else(|| {
            let mut places = AFTER_INPUT.iter();
            let input = places.find_map(|after| number_before(&message, after));
            let mut places = BEFORE_INPUT.iter();
            input.or_else(|| places.find_map(|before| number_after(&message, before)))
        });
        let is_named = text("type") == "exceed_context_size_error"
            || text("code") == "context_length_exceeded";
        let is_about_size = is_named || is_about_size(&message);
        let size = Self {
            window: window.filter(|window| PLAUSIBLE_WINDOWS.contains(window)),
            input: input.filter(|input| *input > 0),
        };
        let has_figures = size.window.is_some() || size.input.is_some();
        (is_about_size && has_figures).then_some(size)
    }
}

/// Other context sizes are ignored, because the size applies to every later request.
const PLAUSIBLE_WINDOWS: RangeInclusive<u64> = 128..=1 << 30;

/// Whether a message, in lower case, is about the size of a request.
pub(super) fn is_about_size(message: &str) -> bool {
    let words = ["context length", "context size", "prompt is too long"];
    words.iter().any(|words| message.contains(words))
}

fn number_after(text: &str, before: &str) -> Option<u64> {
    let (_, rest) = text.split_once(before)?;
    let end = rest.find(|it: char| !it.is_ascii_digit() && it != ',');
    number(&rest[..end.unwrap_or(rest.len())])
}

fn number_before(text: &str, after: &str) -> Option<u64> {
    let (rest, _) = text.split_once(after)?;
    let start = rest.rfind(|it: char| !it.is_ascii_digit() && it != ',');
    number(&rest[start.map_or(0, |start| start + 1)..])
}

fn number(digits: &str) -> Option<u64> {
    digits.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::backend::BackendError;

    #[test]
    fn recognises_a_size_error_without_numbers() {
        let refusal = |message: &str| BackendError::Status {
            host: "127.0.0.1".to_owned(),
            status: 400,
            message: message.to_owned(),
            retry_after: None,
            size: None,
        };
        let size = "The request exceeds the available Context Size, try increasing it";
        assert!(refusal(size).is_about_size());
        assert!(!refusal("the last message must be from the user").is_about_size());
    }

    #[track_caller]
    fn check(message: &str, window: Option<u64>, input: Option<u64>) {
        for body in [
            json!({ "error": { "message": message, "code": 400 } }),
            json!({ "object": "error", "message": message, "code": 400 }),
        ] {
            let size = RefusedSize::read(&body).map(|size| (size.window, size.input));
            assert_eq!(size, Some((window, input)), "{message}");
        }
    }

    #[test]
    fn ignores_an_implausible_context_size() {
        for window in [0, 10, 1_u64 << 60] {
            let error = json!({
                "type": "exceed_context_size_error", "n_ctx": window, "n_prompt_tokens": 5031,
            });
            let size = RefusedSize::read(&json!({ "error": error }));
            let (window, input) = (None, Some(5031));
            assert_eq!(size, Some(RefusedSize { window, input }));
        }
    }

    #[test]
    fn reads_the_messages_of_known_servers() {
        check(
            "This model's maximum context length is 8192 tokens. However, your messages resulted \
             in 10000 tokens. Please reduce the length of the messages.",
            Some(8192),
            Some(10_000),
        );
        check(
            "This model's maximum context length is 4096 tokens. However, you requested 5000 \
             tokens (4900 in the messages, 100 in the completion).",
            Some(4096),
            Some(4900),
        );
        check(
            "This model's maximum context length is 4096 tokens. However, you requested 16 output \
             tokens and your prompt contains at least 4081 input tokens, for a total of at least \
             4097 tokens.",
            Some(4096),
            Some(4081),
        );
        check(
            "'max_tokens' or 'max_completion_tokens' is too large: 100. This model's maximum \
             context length is 4096 tokens and your request has 4000 input tokens",
            Some(4096),
            Some(4000),
        );
        check(
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            Some(4096),
            Some(5000),
        );
        check(
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You \
             requested a total of 5000 tokens: 4900 tokens from the input messages and 100 tokens \
             for the completion.",
            Some(4096),
            Some(4900),
        );
        check(
            "prompt is too long: 210000 tokens > 200000 maximum",
            Some(200_000),
            Some(210_000),
        );
    }

    #[test]
    fn ignores_other_errors() {
        for message in [
            "",
            "max_tokens must be at least 1",
            "the context length is unknown",
            "you have 4096 tokens left today",
        ] {
            let body = json!({ "error": { "message": message } });
            assert_eq!(RefusedSize::read(&body), None, "{message}");
        }
    }
}
