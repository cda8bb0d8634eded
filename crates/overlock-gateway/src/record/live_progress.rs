//! The progress of answers in progress, for subscribers of their runs.
//!
//! The writer updates it in place and subscribers poll it, so an answer never waits for a
//! subscriber. Without subscribers nothing is stored.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use overlock_store::RunId;

use super::RunInfo;
use overlock_runs::Tally;

/// The bytes of the end of a text that subscribers can see.
const END: usize = 2000;

/// The progress of all runs that may have subscribers.
#[derive(Default)]
pub(crate) struct ProgressMap {
    all: Mutex<HashMap<RunId, Arc<LiveProgress>>>,
}

/// The progress of one run.
pub(crate) struct LiveProgress {
    /// The request of the run.
    pub(crate) about: Arc<RunInfo>,
    answer: Mutex<AnswerProgress>,
}

/// The part of an answer that has arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerProgress {
    /// The number of the step that the answer will be; 0 while there is none.
    pub(crate) number: u32,
    /// The bytes of its text.
    pub(crate) bytes: u64,
    /// The end of its text.
    pub(crate) end: String,
    /// The usage of the run so far, with the prompt of this call.
    pub(crate) tally: Tally,
}

impl ProgressMap {
    /// All runs with progress.
    pub(crate) fn all(&self) -> Vec<(RunId, Arc<LiveProgress>)> {
        let all = self.locked();
        let all = all.iter().map(|(id, it)| (id.clone(), Arc::clone(it)));
        all.collect()
    }

    /// One run, if it has progress.
    pub(crate) fn get(&self, id: &RunId) -> Option<Arc<LiveProgress>> {
        self.locked().get(id).cloned()
    }

    pub(super) fn add(&self, id: &RunId, about: &Arc<RunInfo>) -> Arc<LiveProgress> {
        let live = Arc::new(LiveProgress {
            about: Arc::clone(about),
            answer: Mutex::default(),
        });
        self.locked().insert(id.clone(), Arc::clone(&live));
        live
    }

    pub(super) fn remove(&self, id: &RunId) {
        self.locked().remove(id);
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<RunId, Arc<LiveProgress>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveProgress {
    /// The current progress.
    pub(crate) fn now(&self) -> AnswerProgress {
        self.locked().clone()
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, AnswerProgress> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswerProgress {
    /// Replaces the end of the text.
    pub(super) fn set_end(&mut self, text: &str) {
        let from = text.ceil_char_boundary(text.len().saturating_sub(END));
        self.end.clear();
        self.end.push_str(&text[from..]);
    }

    /// Appends to the text.
    pub(super) fn append(&mut self, piece: &str) {
        self.end.push_str(piece);
        let over = self.end.len().saturating_sub(END);
        let from = self.end.ceil_char_boundary(over);
        self.end.drain(..from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_only_the_end_of_a_text_in_whole_characters() {
        let mut answer = AnswerProgress::default();
        let text = "né".repeat(END);
        for piece in text.split_inclusive('é') {
            answer.append(piece);
            assert!(answer.end.len() <= END);
        }
        assert!(text.ends_with(&answer.end) && answer.end.len() > END - 4);
        let pieces = answer.end.clone();
        answer.set_end(&text);
        assert_eq!(answer.end, pieces);
    }
}
