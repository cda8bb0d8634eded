//! Passes requests on to the upstream and brings back what it says.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{self, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use overlock_model::{BackendError, Timeouts};
use tokio::time::timeout;

use crate::body::Body;
use crate::error::ApiError;
use crate::settings::Upstream;

/// A client that keeps its connections.
pub(crate) struct Client {
    http: HttpClient<HttpsConnector<HttpConnector>, Body>,
    key: Option<HeaderValue>,
    timeouts: Timeouts,
}

/// What an upstream says, as it comes.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    timeouts: Timeouts,
}

/// What belongs to one connection, or to the gateway, and goes no further.
const KEPT_BACK: [HeaderName; 12] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    // What is not understood cannot be made whole.
    header::ACCEPT_ENCODING,
    header::COOKIE,
];

impl Client {
    pub(crate) fn new(upstream: &Upstream) -> Result<Self, BackendError> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(upstream.timeouts.connect));
        connector.set_nodelay(true);
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(|error| BackendError::Unreachable {
                host: "any server over TLS".to_owned(),
                reason: error.to_string(),
            })?
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let key = upstream.key.as_deref().map(bearer).transpose()?;
        Ok(Self {
            http: HttpClient::builder(TokioExecutor::new()).build(connector),
            key,
            timeouts: upstream.timeouts,
        })
    }

    /// What goes on of the head of a client's request. What it shows as its key goes too, unless
    /// that was meant for the gateway or the upstream has one of its own.
    pub(crate) fn headers(&self, client: &HeaderMap, key_is_ours: bool) -> HeaderMap {
        let mut headers = client.clone();
        for name in KEPT_BACK {
            headers.remove(name);
        }
        let ours: Vec<HeaderName> = headers
            .keys()
            .filter(|name| name.as_str().starts_with("x-overlock-"))
            .cloned()
            .collect();
        for name in ours {
            headers.remove(name);
        }
        match &self.key {
            Some(key) => {
                headers.insert(AUTHORIZATION, key.clone());
            }
            None if key_is_ours => {
                headers.remove(AUTHORIZATION);
            }
            None => {}
        }
        headers
    }

    /// Sends a request to a path below a base address, such as `/chat/completions`.
    pub(crate) async fn send(
        &self,
        method: Method,
        base: &str,
        path: &str,
        headers: HeaderMap,
        body: Body,
    ) -> Result<Answer, ApiError> {
        let uri: Uri = format!("{}{path}", base.trim().trim_end_matches('/'))
            .parse()
            .map_err(|_| ApiError::invalid("the path is none"))?;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let wait = self.timeouts.connect + self.timeouts.first_byte;
        let response: Response<Incoming> = match timeout(wait, self.http.request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_connect() => {
                return Err(ApiError::upstream("the upstream could not be reached"));
            }
            Ok(Err(_)) => return Err(ApiError::upstream("the upstream broke off")),
            Err(_) => {
                let message = format!("the upstream did not answer in {} s", wait.as_secs());
                return Err(ApiError::upstream_is_late(message));
            }
        };
        let (parts, body) = response.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body,
            timeouts: self.timeouts,
        })
    }
}

impl Answer {
    /// Whether it comes as a stream of events.
    pub(crate) fn is_event_stream(&self) -> bool {
        self.content_type().starts_with("text/event-stream")
    }

    fn content_type(&self) -> &str {
        let kind = self.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        kind.unwrap_or_default().trim_start()
    }

    /// The next bytes; nothing at the end.
    pub(crate) async fn next_bytes(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            let silence = self.timeouts.silence;
            let Ok(frame) = timeout(silence, self.body.frame()).await else {
                let message = format!("the upstream fell silent for {} s", silence.as_secs());
                return Err(ApiError::upstream_is_late(message));
            };
            match frame {
                None => return Ok(None),
                Some(Err(_)) => return Err(ApiError::upstream("the upstream broke off")),
                // Trailers are no part of the answer.
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// All of it, if it is no longer than `most` bytes.
    pub(crate) async fn read_whole(&mut self, most: usize) -> Result<Bytes, ApiError> {
        let Some(first) = self.next_bytes().await? else {
            return Ok(Bytes::new());
        };
        let mut all = Vec::new();
        while let Some(piece) = self.next_bytes().await? {
            if all.is_empty() {
                all.extend_from_slice(&first);
            }
            all.extend_from_slice(&piece);
            if all.len() > most {
                return Err(ApiError::upstream(format!(
                    "the upstream's answer is longer than {most} bytes"
                )));
            }
        }
        Ok(if all.is_empty() { first } else { all.into() })
    }

    /// The body, to be passed on as it comes.
    pub(crate) fn into_body(self) -> Body {
        self.body.map_err(Into::into).boxed_unsync()
    }
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
