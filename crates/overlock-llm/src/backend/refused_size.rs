//! Which sizes does a server name when it refuses a request that is too large?
//!
//! llama.cpp names them in members of the error, others in its message.

use std::ops::RangeInclusive;

use serde_json::Value;

/// What a refusal says about the size of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedSize {
    /// The tokens that the model takes, answer included.
    pub window: Option<u64>,
    /// The tokens of the request without the answer, or at least so many.
    pub input: Option<u64>,
}

/// What stands before the tokens that a model takes.
const BEFORE_WINDOW: [&str; 5] = [
    "maximum context length is ",
    "maximum context length of ",
    "context length (",
    "available context size (",
    "context window of ",
];

/// What stands before the tokens of a request.
const BEFORE_INPUT: [&str; 4] = [
    "messages resulted in ",
    "the input (",
    "prompt is too long: ",
    "your request has ",
];

/// What stands behind the tokens of a request.
const BEHIND_INPUT: [&str; 4] = [
    " in the messages",
    " in your prompt",
    " input tokens",
    " tokens from the input messages",
];

impl RefusedSize {
    /// Reads the body of a refusal; nothing if it is not about the size of the request, or names
    /// no figure.
    ///
    /// ```
    /// use overlock_llm::RefusedSize;
    /// use serde_json::json;
    ///
    /// let said = json!({ "error": {
    ///     "code": 400, "type": "exceed_context_size_error",
    ///     "message": "the request exceeds the available context size, try increasing it",
    ///     "n_prompt_tokens": 4516, "n_ctx": 2048,
    /// } });
    /// let size = RefusedSize::read(&said).expect("it is about the size");
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
            let mut places = BEHIND_INPUT.iter();
            let input = places.find_map(|behind| number_before(&message, behind));
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

/// What no server has as its context size is not believed: it would hold for every later request.
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

fn number_before(text: &str, behind: &str) -> Option<u64> {
    let (rest, _) = text.split_once(behind)?;
    let begin = rest.rfind(|it: char| !it.is_ascii_digit() && it != ',');
    number(&rest[begin.map_or(0, |begin| begin + 1)..])
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
    fn a_refusal_for_its_size_is_known_without_figures() {
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
    fn a_context_size_that_no_server_has_is_not_believed() {
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
    fn the_messages_of_known_servers_are_understood() {
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
    fn other_refusals_teach_nothing() {
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
