//! `load_memories`: loads the memories of a persona.

use overlock_budget::MemoryOptions;
use overlock_llm::remembered_since;
use overlock_store::{Importance, Recall};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ActionError, Next, Perform, Target, Work};
use overlock_runs::Remembered;

/// Loads important and recent memories, which are offered to every call.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct LoadMemories {
    /// The persona.
    #[schemars(length(min = 1))]
    pub persona: String,
    /// The minimum importance.
    #[serde(default = "min_importance")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_importance: f64,
    /// The maximum age in days.
    #[serde(default = "max_age_days")]
    #[schemars(range(min = 0.0))]
    pub max_age_days: f64,
    /// The maximum number of memories.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

fn min_importance() -> f64 {
    0.6
}

fn max_age_days() -> f64 {
    7.0
}

fn limit() -> u32 {
    10
}

impl Perform for LoadMemories {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let worth = MemoryOptions {
            importance: self.min_importance,
            days: self.max_age_days,
            count: self.limit as usize,
        };
        let memories = work.world.store.memories(&Recall {
            persona: &self.persona,
            importance: Importance::new(self.min_importance).unwrap_or_default(),
            since: remembered_since(&worth, work.world.began_at),
            limit: self.limit,
        })?;
        let memories = memories.into_iter().map(|memory| Remembered {
            text: memory.text,
            importance: memory.importance.get(),
            at: memory.at,
        });
        work.state.memories = memories.collect();
        work.note("persona", &self.persona);
        work.note("memories", work.state.memories.len());
        Ok(Next::Onward)
    }
}
