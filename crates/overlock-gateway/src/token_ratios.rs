//! The ratio of billed to counted input tokens, by model.
//!
//! A model whose tokenizer is not available is counted with another one and the factor of its
//! family. Every answer reports the tokens that the provider billed. Once there are enough of them,
//! the largest of the latest ratios replaces the factor of the family.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use overlock_budget::Scale;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// The samples after which a ratio is used.
const ENOUGH: usize = 8;

/// How many of the latest samples count.
const LATEST: usize = 32;

/// The fewest counted tokens of a sample: a few tokens of the format would be a large share of less.
const LEAST_TOKENS: u64 = 100;

/// The most models, since their names come from clients.
const MOST_MODELS: usize = 64;

/// The longest name of a model.
const LONGEST_NAME: usize = 100;

/// The ratios of the models that have answered.
#[derive(Default)]
pub(crate) struct TokenRatios {
    models: Mutex<HashMap<String, VecDeque<Scale>>>,
    pub(crate) gauge: RatioGauge,
}

/// The largest of the latest ratios, by model.
pub(crate) type RatioGauge = Family<ModelLabels, Gauge<f64, AtomicU64>>;

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(crate) struct ModelLabels {
    model: String,
}

impl TokenRatios {
    /// Adds an answer for which the provider billed so many input tokens, where `counted` is the
    /// count with this scale.
    pub(crate) fn add(&self, model: &str, billed: u64, counted: u64, scale: Scale) {
        let is_short = model.len() <= LONGEST_NAME;
        let mut models = self.models();
        let has_room = models.len() < MOST_MODELS || models.contains_key(model);
        if counted < LEAST_TOKENS || billed == 0 || !is_short || !has_room {
            return;
        }
        let samples = models.entry(model.to_owned()).or_default();
        samples.push_back(Scale::of(scale.apply(billed), counted));
        if samples.len() > LATEST {
            samples.pop_front();
        }
        let largest = samples.iter().max().copied().unwrap_or_default();
        let model = model.to_owned();
        let gauge = self.gauge.get_or_create(&ModelLabels { model });
        gauge.set(largest.factor());
    }

    /// The factor for a model, once it has enough samples.
    pub(crate) fn factor(&self, model: &str) -> Option<Scale> {
        let models = self.models();
        let samples = models.get(model).filter(|it| it.len() >= ENOUGH)?;
        samples.iter().max().copied()
    }

    fn models(&self) -> MutexGuard<'_, HashMap<String, VecDeque<Scale>>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_used_once_there_are_enough_samples() {
        let ratios = TokenRatios::default();
        for sample in 0..ENOUGH {
            assert_eq!(ratios.factor("m"), None, "{sample} samples");
            ratios.add("m", 1300, 1000, Scale::default());
        }
        assert_eq!(ratios.factor("m"), Some(Scale::of(13, 10)));
        // The count already had a factor of two.
        ratios.add("m", 1500, 2000, Scale::of(2, 1));
        assert_eq!(ratios.factor("m"), Some(Scale::of(15, 10)));
        for _ in 0..LATEST {
            ratios.add("m", 1100, 1000, Scale::default());
        }
        assert_eq!(ratios.factor("m"), Some(Scale::of(11, 10)));
    }

    #[test]
    fn small_requests_and_too_many_models_are_left_out() {
        let ratios = TokenRatios::default();
        for _ in 0..ENOUGH {
            ratios.add("small", 99, LEAST_TOKENS - 1, Scale::default());
            ratios.add("free", 0, 1000, Scale::default());
            ratios.add(&"x".repeat(LONGEST_NAME + 1), 1000, 1000, Scale::default());
        }
        for model in 0..2 * MOST_MODELS {
            ratios.add(&format!("model-{model}"), 1000, 1000, Scale::default());
        }
        assert_eq!(ratios.factor("small"), None);
        assert_eq!(ratios.factor("free"), None);
        assert_eq!(ratios.models().len(), MOST_MODELS);
    }
}
