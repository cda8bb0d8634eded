//! Finds the keys of a request, which must be told to nobody.

use hyper::HeaderMap;
use overlock_runs::Secrets;

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

/// The upstream's own key, and what a client showed in its headers and after its path.
pub(crate) fn secrets_of(
    upstream: Option<&str>,
    shown: Option<&HeaderMap>,
    query: Option<&str>,
) -> Secrets {
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
    Secrets::new(upstream.into_iter().chain(words).chain(parameters))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn shown(name: &'static str, value: &str) -> HeaderMap {
        let mut shown = HeaderMap::new();
        shown.insert(name, HeaderValue::from_str(value).expect("a header"));
        shown
    }

    #[test]
    fn every_header_that_may_hold_a_key_is_heeded() {
        for name in HEADERS {
            let headers = shown(name, "abcdef123");
            let secrets = secrets_of(None, Some(&headers), None);
            assert_eq!(secrets.scrub("not abcdef123!"), "not [redacted]!", "{name}");
        }
    }

    #[test]
    fn keys_of_the_upstream_of_headers_and_of_parameters_are_found() {
        let headers = shown("authorization", "Bearer theirs-12");
        let query = Some("api-version=1&api_key=third-12");
        let secrets = secrets_of(Some("own-1234"), Some(&headers), query);
        assert_eq!(
            secrets.scrub("own-1234 theirs-12 third-12 1"),
            "[redacted] [redacted] [redacted] 1"
        );
    }
}
