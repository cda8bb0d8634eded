//! Counts the bytes that a repair reads, so that tests can check that it is linear.
//!
//! Every unbounded search reports how far it went. Only test builds count.

#[cfg(test)]
pub(super) use counted::{add, take};

/// Counts bytes or brackets that were read.
#[cfg(not(test))]
#[inline]
pub(super) fn add(_: usize) {}

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static READ: Cell<usize> = const { Cell::new(0) };
    }

    pub(in crate::repair) fn add(read: usize) {
        READ.set(READ.get() + read);
    }

    /// The count of this thread since the last call.
    pub(in crate::repair) fn take() -> usize {
        READ.take()
    }
}
