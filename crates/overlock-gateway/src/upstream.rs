//! Passes requests on to the upstream and brings back what it says.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::{self, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::ResponseFuture;
use overlock_model::{BackendError, HttpsClient, Timeouts, below, https_client};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::api::FaultKind;
use crate::body::Body;
use crate::error::ApiError;
use crate::keys::{API_KEY, IDEMPOTENCY_KEY};
use crate::metrics::{UpstreamError, UpstreamErrors};
use crate::settings::Upstream;

/// A client that keeps its connections.
pub(crate) struct Client {
    http: HttpsClient<Body>,
    key: Option<HeaderValue>,
    /// The same key as it was set.
    secret: Option<String>,
    timeouts: Timeouts,
    errors: UpstreamErrors,
    /// Where most requests go, read once.
    chat: Option<Chat>,
}

/// The place of chat requests below a base address.
struct Chat {
    base: String,
    uri: Uri,
}

/// What an upstream says, as it comes.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    timeouts: Timeouts,
    /// When it has to be done, whatever comes.
    deadline: Option<Instant>,
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
        let key = upstream.key.as_deref().map(bearer).transpose()?;
        Ok(Self {
            http: https_client(upstream.timeouts.connect)?,
            key,
            secret: upstream.key.as_deref().map(|key| key.trim().to_owned()),
            timeouts: upstream.timeouts,
            errors,
            chat: upstream.base.as_deref().and_then(Chat::below),
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

    /// Sends a request to a path below a base address, such as `/chat/completions`. If there is a
    /// deadline, the answer has to be done by then.
    pub(crate) fn send<'c>(
        &'c self,
        method: Method,
        (base, path): (&str, &str),
        headers: HeaderMap,
        body: Body,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Answer, ApiError>> + use<'c> {
        let sent = self.place(base, path).map(|uri| {
            let mut request = Request::new(body);
            *request.method_mut() = method;
            *request.uri_mut() = uri;
            *request.headers_mut() = headers;
            self.http.request(request)
        });
        // An `async fn` would take the space of what is sent.
        async move { self.answer(sent?, deadline).await }
    }

    /// Waits for the answer to what was sent.
    async fn answer(
        &self,
        sent: ResponseFuture,
        deadline: Option<Instant>,
    ) -> Result<Answer, ApiError> {
        let wait = self.timeouts.first_byte;
        let patience = Instant::now() + wait;
        let until = deadline.map_or(patience, |deadline| deadline.min(patience));
        let response: Response<Incoming> = match timeout_at(until, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                self.errors.add(if error.is_connect() {
                    UpstreamError::Unreachable
                } else {
                    UpstreamError::Broken
                });
                // Where it is concerns whoever runs the gateway, and not its clients.
                let host = "the upstream".to_owned();
                let why = BackendError::unanswered(host, &self.timeouts, &error);
                return Err(ApiError::upstream(why.to_string()).with_fault(FaultKind::Unanswered));
            }
            Err(_) if until < patience => return Err(late()),
            Err(_) => {
                self.errors.add(UpstreamError::Late);
                let message = format!("the upstream did not answer in {} s", wait.as_secs());
                return Err(ApiError::upstream_is_late(message));
            }
        };
        let (parts, body) = response.into_parts();
        if parts.status.is_client_error() || parts.status.is_server_error() {
            self.errors.add(UpstreamError::Status(parts.status));
        }
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body,
            timeouts: self.timeouts,
            deadline,
        })
    }

    /// The address of a path below a base address.
    fn place(&self, base: &str, path: &str) -> Result<Uri, ApiError> {
        if let Some(chat) = &self.chat
            && (base, path) == (chat.base.as_str(), CHAT_PATH)
        {
            return Ok(chat.uri.clone());
        }
        let place = below(base, path).parse();
        place.map_err(|_| ApiError::invalid("the path is none"))
    }

    /// What the upstream says went wrong in something that looks like an answer.
    pub(crate) fn error_in(&self, value: &Value) -> Option<ApiError> {
        let error = value.get("error").filter(|error| !error.is_null())?;
        let said = error.get("message").unwrap_or(error);
        let said = said
            .as_str()
            .map_or_else(|| said.to_string(), str::to_owned);
        let said = self.without_key(&said);
        Some(ApiError::upstream(format!("the upstream says: {said}")))
    }

    /// What the upstream says, without the key that it was shown: it may say it back.
    pub(crate) fn without_key(&self, said: &str) -> String {
        match self.secret.as_deref().filter(|secret| !secret.is_empty()) {
            Some(secret) => said.replace(secret, "[redacted]"),
            None => said.to_owned(),
        }
    }

    /// The same of bytes that may be anything.
    pub(crate) fn bytes_without_key(&self, said: Bytes) -> Bytes {
        let text = String::from_utf8_lossy(&said);
        let hidden = self.without_key(&text);
        if hidden == text { said } else { hidden.into() }
    }

    /// Whether there is a key that must not be said back.
    pub(crate) fn has_key(&self) -> bool {
        self.secret
            .as_deref()
            .is_some_and(|secret| !secret.is_empty())
    }

    /// The same of all texts in a value.
    pub(crate) fn hide_key_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.without_key(text),
            Value::Array(values) => values.iter_mut().for_each(|it| self.hide_key_in(it)),
            Value::Object(members) => members.values_mut().for_each(|it| self.hide_key_in(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl Chat {
    /// Nothing if there is no such place, which whoever goes there is told.
    fn below(base: &str) -> Option<Self> {
        Some(Self {
            base: base.to_owned(),
            uri: below(base, CHAT_PATH).parse().ok()?,
        })
    }
}

impl Answer {
    /// How it is packed, if it is. Nobody asks for that here, and nobody unpacks it.
    pub(crate) fn packing(&self) -> Option<&str> {
        let packing = self.headers.get(header::CONTENT_ENCODING)?;
        let packing = packing.to_str().unwrap_or("something unknown").trim();
        (!packing.is_empty() && packing != "identity").then_some(packing)
    }

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
            let patience = Instant::now() + silence;
            let until = self
                .deadline
                .map_or(patience, |deadline| deadline.min(patience));
            let Ok(frame) = timeout_at(until, self.body.frame()).await else {
                if until < patience {
                    return Err(late());
                }
                let message = format!("the upstream fell silent for {} s", silence.as_secs());
                return Err(ApiError::upstream_is_late(message));
            };
            match frame {
                None => return Ok(None),
                Some(Err(_)) => {
                    let error = ApiError::upstream("the upstream broke off");
                    return Err(error.with_fault(FaultKind::Broken));
                }
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
        // Most answers are short and come in one piece that says so.
        if self.body.is_end_stream() {
            return Ok(first);
        }
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
        let pieces = stream::unfold(Some(self), async |answer| {
            let mut answer = answer?;
            match answer.next_bytes().await {
                Ok(piece) => Some((Ok(Frame::data(piece?)), Some(answer))),
                // What was sent already cannot be unsaid: the client sees that it breaks off.
                Err(error) => Some((Err(error.message.into()), None)),
            }
        });
        BodyExt::boxed_unsync(StreamBody::new(pieces))
    }
}

/// The upstream had all the time that there is.
fn late() -> ApiError {
    ApiError::upstream_is_late("the upstream was not done in the time that a request may take")
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
