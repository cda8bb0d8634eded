//! Writes runs to a store.

use std::sync::Arc;

use overlock_store::{Claim, NewRun, RunId, Store, StoreError, Work};

use crate::pipelines::{
    Answered, EndedPipeline, Entry, KIND, PipelineEnding, PipelineOutcome, PipelineRun, RunUsage,
    WorkTimes, fields,
};
use crate::runs::{RunsError, to_json};
use crate::state::State;
use crate::trace::TraceEvent;

/// How much of a run is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// Requests and answers in full.
    Full,
    /// Times, model, token counts, outcome and upstream errors. Requests with an
    /// `Idempotency-Key` are stored in full, because a retry needs them.
    #[default]
    Metadata,
    /// Nothing.
    Off,
}

impl Record {
    /// All levels.
    pub const ALL: [Self; 3] = [Self::Full, Self::Metadata, Self::Off];

    /// The name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Metadata => "metadata",
            Self::Off => "off",
        }
    }
}

impl PipelineRun {
    /// Records that the run begins.
    pub fn begin(
        &self,
        store: &Arc<dyn Store>,
        id: &RunId,
        model: &str,
    ) -> Result<Recording, StoreError> {
        let claim = store.begin(&NewRun {
            id,
            at: self.began_at,
            model,
            request: &to_json(&self.begun),
            options: &serde_json::json!({ KIND: self.begun.name }).to_string(),
            conditions: &to_json(&self.conditions),
        })?;
        Ok(Recording {
            store: Arc::clone(store),
            claim,
            entries: 0,
            taken_up: None,
            _work: store.work_on(id)?,
        })
    }

    /// Claims the run to resume it.
    pub fn take_up(&self, store: &Arc<dyn Store>, id: &RunId) -> Result<Recording, RunsError> {
        let work = store.work_on(id)?;
        if work.is_none() {
            return Err(RunsError::Busy { id: id.clone() });
        }
        match store.take_up(id)? {
            Some((run, claim)) if run.steps.len() == self.entries as usize => Ok(Recording {
                store: Arc::clone(store),
                claim,
                entries: self.entries,
                taken_up: Some(TakenUp {
                    // An earlier end no longer counts once the run was resumed after it.
                    ended_at: (run.summary.ended_at).filter(|at| *at >= self.worked.last_at),
                }),
                _work: work,
            }),
            _ => Err(StoreError::Superseded { id: id.clone() }.into()),
        }
    }
}

/// The right to write to a run, with the number of entries written so far.
#[derive(Debug)]
pub struct Recording {
    store: Arc<dyn Store>,
    claim: Claim,
    entries: u32,
    /// Set for a resumed run until its resumption is recorded.
    taken_up: Option<TakenUp>,
    /// Keeps other processes from working on the run.
    _work: Option<Work>,
}

/// A run that was begun earlier.
#[derive(Clone, Copy, Debug)]
struct TakenUp {
    /// When it ended, if it had.
    ended_at: Option<u64>,
}

impl Recording {
    /// The run.
    pub fn id(&self) -> &RunId {
        self.claim.id()
    }

    fn add(&mut self, entry: &Entry) -> Result<(), StoreError> {
        self.store
            .add_step(&self.claim, self.entries + 1, &to_json(entry))?;
        self.entries += 1;
        Ok(())
    }

    /// Records that an earlier run is resumed now.
    pub fn record_resume(&mut self, at: u64, worked: &mut WorkTimes) -> Result<(), StoreError> {
        let Some(TakenUp { ended_at }) = self.taken_up.take() else {
            return Ok(());
        };
        self.add(&Entry::TakenUp { at, ended_at })?;
        worked.taken_up(at, ended_at);
        Ok(())
    }

    /// Records an answer of a model within a step.
    pub fn answered(&mut self, step_id: &str, answered: &Answered) -> Result<(), StoreError> {
        self.add(&Entry::Answer {
            step_id: step_id.to_owned(),
            answered: answered.clone(),
        })
    }

    /// Records a finished step.
    pub fn stepped(
        &mut self,
        next: Option<&str>,
        was: &State,
        is: &State,
        event: &TraceEvent,
    ) -> Result<(), StoreError> {
        let (was, mut changed) = (fields(was), fields(is));
        changed.retain(|field, value| was.get(field) != Some(value));
        self.add(&Entry::Step {
            next: next.map(str::to_owned),
            changed,
            event: event.clone(),
        })
    }

    /// Records why a step failed.
    pub fn failed(&mut self, event: &TraceEvent) -> Result<(), StoreError> {
        self.add(&Entry::Failed {
            event: event.clone(),
        })
    }

    /// Records that the run was cancelled, and returns how far it got. The run must have been
    /// stopped before.
    pub fn cancel(&self, at: u64, entry_step_id: &str) -> Result<EndedPipeline, RunsError> {
        let Some(run) = self.store.run(self.id())? else {
            return Err(RunsError::Missing {
                id: self.id().clone(),
            });
        };
        let run = PipelineRun::read(&run)?;
        // Includes the answers of the unfinished step, which were paid for too.
        let took = run.usage();
        let step_id = run.next.unwrap_or_else(|| entry_step_id.to_owned());
        let ended = EndedPipeline {
            outcome: PipelineOutcome::Cancelled { step_id },
            state: run.state,
            trace: run.trace,
        };
        Ok(self.end(at, ended, run.begun.name, took, run.worked, None)?)
    }

    /// Records how the run ended, with the usage of its calls and a short reason for a failure.
    pub fn end(
        &self,
        at: u64,
        ended: EndedPipeline,
        pipeline: String,
        took: RunUsage,
        worked: WorkTimes,
        why: Option<String>,
    ) -> Result<EndedPipeline, StoreError> {
        let ending = PipelineEnding {
            outcome: ended.outcome.clone(),
            pipeline,
            took,
            steps: ended.trace.len() as u64,
            paused_ms: worked.paused_ms,
            paused_at_most: worked.paused_at_most,
            why,
        };
        self.store.end(&self.claim, at, &to_json(&ending))?;
        Ok(ended)
    }
}
