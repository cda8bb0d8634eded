//! Counts for models whose tokenizer is not available.

use super::{CountTokens, Encoding, Keep};
use crate::chat::Scale;
use crate::models::{Found, How};

/// Another tokenizer in place of that of a model, with a factor for the family of the model.
///
/// ```
/// use overlock_budget::{CountTokens, Encoding, Models, StandIn};
///
/// let counter = StandIn::for_model(&Models::default().find("claude-sonnet-4-5"));
/// assert_eq!(counter.name(), "o200k_base in place of an unknown tokenizer, times 1.2");
/// assert_eq!(Encoding::O200kBase.count("Where is the nearest river?"), 6);
/// assert_eq!(counter.count("Where is the nearest river?"), 7);
/// assert!(!counter.is_exact());
/// ```
#[derive(Clone, Debug)]
pub struct StandIn {
    name: String,
    scale: Scale,
}

impl StandIn {
    /// The tokenizer that is used instead.
    pub(crate) const TOKENIZER: &'static Encoding = &Encoding::O200kBase;

    /// The counter for a model.
    pub fn for_model(found: &Found) -> Self {
        let scale = scale_of(found);
        let own = found.model.tokenizer.as_deref();
        let own = own.unwrap_or("an unknown tokenizer");
        let name = format!("{} in place of {own}", Self::TOKENIZER.name());
        Self {
            name: scale.named(&name),
            scale,
        }
    }

    pub(crate) fn scale(&self) -> Scale {
        self.scale
    }
}

impl CountTokens for StandIn {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
        let count = Self::TOKENIZER.count_up_to(text, self.scale.most_counted(limit))?;
        Some(self.scale.apply(count))
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str {
        Self::TOKENIZER.truncate_to(text, self.scale.most_counted(tokens), keep)
    }
}

/// How many tokens the family of a model makes of one counted token.
///
/// The factors are those that the makers state, or follow from the size of the vocabulary: with
/// 32,000 entries a text has about a third more tokens than with 200,000. An unknown model has an
/// assumed window, which no factor would make more reliable.
fn scale_of(found: &Found) -> Scale {
    /// Claude models whose tokenizer makes fewer tokens than that of later ones.
    const OLDER_CLAUDE: &[&str] = &["claude-3", "haiku-4", "sonnet-4", "opus-4"];
    let entry = found.entry.as_deref().unwrap_or_default().replace('.', "-");
    let is_later = ["opus-4-7", "opus-4-8"]
        .iter()
        .any(|name| entry.contains(name));
    let is_older = OLDER_CLAUDE.iter().any(|name| entry.contains(name));
    let hundredths = match found.model.tokenizer.as_deref() {
        _ if found.how == How::Default => 100,
        Some("llama2" | "mistral-v1" | "mistral-v3" | "deepseek-coder") => 135,
        None if entry.contains("claude") && is_older && !is_later => 120,
        None if entry.contains("claude") => 160,
        _ => 110,
    };
    Scale::of(hundredths, 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Models;

    #[test]
    fn a_count_is_within_a_limit_exactly_if_the_scaled_count_is() {
        for model in [
            "claude-opus-4-7",
            "claude-3-opus",
            "mistral:7b",
            "nobody-knows",
        ] {
            let counter = StandIn::for_model(&Models::default().find(model));
            for length in 0..200 {
                let text = "a b ".repeat(length);
                let count = counter.count(&text);
                assert_eq!(counter.count_up_to(&text, count), Some(count), "{length}");
                if let Some(less) = count.checked_sub(1) {
                    assert_eq!(counter.count_up_to(&text, less), None, "{length}");
                }
                let cut = counter.truncate_to(&text, count / 2, Keep::Start);
                assert!(counter.count(cut) <= count / 2);
            }
        }
    }

    #[test]
    fn every_family_has_its_factor() {
        for (model, factor) in [
            ("claude-3-opus", "1.2"),
            ("claude-sonnet-4.5", "1.2"),
            ("claude-opus-4-6", "1.2"),
            ("claude-opus-4.7", "1.6"),
            ("claude-opus-5-5", "1.6"),
            ("mistral:7b", "1.4"),
            ("llama3.2:3b", "1.1"),
            ("grok-3", "1.1"),
            ("nobody-knows", "1.0"),
        ] {
            let counter = StandIn::for_model(&Models::default().find(model));
            assert_eq!(counter.scale().to_string(), factor, "{model}");
        }
    }
}
