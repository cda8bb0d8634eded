//! The windows and token counters that the pipeline check uses.

use std::cell::RefCell;
use std::collections::HashMap;

use overlock_budget::{Models, Sharing};
use overlock_pipeline::{Measure, Measures};

use crate::config::Config;
use crate::counter::{Counter, names};

/// Windows and counters from the configuration.
pub(super) struct ConfiguredMeasures<'a> {
    config: &'a Config,
    models: Models,
    /// A cache, because reading a tokenizer takes a while.
    counters: RefCell<HashMap<String, Option<Counter>>>,
}

impl<'a> ConfiguredMeasures<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self {
            config,
            models: config.models(),
            counters: RefCell::default(),
        }
    }
}

impl Measures for ConfiguredMeasures<'_> {
    fn measure(&self, model: &str, text: &str) -> Option<Measure> {
        let found = self.models.find(model);
        let mut counters = self.counters.borrow_mut();
        let counter = counters
            .entry(model.to_owned())
            .or_insert_with(|| Counter::for_model(model, &found, self.config).ok());
        let counter = counter.as_ref()?;
        let options = self.config.budget.plan_options(&found.model);
        let tokens = counter.tokens.count(text);
        Some(Measure {
            window: options.window,
            is_shared: options.sharing == Sharing::Shared,
            tokens,
            margin: options
                .margin
                .unwrap_or_else(|| counter.provenance.margin(tokens)),
        })
    }

    fn is_counter(&self, name: &str) -> bool {
        names().contains(&name)
    }
}
