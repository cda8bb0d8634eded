//! What is dropped fits in place of nothing that stays.

use overlock_budget::{
    ChatRole, ContextBlock, Extras, Memory, Part, Plan, PlanOptions, Sharing, Trim,
};
use overlock_llm::wire::chat::ChatRequest;

use super::laws::{Case, endless, pairs};

/// Nothing is dropped that fits in place of everything of lower priority: old results are marks, the
/// answer has its minimum, and memories give way before context, and context before messages.
pub(crate) fn check_order(case: &Case, plan: &Plan, options: &PlanOptions) {
    if options.trim != Trim::Oldest || options.truncate_context || !options.fill_gaps {
        return;
    }
    // Where results are truncated, nothing else could stay.
    let least = case.required();
    let kept = &plan.kept_messages;
    let tools = &plan.kept_tools;
    let (context, memories) = (plan.part(Part::Context).kept, plan.memory_count);
    if let Some(start) = next_turn(case, kept) {
        let mut more: Vec<usize> = (start..case.request.messages().len()).collect();
        more.extend(&least.0);
        more.sort_unstable();
        more.dedup();
        let mut tools: Vec<usize> = case
            .called(&more)
            .into_iter()
            .chain(tools.clone())
            .collect();
        tools.sort_unstable();
        tools.dedup();
        check_too_large(case, plan, options, &case.reduced(&more, &tools), (0, 0));
    }
    let request = case.reduced(kept, tools);
    if plan.part(Part::Context).dropped > 0 {
        check_too_large(case, plan, options, &request, (context + 1, 0));
    }
    let memories_fit = plan.part(Part::Memories).given < 2950;
    if plan.part(Part::Memories).dropped > 0 && memories_fit {
        check_too_large(case, plan, options, &request, (context, memories + 1));
    }
    let uncalled = (0..case.request.tools().len()).find(|place| !tools.contains(place));
    if let Some(place) = uncalled.filter(|_| case.called(kept).is_empty()) {
        let mut tools = tools.clone();
        tools.push(place);
        tools.sort_unstable();
        check_too_large(case, plan, options, &case.reduced(&least.0, &tools), (0, 0));
    }
}

/// This request does not fit with the first blocks of context and the first memories.
fn check_too_large(
    case: &Case,
    plan: &Plan,
    options: &PlanOptions,
    request: &ChatRequest,
    (context, memories): (usize, usize),
) {
    let mut told: Vec<Memory> = case.extras.memories.to_vec();
    told.retain(|memory| memory.importance >= 0.6 && memory.age_days <= 7.0);
    told.sort_by(|one, other| {
        let by_age = one.age_days.total_cmp(&other.age_days);
        other.importance.total_cmp(&one.importance).then(by_age)
    });
    told.truncate(memories);
    let context: Vec<ContextBlock> = case.extras.context[..context].to_vec();
    let extras = Extras {
        memories: &told,
        context: &context,
        tool_importance: &[],
    };
    let larger = overlock_budget::plan(request, &extras, case.counter, &endless(options, Some(0)));
    let larger = larger.expect("it fits an endless window");
    let requested = plan.requested.min(options.answer_cap.unwrap_or(u64::MAX));
    let floor = match options.sharing {
        Sharing::Shared => requested.min(options.answer_floor),
        Sharing::Separate => 0,
    };
    let provenance = case.counter.provenance(&case.request);
    let margin = provenance.margin(larger.input_token_count);
    let needed = larger.input_token_count + floor + margin;
    assert!(
        needed > options.window,
        "{needed} fit into {}",
        options.window
    );
}

/// Where the next older turn begins, if it was dropped.
fn next_turn(case: &Case, kept: &[usize]) -> Option<usize> {
    let roles: Vec<ChatRole> = case.request.messages().map(|one| one.role()).collect();
    let is_free = |place: &usize| roles[*place] != ChatRole::System;
    let start = kept.iter().copied().find(is_free)?;
    let pairs = pairs(&case.request);
    let divides = |place: usize| {
        pairs
            .iter()
            .all(|(call, result)| *call >= place || *result < place)
    };
    let turns = (0..start).rev();
    let mut turns =
        turns.filter(|&place| place == 0 || roles[place] == ChatRole::User && divides(place));
    turns.find(|&turn| (turn..start).any(|place| is_free(&place)))
}
