//! `load_history`: loads the earlier conversation.

use overlock_budget::ChatRole;
use overlock_llm::RoomMessage;
use overlock_store::Message;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ActionError, Next, Perform, Target, Work};
use overlock_runs::{Role, Turn};

/// Loads the last messages of a room into the history.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct LoadHistory {
    /// The maximum number of messages.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
    /// The room; by default that of the session.
    #[schemars(length(min = 1))]
    pub room: Option<String>,
    /// The persona that answers. Its own messages are answers of the model, those of all others are
    /// messages of users, with their names.
    #[schemars(length(min = 1))]
    pub persona: Option<String>,
}

fn limit() -> u32 {
    10
}

impl Perform for LoadHistory {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let room = self.room.as_ref().or(work.state.session_id.as_ref());
        let Some(room) = room.cloned() else {
            work.note("why", "there is no session, and no room is named");
            return Ok(Next::Onward);
        };
        let messages = work.world.store.messages(&room, self.limit)?;
        let turns = messages.into_iter().map(|message| {
            let role = self.role_of(&message);
            let is_named = self.persona.is_some() && role == Role::User;
            Turn {
                role,
                name: is_named.then_some(message.sender),
                content: message.text,
            }
        });
        work.state.history = turns.collect();
        work.note("room", &room);
        work.note("messages", work.state.history.len());
        Ok(Next::Onward)
    }
}

impl LoadHistory {
    fn role_of(&self, message: &Message) -> Role {
        let Some(persona) = &self.persona else {
            return match message.role.as_str() {
                "assistant" => Role::Assistant,
                "system" => Role::System,
                _ => Role::User,
            };
        };
        let posted = RoomMessage {
            sender: &message.sender,
            role: &message.role,
            text: &message.text,
        };
        match posted.role_for(persona) {
            ChatRole::Assistant => Role::Assistant,
            ChatRole::System => Role::System,
            _ => Role::User,
        }
    }
}
