//! Tells on standard error what happens in a run, line by line.
//!
//! On a terminal the line of the answer that is arriving is written over as it grows; elsewhere
//! there is one line for each answer, once it is there.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use overlock_budget::Plan;
use overlock_json::Delivered;
use overlock_model::{Ask, Continuation, Step, StepResult};
use overlock_store::RunId;

use crate::draw::{self, grouped, grouped_tokens};
use crate::output::Notes;

/// Nobody reads faster.
const EVERY: Duration = Duration::from_millis(100);

/// The room for a path in a line.
const PATH_ROOM: usize = 40;

pub(super) struct Show {
    notes: Notes,
    is_live: bool,
    updated: Instant,
    iteration: u32,
    received: usize,
    length: usize,
}

impl Show {
    pub(super) fn new(run: &Continuation) -> Self {
        Self {
            notes: Notes::new(),
            is_live: io::stderr().is_terminal(),
            updated: Instant::now(),
            iteration: run.iterations(),
            received: 0,
            length: run.text().len(),
        }
    }

    pub(super) fn begin(&mut self, id: &RunId, model: &str, run: &Continuation) {
        if run.iterations() == 0 {
            self.notes.line(format_args!("run {id} with {model}"));
        } else {
            self.notes.line(format_args!(
                "run {id} with {model} goes on: {} answers, {} bytes are there",
                run.iterations(),
                grouped(self.length)
            ));
        }
    }

    pub(super) fn asking(&mut self, ask: &Ask, plan: &Plan) {
        self.iteration = ask.iteration;
        self.received = 0;
        let way = ask.way.map_or("asked", overlock_model::Way::name);
        self.live(&format!(
            "{:>3}  {way}, {} tokens in, {} at most out …",
            self.iteration,
            grouped_tokens(plan.input_token_count),
            grouped_tokens(plan.adjusted_max_tokens)
        ));
    }

    pub(super) fn heard(&mut self, piece: &str) {
        self.received += piece.len();
        if self.updated.elapsed() >= EVERY {
            self.updated = Instant::now();
            let line = format!("{:>3}  {} bytes …", self.iteration, grouped(self.received));
            self.live(&line);
        }
    }

    pub(super) fn stepped(&mut self, run: &Continuation, step: &Step) {
        self.live("");
        let received = grouped(self.received);
        let told = match &step.result {
            StepResult::Failed { failure, .. } => format!("✗ {received} bytes refused: {failure}"),
            StepResult::Grown { seam, overlap, .. } => {
                let joined = match *overlap {
                    0 => seam.clone(),
                    overlap => format!("{seam}, {} characters repeated", grouped(overlap)),
                };
                format!("✓ {received} bytes, {joined}; {}", so_far(run))
            }
        };
        self.notes
            .line(format_args!("{:>3}  {told}", step.iteration));
        for warning in step.warnings() {
            self.notes.line(format_args!("     ! {warning}"));
        }
        self.length = run.text().len();
    }

    /// Writes over the line of the answer that is arriving.
    fn live(&self, line: &str) {
        if self.is_live {
            let width = draw::terminal_width().saturating_sub(1);
            let line: String = line.chars().take(width).collect();
            // A line that cannot be written is let go.
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        }
    }
}

/// How far the document has come.
fn so_far(run: &Continuation) -> String {
    let length = grouped(run.text().len());
    let Some(cut) = run.base().and_then(overlock_json::Base::cut) else {
        return format!("whole with {length} bytes");
    };
    let place = draw::place_phrase(cut.place);
    let path = draw::path(&cut.path, PATH_ROOM);
    let last = run
        .delivered()
        .map(Delivered::lines)
        .and_then(|mut lines| lines.pop());
    let delivered = last.map(|line| format!("; {}", line.trim_start_matches("- ")));
    format!(
        "{length} so far, cut {place} at {path}{}",
        delivered.unwrap_or_default()
    )
}
