//! The budget at its door: requests as programs send them, and judges from outside.

// What others count, which `cargo xtask test` asks them for.
#[cfg(feature = "tokenizer-files")]
mod judges;
// The laws of plans, over requests of every shape and a million of them.
mod planning;
// The same laws under any rules.
mod rules;
// Requests that are only sketched.
mod sketch;
