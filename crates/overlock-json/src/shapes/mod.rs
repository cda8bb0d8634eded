//! JSON requests and replies of the command line and the JSON API.

// Requests.
mod object;

// Replies.
mod close;
mod cut;
mod render;
mod repair;
mod shortened;
mod stitch;

pub use close::{ClosedText, close_object, close_text};
pub use cut::{CutContexts, cut_contexts, cut_object};
pub use object::{Object, Refusal};
pub use render::{LEAST_LIMIT, RenderedText, render_object};
pub use repair::{RepairedText, repair_object, repair_text};
pub use shortened::shortened;
pub use stitch::{StitchedSeam, StitchedText, stitch_object, stitched, suspicion_of};

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
