//! Where a request goes.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};

use crate::body::Reply;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::handlers;

/// Answers a request; what goes wrong is an answer too.
pub(crate) async fn answer(gateway: Arc<Gateway>, request: Request<Incoming>) -> Reply {
    let found = match (request.method(), request.uri().path()) {
        (&Method::POST, "/v1/chat/completions") => handlers::chat::answer(gateway, request).await,
        (_, path) => Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "invalid_request_error",
            format!("there is nothing at `{path}`"),
        )),
    };
    found.unwrap_or_else(ApiError::into_reply)
}
