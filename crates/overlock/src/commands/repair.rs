//! `overlock repair`: malformed JSON as models write it becomes valid JSON.

use clap::{Args, ValueEnum};
use overlock_json::RepairOptions;
use overlock_json::{repair_object, repair_text};

use super::{Form, no_json};
use crate::batch;
use crate::draw;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Turn malformed JSON into valid JSON
///
/// Comments, commas, quotes, escapes, literals, brackets, fences and prose are put
/// right. Valid JSON comes back byte for byte.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo \"{name: 'Ada', langs: [None, True,],}\" | overlock repair\n  \
    {\"name\": \"Ada\", \"langs\": [null, true]}\n\n\
    Exit codes: 0 valid JSON; 1 no JSON in the text; 2 bad usage or unreadable input.")]
pub(crate) struct Repair {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    form: Form,
    /// List what was put right, and where, on standard error
    #[arg(long)]
    fixes: bool,
    /// What becomes of several documents in a row
    #[arg(long, value_name = "WHICH", default_value = "array")]
    several: Several,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Several {
    /// An array of them all
    Array,
    /// The first alone
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
        if self.form.jsonl {
            let source = self.source.open(&mut notes)?;
            return batch::run(source, &self.source.name(), move |object| {
                repair_object(object, options)
            });
        }
        let text = self.source.read(&mut notes)?;
        let answer = repair_text(&text.bytes, options)
            .map_err(|reason| no_json(reason, &text.name, &self.form))?;
        if self.form.json {
            Results::new().object(&answer)?;
            return Ok(Ending::Whole);
        }
        Results::new().document(&[answer.json.as_bytes()])?;
        if self.fixes {
            for fix in &answer.fixes {
                let position = draw::Position::of(&text.bytes, fix.offset);
                notes.line(format_args!("{position}: {}", draw::fix_name(*fix)));
            }
            notes.note(draw::fixes(&answer.fixes));
        }
        Ok(Ending::Whole)
    }
}
