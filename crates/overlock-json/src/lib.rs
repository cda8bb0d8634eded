//! Tools for JSON that was cut off.
//!
//! A model's answer can stop in the middle: at the token limit, or when a stream breaks off. This
//! crate finds where and how a text stops, closes it to valid JSON, repairs malformed JSON, renders
//! the path to the cut for a prompt, and joins the continuation without losing or duplicating data.
//!
//! It is pure computation: no I/O, no clock, no tasks, no recursion, no panic on any bytes.
//!
//! ```
//! use overlock_json::{PartialDocument, CloseOptions, ContextOptions, StitchOptions, stitch};
//!
//! // The answer stops in the middle of a name.
//! let mut base = PartialDocument::read(r#"{"people": [{"name": "Ada", "born": 1815}, {"name": "Gra"#)?;
//! let cut = base.cut().expect("the answer is cut");
//! assert_eq!((cut.path.as_str(), cut.place.name()), ("/people/1/name", "string"));
//!
//! // The closed form is valid JSON.
//! let closed = base.close(&CloseOptions::default())?;
//! assert_eq!(closed.json, r#"{"people": [{"name": "Ada", "born": 1815}, {"name": "Gra"}]}"#);
//!
//! // The prompt asks for the rest and shows how the answer should begin.
//! let asked = base.contexts(&ContextOptions::default()).overlap_context;
//! let answer = format!("Sure!\n```json\n{asked}ce\", \"born\": 1906}}]}}\n```");
//!
//! // Join it.
//! let options = StitchOptions { expected_overlap: Some(&asked), ..StitchOptions::default() };
//! let seam = stitch(&mut base, &answer, &options);
//! assert!(seam.outcome.is_accepted() && base.is_complete());
//! assert!(base.text().ends_with(r#"{"name": "Grace", "born": 1906}]}"#));
//! # Ok::<(), overlock_json::NoJson>(())
//! ```

// Scanning and the cut.
mod cut;
mod scan;
mod structure;

// Finding documents in a text.
mod delivered;
mod document_start;
mod extract;
mod partial_document;

// Closing, repairing, rendering and joining.
mod close;
mod contexts;
mod render;
mod repair;
mod stitch;
mod streaming_document;
mod suspicion;

// JSON requests and replies, and JSON Schemas.
#[cfg(feature = "schema")]
mod schema;
#[cfg(feature = "serde")]
mod shapes;

// Shared helpers.
mod borders;
mod packed;
mod plain;
mod strings;
mod tokens;
mod vector;

pub use close::{CloseOptions, Closed, Closing, Losses, NoJson, close};
pub use contexts::{ContextOptions, Contexts, CutElements, contexts};
pub use cut::{Cut, CutPlace};
pub use delivered::{Delivered, delivered};
pub use document_start::DocumentStart;
pub use extract::{Cleaned, Extracted, clean_encoding, extract};
pub use partial_document::PartialDocument;
pub use render::{CutValue, RenderOptions, SummaryMode, render, render_with};
pub use repair::{Fix, FixKind, RepairOptions, Repaired, Several, repair};
pub use scan::{Container, Scalar, Scanner, SyntaxError, SyntaxErrorKind, Visitor};
#[cfg(feature = "schema")]
pub use schema::{
    BoundedSchema, Comparison, MOST_LEVELS, MOST_PATTERNS, MOST_VALUES, STACK_BYTES,
    SchemaTooLarge, required_members,
};
#[cfg(feature = "serde")]
pub use shapes::{
    ClosedText, CutContexts, LEAST_LIMIT, Object, Refusal, RenderedText, RepairedText,
    StitchedSeam, StitchedText, close_object, close_text, cut_contexts, cut_object, render_object,
    repair_object, repair_text, shortened, stitch_object, stitched, suspicion_of,
};
pub use stitch::{Mismatch, Outcome, Protocol, Seam, StitchOptions, stitch};
pub use streaming_document::{Arrival, StreamingDocument};
pub use structure::{close_trusted, close_trusted_portable};
pub use suspicion::{Suspicion, suspicion};
