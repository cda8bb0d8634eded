//! Who the upstream is, and what of a client's request goes to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use hyper::header::{self, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use overlock_llm::{BackendError, Body, Http, Peer, below};

use crate::error::ApiError;
use crate::keys::{API_KEY, IDEMPOTENCY_KEY};
use crate::metrics::UpstreamErrors;
use crate::settings::Upstream;

/// The upstream, and the client for all calls of it.
pub(crate) struct Client {
    pub(crate) http: Http,
    /// Where it is concerns whoever runs the gateway, and not its clients.
    pub(crate) peer: Arc<Peer>,
    key: Option<HeaderValue>,
}

/// What belongs to one connection and goes no further, besides what a message itself names.
static OF_THE_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// What a client says to the gateway and not to the upstream. How long the body is follows from
/// the body.
static OF_THE_GATEWAY: [HeaderName; 4] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::COOKIE,
];

/// The path of chat requests below a base address.
pub(crate) const CHAT_PATH: &str = "/chat/completions";

impl Upstream {
    /// The address that all paths are below.
    pub(crate) fn address(&self) -> Result<&str, ApiError> {
        self.base.as_deref().ok_or_else(|| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "upstream_error",
                "no upstream is named, so that only the model `overlock-demo` answers: start the \
                 gateway with `--upstream URL`, or set `upstream.url` in overlock.toml",
            )
            .with_code("no_upstream")
        })
    }
}

impl Client {
    /// What goes wrong is counted.
    pub(crate) fn new(upstream: &Upstream, errors: UpstreamErrors) -> Result<Self, BackendError> {
        let peer = Peer::new("the upstream").hiding(upstream.key.as_deref().unwrap_or_default());
        let peer = peer.on_failure(move |error| errors.add(error));
        Ok(Self {
            http: Http::new(upstream.timeouts)?,
            peer: Arc::new(peer),
            key: upstream.key.as_deref().map(bearer).transpose()?,
        })
    }

    /// What goes on of the head of a client's request. What it shows as its key goes too, unless
    /// that was meant for the gateway or the upstream has one of its own.
    pub(crate) fn headers(&self, client: &HeaderMap, key_is_ours: bool) -> HeaderMap {
        let mut headers = self.untouched_headers(client, key_is_ours);
        // What is not understood cannot be made whole.
        let identity = HeaderValue::from_static("identity");
        headers.insert(header::ACCEPT_ENCODING, identity);
        // It is heeded here, and for the upstream the calls for one answer are not one request.
        headers.remove(&IDEMPOTENCY_KEY);
        headers
    }

    /// The same, for answers that nobody here has to understand.
    pub(crate) fn untouched_headers(&self, client: &HeaderMap, key_is_ours: bool) -> HeaderMap {
        let named = named_by_connection(client);
        let mut headers = HeaderMap::with_capacity(client.len() + 2);
        for (name, value) in client {
            let is_kept_back = OF_THE_CONNECTION.contains(name)
                || OF_THE_GATEWAY.contains(name)
                || name.as_str().starts_with("x-overlock-")
                || named.contains(name.as_str())
                || (key_is_ours && (name == AUTHORIZATION || name == API_KEY));
            if !is_kept_back {
                headers.append(name, value.clone());
            }
        }
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        headers
    }

    /// A request to a path below a base address, such as `/chat/completions`.
    pub(crate) fn request(
        &self,
        method: Method,
        (base, path): (&str, &str),
        headers: HeaderMap,
        body: Body,
    ) -> Result<Request<Body>, BackendError> {
        let place: Option<Uri> = below(base, path).parse().ok();
        let place = place.filter(|place| place.host().is_some());
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = place.ok_or_else(|| BackendError::Address {
            address: self.peer.name().to_owned(),
            reason: "the path is none".to_owned(),
        })?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// Leaves out what belongs to one connection.
pub(crate) fn without_connection(headers: &mut HeaderMap) {
    for name in named_by_connection(headers) {
        headers.remove(name);
    }
    for name in &OF_THE_CONNECTION {
        headers.remove(name);
    }
}

/// What a message itself says belongs to the connection, in lower case.
fn named_by_connection(headers: &HeaderMap) -> BTreeSet<String> {
    let named = headers.get_all(header::CONNECTION).iter();
    named
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect()
}

fn bearer(key: &str) -> Result<HeaderValue, BackendError> {
    let value = HeaderValue::from_str(&format!("Bearer {}", key.trim()));
    let mut value = value.map_err(|_| BackendError::Address {
        address: "the upstream".to_owned(),
        reason: "its key holds characters that no header can carry".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}
