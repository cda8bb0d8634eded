//! Tests of the public functions.

// Properties that hold for every text.
mod laws;
// Compaction of each language.
mod csharp;
mod sql;
mod visual_basic;
// Classification.
mod classify;
// Outlines.
mod outline;
// Fitting a text into a limit.
mod fit;
// Nodes and mentions.
mod nodes;
