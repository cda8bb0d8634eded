//! `overlock repair`: turns malformed JSON, as models write it, into valid JSON.

use clap::{Args, ValueEnum};
use overlock_json::RepairOptions;
use overlock_json::{repair_object, repair_text};

use super::{FormatArgs, no_json};
use crate::batch;
use crate::draw;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Repair malformed JSON
///
/// Corrects commas, quotes, escapes, literals and brackets, and removes comments, Markdown fences
/// and prose. Valid JSON is returned byte for byte.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo \"{name: 'Ada', langs: [None, True,],}\" | overlock repair\n  \
    {\"name\": \"Ada\", \"langs\": [null, true]}\n\n\
    Keys of a --jsonl line: text, several.\n\n\
    Exit codes: 0 valid JSON; 1 no JSON in the text; 2 bad usage or unreadable input.")]
pub(crate) struct Repair {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    format: FormatArgs,
    /// List the fixes and their positions on standard error
    #[arg(long)]
    fixes: bool,
    /// What to do with several documents in one text
    #[arg(long, value_name = "WHICH", default_value = "array")]
    several: Several,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Several {
    /// Print an array of all documents
    Array,
    /// Print only the first one
    First,
}

impl From<Several> for overlock_json::Several {
    fn from(several: Several) -> Self {
        match several {
            Several::Array => Self::Array,
            Several::First => Self::First,
        }
    }
}

impl Repair {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let options = RepairOptions {
            several: self.several.into(),
        };
        if self.format.jsonl {
            let source = self.source.open(&mut notes)?;
            return batch::run(
                source,
                &self.source.name(),
                &["text", "several"],
                move |object| repair_object(object, options),
            );
        }
        let text = self.source.read(&mut notes)?;
        let repaired = repair_text(&text.bytes, options)
            .map_err(|reason| no_json(reason, &text.name, &self.format))?;
        if self.format.json {
            Results::new().object(&repaired)?;
            return Ok(Ending::Done);
        }
        Results::new().document(&[repaired.json.as_bytes()])?;
        if self.fixes {
            for fix in &repaired.fixes {
                let position = draw::Position::of(&text.bytes, fix.offset);
                notes.line(format_args!("{position}: {}", draw::fix_name(*fix)));
            }
            notes.note(draw::fixes(&repaired.fixes));
        }
        Ok(Ending::Done)
    }
}
