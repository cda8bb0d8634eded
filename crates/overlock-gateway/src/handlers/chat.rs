//! `POST /v1/chat/completions` and `POST /v1/responses`: fit the request into the window and complete
//! the answer.

use overlock_llm::wire::Protocol;
use tokio::time::timeout_at;

use crate::body::{read_bytes, too_late};
use crate::chat::{self, IncomingRequest};
use crate::handlers::{Call, Handled, pass_through};
use crate::offload;

/// A chat completions request.
pub(crate) fn completions(call: Call) -> impl Future<Output = Handled> {
    answer(call, Protocol::ChatCompletions)
}

/// A Responses request. It is forwarded unchanged to an upstream that is not set to speak Responses.
pub(crate) async fn responses(call: Call) -> Handled {
    let protocol = Protocol::Responses;
    if call.gateway.settings.upstream.api != protocol {
        return Box::pin(pass_through::answer(call)).await;
    }
    answer(call, protocol).await
}

fn answer(call: Call, protocol: Protocol) -> impl Future<Output = Handled> {
    // Destructured outside of the future, so that the future holds only what it needs.
    let Call {
        gateway,
        stats,
        request,
        deadline,
        ..
    } = call;
    let query = request.uri().query().map(str::to_owned);
    let (head, body) = request.into_parts();
    let headers = head.headers;
    async move {
        let body = read_bytes(body, &gateway.settings.limits);
        let text = timeout_at(deadline, body).await;
        let mut text = text.unwrap_or_else(|_| Err(too_late()))?;
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
