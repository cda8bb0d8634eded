//! Follows a request to its very end, which is that of its body.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::AbortHandle;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::{Method, StatusCode};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::admission::ConcurrencyPermit;
use crate::error::ErrorName;
use crate::gateway::Gateway;
use crate::log::{LogEntry, method_name, now};
use crate::record::RUN;
use crate::reply::{Body, BodyError, Reply};
use crate::request_stats::RequestStats;
use crate::trace::Done;

/// A request that is worked on. Whatever becomes of it is told when this is dropped.
pub(crate) struct RequestGuard {
    gateway: Arc<Gateway>,
    stats: Arc<RequestStats>,
    method: &'static str,
    route: &'static str,
    client: SocketAddr,
    begun: Instant,
    status: Option<StatusCode>,
    run: Option<String>,
    error: Option<ErrorName>,
    is_done: bool,
    place: Option<ConcurrencyPermit>,
    /// When the place has to be free again.
    deadline: Option<Instant>,
    hang_up: AbortHandle,
    cut_off: Option<CutOff>,
}

/// What there is to know of a request when it begins.
pub(crate) struct RequestStart {
    pub(crate) method: Method,
    pub(crate) route: &'static str,
    pub(crate) client: SocketAddr,
    /// Ends the connection.
    pub(crate) hang_up: AbortHandle,
}

/// The status of a request whose client did not wait for one.
const CLIENT_LEFT: u16 = 499;

impl RequestGuard {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        begun: &RequestStart,
        stats: Arc<RequestStats>,
    ) -> Self {
        Self {
            gateway,
            stats,
            method: method_name(&begun.method),
            route: begun.route,
            client: begun.client,
            begun: Instant::now(),
            status: None,
            run: None,
            error: None,
            // Nobody reads a body that was not asked for.
            is_done: begun.method == Method::HEAD,
            place: None,
            deadline: None,
            hang_up: begun.hang_up.clone(),
            cut_off: None,
        }
    }

    /// It has a place until it is done; when it has to be.
    pub(crate) fn hold(&mut self, place: ConcurrencyPermit) -> Instant {
        let deadline = Instant::now() + self.gateway.settings.limits.run_time;
        self.place = Some(place);
        self.deadline = Some(deadline);
        deadline
    }

    /// Goes on until the body of the reply is done.
    pub(crate) fn follow(mut self, reply: Reply) -> Reply {
        self.status = Some(reply.status());
        self.error = reply.extensions().get().copied();
        let run = reply.headers().get(&RUN);
        self.run = run.and_then(|run| Some(run.to_str().ok()?.to_owned()));
        // A body that is there already is taken at once, however slowly the client reads it.
        let is_there = reply.body().size_hint().exact().is_some();
        let deadline = self.deadline.filter(|_| !is_there);
        self.cut_off = deadline.map(|deadline| CutOff::at(deadline, self.hang_up.clone()));
        reply.map(|body| {
            GuardedBody {
                body,
                watch: Some(self),
            }
            .boxed_unsync()
        })
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        drop(self.place.take());
        drop(self.cut_off.take());
        let took = self.begun.elapsed();
        let status = self.status.map_or(CLIENT_LEFT, |status| status.as_u16());
        let noted = self.stats.take();
        self.gateway
            .metrics
            .request(self.route, status, took, &noted);
        if let Some(trace) = self.stats.trace() {
            trace.done(&Done {
                status,
                noted: &noted,
                run: self.run.as_deref(),
                error: self.error.map(|ErrorName(name)| name),
                left: !self.is_done,
            });
        }
        let Some(log) = &self.gateway.log else {
            return;
        };
        log(&LogEntry {
            at: now(),
            method: self.method,
            route: self.route,
            status,
            milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            input_tokens: noted.usage.input,
            output_tokens: noted.usage.output,
            continuations: noted.continued.calls,
            model: noted.model,
            outcome: noted.outcome,
            error: noted.error.or(self.error.map(|ErrorName(name)| name)),
            run: self.run.take(),
            left: !self.is_done,
            client: self.client,
        });
    }
}

/// How long after its deadline a request has to report that it is late.
const LAST_EVENT: Duration = Duration::from_secs(1);

/// Ends the connection at a deadline, unless this is dropped before.
///
/// A body ends by itself at its deadline and says so, but only while it is polled. It is not while
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

/// A body, and the request that it is the end of.
struct GuardedBody {
    body: Body,
    watch: Option<RequestGuard>,
}

impl GuardedBody {
    /// It is done as soon as there is no more to come, whether or not anybody asks again.
    fn look(&mut self) {
        if self.body.is_end_stream()
            && let Some(mut watch) = self.watch.take()
        {
            watch.is_done = true;
        }
    }
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match frame {
            None => {
                if let Some(mut watch) = self.watch.take() {
                    watch.is_done = true;
                }
            }
            Some(Ok(_)) => self.look(),
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
        // An empty body is never asked for.
        self.look();
    }
}
