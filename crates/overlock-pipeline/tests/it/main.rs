//! Tests of pipelines through the door of the crate.

#![expect(
    clippy::format_collect,
    clippy::format_push_string,
    reason = "a file is written as it reads, and no test is faster for it"
)]

// Helpers: a whole file, and the world it is checked in.
mod given;

// What must hold for any text at all.
mod laws;

// Files with one mistake each: it is told, where it stands, and with what would be right.
mod mistakes;

// Files that are right, all of them and in parts.
mod right;

// How problems and graphs look.
mod shown;
