//! `overlock graph`: draws the steps of a pipeline.

use std::path::PathBuf;

use clap::Args;
use serde_json::Map;

use super::file::PipelineFile;
use crate::config::ConfigSource;
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};

/// Draw the steps of a pipeline
///
/// The output is a Mermaid flow chart, or a text drawing on a terminal.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock graph answer.yaml > answer.mmd\n\n\
    Exit codes: 0 done; 1 the pipeline is invalid; 2 bad usage or unreadable input.")]
pub(crate) struct Graph {
    /// The pipeline file; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print Mermaid even on a terminal
    #[arg(long)]
    mermaid: bool,
    #[command(flatten)]
    config: ConfigSource,
}

impl Graph {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let file = PipelineFile::read(&self.file, &Map::new(), &config, &mut notes)?;
        let Some(pipeline) = file.pipeline(&mut notes) else {
            return Ok(Ending::Partial);
        };
        let mut results = Results::new();
        let drawn = if results.is_terminal() && !self.mermaid {
            overlock_pipeline::drawing(pipeline)
        } else {
            overlock_pipeline::graph(pipeline)
        };
        for line in drawn.lines() {
            results.line(line)?;
        }
        Ok(Ending::Done)
    }
}
