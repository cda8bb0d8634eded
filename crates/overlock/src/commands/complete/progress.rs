//! Shows the progress of a run on standard error.
//!
//! On a terminal the line of the current answer is overwritten as the answer grows; elsewhere there
//! is one line for each finished answer.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use overlock_budget::Plan;
use overlock_json::Delivered;
use overlock_llm::{Continuation, NextCall, Retry, Step};
use overlock_store::RunId;

use crate::draw::{self, CUT, Join, NEW, grouped, grouped_tokens};
use crate::output::Notes;

const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

const PATH_COLUMNS: usize = 40;

/// The columns of the number and the mark of a step.
const INDENT: usize = 7;

pub(super) struct CallProgress {
    notes: Notes,
    is_live: bool,
    /// When the line of the current answer was last overwritten.
    updated: Option<Instant>,
    /// The beginning of that line.
    call: String,
    received: usize,
}

impl CallProgress {
    pub(super) fn new() -> Self {
        Self {
            notes: Notes::new(),
            is_live: io::stderr().is_terminal(),
            updated: None,
            call: String::new(),
            received: 0,
        }
    }

    pub(super) fn begin(&mut self, id: &RunId, model: &str, run: &Continuation) {
        if run.iterations() == 0 {
            self.notes.line(format_args!("run {id} with {model}"));
        } else {
            self.notes.line(format_args!(
                "resuming run {id} with {model}: {} answers, {} bytes so far",
                run.iterations(),
                grouped(run.text().len())
            ));
        }
    }

    pub(super) fn asking(&mut self, ask: &NextCall, plan: &Plan) {
        self.received = 0;
        self.updated = None;
        let strategy = ask.strategy.map_or("prompt", overlock_llm::Strategy::name);
        self.call = format!(
            "{:>3}  {strategy}, {} tokens in",
            ask.iteration,
            grouped_tokens(plan.input_token_count)
        );
        let most = grouped_tokens(plan.adjusted_max_tokens);
        self.live(&format!("{}, at most {most} out …", self.call));
    }

    pub(super) fn retrying(&mut self, retry: &Retry) {
        self.live("");
        let wait = retry.wait.as_secs_f32();
        let error = draw::plain(&retry.error.to_string());
        let message = format!("{error}; retrying in {wait:.1} s");
        for line in draw::wrap_words(&message, self.width()) {
            self.notes.line(format_args!("{:INDENT$}{line}", ""));
        }
        self.live(&format!("{}, waiting {wait:.1} s …", self.call));
    }

    pub(super) fn received(&mut self, piece: &str) {
        self.received += piece.len();
        let is_due = |updated: Instant| updated.elapsed() >= UPDATE_INTERVAL;
        if self.updated.is_none_or(is_due) {
            self.updated = Some(Instant::now());
            let received = grouped(self.received);
            self.live(&format!("{}, {received} bytes out …", self.call));
        }
    }

    pub(super) fn stepped(&mut self, run: &Continuation, step: &Step) {
        self.live("");
        let join = Join::from(&step.result);
        let mut parts = vec![format!("{} bytes", grouped(self.received)), join.phrase()];
        let mark = match join {
            Join::Rejected { .. } => format!("{CUT}✗{CUT:#}"),
            Join::Made { .. } => {
                parts.extend(document_state(run));
                format!("{NEW}✓{NEW:#}")
            }
        };
        parts.extend(step.warnings());
        let width = self.width();
        let parts = parts.iter().map(|part| draw::plain(part));
        let parts = parts.flat_map(|part| draw::wrap_words(&part, width));
        let parts: Vec<String> = parts.collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let lines = draw::wrap(&parts, "; ", width);
        for (index, line) in lines.iter().enumerate() {
            match index {
                0 => self
                    .notes
                    .line(format_args!("{:>3}  {mark} {line}", step.iteration)),
                _ => self.notes.line(format_args!("{:INDENT$}{line}", "")),
            }
        }
    }

    /// The columns for the text of a step.
    fn width(&self) -> usize {
        if self.is_live {
            draw::terminal_width() - INDENT
        } else {
            usize::MAX
        }
    }

    /// Removes the line that is overwritten.
    pub(super) fn end(&self) {
        self.live("");
    }

    /// Overwrites the line of the current answer.
    fn live(&self, line: &str) {
        if self.is_live {
            let line = draw::head(line.as_bytes(), draw::live_width()).text;
            // Progress is not worth failing for.
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        }
    }
}

fn document_state(run: &Continuation) -> Vec<String> {
    let length = grouped(run.text().len());
    let Some(cut) = run.base().and_then(overlock_json::PartialDocument::cut) else {
        return vec![format!("complete with {length} bytes")];
    };
    let place = cut.place.phrase();
    let path = draw::path(&cut.path, PATH_COLUMNS);
    let mut parts = vec![
        format!("{length} bytes so far"),
        format!("cut {place} at {path}"),
    ];
    let last = run
        .delivered()
        .map(Delivered::lines)
        .and_then(|mut lines| lines.pop());
    parts.extend(last.map(|line| line.trim_start_matches("- ").to_owned()));
    parts
}
