//! `overlock classify`: detects the language of a text.

use clap::Args;
use overlock_code::{Classification, Language, classify};
use serde::Serialize;

use super::FormatArgs;
use crate::batch;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Detect SQL and .NET source code
///
/// Only the text is examined, no file name. C#, Visual Basic, Razor and the project and
/// configuration files of .NET are `dotnet`, or `dotnet_with_sql` if their strings contain SQL
/// statements; SQL of any dialect is `sql`; everything else is `unknown`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo 'select 1' | overlock classify\n  \
    sql\n\n\
    Keys of a --jsonl line: text.\n\n\
    Exit codes: 0 SQL or .NET; 1 unknown; 2 bad usage or unreadable input. With --jsonl an\n\
    unknown text does not change the exit code.")]
pub(crate) struct Classify {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    format: FormatArgs,
}

/// The output of `--json`.
#[derive(Serialize)]
struct LanguageReport {
    language: &'static str,
    confidence: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    syntax: Option<&'static str>,
    reasons: Vec<&'static str>,
}

/// An output line of `--jsonl`.
#[derive(Serialize)]
struct LanguageLine {
    language: &'static str,
    confidence: f32,
}

impl Classify {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        if self.format.jsonl {
            let source = self.source.open(&mut notes)?;
            return batch::run(source, &self.source.name(), &["text"], |mut object| {
                let text = object.text("text")?;
                let Classification {
                    language,
                    confidence,
                    ..
                } = classify(&text);
                Ok(LanguageLine {
                    language: language.name(),
                    confidence: rounded(confidence),
                })
            });
        }
        let found = classify(&self.source.read_text(&mut notes)?);
        let mut results = Results::new();
        if self.format.json {
            results.object(&LanguageReport {
                language: found.language.name(),
                confidence: rounded(found.confidence),
                syntax: found.syntax.map(overlock_code::Syntax::name),
                reasons: found.reasons,
            })?;
        } else {
            results.line(found.language.name())?;
            if !found.reasons.is_empty() {
                notes.note(format_args!(
                    "{:.0} % sure, by {}",
                    found.confidence * 100.0,
                    found.reasons.join(", ")
                ));
            }
        }
        Ok(Ending::done_if(found.language != Language::Unknown))
    }
}

/// The confidence is not more precise than three digits.
fn rounded(confidence: f32) -> f32 {
    (confidence * 1000.0).round() / 1000.0
}
