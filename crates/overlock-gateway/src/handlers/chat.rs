//! `POST /v1/chat/completions`: a request that fits, and an answer that is whole.

use crate::body::read_text;
use crate::chat;
use crate::routes::{Call, Handled};

pub(crate) async fn answer(call: Call) -> Handled {
    let (head, body) = call.request.into_parts();
    let text = read_text(body, &call.gateway.settings.limits).await?;
    let query = head.uri.query().map(str::to_owned);
    chat::answer(call.gateway, call.account, head.headers, query, text).await
}
