//! The states between two bytes of a JSON text.

use serde::{Deserialize, Serialize};

use super::Scalar;
use super::string::Escape;

/// What the grammar allows next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    /// The root value has not begun.
    Root,
    /// After `[`.
    ArrayStart,
    /// After `{`.
    ObjectStart,
    /// After a comma in an array.
    NextItem,
    /// After a comma in an object.
    NextKey,
    /// After a complete key.
    AfterKey,
    /// After a colon.
    AfterColon,
    /// After a complete value in a container.
    AfterValue,
    /// After the root value.
    End,
    Key(Escape),
    String(Escape),
    Number(Digits),
    Literal(Literal, u8),
    /// After the first syntax error, which is final.
    Offended,
}

/// The progress in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Digits {
    Sign,
    Zero,
    Integer,
    Point,
    Fraction,
    Mark,
    MarkSign,
    Exponent,
}

impl Digits {
    pub(super) fn is_whole(self) -> bool {
        matches!(
            self,
            Self::Zero | Self::Integer | Self::Fraction | Self::Exponent
        )
    }

    pub(super) fn after(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Sign, b'0') => Some(Self::Zero),
            (Self::Sign | Self::Integer, b'0'..=b'9') => Some(Self::Integer),
            (Self::Zero | Self::Integer, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Some(Self::Mark),
            (Self::Mark, b'+' | b'-') => Some(Self::MarkSign),
            (Self::Mark | Self::MarkSign | Self::Exponent, b'0'..=b'9') => Some(Self::Exponent),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Literal {
    True,
    False,
    Null,
}

impl Literal {
    pub(super) fn spelling(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::False => "false",
            Self::Null => "null",
        }
    }

    pub(super) fn scalar(self) -> Scalar {
        match self {
            Self::True | Self::False => Scalar::Bool,
            Self::Null => Scalar::Null,
        }
    }
}
