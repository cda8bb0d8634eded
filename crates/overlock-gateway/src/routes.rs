//! Routes requests to handlers.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, BoxFuture};
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use overlock_llm::wire::Protocol;
use tokio::time::Instant;

use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::handlers::{self, Call, Handled, api};
use crate::origin;
use crate::path::is_plain;
use crate::reply::{Reply, whole};
use crate::request_guard::{RequestGuard, RequestStart};
use crate::request_stats::RequestStats;
use crate::trace::RequestTrace;

/// The client of a connection.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) hang_up: AbortHandle,
}

/// One row of the table.
struct Route {
    entry: Entry,
    methods: &'static [Method],
    /// `{name}` matches one segment, `{*path}` all that follow.
    path: &'static str,
    handler: fn(Call) -> BoxFuture<'static, Handled>,
}

/// What a request needs to be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// Nothing.
    Open,
    /// A valid key, if the gateway has keys.
    Keyed,
    /// A valid key and a concurrency permit.
    Queued,
}

/// The routes of model calls.
const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

const GET: &[Method] = &[Method::GET];
const POST: &[Method] = &[Method::POST];
const ANY: &[Method] = &[
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
];

macro_rules! routes {
    ($($entry:ident $methods:ident $path:literal => $handler:path,)*) => {
        &[$(Route {
            entry: Entry::$entry,
            methods: $methods,
            path: $path,
            handler: |call| $handler(call).boxed(),
        },)*]
    };
}

/// All routes. The first that matches the path and the method is used.
const ROUTES: &[Route] = routes! {
    Queued POST "/v1/chat/completions" => handlers::chat::completions,
    Queued POST "/v1/responses"        => handlers::chat::responses,
    Queued GET  "/v1/models"           => handlers::models::answer,
    Queued ANY  "/v1/{*path}"          => handlers::pass_through::answer,

    Queued POST "/api/cut"             => api::cut,
    Queued POST "/api/close"           => api::close,
    Queued POST "/api/repair"          => api::repair,
    Queued POST "/api/render"          => api::render,
    Queued POST "/api/stitch"          => api::stitch,
    Queued POST "/api/fit"             => api::fit,
    Queued POST "/api/several"         => api::several,
    Queued GET  "/api/runs"            => handlers::runs::list,
    Queued GET  "/api/runs/totals"     => handlers::runs::totals,
    Keyed  GET  "/api/runs/events"     => handlers::events::all,
    Queued GET  "/api/runs/{id}"       => handlers::runs::show,
    Keyed  GET  "/api/runs/{id}/events" => handlers::events::one,
    Queued GET  "/api/runs/{id}/steps/{number}" => handlers::runs::step,

    Open   GET  "/"                    => handlers::page::index,
    Open   GET  "/page/{file}"         => handlers::page::file,
    Open   GET  "/health"              => handlers::health::answer,
    Keyed  GET  "/metrics"             => handlers::metrics::answer,
    Keyed  GET  "/openapi.json"        => handlers::openapi::answer,
};

/// The route name of requests without a route.
const NO_ROUTE: &str = "none";

/// Answers a request; errors become replies.
pub(crate) async fn answer(gateway: Arc<Gateway>, request: Request<Incoming>, peer: Peer) -> Reply {
    let target = Target::find(request.method(), request.uri().path());
    let start = RequestStart {
        method: request.method().clone(),
        route: target.name(),
        client: peer.address,
        hang_up: peer.hang_up.clone(),
    };
    let exporter = gateway.exporter.as_ref().filter(|_| {
        let api = gateway.settings.upstream.api;
        target.is_answered(api)
    });
    let trace = exporter
        .and_then(|exporter| RequestTrace::begin(exporter, target.name(), request.headers()));
    let stats = Arc::new(RequestStats::new(trace));
    let mut guard = RequestGuard::new(Arc::clone(&gateway), &start, Arc::clone(&stats));
    let call = Call {
        gateway,
        request,
        stats,
        hang_up: peer.hang_up,
        deadline: Instant::now(),
    };
    let handled = without_panic(target.handle(call, &mut guard)).await;
    guard.follow(handled.unwrap_or_else(ApiError::into_reply))
}

/// Turns a panic of a handler into an error reply.
fn without_panic(handling: impl Future<Output = Handled>) -> impl Future<Output = Handled> {
    // An `async fn` would need space for the inner future twice.
    let handled = AssertUnwindSafe(handling).catch_unwind();
    handled.map(|handled| handled.unwrap_or_else(|_| Err(ApiError::defect())))
}

/// The route of a request, or why there is none.
enum Target {
    Route(&'static Route),
    /// An `OPTIONS` request for a path with these methods.
    Options(&'static str, Vec<&'static Method>),
    /// The path has only these other methods.
    OtherMethod(&'static str, Vec<&'static Method>),
    NotFound,
    /// The path is not plain.
    BadPath,
}

impl Target {
    fn find(method: &Method, path: &str) -> Self {
        // The paths in the table are plain.
        let is_in_table = ROUTES.iter().any(|route| route.path == path);
        if !is_in_table && !is_plain(path) {
            return Self::BadPath;
        }
        let mut matching = ROUTES
            .iter()
            .filter(|route| matches(route.path, path))
            .peekable();
        let Some(name) = matching.peek().map(|route| route.path) else {
            return Self::NotFound;
        };
        let mut allowed = Vec::new();
        for route in matching {
            // `HEAD` is allowed wherever `GET` is.
            let is_head = route.methods == GET && method == Method::HEAD;
            if route.methods.contains(method) || is_head {
                return Self::Route(route);
            }
            allowed.extend(route.methods);
        }
        if method == Method::OPTIONS {
            Self::Options(name, allowed)
        } else {
            Self::OtherMethod(name, allowed)
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Route(route) => route.path,
            Self::Options(name, _) | Self::OtherMethod(name, _) => name,
            Self::NotFound | Self::BadPath => NO_ROUTE,
        }
    }

    /// Whether the gateway answers the request itself, with calls to an upstream of this protocol.
    fn is_answered(&self, api: Protocol) -> bool {
        let name = self.name();
        let is_route = matches!(self, Self::Route(route) if route.methods == POST);
        is_route && (name == CHAT || name == RESPONSES && api == Protocol::Responses)
    }

    async fn handle(self, mut call: Call, guard: &mut RequestGuard) -> Handled {
        let entry = match &self {
            Self::Route(route) => route.entry,
            _ => Entry::Keyed,
        };
        let keys = &call.gateway.settings.keys;
        origin::check(call.request.headers(), !keys.is_empty())?;
        if entry != Entry::Open
            && let Err(error) = keys.check(call.request.headers())
        {
            let mut reply = error.into_reply();
            let scheme = HeaderValue::from_static("Bearer");
            reply.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            return Ok(reply);
        }
        if entry == Entry::Queued {
            call.deadline = guard.hold(call.gateway.admission.acquire().await?);
        }
        let (method, path) = (call.request.method(), call.request.uri().path());
        match self {
            Self::Route(route) => (route.handler)(call).await,
            Self::Options(_, allowed) => {
                let mut reply = Response::new(whole(""));
                *reply.status_mut() = StatusCode::NO_CONTENT;
                allow(&mut reply, &allowed);
                Ok(reply)
            }
            Self::OtherMethod(_, allowed) => {
                let message = format!("`{path}` has no method `{method}`");
                let error = ApiError::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "invalid_request_error",
                    message,
                );
                let mut reply = error.with_code("method_not_allowed").into_reply();
                allow(&mut reply, &allowed);
                Ok(reply)
            }
            Self::NotFound => Err(ApiError::new(
                StatusCode::NOT_FOUND,
                "invalid_request_error",
                format!("not found: `{path}`"),
            )
            .with_code("unknown_url")),
            Self::BadPath => Err(ApiError::invalid(
                "invalid path: it has an empty, `.` or `..` segment, or a wrong escape",
            )
            .with_code("bad_path")),
        }
    }
}

/// Whether a path matches a pattern.
fn matches(pattern: &str, path: &str) -> bool {
    if pattern == path {
        return true;
    }
    let mut segments = path.split('/');
    for part in pattern.split('/') {
        let Some(segment) = segments.next() else {
            return false;
        };
        if part.starts_with("{*") {
            return !segment.is_empty();
        }
        let is_any = part.starts_with('{') && !segment.is_empty();
        if part != segment && !is_any {
            return false;
        }
    }
    segments.next().is_none()
}

fn allow(reply: &mut Reply, methods: &[&'static Method]) {
    let mut names: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
    if names.contains(&"GET") {
        names.push("HEAD");
    }
    names.push("OPTIONS");
    names.sort_unstable();
    names.dedup();
    let names = HeaderValue::from_str(&names.join(", "));
    reply
        .headers_mut()
        .insert(ALLOW, names.expect("method names are ASCII"));
}

#[cfg(test)]
mod tests;
