//! What must be told to nobody: the keys of a request, wherever an upstream says them back.

use std::borrow::Cow;

use hyper::HeaderMap;

/// A message is told up to so many characters.
const LONGEST: usize = 500;

/// What is shorter is in too many words to be hidden, and is no key.
const SHORTEST: usize = 6;

/// The headers that hold keys.
const HEADERS: [&str; 6] = [
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "proxy-authorization",
    "cookie",
];

/// What the names of parameters hold that hold keys.
const PARAMETERS: [&str; 5] = ["key", "token", "secret", "sig", "code"];

/// How keys begin that providers give out.
const BEGINNINGS: [&str; 8] = ["sk-", "sk_", "gsk_", "xai-", "hf_", "AIza", "eyJ", "ghp_"];

/// What looks like a key has so many characters at least.
const SHORTEST_LOOK: usize = 12;

/// Stands where a key was.
const HIDDEN: &str = "[redacted]";

/// The keys that go with a request.
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// The upstream's own key, and what a client showed in its headers and after its path.
    pub(crate) fn of(
        upstream: Option<&str>,
        shown: Option<&HeaderMap>,
        query: Option<&str>,
    ) -> Self {
        let headers = HEADERS.iter().flat_map(|name| {
            let values = shown.into_iter().flat_map(|shown| shown.get_all(*name));
            values.filter_map(|value| value.to_str().ok())
        });
        // A header may name the kind of key before the key, and several may be in one.
        let words = headers.flat_map(|value| value.split([' ', ';', ',', '=']));
        let parameters = query.unwrap_or_default().split('&');
        let parameters = parameters.filter_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let name = name.to_ascii_lowercase();
            PARAMETERS
                .iter()
                .any(|part| name.contains(part))
                .then_some(value)
        });
        let all = upstream.into_iter().chain(words).chain(parameters);
        let mut all: Vec<String> = all
            .map(str::trim)
            .filter(|secret| secret.len() >= SHORTEST)
            .map(str::to_owned)
            .collect();
        // One may be a part of another.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(all)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// What an upstream says, on one line, not too long, and without any of these or what looks
    /// like one.
    pub(crate) fn scrub(&self, said: &str) -> String {
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
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn shown(name: &'static str, value: &str) -> HeaderMap {
        let mut shown = HeaderMap::new();
        shown.insert(name, HeaderValue::from_str(value).expect("a header"));
        shown
    }

    proptest! {
        #[test]
        fn no_key_is_in_what_is_told(
            own in "[A-Za-z0-9+/=_-]{6,80}",
            theirs in "[A-Za-z0-9+/_-]{6,80}",
            third in "[A-Za-z0-9_-]{6,80}",
            words in "[ -~]{0,40}",
            more in "\\PC{0,600}",
        ) {
            let headers = shown("authorization", &format!("Bearer {theirs}"));
            let query = format!("api-version=1&api_key={third}");
            let secrets = Secrets::of(Some(&own), Some(&headers), Some(&query));
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
            let told = Secrets::of(None, None, None).scrub(&said);
            prop_assert_eq!(told, said.trim());
        }
    }

    #[test]
    fn what_looks_like_a_key_is_hidden_whoever_it_belongs_to() {
        let secrets = Secrets::of(None, None, None);
        assert_eq!(
            secrets.scrub("Incorrect API key provided: sk-proj-abc123***xyz. See https://x.y/z."),
            "Incorrect API key provided: [redacted] See https://x.y/z."
        );
        assert_eq!(
            secrets.scrub("the task-list is sk-ipped"),
            "the task-list is sk-ipped"
        );
    }

    #[test]
    fn every_header_that_may_hold_a_key_is_heeded() {
        for name in HEADERS {
            let headers = shown(name, "abcdef123");
            let secrets = Secrets::of(None, Some(&headers), None);
            assert_eq!(secrets.scrub("not abcdef123!"), "not [redacted]!", "{name}");
        }
    }
}
