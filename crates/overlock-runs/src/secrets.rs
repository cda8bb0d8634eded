//! Removes API keys from upstream messages before they are stored or shown.

use std::borrow::Cow;

/// The maximum length of a message in characters.
const LONGEST: usize = 500;

/// Shorter strings occur in ordinary text and are not treated as keys.
const SHORTEST: usize = 6;

/// The prefixes of API keys.
const BEGINNINGS: [&str; 8] = ["sk-", "sk_", "gsk_", "xai-", "hf_", "AIza", "eyJ", "ghp_"];

/// The minimum length of a word with such a prefix to be treated as a key.
const SHORTEST_LOOK: usize = 12;

/// The replacement of a key.
const HIDDEN: &str = "[redacted]";

/// The keys of a request.
#[derive(Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Collects those that are long enough to be keys.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all: Vec<String> = secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.len() >= SHORTEST)
            .map(str::to_owned)
            .collect();
        // Longer ones first, because one key may contain another.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(all)
    }

    /// The keys.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// An upstream message on one line, shortened, and without these keys or words that look like
    /// keys.
    pub fn scrub(&self, message: &str) -> String {
        let mut message = Cow::Borrowed(message);
        for secret in self.iter() {
            if message.contains(secret) {
                message = message.replace(secret, HIDDEN).into();
            }
        }
        let message = without_likely_keys(&message);
        let plain = |character: char| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        };
        let mut characters = message.chars();
        let mut scrubbed: String = characters.by_ref().take(LONGEST).map(plain).collect();
        if characters.next().is_some() {
            scrubbed.push('…');
        }
        scrubbed.trim().to_owned()
    }
}

/// A text without the words that look like keys.
fn without_likely_keys(text: &str) -> String {
    let is_inner = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '*')
    };
    let mut scrubbed = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|character| !is_inner(character));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        let looks = BEGINNINGS.iter().any(|begin| word.starts_with(begin));
        if looks && word.len() >= SHORTEST_LOOK {
            scrubbed.push_str(HIDDEN);
        } else {
            scrubbed.push_str(word);
        }
        let between = after.find(is_inner).unwrap_or(after.len());
        scrubbed.push_str(&after[..between]);
        rest = &after[between..];
    }
    scrubbed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn removes_every_key(
            own in "[A-Za-z0-9+/=_-]{6,80}",
            theirs in "[A-Za-z0-9+/_-]{6,80}",
            third in "[A-Za-z0-9_-]{6,80}",
            words in "[ -~]{0,40}",
            more in "\\PC{0,600}",
        ) {
            let secrets = Secrets::new([&*own, &*theirs, &*third]);
            let message = format!("{words}{own} {theirs}{more}\n{third}{words}{theirs}{own}");
            let scrubbed = secrets.scrub(&message);
            let hidden = scrubbed.replace(HIDDEN, "\n");
            for secret in [&own, &theirs, &third] {
                prop_assert!(!hidden.contains(secret.as_str()), "{secret} is in {scrubbed}");
            }
            prop_assert!(scrubbed.chars().count() <= LONGEST + 1);
            prop_assert!(!scrubbed.contains('\n'));
        }

        #[test]
        fn keeps_a_text_without_keys(text in "[a-z ,.]{0,200}") {
            let scrubbed = Secrets::default().scrub(&text);
            prop_assert_eq!(scrubbed, text.trim());
        }
    }

    #[test]
    fn removes_words_that_look_like_keys() {
        let secrets = Secrets::default();
        assert_eq!(
            secrets.scrub("Incorrect API key provided: sk-proj-abc123***xyz. See https://x.y/z."),
            "Incorrect API key provided: [redacted] See https://x.y/z."
        );
        assert_eq!(
            secrets.scrub("the task-list is sk-ipped"),
            "the task-list is sk-ipped"
        );
    }
}
