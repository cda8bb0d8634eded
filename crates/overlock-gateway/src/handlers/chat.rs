//! `POST /v1/chat/completions`: a request that fits, and an answer that is whole.

use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;

use crate::body::{Reply, read_text};
use crate::chat;
use crate::error::ApiError;
use crate::gateway::Gateway;

pub(crate) async fn answer(
    gateway: Arc<Gateway>,
    request: Request<Incoming>,
) -> Result<Reply, ApiError> {
    let (head, body) = request.into_parts();
    let text = read_text(body, &gateway.settings.limits).await?;
    chat::answer(gateway, head.headers, text).await
}
