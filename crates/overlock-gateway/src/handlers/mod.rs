//! One handler for each route.

pub(crate) mod api;
pub(crate) mod chat;
pub(crate) mod count_tokens;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod models;
pub(crate) mod openapi;
pub(crate) mod page;
pub(crate) mod pass_through;
pub(crate) mod runs;

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::AbortHandle;
use tokio::time::Instant;

use crate::error::ApiError;
use crate::reply::Reply;
use crate::request_stats::RequestStats;

/// The client of a connection.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Closes the connection at once.
    pub(crate) hang_up: AbortHandle,
}

/// What belongs to an admitted request besides its head and body.
#[derive(Clone)]
pub(crate) struct RequestScope {
    pub(crate) stats: Arc<RequestStats>,
    pub(crate) peer: Peer,
    /// The deadline of the request, if it holds a concurrency permit.
    pub(crate) deadline: Instant,
}

/// The result of a handler.
pub(crate) type Handled = Result<Reply, ApiError>;
