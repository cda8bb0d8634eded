//! `overlock stitch`: joins the pieces of a long answer into one document.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use overlock_json::{Outcome, PartialDocument, Seam, StitchOptions, stitch};
use overlock_json::{stitch_object, stitched, suspicion_of};

use super::{FormatArgs, no_json};
use crate::batch;
use crate::draw::{self, Join, SeamDrawing};
use crate::ending::{Ending, Failure};
use crate::input::{self, InputText, Source};
use crate::output::{Notes, Results};

/// Join the pieces of a cut document
///
/// Each piece after the first is joined where it overlaps the text so far, or rejected. The document
/// goes to standard output, even if it is incomplete; the seams are shown on standard error.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo -n '[\"one\", \"two and a ha' > a; echo '\"two and a half\", \"three\"]' > b\n  \
    $ overlock stitch a b --expected-overlap '\"two and a ha'\n  \
    [\"one\", \"two and a half\", \"three\"]\n\n\
    Keys of a --jsonl line: parts, expected_overlap, protocol.\n\n\
    Exit codes: 0 complete; 1 still cut, or a piece was rejected; 2 bad usage or unreadable input.")]
pub(crate) struct Stitch {
    /// The pieces in order, `-` for standard input; with --jsonl one file, or none
    #[arg(value_name = "PART")]
    parts: Vec<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
    /// How the pieces were requested
    #[arg(long, value_name = "HOW", default_value = "auto")]
    protocol: Protocol,
    /// The text that the next piece was asked to repeat; once for each seam, in order
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    expected_overlap: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Protocol {
    /// Each piece was asked to repeat the end of the one before
    Overlap,
    /// Each piece starts exactly where the one before ends
    Prefill,
    /// Either
    Auto,
}

impl From<Protocol> for overlock_json::Protocol {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Overlap => Self::Overlap,
            Protocol::Prefill => Self::Prefill,
            Protocol::Auto => Self::Auto,
        }
    }
}

impl Stitch {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        if self.format.jsonl {
            return self.run_batch(&mut notes);
        }
        self.check_usage()?;
        let texts = self
            .parts
            .iter()
            .map(|path| input::read(path, &mut notes))
            .collect::<Result<Vec<_>, _>>()?;
        let [first, rest @ ..] = texts.as_slice() else {
            return Err(too_few_parts());
        };
        self.join(first, rest, &mut notes)
    }

    fn join(
        &self,
        first: &InputText,
        rest: &[InputText],
        notes: &mut Notes,
    ) -> Result<Ending, Failure> {
        let mut base = PartialDocument::read(&first.bytes)
            .map_err(|reason| no_json(reason, &first.name, &self.format))?;
        let mut seams = Vec::new();
        for (index, part) in rest.iter().enumerate() {
            let options = StitchOptions {
                protocol: self.protocol.into(),
                expected_overlap: self.expected_overlap.get(index).map(String::as_str),
            };
            let seam = stitch(&mut base, &part.bytes, &options);
            if !self.format.json {
                let join = Join::from(&seam);
                let drawing = SeamDrawing::new(base.text().as_bytes(), &part.bytes, &join);
                let title = format!("seam {} ({})", index + 1, part.name);
                for line in drawing.lines(&title, draw::terminal_width()) {
                    notes.line(line);
                }
            }
            seams.push(seam);
        }
        let is_done = base.is_complete() && !seams.iter().any(is_rejected);
        if self.format.json {
            Results::new().object(&stitched(&base, &seams))?;
            return Ok(Ending::done_if(is_done));
        }
        Results::new().document(&[base.text().as_bytes()])?;
        if let Some(reason) = suspicion_of(&base, &seams) {
            notes.note(format_args!("something may be missing: {reason}"));
        }
        if let Some(cut) = base.cut() {
            notes.note(format_args!("still cut, {}", draw::cut_sentence(&cut)));
        }
        Ok(Ending::done_if(is_done))
    }

    fn run_batch(self, notes: &mut Notes) -> Result<Ending, Failure> {
        if self.parts.len() > 1 || !self.expected_overlap.is_empty() {
            return Err(Failure::Usage {
                message: "with --jsonl the input lines have the parts and their overlaps".into(),
                hint: "give one file with lines such as {\"parts\":[\"…\",\"…\"],\"expected_overlap\":\"…\"}".into(),
            });
        }
        let source = Source::from(self.parts.into_iter().next());
        let protocol = self.protocol.into();
        batch::run(
            source.open(notes)?,
            &source.name(),
            &["parts", "expected_overlap", "protocol"],
            move |object| stitch_object(object, protocol),
        )
    }

    fn check_usage(&self) -> Result<(), Failure> {
        if self.parts.len() < 2 {
            return Err(too_few_parts());
        }
        let seams = self.parts.len() - 1;
        if self.expected_overlap.len() > seams {
            return Err(Failure::Usage {
                message: format!(
                    "there are more expected overlaps ({}) than seams ({seams})",
                    self.expected_overlap.len()
                ),
                hint: "give --expected-overlap at most once for each part after the first".into(),
            });
        }
        let from_input = self
            .parts
            .iter()
            .filter(|path| input::is_standard_input(path));
        if from_input.count() > 1 {
            return Err(Failure::Usage {
                message: "standard input can be only one of the parts".into(),
                hint: "write the other parts to files".into(),
            });
        }
        Ok(())
    }
}

fn too_few_parts() -> Failure {
    Failure::Usage {
        message: "stitch needs at least two parts".into(),
        hint: "give the first piece and those that follow: overlock stitch A B …".into(),
    }
}

/// Whether a piece was rejected. One that only repeats known text is no failure.
fn is_rejected(seam: &Seam) -> bool {
    !seam.outcome.is_accepted() && !matches!(seam.outcome, Outcome::Repeat)
}
