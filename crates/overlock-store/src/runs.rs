//! Runs: their records, and the right to write to them.

use std::collections::HashSet;
use std::fmt::{self, Debug, Display, Formatter};
use std::str::FromStr;

use serde::{Serialize, Serializer};
use uuid::fmt::Hyphenated;
use uuid::{Builder, Uuid, Version};

use crate::error::StoreError;
use crate::strategies::StrategyResult;

/// Stores runs.
///
/// Every write is durable before it returns. Only the latest [`Claim`] of a run can write to it: if a
/// process that was thought to be dead continues, its writes are rejected.
pub trait Runs {
    /// Calls `work` once, in one transaction, and commits it.
    fn transact(&self, work: &mut dyn FnMut(&mut dyn Writes)) -> Result<(), StoreError>;

    /// Locks a run for this process; nothing if it is locked already. The lock ends with the process
    /// at the latest.
    fn work_on(&self, id: &RunId) -> Result<Option<Work>, StoreError>;

    /// The record of a run.
    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError>;

    /// The summary of a run, and its steps after the first `steps`.
    fn since(&self, id: &RunId, steps: u32) -> Result<Option<Since>, StoreError>;

    /// The latest runs before this id, or of all, the latest first: ids sort by time.
    fn before(&self, id: Option<&RunId>, count: u32) -> Result<Vec<RunSummary>, StoreError>;

    /// The latest runs, the latest first.
    fn latest(&self, count: u32) -> Result<Vec<RunSummary>, StoreError> {
        self.before(None, count)
    }

    /// Which of these runs are locked, by this process or another one: see
    /// [`work_on`](Self::work_on).
    fn worked_on(&self, ids: &[RunId]) -> Result<HashSet<RunId>, StoreError>;

    /// Records that a run begins.
    fn begin(&self, run: &NewRun<'_>) -> Result<Claim, StoreError> {
        transact(self, |writes| writes.begin(run))?
    }

    /// Claims a run to resume it. Earlier claims can no longer write to it.
    fn take_up(&self, id: &RunId) -> Result<Option<(Run, Claim)>, StoreError> {
        transact(self, |writes| writes.take_up(id))?
    }

    /// Records a step of a run, counted from 1.
    fn add_step(&self, claim: &Claim, step: u32, body: &str) -> Result<(), StoreError> {
        transact(self, |writes| writes.add_step(claim, step, body))?
    }

    /// Records how a run ended. A resumed run ends again.
    fn end(&self, claim: &Claim, at: u64, outcome: &str) -> Result<(), StoreError> {
        transact(self, |writes| writes.end(claim, at, outcome))?
    }
}

/// Writes in one transaction.
pub trait Writes {
    /// Records that a run begins.
    fn begin(&mut self, run: &NewRun<'_>) -> Result<Claim, StoreError>;

    /// Records that a run begins, unless there is a run with the same key. The digest shows whether
    /// that run has the same request.
    fn begin_once(
        &mut self,
        key: &str,
        digest: &str,
        run: &NewRun<'_>,
    ) -> Result<Begun, StoreError>;

    /// Claims a run to resume it. Earlier claims can no longer write to it.
    fn take_up(&mut self, id: &RunId) -> Result<Option<(Run, Claim)>, StoreError>;

    /// Records a step of a run, counted from 1.
    fn add_step(&mut self, claim: &Claim, step: u32, body: &str) -> Result<(), StoreError>;

    /// Records how a run ended. A resumed run ends again.
    fn end(&mut self, claim: &Claim, at: u64, outcome: &str) -> Result<(), StoreError>;

    /// Records a finished run with all its steps.
    fn add_ended(&mut self, run: &EndedRun<'_>) -> Result<(), StoreError>;

    /// Stores the final answer, to be replayed for the same key.
    fn store_answer(&mut self, claim: &Claim, answer: &str) -> Result<(), StoreError>;

    /// Adds the results of the strategies of a run. Above a limit for each model and for all, the
    /// oldest results are dropped. Results under long names are not stored.
    fn add_strategy_result(
        &mut self,
        server: &str,
        result: &StrategyResult,
    ) -> Result<(), StoreError>;
}

/// Calls `work` in one transaction and returns its result.
pub(crate) fn transact<T>(
    runs: &(impl Runs + ?Sized),
    work: impl FnOnce(&mut dyn Writes) -> T,
) -> Result<T, StoreError> {
    let (mut work, mut done) = (Some(work), None);
    runs.transact(&mut |writes| done = work.take().map(|work| work(writes)))?;
    Ok(done.expect("a committed transaction called `work` once"))
}

/// The lock of a run, held until this is dropped.
#[derive(Debug)]
pub struct Work {
    lock: Box<dyn RunLock>,
}

/// The lock of a run in an engine. Dropping it unlocks the run.
pub(crate) trait RunLock: Debug + Send + Sync {
    /// Whether the run is still locked: a server that restarts forgets its locks.
    fn is_held(&self) -> bool;
}

impl Work {
    pub(crate) fn new(lock: impl RunLock + 'static) -> Self {
        Self {
            lock: Box::new(lock),
        }
    }

    /// Whether the run is still locked: a database server that restarts forgets its locks.
    pub fn is_held(&self) -> bool {
        self.lock.is_held()
    }
}

/// The result of [`Writes::begin_once`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The run began.
    Started(Claim),
    /// This run with the same key and digest exists.
    Exists(RunId),
    /// A run with the same key and another digest exists.
    Mismatch,
    /// Another process is beginning a run with this key.
    Concurrent,
}

/// The id of a run: a UUID of version 7, so that ids sort by time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; LEN]);

/// A text that is not the id of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a run, such as `019a8a3f-5c00-7d2e-9b1c-6f0a4e2d8c31`")]
pub struct RunIdError(pub String);

/// Sorts after every id.
pub(crate) const AFTER_ALL: &str = "~";

const LEN: usize = Hyphenated::LENGTH;

impl RunId {
    /// A new id for a run that begins now.
    pub fn now() -> Self {
        Self::from(Uuid::now_v7())
    }

    /// The id of a run that began so many milliseconds after 1970, with a number in place of the
    /// random bits.
    pub fn new(at: u64, number: u64) -> Self {
        let mut bits = [0; 10];
        bits[2..].copy_from_slice(&number.to_be_bytes());
        Self::from(Builder::from_unix_timestamp_millis(at, &bits).into_uuid())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl From<Uuid> for RunId {
    fn from(id: Uuid) -> Self {
        let mut text = [0; LEN];
        id.hyphenated().encode_lower(&mut text);
        Self(text)
    }
}

impl Display for RunId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Debug for RunId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(self.as_str(), formatter)
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let id = Uuid::try_parse(text.trim()).ok();
        id.filter(|id| id.get_version() == Some(Version::SortRand))
            .map(Self::from)
            .ok_or_else(|| RunIdError(text.to_owned()))
    }
}

/// A run that begins.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    /// Its id.
    pub id: &'a RunId,
    /// When it begins, in milliseconds since 1970.
    pub at: u64,
    /// The model.
    pub model: &'a str,
    /// The request.
    pub request: &'a str,
    /// The options of the run.
    pub options: &'a str,
    /// What else is needed to resume the run.
    pub conditions: &'a str,
}

/// A run that is recorded only when it has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedRun<'a> {
    /// How it began.
    pub begun: NewRun<'a>,
    /// Its steps, in order.
    pub steps: &'a [String],
    /// When it ended, in milliseconds since 1970.
    pub at: u64,
    /// How it ended.
    pub outcome: &'a str,
}

/// The right to write to a run, until it is claimed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub(crate) id: RunId,
    pub(crate) number: i64,
}

impl Claim {
    /// The run.
    pub fn id(&self) -> &RunId {
        &self.id
    }
}

/// The record of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What a list of runs shows.
    pub summary: RunSummary,
    /// The request.
    pub request: String,
    /// What else is needed to resume the run.
    pub conditions: String,
    /// The final answer, if it was stored.
    pub answer: Option<String>,
    /// Its steps, in order.
    pub steps: Vec<String>,
}

/// A run with the steps after those that are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// The current summary.
    pub summary: RunSummary,
    /// The new steps, in order.
    pub steps: Vec<String>,
}

/// A run in a list of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub id: RunId,
    /// When it began, in milliseconds since 1970.
    pub began_at: u64,
    /// When it ended, if it has.
    pub ended_at: Option<u64>,
    /// The model.
    pub model: String,
    /// The options of the run.
    pub options: String,
    /// How it ended, in the format of the caller.
    pub outcome: Option<String>,
    /// What else is needed to resume it, if it has not ended.
    pub open_conditions: Option<String>,
    /// How many steps it has.
    pub steps: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_can_be_parsed() {
        let [one, two] = [1_763_251_200_000, 1_763_251_200_001].map(|at| RunId::new(at, 7));
        assert!(one < two, "{one} {two}");
        assert_eq!(one.to_string().parse(), Ok(one.clone()));
        assert_eq!(one.to_string().to_uppercase().parse(), Ok(one));
        let [first, second] = [(); 2].map(|()| RunId::now());
        assert!(two < first && first < second, "{first} {second}");
    }

    #[test]
    fn rejects_other_texts() {
        for text in [
            "",
            "latest",
            "0ka3dv8mgq7z!",
            "0ka3dv8mgq7zt0",
            "3d0f1f0e-7a4c-4d0c-9a57-0d4d1a3f9b1e",
        ] {
            assert_eq!(text.parse::<RunId>(), Err(RunIdError(text.to_owned())));
        }
    }
}
