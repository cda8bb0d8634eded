//! How cuts, seams, models and windows are shown to people.
//!
//! Colour is only ever added to what the words and marks already say. Whatever stands
//! in a text, it cannot steer the terminal: control characters are drawn, not sent.

mod cells;
mod model;
mod place;
mod seam;
mod trail;
mod window;
mod words;

use anstyle::{AnsiColor, Style};

pub(crate) use cells::{head, line_cells, plain, tail, tamed};
pub(crate) use model::{ModelDrawing, model_table};
pub(crate) use place::{CutDrawing, Position, cut_lines};
pub(crate) use seam::{Join, SeamDrawing};
pub(crate) use trail::open_trail;
pub(crate) use window::{PartDrawing, Verdict, WindowDrawing, counted, wrap, wrap_words};
pub(crate) use words::{
    SENTENCE_COLUMNS, amount, cut_sentence, fix_name, fixes, grouped, grouped_tokens, path,
};

/// What matters most on a line.
pub(crate) const STRONG: Style = Style::new().bold();
/// What is there for orientation.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// The cut, and what was refused.
pub(crate) const CUT: Style = AnsiColor::Red.on_default().bold();
/// What came twice.
pub(crate) const REPEATED: Style = AnsiColor::Yellow.on_default();
/// What is new, and what went well.
pub(crate) const NEW: Style = AnsiColor::Green.on_default();

/// How many columns there are to draw in.
pub(crate) fn terminal_width() -> usize {
    // Narrower than this nothing can be read, and wider lines tire the eye.
    columns().clamp(40, 140)
}

/// How much of a line can be written over: one that is broken cannot, however narrow it is.
pub(crate) fn live_width() -> usize {
    terminal_width().min(columns()).saturating_sub(1)
}

fn columns() -> usize {
    const WITHOUT_TERMINAL: usize = 100;
    terminal_size::terminal_size().map_or(WITHOUT_TERMINAL, |(width, _)| usize::from(width.0))
}
