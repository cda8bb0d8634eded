//! `POST /v1/chat/completions`, `POST /v1/responses` and `POST /v1/messages`: fit the request into the
//! window and complete the answer.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use overlock_llm::wire::Protocol;
use tokio::time::timeout_at;

use crate::body::{BodyFault, read_bytes};
use crate::chat::{self, IncomingRequest};
use crate::gateway::Gateway;
use crate::handlers::{Handled, RequestScope, pass_through};
use crate::offload;
use crate::reply::Reply;

/// A chat completions request.
pub(crate) fn completions(
    State(gateway): State<Arc<Gateway>>,
    Extension(scope): Extension<RequestScope>,
    request: Request,
) -> impl Future<Output = Handled> {
    answer(gateway, scope, request, Protocol::ChatCompletions)
}

/// A Responses request.
pub(crate) async fn responses(
    State(gateway): State<Arc<Gateway>>,
    Extension(scope): Extension<RequestScope>,
    request: Request,
) -> Handled {
    answer_or_forward(gateway, scope, request, Protocol::Responses).await
}

/// A Messages request. Its errors are those of Messages.
pub(crate) async fn messages(
    State(gateway): State<Arc<Gateway>>,
    Extension(scope): Extension<RequestScope>,
    request: Request,
) -> Reply {
    let protocol = Protocol::Messages;
    let answered = answer_or_forward(gateway, scope, request, protocol).await;
    answered.unwrap_or_else(|error| error.into_reply_in(protocol))
}

/// Forwards a request unchanged to an upstream that is not set to speak its protocol.
async fn answer_or_forward(
    gateway: Arc<Gateway>,
    scope: RequestScope,
    request: Request,
    protocol: Protocol,
) -> Handled {
    if gateway.settings.upstream.api != protocol {
        let forwarded = pass_through::answer(State(gateway), Extension(scope), request);
        return Box::pin(forwarded).await;
    }
    answer(gateway, scope, request, protocol).await
}

fn answer(
    gateway: Arc<Gateway>,
    scope: RequestScope,
    request: Request,
    protocol: Protocol,
) -> impl Future<Output = Handled> {
    let RequestScope {
        stats, deadline, ..
    } = scope;
    // Taken apart outside of the future, so that the future holds only what it needs.
    let query = request.uri().query().map(str::to_owned);
    let (head, body) = request.into_parts();
    let headers = head.headers;
    async move {
        let body = read_bytes(body, &gateway.settings.limits);
        let text = timeout_at(deadline, body).await;
        let mut text = text.map_err(|_| BodyFault::TooLate)??;
        if !gateway.server.is_fresh() {
            // Boxed, so that not every request has space for it.
            Box::pin(gateway.discover(&headers)).await;
        }
        if protocol == Protocol::Responses {
            let upstream = (&gateway.settings, &gateway.client);
            let responses = &gateway.joined_responses;
            text = Box::pin(responses.resolve(upstream, &headers, text, deadline)).await?;
        }
        let incoming = IncomingRequest {
            gateway,
            stats,
            protocol,
            headers,
            query,
            deadline,
        };
        let run = offload::with_text(text.len(), move || incoming.read(text)).await??;
        chat::answer(run).await
    }
}
