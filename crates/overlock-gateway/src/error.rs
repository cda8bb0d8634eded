//! Errors for clients, in the format of their protocol, or else of `OpenAI`.

use std::time::Duration;

use axum::response::IntoResponse;
use hyper::StatusCode;
use hyper::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use overlock_llm::BackendError;
use overlock_llm::wire::{ErrorBody, Protocol, RequestError};

use crate::reply::{Reply, json_reply};
use overlock_runs::FaultKind;

/// An error for the client. No message contains a key; it may quote a little of the request.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    /// The type of the error, such as `invalid_request_error`.
    pub(crate) kind: &'static str,
    /// The code of the error, such as `context_length_exceeded`.
    pub(crate) code: Option<&'static str>,
    /// The parameter that is wrong.
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    /// How long to wait before the next attempt.
    pub(crate) retry_after: Option<Duration>,
    /// The failed upstream call, if that is the cause.
    pub(crate) upstream: Option<Box<BackendError>>,
}

/// The name of the error in a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorName(pub(crate) &'static str);

/// The code of the error of a missing or wrong key.
const INVALID_KEY: &str = "invalid_api_key";

impl IntoResponse for ApiError {
    fn into_response(self) -> Reply {
        self.into_reply()
    }
}

impl From<BackendError> for ApiError {
    /// A call of the upstream failed.
    fn from(error: BackendError) -> Self {
        let status = match FaultKind::of(&error) {
            Some(FaultKind::Late) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        };
        let message = match &error {
            BackendError::Status { message, .. } => format!("the upstream says: {message}"),
            BackendError::TooLong { .. } => "the upstream's answer is too long".to_owned(),
            error => error.to_string(),
        };
        let upstream = Some(Box::new(error));
        Self {
            upstream,
            ..Self::new(status, "upstream_error", message)
        }
    }
}

impl From<RequestError> for ApiError {
    /// A chat request cannot be read.
    fn from(error: RequestError) -> Self {
        let invalid = Self::invalid(error.to_string());
        match error {
            RequestError::Wrong { place, .. } | RequestError::Missing { place, .. } => {
                match place.strip_prefix('`') {
                    Some(parameter) => invalid.with_param(parameter.trim_end_matches('`')),
                    None => invalid,
                }
            }
            RequestError::TooLong { .. } => Self {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                ..invalid
            },
            _ => invalid,
        }
    }
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            code: None,
            param: None,
            message: message.into(),
            retry_after: None,
            upstream: None,
        }
    }

    /// The request is invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// The upstream's answer cannot be used.
    pub(crate) fn upstream(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let error = Self::new(StatusCode::BAD_GATEWAY, "upstream_error", reason.clone());
        let host = "the upstream".to_owned();
        let upstream = Some(Box::new(BackendError::Malformed { host, reason }));
        Self { upstream, ..error }
    }

    /// The gateway has a bug.
    pub(crate) fn defect() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            "internal error of the gateway",
        )
    }

    pub(crate) fn with_code(self, code: &'static str) -> Self {
        Self {
            code: Some(code),
            ..self
        }
    }

    pub(crate) fn with_param(self, param: impl Into<String>) -> Self {
        Self {
            param: Some(param.into()),
            ..self
        }
    }

    pub(crate) fn with_retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }

    /// What the client sees of it.
    pub(crate) fn body(&self) -> ErrorBody<'_> {
        ErrorBody {
            status: self.status.as_u16(),
            kind: self.kind,
            code: self.code,
            param: self.param.as_deref(),
            message: &self.message,
        }
    }

    /// The code of the error, or else its type.
    pub(crate) fn name(&self) -> &'static str {
        self.code.unwrap_or(self.kind)
    }

    /// No route has this path.
    pub(crate) fn unknown_url(path: &str) -> Self {
        let message = format!("not found: `{path}`");
        let error = Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message);
        error.with_code("unknown_url")
    }

    /// The error of a missing or wrong key of the gateway.
    pub(crate) fn unauthorized(message: &str) -> Self {
        let error = Self::new(StatusCode::UNAUTHORIZED, "invalid_request_error", message);
        error.with_code(INVALID_KEY)
    }

    /// The error as a reply, with its name as an extension.
    pub(crate) fn into_reply(self) -> Reply {
        self.into_reply_in(Protocol::ChatCompletions)
    }

    /// The same, in the shape of a protocol.
    pub(crate) fn into_reply_in(self, protocol: Protocol) -> Reply {
        let mut reply = json_reply(self.status, &protocol.error(&self.body()));
        reply.extensions_mut().insert(ErrorName(self.name()));
        if let Some(wait) = self.retry_after {
            // The header has whole seconds, so the time is rounded up.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            reply
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Some(INVALID_KEY) {
            let scheme = HeaderValue::from_static("Bearer");
            reply.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        reply
    }
}
