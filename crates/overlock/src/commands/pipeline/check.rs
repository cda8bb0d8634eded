//! `overlock check`: validates a pipeline file.

use std::path::PathBuf;

use clap::Args;
use serde_json::Map;

use super::file::PipelineFile;
use crate::config::ConfigSource;
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};

/// Validate a pipeline file
///
/// Reports all problems at once, each with its line and a correction: unknown actions, keys and
/// steps, invalid values, missing prompts, and calls that cannot fit the context window.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock check answer.yaml\n\n\
    Exit codes: 0 valid, perhaps with warnings; 1 invalid; 2 bad usage or unreadable input.")]
pub(crate) struct Check {
    /// The pipeline file; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print one JSON object: every problem with its line and column
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
            file.print_json()?;
            return Ok(file.ending());
        }
        file.note_problems(&mut notes);
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
                Results::new().line(&format!("{} is valid: {steps}{found}", file.name))?;
            }
            None => notes.line(format_args!("{} is invalid: {found}", file.name)),
        }
        Ok(file.ending())
    }
}
