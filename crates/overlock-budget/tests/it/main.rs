//! Tests at the crate's door that need more than the crate.

/// What others count, which `cargo xtask test` asks them for.
#[cfg(feature = "tokenizer-files")]
mod judges;
