//! Tests of pipelines through the door of the crate.

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
