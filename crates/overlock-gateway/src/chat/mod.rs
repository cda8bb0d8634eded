//! From a chat request to one whole answer.
//!
//! Plan, complete, append: the request is made to fit, its answer is passed on and continued until
//! it is whole, and what happened is kept. A streamed answer and one that comes at once are read
//! by the same rules.

mod ending;
mod joining;
mod reading;
mod schema;
mod stream;
mod taken;
mod whole;
mod wish;

use std::sync::Arc;

use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method};
use overlock_budget::ChatCounter;
use serde_json::Value;

use crate::account::Account;
use crate::body::{Reply, json_reply, whole as whole_body};
use crate::demo;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::upstream::Answer;
use reading::Kind;
use wish::{Continues, Wish};

/// A chat request on its way.
pub(crate) struct Job {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) account: Arc<Account>,
    pub(crate) wish: Wish,
    /// The address of who answers.
    pub(crate) base: String,
    /// What is shown to them.
    pub(crate) headers: HeaderMap,
    /// The tokens of the request as it was sent.
    pub(crate) input_tokens: u64,
}

/// How an answer ended, for those who do not look into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Complete,
    Partial,
}

impl Ended {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
        }
    }
}

/// Answers a chat request.
pub(crate) async fn answer(
    gateway: Arc<Gateway>,
    account: Arc<Account>,
    headers: HeaderMap,
    text: String,
) -> Result<Reply, ApiError> {
    let wish = Wish::read(&gateway.settings, &headers, &text)?;
    let counter = ChatCounter::for_model(&wish.found);
    let fitted = wish.fit(&gateway.settings, &counter, &text)?;
    let (base, headers) = if wish.model == demo::MODEL {
        (gateway.demo.base().await?, json_headers())
    } else {
        let key_is_ours = !gateway.settings.keys.is_empty();
        let headers = gateway.client.headers(&headers, key_is_ours);
        (gateway.settings.upstream.address()?.to_owned(), headers)
    };
    let body = whole_body(fitted.body);
    let answer = gateway
        .client
        .send(
            Method::POST,
            &base,
            "/chat/completions",
            headers.clone(),
            body,
        )
        .await?;
    if !answer.status.is_success() {
        return refusal(answer).await;
    }
    let job = Job {
        gateway,
        account,
        wish,
        base,
        headers,
        input_tokens: fitted.plan.input_token_count,
    };
    match (job.wish.streams, answer.is_event_stream()) {
        (true, true) => Ok(stream::reply(job, answer)),
        (false, true) => Err(ApiError::upstream(
            "the upstream answered with a stream that nobody asked for",
        )),
        (true, false) => {
            let whole = whole::read(&job, answer).await?;
            Ok(stream::told(&job, &whole))
        }
        (false, false) => Ok(whole::read(&job, answer).await?.into_reply()),
    }
}

/// What is said with every request.
fn json_headers() -> HeaderMap {
    let json = HeaderValue::from_static("application/json");
    HeaderMap::from_iter([(header::CONTENT_TYPE, json)])
}

impl Job {
    /// How the content of an answer is read.
    pub(crate) fn content_kind(&self) -> Kind {
        match (self.wish.continues, self.wish.is_json) {
            (Continues::Nothing, _) => Kind::Verbatim,
            (_, true) => Kind::Document,
            (_, false) => Kind::Looks,
        }
    }

    /// How the arguments of a tool call are read.
    pub(crate) fn arguments_kind(&self) -> Kind {
        match self.wish.continues {
            Continues::Nothing => Kind::Verbatim,
            Continues::Json | Continues::Text => Kind::Looks,
        }
    }
}

/// What the upstream says against a request, in the shape that clients know, with its status.
pub(crate) async fn refusal(mut answer: Answer) -> Result<Reply, ApiError> {
    const LONGEST: usize = 1 << 20;
    let body = answer.read_whole(LONGEST).await?;
    let value: Option<Value> = serde_json::from_slice(&body).ok();
    let is_known = value
        .as_ref()
        .is_some_and(|value| value.get("error").is_some_and(Value::is_object));
    let mut reply = match value {
        Some(value) if is_known => json_reply(answer.status, &value),
        _ => {
            let said: String = String::from_utf8_lossy(&body).chars().take(500).collect();
            let message = format!("the upstream answered {}: {said}", answer.status);
            ApiError::new(answer.status, "upstream_error", message).into_reply()
        }
    };
    pass_on(&answer.headers, reply.headers_mut());
    Ok(reply)
}

/// Puts what the upstream says about an answer beside what is said here.
pub(crate) fn pass_on(from: &HeaderMap, to: &mut HeaderMap) {
    const KEPT_BACK: [HeaderName; 8] = [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::TRANSFER_ENCODING,
        header::TRAILER,
        header::UPGRADE,
        header::DATE,
        header::SET_COOKIE,
    ];
    for (name, value) in from {
        if !KEPT_BACK.contains(name) && name != "keep-alive" {
            to.append(name.clone(), value.clone());
        }
    }
}

/// What is said about an answer besides the answer.
pub(crate) fn tell(headers: &mut HeaderMap, ended: Ended, continuations: u32) {
    headers.insert("x-overlock-outcome", HeaderValue::from_static(ended.name()));
    headers.insert("x-overlock-continuations", HeaderValue::from(continuations));
}
