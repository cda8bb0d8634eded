//! Memories of personas, with their importance.

use crate::StoreError;

/// Stores memories.
pub trait Memories {
    /// Adds a memory.
    fn remember(&self, memory: &NewMemory<'_>) -> Result<(), StoreError>;

    /// Memories by importance, then by time, each in descending order.
    fn memories(&self, recall: &Recall<'_>) -> Result<Vec<Memory>, StoreError>;
}

/// The importance of a memory, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Importance(
    /// A number from 0 to 1.
    f64,
);

/// A number outside the range from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("`{0}` is not an importance: it must be a number from 0 to 1")]
pub struct ImportanceError(pub f64);

impl Importance {
    /// Checks that a number is an importance.
    pub fn new(number: f64) -> Result<Self, ImportanceError> {
        if (0.0..=1.0).contains(&number) {
            Ok(Self(number))
        } else {
            Err(ImportanceError(number))
        }
    }

    /// The number, from 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// A memory to add.
#[derive(Clone, Copy, Debug)]
pub struct NewMemory<'a> {
    /// The persona that remembers it.
    pub persona: &'a str,
    /// The text.
    pub text: &'a str,
    /// How important it is.
    pub importance: Importance,
    /// When it was added, in milliseconds since 1970.
    pub at: u64,
}

/// A stored memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// The text.
    pub text: String,
    /// How important it is.
    pub importance: Importance,
    /// When it was added, in milliseconds since 1970.
    pub at: u64,
}

/// Which memories to read.
#[derive(Clone, Copy, Debug)]
pub struct Recall<'a> {
    /// The persona.
    pub persona: &'a str,
    /// The lowest importance.
    pub importance: Importance,
    /// The earliest time, in milliseconds since 1970.
    pub since: u64,
    /// The most memories to return.
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_importance_is_from_0_to_1() {
        for number in [0.0, 0.6, 1.0] {
            assert_eq!(Importance::new(number).map(Importance::get), Ok(number));
        }
        for number in [-0.1, 1.1, f64::INFINITY] {
            assert_eq!(Importance::new(number), Err(ImportanceError(number)));
        }
        Importance::new(f64::NAN).expect_err("not a number");
    }
}
