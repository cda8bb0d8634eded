//! `overlock check`: is a pipeline right?

use std::path::PathBuf;

use clap::Args;
use serde_json::Map;

use super::file::PipelineFile;
use crate::config::ConfigSource;
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};

/// Check a pipeline before it runs
///
/// Tells everything that is wrong at once, each with its place in the file and what would be
/// right: unknown actions, keys and steps, values that cannot be, prompts that are not there, and
/// calls that cannot fit their window. What is doubtful is a warning.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock check answer.yaml\n\n\
    Exit codes: 0 right, perhaps with warnings; 1 wrong; 2 bad usage or unreadable input.")]
pub(crate) struct Check {
    /// The pipeline; standard input if it is `-`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Answer with one JSON object: every problem with its line and column
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

impl Check {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let file = PipelineFile::read(&self.file, &Map::new(), &config, &mut notes)?;
        if self.json {
            file.object()?;
            return Ok(file.ending());
        }
        file.tell(&mut notes);
        let several = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let (errors, warnings) = file.counts();
        let found = match (errors, warnings) {
            (0, 0) => String::new(),
            (0, warnings) => format!(", {}", several(warnings, "warning")),
            (errors, 0) => several(errors, "error"),
            (errors, warnings) => format!(
                "{}, {}",
                several(errors, "error"),
                several(warnings, "warning")
            ),
        };
        match &file.checked.pipeline {
            Some(pipeline) => {
                let steps = several(pipeline.steps.len(), "step");
                Results::new().line(&format!("{} is right: {steps}{found}", file.name))?;
            }
            None => notes.line(format_args!("{} is wrong: {found}", file.name)),
        }
        Ok(file.ending())
    }
}
