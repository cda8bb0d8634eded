//! Validates the merges of a model.
//!
//! The reader of models assumes that every merge gives an existing token, and that continuations of
//! words have the prefix of the model; it panics otherwise.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The fields of a model with merges; other models do not have them.
#[derive(Deserialize)]
struct Merging<'file> {
    #[serde(borrow)]
    vocab: Option<&'file RawValue>,
    #[serde(borrow)]
    merges: Option<&'file RawValue>,
    #[serde(borrow)]
    continuing_subword_prefix: Option<Text<'file>>,
}

/// A text that is copied only if it must be.
#[derive(Deserialize, PartialEq, Eq, Hash)]
struct Text<'file>(#[serde(borrow)] Cow<'file, str>);

/// Checks the merges of a model.
pub(super) fn check(model: &RawValue) -> Result<(), tokenizers::Error> {
    let merging: Merging<'_> = serde_json::from_str(model.get())?;
    let (Some(vocab), Some(merges)) = (merging.vocab, merging.merges) else {
        return Ok(());
    };
    let vocab: HashMap<Text<'_>, u32> = serde_json::from_str(vocab.get())?;
    let longest = vocab.keys().map(|token| token.0.len()).max().unwrap_or(0);
    let prefix = merging.continuing_subword_prefix;
    let prefix = prefix.map_or(0, |prefix| prefix.0.len());
    let check = |left: &str, right: &str| {
        let rest = right.get(prefix..);
        if rest.is_some_and(|rest| left.len() + rest.len() <= longest) {
            return Ok(());
        }
        Err(format!("no token is made of `{left}` and `{right}`").into())
    };
    if let Ok(pairs) = serde_json::from_str::<Vec<[Text<'_>; 2]>>(merges.get()) {
        return pairs
            .iter()
            .try_for_each(|[left, right]| check(&left.0, &right.0));
    }
    // The older form, with a space between the two.
    let lines: Vec<Text<'_>> = serde_json::from_str(merges.get())?;
    let merges = lines.iter().filter(|line| !line.0.starts_with("#version"));
    merges
        .filter_map(|line| line.0.split_once(' '))
        .try_for_each(|(left, right)| check(left, right))
}
