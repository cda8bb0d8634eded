//! The URLs of requests.

use std::sync::Arc;

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};

use super::{Body, Peer, full_body};
use crate::backend::BackendError;

/// A URL with the headers of every request to it.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    uri: Uri,
    headers: HeaderMap,
    pub(super) peer: Arc<Peer>,
}

impl Endpoint {
    /// The endpoint at a path below a base URL. The headers may contain a key.
    pub(super) fn new(
        base: &str,
        path: &str,
        headers: &[(&'static str, String)],
        key: Option<&str>,
    ) -> Result<Self, BackendError> {
        let wrong = |reason: &str| BackendError::Address {
            address: without_secrets(base),
            reason: reason.to_owned(),
        };
        let uri: Uri = below(base, path)
            .parse()
            .map_err(|_| wrong("expected a URL such as `http://127.0.0.1:11434/v1`"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(wrong("it must start with `http://` or `https://`"));
        }
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong(
                "it must not contain a user name or password; pass the key separately",
            ));
        }
        let mut all = HeaderMap::new();
        all.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        for (name, value) in headers {
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| wrong("its key contains characters that are invalid in a header"))?;
            value.set_sensitive(true);
            all.insert(HeaderName::from_static(name), value);
        }
        let peer = Peer::new(authority.as_str()).hiding(key.unwrap_or_default());
        Ok(Self {
            uri,
            headers: all,
            peer: Arc::new(peer),
        })
    }

    /// An endpoint with a key as bearer token.
    pub(super) fn with_bearer(
        base: &str,
        path: &str,
        key: Option<&str>,
    ) -> Result<Self, BackendError> {
        let key = key.map(str::trim).filter(|key| !key.is_empty());
        let header = key.map(|key| ("authorization", format!("Bearer {key}")));
        Self::new(base, path, header.as_slice(), key)
    }

    /// A POST request with this JSON, or a GET request if it is empty.
    pub(super) fn request(&self, json: Vec<u8>) -> Request<Body> {
        let is_get = json.is_empty();
        let mut request = Request::new(full_body(json));
        *request.method_mut() = if is_get { Method::GET } else { Method::POST };
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Adds headers to every request, except for the content type, which is always JSON.
    pub(super) fn add_headers(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            if name != header::CONTENT_TYPE {
                self.headers.append(name, value.clone());
            }
        }
    }

    pub(super) fn host(&self) -> &str {
        self.peer.name()
    }
}

/// The URL of a path below a base URL. Both may have a query.
///
/// ```
/// use overlock_llm::below;
///
/// let address = below("https://host/v1?api-version=1", "/chat/completions?user=2");
/// assert_eq!(address, "https://host/v1/chat/completions?api-version=1&user=2");
/// ```
pub fn below(base: &str, path: &str) -> String {
    let (base, query) = base.trim().split_once('?').unwrap_or((base.trim(), ""));
    let (path, own) = path.split_once('?').unwrap_or((path, ""));
    let base = base.trim_end_matches('/');
    match (query, own) {
        ("", "") => format!("{base}{path}"),
        ("", query) | (query, "") => format!("{base}{path}?{query}"),
        (query, own) => format!("{base}{path}?{query}&{own}"),
    }
}

/// A URL for messages, without credentials, query and fragment.
pub(super) fn without_secrets(address: &str) -> String {
    let end = address.find(['?', '#']).unwrap_or(address.len());
    let address = &address[..end];
    match (address.find("//"), address.rfind('@')) {
        (Some(slashes), Some(at)) if at > slashes => {
            format!("{}…{}", &address[..slashes + 2], &address[at..])
        }
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_inserted_before_the_query() {
        let at = |base| Endpoint::new(base, "/chat/completions", &[], None).map(|at| at.uri);
        for (base, expected) in [
            ("http://h/v1/", "http://h/v1/chat/completions"),
            (
                "http://h/v1?api-version=3",
                "http://h/v1/chat/completions?api-version=3",
            ),
        ] {
            assert_eq!(at(base).map(|uri| uri.to_string()), Ok(expected.to_owned()));
        }
    }
}
