//! Estimates the tokens of a text by its length.
//!
//! Four characters per token is right for plain English, but far off for code and most other scripts.
//! It is used only on request.

use super::{CountTokens, Keep};

/// The rule of thumb `approx:chars/4`: a token for every four characters, rounded up.
///
/// ```
/// use overlock_budget::{Approximate, CountTokens, Keep};
///
/// assert_eq!(Approximate.count("hello"), 2);
/// assert_eq!(Approximate.truncate_to("hello", 1, Keep::Start), "hell");
/// assert_eq!(Approximate.truncate_to("hello", 1, Keep::End), "ello");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Approximate;

const CHARACTERS_PER_TOKEN: u64 = 4;

impl CountTokens for Approximate {
    fn name(&self) -> &'static str {
        "approx:chars/4"
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
        let tokens = (text.chars().count() as u64).div_ceil(CHARACTERS_PER_TOKEN);
        (tokens <= limit).then_some(tokens)
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str {
        let characters = tokens.saturating_mul(CHARACTERS_PER_TOKEN);
        let characters = usize::try_from(characters).unwrap_or(usize::MAX);
        let mut places = text.char_indices().map(|(place, _)| place);
        match keep {
            Keep::Start => places.nth(characters).map_or(text, |end| &text[..end]),
            Keep::End => {
                let Some(last) = characters.checked_sub(1) else {
                    return "";
                };
                places.nth_back(last).map_or(text, |start| &text[start..])
            }
        }
    }
}
