//! `GET /metrics`: Prometheus metrics.

use std::sync::Arc;

use axum::extract::State;
use hyper::StatusCode;

use crate::gateway::Gateway;
use crate::metrics::CONTENT_TYPE;
use crate::reply::{Reply, reply, whole};

pub(crate) async fn answer(State(gateway): State<Arc<Gateway>>) -> Reply {
    let text = gateway.metrics.encoded();
    reply(StatusCode::OK, CONTENT_TYPE, whole(text))
}
