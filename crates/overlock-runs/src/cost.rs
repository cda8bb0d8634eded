//! What runs cost, where somebody has said what tokens do.
//!
//! It is reckoned when it is shown, with the prices as they are set then. Of a model without a
//! price nothing is told, and of a run in which one was asked only what the others cost.

use overlock_budget::{Cost, Models, Prices};
use overlock_llm::Usage;
use serde::Serialize;

/// Who knows what tokens cost.
#[derive(Clone, Debug)]
pub struct Pricing {
    models: Models,
    currency: String,
}

/// What a run cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunCost {
    /// The amount, an exact decimal number.
    pub amount: String,
    /// What it is counted in.
    pub currency: String,
}

/// What a run cost as far as its models have prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartialCost {
    /// The amount that is known.
    #[serde(flatten)]
    pub known: RunCost,
    /// The models without a price, whose calls are not in it.
    pub without: Vec<String>,
}

impl Pricing {
    /// The prices of these models.
    pub fn new(models: Models, currency: impl Into<String>) -> Self {
        Self {
            models,
            currency: currency.into(),
        }
    }

    /// What the calls of several models cost together, if each of them has a price.
    pub fn of<'a>(&self, used: impl IntoIterator<Item = (&'a str, Usage)>) -> Option<RunCost> {
        let costs = used.into_iter().map(|(model, usage)| {
            let prices = self.prices(model)?;
            Some(prices.cost(usage.input, usage.cached.unwrap_or_default(), usage.output))
        });
        let costs: Vec<Cost> = costs.collect::<Option<_>>()?;
        if costs.is_empty() {
            return None;
        }
        Some(self.told(costs.into_iter().sum()))
    }

    /// What the calls of those models cost that have a price, if some do and some do not.
    pub(crate) fn of_some<'a>(
        &self,
        used: impl IntoIterator<Item = (&'a str, Usage)>,
    ) -> Option<PartialCost> {
        let used = used.into_iter();
        let (priced, without): (Vec<_>, Vec<_>) =
            used.partition(|(model, _)| self.prices(model).is_some());
        let without: Vec<String> = without.iter().map(|(model, _)| model.to_string()).collect();
        let known = self.of(priced).filter(|_| !without.is_empty())?;
        Some(PartialCost { known, without })
    }

    /// What the tokens of a model cost, if anybody has said so.
    pub(crate) fn prices(&self, model: &str) -> Option<Prices> {
        self.models.prices(model)
    }

    /// An amount as it is told.
    pub(crate) fn told(&self, cost: Cost) -> RunCost {
        RunCost {
            amount: cost.to_string(),
            currency: self.currency.clone(),
        }
    }
}
