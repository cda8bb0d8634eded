//! `repeat_query_guard`: detects repeated queries.

use schemars::JsonSchema;
use serde::Deserialize;

use super::search_nodes::query;
use super::{ActionError, KeyPath, Next, Perform, Target, Work};

/// Checks whether a query was already used in this run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RepeatQueryGuard {
    /// The next step for a new query.
    pub on_ok: String,
    /// The next step for a repeated query.
    pub on_repeat: String,
    /// The field with the query; by default `last_model_response` if it is set, else `user_question`.
    pub query_from: Option<String>,
}

impl Perform for RepeatQueryGuard {
    fn targets(&self) -> Vec<Target<'_>> {
        vec![
            Target::new("on_ok", &self.on_ok),
            Target::new("on_repeat", &self.on_repeat),
        ]
    }

    fn sources(&self) -> Vec<(KeyPath, &str)> {
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
