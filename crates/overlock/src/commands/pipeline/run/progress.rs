//! Shows the progress of a run on standard error.
//!
//! Each finished step gets a line, or several with `--explain`. On a terminal the line of the
//! current step is overwritten.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use overlock_llm::Retry;
use overlock_pipeline::{Pipeline, Step, Watch};
use overlock_runs::{PipelineRun, State, TraceEvent};
use overlock_store::RunId;

use super::summary::StepSummary;
use crate::draw::{self, grouped};
use crate::output::Notes;

const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct StepProgress {
    notes: Notes,
    is_live: bool,
    explains: bool,
    updated: Option<Instant>,
    received: usize,
    call: u32,
}

impl StepProgress {
    pub(super) fn new(explains: bool) -> Self {
        Self {
            notes: Notes::new(),
            is_live: io::stderr().is_terminal(),
            explains,
            updated: None,
            received: 0,
            call: 0,
        }
    }

    pub(super) fn begin(&mut self, id: &RunId, pipeline: &Pipeline, run: &PipelineRun) {
        let name = draw::plain(&pipeline.name);
        let done = run.trace.len();
        if done == 0 {
            self.notes.line(format_args!("run {id} of {name}"));
        } else {
            self.notes.line(format_args!(
                "resuming run {id} of {name} after {done} steps"
            ));
        }
    }

    /// Removes the line that is overwritten.
    pub(super) fn end(&self) {
        self.live("");
    }

    /// Overwrites the line of the current step.
    fn live(&self, line: &str) {
        if self.is_live {
            let width = draw::live_width();
            let line = draw::escaped_except_styles(line);
            let line: String = line.chars().take(width).collect();
            // Progress is not worth failing for.
            let _ = write!(io::stderr(), "\r\u{1b}[K{line}");
            let _ = io::stderr().flush();
        }
    }
}

fn width(is_terminal: bool) -> usize {
    if is_terminal {
        draw::terminal_width()
    } else {
        usize::MAX
    }
}

impl Watch for StepProgress {
    fn entered(&mut self, step: &Step, _state: &State) {
        self.received = 0;
        self.call = 0;
        self.updated = None;
        let (id, action) = (draw::plain(&step.id), step.action.name());
        self.live(&format!("     {id}  {action} …"));
    }

    fn asking(&mut self, step_id: &str, iteration: u32) {
        self.call = iteration;
        self.live(&format!(
            "     {}  call {iteration} …",
            draw::plain(step_id)
        ));
    }

    fn retrying(&mut self, step_id: &str, retry: &Retry) {
        self.live("");
        let (id, wait) = (draw::plain(step_id), retry.wait.as_secs_f32());
        let error = draw::plain(&retry.error.to_string());
        self.notes
            .line(format_args!("     {id}  {error}; retrying in {wait:.1} s"));
    }

    fn received(&mut self, step_id: &str, piece: &str) {
        self.received += piece.len();
        let is_due = |updated: Instant| updated.elapsed() >= UPDATE_INTERVAL;
        if self.updated.is_none_or(is_due) {
            self.updated = Some(Instant::now());
            let received = grouped(self.received);
            self.live(&format!(
                "     {}  {received} bytes …",
                draw::plain(step_id)
            ));
        }
    }

    fn stepped(&mut self, event: &TraceEvent) {
        self.live("");
        let mut summary = StepSummary::new(event, width(self.is_live));
        if !self.explains {
            summary.details.clear();
        }
        summary.lines().for_each(|line| self.notes.line(line));
    }
}
