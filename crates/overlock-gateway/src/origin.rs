//! Rejects requests from foreign web pages.
//!
//! A browser lets any page send requests to this machine, and with DNS rebinding a page can read the
//! replies. Neither may use the upstream key of the gateway.

use std::net::IpAddr;

use hyper::StatusCode;
use hyper::header::{HOST, HeaderMap, ORIGIN};

use crate::error::ApiError;

/// Rejects a request from a foreign page. If clients need a key, which a foreign page does not have,
/// any host name is accepted.
pub(crate) fn check(headers: &HeaderMap, needs_key: bool) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(HOST).unwrap_or_default();
    if let Some(origin) = text(ORIGIN) {
        let (_, origin_host) = origin.split_once("://").unwrap_or(("", origin));
        if !origin_host.eq_ignore_ascii_case(host) {
            return Err(foreign("requests from other origins are not allowed"));
        }
    }
    if needs_key || is_local_name(host) {
        return Ok(());
    }
    Err(foreign(
        "without API keys, the gateway only accepts the host `localhost` or an IP address: any \
         other name could belong to a foreign page",
    ))
}

/// Whether a host is `localhost` or an IP address, which DNS rebinding cannot use.
fn is_local_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    // Programs other than browsers may send no host.
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
    fn check_passes(host: &str, origin: Option<&'static str>, needs_key: bool, passes: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).expect("a host"));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        let is_accepted = check(&headers, needs_key).is_ok();
        assert_eq!(is_accepted, passes, "{host} {origin:?} {needs_key}");
    }

    #[test]
    fn accepts_programs_and_the_own_page() {
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
    fn rejects_foreign_pages() {
        for keys in [false, true] {
            check_passes("127.0.0.1:8080", Some("https://evil.example"), keys, false);
            check_passes("127.0.0.1:8080", Some("http://127.0.0.1:3000"), keys, false);
            check_passes("127.0.0.1:8080", Some("null"), keys, false);
        }
        // A foreign name that points to this machine.
        check_passes("evil.example:8080", None, false, false);
        check_passes(
            "evil.example:8080",
            Some("http://evil.example:8080"),
            false,
            false,
        );
    }
}
