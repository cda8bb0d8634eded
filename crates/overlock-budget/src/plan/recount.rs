//! Does what is sent count what was planned?
//!
//! Where messages add up it does, and the first plan is the last. Where a template writes the
//! chat, parts are estimates: what is sent is counted as a whole, the difference is taken into
//! account, and it is planned again until nothing more is gained.

use super::layout::Planner;
use super::options::{Extras, PlanOptions};
use super::{Plan, PlanError};
use crate::chat::{ChatCounter, ChatRequest};

/// After so many plans one that fits is good enough.
const ENOUGH: u32 = 4;

pub(super) fn plan(
    request: &ChatRequest,
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
        let planner = Planner::new(request, extras, counter, options, correction);
        let mut plan = match planner.plan() {
            Ok(plan) => plan,
            Err(refused) => return best.ok_or(refused),
        };
        let sent = ChatRequest::from_value(plan.rewrite(request.clone())).ok();
        let Some(tokens) = sent.and_then(|sent| counter.whole(&sent)) else {
            let counter = counter.without_template();
            return Planner::new(request, extras, &counter, options, 0).plan();
        };

        let foreseen = plan.input_token_count.cast_signed();
        let difference = tokens.cast_signed().saturating_sub(foreseen);
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
        // What is too much is set aside; in the end more of it every time, so that this ends.
        let step = match rounds.checked_sub(ENOUGH) {
            _ if fits => difference,
            None => difference.max(1),
            Some(late) => difference.max(1).saturating_mul(2 << late.min(60)),
        };
        correction = correction.saturating_add(step);
    }
}

fn dropped(plan: &Plan) -> usize {
    plan.parts.iter().map(|part| part.dropped).sum()
}
