//! Sends a request and reads what comes back, with a limit on every wait.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::Events;
use super::error::{BackendError, Phase};
use super::refused_size::RefusedSize;

/// How long a server is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until it accepts a connection.
    pub connect: Duration,
    /// Until it begins its answer with a word of the model. A sign of life is none.
    pub first_byte: Duration,
    /// Until it goes on with its answer by another word.
    pub silence: Duration,
}

impl Default for Timeouts {
    /// Models think for minutes before their first word, but do not pause for minutes after it.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(5),
            silence: Duration::from_mins(2),
        }
    }
}

/// A client that keeps its connections; a clone shares them.
#[derive(Clone, Debug)]
pub struct Http {
    client: HttpsClient<Full<Bytes>>,
    timeouts: Timeouts,
}

/// Where a request goes.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    uri: Uri,
    /// Host and port, for messages: an address may hold a password.
    host: String,
    headers: HeaderMap,
    /// What no message may tell, even if the server does.
    keys: Vec<String>,
}

/// The body of an answer as it arrives.
#[derive(Debug)]
pub(crate) struct Answer {
    headers: HeaderMap,
    body: hyper::body::Incoming,
    host: String,
    /// What was read to see what comes, and is still to be given out.
    peeked: Option<Bytes>,
    /// How long the next word may be waited for, and how much of that is left: bytes that say
    /// nothing do not give it anew.
    patience: Duration,
    left: Duration,
    phase: Phase,
    silence: Duration,
}

/// What an answer turns out to be, whatever it calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Server-sent events.
    Stream,
    /// One JSON document.
    Whole,
}

/// Of an answer that does not come as a stream no more than this is read.
const LONGEST_ANSWER: usize = 256 << 20;

/// Of what a server says about itself no more than this is read.
const LONGEST_INFORMATION: usize = 8 << 20;

/// Of an error's body no more than this is read.
const LONGEST_ERROR: usize = 64 << 10;

/// Asks servers, with TLS or without.
pub type HttpsClient<B> = Client<HttpsConnector<HttpConnector>, B>;

/// A client that waits so long for a connection, and lets go of one that nobody has used for a
/// while. Whoever passes requests on by themselves connects in the same way.
pub fn https_client<B>(wait: Duration) -> Result<HttpsClient<B>, BackendError>
where
    B: Body + Send,
    B::Data: Send,
{
    let mut builder = Client::builder(TokioExecutor::new());
    // Without a timer those that a crowd has left would stay open for ever.
    builder.pool_timer(TokioTimer::new());
    Ok(builder.build(https_connector(wait)?))
}

fn https_connector(wait: Duration) -> Result<HttpsConnector<HttpConnector>, BackendError> {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(wait));
    connector.set_nodelay(true);
    connector.enforce_http(false);
    let builder = HttpsConnectorBuilder::new().with_native_roots();
    let builder = builder.map_err(|error| BackendError::Unreachable {
        host: "any server over TLS".to_owned(),
        reason: error.to_string(),
    })?;
    let builder = builder.https_or_http().enable_http1();
    Ok(builder.wrap_connector(connector))
}

impl Http {
    /// A client with these limits.
    pub fn new(timeouts: Timeouts) -> Result<Self, BackendError> {
        let client = https_client(timeouts.connect)?;
        Ok(Self { client, timeouts })
    }

    /// Posts JSON; an answer that is an error is one here too.
    pub(crate) async fn post(
        &self,
        endpoint: &Endpoint,
        body: Vec<u8>,
    ) -> Result<Answer, BackendError> {
        self.send(Method::POST, endpoint, body).await
    }

    /// Gets JSON that a server has about itself.
    pub(crate) async fn get(&self, endpoint: &Endpoint) -> Result<Value, BackendError> {
        let mut answer = self.send(Method::GET, endpoint, Vec::new()).await?;
        answer.read_json().await
    }

    async fn send(
        &self,
        method: Method,
        endpoint: &Endpoint,
        body: Vec<u8>,
    ) -> Result<Answer, BackendError> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() = endpoint.uri.clone();
        *request.headers_mut() = endpoint.headers.clone();
        let host = endpoint.host.clone();
        // To connect takes a part of it.
        let wait = self.timeouts.first_byte;
        let begun = Instant::now();
        let response = match timeout(wait, self.client.request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(BackendError::unanswered(host, &self.timeouts, &error)),
            Err(_) => {
                return Err(BackendError::TimedOut {
                    host,
                    phase: Phase::FirstByte,
                    after: wait,
                });
            }
        };
        let (parts, body) = response.into_parts();
        let mut answer = Answer {
            headers: parts.headers,
            body,
            host,
            peeked: None,
            patience: wait,
            left: wait.saturating_sub(begun.elapsed()),
            phase: Phase::FirstByte,
            silence: self.timeouts.silence,
        };
        if parts.status.is_success() {
            return Ok(answer);
        }
        let body = answer.read_error().await;
        Err(answer.refusal(parts.status, &body))
    }
}

impl BackendError {
    /// Why a request was not answered that an [`HttpsClient`] with these limits made.
    #[must_use]
    pub fn unanswered(
        host: String,
        timeouts: &Timeouts,
        error: &hyper_util::client::legacy::Error,
    ) -> Self {
        let reason = causes(error);
        if !error.is_connect() {
            return Self::Broken { host, reason };
        }
        if reason.contains("timed out") {
            let (phase, after) = (Phase::Connect, timeouts.connect);
            return Self::TimedOut { host, phase, after };
        }
        if let Some(reason) = reason.strip_prefix("invalid peer certificate: ") {
            let reason = match reason {
                "UnknownIssuer" => "nobody who is trusted on this machine has signed it",
                other => other,
            };
            let reason = reason.to_owned();
            return Self::Certificate { host, reason };
        }
        Self::Unreachable { host, reason }
    }
}

impl Endpoint {
    /// The endpoint at a path under a base address, asked with these headers, in which a key may
    /// stand.
    pub(crate) fn new(
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
            .map_err(|_| wrong("it should look like `http://127.0.0.1:11434/v1`"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(wrong("it must begin with `http://` or `https://`"));
        }
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong(
                "a name or password in it would end up in logs; give the key apart",
            ));
        }
        let mut all = HeaderMap::new();
        all.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        for (name, value) in headers {
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| wrong("the key for it holds characters that no header can carry"))?;
            value.set_sensitive(true);
            all.insert(HeaderName::from_static(name), value);
        }
        Ok(Self {
            host: authority.to_string(),
            uri,
            headers: all,
            keys: key
                .map(str::trim)
                .filter(|key| !key.is_empty())
                .map(str::to_owned)
                .into_iter()
                .collect(),
        })
    }

    /// Asks with these headers too; the content is JSON whatever they say.
    pub(crate) fn add_headers(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            if name != header::CONTENT_TYPE {
                self.headers.append(name, value.clone());
            }
        }
    }

    /// Does not tell this key in errors either, which goes with the headers.
    pub(crate) fn hide(&mut self, key: &str) {
        let key = Some(key.trim()).filter(|key| !key.is_empty());
        self.keys.extend(key.map(str::to_owned));
    }

    /// The same answer, in the errors of which the key is not told: a server may say it back.
    pub(crate) fn guarded(
        &self,
        answer: Result<Events<'static>, BackendError>,
    ) -> Result<Events<'static>, BackendError> {
        if self.keys.is_empty() {
            return answer;
        }
        let keys = self.keys.clone();
        let guard =
            move |error: BackendError| keys.iter().fold(error, |error, key| error.without(key));
        match answer {
            Ok(events) => {
                let guarded = move |event: Result<_, BackendError>| event.map_err(&guard);
                Ok(events.map(guarded).boxed())
            }
            Err(error) => Err(guard(error)),
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

impl Answer {
    /// What comes, by its first byte that is not blank: what it calls itself is not always true.
    pub(crate) async fn shape(&mut self) -> Result<Shape, BackendError> {
        let first = loop {
            let Some(bytes) = self.next_bytes().await? else {
                return Err(self.malformed("there is nothing in it"));
            };
            let bytes = match bytes.strip_prefix("\u{feff}".as_bytes()) {
                Some(rest) => bytes.slice_ref(rest),
                None => bytes,
            };
            if let Some(first) = bytes.trim_ascii_start().first().copied() {
                self.peeked = Some(bytes);
                break first;
            }
        };
        match first {
            b'{' => Ok(Shape::Whole),
            // `data`, `event`, `id`, `retry`, and a comment.
            b'd' | b'e' | b'i' | b'r' | b':' => Ok(Shape::Stream),
            _ => Err(self.malformed("it is neither JSON nor a stream of events")),
        }
    }

    /// What is wrong with an answer that cannot be read, and what it says of itself.
    pub(crate) fn malformed(&self, reason: &str) -> BackendError {
        let mut reason = reason.to_owned();
        for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING] {
            let value = self
                .headers
                .get(&name)
                .and_then(|value| value.to_str().ok());
            if let Some(value) = value {
                let shown: String = value.chars().take(100).collect();
                reason = format!("{reason}, `{name}: {shown}`");
            }
        }
        BackendError::Malformed {
            host: self.host.clone(),
            reason,
        }
    }

    /// Takes note that a word of the model has come, after which the next one is waited for.
    pub(crate) fn has_spoken(&mut self) {
        (self.patience, self.left) = (self.silence, self.silence);
        self.phase = Phase::NextByte;
    }

    /// The next bytes; nothing at the end.
    pub(crate) async fn next_bytes(&mut self) -> Result<Option<Bytes>, BackendError> {
        if let Some(bytes) = self.peeked.take() {
            return Ok(Some(bytes));
        }
        loop {
            // Only waiting counts: who reads may take its time.
            let begun = Instant::now();
            let frame = timeout(self.left, self.body.frame()).await;
            self.left = self.left.saturating_sub(begun.elapsed());
            let Ok(frame) = frame else {
                return Err(BackendError::TimedOut {
                    host: self.host.clone(),
                    phase: self.phase,
                    after: self.patience,
                });
            };
            match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(BackendError::Broken {
                        host: self.host.clone(),
                        reason: causes(&error),
                    });
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

    /// All bytes up to the end of a whole answer.
    pub(crate) async fn read_whole(&mut self) -> Result<Vec<u8>, BackendError> {
        self.read_at_most(LONGEST_ANSWER).await
    }

    /// The JSON that a short whole answer is.
    pub(crate) async fn read_json(&mut self) -> Result<Value, BackendError> {
        let body = self.read_at_most(LONGEST_INFORMATION).await?;
        serde_json::from_slice(&body).map_err(|error| self.malformed(&error.to_string()))
    }

    async fn read_at_most(&mut self, most_bytes: usize) -> Result<Vec<u8>, BackendError> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.next_bytes().await? {
            if !piece.trim_ascii().is_empty() {
                self.has_spoken();
            }
            bytes.extend_from_slice(&piece);
            if bytes.len() > most_bytes {
                return Err(BackendError::TooLong { most_bytes });
            }
        }
        Ok(bytes)
    }

    /// The body of an error, as far as it comes in the time for one silence.
    async fn read_error(&mut self) -> Vec<u8> {
        self.has_spoken();
        let mut bytes = Vec::new();
        while let Ok(Some(piece)) = self.next_bytes().await {
            bytes.extend_from_slice(&piece);
            if bytes.len() > LONGEST_ERROR {
                break;
            }
        }
        bytes
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> BackendError {
        let mut message = error_message(body)
            .unwrap_or_else(|| status.canonical_reason().unwrap_or("an error").to_owned());
        let location = self.headers.get(header::LOCATION);
        if let Some(location) = location.and_then(|value| value.to_str().ok()) {
            let shown: String = without_secrets(location).chars().take(200).collect();
            message = format!("{message} (it refers to `{shown}`)");
        }
        let status = status.as_u16();
        let value = serde_json::from_slice(body).ok();
        let value: Option<Value> = value.filter(|_| matches!(status, 400 | 413 | 422));
        BackendError::Status {
            host: self.host.clone(),
            status,
            message,
            retry_after: retry_after(&self.headers),
            size: value.as_ref().and_then(RefusedSize::read),
        }
    }
}

/// How long a server asks to wait: so many seconds, or until a date. A date is compared with the
/// one that the server gives its answer, so that nobody's clock has to be right.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let asked = text(header::RETRY_AFTER)?.trim();
    if let Ok(seconds) = asked.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    let now = httpdate::parse_http_date(text(header::DATE)?.trim()).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

/// What an error in one of the usual shapes says, or the beginning of any other text.
pub(crate) fn error_message(body: &[u8]) -> Option<String> {
    const SHOWN: usize = 500;
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let error = value
        .as_ref()
        .map(|value| value.get("error").unwrap_or(value));
    let message = error.and_then(|error| {
        let message = error.get("message").unwrap_or(error);
        message.as_str().map(str::to_owned)
    });
    let text = message.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
    let shown: String = text.chars().take(SHOWN).collect();
    (!shown.is_empty()).then_some(shown)
}

/// What the system says, down to the last cause.
fn causes(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// The address of a path below another address. Either may end in a query.
///
/// ```
/// use overlock_model::below;
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

/// An address for a message: without what may stand before its host and after its path.
fn without_secrets(address: &str) -> String {
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

    #[track_caller]
    fn check_wait(asked: &'static str, date: Option<&'static str>, seconds: Option<f64>) {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(asked));
        if let Some(date) = date {
            headers.insert(header::DATE, HeaderValue::from_static(date));
        }
        let wait = seconds.map(Duration::from_secs_f64);
        assert_eq!(retry_after(&headers), wait, "{asked} {date:?}");
    }

    #[test]
    fn a_server_asks_to_wait_in_seconds_or_until_a_date() {
        let date = Some("Mon, 16 Nov 2026 05:59:50 GMT");
        check_wait("7", date, Some(7.0));
        check_wait(" 0.5 ", None, Some(0.5));
        check_wait("Mon, 16 Nov 2026 06:00:20 GMT", date, Some(30.0));
        check_wait("Monday, 16-Nov-26 06:00:20 GMT", date, Some(30.0));
        check_wait("Mon Nov 16 06:00:20 2026", date, Some(30.0));
        check_wait("Mon, 16 Nov 2026 05:00:00 GMT", date, Some(0.0));
    }

    /// What is read of a whole answer of ten bytes.
    async fn read_ten_bytes(most: usize) -> Result<Vec<u8>, BackendError> {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a server");
        let address = listener.local_addr().expect("an address");
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            stream.read_exact(&mut [0])?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n[1, 2, 34]")?;
            // It stays open until the client has read what it wants.
            Ok::<_, std::io::Error>(stream)
        });
        let endpoint = Endpoint::new(&format!("http://{address}"), "/", &[], None)?;
        let http = Http::new(Timeouts::default())?;
        let mut answer = http.post(&endpoint, Vec::new()).await?;
        let read = answer.read_at_most(most).await;
        drop(served.join());
        read
    }

    #[test]
    fn an_answer_that_is_too_long_is_called_so() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let read = |most| runtime.block_on(read_ten_bytes(most));
        assert_eq!(read(10), Ok(b"[1, 2, 34]".to_vec()));
        assert_eq!(read(9), Err(BackendError::TooLong { most_bytes: 9 }));
    }

    #[test]
    fn a_path_comes_before_the_query_of_an_address() {
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

    #[test]
    fn what_cannot_be_read_asks_for_nothing() {
        check_wait("soon", Some("Mon, 16 Nov 2026 05:59:50 GMT"), None);
        check_wait("-5", None, None);
        check_wait("NaN", None, None);
        check_wait("1e300", None, None);
        check_wait("Mon, 16 Nov 2026 06:00:20 GMT", None, None);
        check_wait("Mon, 16 Nov 2026 06:00:20 GMT", Some("today"), None);
    }
}
