//! Does a request come from a page that has no business here?
//!
//! A browser lets any page send requests to this machine, and a name that points to it lets a page
//! read the answers too. Neither may spend what the gateway has a key for.

use std::net::IpAddr;

use hyper::StatusCode;
use hyper::header::{HOST, HeaderMap, ORIGIN};

use crate::error::ApiError;

/// Lets a request pass unless a page of somebody else sends it. `asks_for_keys` says whether a key
/// has to be shown, which a page of somebody else does not have.
pub(crate) fn check(headers: &HeaderMap, asks_for_keys: bool) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(HOST).unwrap_or_default();
    if let Some(origin) = text(ORIGIN) {
        let (_, place) = origin.split_once("://").unwrap_or(("", origin));
        if !place.eq_ignore_ascii_case(host) {
            return Err(foreign("requests of pages from elsewhere are not answered"));
        }
    }
    if asks_for_keys || is_of_this_machine(host) {
        return Ok(());
    }
    Err(foreign(
        "without keys only requests to `localhost` or to an address in figures are answered, since \
         any other name could be somebody else's",
    ))
}

/// Whether a host cannot be a name that somebody else has pointed here.
fn is_of_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    // Programs that are no browsers may name nothing.
    name.is_empty() || name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn foreign(message: &str) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "invalid_request_error", message)
        .with_code("foreign_origin")
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[track_caller]
    fn check_passes(host: &str, origin: Option<&'static str>, asks_for_keys: bool, passes: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).expect("a host"));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        let is_let_in = check(&headers, asks_for_keys).is_ok();
        assert_eq!(is_let_in, passes, "{host} {origin:?} {asks_for_keys}");
    }

    #[test]
    fn programs_and_own_pages_pass() {
        for host in [
            "127.0.0.1:8080",
            "localhost:8080",
            "[::1]:8080",
            "LOCALHOST",
            "",
        ] {
            check_passes(host, None, false, true);
        }
        check_passes("127.0.0.1:8080", Some("http://127.0.0.1:8080"), false, true);
        check_passes(
            "gateway.example",
            Some("https://gateway.example"),
            true,
            true,
        );
        check_passes("gateway.example", None, true, true);
    }

    #[test]
    fn pages_from_elsewhere_do_not() {
        for keys in [false, true] {
            check_passes("127.0.0.1:8080", Some("https://evil.example"), keys, false);
            check_passes("127.0.0.1:8080", Some("http://127.0.0.1:3000"), keys, false);
            check_passes("127.0.0.1:8080", Some("null"), keys, false);
        }
        // A name that somebody has pointed to this machine.
        check_passes("evil.example:8080", None, false, false);
        check_passes(
            "evil.example:8080",
            Some("http://evil.example:8080"),
            false,
            false,
        );
    }
}
