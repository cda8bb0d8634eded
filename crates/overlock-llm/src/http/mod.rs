//! The HTTP client for all calls to an upstream.
//!
//! All calls share its connections, timeouts and errors: the first call of a chat request,
//! continuations, forwarded requests and discovery. Dropping a call cancels it and closes its
//! connection.

mod address;
mod answer_object;
mod anthropic;
mod discovery;
mod embeddings;
mod events;
mod openai;
mod peer;
mod response;
mod retrying;
mod server;

pub use address::below;
pub use anthropic::Anthropic;
pub use discovery::{Discover, Server, bearer_headers};
pub use embeddings::Embeddings;
pub use openai::OpenAi;
pub use peer::Peer;
pub use response::{ErrorResponse, Response};
pub use retrying::{Retrying, retried};
pub use server::{Discovery, LearntWindow, Product, ServedModel, ServerInfo};

#[cfg(feature = "testing")]
pub(crate) use discovery::PROBE_QUESTION;

use std::borrow::Borrow;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_rustls::rustls::ClientConfig;

use crate::backend::{BackendError, Phase};
use crate::complete::Deadline;
use address::Endpoint;

/// The timeouts of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection is open.
    pub connect: Duration,
    /// Until the first output of the model. Keep-alive messages do not count.
    pub first_byte: Duration,
    /// Between outputs of the model.
    pub silence: Duration,
}

impl Default for Timeouts {
    /// Models may think for minutes before their first output, but do not pause for minutes after
    /// it.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(5),
            silence: Duration::from_mins(2),
        }
    }
}

/// An error while a body was streamed.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request or a response, in one piece or streamed.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// A client with a connection pool; clones share it.
#[derive(Clone, Debug)]
pub struct Http {
    client: Client<HttpsConnector<HttpConnector>, Body>,
    timeouts: Timeouts,
}

/// A failed call.
#[derive(Clone, Debug)]
pub struct CallFailure {
    /// The error.
    pub error: BackendError,
    /// The error response, if the server sent one.
    pub refused: Option<Box<ErrorResponse>>,
}

impl From<BackendError> for CallFailure {
    fn from(error: BackendError) -> Self {
        let refused = None;
        Self { error, refused }
    }
}

impl Borrow<BackendError> for CallFailure {
    fn borrow(&self) -> &BackendError {
        &self.error
    }
}

impl Http {
    /// A client with these timeouts.
    pub fn new(timeouts: Timeouts) -> Result<Self, BackendError> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(timeouts.connect));
        connector.set_nodelay(true);
        connector.enforce_http(false);
        let config = tls_config().map_err(|error| BackendError::Unreachable {
            host: "any server over TLS".to_owned(),
            reason: error.to_string(),
        })?;
        let https = HttpsConnectorBuilder::new().with_tls_config(config);
        let https = https.https_or_http().enable_http1();
        let mut builder = Client::builder(TokioExecutor::new());
        // Without a timer, idle connections would stay open forever.
        builder.pool_timer(TokioTimer::new());
        let client = builder.build(https.wrap_connector(connector));
        Ok(Self { client, timeouts })
    }

    /// Sends a request once and returns the response with any status. With a deadline, the response
    /// must end by then.
    pub fn send<'a>(
        &'a self,
        peer: &'a Arc<Peer>,
        request: Request<Body>,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Response, BackendError>> + use<'a> {
        let sent = self.client.request(request);
        // An `async fn` would keep the request in its future while it waits.
        async move {
            let response = self.response(peer, sent, deadline).await;
            response.map_err(|error| peer.failed(error))
        }
    }

    async fn response(
        &self,
        peer: &Arc<Peer>,
        sent: ResponseFuture,
        deadline: Option<Instant>,
    ) -> Result<Response, BackendError> {
        // The timeout includes the time to connect.
        let wait = self.timeouts.first_byte;
        let begun = Instant::now();
        match timeout_at(earliest(begun + wait, deadline), sent).await {
            Ok(Ok(response)) => {
                let left = wait.saturating_sub(begun.elapsed());
                Ok(Response::new(
                    response,
                    peer,
                    &self.timeouts,
                    left,
                    deadline,
                ))
            }
            Ok(Err(error)) => Err(self.unanswered(peer, &error)),
            Err(_) => Err(peer.timed_out(Phase::FirstByte, begun + wait, wait, deadline)),
        }
    }

    /// Sends a request once. Error responses become errors.
    pub fn call<'a>(
        &'a self,
        peer: &'a Arc<Peer>,
        request: Request<Body>,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Response, CallFailure>> + use<'a> {
        let sent = self.send(peer, request, deadline);
        async move {
            let response = sent.await?;
            if response.status.is_success() {
                return Ok(response);
            }
            // Boxed to keep the future of every call small.
            Err(Box::pin(response.into_failure()).await)
        }
    }

    /// Posts JSON, or sends a GET request if it is empty.
    async fn ask(&self, endpoint: &Endpoint, json: Vec<u8>) -> Result<Response, BackendError> {
        let request = endpoint.request(json);
        let answered = self.call(&endpoint.peer, request, None).await;
        answered.map_err(|failure| failure.error)
    }

    /// The error of a request without a response.
    fn unanswered(&self, peer: &Peer, error: &hyper_util::client::legacy::Error) -> BackendError {
        let (host, reason) = (peer.name().to_owned(), causes(error));
        if !error.is_connect() {
            return BackendError::Broken { host, reason };
        }
        if reason.contains("timed out") {
            let (phase, after) = (Phase::Connect, self.timeouts.connect);
            return BackendError::TimedOut { host, phase, after };
        }
        if let Some(reason) = reason.strip_prefix("invalid peer certificate: ") {
            let reason = match reason {
                "UnknownIssuer" => "it is not signed by an authority that this machine trusts",
                other => other,
            };
            let reason = reason.to_owned();
            return BackendError::Certificate { host, reason };
        }
        BackendError::Unreachable { host, reason }
    }
}

impl Deadline for Instant {
    fn has_passed(&self) -> bool {
        Self::now() >= *self
    }

    fn wait(&self) -> BoxFuture<'_, ()> {
        sleep_until(*self).boxed()
    }
}

/// A body in one piece.
pub fn full_body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

fn earliest(until: Instant, deadline: Option<Instant>) -> Instant {
    deadline.map_or(until, |deadline| deadline.min(until))
}

/// Trusts the system's certificates, which are read once per process.
fn tls_config() -> io::Result<ClientConfig> {
    static CONFIG: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let config = ClientConfig::builder().with_native_roots()?;
    Ok(CONFIG.get_or_init(|| config.with_no_client_auth()).clone())
}

/// The message of the root cause.
fn causes(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
