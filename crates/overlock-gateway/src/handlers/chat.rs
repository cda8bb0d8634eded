//! `POST /v1/chat/completions`: fits the request into the window and completes the answer.

use overlock_llm::wire::Protocol;
use tokio::time::timeout_at;

use crate::body::{read_bytes, too_late};
use crate::chat::{self, IncomingRequest};
use crate::handlers::{Call, Handled};
use crate::offload;

pub(crate) fn answer(call: Call) -> impl Future<Output = Handled> {
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
        let text = text.unwrap_or_else(|_| Err(too_late()))?;
        if !gateway.server.is_fresh() {
            // Boxed, so that not every request has space for it.
            Box::pin(gateway.discover(&headers)).await;
        }
        let incoming = IncomingRequest {
            gateway,
            stats,
            protocol: Protocol::ChatCompletions,
            headers,
            query,
            deadline,
        };
        let run = offload::with_text(text.len(), move || incoming.read(text)).await??;
        chat::answer(run).await
    }
}
