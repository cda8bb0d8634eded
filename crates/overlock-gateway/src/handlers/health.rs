//! `GET /health`: the state of the gateway, its upstream and the client's key.

use std::sync::Arc;

use axum::extract::State;
use hyper::{HeaderMap, StatusCode, Uri};
use serde_json::json;

use crate::gateway::Gateway;
use crate::keys::KeyCheck;
use crate::reply::{Reply, json_reply};
use overlock_runs::Record;

pub(crate) async fn answer(State(gateway): State<Arc<Gateway>>, headers: HeaderMap) -> Reply {
    let settings = &gateway.settings;
    let base = settings.upstream.base.as_deref();
    let uri = base.and_then(|base| base.trim().parse::<Uri>().ok());
    let host = uri.as_ref().and_then(Uri::host);
    // Without a store nothing is recorded, regardless of the settings.
    let has_store = gateway.recorder.is_some();
    let record = if has_store {
        settings.record
    } else {
        Record::Off
    };
    let key = settings.keys.key_check(&headers);
    // The findings name models, so they need a valid key.
    let findings = match key {
        KeyCheck::NotNeeded | KeyCheck::Right => {
            let findings = gateway.server.info().findings.clone();
            [findings, gateway.strategy_findings()].concat()
        }
        KeyCheck::Missing | KeyCheck::Wrong => Vec::new(),
    };
    let health = json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "upstream": host,
        "findings": findings,
        "key": key.name(),
        "record": record.name(),
        "has_store": has_store,
        "body_bytes": settings.limits.body_bytes,
    });
    json_reply(StatusCode::OK, &health)
}
