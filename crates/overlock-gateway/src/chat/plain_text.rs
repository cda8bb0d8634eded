//! Is an answer a text that ended by itself?
//!
//! Most answers are, and nothing has to be done with them. A look at a few of their members tells,
//! for a fraction of what it costs to read all of them. Whatever is not certain is read in full.

use std::borrow::Cow;

use overlock_model::Usage;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::reading::{Found, Kind, Reading};
use super::{Continues, Job, skimmed};
use crate::record::Recording;

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    #[serde(default)]
    usage: Option<Told>,
    #[serde(default)]
    timings: Option<Timings>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    finish_reason: Cow<'a, str>,
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
    #[serde(default)]
    tool_calls: Option<IgnoredAny>,
    #[serde(default)]
    refusal: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Told {
    prompt_tokens: u64,
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

/// Where some builds of llama.cpp report the cached input tokens.
#[derive(Deserialize)]
struct Timings {
    #[serde(default)]
    cache_n: Option<u64>,
}

/// An answer that is a text that ended by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlainText {
    /// What the provider says that it took, if it says anything.
    pub(crate) usage: Option<Usage>,
}

/// Whether an answer can be passed on as it came; nothing if it has to be read in full.
pub(crate) fn plain_text(job: &Job, answer: &[u8]) -> Option<PlainText> {
    let is_plain = !job.wish.streams
        && !job.wish.is_json
        && job.wish.continues != Continues::Nothing
        && job.account.trace().is_none()
        && !job.recording.as_ref().is_some_and(Recording::keeps_text);
    if is_plain { glance(answer) } else { None }
}

fn glance(answer: &[u8]) -> Option<PlainText> {
    // Read as text, its strings need not be looked at once more.
    let answer = str::from_utf8(answer).ok()?;
    skimmed::plain_text(answer).or_else(|| read(answer))
}

/// The same of any answer there may be.
fn read(answer: &str) -> Option<PlainText> {
    let completion: Completion<'_> = serde_json::from_str(answer).ok()?;
    let is_plain = completion.error.is_none() && completion.choices.iter().all(is_plain);
    let in_timings = completion.timings.and_then(|timings| timings.cache_n);
    let usage = completion.usage.map(|told| Usage {
        input: told.prompt_tokens,
        output: told.completion_tokens,
        cached: told
            .prompt_tokens_details
            .and_then(|details| details.cached_tokens)
            .or(in_timings),
    });
    is_plain.then_some(PlainText { usage })
}

fn is_plain(choice: &Choice<'_>) -> bool {
    let Message {
        content,
        tool_calls,
        refusal,
    } = &choice.message;
    let says_more = tool_calls.is_some() || refusal.is_some();
    choice.finish_reason == "stop" && !says_more && looks_like_text(content)
}

/// Whether a content is no document, whole or cut, and holds none that is cut.
fn looks_like_text(content: &str) -> bool {
    // JSON begins with a bracket, or in a fence.
    if !content.trim_start().starts_with(['{', '[']) && !content.contains("```") {
        return true;
    }
    let mut reading = Reading::new(Kind::Looks);
    reading.feed(content);
    reading.found() == Found::Unclear
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check_plain(change: impl FnOnce(&mut Value), plain: bool) {
        let mut answer = json!({
            "id": "chatcmpl-1", "object": "chat.completion", "model": "a-model",
            "choices": [{
                "index": 0, "logprobs": null, "finish_reason": "stop",
                "message": { "role": "assistant", "content": "It does.", "refusal": null },
            }],
            "usage": { "prompt_tokens": 110, "completion_tokens": 20, "total_tokens": 130 },
        });
        change(&mut answer);
        let text = glance(answer.to_string().as_bytes());
        assert_eq!(text.is_some(), plain, "{answer}");
        let is_told = text.is_some_and(|text| text.usage.is_some());
        assert_eq!(is_told, plain && answer["usage"].is_object(), "{answer}");
    }

    #[test]
    fn a_text_that_ended_by_itself_is() {
        check_plain(|_| {}, true);
        check_plain(|answer| answer["usage"] = Value::Null, true);
        check_plain(
            |answer| answer["choices"][0]["message"]["tool_calls"] = Value::Null,
            true,
        );
    }

    #[test]
    fn what_may_have_to_change_is_not() {
        for content in ["{\"a\": 1}", "[1, 2"] {
            check_plain(
                |answer| answer["choices"][0]["message"]["content"] = json!(content),
                false,
            );
        }
        for finish in [
            json!("length"),
            json!("tool_calls"),
            json!("content_filter"),
            Value::Null,
        ] {
            check_plain(
                |answer| answer["choices"][0]["finish_reason"] = finish,
                false,
            );
        }
        check_plain(
            |answer| answer["choices"][0]["message"]["content"] = Value::Null,
            false,
        );
        check_plain(
            |answer| answer["choices"][0]["message"]["tool_calls"] = json!([]),
            false,
        );
        check_plain(
            |answer| answer["choices"][0]["message"]["refusal"] = json!("No."),
            false,
        );
        check_plain(|answer| answer["choices"] = Value::Null, false);
        check_plain(|answer| answer["error"] = json!({ "message": "no" }), false);
        check_plain(
            |answer| answer["usage"] = json!({ "prompt_tokens": -1 }),
            false,
        );
    }

    /// Values as they are in answers, and others.
    fn values() -> impl Strategy<Value = String> + Clone {
        let said = prop::sample::select(vec![
            "null",
            "true",
            "0",
            "7",
            "110",
            "01",
            "-1",
            "1.5",
            "1e3",
            "9999999999999999999",
            "[]",
            "{}",
            "[1, null]",
            "{\"a\": [{}]}",
            "\"stop\"",
            "\"length\"",
            "\"It does.\"",
            "\" {\\\"a\\\": 1}\"",
            "\"\\n[1\"",
            "\"a\\u00e9\"",
            "\"\\x\"",
            "\"a\tb\"",
            "\"[é\"",
        ]);
        said.prop_map(str::to_owned)
    }

    /// Mostly what is usual, else anything.
    fn mostly(usual: &'static str) -> impl Strategy<Value = String> + Clone {
        prop_oneof![12 => Just(usual.to_owned()), 1 => values()]
    }

    /// Rarely one more member, which may be there already.
    fn more(names: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
        let member = (prop::sample::select(names), values());
        let member = member.prop_map(|(name, value)| format!(" ,\n\"{name}\" :\t{value}"));
        prop_oneof![12 => Just(String::new()), 1 => member]
    }

    fn answers() -> impl Strategy<Value = String> {
        let message = (
            mostly("\"It \\\"does\\\".\""),
            mostly("null"),
            more(&["content", "tool_calls", "refusal"]),
        );
        let message = message.prop_map(|(content, calls, more)| {
            format!(r#"{{"content": {content},"tool_calls":{calls}{more}}}"#)
        });
        let choice = (
            prop_oneof![12 => message, 1 => values()],
            mostly("\"stop\""),
            more(&["message", "finish_reason", "index"]),
        );
        let choice = choice.prop_map(|(message, finish, more)| {
            format!(r#"{{"message":{message}, "finish_reason":{finish}{more}}}"#)
        });
        let choices = prop::collection::vec(choice, 0..3);
        let choices = choices.prop_map(|choices| format!("[{}]", choices.join(", ")));
        let usage = (
            mostly("110"),
            mostly("20"),
            more(&["prompt_tokens", "completion_tokens", "details"]),
        );
        let usage = usage.prop_map(|(input, output, more)| {
            format!(r#"{{"prompt_tokens":{input},"completion_tokens":{output}{more}}}"#)
        });
        let plain = (
            prop_oneof![12 => choices, 1 => values()],
            prop_oneof![12 => usage, 1 => values()],
            mostly("null"),
            more(&["choices", "usage", "error", "id"]),
        );
        let plain = plain.prop_map(|(choices, usage, error, more)| {
            format!(r#"{{"choices": {choices}, "usage": {usage},"error":{error}{more}}}"#)
        });
        let cut = (plain.clone(), any::<prop::sample::Index>(), "[ \\]}\",x0]?").prop_map(
            |(text, at, other)| {
                let at = text.ceil_char_boundary(at.index(text.len()));
                let end = text.ceil_char_boundary(at + 1);
                format!("{}{other}{}", &text[..at], &text[end..])
            },
        );
        prop_oneof![2 => plain, 1 => cut]
    }

    #[test]
    fn ordinary_answers_are_only_skimmed() {
        for text in [
            r#"{"choices":[{"message":{"content":"It\n does."},"finish_reason":"stop"}]}"#,
            r#"{ "id": "1", "created": 17, "choices": [ { "index": 0, "logprobs": null,
                "message": { "role": "assistant", "content": "It \"does\", é.", "tool_calls": null,
                "annotations": [] }, "finish_reason": "stop" } ],
                "usage": { "prompt_tokens": 110, "completion_tokens": 20, "details": { "a": [0, 1] } },
                "error": null } "#,
        ] {
            let skimmed = skimmed::plain_text(text);
            assert!(skimmed.is_some(), "{text}");
            assert_eq!(skimmed, read(text), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn who_skims_says_what_who_reads_says_or_nothing(answer in answers()) {
            let skimmed = skimmed::plain_text(&answer);
            prop_assert!(skimmed.is_none() || skimmed == read(&answer), "{}", answer);
        }
    }

    proptest! {
        #[test]
        fn the_first_character_tells_as_much_as_all_of_them(content in "[ \\n]{0,2}[a-z{\\[\"`0-9:,\\]} é]{0,12}") {
            let mut reading = Reading::new(Kind::Looks);
            reading.feed(&content);
            prop_assert_eq!(looks_like_text(&content), reading.found() == Found::Unclear);
        }
    }

    #[test]
    fn what_is_no_completion_is_not() {
        for text in ["", "[]", "{", "\"text\"", "{\"choices\": []} and more"] {
            assert!(glance(text.as_bytes()).is_none(), "{text}");
        }
    }
}
