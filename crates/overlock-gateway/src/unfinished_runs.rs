//! Caches what runs took that have not ended.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use overlock_runs::SoFar;
use overlock_store::{RunId, RunSummary, StoreError};

use overlock_runs::Tally;

/// Of so many runs that have not ended it is remembered what they took.
const MOST_KNOWN: usize = 4096;

/// What a run took that has not ended, which only its steps tell.
#[derive(Clone, Debug)]
pub(crate) enum Taking {
    /// Nobody has looked: it has ended, or somebody works on it.
    Nothing,
    /// One of a pipeline, and how far it has come.
    Pipeline(Box<SoFar>),
    /// Another that nobody works on.
    Left(Tally),
}

/// Who works on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// Nobody has to, or somebody is known to.
    Known,
    /// Another gateway may, which nobody can know.
    Elsewhere,
    /// Nobody does.
    Left,
}

/// What runs took that have not ended. It changes with their steps only, and lists are looked at
/// again and again.
#[derive(Default)]
pub(crate) struct TakingOfRuns {
    known: Mutex<HashMap<RunId, (u64, Whereabouts, Taking)>>,
}

impl TakingOfRuns {
    /// What a run took, read if it has more steps than when it was.
    pub(crate) fn known(
        &self,
        run: &RunSummary,
        at: Whereabouts,
        read: impl FnOnce() -> Result<Taking, StoreError>,
    ) -> Result<Taking, StoreError> {
        let locked = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((steps, was, taking)) = locked().get(&run.id)
            && (*steps, *was) == (run.steps, at)
        {
            return Ok(taking.clone());
        }
        let taking = read()?;
        let mut known = locked();
        if known.len() < MOST_KNOWN || known.contains_key(&run.id) {
            known.insert(run.id.clone(), (run.steps, at, taking.clone()));
        }
        Ok(taking)
    }

    /// Nobody asks any more for what those took that have ended.
    pub(crate) fn forget_ended(&self, runs: &[RunSummary]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.is_empty() {
            for run in runs.iter().filter(|run| run.ended_at.is_some()) {
                known.remove(&run.id);
            }
        }
    }
}
