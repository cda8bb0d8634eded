//! The crate at its door.

// What holds for every text, through the public functions.
mod laws;
// What each language keeps and loses: named cases.
mod csharp;
mod sql;
mod visual_basic;
// What a text is taken for.
mod classify;
// What an outline keeps.
mod outline;
// What fits into so many tokens.
mod fit;
// What a file is taken apart into.
mod nodes;
