//! Somebody who is named to count, in place of the model's own tokenizer.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use overlock_budget::Found;

use super::{Counter, TemplateFiles, names};
use crate::config::Config;
use crate::ending::Failure;

/// What to count with; one of them.
#[derive(Args, Debug)]
pub(crate) struct Named {
    /// Count with this encoding; `approx:chars/4` is a rule of thumb
    #[arg(long, value_name = "NAME", conflicts_with = "tokenizer",
          value_parser = PossibleValuesParser::new(names()))]
    pub(crate) encoding: Option<String>,
    /// Count with the tokenizer in this file, a Hugging Face tokenizer.json
    #[arg(long, value_name = "FILE")]
    pub(crate) tokenizer: Option<PathBuf>,
}

impl Named {
    /// The counter that is named, if one is.
    pub(crate) fn counter(&self) -> Result<Option<Counter>, Failure> {
        match (&self.tokenizer, &self.encoding) {
            (Some(path), _) => Counter::from_file(path).map(Some),
            (None, Some(encoding)) => Ok(Counter::named(encoding)),
            (None, None) => Ok(None),
        }
    }

    /// The counter that is named, else the best there is for a model, and where its template is.
    pub(crate) fn counter_for<'a>(
        &self,
        model: &str,
        found: &Found,
        config: &'a Config,
    ) -> Result<(Counter, TemplateFiles<'a>), Failure> {
        match self.counter()? {
            // What is named on the command line has nothing to do with what is configured.
            Some(counter) => Ok((counter, TemplateFiles::default())),
            None => Ok((
                Counter::for_model(model, found, config)?,
                config.template_files(found.entry.as_deref()),
            )),
        }
    }
}
