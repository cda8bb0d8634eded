//! `GET /openapi.json`: the API description.

use hyper::StatusCode;

use crate::handlers::{Call, Handled};
use crate::reply::{reply, whole};

/// The description; a test compares it with the routes.
pub(crate) const DESCRIPTION: &str = include_str!("../../openapi.json");

pub(crate) async fn answer(_call: Call) -> Handled {
    Ok(reply(
        StatusCode::OK,
        "application/json",
        whole(DESCRIPTION),
    ))
}
