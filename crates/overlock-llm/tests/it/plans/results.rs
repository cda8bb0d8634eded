//! How tool results are shortened, and the order in which parts give way.

use overlock_budget::{
    ChatCounter, ContextBlock, Extras, Memory, Models, Part, Plan, PlanError, PlanOptions,
    ResultOptions, Trim, plan,
};
use overlock_llm::wire::chat::ChatRequest;
use serde_json::{Value, json};

use super::laws::counter;
use super::sketch::Words;

fn words(count: usize) -> String {
    let words = (0..count).map(|number| format!("w{number}"));
    words.collect::<Vec<_>>().join(" ")
}

fn exchange(id: usize, tool: &str, result: &str) -> [Value; 2] {
    let id = format!("call{id}");
    let function = json!({"name": tool, "arguments": "{}"});
    let call = json!({"id": id, "type": "function", "function": function});
    [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": id, "content": result}),
    ]
}

/// A question and exchanges with results of so many words.
fn exchanges(results: &[usize]) -> ChatRequest {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for (id, &count) in results.iter().enumerate() {
        messages.extend(exchange(id, "read", &words(count)));
    }
    let request = json!({"messages": messages, "max_tokens": 20});
    ChatRequest::from_value(request).expect("a request")
}

fn fit(request: &ChatRequest, options: &PlanOptions) -> Result<Plan, PlanError> {
    let planned = plan(request, &Extras::default(), &counter(&Words), options);
    if let Ok(plan) = &planned {
        assert!(plan.fits());
        let sent = ChatRequest::from_value(request.clone().rewrite(plan)).expect("a request");
        assert_eq!(counter(&Words).count(&sent).tokens, plan.input_token_count);
    }
    planned
}

fn sent_contents(request: &ChatRequest, plan: &Plan) -> Vec<String> {
    let sent = request.clone().rewrite(plan);
    let messages = sent["messages"].as_array().cloned().unwrap_or_default();
    let contents = messages.iter().map(|message| &message["content"]);
    contents
        .map(|content| content.as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Which messages are marks in a window of this size.
fn marks(results: &[usize], window: u64) -> Vec<usize> {
    let request = exchanges(results);
    let options = PlanOptions {
        window,
        results: ResultOptions {
            keep: 2,
            batch: 3,
            ..ResultOptions::default()
        },
        ..PlanOptions::default()
    };
    let plan = fit(&request, &options).expect("it fits");
    let contents = sent_contents(&request, &plan);
    let is_mark = |text: &&String| text.starts_with("[Old tool result of");
    assert_eq!(
        contents.iter().filter(is_mark).count(),
        plan.shortened.len()
    );
    plan.shortened.iter().map(|short| short.message).collect()
}

#[test]
fn old_results_become_marks_in_batches() {
    let results = [100; 12];
    assert_eq!(marks(&results, 2000), [0; 0]);
    // 12 × 118 tokens and a margin of 200 do not fit.
    assert_eq!(marks(&results, 1600), [2, 4, 6]);
    assert_eq!(marks(&results, 1300), [2, 4, 6, 8, 10, 12]);
    assert_eq!(marks(&results, 1000), [2, 4, 6, 8, 10, 12, 14, 16, 18]);
    // The results of the last two exchanges never become marks.
    let all = (1..=10).map(|result| 2 * result).collect::<Vec<_>>();
    assert_eq!(marks(&results, 700), all);
}

#[test]
fn the_beginning_of_the_prompt_changes_only_when_a_batch_gets_its_marks() {
    let changes: Vec<usize> = (5..30)
        .map(|count| marks(&vec![100; count], 1300))
        .map(|marks| marks.len())
        .collect();
    let steps = changes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes.is_sorted());
    assert_eq!((changes[0], steps), (0, 9), "{changes:?}");
    assert!(changes.iter().all(|marks| marks % 3 == 0), "{changes:?}");
}

#[test]
fn a_mark_tells_the_length_and_replaces_only_a_longer_result() {
    let request = exchanges(&[3, 50, 10, 10]);
    let options = PlanOptions {
        results: ResultOptions {
            keep: 1,
            batch: 1,
            trigger: Some(0),
            ..ResultOptions::default()
        },
        ..PlanOptions::default()
    };
    let plan = fit(&request, &options).expect("it fits");
    let contents = sent_contents(&request, &plan);
    assert_eq!(contents[2], words(3));
    assert_eq!(contents[4], "[Old tool result of 189 characters removed]");
    assert_eq!(contents[6], "[Old tool result of 29 characters removed]");
    assert_eq!(contents[8], words(10));
    let results = plan.part(Part::Results);
    assert_eq!((results.kept, results.dropped), (0, 2));
    assert_eq!(results.explanation(), "2 of 2 results became marks");
}

#[test]
fn a_result_of_the_open_turn_is_truncated_in_the_middle() {
    let found = Models::default().find("gpt-4");
    let counter = ChatCounter::for_model(&found);
    let mut messages = vec![json!({"role": "user", "content": "Read the log."})];
    messages.extend(exchange(0, "read", &words(9000)));
    let request = json!({"messages": messages, "max_tokens": 500});
    let request = ChatRequest::from_value(request).expect("a request");
    let options = PlanOptions::for_model(&found.model);
    let plan = plan(&request, &Extras::default(), &counter, &options).expect("it fits");
    assert_eq!(plan.kept_messages, [0, 1, 2]);
    assert_eq!(plan.adjusted_max_tokens, 500);
    assert!(
        plan.fits() && plan.unused() < 10,
        "{} unused",
        plan.unused()
    );
    let result = &sent_contents(&request, &plan)[2];
    assert!(result.starts_with("w0 w1 w2 ") && result.ends_with(" w8998 w8999"));
    let mark = result.lines().nth(1).expect("a mark");
    let removed: usize = mark[1..]
        .split(' ')
        .next()
        .unwrap_or_default()
        .parse()
        .expect("a number");
    assert_eq!(mark, format!("[{removed} characters removed]"));
    assert_eq!(result.len() - mark.len() - 2 + removed, words(9000).len());
}

#[test]
fn the_largest_result_of_the_open_turn_is_truncated_first_and_down_to_a_floor() {
    let request = exchanges(&[400, 100, 300]);
    let sizes = |window| {
        let options = PlanOptions {
            window,
            results: ResultOptions {
                floor: 50,
                ..ResultOptions::default()
            },
            ..PlanOptions::default()
        };
        let plan = fit(&request, &options)?;
        let sent = ChatRequest::from_value(request.clone().rewrite(&plan)).expect("a request");
        let messages = counter(&Words).count(&sent).messages;
        Ok::<_, PlanError>([messages[2], messages[4], messages[6]])
    };
    let whole = sizes(2000).expect("it fits");
    assert_eq!(whole, [407, 107, 307]);
    let endless = fit(&request, &PlanOptions::default()).expect("it fits");
    let needed = 200 + 20 + endless.input_token_count;
    assert_eq!(sizes(needed).ok(), Some(whole));
    assert_eq!(sizes(needed - 50).ok(), Some([357, 107, 307]));
    assert_eq!(sizes(needed - 200).ok(), Some([257, 107, 257]));
    assert_eq!(sizes(needed - 671).ok(), Some([50, 50, 50]));
    let refused = sizes(needed - 672).expect_err("the floors do not fit");
    assert_eq!(
        refused.to_string(),
        "what must be in the window needs 205 tokens and a margin of 200, which is 1 more than the \
         window of 404; the largest part is `open turn`"
    );
}

#[test]
fn nothing_is_shortened_with_trim_off() {
    let request = exchanges(&[100; 6]);
    let options = |window| PlanOptions {
        window,
        trim: Trim::Off,
        ..PlanOptions::default()
    };
    let plan = fit(&request, &options(1000)).expect("it fits");
    assert!(plan.shortened.is_empty());
    fit(&request, &options(800)).expect_err("nothing is shortened");
}

/// A request that has everything: tools, old exchanges in a turn, context, memories, an open turn.
fn everything() -> ChatRequest {
    let mut messages = vec![json!({"role": "system", "content": "s"})];
    messages.push(json!({"role": "user", "content": words(40)}));
    messages.extend(exchange(0, "old", &words(80)));
    messages.push(json!({"role": "assistant", "content": words(40)}));
    messages.push(json!({"role": "user", "content": words(40)}));
    messages.push(json!({"role": "assistant", "content": words(40)}));
    messages.push(json!({"role": "user", "content": "go"}));
    messages.extend(exchange(1, "new", &words(80)));
    let tool = |name: &str| {
        let parameters = json!({"type": "object", "properties": {}});
        json!({"type": "function", "function": {
            "name": name, "description": words(10), "parameters": parameters,
        }})
    };
    let request = json!({
        "messages": messages,
        "tools": [tool("never"), tool("old"), tool("new")],
        "max_tokens": 300,
    });
    ChatRequest::from_value(request).expect("a request")
}

/// One name for each part that has given way.
fn given_way(plan: &Plan) -> Vec<&'static str> {
    let dropped = |part| plan.part(part).dropped > 0;
    let open = plan.part(Part::OpenTurn);
    let all = [
        (plan.adjusted_max_tokens < plan.requested, "answer"),
        (dropped(Part::Results), "old results"),
        (dropped(Part::Memories), "memories"),
        (dropped(Part::Context), "context"),
        (dropped(Part::History), "turns"),
        (dropped(Part::Tools), "tools"),
        (open.given < open.asked, "open results"),
    ];
    let given = all.into_iter().filter(|(has_given, _)| *has_given);
    given.map(|(_, name)| name).collect()
}

#[test]
fn parts_give_way_in_one_order() {
    let memories = [Memory {
        text: &words(20),
        importance: 0.9,
        age_days: 1.0,
    }];
    let context = [ContextBlock {
        name: "block",
        text: &words(20),
    }];
    let extras = Extras {
        memories: &memories,
        context: &context,
        tool_importance: &[],
    };
    let request = everything();
    let mut seen: Vec<Vec<&str>> = Vec::new();
    let mut window = 2000;
    let refused = loop {
        let options = PlanOptions {
            window,
            answer_floor: 100,
            // Each step of the order is seen alone.
            fill_gaps: false,
            results: ResultOptions {
                keep: 1,
                floor: 30,
                ..ResultOptions::default()
            },
            ..PlanOptions::default()
        };
        match plan(&request, &extras, &counter(&Words), &options) {
            Ok(plan) => seen.push(given_way(&plan)),
            Err(error) => break error,
        }
        window -= 1;
    };
    seen.dedup();
    // What is left of dropped parts may go to the answer.
    for given in &mut seen {
        given.retain(|name| *name != "answer");
    }
    seen.dedup();
    let expected: [&[&str]; 7] = [
        &[],
        &["old results"],
        &["old results", "memories"],
        &["old results", "memories", "context"],
        // The old result is dropped with its turn.
        &["memories", "context", "turns"],
        &["memories", "context", "turns", "tools"],
        &["memories", "context", "turns", "tools", "open results"],
    ];
    assert_eq!(seen, expected);
    assert!(
        refused
            .to_string()
            .contains("which is 1 more than the window"),
        "{refused}"
    );
}

#[test]
fn the_answer_gives_way_before_anything_else() {
    let request = everything();
    let endless = fit(
        &request,
        &PlanOptions {
            window: 9999,
            ..PlanOptions::default()
        },
    );
    let needed = endless.expect("it fits").input_token_count + 200;
    let options = |room| PlanOptions {
        window: needed + room,
        answer_floor: 100,
        results: ResultOptions {
            keep: 1,
            ..ResultOptions::default()
        },
        ..PlanOptions::default()
    };
    let given = |room| given_way(&fit(&request, &options(room)).expect("it fits"));
    assert_eq!(given(300), [""; 0]);
    assert_eq!(given(299), ["answer"]);
    assert_eq!(given(100), ["answer"]);
    assert_eq!(given(99), ["answer", "old results"]);
}

#[test]
fn a_tool_that_a_kept_message_calls_is_never_dropped() {
    let request = everything();
    let mut kept_tools = Vec::new();
    for window in (360..1400).rev() {
        let options = PlanOptions {
            window,
            answer_floor: 100,
            ..PlanOptions::default()
        };
        let Ok(plan) = fit(&request, &options) else {
            continue;
        };
        let calls_old = plan.kept_messages.contains(&2);
        assert!(plan.kept_tools.contains(&2), "the open turn calls it");
        assert!(!calls_old || plan.kept_tools.contains(&1));
        kept_tools.push(plan.kept_tools);
    }
    kept_tools.dedup();
    // The tool that is never called goes first, although it is listed first.
    assert_eq!(kept_tools, [vec![0, 1, 2], vec![1, 2], vec![2]]);
}

#[test]
fn context_and_memories_fill_what_a_turn_leaves() {
    let text = words(20);
    let memories = [Memory {
        text: &text,
        importance: 0.9,
        age_days: 1.0,
    }];
    let context = [ContextBlock {
        name: "block",
        text: &text,
    }];
    let extras = Extras {
        memories: &memories,
        context: &context,
        tool_importance: &[],
    };
    let messages = json!([
        {"role": "user", "content": words(4000)},
        {"role": "user", "content": "go"},
    ]);
    let request = json!({"messages": messages, "max_tokens": 3000});
    let request = ChatRequest::from_value(request).expect("a request");
    let options = |fill_gaps| PlanOptions {
        window: 4500,
        fill_gaps,
        ..PlanOptions::default()
    };
    let parts = |fill_gaps| {
        let plan = plan(&request, &extras, &counter(&Words), &options(fill_gaps));
        let plan = plan.expect("it fits");
        let kept = [Part::History, Part::Context, Part::Memories].map(|part| plan.part(part).kept);
        (kept, plan.adjusted_max_tokens)
    };
    // The turn of 4,004 tokens does not fit with the least answer of 500.
    assert_eq!(parts(true), ([0, 1, 1], 3000));
    assert_eq!(parts(false), ([0, 0, 0], 3000));
}
