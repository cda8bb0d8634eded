//! Plans that can be checked by hand, and properties of plans with a chat template.

use proptest::prelude::*;
use serde_json::{Value, json};

use overlock_budget::{
    Adjustment, ChatCounter, ContextBlock, CountChats, CountTokens, Extras, Found, Help, How,
    Memory, Model, Part, Plan, PlanOptions, Sharing, Trim, plan,
};
use overlock_llm::wire::chat::{ChatRequest, rewrite_text};

use super::sketch::Words;

fn counter() -> ChatCounter<'static> {
    let found = Found {
        entry: Some("words".to_owned()),
        model: Model {
            tokenizer: Some("cl100k_base".into()),
            ..Model::default()
        },
        how: How::Exact,
    };
    ChatCounter::with_counter(&found, &Words)
}

fn words(count: usize) -> String {
    vec!["word"; count].join(" ")
}

/// A conversation of messages of ten tokens: `s`, `u` and `a` speak as their roles.
fn conversation(letters: &str) -> Vec<Value> {
    let message = |letter: char| {
        let role = match letter {
            's' => "system",
            'u' => "user",
            _ => "assistant",
        };
        json!({"role": role, "content": words(6)})
    };
    letters.chars().map(message).collect()
}

fn request(value: Value) -> ChatRequest {
    ChatRequest::from_value(value).expect("it is a request")
}

/// A window with room for this many tokens in addition to the margin and the three tokens before
/// the answer.
fn options(room: u64) -> PlanOptions {
    PlanOptions {
        window: 50 + 3 + room,
        ..PlanOptions::default()
    }
}

#[track_caller]
fn planned(request: &ChatRequest, extras: &Extras, options: &PlanOptions) -> Plan {
    let plan = plan(request, extras, &counter(), options).expect("it fits");
    assert!(plan.fits());
    plan
}

#[track_caller]
fn check_kept(letters: &str, room: u64, expected: &[usize]) {
    let request = request(json!({"messages": conversation(letters), "max_tokens": 20}));
    let plan = planned(&request, &Extras::default(), &options(room + 20));
    assert_eq!(plan.kept_messages, expected, "{letters} in {room}");
}

#[test]
fn the_oldest_messages_go_first() {
    check_kept("suauau", 60, &[0, 1, 2, 3, 4, 5]);
    check_kept("suauau", 59, &[0, 3, 4, 5]);
    check_kept("suauau", 39, &[0, 5]);
    check_kept("suauau", 20, &[0, 5]);
}

#[test]
fn a_pending_tool_result_is_never_dropped() {
    let call =
        json!({"id": "x", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let mut messages = conversation("suau");
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    messages.push(json!({"role": "tool", "tool_call_id": "x", "content": words(100)}));
    let request = request(json!({"messages": messages, "max_tokens": 20}));

    let options = |room| PlanOptions {
        margin: Some(50),
        ..options(room)
    };
    let everything = planned(&request, &Extras::default(), &options(1000));
    assert_eq!(everything.part(Part::OpenTurn).kept, 2);
    let history = everything.part(Part::History).given;
    let needed = everything.input_token_count - history + 20 - 3;
    let trimmed = planned(&request, &Extras::default(), &options(needed));
    assert_eq!(trimmed.kept_messages, [0, 3, 4, 5]);

    let refused = plan(
        &request,
        &Extras::default(),
        &counter(),
        &options(needed - 1),
    );
    let error = refused.expect_err("the result must stay").to_string();
    assert!(error.contains("which is 1 more than the window"), "{error}");
    assert!(
        error.ends_with("the largest part is `open turn`"),
        "{error}"
    );
}

#[test]
fn without_a_user_message_nothing_is_dropped() {
    check_kept("saaa", 40, &[0, 1, 2, 3]);
    let request = request(json!({"messages": conversation("saaa"), "max_tokens": 20}));
    let refused = plan(&request, &Extras::default(), &counter(), &options(59));
    refused.expect_err("nothing may go");
}

#[test]
fn the_answer_shrinks_first() {
    let request = request(json!({"messages": conversation("suauau"), "max_tokens": 2000}));
    let plan = planned(&request, &Extras::default(), &options(1000));
    assert_eq!(plan.dropped_messages, Vec::<usize>::new());
    assert_eq!((plan.requested, plan.adjusted_max_tokens), (2000, 940));
    assert_eq!(plan.adjustment, Adjustment::Reduced);
    assert_eq!(
        plan.part(Part::Completion).change.to_string(),
        "shrank by 1060 (weight 1 of 1)"
    );
}

#[test]
fn an_answer_outside_the_window_does_not_shrink_it() {
    let request = request(json!({"messages": conversation("suauau"), "max_tokens": 2000}));
    let options = PlanOptions {
        sharing: Sharing::Separate,
        answer_cap: Some(1500),
        ..options(45)
    };
    let plan = planned(&request, &Extras::default(), &options);
    assert_eq!(plan.kept_messages, [0, 3, 4, 5]);
    assert_eq!(
        (plan.adjusted_max_tokens, plan.adjustment),
        (1500, Adjustment::Capped)
    );
}

#[test]
fn an_answer_that_may_grow_uses_the_free_tokens() {
    let request = request(json!({"messages": conversation("u"), "max_tokens": 20}));
    let options = PlanOptions {
        grow: true,
        ..options(500)
    };
    let plan = planned(&request, &Extras::default(), &options);
    assert_eq!((plan.adjusted_max_tokens, plan.unused()), (490, 0));
    assert_eq!(plan.adjustment, Adjustment::Grown);
}

#[test]
fn an_error_names_the_largest_part_and_what_helps() {
    let request = request(json!({"messages": conversation("su"), "max_tokens": 20}));
    let error = plan(&request, &Extras::default(), &counter(), &options(30));
    let error = error.expect_err("it does not fit");
    assert_eq!(
        error.to_string(),
        "what must be in the window needs 43 tokens and a margin of 50, which is 10 more than \
         the window of 83; the largest part is `completion`"
    );
    let help: Vec<String> = error.help().iter().map(Help::to_string).collect();
    assert_eq!(help[0], "shorten `completion` from 20 to 10 tokens");
    assert_eq!(help[3], "use a model with a window of at least 93 tokens");
}

#[test]
fn trims_nothing_with_trim_off() {
    let request = request(json!({"messages": conversation("suauau"), "max_tokens": 20}));
    let off = |room| PlanOptions {
        trim: Trim::Off,
        ..options(room)
    };
    let whole = planned(&request, &Extras::default(), &off(80));
    assert_eq!(whole.kept_messages.len(), 6);
    let error = plan(&request, &Extras::default(), &counter(), &off(79));
    let error = error.expect_err("it does not fit").to_string();
    assert!(error.ends_with("the largest part is `history`"), "{error}");
}

/// A tool of eleven tokens.
fn tool(name: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {}});
    json!({"type": "function", "function": {
        "name": name, "description": words(4), "parameters": parameters,
    }})
}

/// Checks the names of the kept tools.
#[track_caller]
fn check_tools(choice: &Value, importance: &[f64], room: u64, expected: &[&str]) {
    let request = request(json!({
        "messages": conversation("u"),
        "tools": [tool("a"), tool("b"), tool("c")],
        "tool_choice": choice,
        "parallel_tool_calls": true,
        "max_tokens": 0,
    }));
    let extras = Extras {
        tool_importance: importance,
        ..Extras::default()
    };
    let options = PlanOptions {
        margin: Some(50),
        ..options(10 + room)
    };
    let plan = planned(&request, &extras, &options);
    let all = request.tools().len();
    let sent = request.rewrite(&plan);
    let names = sent["tools"].as_array().into_iter().flatten();
    let names: Vec<&str> = names
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert_eq!(names, expected, "{choice} in {room}");
    let has = |key| sent.get(key).is_some();
    assert_eq!(has("tool_choice"), !names.is_empty());
    assert_eq!(has("parallel_tool_calls"), !names.is_empty());
    let tools = plan.part(Part::Tools);
    assert_eq!(
        (tools.kept, tools.dropped_names.len()),
        (names.len(), all - names.len())
    );
}

#[test]
fn the_least_important_tool_goes_first() {
    let auto = json!("auto");
    // Nine around the tools, and seven words of the namespace.
    let frame = 16;
    check_tools(&auto, &[], frame + 33, &["a", "b", "c"]);
    check_tools(&auto, &[], frame + 32, &["a", "b"]);
    check_tools(&auto, &[], frame + 11, &["a"]);
    check_tools(&auto, &[], frame + 10, &[]);
    check_tools(&auto, &[0.1, 0.9, 0.5], frame + 22, &["b", "c"]);
    let named = json!({"type": "function", "function": {"name": "c"}});
    check_tools(&named, &[], frame + 5 + 22, &["a", "c"]);
    check_tools(&named, &[], frame + 5 + 11, &["c"]);
}

#[test]
fn includes_important_and_recent_memories() {
    let memory = |text, importance, age_days| Memory {
        text,
        importance,
        age_days,
    };
    let memories = [
        memory("just enough", 0.6, 7.0),
        memory("too little", 0.59, 0.0),
        memory("too old", 1.0, 7.1),
        memory("the most", 0.9, 1.0),
        memory("not a number", f64::NAN, f64::NAN),
    ];
    let extras = Extras {
        memories: &memories,
        ..Extras::default()
    };
    let request = request(json!({"messages": conversation("su"), "max_tokens": 0}));
    let plan = planned(&request, &extras, &options(100));
    assert_eq!(plan.memory_count, 2);
    let sent = request.clone().rewrite(&plan);
    assert_eq!(
        sent["messages"][1]["content"],
        "[Memories]\n- the most\n- just enough"
    );
    assert_eq!(sent["messages"][2]["role"], "user");

    let plan = planned(&request, &extras, &options(20 + 4 + 1 + 3));
    assert_eq!(plan.part(Part::Memories).dropped_names, ["just enough"]);
}

#[test]
fn the_last_blocks_of_context_go_first_or_are_cut() {
    let text = words(40);
    let block = |name| ContextBlock { name, text: &text };
    let context = [block("first"), block("second")];
    let extras = Extras {
        context: &context,
        ..Extras::default()
    };
    let request = request(json!({"messages": conversation("su"), "max_tokens": 0}));
    let whole = planned(&request, &extras, &options(20 + 2 * 46));
    assert_eq!(whole.part(Part::Context).kept, 2);
    let cut = PlanOptions {
        truncate_context: true,
        ..options(20 + 2 * 46 - 1)
    };
    let plan = planned(&request, &extras, &cut);
    assert_eq!(plan.part(Part::Context).dropped_names, ["second"]);
    assert_eq!(plan.unused(), 0);
    let sent = request.clone().rewrite(&plan);
    let contents = sent["messages"].as_array().expect("there are messages");
    let starts = |place: usize, start| {
        contents[place]["content"]
            .as_str()
            .map(|text| text.starts_with(start))
    };
    assert_eq!(starts(1, "[Context: first]\nword word"), Some(true));
    assert_eq!(starts(2, "[Context: second]\nword word"), Some(true));
    assert_eq!(contents[3]["role"], "user");
}

#[test]
fn summarises_each_dropped_message_in_a_line() {
    let mut messages = conversation("suauau");
    messages[1]["content"] = json!("What is the longest river?\nPlease.");
    messages[2]["content"] = json!("The Nile.");
    messages[3]["content"] = json!(words(300));
    let request = request(json!({"messages": messages, "max_tokens": 0}));
    let options = PlanOptions {
        trim: Trim::Summary,
        ..options(200)
    };
    let plan = planned(&request, &Extras::default(), &options);
    let sent = request.rewrite(&plan);
    assert_eq!(plan.kept_messages, [0, 5]);
    let summary = sent["messages"][1]["content"]
        .as_str()
        .expect("it is a text");
    let lines: Vec<&str> = summary.lines().collect();
    assert_eq!(lines[0], "[Earlier conversation (4 messages)]");
    assert_eq!(
        lines[1..3],
        ["user: What is the longest river?", "assistant: The Nile."]
    );
    assert!(lines[3].starts_with("user: word word") && lines[3].ends_with('…'));
}

#[test]
fn the_same_messages_go_for_several_turns() {
    let kept = |turns: usize| {
        let messages = conversation(&("ua".repeat(turns) + "u"));
        let request = request(json!({"messages": messages, "max_tokens": 0}));
        let options = PlanOptions {
            drop_step: 8,
            ..options(200)
        };
        planned(&request, &Extras::default(), &options).kept_messages[0]
    };
    let starts: Vec<usize> = (9..19).map(kept).collect();
    assert_eq!(starts, [0, 8, 8, 8, 8, 16, 16, 16, 16, 24]);
}

#[test]
fn changes_only_what_it_must() {
    let text = r#"{"zeta": 1.000000000000000000000000000001, "messages": [
        {"role": "user", "content": "a b", "odd": [null]},
        {"role": "user", "content": "c"}
    ], "max_tokens": 9, "alpha": {"b": 1, "a": 2}, "seed": 123456789012345678901234567890}"#;
    let request = ChatRequest::from_json(text).expect("it is a request");
    let whole = request.clone().into_value();
    let plan_all = planned(&request, &Extras::default(), &options(100));
    assert_eq!(
        request.clone().rewrite(&plan_all).to_string(),
        whole.to_string()
    );

    let plan = planned(&request, &Extras::default(), &options(14));
    let sent = request.rewrite(&plan).to_string();
    assert_eq!(
        sent,
        r#"{"zeta":1.000000000000000000000000000001,"messages":[{"role":"user","content":"c"}],"max_tokens":9,"alpha":{"b":1,"a":2},"seed":123456789012345678901234567890}"#
    );
}

#[test]
fn explains_every_figure() {
    let request = request(json!({"messages": conversation("suauau"), "max_tokens": 20}));
    let plan = planned(&request, &Extras::default(), &options(65));
    assert_eq!(
        plan.explanation(),
        [
            "window: 118 tokens, of which 50 are left free because the count by `cl100k_base` is exact",
            "system prompt: 10 of 10 tokens, as wanted",
            "last user message: 10 of 10 tokens, as wanted",
            "frame: 3 of 3 tokens, as wanted",
            "history: 20 of at least 26 tokens, shrank by at least 6 (weight 3 of 3); whole messages \
             take 20 of its share of 25; 2 of 4 messages stay",
            "completion: 20 of 20 tokens, as wanted",
            "answer: 20 requested, 25 available in the window, 20 given (granted)",
            "what takes the most room and cannot shrink is `completion`, which keeps at least 20 tokens",
        ]
    );
}

#[test]
fn an_explanation_names_the_given_tokens() {
    let explain = |letters: &str, asked: u64, options: &PlanOptions| {
        let request = request(json!({"messages": conversation(letters), "max_tokens": asked}));
        let plan = planned(&request, &Extras::default(), options);
        let completion = plan.part(Part::Completion);
        (completion.given, completion.explanation())
    };
    let options = |room| PlanOptions {
        answer_floor: 5,
        ..options(room)
    };
    // The kept messages leave more than the minimum of an answer.
    assert_eq!(
        explain("suauau", 20, &options(32)),
        (
            12,
            "shrank by 8 (weight 1 of 1); 5 are its share, 7 more are what others leave".into()
        )
    );
    assert_eq!(
        explain("su", 20, &options(25)),
        (5, "shrank by 15 (weight 1 of 1), to its minimum".into())
    );
    let capped = PlanOptions {
        answer_cap: Some(12),
        ..options(100)
    };
    assert_eq!(
        explain("su", 20, &capped),
        (12, "8 less than asked, since the model says no more".into())
    );
    let growing = PlanOptions {
        grow: true,
        ..options(100)
    };
    let (given, explanation) = explain("su", 20, &growing);
    assert_eq!(
        explanation,
        format!("grew by {} (weight 1 of 1)", given - 20)
    );
}

#[test]
fn unchanged_values_keep_their_formatting() {
    let rewrite = |text: &str, room: u64| {
        let request = ChatRequest::from_json(text).expect("it is a request");
        rewrite_text(text, &planned(&request, &Extras::default(), &options(room)))
    };
    let message = |text: &str| format!(r#"{{"role": "user", "content": "{text}", "k": 1E5}}"#);
    let (old, new) = (message("a b c d \\u0065"), message(r"\/ \u0069"));
    let text = |messages: &str, answer: &str| {
        format!(
            "{{\n  \"seed\": 1e3,\n  \"messages\": [ {messages} ],\n  \
             \"big\": [1.50, -0.0, 12345678901234567890123]{answer}\n}}\n"
        )
    };
    let both = format!("{old} , {new}");
    let asked = ",\n  \"max_tokens\": 10";
    let whole = text(&both, asked);
    assert_eq!(rewrite(&whole, 30).as_ref(), Some(&whole));
    assert_eq!(rewrite(&whole, 16), Some(text(&new, asked)));
    assert_eq!(
        rewrite(&text(&both, ""), 6 + 9 + 500),
        Some(text(&both, ",\n  \"max_tokens\": 500"))
    );
    // It is unclear which of the two was counted.
    let twice = r#"{"messages": [], "messages": [{"role": "user", "content": "a"}]}"#;
    assert_eq!(rewrite(twice, 505), None);
}

/// A template with two unexpected tokens per message.
struct Surprising;

impl CountChats for Surprising {
    fn count_chat(&self, messages: &Value, _: Option<&Value>) -> Option<u64> {
        let messages = messages.as_array()?.iter();
        let tokens = |message: &Value| Some(Words.count(message["content"].as_str()?) + 4 + 2);
        messages.map(tokens).sum()
    }
}

/// A template with additional tokens for each assistant message and once for all of them.
struct Verbose {
    each: u64,
    once: u64,
}

impl CountChats for Verbose {
    fn count_chat(&self, messages: &Value, _: Option<&Value>) -> Option<u64> {
        let messages = messages.as_array()?;
        let words = messages.iter().map(|message| message["content"].as_str());
        let words = words.map(|text| Some(Words.count(text?)));
        let words: u64 = words.sum::<Option<u64>>()?;
        let answers = messages.iter().filter(|one| one["role"] == "assistant");
        let answers = answers.count() as u64;
        Some(words + self.each * answers + self.once * answers.min(1))
    }
}

fn counter_with(template: &dyn CountChats) -> ChatCounter<'_> {
    let found = Found {
        entry: None,
        model: Model::default(),
        how: How::Exact,
    };
    ChatCounter::with_template(&found, &Words, template)
}

#[test]
fn a_templated_chat_is_rejected_only_if_its_total_is_too_large() {
    let verbose = Verbose { each: 0, once: 100 };
    let counter = counter_with(&verbose);
    let request = request(json!({"messages": conversation("ssssuauau"), "max_tokens": 0}));
    let window = |room: u64| PlanOptions {
        window: 50 + room,
        ..PlanOptions::default()
    };
    let plan = |room: u64| plan(&request, &Extras::default(), &counter, &window(room));
    for room in 30..200_u64 {
        let plan = plan(room).expect("it fits");
        assert!(plan.fits());
        assert_eq!(plan.kept_messages.len() > 5, room >= 142, "{room}");
        let parts = plan.parts.iter().map(|part| part.given);
        assert_eq!(parts.sum::<u64>(), plan.input_token_count);
    }
    let error = plan(29).expect_err("it does not fit").to_string();
    assert!(error.contains("needs 30 tokens"), "{error}");
}

#[test]
fn a_templated_chat_is_counted_as_a_whole() {
    let counter = counter_with(&Surprising);
    for room in 24..200 {
        let letters = "s".to_owned() + &"ua".repeat(6) + "u";
        let request = request(json!({"messages": conversation(&letters), "max_tokens": 0}));
        let options = PlanOptions {
            window: 50 + room,
            ..PlanOptions::default()
        };
        let plan = plan(&request, &Extras::default(), &counter, &options).expect("it fits");
        assert!(plan.fits());
        let messages = plan.kept_messages.len() as u64;
        assert_eq!(plan.input_token_count, 12 * messages);
        assert!(
            room - plan.input_token_count < 24 || messages == 14,
            "{messages} in {room}"
        );
        let sent = ChatRequest::from_value(request.rewrite(&plan)).expect("it is a request");
        assert_eq!(counter.count(&sent).tokens, plan.input_token_count);
    }
}

proptest! {
    #[test]
    fn the_properties_hold_for_every_template(
        letters in "[sua]{0,12}u", each in 0..60_u64, once in 0..300_u64, room in 0..300_u64,
    ) {
        let verbose = Verbose { each, once };
        let counter = counter_with(&verbose);
        let request = request(json!({"messages": conversation(&letters), "max_tokens": 10}));
        let options = PlanOptions {
            window: 50 + room,
            ..PlanOptions::default()
        };
        let systems = letters.matches('s').count() as u64;
        let least = 6 * (systems + 1) + 10;
        let plan = plan(&request, &Extras::default(), &counter, &options);
        prop_assert_eq!(plan.is_ok(), least <= room);
        let Ok(plan) = plan else {
            return Ok(());
        };
        prop_assert!(plan.fits());
        let sent = ChatRequest::from_value(request.rewrite(&plan)).expect("it is a request");
        prop_assert_eq!(counter.count(&sent).tokens, plan.input_token_count);
        prop_assert!(plan.adjusted_max_tokens == 10);
    }
}
