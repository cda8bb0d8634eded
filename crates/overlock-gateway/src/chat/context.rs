//! What all calls for one chat request share.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Method};
use overlock_llm::assembler::{Assembler, ChoiceParts, Delivery, PartKind};
use overlock_llm::wire::Protocol;
use overlock_llm::{CallFailure, Response, Retried, StepEnd, Usage, full_body};
use overlock_runs::{CallBudget, Part, Secrets};
use tokio::time::Instant;

use super::finished::FinishedAnswer;
use super::params::{ChatParams, Continues};
use crate::gateway::Gateway;
use crate::request_stats::RequestStats;
use crate::secrets::secrets_of;

/// A chat request that is being answered.
pub(super) struct RequestContext {
    pub(super) gateway: Arc<Gateway>,
    pub(super) stats: Arc<RequestStats>,
    pub(super) params: ChatParams,
    /// The base address of the upstream.
    pub(super) base: String,
    /// The query of the client's request, which goes with every call.
    pub(super) query: Option<String>,
    /// The client's headers, unless the demo model answers.
    pub(super) shown: Option<HeaderMap>,
    /// How the window of the request is divided.
    pub(super) budget: CallBudget,
    /// The reported usage of the first call, if it answered with one text.
    pub(super) first_usage: Option<Usage>,
    /// The failed attempts of the first call.
    pub(super) retried: Option<Retried>,
    pub(super) deadline: Instant,
}

/// A part of an answer, and the name of the tool if the part is the arguments of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerPart<'a> {
    pub(super) part: Part,
    pub(super) tool: Option<&'a str>,
}

impl RequestContext {
    /// The headers of a request to the upstream.
    pub(super) fn headers(&self) -> HeaderMap {
        let Some(shown) = &self.shown else {
            let json = HeaderValue::from_static("application/json");
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
            return self.gateway.client.with_key(headers);
        };
        let key_is_ours = !self.gateway.settings.keys.is_empty();
        self.gateway.client.headers(shown, key_is_ours)
    }

    /// The headers of a call of the model, with its place in the trace.
    pub(super) fn call_headers(&self) -> HeaderMap {
        let mut headers = self.headers();
        self.stats.place_in_trace(&mut headers);
        headers
    }

    /// Makes the first call once.
    pub(super) fn call(
        &self,
        body: Bytes,
    ) -> impl Future<Output = Result<Response, CallFailure>> + use<'_> {
        let client = &self.gateway.client;
        let address = (
            self.base.as_str(),
            &*self.with_query(self.params.protocol.path()),
        );
        let request = client.request(Method::POST, address, self.call_headers(), full_body(body));
        let call = request.map(|it| client.http.call(&client.peer, it, Some(self.deadline)));
        // An `async fn` would hold the request while it waits.
        async move { call?.await }
    }

    /// Remembers whether the upstream stores the answer as the client gets it.
    pub(super) fn remember(&self, finished: &FinishedAnswer) {
        if let (Protocol::Responses, Some(shown)) = (self.params.protocol, &self.shown) {
            let (response, is_changed) = (&finished.completion, finished.is_changed);
            let responses = &self.gateway.joined_responses;
            responses.add(shown, &self.params.text, response, is_changed);
        }
    }

    /// A path or address with the query of the client's request.
    pub(super) fn with_query<'a>(&self, address: &'a str) -> Cow<'a, str> {
        match &self.query {
            Some(query) => Cow::Owned(overlock_llm::below(address, &format!("?{query}"))),
            None => Cow::Borrowed(address),
        }
    }

    /// How a choice of the first answer ended.
    pub(super) fn end_of(&self, choice: &ChoiceParts, broken: Option<&str>) -> StepEnd {
        StepEnd {
            retried: self.retried.clone().map(Box::new),
            ..choice.end(broken)
        }
    }

    /// The keys in the request and in the settings, which no message may contain.
    pub(super) fn secrets(&self) -> Secrets {
        let own = self.gateway.settings.upstream.key.as_deref();
        secrets_of(own, self.shown.as_ref(), self.query.as_deref())
    }

    /// Learns from the input tokens that the upstream reports for the first call.
    pub(super) fn learn_ratio(&self, billed: u64) {
        if self.shown.is_some() {
            let (model, scale) = (&self.params.model, self.params.counter().scale());
            let counted = self.budget.input_token_count;
            self.gateway.token_ratios.add(model, billed, counted, scale);
        }
    }

    pub(super) fn is_continued(&self) -> bool {
        self.params.continues != Continues::Nothing
    }

    pub(super) fn content_kind(&self) -> PartKind {
        if self.params.is_json {
            PartKind::Document
        } else {
            PartKind::Detect
        }
    }

    pub(super) fn assembler(&self, is_streamed: bool) -> Assembler {
        let delivery = match (self.is_continued(), is_streamed) {
            (false, _) => Delivery::Verbatim,
            (true, true) => Delivery::Streamed,
            (true, false) => Delivery::AtEnd,
        };
        Assembler::new(self.content_kind(), delivery)
    }
}
