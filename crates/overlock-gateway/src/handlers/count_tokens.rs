//! `POST /v1/messages/count_tokens`: the upstream's count, or else the gateway's.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use bytes::Bytes;
use hyper::{HeaderMap, Method, StatusCode};
use overlock_llm::wire::{Protocol, WireRequest, messages::MessagesRequest};
use overlock_llm::{CallFailure, Response, full_body};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::body::{BodyFault, read_bytes, text_of};
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::handlers::{Handled, RequestScope};
use crate::offload;
use crate::reply::{Reply, json_reply, reply, whole};
use crate::upstream::{failure_reply, forward_headers};

pub(crate) async fn answer(
    State(gateway): State<Arc<Gateway>>,
    Extension(scope): Extension<RequestScope>,
    request: Request,
) -> Reply {
    let counted = counted(gateway, scope.deadline, request).await;
    counted.unwrap_or_else(|error| error.into_reply_in(Protocol::Messages))
}

async fn counted(gateway: Arc<Gateway>, deadline: Instant, request: Request) -> Handled {
    let (head, body) = request.into_parts();
    let body = timeout_at(deadline, read_bytes(body, &gateway.settings.limits)).await;
    let text = body.map_err(|_| BodyFault::TooLate)??;
    let asked = ask(&gateway, &head.headers, head.uri.query(), &text, deadline);
    match Box::pin(asked).await {
        Some(Ok(mut answer)) => {
            let most = gateway.settings.limits.answer_bytes;
            let counted = answer.read_whole(most).await?;
            let mut counted = reply(StatusCode::OK, "application/json", whole(counted));
            forward_headers(&answer.headers, counted.headers_mut());
            Ok(counted)
        }
        Some(Err(failure)) if !has_no_count(&failure) => Ok(failure_reply(
            &gateway.client.peer,
            failure,
            Protocol::Messages,
        )),
        _ => {
            let tokens = offload::with_text(text.len(), move || count(&gateway, &text)).await??;
            Ok(json_reply(
                StatusCode::OK,
                &json!({ "input_tokens": tokens }),
            ))
        }
    }
}

/// Asks the upstream, if there is one.
async fn ask(
    gateway: &Gateway,
    headers: &HeaderMap,
    query: Option<&str>,
    text: &Bytes,
    deadline: Instant,
) -> Option<Result<Response, CallFailure>> {
    const PATH: &str = "/messages/count_tokens";
    let (client, settings) = (&gateway.client, &gateway.settings);
    let base = settings.upstream.base.as_deref()?;
    let headers = client.headers(headers, !settings.keys.is_empty());
    let path = query.map_or(PATH.to_owned(), |query| format!("{PATH}?{query}"));
    let request = client.request(
        Method::POST,
        (base, &path),
        headers,
        full_body(text.clone()),
    );
    Some(match request {
        Ok(request) => {
            client
                .http
                .call(&client.peer, request, Some(deadline))
                .await
        }
        Err(error) => Err(error.into()),
    })
}

/// Whether the upstream does not count.
fn has_no_count(failure: &CallFailure) -> bool {
    let refused = failure.refused.as_ref();
    refused.is_some_and(|refused| matches!(refused.status.as_u16(), 404 | 405 | 501))
}

/// The gateway's count of a request.
fn count(gateway: &Gateway, text: &Bytes) -> Result<u64, ApiError> {
    let request = MessagesRequest::to_count(text_of(text)?)?;
    let model = request.model().unwrap_or_default();
    let known = gateway.model_cache.get(&gateway.settings, model);
    Ok(known.counter.count(&request).tokens)
}
