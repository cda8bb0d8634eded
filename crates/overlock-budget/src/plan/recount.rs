//! Plans again until the plan agrees with the count of the whole request.
//!
//! If message counts add up, the first plan is final. If a template writes the chat, the counts of
//! parts are estimates: the request is counted as a whole, the difference is added, and the plan is
//! repeated until it no longer improves.

use super::layout::Planner;
use super::options::{Extras, PlanOptions};
use super::{Plan, PlanError};
use crate::chat::{ChatCounter, Request};

/// After this many plans, one that fits is good enough.
const ENOUGH: u32 = 4;

pub(super) fn plan(
    request: &dyn Request,
    extras: &Extras,
    counter: &ChatCounter,
    options: &PlanOptions,
) -> Result<Plan, PlanError> {
    if !counter.has_template() {
        return Planner::new(request, extras, counter, options, 0).plan();
    }
    let mut correction = 0_i64;
    let mut best: Option<Plan> = None;
    let mut rounds = 0;
    loop {
        rounds += 1;
        let mut planner = Planner::new(request, extras, counter, options, correction);
        let Ok(mut plan) = planner.plan() else {
            return best.map_or_else(|| least(request, extras, counter, options), Ok);
        };
        let Some(tokens) = planner.whole(plan.messages(), &plan.kept_tools) else {
            return without_template(request, extras, counter, options);
        };

        let difference = difference(tokens, plan.input_token_count);
        let fits = planner.recount(&mut plan, tokens);
        if fits
            && best
                .as_ref()
                .is_none_or(|best| dropped(&plan) < dropped(best))
        {
            best = Some(plan);
        }
        let is_enough = difference == 0 || rounds >= ENOUGH;
        if let Some(best) = best.take_if(|_| is_enough) {
            return Ok(best);
        }
        // The excess is set aside, at the end more of it each time, so that this terminates.
        let step = match rounds.checked_sub(ENOUGH) {
            _ if fits => difference,
            None => difference.max(1),
            Some(late) => difference.max(1).saturating_mul(2 << late.min(60)),
        };
        correction = correction.saturating_add(step);
    }
}

/// Plans only the required parts, counted as they are sent: corrections for larger requests say
/// nothing about them.
pub(super) fn least(
    request: &dyn Request,
    extras: &Extras,
    counter: &ChatCounter,
    options: &PlanOptions,
) -> Result<Plan, PlanError> {
    if !counter.has_template() {
        return Planner::new(request, extras, counter, options, 0).plan_least();
    }
    let planner = Planner::new(request, extras, counter, options, 0);
    let Some((tokens, foreseen)) = planner.least_tokens() else {
        return without_template(request, extras, counter, options);
    };
    let mut correction = difference(tokens, foreseen);
    loop {
        let mut planner = Planner::new(request, extras, counter, options, correction);
        let mut plan = planner.plan_least()?;
        let Some(tokens) = planner.whole(plan.messages(), &plan.kept_tools) else {
            return without_template(request, extras, counter, options);
        };
        // Truncated results may have more tokens in the template than were set aside.
        let more = difference(tokens, plan.input_token_count);
        if planner.recount(&mut plan, tokens) {
            return Ok(plan);
        }
        correction = correction.saturating_add(more.max(1));
    }
}

fn without_template(
    request: &dyn Request,
    extras: &Extras,
    counter: &ChatCounter,
    options: &PlanOptions,
) -> Result<Plan, PlanError> {
    let counter = counter.without_template();
    Planner::new(request, extras, &counter, options, 0).plan()
}

fn difference(tokens: u64, foreseen: u64) -> i64 {
    tokens.cast_signed().saturating_sub(foreseen.cast_signed())
}

fn dropped(plan: &Plan) -> usize {
    plan.parts.iter().map(|part| part.dropped).sum()
}
