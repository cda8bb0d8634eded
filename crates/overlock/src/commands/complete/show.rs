//! Tells on standard error what happens in a run, line by line.
//!
//! On a terminal the line of the answer that is arriving is written over as it grows; elsewhere
//! there is one line for each answer, once it is there.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use overlock_budget::Plan;
use overlock_json::Delivered;
use overlock_llm::{Continuation, NextCall, Retry, Step};
use overlock_store::RunId;

use crate::draw::{self, CUT, Join, NEW, grouped, grouped_tokens};
use crate::output::Notes;

/// Nobody reads faster.
const EVERY: Duration = Duration::from_millis(100);

/// The room for a path in a line.
const PATH_ROOM: usize = 40;

/// What stands before the words of a step: its number and its mark.
const INDENT: usize = 7;

pub(super) struct Show {
    notes: Notes,
    is_live: bool,
    /// When the line of the answer that is arriving was last written over.
    updated: Option<Instant>,
    /// What was asked, for as long as the answer is arriving.
    asked: String,
    received: usize,
}

impl Show {
    pub(super) fn new() -> Self {
        Self {
            notes: Notes::new(),
            is_live: io::stderr().is_terminal(),
            updated: None,
            asked: String::new(),
            received: 0,
        }
    }

    pub(super) fn begin(&mut self, id: &RunId, model: &str, run: &Continuation) {
        if run.iterations() == 0 {
            self.notes.line(format_args!("run {id} with {model}"));
        } else {
            self.notes.line(format_args!(
                "run {id} with {model} goes on: {} answers, {} bytes are there",
                run.iterations(),
                grouped(run.text().len())
            ));
        }
    }

    pub(super) fn asking(&mut self, ask: &NextCall, plan: &Plan) {
        self.received = 0;
        self.updated = None;
        let way = ask.way.map_or("asked", overlock_llm::Strategy::name);
        self.asked = format!(
            "{:>3}  {way}, {} tokens in",
            ask.iteration,
            grouped_tokens(plan.input_token_count)
        );
        let most = grouped_tokens(plan.adjusted_max_tokens);
        self.live(&format!("{}, {most} at most out …", self.asked));
    }

    /// The server is left alone for a while: nobody should wonder why nothing comes.
    pub(super) fn retrying(&mut self, retry: &Retry) {
        self.live("");
        let wait = retry.wait.as_secs_f32();
        let error = draw::plain(&retry.error.to_string());
        let told = format!("{error}; asked again in {wait:.1} s");
        for line in draw::wrap_words(&told, self.width()) {
            self.notes.line(format_args!("{:INDENT$}{line}", ""));
        }
        self.live(&format!("{}, waiting {wait:.1} s …", self.asked));
    }

    pub(super) fn heard(&mut self, piece: &str) {
        self.received += piece.len();
        let is_due = |updated: Instant| updated.elapsed() >= EVERY;
        if self.updated.is_none_or(is_due) {
            self.updated = Some(Instant::now());
            let received = grouped(self.received);
            self.live(&format!("{}, {received} bytes out …", self.asked));
        }
    }

    pub(super) fn stepped(&mut self, run: &Continuation, step: &Step) {
        self.live("");
        let join = Join::from(&step.result);
        let mut told = vec![format!("{} bytes", grouped(self.received)), join.phrase()];
        let mark = match join {
            Join::Refused { .. } => format!("{CUT}✗{CUT:#}"),
            Join::Made { .. } => {
                told.extend(so_far(run));
                format!("{NEW}✓{NEW:#}")
            }
        };
        told.extend(step.warnings());
        let width = self.width();
        let told = told.iter().map(|words| draw::plain(words));
        let told = told.flat_map(|words| draw::wrap_words(&words, width));
        let told: Vec<String> = told.collect();
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        let lines = draw::wrap(&told, "; ", width);
        for (index, line) in lines.iter().enumerate() {
            match index {
                0 => self
                    .notes
                    .line(format_args!("{:>3}  {mark} {line}", step.iteration)),
                _ => self.notes.line(format_args!("{:INDENT$}{line}", "")),
            }
        }
    }

    /// How wide the words of a step may be.
    fn width(&self) -> usize {
        if self.is_live {
            draw::terminal_width() - INDENT
        } else {
            usize::MAX
        }
    }

    /// Nothing more happens: what was only there for the moment goes.
    pub(super) fn end(&self) {
        self.live("");
    }

    /// Writes over the line of the answer that is arriving.
    fn live(&self, line: &str) {
        if self.is_live {
            let line = draw::head(line.as_bytes(), draw::live_width()).text;
            // A line that cannot be written is let go.
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        }
    }
}

/// How far the document has come.
fn so_far(run: &Continuation) -> Vec<String> {
    let length = grouped(run.text().len());
    let Some(cut) = run.base().and_then(overlock_json::PartialDocument::cut) else {
        return vec![format!("whole with {length} bytes")];
    };
    let place = cut.place.phrase();
    let path = draw::path(&cut.path, PATH_ROOM);
    let mut told = vec![
        format!("{length} bytes so far"),
        format!("cut {place} at {path}"),
    ];
    let last = run
        .delivered()
        .map(Delivered::lines)
        .and_then(|mut lines| lines.pop());
    told.extend(last.map(|line| line.trim_start_matches("- ").to_owned()));
    told
}
