//! `loop_guard`: limits how often a loop is repeated.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ActionError, KeyPath, Next, Perform, Target, Work, exclusive};
use crate::file::Findings;

/// Counts the repetitions of a loop.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct LoopGuard {
    /// How often a run may pass.
    pub max_turn_loops: Option<u64>,
    /// The setting with that number; by default `max_turn_loops`.
    pub max_turn_loops_from_settings: Option<String>,
    /// The next step while the run may pass.
    pub on_allow: String,
    /// The next step after that.
    pub on_deny: String,
}

impl LoopGuard {
    fn setting(&self) -> &str {
        let named = self.max_turn_loops_from_settings.as_deref();
        named.unwrap_or("max_turn_loops")
    }
}

impl Perform for LoopGuard {
    fn targets(&self) -> Vec<Target<'_>> {
        vec![
            Target::new("on_allow", &self.on_allow),
            Target::new("on_deny", &self.on_deny),
        ]
    }

    fn settings(&self) -> Vec<(KeyPath, &str)> {
        match (self.max_turn_loops, &self.max_turn_loops_from_settings) {
            (Some(_), _) => Vec::new(),
            (None, Some(name)) => vec![(KeyPath::of("max_turn_loops_from_settings"), name)],
            (None, None) => vec![(KeyPath::of("action"), self.setting())],
        }
    }

    fn check(&self, findings: &mut Findings<'_>) {
        if self.max_turn_loops.is_some() && self.max_turn_loops_from_settings.is_some() {
            exclusive(findings, "max_turn_loops", "max_turn_loops_from_settings");
        }
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let named = || work.settings.number(self.setting());
        let most = self.max_turn_loops.or_else(named).unwrap_or_default();
        let counter = work.state.loop_counters.entry(work.step_id.to_owned());
        let passed = counter.or_default();
        let is_allowed = *passed < most;
        if is_allowed {
            *passed += 1;
        }
        let passed = *passed;
        work.note("passed", passed);
        work.note("max_turn_loops", most);
        work.decide(if is_allowed { "on_allow" } else { "on_deny" });
        let target = if is_allowed {
            &self.on_allow
        } else {
            &self.on_deny
        };
        Ok(Next::To(target.clone()))
    }
}
