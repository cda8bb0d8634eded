//! Plans a request again by the server's own count.
//!
//! If the model's tokenizer is not known, llama.cpp is asked for its count before the first call. A
//! server that refuses a request for its size often names the true size: the request is planned
//! again with it and sent once more. Only the window is remembered for other requests, because how
//! far a count is off depends on the text.

use overlock_budget::{Provenance, Scale};
use overlock_llm::wire::Protocol;
use overlock_llm::{CallFailure, LearntWindow, Product, RefusedSize, Response, Server};
use overlock_runs::Unfit;
use serde_json::Value;

use super::params::{Share, Unanswered};
use super::run::ChatRun;
use crate::offload;

/// How often a request is planned with the server's count before it is reduced to what must stay.
const ROUNDS: u32 = 3;

impl ChatRun {
    /// Whether the server may count so many more tokens that it refuses the request, and can be
    /// asked for its count. No tokenizer makes more tokens of a text than it has bytes.
    pub(super) fn may_be_too_large(&self) -> bool {
        let basis = self.context.budget.basis.as_ref();
        let is_estimate = basis.is_some_and(|it| it.provenance == Provenance::Estimate.name());
        let bytes = u64::try_from(self.body.len()).unwrap_or(u64::MAX);
        is_estimate
            && self.context.shown.is_some()
            && self.context.params.protocol == Protocol::ChatCompletions
            && !self.fits(bytes)
            && self.context.gateway.server.info().product == Product::LlamaCpp
    }

    /// Makes the request fit by the server's count. Returns whether the server counts.
    pub(super) async fn confirm_size(&mut self) -> Result<bool, Unanswered> {
        for _ in 0..ROUNDS {
            let Some(tokens) = self.counted_by_server().await else {
                return Ok(false);
            };
            self.context.params.set_scale(self.scale_for(tokens));
            if self.fits(tokens) {
                return Ok(true);
            }
            if self.plan(Share::Most).await.is_err() {
                break;
            }
        }
        // The scale of a longer text says little about what must stay, so that is counted alone.
        self.context.params.reset_scale();
        self.plan(Share::Least).await?;
        let Some(tokens) = self.counted_by_server().await else {
            return Ok(false);
        };
        self.context.params.set_scale(self.scale_for(tokens));
        if !self.fits(tokens) {
            self.plan(Share::Least).await?;
        }
        Ok(true)
    }

    /// Sends a request once more if the first call failed because of its size.
    pub(super) async fn after_failure(
        &mut self,
        failure: CallFailure,
    ) -> Result<Box<Response>, Unanswered> {
        let size = failure.error.refused_size();
        let Some(size) = size.filter(|_| self.context.shown.is_some()) else {
            return Err(Unanswered::Failed(Box::new(failure)));
        };
        self.plan_again(size).await?;
        let called = self.call().await;
        called.map_err(|failure| match failure.error.refused_size() {
            Some(size) => Unanswered::TooLarge(Box::new(self.refused_twice(size))),
            None => Unanswered::Failed(Box::new(failure)),
        })
    }

    /// Plans a request that was refused with these sizes.
    async fn plan_again(&mut self, size: RefusedSize) -> Result<(), Unanswered> {
        // Our count was too low. What stays of the request may need even more for each token.
        let scale = match size.input {
            Some(input) if input > self.context.budget.input_token_count => {
                self.scale_for(input.saturating_add(input / 16))
            }
            _ => self.context.params.counter().scale(),
        };
        if let Some(window) = size.window {
            self.learn(window);
        }
        self.context.params.reset_scale();
        let is_planned = self.plan(Share::Most).await.is_ok();
        if is_planned && self.may_be_too_large() && self.confirm_size().await? {
            return Ok(());
        }
        self.context.params.set_scale(scale);
        let Err(unanswered) = self.plan(Share::Most).await else {
            return Ok(());
        };
        // The scale is that of the whole request, and what must stay may need less.
        self.context.params.reset_scale();
        let least = self.plan(Share::Least).await;
        self.context.params.set_scale(scale);
        least.map_err(|_| unanswered)
    }

    /// Remembers the window of the model.
    fn learn(&mut self, window: u64) {
        let context = &mut self.context;
        let model = context.params.model.clone();
        context.gateway.learn(LearntWindow { model, window });
        let (known, settings) = (&context.gateway.model_cache, &context.gateway.settings);
        let known = known.get(settings, &context.params.model);
        context.params.set_known(known);
    }

    /// Why a request is not sent a third time.
    fn refused_twice(&self, size: RefusedSize) -> Unfit {
        let window = size.window.unwrap_or(self.context.budget.window);
        let input = size.input.unwrap_or(self.context.budget.input_token_count);
        let answer = self.answer_tokens();
        let overflow = input.saturating_add(answer).saturating_sub(window);
        Unfit {
            message: format!(
                "This model's maximum context length is {window} tokens. However, the upstream \
                 counts {input} tokens in the messages that must stay, and the answer needs \
                 {answer}. Shorten the messages."
            ),
            overflow,
            budget: self.context.budget.clone(),
        }
    }

    /// Plans the request once more.
    async fn plan(&mut self, share: Share) -> Result<(), Unanswered> {
        let params = self.context.params.clone();
        let planned = offload::with_text(params.text.len(), move || {
            params.fit(params.request()?, share)
        });
        let planned = planned.await??;
        self.dropped = planned.dropped;
        self.context.budget = planned.budget;
        self.body = planned.body;
        Ok(())
    }

    /// The scale by which the planned request would have been counted as this many tokens.
    fn scale_for(&self, tokens: u64) -> Scale {
        let scale = self.context.params.counter().scale();
        Scale::of(scale.apply(tokens), self.context.budget.input_token_count)
    }

    /// Whether a request of this many tokens leaves room for its answer.
    fn fits(&self, tokens: u64) -> bool {
        tokens.saturating_add(self.answer_tokens()) <= self.context.budget.window
    }

    /// The tokens of the answer: those that the request asks for, or the least useful number.
    fn answer_tokens(&self) -> u64 {
        let sent = self.context.budget.limit.and_then(|limit| limit.sent);
        sent.unwrap_or(self.context.params.known.plan.answer_floor)
    }

    /// The tokens of the planned request by the server's count.
    async fn counted_by_server(&self) -> Option<u64> {
        let body = self.body.clone();
        let request =
            offload::with_text(body.len(), move || serde_json::from_slice::<Value>(&body));
        let request = request.await.ok()?.ok()?;
        let (http, headers) = (&self.context.gateway.client.http, self.context.headers());
        let server = Server::new(http, &self.context.base, &headers);
        server.count_chat(&request).await.ok()
    }
}
