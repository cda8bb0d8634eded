//! `GET /metrics`: what was counted.

use hyper::StatusCode;

use crate::body::{reply, whole};
use crate::metrics::CONTENT_TYPE;
use crate::routes::{Call, Handled};

pub(crate) async fn answer(call: Call) -> Handled {
    let told = call.gateway.metrics.told();
    Ok(reply(StatusCode::OK, CONTENT_TYPE, whole(told)))
}
