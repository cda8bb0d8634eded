//! Properties of plans, over a million random requests.

use std::collections::HashSet;

use overlock_budget::{
    ChatCounter, ChatRole, CountMessages, CountTokens, Encoding, Extras, Found, How, Message,
    Model, Part, Plan, PlanError, PlanOptions, ResultOptions, Role, Sharing, Trim, plan, trim,
};
use overlock_llm::wire::chat::{ChatMessage, ChatRequest, rewrite_text};
use proptest::prelude::*;
use serde_json::Value;

use super::numbers::Numbers;
use super::order::check_order;
use super::sketch::{LETTERS, RESULT_FLOOR, Sketch, Words};

pub(crate) fn counter(tokens: &dyn CountTokens) -> ChatCounter<'_> {
    let found = Found {
        // Its pictures in low detail fit small windows.
        entry: Some("gpt-4o".to_owned()),
        model: Model {
            tokenizer: Some(tokens.name().to_owned().into()),
            ..Model::default()
        },
        how: How::Exact,
    };
    ChatCounter::with_counter(&found, tokens)
}

/// A sketch with everything to plan it.
pub(crate) struct Case<'a> {
    pub(crate) request: ChatRequest,
    pub(crate) extras: Extras<'a>,
    pub(crate) counter: &'a ChatCounter<'a>,
}

impl Case<'_> {
    pub(crate) fn plan(&self, options: &PlanOptions) -> Result<Plan, PlanError> {
        plan(&self.request, &self.extras, self.counter, options)
    }

    /// The tokens of the request with only these messages and tools, plus its margin. Results of the
    /// open turn count as the mark or the truncated text they can become.
    fn tokens_of(&self, messages: &[usize], tools: &[usize], options: &PlanOptions) -> u64 {
        let request = self.reduced(messages, tools);
        let count = self.counter.count(&request);
        let all = count.tokens + count.provenance.margin(count.tokens);
        if options.trim == Trim::Off {
            return all;
        }
        let marked = plan(
            &request,
            &Extras::default(),
            self.counter,
            &endless(options, Some(0)),
        );
        let marked = marked.expect("it fits");
        let is_marked = |place| marked.shortened.iter().any(|it| it.message == place);
        let results = request.messages().zip(count.messages).enumerate();
        let results = results.filter(|(place, (message, _))| {
            message.role().in_history() == Role::Tool && !is_marked(*place)
        });
        let open = request.open_turn();
        let saved = results
            .filter(|(place, _)| *place >= open)
            .map(|(_, (_, tokens))| tokens.saturating_sub(RESULT_FLOOR));
        marked.input_token_count + marked.margin.tokens - saved.sum::<u64>()
    }

    /// The request with only these messages and tools.
    pub(crate) fn reduced(&self, messages: &[usize], tools: &[usize]) -> ChatRequest {
        let mut whole = self.request.members().clone();
        select(&mut whole["messages"], messages);
        if tools.is_empty() {
            whole.shift_remove("tools");
        } else {
            select(&mut whole["tools"], tools);
        }
        ChatRequest::from_value(Value::Object(whole)).expect("some messages stay")
    }

    /// The indexes of the messages and tools that a plan must keep.
    pub(crate) fn required(&self) -> (Vec<usize>, Vec<usize>) {
        let roles: Vec<ChatRole> = self.request.messages().map(|one| one.role()).collect();
        let open = open_start(&self.request);
        let messages =
            (0..roles.len()).filter(|&place| place >= open || roles[place] == ChatRole::System);
        let choice = self.request.members().get("tool_choice");
        let named = choice.map(|choice| &choice["function"]["name"]);
        let open: Vec<usize> = (open..roles.len()).collect();
        let called = self.called(&open);
        let tools = self.request.tools().iter().enumerate();
        let tools = tools.filter(|(place, tool)| {
            Some(&tool["function"]["name"]) == named || called.contains(place)
        });
        (messages.collect(), tools.map(|(place, _)| place).collect())
    }

    /// The indexes of the tools that these messages call.
    pub(crate) fn called(&self, messages: &[usize]) -> HashSet<usize> {
        let all: Vec<ChatMessage> = self.request.messages().collect();
        let mut names = HashSet::new();
        for &place in messages {
            let members = all[place].members();
            let calls = members.get("tool_calls").and_then(Value::as_array);
            let calls = calls.into_iter().flatten().map(|call| &call["function"]);
            names.extend(
                calls
                    .chain(members.get("function_call"))
                    .map(|call| &call["name"]),
            );
        }
        let tools = self.request.tools().iter().enumerate();
        let called = tools.filter(|(_, tool)| names.contains(&tool["function"]["name"]));
        called.map(|(place, _)| place).collect()
    }
}

/// The same options in an endless window, where results become marks above this many tokens.
pub(crate) fn endless(options: &PlanOptions, trigger: Option<u64>) -> PlanOptions {
    PlanOptions {
        window: 1 << 40,
        results: ResultOptions {
            trigger,
            ..options.results
        },
        ..options.clone()
    }
}

/// The start of the open turn: the last user message, or an earlier one if a tool call before it
/// has its result after it.
fn open_start(request: &ChatRequest) -> usize {
    let roles: Vec<ChatRole> = request.messages().map(|one| one.role()).collect();
    let question_before = |end: usize| {
        let question = roles[..end]
            .iter()
            .rposition(|role| *role == ChatRole::User);
        question.unwrap_or(0)
    };
    let pairs = pairs(request);
    let crosses =
        |start: usize| move |(call, result): &&(usize, usize)| *call < start && start <= *result;
    let mut start = question_before(roles.len());
    while let Some(&(call, _)) = pairs.iter().find(crosses(start)) {
        start = question_before(call);
    }
    start
}

/// The indexes of each tool call and its result.
pub(crate) fn pairs(request: &ChatRequest) -> Vec<(usize, usize)> {
    let mut callers: Vec<(&str, usize)> = Vec::new();
    let mut pairs = Vec::new();
    for (place, message) in request.messages().enumerate() {
        let members = message.members();
        if let Some(call) = members.get("tool_call_id").and_then(Value::as_str) {
            let caller = callers.iter().rev().find(|(id, _)| *id == call);
            pairs.extend(caller.map(|(_, caller)| (*caller, place)));
        }
        let calls = members.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            callers.push((call["id"].as_str().expect("a call has an id"), place));
        }
    }
    pairs
}

pub(crate) fn select(list: &mut Value, places: &[usize]) {
    let list = list.as_array_mut().expect("it is a list");
    *list = places.iter().map(|&place| list[place].clone()).collect();
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlanResult {
    Unchanged,
    Shortened,
    Trimmed,
    Refused,
}

/// Plans a sketch and checks every property; the order of what is dropped takes several plans.
fn check(sketch: &Sketch, counter: &ChatCounter, with_order: bool) -> PlanResult {
    let texts = sketch.texts();
    let (memories, context) = sketch.extras(&texts);
    let case = Case {
        request: ChatRequest::from_value(sketch.request()).expect("a sketch is a request"),
        extras: Extras {
            memories: &memories,
            context: &context,
            tool_importance: &[],
        },
        counter,
    };
    let options = sketch.options();
    let Ok(plan) = case.plan(&options) else {
        check_refused(&case, &options);
        return PlanResult::Refused;
    };
    check_figures(&plan, &options);
    if with_order {
        check_order(&case, &plan, &options);
    }
    check_messages(&case, &plan);
    check_rewritten(&case, &plan, &options);
    check_larger(&case, &plan, &options);
    check_against_trim(&case, &plan, &options);
    let dropped = plan.parts.iter().any(|part| part.dropped > 0);
    if dropped {
        PlanResult::Trimmed
    } else if plan.changes_messages() {
        PlanResult::Shortened
    } else {
        PlanResult::Unchanged
    }
}

/// A plan fails only if the required parts are too large.
fn check_refused(case: &Case, options: &PlanOptions) {
    let (mut messages, mut tools) = case.required();
    if options.trim == Trim::Off {
        messages = (0..case.request.messages().len()).collect();
        tools = (0..case.request.tools().len()).collect();
    }
    let requested = case.request.requested().unwrap_or(options.requested);
    let floor = requested
        .min(options.answer_floor)
        .min(options.answer_cap.unwrap_or(u64::MAX));
    let floor = if options.sharing == Sharing::Shared {
        floor
    } else {
        0
    };
    let needed = case.tokens_of(&messages, &tools, options) + floor;
    assert!(
        needed > options.window,
        "{needed} fit into {}",
        options.window
    );
}

/// All figures are within their bounds and add up.
fn check_figures(plan: &Plan, options: &PlanOptions) {
    assert!(plan.fits());
    assert!(plan.adjusted_max_tokens <= options.answer_cap.unwrap_or(u64::MAX));
    assert!(options.grow || plan.adjusted_max_tokens <= plan.requested);
    let floor = plan.requested.min(options.answer_floor);
    let floor = floor.min(options.answer_cap.unwrap_or(u64::MAX));
    assert!(plan.adjusted_max_tokens >= floor);
    let input = plan
        .parts
        .iter()
        .filter(|part| part.part != Part::Completion);
    let input: u64 = input.map(|part| part.given).sum();
    assert_eq!(input, plan.input_token_count);
    for part in &plan.parts {
        if !matches!(part.part, Part::Completion | Part::History | Part::Tools) {
            assert!(part.given <= part.asked, "{part:?}");
        }
        let may_grow = part.part == Part::Completion || options.trim == Trim::Summary;
        assert!(
            may_grow || part.dropped == 0 || part.given < part.asked,
            "{part:?}"
        );
    }
    assert!(plan.part(Part::Memories).given <= 3000);
    assert!(plan.memory_count <= 10);
}

/// System messages and the open turn are kept, and tool calls are kept with their results.
pub(crate) fn check_messages(case: &Case, plan: &Plan) {
    let kept: HashSet<usize> = plan.kept_messages.iter().copied().collect();
    assert!(plan.kept_messages.is_sorted() && plan.dropped_messages.is_sorted());
    let all = plan.kept_messages.len() + plan.dropped_messages.len();
    assert_eq!(all, case.request.messages().len());
    assert!(!kept.is_empty());
    assert!(case.required().0.iter().all(|place| kept.contains(place)));
    for (call, result) in pairs(&case.request) {
        assert_eq!(kept.contains(&call), kept.contains(&result));
    }
    let tools: HashSet<usize> = plan.kept_tools.iter().copied().collect();
    assert!(case.called(&plan.kept_messages).is_subset(&tools));
    for short in &plan.shortened {
        let message = case.request.messages().nth(short.message);
        let role = message.expect("it is in the request").role();
        assert_eq!(role.in_history(), Role::Tool);
        assert!(kept.contains(&short.message));
    }
}

/// The sent request has the planned tokens, and planning it again changes nothing.
fn check_rewritten(case: &Case, plan: &Plan, options: &PlanOptions) {
    let rewritten = case.request.clone().rewrite(plan);
    check_text(case, plan, &rewritten);
    let request = ChatRequest::from_value(rewritten.clone()).expect("a plan is a request");
    assert_eq!(case.counter.count(&request).tokens, plan.input_token_count);
    assert_eq!(request.requested(), Some(plan.adjusted_max_tokens));
    assert_eq!(request.tools().is_empty(), plan.part(Part::Tools).kept == 0);
    let again = overlock_budget::plan(&request, &Extras::default(), case.counter, options);
    let again = again.expect("a plan fits");
    assert!(!again.changes_messages());
    assert_eq!(request.rewrite(&again), rewritten);
}

/// Rewriting the text gives the same request, however it is formatted.
fn check_text(case: &Case, plan: &Plan, rewritten: &Value) {
    let request = Value::Object(case.request.members().clone());
    let text = rewrite_text(&request.to_string(), plan);
    assert_eq!(text, Some(rewritten.to_string()));
    let spaced = format!(" {request:#}\n");
    let text = rewrite_text(&spaced, plan).expect("there is no duplicate key");
    let parsed: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(parsed, *rewritten);
    if request == *rewritten {
        assert_eq!(text, spaced);
    }
}

/// A larger window keeps everything that a smaller one kept. If gaps are filled, it keeps more of the
/// most important part that differs.
fn check_larger(case: &Case, plan: &Plan, options: &PlanOptions) {
    let more = 1 + options.window % 61;
    let larger = PlanOptions {
        window: options.window + more,
        ..options.clone()
    };
    let larger = case
        .plan(&larger)
        .expect("what fits a window fits a larger one");
    if options.fill_gaps {
        let by_priority = |plan: &Plan| {
            let parts = [Part::Tools, Part::History, Part::Context, Part::Memories];
            parts.map(|part| plan.part(part).kept)
        };
        assert!(by_priority(plan) <= by_priority(&larger));
        return;
    }
    let kept: HashSet<usize> = larger.kept_messages.iter().copied().collect();
    assert!(plan.kept_messages.iter().all(|place| kept.contains(place)));
    for part in [Part::Tools, Part::Context, Part::Memories] {
        assert!(plan.part(part).kept <= larger.part(part).kept, "{part:?}");
    }
}

/// Messages are trimmed like a conversation with the whole room, and the answer gets the rest.
fn check_against_trim(case: &Case, plan: &Plan, options: &PlanOptions) {
    let requested = plan.requested.min(options.answer_cap.unwrap_or(u64::MAX));
    let shared = options.sharing == Sharing::Shared;
    if shared && !options.grow {
        assert_eq!(plan.adjusted_max_tokens, requested.min(plan.available));
    }
    if options.trim != Trim::Oldest || plan.part(Part::Tools).dropped > 0 {
        return;
    }
    let floor = if shared {
        requested.min(options.answer_floor)
    } else {
        0
    };
    let taken = [Part::Frame, Part::Tools].map(|part| plan.part(part).asked);
    let margin = case.counter.provenance(&case.request).margin(0);
    let taken = taken.iter().sum::<u64>() + margin + floor;
    let counted = case.counter.count(&case.request).messages;
    let messages = case.request.messages().zip(counted);
    let messages: Vec<Counted> = messages.map(|(message, it)| Counted(message, it)).collect();
    let limit = options.window.saturating_sub(taken);
    let has_short = !plan.shortened.is_empty();
    if let Ok(trimmed) = trim(&messages, limit, &Sum) {
        // Marks leave room for more messages.
        let more = trimmed
            .kept
            .iter()
            .all(|place| plan.kept_messages.contains(place));
        assert!(more && (has_short || plan.kept_messages == trimmed.kept));
    } else {
        assert!(
            has_short || plan.margin.tokens < margin,
            "it fits only without optional parts"
        );
    }
}

/// A message and its tokens.
struct Counted<'a>(ChatMessage<'a>, u64);

impl Message for Counted<'_> {
    fn role(&self) -> Role {
        Message::role(&self.0)
    }

    fn calls(&self) -> Vec<&str> {
        self.0.calls()
    }

    fn answers(&self) -> Vec<&str> {
        self.0.answers()
    }
}

struct Sum;

impl CountMessages<Counted<'_>> for Sum {
    fn message(&self, message: &Counted<'_>, _limit: u64) -> u64 {
        message.1
    }

    fn conversation(&self, messages: &[&Counted<'_>]) -> u64 {
        messages.iter().map(|message| message.1).sum()
    }
}

pub(crate) fn sketches() -> impl Strategy<Value = Sketch> {
    let letters = prop::sample::select(LETTERS);
    let messages = prop::collection::vec((letters, 0..40_u8), 1..20);
    let tools = prop::collection::vec(0..40_u8, 0..6);
    let memories = prop::collection::vec((0..11_u8, 0..10_u8, 0..40_u8), 0..5);
    let context = prop::collection::vec(0..60_u8, 0..5);
    let sizes = (
        prop::option::of(0..400_u16),
        0..1500_u16,
        prop::option::of(0..300_u16),
    );
    let switches = (
        any::<[bool; 4]>(),
        (0..3_u8, 1..4_u8),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
    );
    let trims = prop::sample::select(vec![Trim::Oldest, Trim::Oldest, Trim::Summary, Trim::Off]);
    let rest = (sizes, switches, trims);
    (messages, tools, memories, context, rest).prop_map(
        |(messages, tools, memories, context, rest)| {
            let (sizes, switches, trim) = rest;
            let (requested, window, cap) = sizes;
            let ([schema, grow, truncate, fill_gaps], results, named, separate) = switches;
            Sketch {
                messages,
                named: (named && !tools.is_empty()).then_some(0),
                tools,
                schema,
                memories,
                context,
                requested,
                window,
                cap,
                separate,
                grow,
                truncate,
                fill_gaps,
                results,
                trim,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_properties_hold_for_every_request(sketch in sketches()) {
        check(&sketch, &counter(&Words), true);
    }
}

/// The number of requests by result.
#[derive(Debug, Default, PartialEq, Eq)]
struct ResultCounts {
    all: u64,
    trimmed: u64,
    shortened: u64,
    refused: u64,
    with_tools: u64,
    encoded: u64,
}

fn check_many(seed: u64, count: u64) -> ResultCounts {
    let mut numbers = Numbers(seed);
    let mut counts = ResultCounts::default();
    let (words, encoding) = (counter(&Words), counter(&Encoding::O200kBase));
    for number in 0..count {
        let sketch = numbers.sketch();
        // A real tokenizer is slow, so it counts only some of them.
        let encoded = number % 20 == 0;
        let outcome = if encoded {
            check(&sketch, &encoding, false)
        } else {
            check(&sketch, &words, number % 10 == 1)
        };
        counts.all += 1;
        counts.trimmed += u64::from(outcome == PlanResult::Trimmed);
        counts.shortened += u64::from(outcome == PlanResult::Shortened);
        counts.refused += u64::from(outcome == PlanResult::Refused);
        counts.with_tools += u64::from(!sketch.tools.is_empty());
        counts.encoded += u64::from(encoded);
    }
    counts
}

/// Checks the properties on the same requests every time, on several threads.
fn check_requests(count: u64) -> ResultCounts {
    const THREADS: u64 = 4;
    let counts: Vec<ResultCounts> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| scope.spawn(move || check_many(seed << 32, count / THREADS)))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<ResultCounts>| thread.join();
        threads
            .into_iter()
            .map(|thread| join(thread).expect("the properties hold"))
            .collect()
    });
    let sum = |field: fn(&ResultCounts) -> u64| counts.iter().map(field).sum();
    ResultCounts {
        all: sum(|counts| counts.all),
        trimmed: sum(|counts| counts.trimmed),
        shortened: sum(|counts| counts.shortened),
        refused: sum(|counts| counts.refused),
        with_tools: sum(|counts| counts.with_tools),
        encoded: sum(|counts| counts.encoded),
    }
}

#[test]
fn the_properties_hold_for_many_requests() {
    let expected = ResultCounts {
        all: 100_000,
        trimmed: 43_461,
        shortened: 5_531,
        refused: 29_438,
        with_tools: 25_057,
        encoded: 5_000,
    };
    assert_eq!(check_requests(100_000), expected);
}

#[test]
#[ignore = "takes minutes: run cargo xtask test --long"]
fn the_properties_hold_for_a_million_requests() {
    let expected = ResultCounts {
        all: 1_000_000,
        trimmed: 436_845,
        shortened: 56_392,
        refused: 292_080,
        with_tools: 249_866,
        encoded: 50_000,
    };
    assert_eq!(check_requests(1_000_000), expected);
}
