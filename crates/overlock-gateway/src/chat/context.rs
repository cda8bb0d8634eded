//! What all calls for one chat request share.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Method};
use overlock_budget::Plan;
use overlock_llm::assembler::{Assembler, ChoiceParts, Delivery, PartKind};
use overlock_llm::{CallFailure, Response, Retried, StepEnd, Usage};
use tokio::time::Instant;

use super::wish::{Continues, Wish};
use crate::gateway::Gateway;
use crate::reply::whole;
use crate::request_stats::RequestStats;
use crate::secrets::secrets_of;
use crate::upstream::CHAT_PATH;
use overlock_runs::{AnswerLimit, CallBudget, Secrets};

/// A chat request that is being answered.
pub(crate) struct RequestContext {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) stats: Arc<RequestStats>,
    pub(crate) wish: Wish,
    /// The base address of the upstream.
    pub(crate) base: String,
    /// The query of the client's request, which goes with every call.
    pub(crate) query: Option<String>,
    /// The client's headers, unless the demo model answers.
    pub(crate) shown: Option<HeaderMap>,
    /// How the window of the request is divided.
    pub(crate) budget: CallBudget,
    /// The usage of the first call that the provider reports, if it answered with one text.
    pub(crate) first_usage: Option<Usage>,
    /// The first calls that were not answered.
    pub(crate) retried: Option<Retried>,
    /// When the last call has to be done.
    pub(crate) deadline: Instant,
}

impl RequestContext {
    /// The headers of a call.
    pub(crate) fn headers(&self) -> HeaderMap {
        let Some(shown) = &self.shown else {
            let json = HeaderValue::from_static("application/json");
            return HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
        };
        let key_is_ours = !self.gateway.settings.keys.is_empty();
        self.gateway.client.headers(shown, key_is_ours)
    }

    /// Makes the first call once.
    pub(super) fn ask(
        &self,
        body: Bytes,
    ) -> impl Future<Output = Result<Response, CallFailure>> + use<'_> {
        let mut headers = self.headers();
        self.stats.place_in_trace(&mut headers);
        let client = &self.gateway.client;
        let place = (self.base.as_str(), &*self.with_query(CHAT_PATH));
        let request = client.request(Method::POST, place, headers, whole(body));
        let call = request.map(|it| client.http.call(&client.peer, it, Some(self.deadline)));
        // An `async fn` would keep the space of the request while it waits.
        async move { call?.await }
    }

    /// A path or address with the query of the client's request.
    pub(crate) fn with_query<'a>(&self, address: &'a str) -> Cow<'a, str> {
        match &self.query {
            Some(query) => Cow::Owned(overlock_llm::below(address, &format!("?{query}"))),
            None => Cow::Borrowed(address),
        }
    }

    /// How the window of one more call is divided. Its limit is told whether or not the client
    /// has set one: how long the rest may be is agreed on with every piece of it.
    pub(super) fn budget_of(&self, plan: &Plan) -> CallBudget {
        CallBudget::of(plan, &self.wish.known.found).with_limit(AnswerLimit {
            asked: self.wish.requested,
            sent: Some(plan.adjusted_max_tokens),
        })
    }

    /// How a choice of the first answer ended.
    pub(crate) fn end_of(&self, choice: &ChoiceParts, broken: Option<&str>) -> StepEnd {
        StepEnd {
            retried: self.retried.clone().map(Box::new),
            ..choice.end(broken)
        }
    }

    /// The keys that go with the request.
    pub(crate) fn secrets(&self) -> Secrets {
        let own = self.gateway.settings.upstream.key.as_deref();
        secrets_of(own, self.shown.as_ref(), self.query.as_deref())
    }

    /// What the content of the answer should be.
    pub(crate) fn content_kind(&self) -> PartKind {
        if self.wish.is_json {
            PartKind::Document
        } else {
            PartKind::Detect
        }
    }

    /// Assembles the answer, which is streamed to the client or not.
    pub(crate) fn assembler(&self, is_streamed: bool) -> Assembler {
        let delivery = match (self.wish.continues, is_streamed) {
            (Continues::Nothing, _) => Delivery::Verbatim,
            (_, true) => Delivery::Streamed,
            (_, false) => Delivery::AtEnd,
        };
        Assembler::new(self.content_kind(), delivery)
    }
}
