//! `overlock schema`: what a pipeline file may say.

use clap::Args;

use crate::ending::{Ending, Failure};
use crate::output::Results;

/// Print the JSON Schema of pipeline files
///
/// Editors complete and check pipelines by it: with the YAML language server, begin the file with
/// `# yaml-language-server: $schema=pipeline.schema.json`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock schema > pipeline.schema.json\n\n\
    Exit codes: 0 done.")]
pub(crate) struct Schema {}

impl Schema {
    #[expect(
        clippy::unused_self,
        reason = "every command is run by what was asked of it"
    )]
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let schema = serde_json::to_string_pretty(&overlock_pipeline::schema());
        let schema = schema.expect("a schema is plain data");
        Results::new().document(&[schema.as_bytes(), b"\n"])?;
        Ok(Ending::Whole)
    }
}
