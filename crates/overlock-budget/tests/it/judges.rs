//! Compares all counts with those of `tiktoken` and Hugging Face's `tokenizers`.
//!
//! The judges are not part of the repository. `cargo xtask test suites` installs them, has them count,
//! names the folder with their verdicts in an environment variable, and runs the tests here that a
//! plain `cargo test` leaves out.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use overlock_budget::{
    ChatTemplate, CountTokens, Encoding, Keep, RenderError, RenderOptions, TokenizerFile,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn path(name: &str) -> PathBuf {
    let folder: PathBuf = std::env::var_os("OVERLOCK_TOKEN_JUDGES")
        .expect("`cargo xtask test suites` installs the judges and runs this test")
        .into();
    folder.join(name)
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    let text = fs::read(path(name)).expect("the verdicts can be read");
    serde_json::from_slice(&text).expect("the verdicts are JSON")
}

fn tokenizer_file(family: &str) -> TokenizerFile {
    let json = fs::read(path(&format!("files/{family}/tokenizer.json")));
    TokenizerFile::new(json.expect("the tokenizer file can be read"))
        .expect("the tokenizer file is whole")
        .named(family)
}

/// Compares every count, and says how many there were.
#[track_caller]
fn check_counts(name: &str, texts: &[String], verdict: &[u64], count: impl Fn(&str) -> u64) {
    assert_eq!(texts.len(), verdict.len());
    let wrong: Vec<_> = texts
        .iter()
        .zip(verdict)
        .map(|(text, tokens)| (text, count(text), *tokens))
        .filter(|(_, ours, theirs)| ours != theirs)
        .collect();
    let first = wrong.iter().take(5).collect::<Vec<_>>();
    assert!(
        wrong.is_empty(),
        "{name}: {} of {} counts differ, first {first:?}",
        wrong.len(),
        texts.len()
    );
    println!("{name}: {} counts compared, 0 wrong", texts.len());
}

#[test]
#[ignore = "needs tiktoken: run cargo xtask test suites"]
fn every_encoding_counts_what_tiktoken_counts() {
    let texts: Vec<String> = read("texts.json");
    let verdicts: BTreeMap<String, Vec<u64>> = read("encodings.json");
    assert!(texts.len() >= 5_000);
    for encoding in Encoding::ALL {
        check_counts(
            encoding.name(),
            &texts,
            &verdicts[encoding.name()],
            |text| encoding.count(text),
        );
    }
}

/// The models whose tokenizer files are compared.
const FAMILIES: [&str; 9] = [
    "deepseek-v3",
    "gemma2",
    "gemma3",
    "gpt-4o",
    "llama2",
    "llama3",
    "qwen2",
    "qwen3",
    "tekken",
];

#[derive(Deserialize)]
struct FileVerdict {
    text: Vec<u64>,
    with_control: Vec<u64>,
}

#[test]
#[ignore = "needs tokenizers: run cargo xtask test suites"]
fn every_tokenizer_file_counts_what_hugging_face_counts() {
    let texts: Vec<String> = read("texts.json");
    let verdicts: BTreeMap<String, FileVerdict> = read("files.json");
    let families: Vec<&str> = verdicts.keys().map(String::as_str).collect();
    assert_eq!(families, FAMILIES);
    for (family, verdict) in verdicts {
        let counter = tokenizer_file(&family);
        check_counts(&family, &texts, &verdict.text, |text| counter.count(text));
        check_counts(
            &format!("{family} with control tokens"),
            &texts,
            &verdict.with_control,
            |text| counter.count_with_control(text),
        );
    }
}

#[test]
#[ignore = "needs tokenizers: run cargo xtask test suites"]
fn a_count_up_to_a_limit_and_a_truncated_text_keep_to_the_count() {
    let texts: Vec<String> = read("texts.json");
    let verdicts: BTreeMap<String, FileVerdict> = read("files.json");
    let mut checked = 0;
    for (family, verdict) in verdicts {
        let counter = tokenizer_file(&family);
        for (text, tokens) in texts.iter().zip(verdict.text).step_by(61) {
            assert_eq!(counter.count_up_to(text, tokens), Some(tokens));
            for keep in [Keep::Start, Keep::End] {
                assert_eq!(counter.truncate_to(text, tokens, keep), text);
            }
            let Some(fewer) = tokens.checked_sub(1) else {
                continue;
            };
            assert_eq!(counter.count_up_to(text, fewer), None);
            for keep in [Keep::Start, Keep::End] {
                let part = counter.truncate_to(text, fewer / 2, keep);
                assert!(
                    counter.count(part) <= fewer / 2,
                    "{family} {text:?} {keep:?}"
                );
                // One character more may count less, so it is only likely to be too much.
                assert!(part.len() < text.len());
                checked += 1;
            }
        }
    }
    println!("{checked} truncated texts counted");
}

#[derive(Deserialize)]
struct ChatVerdict {
    messages: Value,
    tools: Option<Value>,
    add_generation_prompt: bool,
    now: i64,
    rendered: Option<String>,
    with_control: Option<u64>,
    tokens: Option<u64>,
    refused: Option<String>,
}

#[test]
#[ignore = "needs tokenizers: run cargo xtask test suites"]
fn every_chat_is_rendered_and_counted_as_by_transformers() {
    let verdicts: BTreeMap<String, Vec<ChatVerdict>> = read("chats.json");
    let mut compared = 0;
    for (family, chats) in verdicts {
        if chats.is_empty() {
            continue;
        }
        let tokenizer = tokenizer_file(&family);
        let config = fs::read_to_string(path(&format!("files/{family}/tokenizer_config.json")))
            .expect("the tokenizer configuration can be read");
        let template = ChatTemplate::new(&config).expect("the template is whole");
        for chat in chats {
            let options = RenderOptions {
                tools: chat.tools.as_ref(),
                add_generation_prompt: chat.add_generation_prompt,
                now: Some(chat.now),
            };
            let rendered = template.render(&chat.messages, &options);
            if let Some(reason) = chat.refused {
                let Err(RenderError::Refused { message }) = rendered else {
                    panic!(
                        "{family} refuses {} with {reason:?}, ours says {rendered:?}",
                        chat.messages
                    );
                };
                assert_eq!(message, reason);
                continue;
            }
            let rendered = rendered.expect("the template renders what it renders elsewhere");
            assert_eq!(Some(&rendered), chat.rendered.as_ref(), "{family}");
            assert_eq!(
                Some(tokenizer.count_with_control(&rendered)),
                chat.with_control
            );
            let tokens = template.count(&tokenizer, &chat.messages, &options);
            assert_eq!(tokens.ok(), chat.tokens, "{family} {rendered:?}");
            compared += 1;
        }
    }
    assert!(compared > 100);
    println!("{compared} chats compared, 0 wrong");
}
