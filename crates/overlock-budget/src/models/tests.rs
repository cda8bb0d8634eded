//! Lookups of names in all notations.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(name: &str, entry: Option<&str>, how: How) {
    let found = Models::default().find(name);
    assert_eq!(
        (found.entry.as_deref(), found.how),
        (entry, how),
        "finding {name:?}"
    );
}

#[track_caller]
fn check_window(name: &str, window: u64) {
    let found = Models::default().find(name);
    assert_eq!(
        (found.model.window, found.how),
        (window, How::Exact),
        "finding {name:?}"
    );
}

#[test]
fn knows_the_documented_windows() {
    check_window("gpt-4", 8192);
    check_window("gpt-4-turbo", 128_000);
    check_window("gpt-4o", 128_000);
    check_window("gpt-3.5-turbo", 16_385);
    check_window("claude-3-opus", 200_000);
    check_window("claude-3-sonnet", 200_000);
    check_window("claude-3-haiku", 200_000);
    check_window("claude-3-5-sonnet", 200_000);
    check_window("llama3.2:3b", 128_000);
    check_window("llama3.1:70b", 128_000);
    check_window("deepseek-coder:6.7b", 16_000);
    check_window("qwen2.5:7b", 128_000);
    check_window("mistral:7b", 32_768);
    check_window("grok-3", 131_072);
    check_window("deepseek-chat", 64_000);
}

#[test]
fn knows_more_than_a_thousand_models() {
    assert!(Models::default().all().len() > 1000);
}

#[test]
fn finds_a_model_without_its_host() {
    check("openai/gpt-4o", Some("gpt-4o"), How::Alias);
    check(
        "openrouter/openai/gpt-3.5-turbo",
        Some("gpt-3.5-turbo"),
        How::Alias,
    );
    check("OpenAI/GPT-4o", Some("gpt-4o"), How::Alias);
    check("GPT-4o", Some("gpt-4o"), How::Exact);
}

#[test]
fn finds_a_model_without_its_date_or_tag() {
    check(
        "claude-3-5-sonnet-20241022",
        Some("claude-3-5-sonnet"),
        How::Alias,
    );
    check("claude-3-opus@20240229", Some("claude-3-opus"), How::Alias);
    check("gpt-4-turbo-2099-12-31", Some("gpt-4-turbo"), How::Alias);
    check("mistral:7b:latest", Some("mistral:7b"), How::Alias);
    check(
        "anthropic/claude-3-haiku-20240307:latest",
        Some("claude-3-haiku"),
        How::Alias,
    );
}

#[test]
fn no_spelling_of_a_name_gets_a_larger_window() {
    let window = |name: &str| Models::default().find(name).model.window;
    for spelling in [
        "claude-sonnet-4.5",
        "claude-sonnet-4-5",
        "Claude-Sonnet-4.5",
        "anthropic/claude-sonnet-4.5",
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4.5:latest",
    ] {
        assert_eq!(window(spelling), 200_000, "{spelling}");
    }
    let found = Models::default().find("claude-sonnet-4.5").model;
    assert_eq!(found.answer_cap, Some(32_000));
    assert_eq!(found.disputed, Some(1_000_000));
    // A release of another size does not change an entry kept by hand.
    assert_eq!(
        Models::default().find("gpt-4o").model.answer_cap,
        Some(16_384)
    );
}

#[test]
fn a_decorated_name_is_the_model_without_its_decorations() {
    let check_sizes = |name: &str, entry: &str, window, answer_cap| {
        let found = Models::default().find(name);
        let sizes = (found.model.window, found.model.answer_cap);
        assert_eq!(found.entry.as_deref(), Some(entry), "finding {name:?}");
        assert_eq!(sizes, (window, answer_cap), "finding {name:?}");
        assert!(
            matches!(found.how, How::Exact | How::Alias),
            "finding {name:?}"
        );
    };
    check_sizes(
        "chatgpt-4o-latest",
        "chatgpt-4o-latest",
        128_000,
        Some(16_384),
    );
    check_sizes(
        "gemini/gemini-1.5-pro",
        "gemini-1.5-pro",
        2_097_152,
        Some(8192),
    );
    check_sizes(
        "gemini-2.0-flash",
        "gemini-2.0-flash",
        1_048_576,
        Some(8192),
    );
    check_sizes(
        "google/gemini-2-0-flash",
        "gemini-2.0-flash",
        1_048_576,
        Some(8192),
    );
    check_sizes("llama3.2", "llama3.2", 128_000, None);
    check_sizes("ollama/llama3.2:latest", "llama3.2", 128_000, None);
    check_sizes("qwen3:8b", "qwen3:8b", 40_960, None);
    check_sizes("qwen3:8b-q4_K_M", "qwen3:8b", 40_960, None);
    check_sizes("gemma3:27b", "gemma3:27b", 131_072, None);
    check_sizes("gemma3:27b-qat", "gemma3:27b", 131_072, None);
    check_sizes("phi4:14b", "phi4:14b", 16_384, None);
    check_sizes("phi4:14b-fp16", "phi4:14b", 16_384, None);
    check_sizes("qwen2.5-coder:7b", "qwen2.5-coder:7b", 32_768, None);
    check_sizes("qwen2.5-coder:7b-iq2_xs", "qwen2.5-coder:7b", 32_768, None);
    check_sizes(
        "claude-3.7-sonnet-20250219",
        "claude-3.7-sonnet",
        200_000,
        Some(64_000),
    );
    check_sizes(
        "claude-sonnet-4@20250514",
        "claude-sonnet-4@20250514",
        200_000,
        Some(64_000),
    );
    let of_region = "bedrock/us.anthropic.claude-3-opus-20240229-v9:0";
    check_sizes(of_region, "claude-3-opus", 200_000, Some(4096));
    check_sizes(
        "anthropic.claude-3-opus-20240229@default",
        "claude-3-opus",
        200_000,
        Some(4096),
    );
    check("llama3.3:70b-instruct-q8_0", Some("llama3.3"), How::Prefix);
    // A size or a word is not a quantization.
    check("grok-3-q4x", Some("grok-3"), How::Prefix);
    check("grok-3-q44", Some("grok-3"), How::Prefix);
}

#[test]
fn a_spelling_that_is_not_in_the_table_gets_no_larger_window_than_one_that_is() {
    let models = Models::default();
    let mut larger = Vec::new();
    for (name, model) in models.all() {
        let spellings = [
            name.replace('.', "-"),
            name.replace('.', "_"),
            format!(" {name} "),
            name.to_uppercase(),
        ];
        for spelling in spellings {
            let found = models.find(&spelling);
            if found.model.window > model.window {
                larger.push((name.clone(), spelling, found.model.window));
            }
        }
    }
    assert_eq!(larger, []);
}

#[test]
fn a_number_that_is_not_a_date_is_part_of_the_name() {
    check("grok-3-20241399", Some("grok-3"), How::Prefix);
    check("grok-3-2024-08-00", Some("grok-3"), How::Prefix);
    check("grok-3-12345", Some("grok-3"), How::Prefix);
}

#[test]
fn finds_the_longest_beginning_of_whole_parts() {
    check("gpt-4-turbo-x-y", Some("gpt-4-turbo"), How::Prefix);
    check("gpt-4-x", Some("gpt-4"), How::Prefix);
    check("somebody/gpt-4-turbo-x", Some("gpt-4-turbo"), How::Prefix);
    check(
        "llama3.2:3b-instruct-q4_k_m",
        Some("llama3.2:3b"),
        How::Prefix,
    );
    check(
        "claude-3-5-sonnet-x",
        Some("claude-3-5-sonnet"),
        How::Prefix,
    );
}

#[test]
fn never_takes_a_part_of_a_part() {
    for name in [
        "gpt-4o-2024-08-06",
        "gpt-4o-mini-x",
        "gpt-4.1-x",
        "gpt-4o-x",
        "openai/gpt-4o-mini-x",
    ] {
        let found = Models::default().find(name);
        assert_ne!(found.entry.as_deref(), Some("gpt-4"), "finding {name:?}");
        assert!(found.model.window >= 128_000, "finding {name:?}");
    }
    check("gpt-4oo", None, How::Default);
    check("gpt", None, How::Default);
}

#[test]
fn reports_an_unknown_model() {
    for name in [
        "",
        "/",
        "-",
        ":latest",
        "nobody-has-heard-of-it",
        "é-20240806",
        "a/",
    ] {
        check(name, None, How::Default);
    }
    assert_eq!(Models::default().find("").model.window, DEFAULT_WINDOW);
}

fn of_window(window: u64) -> Model {
    Model {
        window,
        ..Model::default()
    }
}

#[test]
fn an_entry_of_the_caller_overrides_the_built_in_one() {
    let models = Models::with_own([
        ("GPT-4o".to_owned(), of_window(64_000)),
        ("local/qwen".to_owned(), of_window(1000)),
    ]);
    let check = |name: &str, window, how| {
        let found = models.find(name);
        assert_eq!(
            (found.model.window, found.how),
            (window, how),
            "finding {name:?}"
        );
    };
    check("gpt-4o", 64_000, How::Exact);
    check("openai/gpt-4o", 64_000, How::Alias);
    check("gpt-4o-x", 64_000, How::Prefix);
    check("local/qwen-7b", 1000, How::Prefix);
    check("host/local/qwen:latest", 1000, How::Alias);
    check("gpt-4", 8192, How::Exact);
    assert_eq!(models.all()["gpt-4o"].window, 64_000);
}

#[test]
fn a_window_reports_its_source() {
    let unsaid = Model {
        tools: true,
        ..Model::default()
    };
    let models = Models::with_own([
        ("mine".to_owned(), of_window(1000)),
        ("half-known".to_owned(), unsaid),
    ]);
    for (name, source) in [
        ("gpt-4o", WindowSource::Known),
        ("openai/gpt-4o", WindowSource::Known),
        ("gpt-4o-of-ours", WindowSource::Alike),
        ("mine", WindowSource::Set),
        ("mine-2", WindowSource::Alike),
        ("half-known", WindowSource::Assumed),
        ("nobody-knows", WindowSource::Assumed),
    ] {
        assert_eq!(models.find(name).window_source(), source, "{name}");
    }
}

#[test]
fn looks_up_a_huge_name_in_linear_time() {
    for part in ["-", "/", "a-", "a/", "/-", "2024-08-06"] {
        check(&part.repeat(1 << 18), None, How::Default);
        let folders = "a/".repeat(1 << 18);
        check(&(folders + &part.repeat(40)), None, How::Default);
    }
}

proptest! {
    #[test]
    fn any_name_has_an_answer(name in "\\PC{0,40}") {
        let found = Models::default().find(&name);
        prop_assert_eq!(found.entry.is_none(), found.how == How::Default);
    }

    #[test]
    fn a_host_never_changes_what_is_found_by_name(
        host in "[a-z]{1,8}zz", index: prop::sample::Index,
    ) {
        let models = Models::default();
        let all = models.all();
        let name = index.get(&all.keys().cloned().collect::<Vec<_>>()).clone();
        let found = models.find(&format!("{host}/{name}"));
        prop_assert_eq!((found.entry, found.how), (Some(name), How::Alias));
    }
}
