//! `repeat_query_guard`: has this been looked for already?

use schemars::JsonSchema;
use serde::Deserialize;

use super::search_nodes::query;
use super::{ActionError, Next, Perform, Place, Target, Work};

/// Keeps a run from looking for the same thing twice.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RepeatQueryGuard {
    /// Where it goes if this has not been asked in this run.
    pub on_ok: String,
    /// Where it goes if it has.
    pub on_repeat: String,
    /// What is asked: `last_model_response` if there is one, else `user_question`.
    pub query_from: Option<String>,
}

impl Perform for RepeatQueryGuard {
    fn targets(&self) -> Vec<Target<'_>> {
        vec![
            Target::new("on_ok", &self.on_ok),
            Target::new("on_repeat", &self.on_repeat),
        ]
    }

    fn sources(&self) -> Vec<(Place, &str)> {
        super::optional_source("query_from", self.query_from.as_deref())
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let query = query(self.query_from.as_deref(), work)?;
        let is_new = work.state.note_query(&query);
        work.note("query", &query);
        work.decide(if is_new { "on_ok" } else { "on_repeat" });
        let target = if is_new { &self.on_ok } else { &self.on_repeat };
        Ok(Next::To(target.clone()))
    }
}
