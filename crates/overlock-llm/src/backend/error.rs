//! The errors of calls to an upstream.

use std::time::Duration;

use super::refused_size::{RefusedSize, is_about_size};

/// Why a call failed. Messages contain no key: of a URL they show only host and path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// The upstream URL is invalid.
    #[error("`{address}` is not a valid upstream URL: {reason}")]
    Address {
        /// The URL without credentials.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The upstream could not be reached.
    #[error("could not reach {host}: {reason}")]
    Unreachable {
        /// The host.
        host: String,
        /// The system's message.
        reason: String,
    },
    /// The TLS certificate is not trusted.
    #[error("the certificate of {host} is not trusted: {reason}")]
    Certificate {
        /// The host.
        host: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The request has a feature that the upstream's API does not support. Nothing was sent.
    #[error("{host} does not support {what}")]
    Unsupported {
        /// The host.
        host: String,
        /// The feature.
        what: String,
    },
    /// A timeout expired.
    #[error("{host} {phase} for {} seconds", after.as_secs_f32())]
    TimedOut {
        /// The host.
        host: String,
        /// What the client waited for.
        phase: Phase,
        /// How long it waited.
        after: Duration,
    },
    /// The deadline of the whole request passed.
    #[error("{host} did not finish before the deadline of the request")]
    Deadline {
        /// The host.
        host: String,
    },
    /// The response is an error.
    #[error("{host} answered {status}: {message}{}", retry_after_note(*retry_after))]
    Status {
        /// The host.
        host: String,
        /// The HTTP status. For an error inside a stream it is 200, unless the error names another.
        status: u16,
        /// The upstream's message.
        message: String,
        /// The wait that the upstream asks for.
        retry_after: Option<Duration>,
        /// The sizes in the message, if the request is too large.
        size: Option<RefusedSize>,
    },
    /// The response does not match the API.
    #[error("unexpected response from {host}: {reason}")]
    Malformed {
        /// The host.
        host: String,
        /// What is wrong.
        reason: String,
    },
    /// The connection closed before the answer ended.
    #[error("the connection to {host} was interrupted: {reason}")]
    Broken {
        /// The host.
        host: String,
        /// The system's message.
        reason: String,
    },
    /// The answer is longer than the client reads.
    #[error("the answer exceeds {most_bytes} bytes")]
    TooLong {
        /// The limit.
        most_bytes: usize,
    },
}

fn retry_after_note(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) if !wait.is_zero() => {
            format!(" (retry after {} seconds)", wait.as_secs_f32())
        }
        _ => String::new(),
    }
}

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The connection.
    Connect,
    /// The first output of the model.
    FirstByte,
    /// More output of the model.
    NextByte,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "did not accept a connection",
            Self::FirstByte => "did not begin to answer",
            Self::NextByte => "sent nothing more",
        })
    }
}

impl BackendError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
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

    /// Whether the server rejected this kind of call, so that repeating it is useless but another
    /// strategy may work.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 400 | 404 | 405 | 422),
            Self::Unsupported { .. } => true,
            _ => false,
        }
    }

    /// Whether the server rejected the call because of its size.
    pub(crate) fn is_about_size(&self) -> bool {
        match self {
            Self::Status { message, .. } => is_about_size(&message.to_lowercase()),
            _ => false,
        }
    }

    /// The sizes in the server's message, if it rejected the call because of its size.
    pub fn refused_size(&self) -> Option<RefusedSize> {
        match self {
            Self::Status { size, .. } => *size,
            _ => None,
        }
    }

    /// The status of the error response.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The wait that the server asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
