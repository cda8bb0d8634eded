//! The wire formats of requests and answers.
//!
//! Each format is one module of pure functions. No other code knows the names of its fields.

pub mod chat;
