//! API keys of the gateway.

use std::fmt;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::ApiError;

/// The API keys that clients must send. They never appear in messages, logs or debug output.
#[derive(Clone, Default)]
pub struct Keys {
    keys: Vec<String>,
}

/// The key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyCheck {
    /// The gateway has no keys.
    NotNeeded,
    Right,
    Missing,
    Wrong,
}

impl KeyCheck {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotNeeded => "not-needed",
            Self::Right => "right",
            Self::Missing => "missing",
            Self::Wrong => "wrong",
        }
    }
}

/// The header in which some clients send their key.
pub(crate) const API_KEY: &str = "x-api-key";

/// The header with the name of a request that the client may retry.
pub(crate) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The headers that identify a client, to the gateway or to the upstream.
const CLIENT_HEADERS: [&str; 5] = [
    "authorization",
    API_KEY,
    "api-key",
    "openai-organization",
    "openai-project",
];

/// A digest of a name and of the headers that identify the client that uses it.
pub(crate) fn client_digest(headers: &HeaderMap, name: &[u8]) -> String {
    // No header contains a line break, so different headers never give the same text.
    let mut text = Vec::new();
    for header in CLIENT_HEADERS {
        for value in headers.get_all(header) {
            text.extend([header.as_bytes(), b"\n", value.as_bytes(), b"\n"].concat());
        }
    }
    text.extend([b"\n", name].concat());
    digest(&text)
}

pub(crate) fn digest(text: &[u8]) -> String {
    format!("{:x}", Bytes::copy_from_slice(&Sha256::digest(text)))
}

impl Keys {
    /// These keys; without any, requests need no key.
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        Self {
            keys: keys.into_iter().collect(),
        }
    }

    /// Whether requests need no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Checks the key in the headers of a request.
    pub(crate) fn key_check(&self, headers: &HeaderMap) -> KeyCheck {
        if self.is_empty() {
            return KeyCheck::NotNeeded;
        }
        match key_of(headers) {
            None => KeyCheck::Missing,
            Some(key) if self.contains(key) => KeyCheck::Right,
            Some(_) => KeyCheck::Wrong,
        }
    }

    /// Rejects a request without a valid key.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let message = match self.key_check(headers) {
            KeyCheck::NotNeeded | KeyCheck::Right => return Ok(()),
            KeyCheck::Missing => "missing API key: send it as `Authorization: Bearer KEY`",
            KeyCheck::Wrong => "invalid API key",
        };
        Err(ApiError::unauthorized(message))
    }

    /// Compares all keys in constant time.
    fn contains(&self, key: &[u8]) -> bool {
        let is_any = self.keys.iter().fold(0, |is_any, own| {
            is_any | own.as_bytes().ct_eq(key).unwrap_u8()
        });
        is_any == 1
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} keys", self.keys.len())
    }
}

fn key_of(headers: &HeaderMap) -> Option<&[u8]> {
    const BEARER: &[u8] = b"bearer ";
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked(BEARER.len())?;
        scheme.eq_ignore_ascii_case(BEARER).then_some(key)
    });
    let key = bearer.or_else(|| Some(headers.get(API_KEY)?.as_bytes()))?;
    Some(key.trim_ascii())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], is_accepted: bool) {
        let keys = Keys::new(["first-key".to_owned(), "second".to_owned()]);
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        assert_eq!(keys.check(&headers).is_ok(), is_accepted, "{headers:?}");
    }

    #[test]
    fn accepts_each_of_the_keys() {
        check(&[("authorization", "Bearer first-key")], true);
        check(&[("authorization", "bearer  second ")], true);
        check(&[("x-api-key", "second")], true);
    }

    #[test]
    fn rejects_missing_and_wrong_keys() {
        check(&[], false);
        check(&[("authorization", "Bearer ")], false);
        check(&[("authorization", "Bearer first")], false);
        check(&[("authorization", "Bearer first-keyfirst-key")], false);
        check(&[("authorization", "Basic second")], false);
        check(&[("authorization", "second")], false);
        check(&[("x-api-key", "")], false);
    }

    #[test]
    fn accepts_everything_without_keys() {
        assert!(Keys::default().check(&HeaderMap::new()).is_ok());
    }

    #[test]
    fn debug_output_has_no_keys() {
        let keys = Keys::new(["first-key".to_owned()]);
        assert_eq!(format!("{keys:?}"), "1 keys");
    }
}
