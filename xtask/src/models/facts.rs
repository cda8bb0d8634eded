//! Merges the entries of several registries for a model.
//!
//! If they disagree about the window, the smaller one is used: a prompt that is a little too short
//! works, one that is too long is refused.

use std::fmt;

use super::tokenizer;

/// Hosts that offer their own models.
const MAKERS: &[&str] = &[
    "ai21",
    "anthropic",
    "cohere",
    "deepseek",
    "gemini",
    "meta_llama",
    "minimax",
    "mistral",
    "moonshot",
    "openai",
    "xai",
    "xiaomi_mimo",
    "zai",
];

/// Names that let a router choose the model, so they have no window.
const ANY_MODEL: &[&str] = &["auto", "free"];

/// The entry of one registry for one model at one host.
#[derive(Clone, Debug, Default)]
pub(super) struct Fact {
    /// The name in lower case, with its host if the registry has one.
    pub(super) key: String,
    /// The window, or the largest input if the registry has only that.
    pub(super) window: u64,
    /// Whether `window` is for the input alone, and the answer comes in addition.
    pub(super) input_only: bool,
    pub(super) answer_cap: Option<u64>,
    pub(super) abilities: Abilities,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    pub(super) prefill: bool,
    pub(super) json: bool,
    pub(super) tools: bool,
}

impl Fact {
    /// The name without any host.
    pub(super) fn bare(&self) -> &str {
        bare(&self.key)
    }

    pub(super) fn is_by_its_maker(&self) -> bool {
        match self.key.split_once('/') {
            None => true,
            Some((host, name)) => MAKERS.contains(&host) && !name.contains('/'),
        }
    }

    /// Whether it can be in the table: it has a window, and the name of one model that needs no
    /// escapes in TOML.
    pub(super) fn is_usable(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        let bare = self.bare();
        let named = !bare.is_empty() && !ANY_MODEL.contains(&bare);
        self.window > 0 && named && self.key.bytes().all(plain)
    }
}

/// A name without any host.
pub(super) fn bare(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The entry of a model in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) window: u64,
    pub(super) shared: bool,
    pub(super) answer_cap: Option<u64>,
    pub(super) tokenizer: Option<&'static str>,
    pub(super) abilities: Abilities,
    pub(super) disputed: Option<u64>,
}

impl Entry {
    pub(super) fn has_the_sizes_of(&self, other: &Self) -> bool {
        let sizes = |entry: &Self| (entry.window, entry.shared, entry.answer_cap);
        sizes(self) == sizes(other)
    }

    /// Whether both can be the same model, with windows that include or exclude the answer.
    pub(super) fn can_be_the_same_as(&self, other: &Self) -> bool {
        let with_answer = |entry: &Self| entry.window + entry.answer_cap.unwrap_or(0);
        self.answer_cap == other.answer_cap
            && (self.window == other.window
                || self.window == with_answer(other)
                || other.window == with_answer(self))
    }
}

impl fmt::Display for Entry {
    /// Writes the entry as an inline table of TOML.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{{ window = {}", self.window)?;
        if !self.shared {
            write!(formatter, ", shared = false")?;
        }
        if let Some(answer_cap) = self.answer_cap {
            write!(formatter, ", answer_cap = {answer_cap}")?;
        }
        if let Some(tokenizer) = self.tokenizer {
            write!(formatter, ", tokenizer = \"{tokenizer}\"")?;
        }
        let Abilities {
            prefill,
            json,
            tools,
        } = self.abilities;
        for (ability, name) in [(prefill, "prefill"), (json, "json"), (tools, "tools")] {
            if ability {
                write!(formatter, ", {name} = true")?;
            }
        }
        if let Some(disputed) = self.disputed {
            write!(formatter, ", disputed = {disputed}")?;
        }
        write!(formatter, " }}")
    }
}

/// Merges all facts about a model; there must be at least one.
pub(super) fn merge(name: &str, facts: &[&Fact]) -> Entry {
    let window = facts.iter().map(|fact| fact.window).min().unwrap_or(0);
    let caps = facts.iter().filter_map(|fact| fact.answer_cap);
    let answer_cap = caps.filter(|cap| *cap > 0).min();
    let with_answer = window.saturating_add(answer_cap.unwrap_or(0));

    // A window that is larger by exactly the answer is no contradiction: it means that the answer
    // does not share the window.
    let includes_answer = |fact: &&Fact| answer_cap.is_some() && fact.window == with_answer;
    let agreeing = |fact: &&Fact| fact.window == window && fact.input_only;
    let shared = answer_cap.is_none()
        || !facts
            .iter()
            .any(|fact| agreeing(fact) || includes_answer(fact));

    let others = facts.iter().filter(|fact| !includes_answer(fact));
    let largest = others.map(|fact| fact.window).max().unwrap_or(window);
    let any = |ability: fn(&Abilities) -> bool| facts.iter().any(|fact| ability(&fact.abilities));
    Entry {
        window,
        shared,
        // A cap as large as a shared window has no effect.
        answer_cap: answer_cap.filter(|cap| !shared || *cap < window),
        tokenizer: tokenizer::of(name),
        abilities: Abilities {
            prefill: any(|abilities| abilities.prefill),
            json: any(|abilities| abilities.json),
            tools: any(|abilities| abilities.tools),
        },
        disputed: Some(largest).filter(|largest| *largest > window),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_merge(facts: &[(u64, bool, Option<u64>)], expected: &str) {
        let facts: Vec<Fact> = facts
            .iter()
            .map(|&(window, input_only, answer_cap)| Fact {
                window,
                input_only,
                answer_cap,
                ..Fact::default()
            })
            .collect();
        let entry = merge("model", &facts.iter().collect::<Vec<_>>());
        assert_eq!(entry.to_string(), expected, "merging {facts:?}");
    }

    #[test]
    fn keeps_the_smaller_window_and_notes_the_other() {
        check_merge(
            &[(100, false, Some(10)), (120, false, Some(9))],
            "{ window = 100, answer_cap = 9, disputed = 120 }",
        );
    }

    #[test]
    fn an_answer_on_top_of_the_input_does_not_share_the_window() {
        check_merge(
            &[(100, false, Some(50)), (100, true, Some(50))],
            "{ window = 100, shared = false, answer_cap = 50 }",
        );
        check_merge(
            &[(100, false, Some(50)), (150, false, Some(50))],
            "{ window = 100, shared = false, answer_cap = 50 }",
        );
    }

    #[test]
    fn a_cap_that_the_window_implies_is_left_out() {
        check_merge(&[(100, false, Some(100))], "{ window = 100 }");
        check_merge(&[(100, false, None)], "{ window = 100 }");
    }
}
