//! Draws cuts, seams, models and windows for people.
//!
//! Colour never carries meaning on its own. Control characters in a text are drawn as symbols, so a
//! text cannot control the terminal.

mod cells;
mod cut;
mod model;
mod seam;
mod trail;
mod window;
mod words;

use anstyle::{AnsiColor, Style};

pub(crate) use cells::{escaped_except_styles, head, line_cells, plain, tail, wrap, wrap_words};
pub(crate) use cut::{CutDrawing, Position, cut_lines};
pub(crate) use model::{ModelDrawing, model_table};
pub(crate) use seam::{Join, SeamDrawing};
pub(crate) use trail::open_trail;
pub(crate) use window::{NO_MORE_ROOM, PartDrawing, Verdict, WindowDrawing, counted};
pub(crate) use words::{
    SENTENCE_COLUMNS, amount, cut_sentence, fix_name, fixes, grouped, grouped_tokens, path,
};

/// What matters most on a line.
pub(crate) const STRONG: Style = Style::new().bold();
/// Labels and other less important text.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Cuts and failures.
pub(crate) const CUT: Style = AnsiColor::Red.on_default().bold();
/// Repeated text, and warnings.
pub(crate) const REPEATED: Style = AnsiColor::Yellow.on_default();
/// New text, and successes.
pub(crate) const NEW: Style = AnsiColor::Green.on_default();

/// The columns to draw in.
pub(crate) fn terminal_width() -> usize {
    // Less is not readable, and more is tiring to read.
    columns().clamp(40, 140)
}

/// The columns of a line that is overwritten. It must not wrap, even on a narrow terminal.
pub(crate) fn live_width() -> usize {
    terminal_width().min(columns()).saturating_sub(1)
}

fn columns() -> usize {
    const WITHOUT_TERMINAL: usize = 100;
    terminal_size::terminal_size().map_or(WITHOUT_TERMINAL, |(width, _)| usize::from(width.0))
}
