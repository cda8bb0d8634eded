//! The chat request of a persona that answers in a room with any number of speakers.
//!
//! To the model, the persona's own messages are assistant messages, and those of all others are
//! user messages. `overlock_budget::plan` selects and formats the memories.
//!
//! This module does no I/O: the caller passes the messages and the time.

use overlock_budget::{ChatRole, MemoryOptions};
use serde_json::{Map, Value, json};

/// A message that was posted in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomMessage<'a> {
    /// The name of the sender.
    pub sender: &'a str,
    /// The role it was posted with.
    pub role: &'a str,
    /// The text.
    pub text: &'a str,
}

/// The question to a persona.
#[derive(Clone, Copy, Debug)]
pub struct RoomQuestion<'a> {
    /// The persona that should answer.
    pub persona: &'a str,
    /// The model that answers for it.
    pub model: &'a str,
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The messages of the room, the oldest first.
    pub messages: &'a [RoomMessage<'a>],
    /// The maximum tokens of the answer.
    pub max_tokens: u64,
}

impl RoomMessage<'_> {
    /// The role for the model of a persona: system messages stay system messages.
    pub fn role_for(&self, persona: &str) -> ChatRole {
        match self.role {
            "system" => ChatRole::System,
            _ if self.sender == persona => ChatRole::Assistant,
            _ => ChatRole::User,
        }
    }
}

impl RoomQuestion<'_> {
    /// The chat request: the system prompt, then the messages of the room.
    pub fn request(&self) -> Value {
        let system = self
            .system
            .map(|text| json!({ "role": ChatRole::System.name(), "content": text }));
        let posted = self.messages.iter().map(|posted| {
            let role = posted.role_for(self.persona);
            let mut message = Map::new();
            message.insert("role".to_owned(), role.name().into());
            if role == ChatRole::User {
                message.insert("name".to_owned(), name_for_api(posted.sender).into());
            }
            message.insert("content".to_owned(), posted.text.into());
            Value::Object(message)
        });
        let messages: Vec<Value> = system.into_iter().chain(posted).collect();
        json!({ "model": self.model, "max_tokens": self.max_tokens, "messages": messages })
    }
}

/// Since when memories are included; both times in milliseconds since 1970.
pub fn remembered_since(options: &MemoryOptions, now: u64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "milliseconds are exact far beyond any age that a memory has"
    )]
    let span = (options.days.max(0.0) * DAY) as u64;
    now.saturating_sub(span)
}

/// How old a memory is, in days; both times in milliseconds since 1970.
pub fn age_in_days(at: u64, now: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "the loss is below a millisecond for thousands of years"
    )]
    let milliseconds = now.saturating_sub(at) as f64;
    milliseconds / DAY
}

/// The milliseconds of a day.
const DAY: f64 = 24.0 * 60.0 * 60.0 * 1000.0;

/// A name that the API accepts: at most 64 letters, digits, `_` and `-`.
pub fn name_for_api(sender: &str) -> String {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() || character == '-' {
            character
        } else {
            '_'
        }
    };
    sender.chars().take(64).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use crate::wire::chat::ChatRequest;
    use overlock_budget::{Approximate, ChatCounter, Extras, Memory, Models, PlanOptions, plan};
    use proptest::prelude::*;

    use super::*;

    fn message<'a>(sender: &'a str, role: &'a str) -> RoomMessage<'a> {
        RoomMessage {
            sender,
            role,
            text: "x",
        }
    }

    #[test]
    fn own_messages_are_assistant_messages_and_others_are_user_messages() {
        for (sender, role, expected) in [
            ("ana", "user", ChatRole::User),
            ("helper", "user", ChatRole::Assistant),
            ("helper", "assistant", ChatRole::Assistant),
            // Another persona's answer is a user message.
            ("other", "assistant", ChatRole::User),
            ("ana", "whatever", ChatRole::User),
            ("helper", "system", ChatRole::System),
        ] {
            let role_found = message(sender, role).role_for("helper");
            assert_eq!(role_found, expected, "{sender} as {role}");
        }
    }

    #[test]
    fn a_question_begins_with_its_system_prompt_and_names_who_asks() {
        let question = RoomQuestion {
            persona: "helper",
            model: "gpt-4o",
            system: Some("Be brief."),
            messages: &[message("Jörg K.", "user"), message("helper", "user")],
            max_tokens: 9,
        };
        let expected = json!({ "model": "gpt-4o", "max_tokens": 9, "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "name": "J_rg_K_", "content": "x" },
            { "role": "assistant", "content": "x" },
        ] });
        assert_eq!(question.request(), expected);
    }

    #[test]
    fn a_message_that_fits_no_window_does_not_displace_memories() {
        let long = "word ".repeat(100_000);
        let text = |text| RoomMessage {
            text,
            ..message("ana", "user")
        };
        let question = RoomQuestion {
            persona: "helper",
            model: "gpt-4",
            system: None,
            messages: &[text("first"), text(&long), text("then"), text("last")],
            max_tokens: 500,
        };
        let memory = Memory {
            text: "Ana is tall.",
            importance: 0.9,
            age_days: 1.0,
        };
        let extras = Extras {
            memories: &[memory],
            ..Extras::default()
        };
        let request = ChatRequest::from_value(question.request()).expect("a request");
        let found = Models::default().find("gpt-4");
        let counter = ChatCounter::with_counter(&found, &Approximate);
        let options = PlanOptions::for_model(&found.model);
        let plan = plan(&request, &extras, &counter, &options).expect("the question fits");
        assert_eq!(plan.kept_messages, [2, 3]);
        assert_eq!(plan.memory_count, 1);
        assert!(plan.fits());
    }

    #[test]
    fn memories_are_included_for_the_days_of_the_options() {
        let options = |days| MemoryOptions {
            importance: 0.6,
            days,
            count: 10,
        };
        let now = 1_763_251_200_000;
        let week = 7 * 86_400_000;
        assert_eq!(remembered_since(&options(7.0), now), now - week);
        assert_eq!(remembered_since(&options(-1.0), now), now);
        assert_eq!(remembered_since(&options(f64::INFINITY), now), 0);
        assert!((age_in_days(now - week, now) - 7.0).abs() < 1e-9);
        assert!(age_in_days(now + week, now).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn any_messages_make_a_valid_request(
            speakers in proptest::collection::vec((".{0,80}", ".{0,9}", ".{1,20}"), 1..6),
            system in proptest::option::of(".{0,9}"),
            persona in ".{0,9}",
        ) {
                    let posted: Vec<RoomMessage<'_>> = speakers
                        .iter()
                        .map(|(sender, role, text)| RoomMessage { sender, role, text })
                        .collect();
            let question = RoomQuestion {
                persona: &persona,
                model: "gpt-4o",
                system: system.as_deref(),
                messages: &posted,
                max_tokens: 9,
            };
            let request = question.request();
            let messages = request["messages"].as_array().cloned().unwrap_or_default();
            prop_assert_eq!(messages.len(), posted.len() + usize::from(system.is_some()));
            for (message, posted) in messages.iter().rev().zip(posted.iter().rev()) {
                prop_assert_eq!(&message["content"], posted.text);
                let name = message["name"].as_str().unwrap_or_default();
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                prop_assert!(name.len() <= 64 && name.bytes().all(is_plain));
            }
            prop_assert!(ChatRequest::from_value(request).is_ok());
        }
    }
}
