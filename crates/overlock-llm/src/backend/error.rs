//! What can go wrong between here and a model.

use std::time::Duration;

use super::refused_size::{RefusedSize, is_about_size};

/// Why a call failed. No message holds a key: what is told of an address is its host and path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// The address is none.
    #[error("`{address}` is not an address a model can be reached at: {reason}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answers there.
    #[error("could not reach {host}: {reason}")]
    Unreachable {
        /// Where.
        host: String,
        /// What the system says.
        reason: String,
    },
    /// Somebody answers there who cannot prove to be that host.
    #[error("{host} shows a certificate that is not trusted: {reason}")]
    Certificate {
        /// Where.
        host: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The request holds what the upstream has no words for. Nothing was sent.
    #[error("{what} cannot be asked for in the protocol of {host}")]
    Unsupported {
        /// Where it was to be sent.
        host: String,
        /// What it is.
        what: String,
    },
    /// Nothing came for too long.
    #[error("{host} {phase} for {} seconds", after.as_secs_f32())]
    TimedOut {
        /// Where.
        host: String,
        /// What did not happen.
        phase: Phase,
        /// How long that was waited for.
        after: Duration,
    },
    /// The time for all calls together was over.
    #[error("{host} was not done in the time that a request may take")]
    Deadline {
        /// Where.
        host: String,
    },
    /// The answer is an error.
    #[error("{host} answered {status}: {message}{}", asked_to_wait(*retry_after))]
    Status {
        /// Where.
        host: String,
        /// The HTTP status; that of a stream that turned into an error is 200, unless it says
        /// what kind of error it is.
        status: u16,
        /// What it says.
        message: String,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
        /// The sizes it names, if the call is too large.
        size: Option<RefusedSize>,
    },
    /// The answer is none of this protocol.
    #[error("{host} answered with something else than was asked for: {reason}")]
    Malformed {
        /// Where.
        host: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The connection ended before the answer did.
    #[error("the connection to {host} broke off: {reason}")]
    Broken {
        /// Where.
        host: String,
        /// What the system says.
        reason: String,
    },
    /// The answer went on and on.
    #[error("the answer went beyond {most_bytes} bytes and was cut off")]
    TooLong {
        /// How much was read.
        most_bytes: usize,
    },
}

/// What is told of a wait that a server asks for.
fn asked_to_wait(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) if !wait.is_zero() => {
            format!(" (it asks to wait for {} seconds)", wait.as_secs_f32())
        }
        _ => String::new(),
    }
}

/// What a server is waited for to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Accept a connection.
    Connect,
    /// Begin its answer.
    FirstByte,
    /// Go on with its answer.
    NextByte,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "did not accept a connection",
            Self::FirstByte => "did not begin to answer",
            Self::NextByte => "fell silent",
        })
    }
}

impl BackendError {
    /// Whether the same call may well succeed a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Broken { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 409 | 425 | 429 | 500..=599),
            Self::Address { .. }
            | Self::Certificate { .. }
            | Self::Deadline { .. }
            | Self::Unsupported { .. }
            | Self::Malformed { .. }
            | Self::TooLong { .. } => false,
        }
    }

    /// Whether the server understood the call and will have none of its kind, however often it
    /// is made: another kind of call may be welcome.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 400 | 404 | 405 | 422),
            Self::Unsupported { .. } => true,
            _ => false,
        }
    }

    /// Whether the server refused the call because of its size.
    pub(crate) fn is_about_size(&self) -> bool {
        match self {
            Self::Status { message, .. } => is_about_size(&message.to_lowercase()),
            _ => false,
        }
    }

    /// The sizes that the server names, if it refused the call because of its size.
    pub fn refused_size(&self) -> Option<RefusedSize> {
        match self {
            Self::Status { size, .. } => *size,
            _ => None,
        }
    }

    /// The status with which the server refused the call.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
