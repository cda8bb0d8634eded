//! Source text for a prompt.
mod classify;
mod language;
mod compact;
mod outline;
mod lex;

pub use classify::{Classification, classify};
pub use compact::layout::Docs;
pub use compact::{CompactOptions, Compacted, Level, Reason, compact};
pub use language::{Language, Syntax};
