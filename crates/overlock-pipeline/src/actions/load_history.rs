//! `load_history`: loads the earlier conversation.

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
        let turns = messages.into_iter().map(|message| Turn {
            role: match message.role.as_str() {
                "assistant" => Role::Assistant,
                "system" => Role::System,
                _ => Role::User,
            },
            content: message.text,
        });
        work.state.history = turns.collect();
        work.note("room", &room);
        work.note("messages", work.state.history.len());
        Ok(Next::Onward)
    }
}
