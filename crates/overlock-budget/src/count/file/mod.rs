//! Counts with the tokenizer in a `tokenizer.json`.
//!
//! Hugging Face's crate reads the file and counts, so the results are the same as there. This module
//! decides what counts as text, where a count may stop early, and how to truncate, because the crate
//! can only count a complete text.

mod merges;
mod places;
mod truncate;

#[cfg(test)]
mod tests;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokenizers::models::ModelWrapper;
use tokenizers::{
    AddedVocabulary, Model, NormalizedString, Normalizer, NormalizerWrapper, OffsetReferential,
    OffsetType, PreTokenizer, Tokenizer,
};

use super::{CountTokens, Keep};
use places::Places;

/// A Hugging Face `tokenizer.json`, ready to count.
///
/// Control tokens of the file, which it calls special, count as their characters. Added tokens that
/// are not special, such as runs of line breaks, count as tokens.
/// [`count_with_control`](Self::count_with_control) counts a rendered chat, in which control tokens
/// count as such.
///
/// A tokenizer may fail on a text, for instance when its pattern gives up. Such a text has no
/// count, so it never fits: [`count`](CountTokens::count) gives [`u64::MAX`].
///
/// ```
/// use overlock_budget::{CountTokens, TokenizerFile};
///
/// let json = r#"{
///     "added_tokens": [{ "id": 3, "content": "<end>", "special": true, "single_word": false,
///                        "lstrip": false, "rstrip": false, "normalized": false }],
///     "model": { "type": "BPE", "unk_token": "?", "merges": ["a b"],
///                "vocab": { "?": 0, "a": 1, "b": 2, "ab": 4 } }
/// }"#;
/// let tokenizer = TokenizerFile::new(json)?.named("letters");
/// assert_eq!(tokenizer.count("abba"), 3);
/// assert_eq!(tokenizer.count("ab<end>"), 6);
/// assert_eq!(tokenizer.count_with_control("ab<end>"), 2);
/// # Ok::<(), overlock_budget::TokenizerFileError>(())
/// ```
pub struct TokenizerFile {
    name: String,
    tokenizer: Tokenizer,
    /// The added tokens that are not special.
    in_text: AddedVocabulary,
    /// All added tokens.
    in_chat: AddedVocabulary,
    places: Places,
    /// Bytes of the longest token, beyond which a longer text cannot count less.
    longest_token: usize,
}

/// Why a file cannot count tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerFileError {
    /// It is not JSON.
    #[error("the tokenizer file is not JSON")]
    Json {
        /// Where the text stops being JSON.
        source: serde_json::Error,
    },
    /// It is not a tokenizer, or of an unknown kind.
    #[error("the file is JSON but not a tokenizer: {reason}")]
    NoTokenizer {
        /// What the reader missed.
        reason: String,
    },
    /// Its token for unknown text does not exist, so some texts would have no count.
    #[error("the tokenizer writes `{token}` for what it does not know, but has no such token")]
    UnknownToken {
        /// The missing token.
        token: String,
    },
    /// Every count would differ.
    #[error("the tokenizer skips merges at random (`dropout` is {dropout}), so it cannot count")]
    Dropout {
        /// How often it skips one.
        dropout: f32,
    },
}

impl TokenizerFile {
    /// Reads the content of a `tokenizer.json`.
    pub fn new(json: impl AsRef<[u8]>) -> Result<Self, TokenizerFileError> {
        let needed: Needed<'_> = serde_json::from_slice(json.as_ref())
            .map_err(|error| why_unread(json.as_ref(), error))?;
        merges::check(needed.model).map_err(not_a_tokenizer)?;
        let needed = serde_json::to_vec(&needed).map_err(not_a_tokenizer)?;
        let tokenizer = Tokenizer::from_bytes(needed).map_err(not_a_tokenizer)?;
        check_model(tokenizer.get_model())?;
        let in_chat = tokenizer.get_added_vocabulary().clone();
        let mut in_text = in_chat.clone();
        in_text.set_encode_special_tokens(true);
        Ok(Self {
            name: "tokenizer.json".to_owned(),
            places: Places::of(&tokenizer),
            longest_token: longest_token(&tokenizer),
            in_text,
            in_chat,
            tokenizer,
        })
    }

    /// Sets the name, such as that of the tokenizer family.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// The tokens of a text with control tokens, such as a rendered chat.
    ///
    /// No tokens are added before or after it, because a chat template writes all of them.
    pub fn count_with_control(&self, text: &str) -> u64 {
        self.tokens(&self.in_chat, text, None).unwrap_or(u64::MAX)
    }

    /// The tokens of a rendered chat in which the control tokens behind a mark are text.
    ///
    /// The mark is inside of them and does not count.
    pub(crate) fn count_marked(&self, text: &str, mark: char) -> u64 {
        self.tokens(&self.in_chat, text, Some(mark))
            .unwrap_or(u64::MAX)
    }

    /// The control tokens, in no order.
    pub(crate) fn control_tokens(&self) -> impl Iterator<Item = &str> {
        let added = self.in_chat.get_added_tokens_decoder().values();
        added
            .filter(|token| token.special && !token.content.is_empty())
            .map(|token| token.content.as_str())
    }

    /// The tokens of a text as a whole, unless the tokenizer fails on it.
    fn tokens(&self, added: &AddedVocabulary, text: &str, mark: Option<char>) -> Option<u64> {
        let normalizer = Unmark {
            mark,
            normalizer: self.tokenizer.get_normalizer(),
        };
        let mut pieces = added.extract_and_normalize(Some(&normalizer), text);
        if let Some(pre_tokenizer) = self.tokenizer.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces).ok()?;
        }
        let model = self.tokenizer.get_model();
        pieces.tokenize(|piece| model.tokenize(piece.get())).ok()?;
        let splits = pieces.get_splits(OffsetReferential::Normalized, OffsetType::None);
        let tokens = splits
            .iter()
            .filter_map(|(_, _, tokens)| tokens.as_ref())
            .map(|tokens| tokens.len() as u64);
        Some(tokens.sum())
    }

    /// The tokens of a text that cannot be divided.
    fn count_undivided(&self, text: &str) -> u64 {
        self.tokens(&self.in_text, text, None).unwrap_or(u64::MAX)
    }
}

impl CountTokens for TokenizerFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
        let mut counted: u64 = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let size = piece_size(limit - counted);
            let end = self.places.at_or_after(rest, size).unwrap_or(rest.len());
            counted = counted.checked_add(self.tokens(&self.in_text, &rest[..end], None)?)?;
            if counted > limit {
                return None;
            }
            rest = &rest[end..];
        }
        Some(counted)
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str {
        truncate::longest(self, text, tokens, keep)
    }
}

impl std::fmt::Debug for TokenizerFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The vocabulary is too long to show.
        formatter
            .debug_struct("TokenizerFile")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// How many bytes to count at once when this many tokens are allowed: enough that a piece costs
/// more than its beginning and end, and little more than what can still fit.
fn piece_size(room: u64) -> usize {
    usize::try_from(room)
        .unwrap_or(usize::MAX)
        .saturating_mul(4)
        .clamp(256, 16 * 1024)
}

/// Removes the mark from a text before the normalization of the file.
struct Unmark<'file> {
    mark: Option<char>,
    normalizer: Option<&'file NormalizerWrapper>,
}

impl Normalizer for Unmark<'_> {
    fn normalize(&self, text: &mut NormalizedString) -> tokenizers::Result<()> {
        if let Some(mark) = self.mark {
            text.filter(|character| character != mark);
        }
        match self.normalizer {
            Some(normalizer) => normalizer.normalize(text),
            None => Ok(()),
        }
    }
}

/// The parts of a file that are needed to count.
///
/// The rest, such as how tokens become text again, is left out: its reader panics on what it does
/// not expect. For the same reason the small parts are read here first.
#[derive(Deserialize, Serialize)]
struct Needed<'file> {
    #[serde(default)]
    added_tokens: Vec<Value>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(borrow)]
    model: &'file RawValue,
}

fn why_unread(json: &[u8], error: serde_json::Error) -> TokenizerFileError {
    match serde_json::from_slice::<IgnoredAny>(json) {
        Err(source) => TokenizerFileError::Json { source },
        Ok(_) => not_a_tokenizer(error),
    }
}

fn not_a_tokenizer(error: impl Into<tokenizers::Error>) -> TokenizerFileError {
    TokenizerFileError::NoTokenizer {
        reason: error.into().to_string(),
    }
}

fn check_model(model: &ModelWrapper) -> Result<(), TokenizerFileError> {
    let unknown = match model {
        ModelWrapper::BPE(bpe) => {
            if let Some(dropout) = bpe.dropout
                && dropout > 0.0
            {
                return Err(TokenizerFileError::Dropout { dropout });
            }
            bpe.unk_token.as_deref()
        }
        ModelWrapper::WordPiece(word_piece) => Some(word_piece.unk_token.as_str()),
        ModelWrapper::WordLevel(word_level) => Some(word_level.unk_token.as_str()),
        ModelWrapper::Unigram(_) => None,
    };
    match unknown {
        Some(token) if model.token_to_id(token).is_none() => {
            Err(TokenizerFileError::UnknownToken {
                token: token.to_owned(),
            })
        }
        _ => Ok(()),
    }
}

fn longest_token(tokenizer: &Tokenizer) -> usize {
    let vocabulary = tokenizer.get_vocab(true);
    vocabulary.keys().map(String::len).max().unwrap_or(0)
}
