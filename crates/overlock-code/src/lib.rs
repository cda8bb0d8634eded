//! Source text for a prompt: SQL and .NET.
//!
//! Code that is retrieved for a model takes room that its answer needs. This crate says what
//! language a text is written in, from the text alone; takes out what no compiler reads, without
//! changing one token; draws the outline of what is left; makes a text fit so many tokens; and takes a file apart into
//! what can be found by itself.
//!
//! It is pure computation: no I/O, no clock, no tasks, no panic on any text. It knows no
//! tokenizer: who counts is passed in. What it cannot read with certainty it leaves as it is, and
//! says so.
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
//! // Comments and layout go, strings stay as they are.
//! let lossless = compact(text, language, &CompactOptions::default());
//! assert!(lossless.text.contains(r"FROM Customer -- all\nWHERE") && !lossless.text.contains("index"));
//!
//! // Bodies go, declarations and the SQL in strings stay.
//! let outline = compact(text, language, &CompactOptions { level: Level::Outline, ..CompactOptions::default() });
//! assert!(outline.text.contains("[Cached]\npublic IEnumerable<Customer> In(string city){… 2 lines"));
//! assert!(outline.text.ends_with(r#""SELECT * FROM Customer -- all\nWHERE City = @city";}}"#));
//!
//! // The richest form that fits.
//! let about = |text: &str| text.len() as u64 / 4;
//! let fitted = fit(text, language, &FitOptions { tokens: 44, ..FitOptions::default() }, &about);
//! assert_eq!(fitted.form, Form::Outline);
//! ```

// What a text is.
mod classify;
mod language;

// What can be made of it.
mod compact;
mod fit;
mod nodes;
mod outline;

// What all of these read with.
mod lex;

pub use classify::{Classification, classify};
pub use compact::layout::Docs;
pub use compact::{CompactOptions, Compacted, Level, Reason, compact};
pub use fit::{FitOptions, Fitted, Form, fit};
pub use language::{Language, Syntax};
pub use lex::with_line_feeds;
pub use nodes::{Mention, MentionKind, Node, NodeKind, Nodes, Owner, Reading, nodes};
