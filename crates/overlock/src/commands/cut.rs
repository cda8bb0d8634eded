//! `overlock cut`: shows where a JSON text was cut.

use clap::Args;
use overlock_json::PartialDocument;
use overlock_json::{cut_contexts, cut_object};

use super::{FormatArgs, no_json, note_other_documents};
use crate::batch;
use crate::draw::{self, CutDrawing};
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Show where a JSON text was cut
///
/// On a terminal the cut is drawn; elsewhere the output is `name: value` lines. With --json it
/// includes everything that a continuation prompt is made of.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo -n '{\"rows\":[[\"Oslo\",4],[\"Ber' | overlock cut | cat\n  \
    status: cut\n  \
    place: string\n  \
    path: /rows/1/0\n  \
    …\n\n\
    Keys of a --jsonl line: text.\n\n\
    Exit codes: 0 complete; 1 cut, or no JSON in the text; 2 bad usage or unreadable input.")]
pub(crate) struct Cut {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    format: FormatArgs,
}

impl Cut {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        if self.format.jsonl {
            let source = self.source.open(&mut notes)?;
            return batch::run(source, &self.source.name(), &["text"], cut_object);
        }
        let text = self.source.read(&mut notes)?;
        let refuse = |reason| no_json(reason, &text.name, &self.format);
        let base = PartialDocument::read(&text.bytes).map_err(refuse)?;
        let mut results = Results::new();
        note_other_documents(&mut notes, base.other_documents());
        if self.format.json {
            results.object(&cut_contexts(&base))?;
            return Ok(Ending::done_if(base.is_complete()));
        }
        let drawing = CutDrawing::new(&text.bytes, &base);
        let lines = if results.is_terminal() {
            drawing.for_terminal(draw::terminal_width())
        } else {
            drawing.plain()
        };
        for line in lines {
            results.line(&line)?;
        }
        Ok(Ending::done_if(!drawing.is_cut()))
    }
}
