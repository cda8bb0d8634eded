//! Counts what a repair looks at, so that a test can state that it is in proportion to the text.
//!
//! Every search without a limit of its own notes how far it went. Only tests count.

#[cfg(test)]
pub(super) use counted::{note, noted};

/// Notes that so many bytes or brackets were looked at.
#[cfg(not(test))]
#[inline]
pub(super) fn note(_: usize) {}

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    pub(in crate::repair) fn note(looked_at: usize) {
        LOOKED_AT.set(LOOKED_AT.get() + looked_at);
    }

    /// How much was looked at in this thread since this was asked last.
    pub(in crate::repair) fn noted() -> usize {
        LOOKED_AT.take()
    }
}
