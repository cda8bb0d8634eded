//! Maps the name of a model to its tokenizer, if the maker has published it.

/// Parts of names with their tokenizers; the first part that is in a name wins.
const FAMILIES: &[(&str, &str)] = &[
    ("gpt-oss", "o200k_harmony"),
    // Distilled models count like their student model.
    ("distill-llama", "llama3"),
    ("distill-qwen", "qwen2"),
    ("qwen3-8b", "qwen3"),
    ("qwen3-14b", "qwen3"),
    ("qwen3-32b", "qwen3"),
    ("qwen3-30b-a3b", "qwen3"),
    ("qwen3-235b-a22b", "qwen3"),
    ("qwen2", "qwen2"),
    ("qwen-2", "qwen2"),
    ("llama-3", "llama3"),
    ("llama3", "llama3"),
    ("llama-v3", "llama3"),
    ("llama-4", "llama4"),
    ("llama4", "llama4"),
    ("deepseek-coder-v2", "deepseek-v2"),
    ("deepseek-v2", "deepseek-v2"),
    ("deepseek-coder", "deepseek-coder"),
    ("deepseek-v3", "deepseek-v3"),
    ("deepseek-r1", "deepseek-v3"),
    ("gemma-2", "gemma2"),
    ("gemma2", "gemma2"),
    ("gemma-3", "gemma3"),
    ("gemma3", "gemma3"),
    ("mistral-nemo", "tekken"),
];

/// Prefixes of `OpenAI`'s model names, as in `tiktoken`.
const ENCODINGS: &[(&str, &str)] = &[
    ("chatgpt-4o", "o200k_base"),
    ("gpt-3.5-turbo", "cl100k_base"),
    ("gpt-35-turbo", "cl100k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-4.5", "o200k_base"),
    ("gpt-4o", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-5", "o200k_base"),
    ("o1", "o200k_base"),
    ("o3", "o200k_base"),
    ("o4-mini", "o200k_base"),
    ("davinci-002", "cl100k_base"),
    ("babbage-002", "cl100k_base"),
];

/// The tokenizer, if it is public and known.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let own = name.strip_prefix("ft:").unwrap_or(name);
    let begins = |beginning: &str| {
        own.strip_prefix(beginning)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', ':']))
    };
    let encoding = ENCODINGS.iter().find(|(beginning, _)| begins(beginning));
    let family = || FAMILIES.iter().find(|(part, _)| has_part(name, part));
    encoding.or_else(family).map(|(_, tokenizer)| *tokenizer)
}

/// Whether the name contains the part as a whole word, or followed by `p` as in `3p1` for `3.1`.
fn has_part(name: &str, part: &str) -> bool {
    name.match_indices(part).any(|(start, _)| {
        let next = name[start + part.len()..].chars().next();
        next.is_none_or(|next| next == 'p' || !next.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Option<&str>) {
        assert_eq!(of(name), expected, "the tokenizer of {name:?}");
    }

    #[test]
    fn knows_the_encodings_of_openai() {
        check("gpt-4", Some("cl100k_base"));
        check("gpt-4-turbo", Some("cl100k_base"));
        check("gpt-4o-mini", Some("o200k_base"));
        check("gpt-4.1-nano", Some("o200k_base"));
        check("gpt-5.1-codex", Some("o200k_base"));
        check("ft:gpt-4o-2024-08-06", Some("o200k_base"));
        check("gpt-oss:20b", Some("o200k_harmony"));
        check("o3-pro", Some("o200k_base"));
    }

    #[test]
    fn knows_the_families_of_open_models() {
        check("deepseek-r1", Some("deepseek-v3"));
        check("deepseek-r1-distill-llama-70b", Some("llama3"));
        check("llama-3.3-70b-versatile", Some("llama3"));
        check("llama-v3p1-8b-instruct", Some("llama3"));
        check("qwen2.5-7b-instruct", Some("qwen2"));
        check("deepseek-r1-0528-qwen3-8b", Some("qwen3"));
    }

    #[test]
    fn claims_nothing_that_is_not_public() {
        check("claude-sonnet-4-5", None);
        check("gpt-6", None);
        check("o10", None);
        check("grok-4", None);
        check("qwen3-max", None);
        check("llama-30b", None);
        check("gemma-2b", None);
        check("mistral-nemotron", None);
    }
}
