//! `GET /metrics`: what was counted.

use hyper::StatusCode;

use crate::handlers::{Call, Handled};
use crate::metrics::CONTENT_TYPE;
use crate::reply::{reply, whole};

pub(crate) async fn answer(call: Call) -> Handled {
    let told = call.gateway.metrics.told();
    Ok(reply(StatusCode::OK, CONTENT_TYPE, whole(told)))
}
