//! Can the merges of a model be made at all?
//!
//! The reader of models takes it for granted that no merge makes a longer token than there is, and
//! that what is merged continues a word as the model says; it panics on a file where that is wrong.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// What says how a model merges; the models that do not have no merges.
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

/// Says what is wrong with the merges of a model.
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
