//! From a chat request to one complete answer.
//!
//! The request is planned into the window and sent; its answer is forwarded and continued until it
//! is complete. ARCHITECTURE.md has the path through these files.

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
mod params;
mod part;
mod response;
mod run;
mod size;

use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use overlock_llm::wire::Protocol;
use tokio::time::Instant;

use crate::demo;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::record::RUN;
use crate::reply::Reply;
use crate::request_stats::RequestStats;
use context::RequestContext;
use params::{ChatParams, PlannedRequest, Share, Unanswered};
use run::{ChatRun, Source};

/// A chat request that has not been parsed.
pub(crate) struct IncomingRequest {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) stats: Arc<RequestStats>,
    pub(crate) protocol: Protocol,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Option<String>,
    /// When it has to be answered.
    pub(crate) deadline: Instant,
}

impl IncomingRequest {
    /// Parses the request and plans it into the window.
    pub(crate) fn read(self, text: Bytes) -> Result<Box<ChatRun>, ApiError> {
        let (params, request) =
            ChatParams::read(&self.gateway, &self.headers, text, self.protocol)?;
        let planned = params.fit(request, Share::Most);
        let upstream = &self.gateway.settings.upstream;
        let address = upstream.base.as_deref();
        self.stats.asked(&params.model, params.requested, address);
        let key = idempotency::key_of(&self.headers)?;
        let (planned, unfit) = match planned {
            Ok(planned) => (planned, None),
            Err(Unanswered::TooLarge(unfit)) => {
                let unsent = PlannedRequest {
                    budget: unfit.budget.clone(),
                    dropped: 0,
                    body: Bytes::new(),
                };
                (unsent, Some(unfit))
            }
            Err(Unanswered::Error(error)) => return Err(*error),
            Err(Unanswered::Failed(failure)) => return Err(failure.error.into()),
        };
        let (base, shown) = if params.model == demo::MODEL {
            (String::new(), None)
        } else if unfit.is_some() {
            (address.unwrap_or_default().to_owned(), None)
        } else {
            (upstream.address()?.to_owned(), Some(self.headers))
        };
        // Boxed, because it is moved often.
        Ok(Box::new(ChatRun {
            context: RequestContext {
                deadline: self.deadline,
                gateway: self.gateway,
                stats: self.stats,
                params,
                base,
                query: self.query,
                shown,
                budget: planned.budget,
                first_usage: None,
                retried: None,
            },
            dropped: planned.dropped,
            unfit,
            body: planned.body,
            key,
            recording: None,
        }))
    }
}

/// Answers a chat request.
///
/// What few requests need is boxed here and below, so that a waiting request stays small.
pub(crate) async fn answer(mut run: Box<ChatRun>) -> Result<Reply, ApiError> {
    let source = if let Err(unanswered) = run.prepare().await {
        run.recording = run.context.begin_recording().await;
        Err(unanswered)
    } else if let Some(key) = run.key.take() {
        match Box::pin(run.begin_idempotent(key)).await? {
            Some(recorded) => Ok(recorded),
            None => run.first_call().await,
        }
    } else {
        run.recording = run.context.begin_recording().await;
        run.first_call().await
    };
    let mut headers = HeaderMap::new();
    let id = match &source {
        Ok(Source::Finished(id, _)) => Some(id),
        _ => run.recording.as_ref().map(|recording| &recording.id),
    };
    if let Some(id) = id {
        let id = HeaderValue::from_str(id.as_str());
        headers.insert(&RUN, id.expect("a run id is letters and digits"));
    }
    if run.dropped > 0 {
        static DROPPED: HeaderName = HeaderName::from_static("x-overlock-dropped-messages");
        headers.insert(&DROPPED, HeaderValue::from(run.dropped));
    }
    let protocol = run.context.params.protocol;
    let reply = run.reply(source).await;
    let mut reply = reply.unwrap_or_else(|error| error.into_reply_in(protocol));
    reply.headers_mut().extend(headers);
    Ok(reply)
}

impl ChatRun {
    /// Makes sure that the request can be sent. Its idempotency key is not used up before.
    async fn prepare(&mut self) -> Result<(), Unanswered> {
        if let Some(unfit) = self.unfit.take() {
            return Err(Unanswered::TooLarge(unfit));
        }
        if self.context.shown.is_none() {
            self.context.base = Box::pin(self.context.gateway.demo.base()).await?;
        } else if self.may_be_too_large() {
            Box::pin(self.confirm_size()).await?;
        }
        Ok(())
    }

    /// Makes the first call. A request that is refused for its size is planned again, once.
    async fn first_call(&mut self) -> Result<Source, Unanswered> {
        let answer = match self.call().await {
            Ok(answer) => answer,
            Err(failure) => Box::pin(self.after_failure(failure)).await?,
        };
        Ok(Source::Upstream(answer))
    }

    async fn reply(
        mut self: Box<Self>,
        source: Result<Source, Unanswered>,
    ) -> Result<Reply, ApiError> {
        match source {
            Ok(Source::Upstream(answer)) => {
                // An answer of Messages may be streamed only to the gateway.
                let is_joined = self.context.params.protocol == Protocol::Messages;
                match (self.context.params.is_streamed, answer.is_event_stream()) {
                    (true, true) => Ok(response::streamed(self, *answer)),
                    (false, true) if !is_joined => {
                        let error = answer.malformed("a stream, which was not requested");
                        Err(Box::pin(self.record_unusable(error)).await)
                    }
                    (_, _) => response::at_end(self, answer).await,
                }
            }
            Ok(Source::Interrupted(first)) => Box::pin(response::resumed(self, first)).await,
            Ok(Source::Finished(_, finished)) => {
                let (stats, outcome) = (&self.context.stats, finished.outcome.name());
                stats.unfinished(outcome);
                if finished.refusal.is_none() {
                    let protocol = self.context.params.protocol;
                    stats.replayed(&protocol.summary(&finished.completion), outcome);
                }
                finished.into_reply(&self.context.params, None, &HeaderMap::new())
            }
            Err(Unanswered::TooLarge(unfit)) => Err(Box::pin(self.record_too_large(*unfit)).await),
            Err(Unanswered::Failed(failure)) => Ok(Box::pin(self.record_refused(*failure)).await),
            Err(Unanswered::Error(error)) => {
                Box::pin(self.record_failed(&error)).await;
                Err(*error)
            }
        }
    }
}

#[cfg(test)]
mod tests;
