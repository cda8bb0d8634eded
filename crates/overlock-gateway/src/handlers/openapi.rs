//! `GET /openapi.json`: all routes, for those who write clients.

use hyper::StatusCode;

use crate::handlers::{Call, Handled};
use crate::reply::{reply, whole};

/// The description, which a test holds against the routes.
pub(crate) const DESCRIPTION: &str = include_str!("../../openapi.json");

pub(crate) async fn answer(_call: Call) -> Handled {
    Ok(reply(
        StatusCode::OK,
        "application/json",
        whole(DESCRIPTION),
    ))
}
