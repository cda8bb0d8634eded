//! Follows a request until the end of its response body, then records metrics, trace and the log line.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::AbortHandle;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::{Method, StatusCode};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::admission::ConcurrencyPermit;
use crate::error::ErrorName;
use crate::gateway::Gateway;
use crate::handlers::Peer;
use crate::record::RUN;
use crate::reply::{Body, Reply};
use crate::request_stats::RequestStats;
use crate::trace::Done;

/// A request in progress. Dropping it records how it ended.
pub(crate) struct RequestGuard {
    gateway: Arc<Gateway>,
    stats: Arc<RequestStats>,
    method: Method,
    route: &'static str,
    peer: Peer,
    begun: Instant,
    status: Option<StatusCode>,
    run: Option<String>,
    error: Option<ErrorName>,
    is_done: bool,
    permit: Option<ConcurrencyPermit>,
    /// When the permit has to be released.
    deadline: Option<Instant>,
    cut_off: Option<CutOff>,
}

/// The properties of a request at its start.
pub(crate) struct RequestStart {
    pub(crate) method: Method,
    pub(crate) route: &'static str,
    pub(crate) peer: Peer,
}

/// The status of a request whose client disconnected before the response.
const CLIENT_LEFT: u16 = 499;

impl RequestGuard {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        start: RequestStart,
        stats: Arc<RequestStats>,
    ) -> Self {
        Self {
            gateway,
            stats,
            route: start.route,
            peer: start.peer,
            begun: Instant::now(),
            status: None,
            run: None,
            error: None,
            // The body of a HEAD request is never read.
            is_done: start.method == Method::HEAD,
            method: start.method,
            permit: None,
            deadline: None,
            cut_off: None,
        }
    }

    /// Holds a permit until the end of the request, and returns its deadline.
    pub(crate) fn hold(&mut self, permit: ConcurrencyPermit) -> Instant {
        let deadline = Instant::now() + self.gateway.settings.limits.run_time;
        self.permit = Some(permit);
        self.deadline = Some(deadline);
        deadline
    }

    /// Attaches this to the body of the reply.
    pub(crate) fn follow(mut self, reply: Reply) -> Reply {
        self.status = Some(reply.status());
        self.error = reply.extensions().get().copied();
        let run = reply.headers().get(&RUN);
        self.run = run.and_then(|run| Some(run.to_str().ok()?.to_owned()));
        // A body that is complete already has no deadline, however slowly the client reads it.
        let is_complete = reply.body().size_hint().exact().is_some();
        let deadline = self.deadline.filter(|_| !is_complete);
        self.cut_off = deadline.map(|deadline| CutOff::at(deadline, self.peer.hang_up.clone()));
        reply.map(|body| {
            Body::new(GuardedBody {
                body,
                guard: Some(self),
            })
        })
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        drop(self.permit.take());
        drop(self.cut_off.take());
        let took = self.begun.elapsed();
        let status = self.status.map_or(CLIENT_LEFT, |status| status.as_u16());
        let totals = self.stats.take();
        self.gateway
            .metrics
            .request(self.route, status, took, &totals);
        if let Some(trace) = self.stats.trace() {
            trace.done(&Done {
                status,
                totals: &totals,
                run: self.run.as_deref(),
                error: self.error.map(|ErrorName(name)| name),
                left: !self.is_done,
            });
        }
        // The model is the only text of the client, shortened and reduced to ASCII.
        tracing::info!(
            method = method_name(&self.method),
            route = self.route,
            status,
            milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            input_tokens = totals.usage.input,
            output_tokens = totals.usage.output,
            continuations = totals.continued.calls,
            model = totals.model,
            outcome = totals.outcome,
            error = totals.error.or(self.error.map(|ErrorName(name)| name)),
            run = self.run,
            left = !self.is_done,
            client = %self.peer.address,
        );
    }
}

/// The name of a known method; any other is text of the client and becomes `OTHER`.
fn method_name(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::OPTIONS => method.as_str(),
        _ => "OTHER",
    }
}

/// The time after its deadline for a request to report the timeout.
const LAST_EVENT: Duration = Duration::from_secs(1);

/// Closes the connection at a deadline, unless this is dropped before.
///
/// A body ends at its deadline with an error, but only while it is polled, and it is not polled while
/// the client does not read.
struct CutOff(JoinHandle<()>);

impl CutOff {
    fn at(deadline: Instant, hang_up: AbortHandle) -> Self {
        Self(tokio::spawn(async move {
            sleep_until(deadline + LAST_EVENT).await;
            hang_up.abort();
        }))
    }
}

impl Drop for CutOff {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A response body with the guard of its request.
struct GuardedBody {
    body: Body,
    guard: Option<RequestGuard>,
}

impl GuardedBody {
    /// Marks the request as done at the end of the body, even if the body is not polled again.
    fn check_end(&mut self) {
        if self.body.is_end_stream()
            && let Some(mut guard) = self.guard.take()
        {
            guard.is_done = true;
        }
    }
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match frame {
            None => {
                if let Some(mut guard) = self.guard.take() {
                    guard.is_done = true;
                }
            }
            Some(Ok(_)) => self.check_end(),
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for GuardedBody {
    fn drop(&mut self) {
        // An empty body is never polled.
        self.check_end();
    }
}
