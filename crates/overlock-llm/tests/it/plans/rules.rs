//! Properties of plans under any rules: priorities, weights, bounds and switches.

use overlock_budget::{
    Extras, Part, PartOptions, Plan, PlanError, PlanOptions, Sharing, Trim, plan,
};
use overlock_llm::wire::chat::ChatRequest;
use proptest::prelude::*;

use super::laws::{Case, check_messages, counter, select, sketches};
use super::sketch::{Sketch, Words};

/// Returns the rules of a part.
type RulesOf = fn(&PlanOptions) -> &PartOptions;

/// Parts made of pieces, with their rules.
const PIECES: [(Part, RulesOf); 4] = [
    (Part::Tools, |options| &options.tools),
    (Part::History, |options| &options.history),
    (Part::Context, |options| &options.context),
    (Part::Memories, |options| &options.memories),
];

fn part_options() -> impl Strategy<Value = PartOptions> {
    let max = prop::option::weighted(0.3, 0..200_u64);
    let min = prop_oneof![3 => Just(0), 1 => 0..150_u64];
    (0..4_i32, 0..4_u32, min, max, prop::bool::weighted(0.1)).prop_map(
        |(priority, shrink, min, max, required)| PartOptions {
            priority,
            shrink,
            min: min.min(max.unwrap_or(min)),
            max,
            required,
        },
    )
}

fn rules() -> impl Strategy<Value = PlanOptions> {
    let parts = prop::array::uniform5(part_options());
    let sizes = (0..200_u64, 0..100_u64, 0..80_u64);
    let switches = (
        prop::bool::weighted(0.5),
        prop::sample::select(vec![1_usize, 1, 2, 5]),
    );
    (parts, sizes, switches, 0..6_usize).prop_map(|(parts, sizes, switches, count)| {
        let [tools, history, context, memories, completion] = parts;
        let (answer_floor, margin, summary_tokens) = sizes;
        let (fill_gaps, drop_step) = switches;
        let usual = PlanOptions::default();
        PlanOptions {
            tools,
            history,
            context,
            memories,
            completion,
            answer_floor,
            // Constant, so that plans differ only in what they keep.
            margin: Some(margin),
            summary_tokens,
            fill_gaps,
            drop_step,
            memory: overlock_budget::MemoryOptions {
                count,
                ..usual.memory
            },
            ..usual
        }
    })
}

fn check(sketch: &Sketch, rules: &PlanOptions, steps: &[u64]) {
    let texts = sketch.texts();
    let (memories, context) = sketch.extras(&texts);
    let counter = counter(&Words);
    let case = Case {
        request: ChatRequest::from_value(sketch.request()).expect("a sketch is a request"),
        extras: Extras {
            memories: &memories,
            context: &context,
            tool_importance: &[],
        },
        counter: &counter,
    };
    let usual = sketch.options();
    let options = PlanOptions {
        window: usual.window,
        sharing: usual.sharing,
        answer_cap: usual.answer_cap,
        requested: usual.requested,
        grow: usual.grow,
        trim: usual.trim,
        truncate_context: usual.truncate_context,
        results: usual.results,
        ..rules.clone()
    };
    let mut last: Option<Plan> = None;
    for step in steps {
        let window = options.window + step;
        let options = PlanOptions {
            window,
            ..options.clone()
        };
        let plan = match case.plan(&options) {
            Ok(plan) => plan,
            Err(error) => {
                assert!(
                    last.is_none(),
                    "what fits a window fits a larger one: {error}"
                );
                check_refused(&case, &options, &error);
                continue;
            }
        };
        check_one(&case, &plan, &options);
        if let Some(last) = &last
            && !options.fill_gaps
        {
            check_larger(last, &plan, &options, reserved(&case.request, &options));
        }
        last = Some(plan);
    }
}

/// The maximum of the answer.
fn cap(options: &PlanOptions) -> u64 {
    options.answer_cap.unwrap_or(match options.sharing {
        Sharing::Shared => u64::MAX,
        Sharing::Separate => options.window,
    })
}

/// The minimum of the answer.
fn floor(request: &ChatRequest, options: &PlanOptions) -> u64 {
    let requested = request.requested().unwrap_or(options.requested);
    requested.min(options.answer_floor).min(cap(options))
}

/// The part of the minimum that is taken from the window.
fn reserved(request: &ChatRequest, options: &PlanOptions) -> u64 {
    match options.sharing {
        Sharing::Shared => floor(request, options),
        Sharing::Separate => 0,
    }
}

fn check_one(case: &Case, plan: &Plan, options: &PlanOptions) {
    assert!(plan.fits(), "{:#?}", plan.parts);
    check_messages(case, plan);
    assert!(plan.adjusted_max_tokens >= floor(&case.request, options));
    assert!(plan.adjusted_max_tokens <= cap(options));
    assert!(options.grow || plan.adjusted_max_tokens <= plan.requested);

    let input = plan
        .parts
        .iter()
        .filter(|part| part.part != Part::Completion);
    assert_eq!(
        input.map(|part| part.given).sum::<u64>(),
        plan.input_token_count
    );
    for (part, rule) in PIECES {
        let (planned, rule) = (plan.part(part), rule(options));
        let is_required = rule.required
            || options.trim == Trim::Off && matches!(part, Part::Tools | Part::History);
        assert!(!is_required || planned.dropped == 0, "{planned:?}");
        // Tools have a frame of some tokens, and a summary replaces dropped messages.
        let max = rule.max.unwrap_or(u64::MAX);
        if !is_required && matches!(part, Part::Context | Part::Memories) {
            assert!(planned.given <= max, "{planned:?}");
        }
        if rule.shrink == 0 && options.drop_step == 1 && part != Part::Tools {
            assert!(planned.dropped == 0 || planned.kept == 0, "{planned:?}");
        }
    }
    check_priorities(plan, options);
    check_rewritten(case, plan, options);
}

/// Nothing is dropped while something of lower priority has more than its minimum.
fn check_priorities(plan: &Plan, options: &PlanOptions) {
    if options.fill_gaps || options.drop_step > 1 || options.trim != Trim::Oldest {
        return;
    }
    for (higher, rule) in PIECES {
        let (planned, rule) = (plan.part(higher), rule(options));
        // Parts over their maximum are dropped in any case.
        if planned.dropped == 0 || rule.max.is_some() {
            continue;
        }
        for (lower, lower_rule) in PIECES {
            let (other, lower_rule) = (plan.part(lower), lower_rule(options));
            let gives = !lower_rule.required && lower_rule.priority < rule.priority;
            // A named tool is kept.
            if gives && lower != Part::Tools && !options.truncate_context {
                let min = if lower_rule.shrink == 0 {
                    0
                } else {
                    lower_rule.min
                };
                assert!(other.given <= min, "{higher:?} {lower:?} {:#?}", plan.parts);
            }
        }
    }
}

fn check_rewritten(case: &Case, plan: &Plan, options: &PlanOptions) {
    let rewritten = case.request.clone().rewrite(plan);
    let request = ChatRequest::from_value(rewritten.clone()).expect("a plan is a request");
    assert_eq!(case.counter.count(&request).tokens, plan.input_token_count);
    assert_eq!(request.requested(), Some(plan.adjusted_max_tokens));
    let again = overlock_budget::plan(&request, &Extras::default(), case.counter, options);
    let again = again.expect("a plan fits");
    assert_eq!(request.rewrite(&again), rewritten);
}

/// A larger window keeps everything that a smaller one kept, and more only if that did not fit the
/// smaller one.
fn check_larger(small: &Plan, large: &Plan, options: &PlanOptions, reserved: u64) {
    let mut is_same = small.kept_messages == large.kept_messages;
    assert!(
        small
            .kept_messages
            .iter()
            .all(|place| large.kept_messages.contains(place))
    );
    for part in [Part::Tools, Part::Context, Part::Memories] {
        let (small, large) = (small.part(part).kept, large.part(part).kept);
        assert!(small <= large, "{part:?}");
        is_same &= small == large;
    }
    let exact =
        options.drop_step == 1 && options.trim != Trim::Summary && !options.truncate_context;
    if exact && !is_same {
        // An answer with a higher priority is served first.
        let answer = options.completion.priority;
        let is_last = PIECES
            .iter()
            .all(|(_, rule)| rule(options).priority >= answer);
        let needed = large.input_token_count + reserved + large.margin.tokens;
        assert!(
            !is_last || needed > small.window,
            "{needed} fit into {}",
            small.window
        );
    }
}

/// A plan fails only if the required parts are too large.
fn check_refused(case: &Case, options: &PlanOptions, error: &PlanError) {
    let text = error.to_string();
    assert!(!text.is_empty());
    let (messages, tools) = case.required();
    let all_messages = options.trim == Trim::Off || options.history.required;
    let all_tools = options.trim == Trim::Off || options.tools.required;
    let messages = if all_messages {
        (0..case.request.messages().len()).collect()
    } else {
        messages
    };
    let tools: Vec<usize> = (0..case.request.tools().len())
        .filter(|tool| all_tools || tools.contains(tool) || case.called(&messages).contains(tool))
        .collect();
    let mut whole = case.request.members().clone();
    select(&mut whole["messages"], &messages);
    if tools.is_empty() {
        whole.shift_remove("tools");
    } else {
        select(&mut whole["tools"], &tools);
    }
    let bare = ChatRequest::from_value(whole.into()).expect("some messages stay");
    // Plan the required parts alone in an unlimited window.
    let extras = Extras {
        memories: if options.memories.required {
            case.extras.memories
        } else {
            &[]
        },
        context: if options.context.required {
            case.extras.context
        } else {
            &[]
        },
        tool_importance: &[],
    };
    let endless = PlanOptions {
        window: 1 << 40,
        ..options.clone()
    };
    let endless = plan(&bare, &extras, case.counter, &endless).expect("it fits");
    let reserved = reserved(&case.request, options);
    let needed = endless.input_token_count + reserved + endless.margin.tokens;
    assert!(
        needed > options.window,
        "{needed} fit into {}: {error}",
        options.window
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_properties_hold_under_any_rules(
        sketch in sketches(),
        rules in rules(),
        steps in prop::collection::btree_set(0..600_u64, 1..6),
    ) {
        let steps: Vec<u64> = steps.into_iter().collect();
        check(&sketch, &rules, &steps);
    }
}
