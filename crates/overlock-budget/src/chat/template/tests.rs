use serde_json::json;

use super::*;
use crate::CountTokens;

const CHAT_ML: &str = "{%- for message in messages %}\n    \
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n\
    {%- endfor %}\n{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::with_template(source, "{}").expect("the tests write whole templates")
}

#[track_caller]
fn check_render(source: &str, messages: &Value, rendered: &str) {
    let result = template(source).render(messages, &RenderOptions::default());
    assert_eq!(result.expect("the template works"), rendered, "{source:?}");
}

#[track_caller]
fn check_failure(source: &str, message: &str) {
    let error = template(source)
        .render(&json!([]), &RenderOptions::default())
        .expect_err("the template fails");
    assert!(
        error.to_string().starts_with(message),
        "{source:?} said {error}"
    );
}

#[test]
fn writes_a_chat_as_the_template_says() {
    check_render(
        CHAT_ML,
        &json!([{ "role": "user", "content": "Hi" }]),
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    );
}

#[test]
fn writes_values_as_python_does() {
    let values = json!([true, null, 1.0, "it's", { "a": ["b\n", 2] }]);
    check_render(
        "{{ messages[0] }} {{ messages[1] }} {{ messages }}",
        &values,
        r#"True None [True, None, 1.0, "it's", {'a': ['b\n', 2]}]"#,
    );
    check_render(
        "{{ messages | tojson }}",
        &values,
        r#"[true, null, 1.0, "it's", {"a": ["b\n", 2]}]"#,
    );
    check_render(
        "{{ messages[4] | tojson(indent=2) }}",
        &values,
        "{\n  \"a\": [\n    \"b\\n\",\n    2\n  ]\n}",
    );
    check_render(
        "{{ {'b': 'é', 'a': []} | tojson(sort_keys=true, ensure_ascii=true, separators=(',', ':')) }}",
        &values,
        r#"{"a":[],"b":"\u00e9"}"#,
    );
}

#[test]
fn knows_the_methods_and_marks_of_transformers() {
    check_render(
        "{% generation %}{{ ' a '.strip().upper() }}{% endgeneration %}\
         {%- for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}",
        &json!([]),
        "A01",
    );
}

#[test]
fn the_time_is_defined_only_if_passed() {
    let source = "{{ strftime_now('%d %b %Y') if strftime_now is defined else 'never' }}";
    check_render(source, &json!([]), "never");
    let options = RenderOptions {
        now: Some(0),
        ..RenderOptions::default()
    };
    let rendered = template(source).render(&json!([]), &options);
    assert_eq!(rendered.expect("the template works"), "01 Jan 1970");
}

#[test]
fn takes_the_template_for_tools_when_there_are_tools() {
    let config = json!({
        "bos_token": { "content": "<s>" },
        "chat_template": [
            { "name": "default", "template": "{{ bos_token }}plain" },
            { "name": "tool_use", "template": "{{ bos_token }}{{ tools | length }}" },
        ],
    });
    let template = ChatTemplate::new(&config.to_string()).expect("the configuration is whole");
    let tools = json!([{}, {}]);
    for (tools, rendered) in [(None, "<s>plain"), (Some(&tools), "<s>2")] {
        let options = RenderOptions {
            tools,
            ..RenderOptions::default()
        };
        let result = template.render(&json!([]), &options);
        assert_eq!(result.expect("the template works"), rendered);
    }
}

#[test]
fn reports_why_there_is_no_template() {
    let reason = |config: &str| match ChatTemplate::new(config) {
        Ok(_) => "there is one".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(reason("{"), "the tokenizer configuration is not JSON");
    assert_eq!(
        reason("{}"),
        "the tokenizer configuration has no `chat_template`"
    );
    assert_eq!(
        reason("[]"),
        "the tokenizer configuration has no `chat_template`"
    );
    assert_eq!(
        reason(
            r#"{ "chat_template": [{ "name": "a", "template": "" }, { "name": "b", "template": "" }] }"#
        ),
        "none of the chat templates is the default: there are `a`, `b`"
    );
    assert!(
        reason(r#"{ "chat_template": "{% if %}" }"#)
            .starts_with("the chat template cannot be read: ")
    );
}

#[test]
fn reports_why_a_chat_cannot_be_rendered() {
    check_failure(
        "{{ raise_exception('no system role') }}",
        "the chat template refuses the messages: no system role",
    );
    check_failure("{{ nothing.at.all }}", "the chat template failed: ");
    let mut deep = json!("bottom");
    for _ in 0..DEPTH {
        deep = json!([deep]);
    }
    let result = template("").render(&json!([deep]), &RenderOptions::default());
    assert!(matches!(result, Err(RenderError::TooDeep)));
}

#[test]
fn a_template_ends() {
    check_failure(
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "the chat template was stopped after ",
    );
    check_failure(
        "{% for i in range(999) %}{{ 'a' * 9999 }}{% endfor %}",
        "the chat template was stopped after writing ",
    );
    check_failure(
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "the chat template failed: ",
    );
    check_failure(
        "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}",
        "the chat template was stopped after ",
    );
    check_failure(
        "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [[[[[[[[ns.x]]]]]]]] %}{% endfor %}",
        "the chat template was stopped after ",
    );
    check_failure(
        "{% set ns = namespace(x=[]) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
        "the chat template failed: ",
    );
}

#[test]
fn text_in_a_message_that_looks_like_a_control_token_is_text() {
    let letters = "<|im_start>uerasn\nHip ";
    let vocabulary: serde_json::Map<String, Value> = letters
        .chars()
        .chain("_dtok".chars())
        .map(|letter| (letter.to_string(), json!(u32::from(letter))))
        .collect();
    let control = |id: u32, content: &str| {
        json!({ "id": id, "content": content, "special": true, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false })
    };
    let tokenizer = TokenizerFile::new(
        json!({
            "added_tokens": [control(1000, "<|im_start|>"), control(1001, "<|im_end|>")],
            "model": { "type": "BPE", "vocab": vocabulary, "merges": [] },
        })
        .to_string(),
    )
    .expect("the file is whole");
    let count = |content: &str, options: &RenderOptions<'_>| {
        let messages = json!([{ "role": "user", "content": content }]);
        template(CHAT_ML)
            .count(&tokenizer, &messages, options)
            .expect("the template works")
    };
    let options = RenderOptions {
        add_generation_prompt: false,
        ..RenderOptions::default()
    };
    let frame = 1 + "user\n".len() as u64 + 1 + 1;
    assert_eq!(count("Hi", &options), frame + 2);
    assert_eq!(tokenizer.count("<|im_end|>"), 10);
    assert_eq!(count("Hi<|im_end|>\u{fdd0}", &options), frame + 2 + 10);
    assert_eq!(count("<|im_<|im_end|>", &options), frame + 15);
    // Nearly all candidates for marks.
    let marks: String = ('\u{fdd0}'..='\u{fdef}')
        .chain('\u{f0000}'..'\u{ffffd}')
        .collect();
    assert_eq!(count(&(marks + "<|im_end|>"), &options), frame + 10);
}
