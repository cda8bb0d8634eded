//! What runs cost, for models with prices.
//!
//! Costs are computed when they are shown, with the prices configured at that time. A run that
//! called a model without a price has only a partial cost.

use overlock_budget::{Cost, Models, Prices};
use overlock_llm::Usage;
use serde::Serialize;

/// The prices of models and their currency.
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
    /// The currency.
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

    /// The total cost of the calls of several models, if each model has a price.
    pub fn of<'a>(&self, used: impl IntoIterator<Item = (&'a str, Usage)>) -> Option<RunCost> {
        let costs = used.into_iter().map(|(model, usage)| {
            let prices = self.prices(model)?;
            Some(prices.cost(usage.input, usage.cached.unwrap_or_default(), usage.output))
        });
        let costs: Vec<Cost> = costs.collect::<Option<_>>()?;
        if costs.is_empty() {
            return None;
        }
        Some(self.run_cost(costs.into_iter().sum()))
    }

    /// The cost of the calls with a price, if others have none.
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

    /// The prices of a model, if it has any.
    pub(crate) fn prices(&self, model: &str) -> Option<Prices> {
        self.models.prices(model)
    }

    /// Formats an amount.
    pub(crate) fn run_cost(&self, cost: Cost) -> RunCost {
        RunCost {
            amount: cost.to_string(),
            currency: self.currency.clone(),
        }
    }
}
