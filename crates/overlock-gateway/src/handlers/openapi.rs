//! `GET /openapi.json`: the API description.

use hyper::StatusCode;

use crate::reply::{Reply, reply, whole};

/// The description; a test compares it with the routes.
pub(crate) const DESCRIPTION: &str = include_str!("../../openapi.json");

pub(crate) async fn answer() -> Reply {
    reply(StatusCode::OK, "application/json", whole(DESCRIPTION))
}
