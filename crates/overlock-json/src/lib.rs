//! JSON that was cut.

mod base;
mod borders;
mod close;
mod contexts;
mod cut;
mod delivered;
mod extract;
mod packed;
mod plain;
mod render;
mod repair;
mod scan;
mod stitch;
mod strings;
mod structure;
mod tokens;
mod vector;

pub use base::Base;
pub use close::{CloseOptions, Closed, Closing, Losses, NoJson, close};
pub use contexts::{ContextOptions, Contexts, CutElements, contexts};
pub use cut::{Cut, Place};
pub use delivered::{Delivered, delivered};
pub use extract::{Cleaned, Extracted, clean_encoding, extract};
pub use render::{CutValue, RenderOptions, render, render_with};
pub use repair::{Fix, FixKind, RepairOptions, Repaired, Several, repair};
pub use scan::{Container, Offence, OffenceKind, Scalar, Scanner, Visitor};
pub use stitch::{Mismatch, Outcome, Protocol, Seam, StitchOptions, stitch};
pub use structure::{close_trusted, close_trusted_portable};
