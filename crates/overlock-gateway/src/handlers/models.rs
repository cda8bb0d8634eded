//! `GET /v1/models`: the upstream's models and the demo model.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use hyper::{HeaderMap, Method, StatusCode};
use overlock_llm::wire::Protocol;
use overlock_llm::{CallFailure, Response, full_body};
use serde_json::{Value, json};

use crate::demo;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::handlers::Handled;
use crate::reply::json_reply;
use crate::upstream::{failure_reply, forward_headers};

pub(crate) async fn answer(
    State(gateway): State<Arc<Gateway>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Handled {
    let mut answer = match ask(&gateway, &headers, query).await {
        Ok(answer) => answer,
        Err(failure) if failure.refused.is_some() => {
            let protocol = Protocol::ChatCompletions;
            return Ok(failure_reply(&gateway.client.peer, failure, protocol));
        }
        Err(_) => {
            // The demo model works without an upstream.
            let list = json!({ "object": "list", "data": [own()] });
            return Ok(json_reply(StatusCode::OK, &list));
        }
    };
    let bytes = answer
        .read_whole(gateway.settings.limits.answer_bytes)
        .await?;
    let mut list: Value = serde_json::from_slice(&bytes)
        .map_err(|_| ApiError::upstream("the upstream's list of models is not JSON"))?;
    let Some(models) = list.get_mut("data").and_then(Value::as_array_mut) else {
        let message = "the upstream's list of models has no `data`";
        return Err(ApiError::upstream(message));
    };
    models.push(own());
    let mut reply = json_reply(StatusCode::OK, &list);
    forward_headers(&answer.headers, reply.headers_mut());
    Ok(reply)
}

async fn ask(
    gateway: &Gateway,
    headers: &HeaderMap,
    query: Option<String>,
) -> Result<Response, CallFailure> {
    let (client, settings) = (&gateway.client, &gateway.settings);
    let upstream = settings.upstream.base.as_deref().unwrap_or_default();
    let headers = client.headers(headers, !settings.keys.is_empty());
    let path = query.map_or("/models".to_owned(), |query| format!("/models?{query}"));
    let request = client.request(Method::GET, (upstream, &path), headers, full_body(""))?;
    client.http.call(&client.peer, request, None).await
}

fn own() -> Value {
    json!({ "id": demo::MODEL, "object": "model", "created": 0, "owned_by": "overlock" })
}
