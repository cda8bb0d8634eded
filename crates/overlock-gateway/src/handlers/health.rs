//! `GET /health`: whether the gateway is there, who is behind it, and what whoever asks may expect.

use hyper::{StatusCode, Uri};
use serde_json::json;

use crate::handlers::{Call, Handled};
use crate::keys::Shown;
use crate::reply::json_reply;
use overlock_runs::Record;

pub(crate) async fn answer(call: Call) -> Handled {
    let (gateway, settings) = (&call.gateway, &call.gateway.settings);
    let base = settings.upstream.base.as_deref();
    let uri = base.and_then(|base| base.trim().parse::<Uri>().ok());
    let host = uri.as_ref().and_then(Uri::host);
    // Without a store nothing is kept, whatever the settings say.
    let has_store = gateway.recorder.is_some();
    let record = if has_store {
        settings.record
    } else {
        Record::Off
    };
    let key = settings.keys.shown(call.request.headers());
    // Who needs a key and has none is not told which models there are.
    let findings = match key {
        Shown::NotNeeded | Shown::Right => {
            let found = gateway.server.info().findings.clone();
            [found, gateway.strategy_findings()].concat()
        }
        Shown::Missing | Shown::Wrong => Vec::new(),
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
    Ok(json_reply(StatusCode::OK, &health))
}
