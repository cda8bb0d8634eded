//! A cache of the usage of unfinished runs.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use overlock_runs::RunProgress;
use overlock_store::{RunId, RunSummary, StoreError};

use overlock_runs::Tally;

/// The most runs in the cache.
const MOST_RUNS: usize = 4096;

/// The usage of an unfinished run, which must be computed from its steps.
#[derive(Clone, Debug)]
pub(crate) enum UnfinishedUsage {
    /// Not computed: the run has ended, or a process works on it.
    None,
    /// The progress of a pipeline.
    Pipeline(Box<RunProgress>),
    /// The usage of another run that was interrupted.
    Interrupted(Tally),
}

/// Whether a process works on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// The run has ended, or a known process works on it.
    Known,
    /// Another gateway may work on it.
    Elsewhere,
    /// No process works on it.
    Interrupted,
}

/// The usage of unfinished runs, computed again when a run has more steps.
#[derive(Default)]
pub(crate) struct UnfinishedRuns {
    runs: Mutex<HashMap<RunId, (u64, Liveness, UnfinishedUsage)>>,
}

impl UnfinishedRuns {
    /// The usage of a run, from the cache or from `read`.
    pub(crate) fn usage(
        &self,
        run: &RunSummary,
        liveness: Liveness,
        read: impl FnOnce() -> Result<UnfinishedUsage, StoreError>,
    ) -> Result<UnfinishedUsage, StoreError> {
        let locked = || self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((steps, was, usage)) = locked().get(&run.id)
            && (*steps, *was) == (run.steps, liveness)
        {
            return Ok(usage.clone());
        }
        let usage = read()?;
        let mut runs = locked();
        if runs.len() < MOST_RUNS || runs.contains_key(&run.id) {
            runs.insert(run.id.clone(), (run.steps, liveness, usage.clone()));
        }
        Ok(usage)
    }

    /// Removes the runs that have ended.
    pub(crate) fn forget_ended(&self, listed: &[RunSummary]) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if !runs.is_empty() {
            for run in listed.iter().filter(|run| run.ended_at.is_some()) {
                runs.remove(&run.id);
            }
        }
    }
}
