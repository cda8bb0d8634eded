//! The budget at its door: judges from outside.

// What others count, which `cargo xtask test` asks them for.
#[cfg(feature = "tokenizer-files")]
mod judges;
