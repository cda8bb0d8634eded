//! `finalize`: the answer of the run.

use overlock_store::NewMessage;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ActionError, Next, Perform, Place, Target, Work};
use crate::source::Source;

/// Takes the answer, and keeps question and answer in the conversation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Finalize {
    /// What the answer is: `last_model_response`, if nothing is said.
    pub answer_from: Option<String>,
    /// Whether question and answer go into the conversation of the session.
    #[serde(default = "store_turn")]
    pub store_turn: bool,
}

fn store_turn() -> bool {
    true
}

/// So many messages are looked at for a turn that was kept already.
const LOOK_BACK: u32 = 200;

impl Perform for Finalize {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    fn sources(&self) -> Vec<(Place, &str)> {
        super::optional_source("answer_from", self.answer_from.as_deref())
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let source = self.answer_from.as_deref().unwrap_or("last_model_response");
        let answer = Source::read(source)?.text(work.state)?;
        if answer.trim().is_empty() {
            work.warn("the answer is empty");
        }
        if self.store_turn {
            keep_turn(&answer, work)?;
        }
        work.state.answer = Some(answer);
        Ok(Next::Onward)
    }
}

/// Posts question and answer, unless a run that died just after that did so already.
fn keep_turn(answer: &str, work: &mut Work<'_>) -> Result<(), ActionError> {
    let Some(room) = work.state.session_id.clone() else {
        work.note("stored", false);
        return Ok(());
    };
    let (store, at) = (work.world.store, work.world.began_at);
    let question = work.state.user_question.as_str();
    let messages = store.messages(&room, LOOK_BACK)?;
    // Both are posted together, with the time of the run's beginning: no other has both.
    let is_kept = messages.windows(2).any(|pair| {
        pair.iter().all(|message| message.at == at)
            && pair[0].text == question
            && pair[1].text == answer
    });
    if !is_kept {
        let says = |sender, role, text| NewMessage {
            sender,
            role,
            text,
            at,
        };
        store.post(
            &room,
            &[
                says("user", "user", question),
                says(work.pipeline_name, "assistant", answer),
            ],
        )?;
    }
    work.note("stored", room);
    Ok(())
}
