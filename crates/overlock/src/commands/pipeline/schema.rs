//! `overlock schema`: prints the JSON Schema of pipeline files.

use clap::Args;

use crate::ending::{Ending, Failure};
use crate::output::Results;

/// Print the JSON Schema of pipeline files
///
/// Editors use it to complete and check pipeline files. For the YAML language server, begin the
/// file with `# yaml-language-server: $schema=pipeline.schema.json`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock schema > pipeline.schema.json\n\n\
    Exit codes: 0 done.")]
pub(crate) struct Schema {}

impl Schema {
    #[expect(clippy::unused_self, reason = "every command has the same `run`")]
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let schema = serde_json::to_string_pretty(&overlock_pipeline::schema());
        let schema = schema.expect("a schema is plain data");
        Results::new().document(&[schema.as_bytes(), b"\n"])?;
        Ok(Ending::Done)
    }
}
