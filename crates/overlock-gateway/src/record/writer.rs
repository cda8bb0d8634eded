//! The single thread that writes to the store.
//!
//! Writes that queue up during a transaction go into the next one together, so that pages shared by
//! many runs are written once.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use overlock_store::{EndedRun, RunId, Store, StoreError, Writes};

use super::RunInfo;
use super::lost::LostRecords;
use crate::events::PendingEvent;

/// How long a batch waits for more writes, if no caller waits for one of them.
const GATHERING: Duration = Duration::from_millis(50);

/// The writes that start a batch at once.
const ENOUGH: usize = 1024;

/// The queue length from which writes without a waiting caller are dropped.
const MOST_WAITING: usize = 8192;

/// A queued write.
pub(super) enum Write {
    EndedRun(EndedRecord),
    /// A write that no caller waits for.
    Noted(Other),
    /// A write that a caller waits for.
    Awaited(Other),
}

/// A write, which returns what to do after the commit.
type Other = Box<dyn FnOnce(&mut dyn Writes) -> AfterCommit + Send>;

/// What to do once a write is on disk.
pub(super) enum AfterCommit {
    Publish(PendingEvent),
    /// The record could not be written.
    Lost(StoreError, PendingEvent),
    Other(Box<dyn FnOnce() + Send>),
}

/// A run that is recorded when it has ended.
pub(super) struct EndedRecord {
    pub(super) id: RunId,
    pub(super) about: Arc<RunInfo>,
    pub(super) began_at: u64,
    pub(super) ended_at: u64,
    pub(super) steps: Vec<String>,
    /// The outcome and the usage, as JSON.
    pub(super) ending: String,
    /// Published when the run is on disk.
    pub(super) event: PendingEvent,
}

/// The writer has stopped.
#[derive(Debug)]
pub(super) struct Closed;

/// Hands writes to the thread, which ends when this is dropped and the queue is empty.
pub(super) struct Writer {
    queue: Arc<Queue>,
}

struct Queue {
    waiting: Mutex<Waiting>,
    /// Signalled when the thread has work.
    news: Condvar,
    lost: LostRecords,
}

#[derive(Default)]
struct Waiting {
    writes: Vec<Write>,
    /// Whether a caller waits for one of them.
    is_urgent: bool,
    is_closed: bool,
}

impl Writer {
    pub(super) fn start(store: Arc<dyn Store>, lost: LostRecords) -> Self {
        let queue = Arc::new(Queue {
            waiting: Mutex::default(),
            news: Condvar::new(),
            lost,
        });
        let own = Arc::clone(&queue);
        thread::spawn(move || {
            // After a panic, waiting callers must get an error.
            let _close = CloseOnDrop(&own);
            own.write_all(&*store);
        });
        Self { queue }
    }

    /// Adds a write that a caller waits for.
    pub(super) fn add(&self, write: Other) -> Result<(), Closed> {
        let mut waiting = self.queue.waiting();
        if waiting.is_closed {
            return Err(Closed);
        }
        waiting.writes.push(Write::Awaited(write));
        waiting.is_urgent = true;
        self.queue.news.notify_one();
        Ok(())
    }

    /// Adds a write that no caller waits for. If the queue is full, the write is dropped.
    pub(super) fn note(&self, write: Write) {
        let mut waiting = self.queue.waiting();
        let length = waiting.writes.len();
        if waiting.is_closed || length >= MOST_WAITING {
            drop(waiting);
            self.queue.lost.add(1, &QueueFull);
            return;
        }
        waiting.writes.push(write);
        if length == 0 || length + 1 == ENOUGH {
            self.queue.news.notify_one();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.waiting().is_closed = true;
        self.queue.news.notify_one();
    }
}

impl Queue {
    /// Writes batches until the queue is closed and empty.
    fn write_all(&self, store: &dyn Store) {
        let (mut writes, mut committed) = (Vec::new(), Vec::new());
        while self.take(&mut writes) {
            let records = writes.iter().filter(|write| !write.is_awaited()).count();
            let written = store.transact(&mut |transaction| {
                committed.extend(writes.drain(..).map(|write| write.run(transaction)));
            });
            if let Err(error) = written {
                self.lost.add(records, &error);
                // Dropping the writes reports the error to their callers, even if the transaction
                // could not begin.
                writes.clear();
                committed.clear();
                continue;
            }
            let mut is_complete = true;
            for after in committed.drain(..) {
                match after {
                    AfterCommit::Publish(event) => drop(event),
                    AfterCommit::Lost(error, event) => {
                        is_complete = false;
                        self.lost.add(1, &error);
                        drop(event);
                    }
                    AfterCommit::Other(done) => done(),
                }
            }
            if is_complete {
                self.lost.succeed();
            }
        }
    }

    /// Waits for the next batch; false if the queue is closed and empty.
    fn take(&self, writes: &mut Vec<Write>) -> bool {
        let waiting = self.news.wait_while(self.waiting(), |waiting| {
            waiting.writes.is_empty() && !waiting.is_closed
        });
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let waiting = self.news.wait_timeout_while(waiting, GATHERING, |waiting| {
            waiting.writes.len() < ENOUGH && !waiting.is_urgent && !waiting.is_closed
        });
        let (mut waiting, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.is_urgent = false;
        mem::swap(&mut waiting.writes, writes);
        !writes.is_empty()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct CloseOnDrop<'a>(&'a Queue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.is_closed = true;
        waiting.writes.clear();
    }
}

impl AfterCommit {
    /// What to do after a write that no caller waits for.
    pub(super) fn noted(written: Result<(), StoreError>, event: PendingEvent) -> Self {
        match written {
            Ok(()) => Self::Publish(event),
            Err(error) => Self::Lost(error, event),
        }
    }
}

/// The store is slower than the gateway.
#[derive(Debug, thiserror::Error)]
#[error("too many of them wait for the store")]
struct QueueFull;

impl Write {
    fn is_awaited(&self) -> bool {
        matches!(self, Self::Awaited(_))
    }

    fn run(self, writes: &mut dyn Writes) -> AfterCommit {
        match self {
            Self::Noted(write) | Self::Awaited(write) => write(writes),
            Self::EndedRun(run) => {
                let written = writes.add_ended(&EndedRun {
                    begun: run.about.begun(&run.id, run.began_at),
                    steps: &run.steps,
                    at: run.ended_at,
                    outcome: &run.ending,
                });
                AfterCommit::noted(written, run.event)
            }
        }
    }
}
