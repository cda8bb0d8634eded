//! `finalize`: sets the answer of the run.

use overlock_store::NewMessage;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ActionError, KeyPath, Next, Perform, Target, Work};
use crate::source::Source;

/// Sets the answer, and stores question and answer in the conversation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Finalize {
    /// The field with the answer; by default `last_model_response`.
    pub answer_from: Option<String>,
    /// Whether to store question and answer in the session's room.
    #[serde(default = "store_turn")]
    pub store_turn: bool,
    /// The persona that has answered; by default the pipeline.
    #[schemars(length(min = 1))]
    pub persona: Option<String>,
}

fn store_turn() -> bool {
    true
}

/// How many messages are searched for a turn that was already stored.
const LOOK_BACK: u32 = 200;

impl Perform for Finalize {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    fn sources(&self) -> Vec<(KeyPath, &str)> {
        super::optional_source("answer_from", self.answer_from.as_deref())
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let source = self.answer_from.as_deref().unwrap_or("last_model_response");
        let answer = Source::read(source)?.text(work.state)?;
        if answer.trim().is_empty() {
            work.warn("the answer is empty");
        }
        if self.store_turn {
            self.store_turn_once(&answer, work)?;
        }
        work.state.answer = Some(answer);
        Ok(Next::Onward)
    }
}

impl Finalize {
    /// Posts question and answer, unless the run was interrupted after posting them.
    fn store_turn_once(&self, answer: &str, work: &mut Work<'_>) -> Result<(), ActionError> {
        let Some(room) = work.state.session_id.clone() else {
            work.note("stored", false);
            return Ok(());
        };
        let (store, at) = (work.world.store, work.world.began_at);
        let question = work.state.user_question.as_str();
        let messages = store.messages(&room, LOOK_BACK)?;
        // Both messages have the start time of the run, which identifies them.
        let is_stored = messages.windows(2).any(|pair| {
            pair.iter().all(|message| message.at == at)
                && pair[0].text == question
                && pair[1].text == answer
        });
        if !is_stored {
            let message = |sender, role, text| NewMessage {
                sender,
                role,
                text,
                at,
            };
            store.post(
                &room,
                &[
                    message("user", "user", question),
                    message(
                        self.persona.as_deref().unwrap_or(work.pipeline_name),
                        "assistant",
                        answer,
                    ),
                ],
            )?;
        }
        work.note("stored", room);
        Ok(())
    }
}
