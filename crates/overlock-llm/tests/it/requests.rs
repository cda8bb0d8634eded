//! Validation and token counts of chat requests.

use serde_json::{Map, Value, json};

use overlock_budget::{ChatCounter, CountTokens, Encoding, Keep, Models, Provenance};
use overlock_llm::wire::RequestError;
use overlock_llm::wire::chat::ChatRequest;

#[track_caller]
fn request(value: Value) -> ChatRequest {
    ChatRequest::from_value(value).expect("it is a request")
}

#[track_caller]
fn check_rejected(text: &str, expected: &str) {
    let error = ChatRequest::from_json(text).expect_err("it is not a valid request");
    assert_eq!(error.to_string(), expected, "{text}");
}

/// Checks a single message.
#[track_caller]
fn check_message(message: &str, expected: &str) {
    let first = r#"{"role": "user", "content": "Hi"}"#;
    check_rejected(
        &format!(r#"{{"messages": [{first}, {message}]}}"#),
        expected,
    );
}

#[test]
fn reports_the_position_of_a_syntax_error() {
    check_rejected(
        "{\n  \"messages\": [}\n",
        "the request is not JSON: expected value at line 2, column 16",
    );
    check_rejected(
        "",
        "the request is not JSON: EOF while parsing a value at line 1, column 0",
    );
}

#[test]
fn rejects_an_invalid_request() {
    check_rejected("[1]", "the request is an array, but must be an object");
    check_rejected(
        "{}",
        "`messages` is missing: it must be an array of at least one message",
    );
    check_rejected(
        r#"{"model": 4, "messages": [{"role": "user", "content": "Hi"}]}"#,
        "`model` is `4`, but must be the name of a model",
    );
    check_rejected(
        r#"{"messages": []}"#,
        "`messages` is empty, but must be an array of at least one message",
    );
    check_rejected(
        r#"{"messages": "Hi"}"#,
        "`messages` is `\"Hi\"`, but must be an array of at least one message",
    );
}

#[test]
fn rejects_an_invalid_message() {
    check_message("3", "`messages[1]` is `3`, but must be an object");
    check_message(
        r#"{"content": "Hi"}"#,
        "`messages[1].role` is missing: it must be one of `system`, `developer`, `user`, \
         `assistant`, `tool`, `function`",
    );
    check_message(
        r#"{"role": "user"}"#,
        "`messages[1].content` is missing: it must be a string or an array of content parts",
    );
    check_message(
        r#"{"role": "assistant", "content": null}"#,
        "`messages[1].content` is `null`, but must be a string or an array of content parts",
    );
    check_message(
        r#"{"role": "user", "content": {"text": "Hi"}}"#,
        "`messages[1].content` is an object, but must be a string or an array of content parts",
    );
    check_message(
        r#"{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text"}]}"#,
        "`messages[1].content[1].text` is missing: it must be a string",
    );
    check_message(
        r#"{"role": "user", "content": [{"type": "image_url", "image_url": "https://a"}]}"#,
        "`messages[1].content[0].image_url` is `\"https://a\"`, but must be an object",
    );
    check_message(
        r#"{"role": "user", "content": ["Hi"]}"#,
        "`messages[1].content[0]` is `\"Hi\"`, but must be an object with a `type`",
    );
}

#[test]
fn rejects_invalid_calls_and_results() {
    check_message(
        r#"{"role": "tool", "content": "4"}"#,
        "`messages[1].tool_call_id` is missing: it must be the id of the tool call it answers",
    );
    check_message(
        r#"{"role": "function", "content": "4"}"#,
        "`messages[1].name` is missing: it must be the name of the called function",
    );
    check_message(
        r#"{"role": "assistant", "tool_calls": {}}"#,
        "`messages[1].tool_calls` is an object, but must be an array of tool calls",
    );
    check_message(
        r#"{"role": "assistant", "tool_calls": [{"function": {"name": "add"}}]}"#,
        "`messages[1].tool_calls[0].id` is missing: it must be the id of the tool call",
    );
    check_message(
        r#"{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "add"}}]}"#,
        "`messages[1].tool_calls[0].function.arguments` is missing: it must be the arguments as \
         a string",
    );
    check_message(
        r#"{"role": "assistant", "tool_calls": [{"id": "a"}]}"#,
        "`messages[1].tool_calls[0].function` is missing: it must be an object with `name` and \
         `arguments`",
    );
}

#[test]
fn rejects_invalid_tools() {
    let check = |tools: &str, expected: &str| {
        let text = r#"{"messages": [{"role": "user", "content": "Hi"}], "tools": "#;
        check_rejected(&format!("{text}{tools}}}"), expected);
    };
    check("1", "`tools` is `1`, but must be an array of tools");
    check("[1]", "`tools[0]` is `1`, but must be an object");
    check(
        "[{}]",
        "`tools[0].type` is missing: it must be the type of the tool, such as `function`",
    );
    check(
        r#"[{"type": "function"}]"#,
        "`tools[0].function` is missing: it must be an object with a `name`",
    );
    check(
        r#"[{"type": "function", "function": {"name": "add", "parameters": []}}]"#,
        "`tools[0].function.parameters` is an array, but must be a JSON Schema",
    );
}

#[test]
fn rejects_tools_beside_functions() {
    let messages = r#""messages": [{"role": "user", "content": "Hi"}]"#;
    let older = r#""functions": [{"name": "add"}]"#;
    check_rejected(
        &format!(r#"{{{messages}, {older}, "tools": [{{"type": "web_search"}}]}}"#),
        "`tools` and `functions` must not both be set",
    );
    let counter = ChatCounter::for_model(&Models::default().find("gpt-4"));
    let count = |rest: &str| {
        let request = ChatRequest::from_json(&format!("{{{messages}, {older}{rest}}}"));
        counter.count(&request.expect("it is a request")).tools
    };
    assert!(count("") > 0);
    assert_eq!(count(r#", "tools": null"#), count(""));
    assert_eq!(count(r#", "tools": []"#), count(""));
}

/// Tools whose schema nests objects of this type in each other.
fn nested(kind: &Value) -> ChatRequest {
    let object =
        |inner: Value| json!({"type": kind, "properties": {"x": inner}, "required": ["x"]});
    let parameters = (0..50).fold(json!({"type": "string"}), |inner, _| object(inner));
    request(json!({
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}],
    }))
}

#[test]
fn a_duplicate_type_counts_once() {
    let counter = ChatCounter::for_model(&Models::default().find("gpt-4"));
    let once = counter.count(&nested(&json!("object")));
    assert_eq!(counter.count(&nested(&json!(["object", "object"]))), once);
    let with_null = counter.count(&nested(&json!(["object", "null", "object"])));
    assert!((once.tokens + 49..once.tokens * 2).contains(&with_null.tokens));
}

#[test]
fn accepts_any_notation_of_a_whole_number() {
    for length in ["1000", "1000.0", "1e+3", "0.1e4"] {
        let text = r#"{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": "#;
        let request = ChatRequest::from_json(&format!("{text}{length}}}"));
        assert_eq!(
            request.expect("a request").requested(),
            Some(1000),
            "{length}"
        );
    }
}

#[test]
fn rejects_an_invalid_answer_limit() {
    let check = |length: &str, found: &str| {
        let text = r#"{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": "#;
        let expected = format!(
            "`max_tokens` is {found}, but must be a whole number from 0 to 18446744073709551615"
        );
        check_rejected(&format!("{text}{length}}}"), &expected);
    };
    check("-1", "`-1`");
    check("0.5", "`0.5`");
    check("18446744073709551616", "`18446744073709551616`");
    check("\"500\"", "`\"500\"`");
    check(&"9".repeat(1000), "a number");
    check_rejected(
        r#"{"messages": [{"role": "user", "content": "Hi"}],
            "max_tokens": 1, "max_completion_tokens": 1}"#,
        "`max_tokens` and `max_completion_tokens` must not both be set",
    );
}

#[test]
fn accepts_what_providers_accept() {
    let accepted = request(json!({
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "name": "ada", "content": [
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_id": "file-1"}},
                {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}},
            ]},
            {"role": "assistant", "content": null, "refusal": "No."},
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": ""}},
            {"role": "function", "name": "f", "content": null},
            {"role": "assistant", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "b", "type": "custom", "custom": {"name": "g", "input": "x"}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
        ],
        "max_tokens": null,
        "max_completion_tokens": 7,
        "tools": [{"type": "web_search"}],
    }));
    assert_eq!(accepted.requested(), Some(7));
    assert_eq!(accepted.messages().len(), 7);
}

#[test]
fn rejects_deep_values_without_recursion() {
    let mut value = json!(1);
    for _ in 0..200_000 {
        value = Value::Array(vec![value]);
    }
    let whole = Map::from_iter([("messages".to_owned(), value)]);
    let error = ChatRequest::from_value(Value::Object(whole));
    assert!(matches!(error, Err(RequestError::TooDeep { .. })));
    let text = format!(r#"{{"messages": {}"#, "[".repeat(1_000_000));
    let error = ChatRequest::from_json(&text);
    assert!(matches!(error, Err(RequestError::TooDeep { .. })));
}

/// Published counts that `OpenAI` reported for requests to `gpt-3.5-turbo`.
#[test]
fn counts_what_the_provider_counts() {
    let check = |messages: Value, functions: Value, expected: u64| {
        let mut whole = json!({"messages": messages});
        if !functions.is_null() {
            whole["functions"] = functions;
        }
        let shown = whole.to_string();
        let counter = ChatCounter::for_model(&Models::default().find("gpt-3.5-turbo"));
        assert_eq!(counter.count(&request(whole)).tokens, expected, "{shown}");
    };
    let hello = || json!([{"role": "user", "content": "hello"}]);
    check(hello(), json!(null), 8);
    check(
        json!([{"role": "system", "content": "hello:"}]),
        json!(null),
        9,
    );

    let none = json!({"type": "object", "properties": {}});
    check(hello(), json!([{"name": "foo", "parameters": none}]), 31);
    let described = json!([{"name": "foo", "description": "Do a foo", "parameters": none}]);
    check(hello(), described, 36);
    let nested = json!([{
        "name": "bing_bong",
        "description": "Do a bing bong",
        "parameters": {"type": "object", "properties": {"foo": {"type": "object", "properties": {
            "bar": {"type": "string", "enum": ["a", "b", "c"]},
            "baz": {"type": "boolean"},
        }}}},
    }]);
    check(hello(), nested, 68);
    let recipe = json!([{
        "name": "get_recipe",
        "parameters": {
            "type": "object",
            "required": ["ingredients", "instructions", "time_to_cook"],
            "properties": {
                "ingredients": {"type": "array", "items": {
                    "type": "object",
                    "required": ["name", "unit", "amount"],
                    "properties": {
                        "name": {"type": "string"},
                        "unit": {
                            "enum": ["grams", "ml", "cups", "pieces", "teaspoons"],
                            "type": "string",
                        },
                        "amount": {"type": "number"},
                    },
                }},
                "instructions": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Steps to prepare the recipe (no numbering)",
                },
                "time_to_cook": {
                    "type": "number",
                    "description": "Total time to prepare the recipe in minutes",
                },
            },
        },
    }]);
    check(hello(), recipe, 106);
    let greeting = json!([
        {"role": "system", "content": "Hello"},
        {"role": "user", "content": "Hi there"},
    ]);
    check(
        greeting,
        json!([{"name": "do_stuff", "parameters": none}]),
        35,
    );
    let call = json!({"name": "do_stuff", "arguments": r#"{"foo": "bar", "baz": 1.5}"#});
    let calling = json!([{"role": "assistant", "content": "", "function_call": call}]);
    check(calling, json!(null), 26);
    let result = json!([
        {"role": "user", "content": "hello world"},
        {"role": "function", "name": "do_stuff", "content": "{}"},
    ]);
    check(result, json!(null), 15);
}

/// A custom tokenizer with the name of a model family.
struct CustomTokenizer;

impl CountTokens for CustomTokenizer {
    fn name(&self) -> &'static str {
        "llama3"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
        Encoding::O200kBase.count_up_to(text, limit)
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str {
        Encoding::O200kBase.truncate_to(text, tokens, keep)
    }
}

#[test]
fn the_name_of_a_family_does_not_make_a_chat_exact() {
    let hello = request(json!({"messages": [{"role": "user", "content": "Hi"}]}));
    let check = |model: &str, tokens: &dyn CountTokens, expected| {
        let found = Models::default().find(model);
        let counter = ChatCounter::with_counter(&found, tokens);
        assert_eq!(counter.provenance(&hello), expected, "{model}");
    };
    check("llama3.2:3b", &CustomTokenizer, Provenance::Calibrated);
    check("claude-3-opus", &CustomTokenizer, Provenance::Calibrated);
    check("gpt-4o", &CustomTokenizer, Provenance::Estimate);
    check("gpt-4o", &Encoding::O200kBase, Provenance::Exact);
    check("gpt-4o-x", &Encoding::O200kBase, Provenance::Calibrated);
    check("gpt-4", &Encoding::O200kBase, Provenance::Estimate);
    check("llama3.2:3b", &Encoding::O200kBase, Provenance::Estimate);
}

#[test]
fn attachments_count_by_their_size() {
    let counter = ChatCounter::for_model(&Models::default().find("gpt-4o"));
    let count = |part: Value| {
        let message = json!({"role": "user", "content": [part]});
        let count = counter.count(&request(json!({"messages": [message]})));
        assert_eq!(count.provenance, Provenance::Estimate);
        count.messages[0] - 4
    };
    let picture = |url: &str, detail: &str| {
        let image = json!({"url": url, "detail": detail});
        count(json!({"type": "image_url", "image_url": image}))
    };
    let small = "data:image/gif;base64,R0lGODlhEAAQAIAA";
    assert_eq!(picture(small, "high"), 255);
    assert_eq!(picture(small, "low"), 85);
    assert_eq!(picture("https://example.org/a.gif", "high"), 1445);
    let recording = |format: &str| {
        let audio = json!({"data": "AAAA".repeat(1600), "format": format});
        count(json!({"type": "input_audio", "input_audio": audio}))
    };
    assert_eq!((recording("wav"), recording("mp3")), (1, 12));
    let file = |file: Value| count(json!({"type": "file", "file": file}));
    assert_eq!(file(json!({"file_data": "AAAA".repeat(4)})), 3);
    assert_eq!(file(json!({"file_id": "file-1"})), 3000);
}
