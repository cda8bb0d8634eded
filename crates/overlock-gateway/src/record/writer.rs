//! The one thread that writes to the store.
//!
//! What waits while it writes goes to the disk together. Whoever brings something pays for a place
//! in a list and no more: the pages that many runs share are written once for all of them.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use overlock_store::{EndedRun, RunId, Store, Writes};

use super::About;
use crate::events::Later;

/// So long it is waited for more to write, if nobody waits for what there is.
const GATHERING: Duration = Duration::from_millis(50);

/// So many writes are enough to begin with.
const ENOUGH: usize = 1024;

/// So many stories wait at most.
const WAITING: usize = 8192;

/// Something to write.
pub(super) enum Write {
    Story(Story),
    Other(Other),
}

/// A write, and what is done once it is on the disk.
type Other = Box<dyn FnOnce(&mut dyn Writes) -> Done + Send>;

/// What is done once a write is on the disk.
pub(super) enum Done {
    Tell(Later),
    Other(Box<dyn FnOnce() + Send>),
}

/// A run of which nothing was written before it was over.
pub(super) struct Story {
    pub(super) id: RunId,
    pub(super) about: Arc<About>,
    pub(super) began_at: u64,
    pub(super) ended_at: u64,
    pub(super) steps: Vec<String>,
    /// How it ended and what it took, as it is kept.
    pub(super) ending: String,
    /// What is told when it is on the disk.
    pub(super) told: Later,
}

/// Takes nothing any more.
#[derive(Debug)]
pub(super) struct Closed;

/// Hands writes to the thread, which ends when this is dropped and nothing is left to write.
pub(super) struct Writer {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// There is something to do.
    news: Condvar,
}

#[derive(Default)]
struct Waiting {
    writes: Vec<Write>,
    /// Whether somebody waits for one of them.
    is_urgent: bool,
    is_closed: bool,
}

impl Writer {
    pub(super) fn start(store: Arc<dyn Store>) -> Self {
        let queue = Arc::new(Queue::default());
        let own = Arc::clone(&queue);
        thread::spawn(move || {
            // If it panics nobody may go on waiting for it.
            let _end = End(&own);
            own.write_to(&*store);
        });
        Self { queue }
    }

    /// Adds something that somebody waits for.
    pub(super) fn add(&self, write: Other) -> Result<(), Closed> {
        let mut waiting = self.queue.waiting();
        if waiting.is_closed {
            return Err(Closed);
        }
        waiting.writes.push(Write::Other(write));
        waiting.is_urgent = true;
        self.queue.news.notify_one();
        Ok(())
    }

    /// Adds something that nobody waits for; when too much waits it is lost.
    pub(super) fn note(&self, write: Write) {
        let mut waiting = self.queue.waiting();
        let length = waiting.writes.len();
        if waiting.is_closed || length >= WAITING {
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
    /// Writes what comes until nobody is left to bring more.
    fn write_to(&self, store: &dyn Store) {
        let (mut writes, mut done) = (Vec::new(), Vec::new());
        while self.take(&mut writes) {
            let written = store.transact(&mut |made| {
                done.extend(writes.drain(..).map(|write| write.make(made)));
            });
            if written.is_err() {
                // Whoever waits hears of it now, even if nothing could be begun.
                writes.clear();
                done.clear();
                continue;
            }
            for done in done.drain(..) {
                match done {
                    Done::Tell(told) => drop(told),
                    Done::Other(done) => done(),
                }
            }
        }
    }

    /// Waits for what there is to write; nothing if nothing will come.
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

struct End<'a>(&'a Queue);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.is_closed = true;
        waiting.writes.clear();
    }
}

impl Write {
    fn make(self, writes: &mut dyn Writes) -> Done {
        match self {
            Self::Other(write) => write(writes),
            Self::Story(story) => {
                // What cannot be written is not.
                let _ = writes.tell(&EndedRun {
                    begun: story.about.begun(&story.id, story.began_at),
                    steps: &story.steps,
                    at: story.ended_at,
                    outcome: &story.ending,
                });
                Done::Tell(story.told)
            }
        }
    }
}
