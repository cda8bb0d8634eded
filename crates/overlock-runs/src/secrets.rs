//! What must be told to nobody: the keys of a request, wherever an upstream says them back.

use std::borrow::Cow;

/// A message is told up to so many characters.
const LONGEST: usize = 500;

/// What is shorter is in too many words to be hidden, and is no key.
const SHORTEST: usize = 6;

/// How keys begin that providers give out.
const BEGINNINGS: [&str; 8] = ["sk-", "sk_", "gsk_", "xai-", "hf_", "AIza", "eyJ", "ghp_"];

/// What looks like a key has so many characters at least.
const SHORTEST_LOOK: usize = 12;

/// Stands where a key was.
const HIDDEN: &str = "[redacted]";

/// The keys that go with a request.
#[derive(Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// These, as far as they are long enough to be keys.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all: Vec<String> = secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.len() >= SHORTEST)
            .map(str::to_owned)
            .collect();
        // One may be a part of another.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(all)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// What an upstream says, on one line, not too long, and without any of these or what looks
    /// like one.
    pub fn scrub(&self, said: &str) -> String {
        let mut said = Cow::Borrowed(said);
        for secret in self.iter() {
            if said.contains(secret) {
                said = said.replace(secret, HIDDEN).into();
            }
        }
        let said = without_looks(&said);
        let plain = |character: char| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        };
        let mut characters = said.chars();
        let mut told: String = characters.by_ref().take(LONGEST).map(plain).collect();
        if characters.next().is_some() {
            told.push('…');
        }
        told.trim().to_owned()
    }
}

/// A text without the words in it that look like keys.
fn without_looks(said: &str) -> String {
    let is_inner = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '*')
    };
    let mut told = String::with_capacity(said.len());
    let mut rest = said;
    while !rest.is_empty() {
        let end = rest.find(|character| !is_inner(character));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        let looks = BEGINNINGS.iter().any(|begin| word.starts_with(begin));
        if looks && word.len() >= SHORTEST_LOOK {
            told.push_str(HIDDEN);
        } else {
            told.push_str(word);
        }
        let between = after.find(is_inner).unwrap_or(after.len());
        told.push_str(&after[..between]);
        rest = &after[between..];
    }
    told
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_key_is_in_what_is_told(
            own in "[A-Za-z0-9+/=_-]{6,80}",
            theirs in "[A-Za-z0-9+/_-]{6,80}",
            third in "[A-Za-z0-9_-]{6,80}",
            words in "[ -~]{0,40}",
            more in "\\PC{0,600}",
        ) {
            let secrets = Secrets::new([&*own, &*theirs, &*third]);
            let said = format!("{words}{own} {theirs}{more}\n{third}{words}{theirs}{own}");
            let told = secrets.scrub(&said);
            let hidden = told.replace(HIDDEN, "\n");
            for secret in [&own, &theirs, &third] {
                prop_assert!(!hidden.contains(secret.as_str()), "{secret} is in {told}");
            }
            prop_assert!(told.chars().count() <= LONGEST + 1);
            prop_assert!(!told.contains('\n'));
        }

        #[test]
        fn what_holds_no_key_is_told_as_it_is(said in "[a-z ,.]{0,200}") {
            let told = Secrets::default().scrub(&said);
            prop_assert_eq!(told, said.trim());
        }
    }

    #[test]
    fn what_looks_like_a_key_is_hidden_whoever_it_belongs_to() {
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
