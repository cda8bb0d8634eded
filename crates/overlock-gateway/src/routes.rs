//! Routes requests to handlers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, MethodRouter, get, on, post};
use axum::{Extension, Router};
use futures_util::FutureExt;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use overlock_llm::wire::Protocol;
use tokio::time::Instant;

use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::handlers::{
    Handled, Peer, RequestScope, api, chat, count_tokens, events, health, metrics, models,
};
use crate::handlers::{openapi, page, pass_through, runs};
use crate::origin;
use crate::path::is_plain;
use crate::reply::Reply;
use crate::request_guard::{RequestGuard, RequestStart};
use crate::request_stats::RequestStats;
use crate::trace::RequestTrace;

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
const MESSAGES: &str = "/v1/messages";
const COUNT_TOKENS: &str = "/v1/messages/count_tokens";

/// The handlers of a path.
type Methods = MethodRouter<Arc<Gateway>>;

/// The methods of a path, as in the header `Allow`.
const GET: &str = "GET, HEAD, OPTIONS";
const POST: &str = "OPTIONS, POST";
const ANY: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";

/// All routes.
fn routes() -> [(Entry, &'static str, &'static str, Methods); 24] {
    use Entry::{Keyed, Open, Queued};
    const READ: MethodFilter = MethodFilter::GET.or(MethodFilter::HEAD);
    const WRITE: MethodFilter = MethodFilter::PUT
        .or(MethodFilter::PATCH)
        .or(MethodFilter::DELETE);
    let forwarded = |methods: MethodFilter| on(methods.or(WRITE), pass_through::answer);
    let completions = forwarded(READ).post(chat::completions);
    let responses = forwarded(READ).post(chat::responses);
    let messages = forwarded(READ).post(chat::messages);
    let count = forwarded(READ).post(count_tokens::answer);
    let models = forwarded(MethodFilter::POST).get(models::answer);
    let others = forwarded(READ.or(MethodFilter::POST));
    let step = get(runs::step);
    [
        (Queued, ANY, CHAT, completions),
        (Queued, ANY, RESPONSES, responses),
        (Queued, ANY, MESSAGES, messages),
        (Queued, ANY, COUNT_TOKENS, count),
        (Queued, ANY, "/v1/models", models),
        (Queued, ANY, "/v1/{*path}", others),
        (Queued, POST, "/api/cut", post(api::cut)),
        (Queued, POST, "/api/close", post(api::close)),
        (Queued, POST, "/api/repair", post(api::repair)),
        (Queued, POST, "/api/render", post(api::render)),
        (Queued, POST, "/api/stitch", post(api::stitch)),
        (Queued, POST, "/api/fit", post(api::fit)),
        (Queued, POST, "/api/several", post(api::several)),
        (Queued, GET, "/api/runs", get(runs::list)),
        (Queued, GET, "/api/runs/totals", get(runs::totals)),
        (Keyed, GET, "/api/runs/events", get(events::all)),
        (Queued, GET, "/api/runs/{id}", get(runs::show)),
        (Keyed, GET, "/api/runs/{id}/events", get(events::one)),
        (Queued, GET, "/api/runs/{id}/steps/{number}", step),
        (Open, GET, "/", get(page::index)),
        (Open, GET, "/page/{file}", get(page::file)),
        (Open, GET, "/health", get(health::answer)),
        (Keyed, GET, "/metrics", get(metrics::answer)),
        (Keyed, GET, "/openapi.json", get(openapi::answer)),
    ]
}

/// The route name of requests without a route.
const NO_ROUTE: &str = "none";

/// The router of a gateway. Its requests have a [`Peer`] as an extension.
pub(crate) fn router(gateway: &Arc<Gateway>) -> Router {
    let entrance = |entry, route| {
        let gateway = Arc::clone(gateway);
        from_fn_with_state(
            Entrance {
                gateway,
                entry,
                route,
            },
            enter,
        )
    };
    let mut router = Router::new();
    for (entry, allowed, path, methods) in routes() {
        let others = async move |method: Method, uri: Uri| other_method(&method, &uri, allowed);
        router = router.route(path, methods.fallback(others).layer(entrance(entry, path)));
    }
    let not_found = not_found.layer(entrance(Entry::Keyed, NO_ROUTE));
    router.fallback(not_found).with_state(Arc::clone(gateway))
}

/// The entrance of a route.
#[derive(Clone)]
struct Entrance {
    gateway: Arc<Gateway>,
    entry: Entry,
    route: &'static str,
}

/// Admits a request to its handler, and follows it until the end of its response.
async fn enter(
    State(entrance): State<Entrance>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Reply {
    let Entrance {
        gateway,
        entry,
        route,
    } = entrance;
    let api = gateway.settings.upstream.api;
    let is_call = match route {
        CHAT => true,
        RESPONSES => api == Protocol::Responses,
        MESSAGES => api == Protocol::Messages,
        _ => false,
    };
    let is_traced = is_call && request.method() == Method::POST;
    let exporter = gateway.exporter.as_ref().filter(|_| is_traced);
    let trace = exporter.and_then(|it| RequestTrace::begin(it, route, request.headers()));
    let stats = Arc::new(RequestStats::new(trace));
    let start = RequestStart {
        method: request.method().clone(),
        route,
        peer: peer.clone(),
    };
    let mut guard = RequestGuard::new(Arc::clone(&gateway), start, Arc::clone(&stats));
    let handled = async {
        check(&gateway, entry, &request)?;
        let deadline = match entry {
            Entry::Queued => guard.hold(gateway.admission.acquire().await?),
            Entry::Open | Entry::Keyed => Instant::now(),
        };
        request.extensions_mut().insert(RequestScope {
            stats,
            peer,
            deadline,
        });
        Ok(next.run(request).await)
    };
    let handled = AssertUnwindSafe(handled).catch_unwind().await;
    let handled: Handled = handled.unwrap_or_else(|_| Err(ApiError::defect()));
    let protocol = match route {
        MESSAGES | COUNT_TOKENS => Protocol::Messages,
        _ => Protocol::ChatCompletions,
    };
    guard.follow(handled.unwrap_or_else(|error| error.into_reply_in(protocol)))
}

/// Rejects foreign pages, missing keys and ambiguous paths.
fn check(gateway: &Gateway, entry: Entry, request: &Request) -> Result<(), ApiError> {
    let keys = &gateway.settings.keys;
    origin::check(request.headers(), !keys.is_empty())?;
    if entry != Entry::Open {
        keys.check(request.headers())?;
    }
    if is_plain(request.uri().path()) {
        return Ok(());
    }
    let message = "invalid path: it has an empty, `.` or `..` segment, or a wrong escape";
    Err(ApiError::invalid(message).with_code("bad_path"))
}

async fn not_found(uri: Uri) -> ApiError {
    ApiError::unknown_url(uri.path())
}

/// Answers `OPTIONS`, and rejects the methods that a path does not have.
fn other_method(method: &Method, uri: &Uri, allowed: &'static str) -> Reply {
    let mut reply = if method == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        let message = format!("`{}` has no method `{method}`", uri.path());
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let error = ApiError::new(status, "invalid_request_error", message);
        error.with_code("method_not_allowed").into_reply()
    };
    let allowed = HeaderValue::from_static(allowed);
    reply.headers_mut().insert(ALLOW, allowed);
    reply
}

#[cfg(test)]
mod tests;
