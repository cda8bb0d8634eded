//! One handler for each route.

pub(crate) mod chat;
