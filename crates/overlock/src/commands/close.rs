//! `overlock close`: turns cut JSON into valid JSON without inventing anything.

use clap::Args;
use overlock_json::{CloseOptions, NoJson, PartialDocument};
use overlock_json::{close_object, close_text};

use super::{FormatArgs, no_json, note_other_documents};
use crate::batch;
use crate::draw;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Close truncated JSON
///
/// A string that was cut ends at the cut; any other incomplete member is left out. Nothing is
/// guessed, and all other text stays byte for byte. Prose and Markdown fences around the JSON are
/// removed, and malformed JSON is repaired first.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo -n '{\"title\":\"Quarterly rep' | overlock close\n  \
    {\"title\":\"Quarterly rep\"}\n\n\
    Keys of a --jsonl line: text, strict.\n\n\
    Exit codes: 0 valid JSON; 1 no JSON in the text; 2 bad usage or unreadable input.")]
pub(crate) struct Close {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    format: FormatArgs,
    /// Leave out a string that was cut, instead of ending it at the cut
    #[arg(long)]
    strict: bool,
}

impl Close {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let options = CloseOptions {
            strict: self.strict,
        };
        if self.format.jsonl {
            let source = self.source.open(&mut notes)?;
            return batch::run(
                source,
                &self.source.name(),
                &["text", "strict"],
                move |object| close_object(object, options),
            );
        }
        let text = self.source.read(&mut notes)?;
        let refuse = |reason| no_json(reason, &text.name, &self.format);
        if self.format.json {
            let answer = close_text(&text.bytes, options).map_err(refuse)?;
            Results::new().object(&answer)?;
            note_other_documents(&mut notes, answer.other_documents);
            return Ok(Ending::Done);
        }
        let base = PartialDocument::read(&text.bytes).map_err(refuse)?;
        let closing = base
            .scanner()
            .closing(self.strict)
            .ok_or_else(|| refuse(NoJson::Absent))?;
        let kept = &base.text().as_bytes()[..closing.kept_len];
        Results::new().document(&[kept, closing.closers.as_bytes()])?;
        note_other_documents(&mut notes, base.other_documents());
        let losses = base.scanner().losses(self.strict);
        if let Some(path) = &losses.truncated {
            notes.note(format_args!(
                "the string at {} is truncated",
                draw::path(path, draw::SENTENCE_COLUMNS)
            ));
        }
        if let Some(path) = &losses.dropped {
            notes.note(format_args!(
                "left out the incomplete value at {}",
                draw::path(path, draw::SENTENCE_COLUMNS)
            ));
        }
        if !base.fixes().is_empty() {
            notes.note(format_args!(
                "repaired first: {}",
                draw::fixes(base.fixes())
            ));
        }
        Ok(Ending::Done)
    }
}
