//! JSON that was cut.

mod base;
mod close;
mod contexts;
mod cut;
mod delivered;
mod extract;
mod render;
mod repair;
mod scan;
mod stitch;
mod structure;

pub use base::Base;
pub use close::{CloseOptions, Closed, Closing, close};
pub use contexts::{ContextOptions, Contexts, contexts};
pub use cut::{Cut, Place};
pub use delivered::{Delivered, delivered};
pub use extract::{Cleaned, Extracted, NoJson, clean_encoding, extract};
pub use render::{CutValue, RenderOptions, render, render_with};
pub use repair::{Fix, FixKind, RepairOptions, Repaired, Several, repair};
pub use scan::{Container, Offence, OffenceKind, Scalar, Scanner, Visitor};
pub use stitch::{Outcome, Protocol, Seam, StitchOptions, stitch};
pub use structure::close_trusted;
