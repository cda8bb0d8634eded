//! Can the merges of a model be made at all?
//!
//! The reader of models takes it for granted that no merge makes a longer token than there is, and
//! that what is merged continues a word as the model says; it panics on a file where that is wrong.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// What says how a model merges; the models that do not have no merges.
#[derive(Deserialize)]
struct Merging<'file> {
    #[serde(borrow)]
    vocab: Option<&'file RawValue>,
    #[serde(borrow)]
    merges: Option<Vec<Merge<'file>>>,
    #[serde(borrow)]
    continuing_subword_prefix: Option<Cow<'file, str>>,
}

/// Two tokens that become one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge<'file> {
    Pair(#[serde(borrow)] [Cow<'file, str>; 2]),
    /// The older form, with a space between them.
    Line(#[serde(borrow)] Cow<'file, str>),
}

/// Says what is wrong with the merges of a model.
pub(super) fn check(model: &RawValue) -> Result<(), tokenizers::Error> {
    let merging: Merging<'_> = serde_json::from_str(model.get())?;
    let (Some(vocab), Some(merges)) = (merging.vocab, merging.merges) else {
        return Ok(());
    };
    let vocab: HashMap<Cow<'_, str>, IgnoredAny> = serde_json::from_str(vocab.get())?;
    let longest = vocab.keys().map(|token| token.len()).max().unwrap_or(0);
    let prefix = merging
        .continuing_subword_prefix
        .map_or(0, |prefix| prefix.len());
    for merge in &merges {
        let (left, right) = match merge {
            Merge::Pair([left, right]) => (&**left, &**right),
            Merge::Line(line) if line.starts_with("#version") => continue,
            // The reader says itself what is no merge.
            Merge::Line(line) => line.split_once(' ').unwrap_or_default(),
        };
        let is_made = right
            .get(prefix..)
            .is_some_and(|rest| left.len() + rest.len() <= longest);
        if !is_made {
            return Err(format!("no token is made of `{left}` and `{right}`").into());
        }
    }
    Ok(())
}
