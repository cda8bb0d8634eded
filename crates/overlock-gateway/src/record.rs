//! Records runs in the store.
//!
//! One thread writes for all runs, so that a thousand runs cost little more than one. Callers wait
//! only for writes that must not be lost.

mod live_progress;
mod lost;
mod recording;
mod writer;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::HeaderName;
use overlock_runs::{Pricing, Record};
use overlock_store::{NewRun, RunId, Store, StoreError, StrategyResult, Work, Writes};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::clock::now;
use crate::events::{Events, PendingEvent};
use live_progress::ProgressMap;
pub(crate) use live_progress::{AnswerProgress, LiveProgress};
pub(crate) use lost::LostRecords;
pub(crate) use recording::{EarlierSteps, Recording};
use writer::{AfterCommit, Closed, Write, Writer};

/// The response header with the id of the run.
pub(crate) static RUN: HeaderName = HeaderName::from_static("x-overlock-run");

/// Records the runs of this process.
pub(crate) struct Recorder {
    store: Arc<dyn Store>,
    writer: Writer,
    /// A lock held for the life of this process, so that other processes can see whether it runs.
    presence: Option<Presence>,
    /// The runs in progress in this process.
    live: Mutex<HashSet<RunId>>,
    /// The event log.
    pub(crate) events: Arc<Events>,
    /// The progress of answers in progress.
    pub(crate) progress: ProgressMap,
    /// The prices of models.
    pub(crate) pricing: Arc<Pricing>,
}

/// The lock of this process in the store.
struct Presence {
    id: RunId,
    /// A mutex, so that only one task acquires the lock again after it was lost.
    work: tokio::sync::Mutex<Option<Work>>,
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the store is closed for writing")]
    Closed,
}

impl Recorder {
    /// Starts to record in a store. Events have no more content than the records.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        record: Record,
        pricing: Pricing,
        lost: LostRecords,
    ) -> Self {
        let presence = || Presence {
            id: RunId::now(),
            work: tokio::sync::Mutex::default(),
        };
        Self {
            writer: Writer::start(Arc::clone(&store), lost),
            // Otherwise runs are recorded at their end, or have a lock each.
            presence: (record == Record::Full).then(presence),
            store,
            live: Mutex::new(HashSet::new()),
            events: Arc::new(Events::new(now(), record == Record::Full)),
            progress: ProgressMap::default(),
            pricing: Arc::new(pricing),
        }
    }

    /// The id of this process in the store, if it has one.
    pub(crate) fn worker(&self) -> Option<&RunId> {
        self.presence.as_ref().map(|presence| &presence.id)
    }

    /// The same, once its lock is held; `None` if the lock cannot be acquired.
    pub(crate) async fn locked_worker(&self) -> Option<&RunId> {
        let Presence { id, work } = self.presence.as_ref()?;
        let mut work = work.lock().await;
        if !work.as_ref().is_some_and(Work::is_held) {
            let (store, own, lost) = (Arc::clone(&self.store), id.clone(), work.take());
            // The store may be on another machine, so this may block.
            let held = spawn_blocking(move || {
                // A lost lock must be released before it can be acquired again.
                drop(lost);
                store.work_on(&own)
            });
            *work = held.await.ok()?.ok()?;
        }
        work.is_some().then_some(id)
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Writes, and waits until the write is on disk.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Writes) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, RecordError> {
        let (sender, written) = oneshot::channel();
        let added = self.writer.add(Box::new(move |writes| {
            let result = work(writes);
            AfterCommit::Other(Box::new(move || {
                // The caller may have stopped waiting.
                let _ = sender.send(result);
            }))
        }));
        added.map_err(|Closed| RecordError::Closed)?;
        // A failed commit drops the sender.
        Ok(written.await.map_err(|_| RecordError::Closed)??)
    }

    /// Waits until all earlier writes are on disk.
    pub(crate) async fn settle(&self) {
        // Reading is possible even if writing fails.
        let _ = self.write(|_| Ok(())).await;
    }

    /// Records the results of strategies in a run, without waiting.
    pub(crate) fn note_strategies(&self, server: String, result: StrategyResult) {
        self.writer.note(Write::Noted(Box::new(move |writes| {
            // Results that cannot be written will be observed again.
            let _ = writes.add_strategy_result(&server, &result);
            AfterCommit::Other(Box::new(|| {}))
        })));
    }

    /// Writes without waiting, and publishes an event afterwards.
    fn note(
        &self,
        event: PendingEvent,
        work: impl FnOnce(&mut dyn Writes) -> Result<(), StoreError> + Send + 'static,
    ) {
        self.writer.note(Write::Noted(Box::new(move |writes| {
            AfterCommit::noted(work(writes), event)
        })));
    }

    /// Locks a run, unless this or another process holds its lock.
    pub(crate) async fn lock(self: &Arc<Self>, id: &RunId) -> Result<Option<RunLock>, RecordError> {
        if !self.live().insert(id.clone()) {
            return Ok(None);
        }
        let mut lock = RunLock {
            recorder: Arc::clone(self),
            id: id.clone(),
            work: None,
        };
        let (store, id) = (Arc::clone(&self.store), id.clone());
        // The store may be on another machine, so this may block.
        let work = spawn_blocking(move || store.work_on(&id)).await;
        lock.work = work.map_err(|_| RecordError::Closed)??;
        Ok(lock.work.is_some().then_some(lock))
    }

    /// Whether a run is in progress in this process.
    pub(crate) fn is_live(&self, id: &RunId) -> bool {
        self.live().contains(id)
    }

    /// Whether no run is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.live().is_empty()
    }

    /// The runs in progress, the latest first.
    pub(crate) fn running(&self) -> Vec<RunId> {
        let mut running: Vec<RunId> = self.live().iter().cloned().collect();
        running.sort_unstable_by(|one, other| other.cmp(one));
        running
    }

    fn live(&self) -> std::sync::MutexGuard<'_, HashSet<RunId>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lock of a run, released on drop: a retry with the same key needs the lock.
pub(crate) struct RunLock {
    recorder: Arc<Recorder>,
    id: RunId,
    work: Option<Work>,
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // The store's lock is released first, so that a run that is free here is free everywhere.
        drop(self.work.take());
        self.recorder.live().remove(&self.id);
    }
}

/// The recorded request of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunInfo {
    pub(crate) model: String,
    pub(crate) request: String,
    pub(crate) options: String,
    pub(crate) conditions: String,
}

impl RunInfo {
    pub(crate) fn begun<'a>(&'a self, id: &'a RunId, at: u64) -> NewRun<'a> {
        NewRun {
            id,
            at,
            model: &self.model,
            request: &self.request,
            options: &self.options,
            conditions: &self.conditions,
        }
    }
}

#[cfg(test)]
mod tests {
    use overlock_llm::{Outcome, Usage};
    use overlock_runs::ListedRun;
    use overlock_store::{Access, StoreAddress};
    use prometheus_client::metrics::counter::Counter;

    use super::*;
    use crate::captured_log::CapturedLog;

    fn about() -> Arc<RunInfo> {
        Arc::new(RunInfo {
            model: "a-model".to_owned(),
            request: "{}".to_owned(),
            options: "{}".to_owned(),
            conditions: "{}".to_owned(),
        })
    }

    fn pricing() -> Pricing {
        Pricing::new(overlock_budget::Models::default(), "USD")
    }

    fn recorder(record: Record) -> Arc<Recorder> {
        let store = overlock_store::in_memory().expect("a store");
        let lost = LostRecords::default();
        Arc::new(Recorder::start(store, record, pricing(), lost))
    }

    #[tokio::test]
    async fn metadata_are_written_when_the_run_ends() {
        let recorder = recorder(Record::Metadata);
        let recording = Recording::metadata(&recorder, about());
        recorder.settle().await;
        assert_eq!(recorder.store().latest(9).expect("a list").len(), 0);
        let usage = Some(Usage {
            input: 30,
            output: 7,
            cached: None,
        });
        let ended = recording.end(&Outcome::Complete, usage, None).await;
        ended.expect("it is recorded");
        recorder.settle().await;
        let run = &recorder.store().latest(9).expect("a list")[0];
        let listed = ListedRun::from(run);
        assert_eq!(listed.outcome, Some("complete"));
        let tally = listed.tally.expect("usage");
        assert_eq!((tally.input_tokens, tally.output_tokens), (30, 7));
    }

    #[tokio::test]
    async fn a_dropped_run_is_cancelled() {
        for record in [Record::Metadata, Record::Full] {
            let recorder = recorder(record);
            match record {
                Record::Full => drop(Recording::begin(&recorder, about()).await),
                _ => drop(Recording::metadata(&recorder, about())),
            }
            recorder.settle().await;
            let run = &recorder.store().latest(9).expect("a list")[0];
            let outcome = run.outcome.as_deref().expect("an end");
            assert!(outcome.contains("cancelled"), "{outcome}");
        }
    }

    #[tokio::test]
    async fn a_run_has_one_lock_at_a_time() {
        let recorder = recorder(Record::Off);
        let id = RunId::now();
        let lock = async || recorder.lock(&id).await.expect("a store");
        let first = lock().await.expect("the run is not locked");
        assert!(lock().await.is_none());
        drop(first);
        assert!(lock().await.is_some());
    }

    #[tokio::test]
    async fn a_write_fails_when_the_writer_has_panicked() {
        let recorder = recorder(Record::Off);
        let write = recorder.write(|_| -> Result<(), StoreError> { panic!("a defect") });
        assert!(matches!(write.await, Err(RecordError::Closed)));
        let write = recorder.write(|_| Ok(()));
        assert!(matches!(write.await, Err(RecordError::Closed)));
    }

    #[tokio::test]
    async fn a_write_fails_when_no_transaction_can_begin() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = StoreAddress::Sqlite(folder.path().join("runs.db"));
        overlock_store::open(&address, Access::Create).expect("a store");
        let store = overlock_store::open(&address, Access::Read).expect("a store to look at");
        let mut log = CapturedLog::start();
        // The thread that writes reports it.
        log.thread = None;
        let count = Counter::default();
        let lost = LostRecords::new(count.clone());
        let recorder = Arc::new(Recorder::start(store, Record::Full, pricing(), lost));
        for _ in 0..2 {
            drop(Recording::metadata(&recorder, about()));
            let write = recorder.write(|_| Ok(()));
            assert!(matches!(write.await, Err(RecordError::Closed)));
        }
        // Both runs are lost, and the first failure is reported.
        assert_eq!(count.get(), 2);
        let lines = log.lines();
        let messages = lines.iter().filter_map(|line| line["message"].as_str());
        let of_store =
            messages.filter(|it| it.contains("cannot be written: ") && it.contains("readonly"));
        assert_eq!(of_store.count(), 1, "{lines:?}");
    }

    #[tokio::test]
    async fn concurrent_runs_have_different_ids() {
        let recorder = recorder(Record::Off);
        let begun = (0..300).map(|_| Recording::begin(&recorder, about()));
        let begun = futures_util::future::join_all(begun).await;
        assert!(begun.iter().all(Result::is_ok));
        assert_eq!(recorder.store().latest(999).expect("a list").len(), 300);
    }
}
