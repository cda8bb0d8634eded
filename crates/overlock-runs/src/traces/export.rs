//! Exports spans to a collector, in batches over HTTP.
//!
//! Recording a span never blocks: it goes into a queue, and is dropped and counted if the queue is
//! full. A batch that the collector does not accept in time is dropped too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, mem};

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri};
use overlock_llm::{BackendError, Http, Peer, Timeouts, full_body};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::span::{Attributes, Span};

/// A trace collector that accepts OTLP over HTTP.
#[derive(Clone)]
pub struct Traces {
    /// The address that spans are sent to, such as `http://127.0.0.1:4318/v1/traces`.
    pub url: String,
    /// The headers of every batch, such as a key.
    pub headers: Vec<(String, String)>,
    /// The service name.
    pub service: String,
}

impl Traces {
    /// A collector that needs no headers.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            service: "overlock".to_owned(),
        }
    }
}

impl fmt::Debug for Traces {
    /// Omits the values of headers, which may be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("Traces")
            .field("url", &self.url)
            .field("headers", &names)
            .field("service", &self.service)
            .finish()
    }
}

/// What happened to a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanEnd {
    /// The collector accepted it.
    Exported,
    /// The collector did not accept it.
    Failed,
    /// The queue was full.
    Dropped,
}

/// Queues spans and sends them to the collector.
pub struct Exporter {
    queue: Mutex<Queue>,
    /// Wakes the sender: a span arrived, or the queue was closed.
    news: Notify,
    /// Wakes the sender early: a full batch is waiting.
    is_enough: Notify,
    http: Http,
    collector: Arc<Peer>,
    url: Uri,
    headers: HeaderMap,
    service: String,
    counted: Box<dyn Fn(SpanEnd, u64) + Send + Sync>,
}

#[derive(Default)]
struct Queue {
    spans: Vec<Span>,
    is_closed: bool,
}

/// The maximum number of queued spans.
const WAITING: usize = 4096;

/// The maximum number of spans in a batch.
const BATCH: usize = 512;

/// How long a batch waits for more spans.
const PAUSE: Duration = Duration::from_secs(1);

/// The timeouts of the connection and of a batch.
const CONNECT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum length of a collector's response in bytes.
const LONGEST_ANSWER: usize = 64 << 10;

/// How long the last spans have when the program stops.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The address is not valid. It may contain a key, so the error does not show it.
    #[error(
        "invalid trace collector address: it must begin with `http://` or `https://` and a host"
    )]
    Address,
    /// A header is not valid. Its value may be secret, so the error does not show it.
    #[error("invalid header `{name}` for the trace collector")]
    Header {
        /// Its name.
        name: String,
    },
    /// The HTTP client cannot be set up.
    #[error(transparent)]
    Client(#[from] BackendError),
}

impl Exporter {
    /// `counted` is called with the number of spans that ended in each way.
    pub fn new(
        traces: &Traces,
        counted: impl Fn(SpanEnd, u64) + Send + Sync + 'static,
    ) -> Result<Self, TracesError> {
        let url: Option<Uri> = traces.url.trim().parse().ok();
        let is_web =
            |url: &Uri| matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some();
        let url = url.filter(is_web).ok_or(TracesError::Address)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &traces.headers {
            let header = HeaderName::try_from(name).ok().zip(value.parse().ok());
            let Some((header, mut value)) = header else {
                return Err(TracesError::Header { name: name.clone() });
            };
            HeaderValue::set_sensitive(&mut value, true);
            headers.insert(header, value);
        }
        let own = concat!("overlock/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(own));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self {
            queue: Mutex::default(),
            news: Notify::new(),
            is_enough: Notify::new(),
            http: Http::new(Timeouts {
                connect: CONNECT,
                first_byte: PATIENCE,
                silence: PATIENCE,
            })?,
            collector: Arc::new(Peer::new("the collector of traces")),
            url,
            headers,
            service: traces.service.clone(),
            counted: Box::new(counted),
        })
    }

    /// Queues a span if there is room.
    pub fn take(&self, span: Span) {
        let mut queue = self.queue();
        if queue.spans.len() >= WAITING {
            drop(queue);
            (self.counted)(SpanEnd::Dropped, 1);
            return;
        }
        queue.spans.push(span);
        let count = queue.spans.len();
        drop(queue);
        self.news.notify_one();
        if count >= BATCH {
            self.is_enough.notify_one();
        }
    }

    /// Sends spans until the queue is closed and empty.
    pub async fn run(&self) {
        loop {
            let (batch, is_closed) = {
                let mut queue = self.queue();
                let count = queue.spans.len().min(BATCH);
                let rest = queue.spans.split_off(count);
                (mem::replace(&mut queue.spans, rest), queue.is_closed)
            };
            if !batch.is_empty() {
                self.send(batch).await;
            } else if is_closed {
                return;
            } else {
                self.news.notified().await;
                // Waits briefly to fill the batch.
                if !self.queue().is_closed {
                    let _ = timeout(PAUSE, self.is_enough.notified()).await;
                }
            }
        }
    }

    /// Closes the queue.
    pub fn close(&self) {
        self.queue().is_closed = true;
        self.news.notify_one();
        self.is_enough.notify_one();
    }

    async fn send(&self, batch: Vec<Span>) {
        let count = batch.len() as u64;
        let mut request = Request::new(full_body(self.written(batch)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        let deadline = Some(Instant::now() + PATIENCE);
        let end = match self.http.call(&self.collector, request, deadline).await {
            Ok(mut answer) => {
                // Reading the whole response lets the connection be reused.
                let _ = answer.read_whole(LONGEST_ANSWER).await;
                SpanEnd::Exported
            }
            Err(_) => SpanEnd::Failed,
        };
        (self.counted)(end, count);
    }

    fn written(&self, batch: Vec<Span>) -> String {
        let mut resource = Attributes::default();
        resource.text("service.name", &self.service);
        resource.text("service.version", env!("CARGO_PKG_VERSION"));
        let scope = json!({ "name": "overlock-gateway", "version": env!("CARGO_PKG_VERSION") });
        let spans: Vec<Value> = batch.into_iter().map(Span::into_json).collect();
        json!({ "resourceSpans": [{
            "resource": { "attributes": resource.into_json() },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }] })
        .to_string()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::context::TraceContext;
    use super::super::span::{Kind, Moment};
    use super::*;

    fn span() -> Span {
        Span {
            context: TraceContext::new_trace(),
            parent: None,
            name: "chat".to_owned(),
            kind: Kind::Server,
            begun: Moment::now(),
            took: Duration::ZERO,
            attributes: Attributes::default(),
            has_failed: false,
        }
    }

    #[test]
    fn spans_beyond_the_queue_are_dropped_and_counted() {
        let dropped: Arc<Mutex<u64>> = Arc::default();
        let count = Arc::clone(&dropped);
        let traces = Traces::new("http://127.0.0.1:1/v1/traces");
        let exporter = Exporter::new(&traces, move |end, spans| {
            assert_eq!(end, SpanEnd::Dropped);
            *count.lock().expect("no panic") += spans;
        })
        .expect("an address");
        for _ in 0..WAITING + 3 {
            exporter.take(span());
        }
        assert_eq!(exporter.queue().spans.len(), WAITING);
        assert_eq!(*dropped.lock().expect("no panic"), 3);
    }

    #[test]
    fn invalid_settings_fail_at_once_without_showing_secrets() {
        for url in [
            "",
            "127.0.0.1:4318",
            "ftp://127.0.0.1/",
            "http://",
            "/v1/traces",
        ] {
            let made = Exporter::new(&Traces::new(url), |_, _| {});
            assert!(matches!(made, Err(TracesError::Address)), "{url}");
        }
        for (name, value) in [("x key", "secret"), ("x-key", "sec\nret")] {
            let headers = vec![(name.to_owned(), value.to_owned())];
            let traces = Traces {
                headers,
                ..Traces::new("http://127.0.0.1:4318/v1/traces")
            };
            assert!(!format!("{traces:?}").contains(value));
            let error = Exporter::new(&traces, |_, _| {}).err().expect(name);
            assert!(!error.to_string().contains(value), "{error}");
        }
    }
}
