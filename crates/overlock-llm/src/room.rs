//! What is a room of many to the one who is to answer in it?
//!
//! A room has any number of speakers, a chat request one who asks and one who answers. To a persona
//! what it said itself are its answers, and whatever anybody else said, whoever they are, is what it
//! is asked. Which memories are worth telling and how they are written is for `plan` to say; here is
//! only which of them it can choose from.
//!
//! Values in, values out: where rooms and memories are kept is not known here, and neither is the
//! time.

use overlock_budget::{ChatRole, MemoryOptions, PlanOptions};
use serde_json::{Map, Value, json};

/// Something that was said in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said<'a> {
    /// Who said it.
    pub sender: &'a str,
    /// As what it was posted.
    pub role: &'a str,
    /// What was said.
    pub text: &'a str,
}

/// What a persona is to answer.
#[derive(Clone, Copy, Debug)]
pub struct RoomQuestion<'a> {
    /// Who is to answer.
    pub persona: &'a str,
    /// The model that answers for it.
    pub model: &'a str,
    /// What it is told before anything that was said.
    pub system: Option<&'a str>,
    /// What was said, the oldest first.
    pub said: &'a [Said<'a>],
    /// The tokens that the answer is to have.
    pub max_tokens: u64,
}

impl Said<'_> {
    /// What it is to a persona: its own answer, or something it is asked, unless it was posted for
    /// everybody to go by.
    pub fn role_for(&self, persona: &str) -> ChatRole {
        match self.role {
            "system" => ChatRole::System,
            _ if self.sender == persona => ChatRole::Assistant,
            _ => ChatRole::User,
        }
    }
}

impl RoomQuestion<'_> {
    /// The request with all of it. The system prompt, if there is one, is its first message, and what
    /// was said follows message by message.
    pub fn request(&self) -> Value {
        let system = self
            .system
            .map(|text| json!({ "role": ChatRole::System.name(), "content": text }));
        let said = self.said.iter().map(|said| {
            let role = said.role_for(self.persona);
            let mut told = Map::new();
            told.insert("role".to_owned(), role.name().into());
            // Of several who ask, a model is told who it is.
            if role == ChatRole::User {
                told.insert("name".to_owned(), name_of(said.sender).into());
            }
            told.insert("content".to_owned(), said.text.into());
            Value::Object(told)
        });
        let messages: Vec<Value> = system.into_iter().chain(said).collect();
        json!({ "model": self.model, "max_tokens": self.max_tokens, "messages": messages })
    }
}

/// How a window is divided where memories are told beside what was said.
///
/// Anybody can say what no window holds. It goes, and all that is older with it, but what is
/// remembered and has room must not go along.
pub fn persona_options(options: &PlanOptions) -> PlanOptions {
    PlanOptions {
        fill_gaps: true,
        ..options.clone()
    }
}

/// Since when memories are worth telling, if it is now; both in milliseconds since 1970.
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
    #[expect(clippy::cast_precision_loss, reason = "nobody counts so exactly")]
    let milliseconds = now.saturating_sub(at) as f64;
    milliseconds / DAY
}

/// The milliseconds of a day.
const DAY: f64 = 24.0 * 60.0 * 60.0 * 1000.0;

/// A name as models take it: letters, digits, `_` and `-`, no more than 64 of them.
fn name_of(sender: &str) -> String {
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
    use overlock_budget::{Approximate, ChatCounter, Extras, Memory, Models, plan};
    use proptest::prelude::*;

    use super::*;

    fn said<'a>(sender: &'a str, role: &'a str) -> Said<'a> {
        Said {
            sender,
            role,
            text: "x",
        }
    }

    #[test]
    fn what_a_persona_said_are_its_answers_and_everything_else_is_asked() {
        for (sender, role, expected) in [
            ("ana", "user", ChatRole::User),
            ("helper", "user", ChatRole::Assistant),
            ("helper", "assistant", ChatRole::Assistant),
            // Another persona's answer is a question to this one.
            ("other", "assistant", ChatRole::User),
            ("ana", "whatever", ChatRole::User),
            ("helper", "system", ChatRole::System),
        ] {
            let found = said(sender, role).role_for("helper");
            assert_eq!(found, expected, "{sender} as {role}");
        }
    }

    #[test]
    fn a_question_begins_with_its_system_prompt_and_names_who_asks() {
        let question = RoomQuestion {
            persona: "helper",
            model: "gpt-4o",
            system: Some("Be brief."),
            said: &[said("Jörg K.", "user"), said("helper", "user")],
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
    fn a_message_that_no_window_holds_takes_no_memory_along() {
        let long = "word ".repeat(100_000);
        let text = |text| Said {
            text,
            ..said("ana", "user")
        };
        let question = RoomQuestion {
            persona: "helper",
            model: "gpt-4",
            system: None,
            said: &[text("first"), text(&long), text("then"), text("last")],
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
        let options = persona_options(&PlanOptions::for_model(&found.model));
        let plan = plan(&request, &extras, &counter, &options).expect("the question fits");
        assert_eq!(plan.kept_messages, [2, 3]);
        assert_eq!(plan.memory_count, 1);
        assert!(plan.fits());
    }

    #[test]
    fn memories_are_told_for_as_long_as_the_options_say() {
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
        fn whatever_is_said_can_be_asked(
            speakers in proptest::collection::vec((".{0,80}", ".{0,9}", ".{1,20}"), 1..6),
            system in proptest::option::of(".{0,9}"),
            persona in ".{0,9}",
        ) {
            let said: Vec<Said<'_>> = speakers
                .iter()
                .map(|(sender, role, text)| Said { sender, role, text })
                .collect();
            let question = RoomQuestion {
                persona: &persona,
                model: "gpt-4o",
                system: system.as_deref(),
                said: &said,
                max_tokens: 9,
            };
            let request = question.request();
            let messages = request["messages"].as_array().cloned().unwrap_or_default();
            prop_assert_eq!(messages.len(), said.len() + usize::from(system.is_some()));
            for (message, said) in messages.iter().rev().zip(said.iter().rev()) {
                prop_assert_eq!(&message["content"], said.text);
                let name = message["name"].as_str().unwrap_or_default();
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                prop_assert!(name.len() <= 64 && name.bytes().all(is_plain));
            }
            prop_assert!(ChatRequest::from_value(request).is_ok());
        }
    }
}
