//! Finds offsets where a text can be divided so that the counts of its pieces add up.
//!
//! Only a tokenizer that first splits a text by a pattern has such offsets, and only where no match of
//! the pattern, no added token and no normalization crosses or looks across them. This is known for
//! the patterns below and for two kinds of offsets:
//!
//! - before a space between two ASCII letters: a match with the first letter ends there, and the space
//!   begins the next one;
//! - after a line break with a visible character before it and a letter after it: a match with a line
//!   break contains only more white space, or a slash.

use serde_json::Value;
use tokenizers::Tokenizer;

/// The patterns by which text is split before its bytes are merged, one list a tokenizer.
pub(super) const KNOWN_PATTERNS: &[&[&str]] = &[
    // Llama 3, and GPT-4.
    &[
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    // Qwen 2 and 3.
    &[
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    // Mistral's Tekken.
    &[
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    // GPT-4o, and Llama 4.
    &[
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    // DeepSeek V3, which splits three times.
    &[
        r"\p{N}{1,3}",
        "[一-龥\u{3040}-ゟ゠-ヿ]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    ],
];

/// Where a tokenizer allows to divide a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// Between words and between lines.
    Words,
    /// Nowhere, as far as known.
    Unknown,
}

impl Places {
    pub(super) fn of(tokenizer: &Tokenizer) -> Self {
        if splits_by_a_known_pattern(tokenizer)
            && normalizes_within_words(tokenizer)
            && adds_only_plain_tokens(tokenizer)
        {
            Self::Words
        } else {
            Self::Unknown
        }
    }

    /// The first such offset with at least this many bytes before it.
    pub(super) fn at_or_after(self, text: &str, bytes: usize) -> Option<usize> {
        match self {
            Self::Words => (bytes.max(1)..text.len()).find(|at| is_place(text, *at)),
            Self::Unknown => None,
        }
    }

    /// The last such offset with at least this many bytes after it.
    pub(super) fn at_or_before(self, text: &str, bytes: usize) -> Option<usize> {
        let last = text.len().checked_sub(bytes.max(1))?;
        match self {
            Self::Words => (1..=last).rev().find(|at| is_place(text, *at)),
            Self::Unknown => None,
        }
    }
}

fn is_place(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
    match (bytes[at - 1], bytes[at]) {
        (before, b' ') => before.is_ascii_alphabetic() && letter(at + 1),
        (b'\n', _) => {
            let before = text[..at - 1].chars().next_back();
            before.is_some_and(|before| !before.is_whitespace() && !before.is_control())
                && text[at..].chars().next().is_some_and(char::is_alphabetic)
        }
        _ => false,
    }
}

fn splits_by_a_known_pattern(tokenizer: &Tokenizer) -> bool {
    let steps = serde_json::to_value(tokenizer.get_pre_tokenizer()).unwrap_or_default();
    let steps = match steps["pretokenizers"].as_array() {
        Some(steps) => steps.as_slice(),
        None => std::slice::from_ref(&steps),
    };
    let Some((bytes, splits)) = steps.split_last() else {
        return false;
    };
    if bytes["type"] != "ByteLevel" || bytes["add_prefix_space"] != false {
        return false;
    }
    if bytes["use_regex"] == true {
        // GPT-2's own pattern, which comes with the step.
        return splits.is_empty();
    }
    let patterns: Option<Vec<&str>> = splits.iter().map(isolated_pattern).collect();
    patterns.is_some_and(|patterns| KNOWN_PATTERNS.contains(&patterns.as_slice()))
}

/// The pattern of a step that splits a text into its matches and what lies between them.
fn isolated_pattern(step: &Value) -> Option<&str> {
    let isolates =
        step["type"] == "Split" && step["behavior"] == "Isolated" && step["invert"] == false;
    if isolates {
        step["pattern"]["Regex"].as_str()
    } else {
        None
    }
}

/// No composition reaches over a space or a line break.
fn normalizes_within_words(tokenizer: &Tokenizer) -> bool {
    let normalizer = serde_json::to_value(tokenizer.get_normalizer()).unwrap_or_default();
    normalizer.is_null()
        || normalizer["type"] == "NFC"
        || normalizer["normalizers"]
            .as_array()
            .is_some_and(Vec::is_empty)
}

/// An added token can reach over a place only with white space in it, or around it.
fn adds_only_plain_tokens(tokenizer: &Tokenizer) -> bool {
    let added = tokenizer.get_added_tokens_decoder();
    added.values().all(|token| {
        let reaches = token.lstrip || token.rstrip || token.single_word;
        (token.special || !reaches) && !token.content.contains(char::is_whitespace)
    })
}
