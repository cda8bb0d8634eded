//! The flags that select a counter other than the model's own tokenizer.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use overlock_budget::Found;

use super::{Counter, TemplateFiles, names};
use crate::config::Config;
use crate::ending::Failure;

/// At most one of these.
#[derive(Args, Debug)]
pub(crate) struct EncodingArgs {
    /// Count with this encoding; `approx:chars/4` is a rule of thumb
    #[arg(long, value_name = "NAME", conflicts_with = "tokenizer",
          value_parser = PossibleValuesParser::new(names()))]
    pub(crate) encoding: Option<String>,
    /// Count with this Hugging Face tokenizer.json
    #[arg(long, value_name = "FILE")]
    pub(crate) tokenizer: Option<PathBuf>,
}

impl EncodingArgs {
    /// The given counter, if one is.
    pub(crate) fn counter(&self) -> Result<Option<Counter>, Failure> {
        match (&self.tokenizer, &self.encoding) {
            (Some(path), _) => Counter::from_file(path).map(Some),
            (None, Some(encoding)) => Ok(Counter::named(encoding)),
            (None, None) => Ok(None),
        }
    }

    /// The given counter, else the best one for the model; and the files of its chat template.
    pub(crate) fn counter_for<'a>(
        &self,
        model: &str,
        found: &Found,
        config: &'a Config,
    ) -> Result<(Counter, TemplateFiles<'a>), Failure> {
        match self.counter()? {
            // The configured template does not belong to a tokenizer from the command line.
            Some(counter) => Ok((counter, TemplateFiles::default())),
            None => Ok((
                Counter::for_model(model, found, config)?,
                config.template_files(found.entry.as_deref()),
            )),
        }
    }
}
