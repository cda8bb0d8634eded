//! From a chat request to one complete answer.
//!
//! The request is planned to fit, sent, and its answer is forwarded and continued until it is
//! complete. A streamed answer and one that is not streamed take the same path, which is written
//! down in ARCHITECTURE.md.

mod choice;
mod compliance;
mod context;
mod continuation;
mod ending;
mod finished;
mod first;
mod idempotency;
mod observer;
mod out;
mod part;
mod recorded;
mod refusal;
mod repair_report;
mod reported;
mod response;
mod resume;
mod run;
mod size;
mod tool_rules;
pub(crate) mod wish;

pub(crate) use refusal::{failure_reply, pass_on};

use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use overlock_llm::{CallFailure, Response};
use overlock_store::RunId;
use serde_json::Value;
use tokio::time::Instant;

use crate::demo;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::record::RUN;
use crate::reply::Reply;
use crate::request_stats::RequestStats;
use context::RequestContext;
use finished::FinishedAnswer;
use idempotency::{Answered, Keyed};
use overlock_runs::{CallBudget, Unfit};
use run::ChatRun;
use size::Sent;
use wish::{Fitted, Share, Wish};

/// A chat request that has not been read.
pub(crate) struct IncomingRequest {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) stats: Arc<RequestStats>,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Option<String>,
    /// When it has to be answered.
    pub(crate) deadline: Instant,
}

impl IncomingRequest {
    /// Reads the request, and makes it fit.
    pub(crate) fn read(self, text: Bytes) -> Result<Box<ChatRun>, ApiError> {
        let (wish, request) = Wish::read(&self.gateway, &self.headers, text)?;
        let fitted = wish.fit(request, Share::Most);
        let upstream = &self.gateway.settings.upstream;
        self.stats
            .asked(&wish.model, wish.requested, upstream.base.as_deref());
        let key = idempotency::key_of(&self.headers)?;
        let fitted = fitted?;
        let (base, shown) = if wish.model == demo::MODEL {
            (String::new(), None)
        } else if fitted.is_err() {
            // It is not sent, wherever it was to go.
            (upstream.base.clone().unwrap_or_default(), None)
        } else {
            (upstream.address()?.to_owned(), Some(self.headers))
        };
        let (budget, dropped, body, unfit) = match fitted {
            Ok(Fitted { plan, limit, body }) => {
                let budget = CallBudget::of(&plan, &wish.known.found).with_limit(limit);
                (budget, plan.dropped_messages.len(), body, None)
            }
            Err(unfit) => (unfit.budget.clone(), 0, Bytes::new(), Some(unfit.into())),
        };
        // Boxed, because it is moved often.
        Ok(Box::new(ChatRun {
            context: RequestContext {
                deadline: self.deadline,
                gateway: self.gateway,
                stats: self.stats,
                wish,
                base,
                query: self.query,
                shown,
                budget,
                first_usage: None,
                retried: None,
            },
            dropped,
            unfit,
            body,
            key,
            recording: None,
        }))
    }
}

/// Answers a chat request.
///
/// What few requests need is boxed here and below, so that a waiting request stays small.
pub(crate) async fn answer(mut run: Box<ChatRun>) -> Result<Reply, ApiError> {
    if let Some(unfit) = run.unfit.take() {
        return Ok(Box::pin(run.turned_away(*unfit)).await);
    }
    if run.context.shown.is_none() {
        run.context.base = Box::pin(run.context.gateway.demo.base()).await?;
    } else if run.may_be_too_large()
        && let Some(unfit) = Box::pin(run.confirm_size()).await?
    {
        return Ok(Box::pin(run.turned_away(*unfit)).await);
    }
    if let Some(key) = run.key.take() {
        return Box::pin(run.keyed(key)).await;
    }
    run.recording = run.context.begin_recording().await;
    Ok(run.first().await)
}

/// What every reply says besides its answer.
struct ReplyHeaders {
    /// The run.
    id: Option<RunId>,
    /// How many messages were left out.
    dropped: usize,
}

impl ReplyHeaders {
    fn on(self, replied: Result<Reply, ApiError>) -> Reply {
        static DROPPED: HeaderName = HeaderName::from_static("x-overlock-dropped-messages");
        let mut reply = replied.unwrap_or_else(ApiError::into_reply);
        let headers = reply.headers_mut();
        if let Some(id) = self.id {
            let id = HeaderValue::from_str(id.as_str());
            headers.insert(&RUN, id.expect("a run id is letters and digits"));
        }
        if self.dropped > 0 {
            headers.insert(&DROPPED, HeaderValue::from(self.dropped));
        }
        reply
    }
}

impl ChatRun {
    /// The reply to a request that has not been answered before.
    async fn first(mut self: Box<Self>) -> Reply {
        match self.asked().await {
            Ok(answer) => {
                let headers = self.reply_headers();
                headers.on(self.answered(answer).await)
            }
            Err(failure) => Box::pin(self.not_answered(failure)).await,
        }
    }

    /// The reply to a request whose first call failed.
    async fn not_answered(mut self: Box<Self>, failure: CallFailure) -> Reply {
        let sent = self.after_failure(failure).await;
        let headers = self.reply_headers();
        let replied = match sent {
            Ok(Sent::Answered(answer)) => self.answered(answer).await,
            Ok(Sent::Failed(failure)) => Ok(self.refused(failure).await),
            Ok(Sent::TooLarge(unfit)) => Err(self.too_large(*unfit).await),
            Err(error) => {
                self.failed(&error).await;
                Err(error)
            }
        };
        headers.on(replied)
    }

    /// The reply to a request with an idempotency key.
    async fn keyed(mut self: Box<Self>, key: String) -> Result<Reply, ApiError> {
        match idempotency::begin(&self.context, key).await? {
            Keyed::New(recording) => {
                self.recording = Some(recording);
                Ok(self.first().await)
            }
            Keyed::Answered(id, answered) => {
                let headers = ReplyHeaders {
                    id: Some(id),
                    ..self.reply_headers()
                };
                Ok(headers.on(self.replayed(answered)))
            }
            Keyed::Unfinished(first, recording) => {
                self.recording = Some(recording);
                let headers = self.reply_headers();
                Ok(headers.on(self.resumed(first).await))
            }
        }
    }

    /// The reply to a request that does not fit. Its key can be used for a shorter one.
    async fn turned_away(mut self: Box<Self>, unfit: Unfit) -> Reply {
        self.recording = self.context.begin_recording().await;
        let headers = self.reply_headers();
        headers.on(Err(self.too_large(unfit).await))
    }

    fn reply_headers(&self) -> ReplyHeaders {
        let recording = self.recording.as_ref();
        ReplyHeaders {
            id: recording.map(|recording| recording.id.clone()),
            dropped: self.dropped,
        }
    }

    /// The reply that the upstream's answer becomes.
    async fn answered(mut self: Box<Self>, answer: Box<Response>) -> Result<Reply, ApiError> {
        match (self.context.wish.streams, answer.is_event_stream()) {
            (true, true) => Ok(response::streamed(self, *answer)),
            (false, true) => {
                let error = answer.malformed("a stream that nobody asked for");
                Err(Box::pin(self.fails(error)).await)
            }
            (_, false) => response::at_end(self, answer).await,
        }
    }

    /// The reply to a request that was answered before.
    fn replayed(&self, answered: Answered) -> Result<Reply, ApiError> {
        let stats = &self.context.stats;
        stats.unfinished(answered.outcome.name());
        let finished = FinishedAnswer::replayed(answered)?;
        stats.replayed(finished.completion(), finished.outcome.name());
        Ok(finished.into_reply(&self.context.wish))
    }

    /// The reply to a request of which a part was answered before.
    async fn resumed(self: Box<Self>, first: Value) -> Result<Reply, ApiError> {
        if self.context.wish.streams {
            return Ok(response::resumed_stream(self, first));
        }
        Box::pin(response::resumed_at_end(self, first)).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::{Settings, Upstream};

    #[test]
    fn an_answer_that_is_waited_for_takes_little_memory() {
        let settings = Settings::new(Upstream::none());
        let gateway = Arc::new(Gateway::new(settings, None).expect("a gateway"));
        let asked = IncomingRequest {
            gateway,
            stats: Arc::new(RequestStats::default()),
            headers: HeaderMap::new(),
            query: None,
            deadline: Instant::now(),
        };
        let message = json!({ "role": "user", "content": "Hello" });
        let request = json!({ "model": demo::MODEL, "messages": [message] }).to_string();
        let run = asked.read(request.into());
        let size = size_of_val(&answer(
            run.unwrap_or_else(|error| panic!("{}", error.message)),
        ));
        assert!(size <= 1 << 10, "it takes {size} bytes");
    }
}
