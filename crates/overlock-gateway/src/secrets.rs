//! Finds the keys in a request, so that they can be redacted.

use hyper::HeaderMap;
use overlock_runs::Secrets;

/// Headers with keys.
const HEADERS: [&str; 6] = [
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "proxy-authorization",
    "cookie",
];

/// Parts of the names of query parameters with keys.
const PARAMETERS: [&str; 5] = ["key", "token", "secret", "sig", "code"];

/// The key of the upstream, and the keys in the headers and the query of a client.
pub(crate) fn secrets_of(
    upstream: Option<&str>,
    client: Option<&HeaderMap>,
    query: Option<&str>,
) -> Secrets {
    let headers = HEADERS.iter().flat_map(|name| {
        let values = client.into_iter().flat_map(|client| client.get_all(*name));
        values.filter_map(|value| value.to_str().ok())
    });
    // A header may have a scheme before the key, or several keys.
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

    fn client(name: &'static str, value: &str) -> HeaderMap {
        let mut client = HeaderMap::new();
        client.insert(name, HeaderValue::from_str(value).expect("a header"));
        client
    }

    #[test]
    fn redacts_the_key_of_every_header() {
        for name in HEADERS {
            let headers = client(name, "abcdef123");
            let secrets = secrets_of(None, Some(&headers), None);
            assert_eq!(secrets.scrub("not abcdef123!"), "not [redacted]!", "{name}");
        }
    }

    #[test]
    fn redacts_keys_of_the_upstream_headers_and_parameters() {
        let headers = client("authorization", "Bearer theirs-12");
        let query = Some("api-version=1&api_key=third-12");
        let secrets = secrets_of(Some("own-1234"), Some(&headers), query);
        assert_eq!(
            secrets.scrub("own-1234 theirs-12 third-12 1"),
            "[redacted] [redacted] [redacted] 1"
        );
    }
}
