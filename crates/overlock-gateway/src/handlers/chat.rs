//! `POST /v1/chat/completions`: a request that fits, and an answer that is whole.

use hyper::body::Incoming;
use hyper::{HeaderMap, Request};

use crate::body::read_bytes;
use crate::chat;
use crate::routes::{Call, Handled};

pub(crate) async fn answer(call: Call) -> Handled {
    // Taken apart first, so that no more is held while it waits than is needed.
    let Call {
        gateway,
        account,
        request,
        ..
    } = call;
    let query = request.uri().query().map(str::to_owned);
    let (headers, body) = parts(request);
    let text = read_bytes(body, &gateway.settings.limits).await?;
    chat::answer(gateway, account, headers, query, text).await
}

fn parts(request: Request<Incoming>) -> (HeaderMap, Incoming) {
    let (head, body) = request.into_parts();
    (head.headers, body)
}
