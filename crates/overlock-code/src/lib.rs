//! Source text for a prompt: SQL and .NET.
//!
//! Retrieved code takes room in the prompt that the answer needs. This crate detects the language of
//! a text ([`classify`]), removes comments and layout or reduces code to an outline ([`compact`]),
//! makes a text fit a number of tokens ([`fit`]), and splits a file into nodes for search
//! ([`nodes`]).
//!
//! It is pure computation: no I/O, no clock, no tasks, no panic on any text. The caller passes in
//! the token counter. Text that cannot be read with certainty stays unchanged, and the result says
//! so.
//!
//! ```
//! use overlock_code::{CompactOptions, FitOptions, Form, Language, Level, classify, compact, fit};
//!
//! let text = r#"
//! /// <summary>Finds customers.</summary>
//! public class Customers(IDbConnection connection)
//! {
//!     [Cached]
//!     public IEnumerable<Customer> In(string city)
//!     {
//!         // The index is on City.
//!         return connection.Query<Customer>("SELECT * FROM Customer -- all\nWHERE City = @city", new { city });
//!     }
//! }
//! "#;
//! let language = classify(text).language;
//! assert_eq!(language, Language::DotnetWithSql);
//!
//! // Comments and layout are removed, strings are unchanged.
//! let lossless = compact(text, language, &CompactOptions::default());
//! assert!(lossless.text.contains(r"FROM Customer -- all\nWHERE") && !lossless.text.contains("index"));
//!
//! // Bodies are removed, declarations and the SQL in strings stay.
//! let outline = compact(text, language, &CompactOptions { level: Level::Outline, ..CompactOptions::default() });
//! assert!(outline.text.contains("[Cached]\npublic IEnumerable<Customer> In(string city){… 2 lines"));
//! assert!(outline.text.ends_with(r#""SELECT * FROM Customer -- all\nWHERE City = @city";}}"#));
//!
//! // The richest form that fits.
//! let about = |text: &str| text.len() as u64 / 4;
//! let fitted = fit(text, language, &FitOptions { tokens: 44, ..FitOptions::default() }, &about);
//! assert_eq!(fitted.form, Form::Outline);
//! ```

// Detects the language.
mod classify;
mod language;

// Shortens and splits code.
mod compact;
mod fit;
mod nodes;
mod outline;

// Lexers.
mod lex;

pub use classify::{Classification, classify};
pub use compact::layout::Docs;
pub use compact::{CompactOptions, Compacted, Level, Reason, compact};
pub use fit::{FitOptions, Fitted, Form, fit};
pub use language::{Language, Syntax};
pub use lex::with_line_feeds;
pub use nodes::{Mention, MentionKind, Node, NodeKind, Nodes, Owner, Reading, nodes};
