//! The client for upstream calls, and the headers that are forwarded.

use std::collections::BTreeSet;
use std::sync::Arc;

use hyper::header::{self, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use overlock_llm::wire::Protocol;
use overlock_llm::{BackendError, Body as CallBody, CallFailure, Http, Peer, below};
use serde_json::Value;

use crate::error::ApiError;
use crate::keys::{API_KEY, IDEMPOTENCY_KEY};
use crate::metrics::UpstreamErrors;
use crate::reply::{Reply, json_reply};
use crate::settings::Upstream;

/// The upstream, and the client for all calls of it.
pub(crate) struct Client {
    pub(crate) http: Http,
    /// The upstream, which clients see only as "the upstream", without its address.
    pub(crate) peer: Arc<Peer>,
    /// The header with the key of the upstream.
    key: Option<(HeaderName, HeaderValue)>,
    api: Protocol,
}

/// The version of Messages, for clients that name none.
const MESSAGES_VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-version"),
    HeaderValue::from_static("2023-06-01"),
);

/// Headers of one connection. They are not forwarded, nor are those named by `Connection`.
static CONNECTION_HEADERS: [HeaderName; 9] = [
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

/// Headers meant for the gateway. `Content-Length` is set again from the body.
static GATEWAY_HEADERS: [HeaderName; 4] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::COOKIE,
];

/// Headers of an upstream answer that describe its body, which is decoded here, or its transfer.
static BODY_HEADERS: [HeaderName; 5] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::DATE,
    header::SET_COOKIE,
];

impl Upstream {
    /// The base URL.
    pub(crate) fn address(&self) -> Result<&str, ApiError> {
        self.base.as_deref().ok_or_else(|| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "upstream_error",
                "no upstream configured, so only the model `overlock-demo` is available: start the \
                 gateway with `--upstream URL`, or set `upstream.url` in overlock.toml",
            )
            .with_code("no_upstream")
        })
    }
}

impl Client {
    /// Errors are counted in `errors`.
    pub(crate) fn new(upstream: &Upstream, errors: UpstreamErrors) -> Result<Self, BackendError> {
        let peer = Peer::new("the upstream").hiding(upstream.key.as_deref().unwrap_or_default());
        let peer = peer.on_failure(move |error| errors.add(error));
        Ok(Self {
            http: Http::new(upstream.timeouts)?,
            peer: Arc::new(peer),
            key: match upstream.key.as_deref() {
                Some(key) => Some(key_header(upstream.api, key)?),
                None => None,
            },
            api: upstream.api,
        })
    }

    /// The headers of a client that are forwarded. Its key is forwarded too, unless it is a key of the
    /// gateway or the upstream has its own key.
    pub(crate) fn headers(&self, client: &HeaderMap, key_is_ours: bool) -> HeaderMap {
        let mut headers = self.untouched_headers(client, key_is_ours);
        // A compressed answer could not be continued.
        let identity = HeaderValue::from_static("identity");
        headers.insert(header::ACCEPT_ENCODING, identity);
        // The gateway handles the key itself. For the upstream, each call is a separate request.
        headers.remove(&IDEMPOTENCY_KEY);
        headers
    }

    /// The same, for answers that the gateway only forwards.
    pub(crate) fn untouched_headers(&self, client: &HeaderMap, key_is_ours: bool) -> HeaderMap {
        let named = named_by_connection(client);
        let mut headers = HeaderMap::with_capacity(client.len() + 2);
        for (name, value) in client {
            let is_dropped = CONNECTION_HEADERS.contains(name)
                || GATEWAY_HEADERS.contains(name)
                || name.as_str().starts_with("x-overlock-")
                || named.contains(name.as_str())
                || (key_is_ours && (name == AUTHORIZATION || name == API_KEY));
            if !is_dropped {
                headers.append(name, value.clone());
            }
        }
        self.with_key(headers)
    }

    /// Adds what the protocol of the upstream needs to headers: its key and its version.
    pub(crate) fn with_key(&self, mut headers: HeaderMap) -> HeaderMap {
        if self.api == Protocol::Messages {
            let (name, version) = MESSAGES_VERSION;
            headers.entry(name).or_insert(version);
            if self.key.is_some() {
                headers.remove(AUTHORIZATION);
            }
        }
        if let Some((name, key)) = &self.key {
            headers.insert(name, key.clone());
        }
        headers
    }

    /// A request to a path below a base address, such as `/chat/completions`.
    pub(crate) fn request(
        &self,
        method: Method,
        (base, path): (&str, &str),
        headers: HeaderMap,
        body: CallBody,
    ) -> Result<Request<CallBody>, BackendError> {
        let uri: Option<Uri> = below(base, path).parse().ok();
        let uri = uri.filter(|uri| uri.host().is_some());
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri.ok_or_else(|| BackendError::Address {
            address: self.peer.name().to_owned(),
            reason: "invalid path".to_owned(),
        })?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// The reply to a request whose upstream call failed. An error in the shape that clients know is
/// forwarded.
pub(crate) fn failure_reply(peer: &Peer, failure: CallFailure, protocol: Protocol) -> Reply {
    let Some(refused) = failure.refused else {
        return ApiError::from(failure.error).into_reply_in(protocol);
    };
    let value: Option<Value> = serde_json::from_slice(&refused.body).ok();
    let known = value.filter(|value| value.get("error").is_some_and(Value::is_object));
    let mut reply = if let Some(mut value) = known {
        peer.hide_in(&mut value);
        json_reply(refused.status, &value)
    } else {
        let reason = match failure.error {
            BackendError::Status { message, .. } => message,
            error => error.to_string(),
        };
        let message = format!("the upstream answered {}: {reason}", refused.status);
        let error = ApiError::new(refused.status, "upstream_error", message);
        error.into_reply_in(protocol)
    };
    forward_headers(&refused.headers, reply.headers_mut());
    reply
}

/// Copies the headers of an upstream answer to a reply, except those of its body and connection.
pub(crate) fn forward_headers(from: &HeaderMap, to: &mut HeaderMap) {
    for (name, value) in from {
        if !CONNECTION_HEADERS.contains(name) && !BODY_HEADERS.contains(name) {
            to.append(name, value.clone());
        }
    }
}

/// Removes the headers of one connection.
pub(crate) fn without_connection(headers: &mut HeaderMap) {
    for name in named_by_connection(headers) {
        headers.remove(name);
    }
    for name in &CONNECTION_HEADERS {
        headers.remove(name);
    }
}

/// The header names in `Connection`, in lower case.
fn named_by_connection(headers: &HeaderMap) -> BTreeSet<String> {
    let named = headers.get_all(header::CONNECTION).iter();
    named
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect()
}

/// The header with a key, as a protocol names it.
fn key_header(api: Protocol, key: &str) -> Result<(HeaderName, HeaderValue), BackendError> {
    let (name, value) = match api {
        Protocol::Messages => (HeaderName::from_static(API_KEY), key.trim().to_owned()),
        Protocol::ChatCompletions | Protocol::Responses => {
            (AUTHORIZATION, format!("Bearer {}", key.trim()))
        }
    };
    let value = HeaderValue::from_str(&value);
    let mut value = value.map_err(|_| BackendError::Address {
        address: "the upstream".to_owned(),
        reason: "the API key has characters that are not allowed in a header".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}
