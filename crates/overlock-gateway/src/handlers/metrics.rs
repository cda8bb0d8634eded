//! `GET /metrics`: Prometheus metrics.

use hyper::StatusCode;

use crate::handlers::{Call, Handled};
use crate::metrics::CONTENT_TYPE;
use crate::reply::{reply, whole};

pub(crate) async fn answer(call: Call) -> Handled {
    let text = call.gateway.metrics.encoded();
    Ok(reply(StatusCode::OK, CONTENT_TYPE, whole(text)))
}
