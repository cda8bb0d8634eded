//! What personas remember, and how important it is.

use crate::StoreError;

/// What a store keeps of memories.
pub trait Memories {
    /// Keeps a memory.
    fn remember(&self, memory: &NewMemory<'_>) -> Result<(), StoreError>;

    /// What is remembered, the most important first, and of the equally important the latest.
    fn memories(&self, recall: &Recall<'_>) -> Result<Vec<Memory>, StoreError>;
}

/// How important something is, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Importance(
    /// A number from 0 to 1.
    f64,
);

/// A number that is no importance.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("`{0}` is not an importance, which is a number from 0 to 1")]
pub struct ImportanceError(pub f64);

impl Importance {
    /// An importance of so much.
    pub fn new(number: f64) -> Result<Self, ImportanceError> {
        if (0.0..=1.0).contains(&number) {
            Ok(Self(number))
        } else {
            Err(ImportanceError(number))
        }
    }

    /// How much, from 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Something to remember.
#[derive(Clone, Copy, Debug)]
pub struct NewMemory<'a> {
    /// Who remembers it.
    pub persona: &'a str,
    /// What.
    pub text: &'a str,
    /// How important it is.
    pub importance: Importance,
    /// Since when, in milliseconds since 1970.
    pub at: u64,
}

/// Something remembered.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// What.
    pub text: String,
    /// How important it is.
    pub importance: Importance,
    /// Since when, in milliseconds since 1970.
    pub at: u64,
}

/// What is to be recalled.
#[derive(Clone, Copy, Debug)]
pub struct Recall<'a> {
    /// Whose memories.
    pub persona: &'a str,
    /// Those that are at least this important.
    pub importance: Importance,
    /// Those since then, in milliseconds since 1970.
    pub since: u64,
    /// So many at most.
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
        Importance::new(f64::NAN).expect_err("it is no number");
    }
}
