//! Does the server take a request for its size?
//!
//! Where another tokenizer stands in for the model's own, llama.cpp is asked for its own count
//! before anything is sent. What a server refuses for its size teaches the size: the request is
//! planned again with it and sent once more. Only the window is remembered for other requests: how
//! far a count is off depends on the text.

use overlock_budget::{Provenance, Scale};
use overlock_llm::{CallFailure, LearntWindow, Product, RefusedSize, Response, Server};
use serde_json::Value;

use super::run::ChatRun;
use super::wish::{Fitted, Share};
use crate::error::ApiError;
use crate::offload;
use overlock_runs::{CallBudget, Unfit};

/// So often a request is planned with the server's count before only what must stay is sent.
const ROUNDS: u32 = 3;

/// What became of the first call for a request.
pub(super) enum Sent {
    /// The upstream answers.
    Answered(Box<Response>),
    /// The upstream does not.
    Failed(CallFailure),
    /// The request does not fit the window of its model.
    TooLarge(Box<Unfit>),
}

/// Whether the server has counted what is to be sent.
#[derive(Debug, PartialEq, Eq)]
enum Confirmed {
    /// It takes that.
    Fits,
    /// It does not count.
    NotCounted,
    /// What must stay is too much.
    TooLarge(Box<Unfit>),
}

impl ChatRun {
    /// Whether the server may count so much more than was counted here that it refuses the request,
    /// and can be asked for its count. No tokenizer makes more tokens of a text than it has bytes.
    pub(super) fn may_be_too_large(&self) -> bool {
        let basis = self.context.budget.basis.as_ref();
        let is_estimate = basis.is_some_and(|it| it.provenance == Provenance::Estimate.name());
        let bytes = u64::try_from(self.body.len()).unwrap_or(u64::MAX);
        is_estimate
            && self.context.shown.is_some()
            && !self.fits(bytes)
            && self.context.gateway.server.info().product == Product::LlamaCpp
    }

    /// Makes sure that the request fits by the server's count; why it cannot, if it cannot.
    pub(super) async fn confirm_size(&mut self) -> Result<Option<Box<Unfit>>, ApiError> {
        Ok(match self.confirm().await? {
            Confirmed::Fits | Confirmed::NotCounted => None,
            Confirmed::TooLarge(unfit) => Some(unfit),
        })
    }

    async fn confirm(&mut self) -> Result<Confirmed, ApiError> {
        for _ in 0..ROUNDS {
            let Some(tokens) = self.counted_by_server().await else {
                return Ok(Confirmed::NotCounted);
            };
            self.context.wish.set_scale(self.scale_for(tokens));
            if self.fits(tokens) {
                return Ok(Confirmed::Fits);
            }
            if self.fit_again(Share::Most).await?.is_some() {
                break;
            }
        }
        self.confirm_least().await
    }

    /// Counts what must stay by itself: the scale of a longer text says little about it.
    async fn confirm_least(&mut self) -> Result<Confirmed, ApiError> {
        let scale = self.context.wish.counter().scale();
        self.context.wish.set_scale(Scale::default());
        if let Some(unfit) = self.fit_again(Share::Least).await? {
            self.context.wish.set_scale(scale);
            return Ok(Confirmed::TooLarge(Box::new(unfit)));
        }
        let Some(tokens) = self.counted_by_server().await else {
            return Ok(Confirmed::NotCounted);
        };
        self.context.wish.set_scale(self.scale_for(tokens));
        if self.fits(tokens) {
            return Ok(Confirmed::Fits);
        }
        Ok(match self.fit_again(Share::Least).await? {
            Some(unfit) => Confirmed::TooLarge(Box::new(unfit)),
            None => Confirmed::Fits,
        })
    }

    /// The outcome of a first call that failed: if the upstream refuses it and names the true size,
    /// the request is planned again and sent once more.
    pub(super) async fn after_failure(&mut self, failure: CallFailure) -> Result<Sent, ApiError> {
        let size = failure.error.refused_size();
        let Some(size) = size.filter(|_| self.context.shown.is_some()) else {
            return Ok(Sent::Failed(failure));
        };
        if let Some(unfit) = self.plan_again(size).await? {
            return Ok(Sent::TooLarge(Box::new(unfit)));
        }
        Ok(match self.asked().await {
            Ok(answer) => Sent::Answered(answer),
            Err(failure) => match failure.error.refused_size() {
                Some(size) => Sent::TooLarge(Box::new(self.refused_twice(size))),
                None => Sent::Failed(failure),
            },
        })
    }

    /// Plans a request that was refused with these sizes; why it cannot fit, if it cannot.
    async fn plan_again(&mut self, size: RefusedSize) -> Result<Option<Unfit>, ApiError> {
        // The count here was too low. What is kept of the request may need even more for each
        // token than what was refused.
        let scale = match size.input {
            Some(input) if input > self.context.budget.input_token_count => {
                self.scale_for(input.saturating_add(input / 16))
            }
            _ => Scale::default(),
        };
        if let Some(window) = size.window {
            self.learn(window);
        }
        self.context.wish.set_scale(Scale::default());
        if self.fit_again(Share::Most).await?.is_none() && self.may_be_too_large() {
            match self.confirm().await? {
                Confirmed::Fits => return Ok(None),
                Confirmed::TooLarge(unfit) => return Ok(Some(*unfit)),
                Confirmed::NotCounted => {}
            }
        }
        // It holds for this request only: another one may be in another language.
        self.context.wish.set_scale(scale);
        let Some(unfit) = self.fit_again(Share::Most).await? else {
            return Ok(None);
        };
        // The scale comes from the whole request, and what must stay may need less of it.
        self.context.wish.set_scale(Scale::default());
        let least = self.fit_again(Share::Least).await?;
        self.context.wish.set_scale(scale);
        Ok(least.map(|_| unfit))
    }

    /// Remembers the window of the model, and goes on with it.
    fn learn(&mut self, window: u64) {
        self.context.gateway.learn(LearntWindow {
            model: self.context.wish.model.clone(),
            window,
        });
        let known = &self.context.gateway.model_cache;
        let known = known.get(&self.context.gateway.settings, &self.context.wish.model);
        self.context.wish.set_known(known);
    }

    /// Why a request is not sent a third time.
    fn refused_twice(&self, size: RefusedSize) -> Unfit {
        let window = size.window.unwrap_or(self.context.budget.window);
        let input = size.input.unwrap_or(self.context.budget.input_token_count);
        let answer = self.answer_room();
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

    /// Plans the request once more; why it does not fit, if it does not.
    async fn fit_again(&mut self, share: Share) -> Result<Option<Unfit>, ApiError> {
        let wish = self.context.wish.clone();
        let fitted = offload::with_text(wish.text.len(), move || {
            let request = wish.request()?;
            wish.fit(request, share)
        });
        match fitted.await?? {
            Ok(fitted) => {
                self.take_fitted(fitted);
                Ok(None)
            }
            Err(unfit) => Ok(Some(unfit)),
        }
    }

    fn take_fitted(&mut self, fitted: Fitted) {
        let Fitted { plan, limit, body } = fitted;
        self.dropped = plan.dropped_messages.len();
        self.context.budget =
            CallBudget::of(&plan, &self.context.wish.known.found).with_limit(limit);
        self.body = body;
    }

    /// The scale by which the request as it is planned would have been counted as so many tokens.
    fn scale_for(&self, tokens: u64) -> Scale {
        let scale = self.context.wish.counter().scale();
        Scale::of(scale.apply(tokens), self.context.budget.input_token_count)
    }

    /// Whether a request of so many tokens leaves room for its answer.
    fn fits(&self, tokens: u64) -> bool {
        tokens.saturating_add(self.answer_room()) <= self.context.budget.window
    }

    /// The tokens that an answer needs: as many as the request says, or the least useful ones.
    fn answer_room(&self) -> u64 {
        let sent = self.context.budget.limit.and_then(|limit| limit.sent);
        sent.unwrap_or(self.context.wish.known.plan.answer_floor)
    }

    /// The tokens of the request as it is planned, by the server's own count.
    async fn counted_by_server(&self) -> Option<u64> {
        let body = self.body.clone();
        let request =
            offload::with_text(body.len(), move || serde_json::from_slice::<Value>(&body));
        let request = request.await.ok()?.ok()?;
        let headers = self.context.headers();
        let server = Server::new(
            &self.context.gateway.client.http,
            &self.context.base,
            &headers,
        );
        server.count_chat(&request).await.ok()
    }
}
