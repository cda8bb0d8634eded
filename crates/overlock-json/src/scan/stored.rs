//! Validates stored scanner states.
//!
//! A state may come from a database or a network. A state that no text leads to is rejected here, so
//! other code need not expect it.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::state::State;
use super::{Container, Scanner, half_character_len};

impl Serialize for Scanner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Scanner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scanner = Self::deserialize(deserializer)?;
        if scanner.is_possible() {
            Ok(scanner)
        } else {
            Err(D::Error::custom("no text leads to this state of a scanner"))
        }
    }
}

impl Scanner {
    fn is_possible(&self) -> bool {
        let offset = self.offset;
        let previous = self
            .previous
            .is_none_or(|(start, end)| start <= end && end <= offset);
        previous
            && self.rollback <= offset
            && self.element <= offset
            && self.held_from.is_none_or(|from| from <= offset)
            && half_character_len(self.tail) <= offset
            && self.frames.is_possible(offset)
            && self.state_is_possible()
    }

    /// Whether the state is possible in the innermost container.
    fn state_is_possible(&self) -> bool {
        let innermost = (!self.frames.is_empty()).then(|| self.frames.innermost());
        match self.state {
            State::ArrayStart | State::NextItem => innermost == Some(Container::Array),
            State::ObjectStart
            | State::NextKey
            | State::Key(_)
            | State::AfterKey
            | State::AfterColon => innermost == Some(Container::Object),
            State::AfterValue => innermost.is_some(),
            State::Root | State::End => innermost.is_none(),
            State::Literal(literal, matched) => usize::from(matched) < literal.spelling().len(),
            State::Offended => self.syntax_error.is_some(),
            State::String(_) | State::Number(_) => true,
        }
    }
}
