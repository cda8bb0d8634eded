//! How requests and answers are written in a provider's protocol.
//!
//! Each protocol is one module of pure functions. Nothing else knows the name of one of its members.

pub mod chat;
