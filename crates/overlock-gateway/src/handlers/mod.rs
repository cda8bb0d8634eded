//! One handler for each route.

pub(crate) mod api;
pub(crate) mod chat;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod models;
pub(crate) mod openapi;
pub(crate) mod page;
pub(crate) mod pass_through;
pub(crate) mod runs;

use std::sync::Arc;

use futures_util::future::AbortHandle;
use hyper::Request;
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::reply::Reply;
use crate::request_stats::RequestStats;

/// A request on its way to its handler.
pub(crate) struct Call {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) request: Request<Incoming>,
    pub(crate) stats: Arc<RequestStats>,
    /// Closes the connection at once.
    pub(crate) hang_up: AbortHandle,
    /// The deadline of the request, if it holds a concurrency permit.
    pub(crate) deadline: Instant,
}

/// The result of a handler.
pub(crate) type Handled = Result<Reply, ApiError>;
