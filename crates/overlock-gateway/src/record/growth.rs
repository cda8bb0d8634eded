//! What has come of the answer that is being written, for those who follow its run.
//!
//! Whoever writes leaves here what there is, and whoever follows looks at it from time to time: a
//! stream is told nobody, waits for nobody, and pays nothing while nobody follows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use overlock_store::RunId;

use super::About;
use overlock_runs::Tally;

/// So many bytes of the end of a text are there to be looked at.
const END: usize = 2000;

/// The runs that somebody may follow, and how far their answers are.
#[derive(Default)]
pub(crate) struct Growths {
    all: Mutex<HashMap<RunId, Arc<Growth>>>,
}

/// How far the answer of one run is.
pub(crate) struct Growth {
    /// What the run is about.
    pub(crate) about: Arc<About>,
    grown: Mutex<Grown>,
}

/// What there is of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grown {
    /// The step that it will be.
    pub(crate) number: u32,
    /// The bytes of its text.
    pub(crate) bytes: u64,
    /// The end of its text.
    pub(crate) end: String,
    /// What the run took before, and the prompt that is being answered.
    pub(crate) tally: Tally,
}

impl Growths {
    /// All runs that have grown.
    pub(crate) fn all(&self) -> Vec<(RunId, Arc<Growth>)> {
        let all = self.locked();
        let all = all.iter().map(|(id, it)| (id.clone(), Arc::clone(it)));
        all.collect()
    }

    /// One run, if it has grown.
    pub(crate) fn of(&self, id: &RunId) -> Option<Arc<Growth>> {
        self.locked().get(id).cloned()
    }

    pub(super) fn add(&self, id: &RunId, about: &Arc<About>) -> Arc<Growth> {
        let growth = Arc::new(Growth {
            about: Arc::clone(about),
            grown: Mutex::default(),
        });
        self.locked().insert(id.clone(), Arc::clone(&growth));
        growth
    }

    pub(super) fn remove(&self, id: &RunId) {
        self.locked().remove(id);
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Growth>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Growth {
    /// What there is now.
    pub(crate) fn now(&self) -> Grown {
        self.locked().clone()
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, Grown> {
        self.grown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Grown {
    /// Its text ends with this.
    pub(super) fn ends_with(&mut self, text: &str) {
        let from = text.ceil_char_boundary(text.len().saturating_sub(END));
        self.end.clear();
        self.end.push_str(&text[from..]);
    }

    /// Its text goes on with this.
    pub(super) fn goes_on(&mut self, piece: &str) {
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
    fn however_long_a_text_is_its_end_is_kept_in_whole_characters() {
        let mut grown = Grown::default();
        let text = "né".repeat(END);
        for piece in text.split_inclusive('é') {
            grown.goes_on(piece);
            assert!(grown.end.len() <= END);
        }
        assert!(text.ends_with(&grown.end) && grown.end.len() > END - 4);
        let pieces = grown.end.clone();
        grown.ends_with(&text);
        assert_eq!(grown.end, pieces);
    }
}
