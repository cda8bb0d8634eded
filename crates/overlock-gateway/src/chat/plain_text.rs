//! Is an answer a text that ended by itself?
//!
//! Most answers are, and nothing has to be done with them. A look at a few of their members tells,
//! for a fraction of what it costs to read all of them. Whatever is not certain is read in full.

use overlock_model::Usage;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::reading::{Found, Kind, Reading};
use super::{Continues, Job};

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Told>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice {
    finish_reason: String,
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: String,
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
        && !job.recording.as_ref().is_some_and(|it| it.is_keyed());
    if is_plain { glance(answer) } else { None }
}

fn glance(answer: &[u8]) -> Option<Usage> {
    let completion: Completion = serde_json::from_slice(answer).ok()?;
    let is_plain = completion.error.is_none() && completion.choices.iter().all(is_plain);
    let told = completion.usage.unwrap_or_default();
    is_plain.then_some(Usage {
        input: told.prompt_tokens,
        output: told.completion_tokens,
    })
}

fn is_plain(choice: &Choice) -> bool {
    if choice.finish_reason != "stop" || choice.message.tool_calls.is_some() {
        return false;
    }
    let mut reading = Reading::new(Kind::Looks);
    reading.feed(&choice.message.content);
    reading.found() == Found::Unclear
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn what_is_no_completion_is_not() {
        for text in ["", "[]", "{", "\"text\"", "{\"choices\": []} and more"] {
            assert!(glance(text.as_bytes()).is_none(), "{text}");
        }
    }
}
