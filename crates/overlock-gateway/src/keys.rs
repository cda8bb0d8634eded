//! Who may use the gateway?

use std::fmt;

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName};
use subtle::ConstantTimeEq;

use crate::error::ApiError;

/// The keys that clients must show. They are in no message, no log and no debug output.
#[derive(Clone, Default)]
pub struct Keys {
    keys: Vec<String>,
}

/// Whether a request may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nobody is asked for a key.
    NotNeeded,
    Right,
    Missing,
    Wrong,
}

impl Shown {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotNeeded => "not-needed",
            Self::Right => "right",
            Self::Missing => "missing",
            Self::Wrong => "wrong",
        }
    }
}

/// Where some clients show their key instead.
pub(crate) const API_KEY: &str = "x-api-key";

/// Where a client names a request that it may send again.
pub(crate) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Keys {
    /// These keys; without any, nobody is asked for one.
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        Self {
            keys: keys.into_iter().collect(),
        }
    }

    /// Whether nobody is asked for a key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What a request shows of them.
    pub(crate) fn shown(&self, headers: &HeaderMap) -> Shown {
        if self.is_empty() {
            return Shown::NotNeeded;
        }
        match shown(headers) {
            None => Shown::Missing,
            Some(key) if self.holds(key) => Shown::Right,
            Some(_) => Shown::Wrong,
        }
    }

    /// Lets a request pass that shows one of the keys.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let message = match self.shown(headers) {
            Shown::NotNeeded | Shown::Right => return Ok(()),
            Shown::Missing => {
                "you did not show a key: send one of the gateway's as `Authorization: Bearer KEY`"
            }
            Shown::Wrong => "the key you showed is none of the gateway's",
        };
        let error = ApiError::new(StatusCode::UNAUTHORIZED, "invalid_request_error", message);
        Err(error.with_code("invalid_api_key"))
    }

    /// Every key is compared to its end, so that the time tells nothing about any.
    fn holds(&self, shown: &[u8]) -> bool {
        let found = self.keys.iter().fold(0, |found, key| {
            found | key.as_bytes().ct_eq(shown).unwrap_u8()
        });
        found == 1
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} keys", self.keys.len())
    }
}

fn shown(headers: &HeaderMap) -> Option<&[u8]> {
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
    fn check(headers: &[(&'static str, &'static str)], is_let_in: bool) {
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
        assert_eq!(keys.check(&headers).is_ok(), is_let_in, "{headers:?}");
    }

    #[test]
    fn any_of_the_keys_opens() {
        check(&[("authorization", "Bearer first-key")], true);
        check(&[("authorization", "bearer  second ")], true);
        check(&[("x-api-key", "second")], true);
    }

    #[test]
    fn nothing_else_does() {
        check(&[], false);
        check(&[("authorization", "Bearer ")], false);
        check(&[("authorization", "Bearer first")], false);
        check(&[("authorization", "Bearer first-keyfirst-key")], false);
        check(&[("authorization", "Basic second")], false);
        check(&[("authorization", "second")], false);
        check(&[("x-api-key", "")], false);
    }

    #[test]
    fn without_keys_everybody_is_let_in() {
        assert!(Keys::default().check(&HeaderMap::new()).is_ok());
    }

    #[test]
    fn keys_are_not_shown() {
        let keys = Keys::new(["first-key".to_owned()]);
        assert_eq!(format!("{keys:?}"), "1 keys");
    }
}
