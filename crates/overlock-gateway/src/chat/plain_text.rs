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
}

#[derive(Default, Deserialize)]
struct Told {
    prompt_tokens: u64,
    completion_tokens: u64,
}

/// What an answer took that can be passed on as it came; nothing if it has to be read in full.
pub(crate) fn usage_of(job: &Job, answer: &[u8]) -> Option<Usage> {
    let is_plain = !job.wish.streams
        && !job.wish.is_json
        && job.wish.continues != Continues::Nothing
        && job.account.trace().is_none()
        && !job.recording.as_ref().is_some_and(Recording::is_keyed);
    if is_plain { glance(answer) } else { None }
}

fn glance(answer: &[u8]) -> Option<Usage> {
    // Read as text, its strings need not be looked at once more.
    let answer = str::from_utf8(answer).ok()?;
    skimmed::usage_of(answer).or_else(|| read(answer))
}

/// The same of any answer there may be.
fn read(answer: &str) -> Option<Usage> {
    let completion: Completion<'_> = serde_json::from_str(answer).ok()?;
    let is_plain = completion.error.is_none() && completion.choices.iter().all(is_plain);
    let told = completion.usage.unwrap_or_default();
    is_plain.then_some(Usage {
        input: told.prompt_tokens,
        output: told.completion_tokens,
    })
}

fn is_plain(choice: &Choice<'_>) -> bool {
    if choice.finish_reason != "stop" || choice.message.tool_calls.is_some() {
        return false;
    }
    looks_like_text(&choice.message.content)
}

/// Whether a content cannot be a document, whole or cut.
fn looks_like_text(content: &str) -> bool {
    // JSON looks like it from its first character on.
    if !content.trim_start().starts_with(['{', '[']) {
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
        let usage = glance(answer.to_string().as_bytes());
        assert_eq!(usage.is_some(), plain, "{answer}");
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
        check_plain(|answer| answer["choices"] = Value::Null, false);
        check_plain(|answer| answer["error"] = json!({ "message": "no" }), false);
        check_plain(
            |answer| answer["usage"] = json!({ "prompt_tokens": -1 }),
            false,
        );
    }

    /// Values as they are in answers, and others.
    fn values() -> impl Strategy<Value = String> {
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

    /// Objects of some of these members, some of them twice.
    fn objects(
        names: &'static [&'static str],
        value: BoxedStrategy<String>,
    ) -> BoxedStrategy<String> {
        let usual = prop::sample::select(names);
        let space = prop::sample::select(vec!["", " ", "\n\t"]);
        let member = (usual, value, space)
            .prop_map(|(name, value, space)| format!("{space}\"{name}\"{space}:{value}{space}"));
        prop::collection::vec(member, 0..5)
            .prop_map(|members| format!("{{{}}}", members.join(",")))
            .boxed()
    }

    fn answers() -> impl Strategy<Value = String> {
        let message = objects(&["content", "role", "tool_calls"], values().boxed());
        let good = Just(r#"{"role": "assistant", "content": "It \"does\"."}"#.to_owned());
        let message = prop_oneof![3 => good, 1 => message];
        let choice = message.clone().prop_map(|message| {
            format!(r#"{{"index":0,"message":{message},"finish_reason":"stop"}}"#)
        });
        let member = prop_oneof![message, values()].boxed();
        let other = objects(&["finish_reason", "message", "index"], member);
        let choice = prop_oneof![3 => choice, 1 => other];
        let choices = prop::collection::vec(choice, 0..3);
        let choices = choices.prop_map(|choices| format!("[{}]", choices.join(", ")));
        let usage = objects(
            &["prompt_tokens", "completion_tokens", "details"],
            values().boxed(),
        );
        let good = Just(r#"{"prompt_tokens":110,"completion_tokens":20}"#.to_owned());
        let usage = prop_oneof![3 => good, 1 => usage, 1 => values()];
        let rest = objects(
            &["error", "id", "created", "usage", "choices"],
            values().boxed(),
        );
        let plain = (choices, usage, rest).prop_map(|(choices, usage, rest)| {
            let rest = rest[1..rest.len() - 1].to_owned();
            let comma = if rest.is_empty() { "" } else { "," };
            format!(r#"{{"choices": {choices}, "usage": {usage}{comma}{rest}}}"#)
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
            let skimmed = skimmed::usage_of(text);
            assert!(skimmed.is_some(), "{text}");
            assert_eq!(skimmed, read(text), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn who_skims_says_what_who_reads_says_or_nothing(answer in answers()) {
            let skimmed = skimmed::usage_of(&answer);
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
