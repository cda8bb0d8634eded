//! `overlock cut`: where and how a text stops.

use clap::Args;
use overlock_json::{Base, ContextOptions};
use serde::{Serialize, Serializer};
use serde_json::value::to_raw_value;

use super::{Form, no_json};
use crate::batch::{self, Object};
use crate::draw::{self, CutDrawing};
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Show where and how a JSON text stops
///
/// On a terminal the place is drawn; elsewhere it is plain `name: value` lines. With
/// --json come all the contexts that a prompt for the rest is made of.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo -n '{\"rows\":[[\"Oslo\",4],[\"Ber' | overlock cut | cat\n  \
    status: cut\n  \
    place: string\n  \
    path: /rows/1/0\n  \
    …\n\n\
    Exit codes: 0 complete; 1 cut, or no JSON in the text; 2 bad usage or unreadable input.")]
pub(crate) struct Cut {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    form: Form,
}

/// The answer to machines: everything a prompt for the rest may want.
///
/// The text of the document is in it several times, so that it is borrowed and not copied.
#[derive(Serialize)]
struct Answer<'a> {
    overlap_context: &'a str,
    hierarchy_context: &'a str,
    hierarchy_context_for_prompt: String,
    complete_part: Closed<'a>,
    parsing_success: bool,
    cut: Option<overlock_json::Cut>,
    cut_off_element: &'a str,
    element_before_cutoff: &'a str,
    section_count: usize,
    delivered: String,
}

/// A document in two parts: what is kept of the text, and what closes it.
#[derive(Default)]
struct Closed<'a> {
    kept: &'a str,
    closers: String,
}

impl Serialize for Closed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}{}", self.kept, self.closers))
    }
}

impl Cut {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        if self.form.jsonl {
            let source = self.source.open(&mut notes)?;
            return batch::run(source, &self.source.name(), |mut object: Object| {
                let text = object.text("text")?;
                let base = Base::read(&text)?;
                Ok(to_raw_value(&answer(&base)).expect("every key of the answer is a string"))
            });
        }
        let text = self.source.read(&mut notes)?;
        let refuse = |reason| no_json(reason, &text.name, &self.form);
        let base = Base::read(&text.bytes).map_err(refuse)?;
        let mut results = Results::new();
        if self.form.json {
            results.object(&answer(&base))?;
            return Ok(Ending::whole_if(base.is_complete()));
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
        Ok(Ending::whole_if(!drawing.is_cut()))
    }
}

fn answer<'a>(base: &'a Base<'_>) -> Answer<'a> {
    let options = ContextOptions::default();
    let delivered = base.delivered();
    let closing = base.scanner().closing(false);
    let elements = base.cut_elements();
    Answer {
        overlap_context: base.overlap_context(options.answer_chars),
        hierarchy_context: base.text(),
        hierarchy_context_for_prompt: base.render(&options.render),
        parsing_success: closing.is_some(),
        complete_part: closing.map_or(Closed::default(), |closing| Closed {
            kept: &base.text()[..closing.kept_len],
            closers: closing.closers,
        }),
        cut: base.cut(),
        cut_off_element: elements.cut_off,
        element_before_cutoff: elements.before,
        section_count: delivered.section_count(),
        delivered: delivered.lines().join("\n"),
    }
}
