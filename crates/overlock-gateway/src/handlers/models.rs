//! `GET /v1/models`: the upstream's models, and the one that is always there.

use hyper::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

use crate::body::{json_reply, whole};
use crate::chat;
use crate::demo;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::routes::{Call, Handled};
use crate::upstream::Answer;

pub(crate) async fn answer(call: Call) -> Handled {
    let gateway = &call.gateway;
    let query = call.request.uri().query();
    let Ok(mut answer) = ask(gateway, call.request.headers(), query).await else {
        // Whoever cannot be reached has no models.
        let list = json!({ "object": "list", "data": [own()] });
        return Ok(json_reply(StatusCode::OK, &list));
    };
    if !answer.status.is_success() {
        let refusal = chat::Refusal::read(&gateway.client, answer).await?;
        return Ok(refusal.into_reply());
    }
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
    chat::pass_on(&answer.headers, reply.headers_mut());
    Ok(reply)
}

async fn ask(
    gateway: &Gateway,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<Answer, ApiError> {
    let upstream = gateway.settings.upstream.address()?;
    let headers = gateway
        .client
        .headers(headers, !gateway.settings.keys.is_empty());
    let path = match query {
        None => "/models".to_owned(),
        Some(query) => format!("/models?{query}"),
    };
    gateway
        .client
        .send(Method::GET, (upstream, &path), headers, whole(""), None)
        .await
}

fn own() -> Value {
    json!({ "id": demo::MODEL, "object": "model", "created": 0, "owned_by": "overlock" })
}
