//! Tests of the public interface.

#![expect(
    clippy::format_collect,
    clippy::format_push_string,
    reason = "the files in tests stay readable, and speed does not matter"
)]

// Helpers: a file with every action, and the environment it is checked in.
mod given;

// Properties of any text.
mod laws;

// Files with one mistake each: the error, its position and its help.
mod mistakes;

// Valid files.
mod right;

// The format of problems and graphs.
mod shown;
