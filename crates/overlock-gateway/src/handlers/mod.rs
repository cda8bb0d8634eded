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
