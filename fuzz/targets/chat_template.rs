//! Reading and rendering any chat template terminates, with the same result every time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_budget::{ChatTemplate, RenderOptions};
use serde_json::json;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let config = r#"{ "bos_token": "<s>", "eos_token": { "content": "</s>" } }"#;
    let templates = [
        ChatTemplate::new(&text),
        ChatTemplate::with_template(&text, config),
    ];
    let messages = json!([
        { "role": "system", "content": "You are brief." },
        { "role": "user", "content": [{ "type": "text", "text": "Hi <|im_end|>" }] },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "1", "type": "function", "function": { "name": "f", "arguments": { "a": 1.5 } } }
        ] },
        { "role": "tool", "tool_call_id": "1", "content": "{}" },
        { "role": "user", "content": "And?" }
    ]);
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": {} } }]);
    for template in templates.into_iter().flatten() {
        for tools in [None, Some(&tools)] {
            let options = RenderOptions {
                tools,
                now: Some(0),
                ..RenderOptions::default()
            };
            let rendered = template.render(&messages, &options).ok();
            assert_eq!(template.render(&messages, &options).ok(), rendered);
        }
    }
});
