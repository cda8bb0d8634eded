//! The effect of each action on a state, and its errors.

use overlock_store::{
    EdgeKind, Importance, Mention, NewFile, NewMemory, NewMessage, NewNode, NodeKind, Scope,
};
use serde_json::{Value, json};

use crate::testing::{BEGAN_AT, TestBed, pipeline, with};
use overlock_runs::{EndedPipeline, PipelineOutcome};
use overlock_runs::{Mail, Role, State, Turn};

/// Runs one step, followed by a step `yes` or `no`.
fn perform(bed: &TestBed, settings: Value, step: Value, state: State) -> EndedPipeline {
    let mut step = step;
    step["id"] = "it".into();
    let steps = vec![
        step,
        json!({ "id": "yes", "action": "set_variables", "rules": [{ "set": "variables.went", "value": "yes" }] }),
        json!({ "id": "no", "action": "set_variables", "rules": [{ "set": "variables.went", "value": "no" }] }),
    ];
    bed.run(&pipeline(settings, steps), state)
}

fn done(ended: &EndedPipeline) -> &State {
    assert_eq!(
        ended.outcome,
        PipelineOutcome::Complete,
        "{:?}",
        ended.trace
    );
    &ended.state
}

#[track_caller]
fn error(ended: &EndedPipeline) -> &str {
    match &ended.outcome {
        PipelineOutcome::Failed { error, .. } => error,
        other => panic!("{other:?}"),
    }
}

fn went(ended: &EndedPipeline) -> &str {
    done(ended).variables["went"].as_str().unwrap_or_default()
}

fn with_response(response: &str) -> State {
    State {
        last_model_response: Some(response.to_owned()),
        ..State::default()
    }
}

fn node(name: &str, text: &str) -> NewNode {
    NewNode {
        kind: NodeKind::Method,
        name: name.to_owned(),
        qualified: name.to_owned(),
        parent: None,
        language: "dotnet".to_owned(),
        lines: (1, 1),
        span: 0..text.len() as u64,
        text: text.to_owned(),
        metadata: "{}".to_owned(),
    }
}

/// A store in which `Close` calls `Note`, and `Other` has no edges.
fn shop(answers: &[&str]) -> TestBed {
    let bed = TestBed::new(answers);
    let nodes = [
        node("Close", "void Close() { Note(); } // closes the order"),
        node("Note", "void Note() { } // writes it down"),
        node("Other", "void Other() { }"),
    ];
    let mentions = [Mention {
        from: 0,
        kind: EdgeKind::Calls,
        name: "Note".to_owned(),
        scope: Scope::Nearest,
    }];
    let file = NewFile {
        path: "a.cs",
        hash: "1",
        nodes: &nodes,
        mentions: &mentions,
        imports: &[],
    };
    bed.store.put_files("shop", &[file]).expect("it is kept");
    bed.store.resolve("shop").expect("it is resolved");
    bed
}

fn asking(question: &str) -> State {
    State {
        user_question: question.to_owned(),
        ..State::default()
    }
}

#[test]
fn search_uses_the_question_and_keeps_the_context() {
    let mut state = asking("close order");
    state.context_blocks = vec!["before".to_owned()];
    let ended = perform(
        &shop(&[]),
        json!({}),
        json!({ "action": "search_nodes" }),
        state,
    );
    assert_eq!(done(&ended).search_hits[0].name, "Close");
    assert_eq!(done(&ended).context_blocks, ["before"]);
    assert_eq!(ended.trace[0]["query"], "close order");
}

#[test]
fn search_prefers_the_last_response() {
    let mut state = asking("close order");
    state.last_model_response = Some(" note \n".to_owned());
    let ended = perform(
        &shop(&[]),
        json!({}),
        json!({ "action": "search_nodes" }),
        state.clone(),
    );
    assert_eq!(ended.trace[0]["query"], "note");
    let from = json!({ "action": "search_nodes", "query_from": "user_question" });
    let ended = perform(&shop(&[]), json!({}), from, state);
    assert_eq!(ended.trace[0]["query"], "close order");
}

#[test]
fn a_search_in_an_unknown_repository_fails() {
    let step = json!({ "action": "search_nodes", "filters": { "repository": "shpo" } });
    let ended = perform(&shop(&[]), json!({}), step, asking("order"));
    assert_eq!(error(&ended), "there is no repository `shpo` in this store");

    let mut state = asking("order");
    state.repository = Some("another".to_owned());
    let ended = perform(
        &shop(&[]),
        json!({}),
        json!({ "action": "search_nodes" }),
        state,
    );
    assert_eq!(
        error(&ended),
        "there is no repository `another` in this store"
    );
}

#[test]
fn a_search_in_a_store_without_an_index_fails() {
    let step = json!({ "action": "search_nodes" });
    let ended = perform(&TestBed::new(&[]), json!({}), step, asking("order"));
    assert_eq!(error(&ended), "nothing is indexed in this store");
}

#[test]
fn search_applies_its_filters() {
    let search = |filters: Value| {
        let step = json!({ "action": "search_nodes", "filters": filters });
        let ended = perform(&shop(&[]), json!({}), step, asking("order"));
        done(&ended).search_hits.len()
    };
    assert_eq!(
        search(json!({ "repository": "shop", "language": "dotnet", "path": "*.cs" })),
        1
    );
    assert_eq!(search(json!({ "language": "sql" })), 0);
    assert_eq!(search(json!({ "path": "*.sql" })), 0);
}

#[test]
fn semantic_search_needs_an_embedding_model() {
    let step = json!({ "action": "search_nodes", "search_type": "hybrid" });
    let ended = perform(&shop(&[]), json!({}), step, asking("order"));
    assert_eq!(
        error(&ended),
        "semantic search needs an embedding model, and none is set"
    );
}

fn found(names: &[&str]) -> State {
    let ended = perform(
        &shop(&[]),
        json!({}),
        json!({ "action": "search_nodes" }),
        asking("void"),
    );
    let mut state = ended.state;
    state.variables.clear();
    state
        .search_hits
        .retain(|hit| names.contains(&hit.name.as_str()));
    state
}

#[test]
fn the_tree_starts_from_the_hits() {
    let step = json!({ "action": "expand_dependency_tree", "max_depth_from_settings": "deep", "edge_types": ["calls"] });
    let ended = perform(&shop(&[]), json!({ "deep": 1 }), step, found(&["Close"]));
    let depths: Vec<u32> = done(&ended)
        .graph_nodes
        .iter()
        .map(|node| node.depth)
        .collect();
    assert_eq!(depths, [0, 1]);
    assert_eq!(ended.state.graph_edges.len(), 1);
    let step = json!({ "action": "expand_dependency_tree", "edge_types_from_settings": "kinds" });
    let ended = perform(
        &shop(&[]),
        json!({ "kinds": ["inherits"] }),
        step,
        found(&["Close"]),
    );
    assert_eq!(done(&ended).graph_nodes.len(), 1, "nothing is inherited");
}

#[test]
fn without_hits_there_is_no_tree() {
    let step = json!({ "action": "expand_dependency_tree" });
    let ended = perform(&shop(&[]), json!({}), step, State::default());
    assert_eq!(done(&ended).graph_nodes, []);
    assert_eq!(ended.trace[0]["why"], "there are no hits to start from");
}

fn fetched(step: Value, settings: Value, state: State) -> Vec<String> {
    let ended = perform(&shop(&[]), settings, step, state);
    let texts = done(&ended).node_texts.iter();
    texts
        .map(|text| {
            text.text
                .split_whitespace()
                .nth(1)
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

fn with_tree() -> State {
    let step = json!({ "action": "expand_dependency_tree" });
    let mut state = perform(&shop(&[]), json!({}), step, found(&["Close", "Other"])).state;
    state.variables.clear();
    state
        .search_hits
        .sort_by(|one, other| one.name.cmp(&other.name));
    state
}

#[test]
fn texts_come_in_the_configured_order() {
    let step = |order: &str| json!({ "action": "fetch_node_texts", "budget_tokens": 100, "prioritization": order });
    assert_eq!(
        fetched(step("seed_first"), json!({}), with_tree()),
        ["Close()", "Other()", "Note()"]
    );
    assert_eq!(
        fetched(step("graph_first"), json!({}), with_tree()),
        ["Note()", "Close()", "Other()"]
    );
    assert_eq!(
        fetched(step("balanced"), json!({}), with_tree()),
        ["Close()", "Note()", "Other()"]
    );
}

#[test]
fn skips_texts_that_are_too_large() {
    // `Close` has nine words, `Other` four, `Note` eight.
    let step = json!({ "action": "fetch_node_texts", "budget_tokens": 8 });
    assert_eq!(fetched(step, json!({}), with_tree()), ["Other()"]);
    let step = json!({ "action": "fetch_node_texts", "max_chars": 34 });
    assert_eq!(fetched(step, json!({}), with_tree()), ["Other()"]);
    let step = json!({ "action": "fetch_node_texts" });
    assert_eq!(
        fetched(step, json!({ "max_context_tokens": 19 }), with_tree()),
        ["Close()", "Other()"]
    );
}

#[test]
fn a_guard_lets_a_run_pass_a_number_of_times() {
    let guard = |state: State| {
        let step = json!({ "action": "loop_guard", "max_turn_loops_from_settings": "turns", "on_allow": "yes", "on_deny": "no" });
        perform(&TestBed::new(&[]), json!({ "turns": 2 }), step, state)
    };
    let first = guard(State::default());
    let second = guard(first.state.clone());
    let third = guard(second.state.clone());
    assert_eq!([&first, &second, &third].map(went), ["yes", "yes", "no"]);
    assert_eq!(third.state.loop_counters["it"], 2);
    let never =
        json!({ "action": "loop_guard", "max_turn_loops": 0, "on_allow": "yes", "on_deny": "no" });
    assert_eq!(
        went(&perform(
            &TestBed::new(&[]),
            json!({}),
            never,
            State::default()
        )),
        "no"
    );
}

fn setting(rules: &Value, state: State) -> EndedPipeline {
    let step = json!({ "action": "set_variables", "rules": rules });
    perform(&TestBed::new(&[]), json!({}), step, state)
}

#[test]
fn variables_are_set_by_rules_and_transforms() {
    let check = |response: &str, transform: &str, expected: Value| {
        let rules = json!([{ "set": "variables.x", "from": "last_model_response", "transform": transform }]);
        let ended = setting(&rules, with_response(response));
        assert_eq!(
            done(&ended).variables.get("x").unwrap_or(&Value::Null),
            &expected,
            "{transform}"
        );
    };
    check("a", "copy", json!("a"));
    check("a", "to_list", json!(["a"]));
    check("a\n\n b \n", "split_lines", json!(["a", " b"]));
    check(
        "Sure: ```json\n{\"a\": [1, 2",
        "parse_json",
        // The number is dropped because it may be incomplete.
        json!({ "a": [1] }),
    );
    check("  a ", "to_context_blocks", json!(["a"]));
    check("a", "clear", json!(null));
    let ended = setting(
        &json!([{ "set": "user_question", "value": "why?" }]),
        State::default(),
    );
    assert_eq!(done(&ended).user_question, "why?");
}

#[test]
fn rules_are_applied_all_or_none() {
    let rules = json!([
        { "set": "variables.x", "value": 1 },
        { "set": "context_blocks", "from": "last_model_response" },
    ]);
    let ended = setting(&rules, with_response("text that must not be in a message"));
    assert_eq!(
        error(&ended),
        "`context_blocks` cannot be set to this value: expected a sequence"
    );
    assert!(ended.state.variables.is_empty());
}

#[test]
fn an_empty_summary_is_a_warning() {
    let mut state = with_response("  \n");
    state.context_blocks = vec!["much".to_owned()];
    let rules = json!([{ "set": "context_blocks", "from": "last_model_response", "transform": "to_context_blocks" }]);
    let ended = setting(&rules, state);
    assert_eq!(done(&ended).context_blocks, Vec::<String>::new());
    assert_eq!(
        ended.trace[0]["warnings"],
        json!(["the summary is empty, so the context was cleared"])
    );
}

#[test]
fn history_is_loaded_from_the_room_of_the_session() {
    let bed = TestBed::new(&[]);
    let says = |role, text| NewMessage {
        sender: "x",
        role,
        text,
        at: 1,
    };
    let messages = [
        says("user", "one"),
        says("assistant", "two"),
        says("user", "three"),
    ];
    bed.store.post("garden", &messages).expect("it is posted");
    let state = State {
        session_id: Some("garden".to_owned()),
        ..State::default()
    };
    let ended = perform(
        &bed,
        json!({}),
        json!({ "action": "load_history", "limit": 2 }),
        state,
    );
    let turn = |role, content: &str| Turn {
        role,
        name: None,
        content: content.to_owned(),
    };
    assert_eq!(
        done(&ended).history,
        [turn(Role::Assistant, "two"), turn(Role::User, "three")]
    );
    let ended = perform(
        &TestBed::new(&[]),
        json!({}),
        json!({ "action": "load_history" }),
        State::default(),
    );
    assert_eq!(
        ended.trace[0]["why"],
        "there is no session, and no room is named"
    );
}

fn post<'a>(sender: &'a str, role: &'a str, text: &'a str) -> NewMessage<'a> {
    NewMessage {
        sender,
        role,
        text,
        at: 1,
    }
}

#[test]
fn a_persona_answers_under_its_own_name_and_speakers_keep_theirs() {
    let bed = TestBed::new(&["Take the wide one."]);
    let posted = [
        post("ana", "user", "Which rake?"),
        post("other", "assistant", "Any."),
    ];
    bed.store.post("garden", &posted).expect("it is posted");
    let state = |question: &str| State {
        session_id: Some("garden".to_owned()),
        ..asking(question)
    };
    let answer = State {
        last_model_response: Some("Take the wide one.".to_owned()),
        ..state("For moss.")
    };
    let finalize = json!({ "action": "finalize", "persona": "helper" });
    perform(&bed, json!({}), finalize, answer);
    let stored = bed.store.messages("garden", 9).expect("they can be read");
    let bed = TestBed::new(&[]);
    let again: Vec<NewMessage<'_>> = stored
        .iter()
        .map(|message| post(&message.sender, &message.role, &message.text))
        .collect();
    bed.store.post("garden", &again).expect("it is posted");
    let load = json!({ "action": "load_history", "persona": "helper" });
    let ended = perform(&bed, json!({}), load, state("Why?"));
    let turn = |role, name: Option<&str>, content: &str| Turn {
        role,
        name: name.map(str::to_owned),
        content: content.to_owned(),
    };
    let history = [
        turn(Role::User, Some("ana"), "Which rake?"),
        turn(Role::User, Some("other"), "Any."),
        turn(Role::User, Some("user"), "For moss."),
        turn(Role::Assistant, None, "Take the wide one."),
    ];
    assert_eq!(done(&ended).history, history);
    let asked = State {
        history: history.to_vec(),
        ..asking("Why?")
    };
    let bed = TestBed::new(&["Because."]);
    perform(&bed, json!({ "model": "gpt-4o" }), call(json!({})), asked);
    let names: Vec<Value> = messages(&bed)
        .as_array()
        .expect("a list")
        .iter()
        .map(|message| message["name"].clone())
        .collect();
    assert_eq!(
        names,
        [
            json!(null),
            json!("ana"),
            json!("other"),
            json!("user"),
            json!(null),
            json!(null)
        ]
    );
}

#[test]
fn memories_are_important_and_recent() {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let bed = TestBed::new(&["Yes."]);
    for (text, importance, days) in [
        ("old", 0.9, 8),
        ("dull", 0.5, 1),
        ("dear", 0.6, 6),
        ("key", 0.9, 1),
    ] {
        let memory = NewMemory {
            persona: "helper",
            text,
            importance: Importance::new(importance).expect("it is one"),
            at: BEGAN_AT - days * DAY,
        };
        bed.store.remember(&memory).expect("it is kept");
    }
    let step = json!({ "action": "load_memories", "persona": "helper", "next": "ask" });
    let ask = json!({ "id": "ask", "action": "call_model", "prompt": "Be kind." });
    let mut first = step;
    first["id"] = "it".into();
    let ended = bed.run(
        &pipeline(json!({ "model": "gpt-4o" }), vec![first, ask]),
        asking("Well?"),
    );
    let texts: Vec<&str> = done(&ended)
        .memories
        .iter()
        .map(|memory| memory.text.as_str())
        .collect();
    assert_eq!(texts, ["key", "dear"]);
    assert_eq!(
        ended.trace[1]["window"]["memory_count"], 2,
        "the planner counts them"
    );
    let asked = bed.replies.asked.lock().expect("no test panics");
    let prompt = asked[0]["messages"].to_string();
    assert!(
        prompt.contains("key") && prompt.contains("dear") && !prompt.contains("dull"),
        "{prompt}"
    );
}

#[test]
fn a_route_is_chosen_by_a_field_of_the_response() {
    let route = |response: &str| {
        let step = json!({ "action": "route", "on": "plan.kind", "routes": { "a": "yes", "true": "yes" }, "on_other": "no" });
        went(&perform(
            &TestBed::new(&[]),
            json!({}),
            step,
            with_response(response),
        ))
        .to_owned()
    };
    assert_eq!(route(r#"{"plan": {"kind": "a"}}"#), "yes");
    assert_eq!(route(r#"{"plan": {"kind": true}}"#), "yes");
    assert_eq!(route("Well: {plan: {kind: 'a'"), "yes", "cut and malformed");
    assert_eq!(route(r#"{"plan": {"kind": "b"}}"#), "no");
    assert_eq!(route("no JSON at all"), "no");
}

#[test]
fn a_route_is_chosen_by_a_prefix_of_the_response() {
    let step = json!({ "action": "route", "prefix": true, "strip_prefix": true, "routes": { "SEARCH": "no", "SEARCH AGAIN": "yes" } });
    let ended = perform(
        &TestBed::new(&[]),
        json!({}),
        step,
        with_response("\nSEARCH AGAIN orders"),
    );
    assert_eq!(went(&ended), "yes");
    assert_eq!(ended.state.last_model_response.as_deref(), Some("orders"));
}

#[test]
fn a_response_without_a_route_is_an_error() {
    let step = json!({ "action": "route", "on": "kind", "routes": { "a": "yes", "b": "no" } });
    let ended = perform(
        &TestBed::new(&[]),
        json!({}),
        step,
        with_response(r#"{"kind": "c"}"#),
    );
    assert_eq!(
        error(&ended),
        "the response matches none of the routes `a`, `b`"
    );
}

#[test]
fn mail_is_sent_on_condition() {
    let sent = |response: &str| {
        let step = json!({ "action": "send", "target_step_id": "z", "topic": "t", "payload": [1], "when": "needed" });
        perform(&TestBed::new(&[]), json!({}), step, with_response(response))
            .state
            .inbox
    };
    let mail = Mail {
        target_step_id: "z".to_owned(),
        topic: "t".to_owned(),
        payload: json!([1]),
    };
    assert_eq!(sent(r#"{"needed": true}"#), [mail]);
    for no in [
        r#"{"needed": false}"#,
        r#"{"needed": ""}"#,
        r#"{"needed": []}"#,
        "{}",
        "none",
    ] {
        assert_eq!(sent(no), [], "{no}");
    }
}

#[test]
fn repeated_queries_ignore_case_and_spaces() {
    let guard = |query: &str, state: State| {
        let step = json!({ "action": "repeat_query_guard", "on_ok": "yes", "on_repeat": "no", "query_from": "user_question" });
        perform(
            &TestBed::new(&[]),
            json!({}),
            step,
            State {
                user_question: query.to_owned(),
                ..state
            },
        )
    };
    let first = guard("Close order", State::default());
    let second = guard("  close   ORDER ", first.state.clone());
    let third = guard("close orders", second.state.clone());
    assert_eq!([&first, &second, &third].map(went), ["yes", "no", "yes"]);
}

#[test]
fn question_and_answer_are_stored_once() {
    let bed = TestBed::new(&[]);
    let mut state = with_response("Because.");
    state.user_question = "Why?".to_owned();
    state.session_id = Some("garden".to_owned());
    let ended = perform(&bed, json!({}), json!({ "action": "finalize" }), state);
    assert_eq!(done(&ended).answer.as_deref(), Some("Because."));
    let messages = bed.store.messages("garden", 10).expect("they are there");
    let stored: Vec<(&str, &str)> = messages
        .iter()
        .map(|message| (message.role.as_str(), message.text.as_str()))
        .collect();
    assert_eq!(stored, [("user", "Why?"), ("assistant", "Because.")]);
}

#[test]
fn the_answer_is_not_stored_if_turned_off() {
    let bed = TestBed::new(&[]);
    let mut state = with_response("Because.");
    state.session_id = Some("garden".to_owned());
    let step = json!({ "action": "finalize", "store_turn": false, "answer_from": "session_id" });
    let ended = perform(&bed, json!({}), step, state);
    assert_eq!(done(&ended).answer.as_deref(), Some("garden"));
    assert_eq!(
        bed.store.messages("garden", 10).expect("it can be read"),
        []
    );
}

fn call(more: Value) -> Value {
    with(
        json!({ "action": "call_model", "prompt": "Be kind." }),
        more,
    )
}

fn messages(bed: &TestBed) -> Value {
    bed.replies.asked.lock().expect("no test panics")[0]["messages"].clone()
}

#[test]
fn a_prompt_has_its_parts_in_order() {
    let bed = TestBed::new(&["Hello."]);
    let mut state = asking("Why?");
    state.context_blocks = vec![" a ".to_owned(), String::new(), "b".to_owned()];
    state.variables.insert("tone".to_owned(), json!("short"));
    let parts = json!({ "user_parts": {
        "question": { "source": "user_question_en", "template": "Q: {}\n" },
        "tone": { "source": "variables.tone", "template": "Be {}.\n" },
        "nothing": { "source": "answer", "template": "Answer: {}" },
        "context": { "source": "context_blocks", "template": "C:\n{}\n" },
    }, "max_output_tokens": 50, "temperature": 0.2, "top_p": 0.9 });
    let ended = perform(&bed, json!({ "model": "gpt-4o" }), call(parts), state);
    assert_eq!(done(&ended).last_model_response.as_deref(), Some("Hello."));
    assert_eq!(
        messages(&bed),
        json!([
            { "role": "system", "content": "Be kind." },
            { "role": "user", "content": "Q: Why?\nBe short.\nC:\na\n\nb" },
        ])
    );
    let asked = bed.replies.asked.lock().expect("no test panics");
    assert_eq!(
        (
            &asked[0]["max_tokens"],
            &asked[0]["temperature"],
            &asked[0]["top_p"]
        ),
        (&json!(50), &json!(0.2), &json!(0.9))
    );
    assert_eq!(ended.trace[0]["empty_parts"], json!(["nothing"]));
}

#[test]
fn history_comes_before_the_question_unless_it_is_a_part() {
    let turn = |role, content: &str| Turn {
        role,
        name: None,
        content: content.to_owned(),
    };
    let mut state = asking("Why?");
    state.history = vec![turn(Role::User, "one"), turn(Role::Assistant, "two")];
    let bed = TestBed::new(&["x"]);
    perform(
        &bed,
        json!({ "model": "gpt-4o" }),
        call(json!({})),
        state.clone(),
    );
    let roles: Vec<Value> = messages(&bed)
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let bed = TestBed::new(&["x"]);
    let parts = json!({ "user_parts": { "before": { "source": "history", "template": "{}" } } });
    perform(&bed, json!({ "model": "gpt-4o" }), call(parts), state);
    assert_eq!(messages(&bed)[1]["content"], "user: one\nassistant: two");
    assert_eq!(messages(&bed).as_array().map(Vec::len), Some(2));
}

#[test]
fn a_cut_document_is_continued() {
    let bed = TestBed::new(&[
        r#"{"rows": ["alpha", "beta", "ga✂"#,
        r#"{"rows": ["alpha", "beta", "gamma"]}"#,
    ]);
    let ended = perform(
        &bed,
        json!({ "model": "gpt-4o" }),
        call(json!({ "response": "json" })),
        asking("List."),
    );
    let response = done(&ended).last_model_response.as_deref();
    assert_eq!(response, Some(r#"{"rows": ["alpha", "beta", "gamma"]}"#));
    assert_eq!(ended.trace[0]["calls"], 2);
}

#[test]
fn a_cut_text_is_a_warning_or_continued() {
    let bed = TestBed::new(&["It was a dark and stormy✂"]);
    let ended = perform(
        &bed,
        json!({ "model": "gpt-4o" }),
        call(json!({})),
        asking("Tell."),
    );
    assert_eq!(
        ended.trace[0]["warnings"],
        json!(["the answer was cut off at its limit"])
    );
    let bed = TestBed::new(&[
        "It was a dark and stormy✂",
        "It was a dark and stormy night.",
    ]);
    let step = call(json!({ "continue_text": true }));
    let ended = perform(&bed, json!({ "model": "gpt-4o" }), step, asking("Tell."));
    assert_eq!(
        done(&ended).last_model_response.as_deref(),
        Some("It was a dark and stormy night.")
    );
}

#[test]
fn a_text_is_continued_several_times() {
    let pieces = [
        "one two✂",
        "one two three four five six✂",
        "three four five six seven.",
    ];
    let bed = TestBed::new(&pieces);
    let step = call(json!({ "continue_text": true }));
    let ended = perform(&bed, json!({ "model": "gpt-4o" }), step, asking("Count."));
    let response = done(&ended).last_model_response.as_deref();
    assert_eq!(response, Some("one two three four five six seven."));
    assert_eq!(ended.trace[0]["calls"], 3);
}

#[test]
fn a_prompt_that_does_not_fit_is_never_sent() {
    let bed = TestBed::new(&[]);
    let ended = perform(
        &bed,
        json!({ "model": "gpt-4o" }),
        call(json!({})),
        asking(&"word ".repeat(200_000)),
    );
    assert!(
        error(&ended).starts_with("the prompt does not fit the window of `gpt-4o`"),
        "{}",
        error(&ended)
    );
    assert!(bed.replies.asked.lock().expect("no test panics").is_empty());
}
