//! Builds calls that fit the window: how much of the document can a prompt show?

use std::iter;

use crate::wire::{RequestError, WireRequest};
use overlock_budget::{ChatCounter, Extras, Plan, PlanError, PlanOptions, plan};
use overlock_json::{CutValue, RenderOptions};

use super::{correction_words, kpi_words, text_words, words};
use crate::backend::Call;
use crate::continuation::blank::split_blank;
use crate::continuation::{Continuation, NextCall, Wants};
use crate::strategy::Strategy;
use crate::text::TextContinuation;

/// The token budgets for the outline of the document, tried in this order.
const OUTLINE_TOKENS: [usize; 4] = [2000, 1000, 500, 200];

/// The token budget of the shortest prefill.
const LEAST_RENDERED: usize = 200;

/// How many bytes before the cut are read for the outline.
const LOOK_BACK: usize = 64 << 10;

/// How many bytes of a plain text are shown at most.
const SHOWN_TEXT: usize = 8000;

/// A call that fits its window.
#[derive(Debug)]
pub struct FittedCall {
    /// The call.
    pub call: Call,
    /// How the window is divided.
    pub plan: Plan,
}

impl FittedCall {
    /// Whether the outline displaces nothing.
    fn has_room(&self) -> bool {
        let plan = &self.plan;
        plan.dropped_messages.is_empty() && plan.adjusted_max_tokens >= plan.requested
    }

    /// Whether the outline displaces hardly more than the request alone: no message, and at most an
    /// eighth of the answer.
    fn has_room_beside(&self, bare: &Self) -> bool {
        let (plan, bare) = (&self.plan, &bare.plan);
        let least = bare.adjusted_max_tokens.min(bare.requested);
        plan.dropped_messages.len() <= bare.dropped_messages.len()
            && plan.adjusted_max_tokens >= least - least / 8
    }
}

/// Why there is no call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// It does not fit, even without an outline.
    #[error(transparent)]
    Window(#[from] PlanError),
    /// The caller's request is invalid.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// The caller's own request, trimmed to the window.
pub fn first_call(
    request: &dyn WireRequest,
    counter: &ChatCounter<'_>,
    options: &PlanOptions,
) -> Result<FittedCall, PromptError> {
    fit(request.boxed(), counter, options)
}

fn fit(
    request: Box<dyn WireRequest>,
    counter: &ChatCounter<'_>,
    options: &PlanOptions,
) -> Result<FittedCall, PromptError> {
    let plan = plan(&*request, &Extras::default(), counter, options)?;
    Ok(fitted(plan, request, None))
}

/// How many times longer an answer may be than the one before, which was too short to bring
/// anything.
const LONGER_ANSWER: u64 = 4;

/// The request with a higher answer limit and less reasoning, after this many answers that were too
/// short.
///
/// White space, thoughts or reasoning that is not part of the text took all tokens of those. At
/// temperature 0 the unchanged request would get the same answer.
fn with_longer_answer(
    request: &dyn WireRequest,
    answers: u32,
) -> Result<Box<dyn WireRequest>, RequestError> {
    if answers == 0 {
        return Ok(request.boxed());
    }
    let request = request.with_less_reasoning()?;
    match request.outline().requested {
        Some(limit) => {
            let factor = LONGER_ANSWER.saturating_pow(answers);
            request.with_least_limit(limit.saturating_mul(factor))
        }
        None => Ok(request),
    }
}

/// The next call of a run: for the rest of the document, or for all of it if none has begun.
pub fn next_call(
    run: &Continuation,
    ask: &NextCall,
    request: &dyn WireRequest,
    counter: &ChatCounter<'_>,
    options: &PlanOptions,
) -> Result<FittedCall, PromptError> {
    let request = &*with_longer_answer(request, run.short_answers())?;
    let wants_kpis = ask.wants == Wants::Kpis;
    let Some(base) = run.base().filter(|_| ask.strategy.is_some() || wants_kpis) else {
        return first_call(request, counter, options);
    };
    let tokens = counter.tokens();
    let measure = |value: &str| usize::try_from(tokens.count(value)).unwrap_or(usize::MAX);
    let rendered = |budget: usize| {
        let options = RenderOptions {
            budget,
            cut_value: CutValue::Tail,
            // Brackets and keys do not count against the budget, but they use the window.
            limit: Some(budget * 4),
            look_back: Some(LOOK_BACK),
            ..RenderOptions::default()
        };
        base.render_with(&options, &measure)
    };
    if ask.strategy == Some(Strategy::Prefill) {
        let window = usize::try_from(options.window).unwrap_or(usize::MAX);
        let budgets = [2, 4, 8, 16].map(|part| window / part);
        let budgets = budgets.into_iter().filter(|it| *it > LEAST_RENDERED);
        let keeps_blank = ask.overlap.ends_with(char::is_whitespace);
        let rendered = |budget: usize| {
            let mut text = rendered(budget);
            if !keeps_blank {
                text.truncate(split_blank(&text).0.len());
            }
            text
        };
        let prefills = iter::once(ask.overlap.clone()).chain(budgets.map(&rendered));
        return prefill_call(
            prefills,
            &rendered(LEAST_RENDERED),
            request,
            counter,
            options,
        );
    }
    let showing = |outline: &str| {
        let words = match ask.wants {
            Wants::Kpis => kpi_words(run, ask, outline),
            Wants::Document | Wants::ProgressAndDocument | Wants::Text => {
                words(run, base, ask, outline)
            }
        };
        let strategy = ask.strategy;
        // Only a remainder is a document in the caller's response format.
        let keeps_format = strategy.is_some_and(Strategy::keeps_response_format);
        fit(request.with_words(&words, keeps_format)?, counter, options)
    };
    // The call without an outline, made only if it is needed.
    let mut without = None;
    for budget in OUTLINE_TOKENS {
        let Ok(fitted) = showing(&rendered(budget)) else {
            continue;
        };
        if fitted.has_room() {
            return Ok(fitted);
        }
        let without = match &mut without {
            Some(without) => without,
            none => none.insert(showing("")?),
        };
        if fitted.has_room_beside(without) {
            return Ok(fitted);
        }
    }
    without.map_or_else(|| showing(""), Ok)
}

/// A call with a prefill and no further instructions, so that the model continues as if it had
/// never stopped, and a prompt cache applies. Takes the first prefill that fits, else `least`.
fn prefill_call(
    mut prefills: impl Iterator<Item = String>,
    least: &str,
    request: &dyn WireRequest,
    counter: &ChatCounter<'_>,
    options: &PlanOptions,
) -> Result<FittedCall, PromptError> {
    let beginning = |prefill: &str| {
        let begun = begun_tokens(prefill, counter);
        let options = PlanOptions {
            window: options.window.saturating_sub(begun),
            ..options.clone()
        };
        let plan = plan(request, &Extras::default(), counter, &options)?;
        Ok::<_, PromptError>(fitted(plan, request.boxed(), Some(prefill.to_owned())))
    };
    let least = beginning(least);
    let fits = |fitted: &FittedCall| {
        let Ok(least) = &least else {
            return true;
        };
        let (plan, least) = (&fitted.plan, &least.plan);
        // However long the prefill is, the rest of the answer needs some room.
        let room = least.adjusted_max_tokens.min(options.window / 8);
        plan.dropped_messages.len() <= least.dropped_messages.len()
            && plan.adjusted_max_tokens >= room
    };
    let fitted = prefills.find_map(|prefill| beginning(&prefill).ok().filter(fits));
    fitted.map_or(least, Ok)
}

/// A call that continues a plain text from a prefill: the whole text if it fits, else the longest
/// end that does, in steps of a sixteenth of the window.
pub(crate) fn text_prefill_call(
    text: &str,
    request: &dyn WireRequest,
    counter: &ChatCounter<'_>,
    options: &PlanOptions,
) -> Result<FittedCall, PromptError> {
    let text = split_blank(text).0;
    let tokens = counter.text(text).max(1);
    let end = |budget: u64| {
        // Assumes the average tokens per byte of the whole text.
        let bytes = text.len() as u128 * u128::from(budget.min(tokens)) / u128::from(tokens);
        let start = text.len() - usize::try_from(bytes).unwrap_or(text.len());
        text[text.ceil_char_boundary(start)..].to_owned()
    };
    let parts = (1..16).rev().map(|part| options.window / 16 * part);
    let parts = parts.filter(|budget| *budget < tokens);
    let prefills = iter::once(text.to_owned()).chain(parts.map(end));
    prefill_call(
        prefills,
        &end(LEAST_RENDERED as u64),
        request,
        counter,
        options,
    )
}

/// A call for the rest of a plain text, which is shown as an assistant message.
pub(crate) fn text_call(
    run: &TextContinuation,
    request: &dyn WireRequest,
    counter: &ChatCounter<'_>,
    options: &PlanOptions,
) -> Result<FittedCall, PromptError> {
    let text = run.text();
    let shown = text.ceil_char_boundary(text.len().saturating_sub(SHOWN_TEXT));
    let words = text_words(run.overlap(), run.marker());
    fit(request.with_turn(&text[shown..], &words)?, counter, options)
}

/// The call for a correction of a complete document that violates its schema.
pub(crate) fn correction_call(
    run: &Continuation,
    violation: &str,
    request: &dyn WireRequest,
    counter: &ChatCounter<'_>,
    options: &PlanOptions,
) -> Result<FittedCall, PromptError> {
    // The document may come from several answers, but its correction must fit one.
    let needed = counter.text(run.text()).saturating_mul(2);
    let request = request.with_least_limit(needed)?;
    let words = correction_words(violation);
    fit(request.with_turn(run.text(), &words)?, counter, options)
}

/// The most tokens that a prefill takes in addition to its text.
const PER_MESSAGE: u64 = 8;

/// The tokens of a prefill in a request.
pub(crate) fn begun_tokens(prefill: &str, counter: &ChatCounter<'_>) -> u64 {
    counter.text(prefill).saturating_add(PER_MESSAGE)
}

fn fitted(plan: Plan, request: Box<dyn WireRequest>, prefill: Option<String>) -> FittedCall {
    let request = request.into_call(&plan);
    FittedCall {
        call: Call { request, prefill },
        plan,
    }
}
