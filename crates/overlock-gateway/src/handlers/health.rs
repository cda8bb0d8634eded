//! `GET /health`: whether the gateway is there, and who is behind it.

use hyper::{StatusCode, Uri};
use serde_json::json;

use crate::body::json_reply;
use crate::routes::{Call, Handled};

pub(crate) async fn answer(call: Call) -> Handled {
    let base = call.gateway.settings.upstream.base.as_deref();
    let uri = base.and_then(|base| base.trim().parse::<Uri>().ok());
    let host = uri.as_ref().and_then(Uri::host);
    let health = json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "upstream": host,
    });
    Ok(json_reply(StatusCode::OK, &health))
}
