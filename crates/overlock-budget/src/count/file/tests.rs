use std::collections::HashMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::places::{KNOWN_PATTERNS, Places};
use super::*;

/// The training text of the small tokenizers of these tests.
const LEARNT: &str = "the quick brown fox jumps over the lazy dog and then it doesn't jump again \
    the end the end of the end    def count(text):\n    return len(text)\n\n  it's we're they'll \
    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 123 1234 12345 hello, world! hello, hello!\n!!\n\n\n \
    日本語日本語 中文 中文 été éte <|end|> <|end|> <think> <think>";

/// Byte-level tokenizers, one for each known way to split, and one that splits nothing.
static TOKENIZERS: LazyLock<Vec<TokenizerFile>> = LazyLock::new(|| {
    let mut tokenizers: Vec<_> = KNOWN_PATTERNS
        .iter()
        .map(|patterns| byte_level(patterns, &Value::Null))
        .collect();
    tokenizers.push(byte_level(KNOWN_PATTERNS[1], &json!({ "type": "NFC" })));
    tokenizers.push(byte_level(&[], &Value::Null));
    assert!(tokenizers.iter().all(|file| file.places == Places::Words));
    tokenizers.push(unsplit());
    tokenizers
});

fn byte_level(patterns: &[&str], normalizer: &Value) -> TokenizerFile {
    let mut steps: Vec<Value> = patterns
        .iter()
        .map(|pattern| {
            json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false })
        })
        .collect();
    steps.push(json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
        "use_regex": patterns.is_empty(),
    }));
    let learnt: String = LEARNT.bytes().map(byte_character).collect();
    let alphabet = (0..=255).map(byte_character).collect();
    file(&json!({
        "added_tokens": added_tokens(),
        "normalizer": normalizer,
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": steps },
        "model": merged(alphabet, &learnt),
    }))
}

/// As Gemma does it: spaces become letters, and the whole text is one word.
fn unsplit() -> TokenizerFile {
    let learnt = LEARNT.replace(' ', "▁");
    let mut alphabet: Vec<char> = learnt.chars().filter(|letter| *letter != '語').collect();
    alphabet.sort_unstable();
    alphabet.dedup();
    let mut model = merged(alphabet, &learnt);
    for byte in 0..=255_u8 {
        model["vocab"][format!("<0x{byte:02X}>")] = json!(10_000 + u32::from(byte));
    }
    model["byte_fallback"] = json!(true);
    file(&json!({
        "added_tokens": added_tokens(),
        "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        "model": model,
    }))
}

fn file(json: &Value) -> TokenizerFile {
    TokenizerFile::new(json.to_string()).expect("the tests write whole files")
}

fn added_tokens() -> Value {
    let token = |id: u32, content: &str, special: bool| {
        json!({ "id": id, "content": content, "special": special, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false })
    };
    json!([
        token(20_000, "<|end|>", true),
        token(20_001, "<think>", false)
    ])
}

/// A model of the letters of an alphabet and the pairs that are frequent in a text.
fn merged(alphabet: Vec<char>, learnt: &str) -> Value {
    let mut vocabulary: Vec<String> = alphabet.into_iter().map(String::from).collect();
    let mut merges = Vec::new();
    let mut tokens: Vec<String> = learnt
        .chars()
        .map(String::from)
        .filter(|letter| vocabulary.contains(letter))
        .collect();
    for _ in 0..150 {
        let mut pairs: HashMap<(&str, &str), usize> = HashMap::new();
        for pair in tokens.windows(2) {
            *pairs.entry((&pair[0], &pair[1])).or_default() += 1;
        }
        let best = pairs
            .into_iter()
            .max_by_key(|(pair, times)| (*times, *pair));
        let Some(((left, right), _)) = best else {
            break;
        };
        let (left, right) = (left.to_owned(), right.to_owned());
        let mut joined: Vec<String> = Vec::new();
        let mut rest = tokens.as_slice();
        while let [first, more @ ..] = rest {
            rest = more;
            if *first == left && more.first() == Some(&right) {
                joined.push(format!("{left}{right}"));
                rest = &more[1..];
            } else {
                joined.push(first.clone());
            }
        }
        tokens = joined;
        let token = format!("{left}{right}");
        if !vocabulary.contains(&token) {
            vocabulary.push(token);
        }
        merges.push(json!([left, right]));
    }
    let vocabulary: serde_json::Map<String, Value> = vocabulary
        .into_iter()
        .zip(0..)
        .map(|(token, id): (String, u32)| (token, json!(id)))
        .collect();
    json!({ "type": "BPE", "vocab": vocabulary, "merges": merges })
}

/// The letter that stands for a byte in a byte-level vocabulary.
fn byte_character(byte: u8) -> char {
    let is_plain = |byte: &u8| matches!(*byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if is_plain(&byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|other| !is_plain(other)).count();
    u32::try_from(before)
        .ok()
        .and_then(|before| char::from_u32(256 + before))
        .expect("there are fewer than 256 of them")
}

/// Texts of everything that patterns treat in their own way.
fn text(pieces: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "the end",
        " the",
        "it's",
        "'LL",
        "a b",
        "x\ny",
        "\n",
        "\n\n",
        "\r\n",
        " ",
        "  ",
        "\t",
        "!",
        "\n/",
        "!\n",
        "?!\n\n",
        "12345",
        "1",
        " 9",
        "日本語",
        "中文\n中",
        "été",
        "e\u{301}",
        "\u{301}",
        "<|end|>",
        "<think>",
        "<|",
        "\u{a0}",
        "\u{3000}",
        "👩‍👩‍👧",
        "\u{200d}",
        "\0",
        "aaaa",
        "Ab",
        "AB'S",
        "\u{2028}",
        "ſ",
        "\u{1100}\u{1161}\u{11a8}",
        "/",
        "hello, ",
    ]);
    let piece = prop_oneof![
        6 => known.prop_map(str::to_owned),
        2 => "[ a-zA-Z\n.,']{1,8}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, pieces).prop_map(|pieces| pieces.concat())
}

/// What truncating must give, tried at every length.
fn longest_by_trying(counter: &TokenizerFile, text: &str, tokens: u64, keep: Keep) -> usize {
    let mut lengths = (0..=text.len()).rev();
    let part = |length: usize| match keep {
        Keep::Start => text.get(..length),
        Keep::End => text.get(text.len() - length..),
    };
    lengths
        .find(|length| part(*length).is_some_and(|part| counter.count_undivided(part) <= tokens))
        .unwrap_or(0)
}

#[track_caller]
fn check_truncation(counter: &TokenizerFile, text: &str, tokens: u64) {
    for keep in [Keep::Start, Keep::End] {
        let part = counter.truncate_to(text, tokens, keep);
        assert!(counter.count_undivided(part) <= tokens);
        assert_eq!(
            part.len(),
            longest_by_trying(counter, text, tokens, keep),
            "{tokens} tokens of {text:?}, keeping {keep:?}"
        );
    }
}

proptest! {
    #[test]
    fn the_counts_of_pieces_add_up_at_every_place(text in text(0..40)) {
        for counter in TOKENIZERS.iter() {
            let mut at = 0;
            while let Some(place) = counter.places.at_or_after(&text, at + 1) {
                at = place;
                prop_assert_eq!(
                    counter.count_undivided(&text[..at]) + counter.count_undivided(&text[at..]),
                    counter.count_undivided(&text),
                    "cut at {} in {:?}", at, text
                );
            }
        }
    }

    #[test]
    fn counting_up_to_a_limit_counts_all_or_returns_none(text in text(0..300), limit in 0..600_u64) {
        for counter in TOKENIZERS.iter() {
            let whole = counter.count_undivided(&text);
            prop_assert_eq!(counter.count(&text), whole);
            prop_assert_eq!(counter.count_up_to(&text, limit), (whole <= limit).then_some(whole));
        }
    }

    #[test]
    fn truncates_to_the_longest_part_there_is(text in text(0..25), tokens in 0..60_u64) {
        for counter in TOKENIZERS.iter() {
            check_truncation(counter, &text, tokens);
        }
    }
}

proptest! {
    #![proptest_config(crate::count::nasty::cases(4, 12))]

    #[test]
    fn truncates_a_long_stretch_without_places_as_well(
        text in text(60..160),
        letter in "[a日!]",
        times in 0..400_usize,
        tokens in 0..500_u64,
    ) {
        let text = text.replace([' ', '\n'], "") + &letter.repeat(times);
        for counter in TOKENIZERS.iter() {
            check_truncation(counter, &text, tokens);
        }
    }
}

#[test]
fn a_long_text_of_one_letter_is_counted_and_truncated() {
    for counter in TOKENIZERS.iter() {
        let text = "a".repeat(30_000);
        let all = counter.count(&text);
        assert_eq!(counter.count_up_to(&text, all - 1), None);
        let part = counter.truncate_to(&text, all / 3, Keep::Start);
        assert_eq!(counter.count(part), all / 3);
    }
}

#[test]
fn continues_after_a_long_stretch_that_fits() {
    let text = format!(
        "the end {} then the end {}",
        "a".repeat(5000),
        "a".repeat(5000)
    );
    let middle = format!("the end {} then the end", "a".repeat(5000));
    for counter in TOKENIZERS.iter() {
        let all = counter.count(&text);
        for keep in [Keep::Start, Keep::End] {
            assert_eq!(counter.truncate_to(&text, all, keep), text);
        }
        let part = counter.truncate_to(&text, counter.count(&middle), Keep::Start);
        assert!(part.len() >= middle.len());
    }
}

#[test]
fn control_tokens_in_a_text_are_text() {
    for counter in TOKENIZERS.iter() {
        assert!(counter.count("<|end|>") > 1);
        assert_eq!(counter.count_with_control("<|end|>"), 1);
        assert_eq!(counter.count("<think>"), 1);
        assert_eq!(
            counter.count_marked("<|end|>\u{fdd0}<think>", '\u{fdd0}'),
            2
        );
        assert_eq!(
            counter.count_marked("<\u{fdd0}|end|>", '\u{fdd0}'),
            counter.count("<|end|>")
        );
    }
}

#[track_caller]
fn check_refused(json: &str, message: &str) {
    let error = TokenizerFile::new(json).expect_err("the file is broken");
    assert!(
        error.to_string().starts_with(message),
        "reading {json:?} said {error}"
    );
}

#[test]
fn reports_why_a_file_is_not_a_tokenizer() {
    check_refused("", "the tokenizer file is not JSON");
    check_refused("{\"model\": ", "the tokenizer file is not JSON");
    check_refused(
        "{\"model\": {}, \"decoder\": {\"a\": }}",
        "the tokenizer file is not JSON",
    );
    check_refused("[]", "the file is JSON but not a tokenizer: ");
    check_refused("{}", "the file is JSON but not a tokenizer: ");
    check_refused(
        r#"{ "model": { "type": "Other", "vocab": {} } }"#,
        "the file is JSON but not a tokenizer: ",
    );
    check_refused(
        r#"{ "model": { "type": "BPE", "vocab": {}, "merges": [], "dropout": 0.5 } }"#,
        "the tokenizer skips merges at random (`dropout` is 0.5)",
    );
    check_refused(
        r#"{ "model": { "type": "BPE", "vocab": {}, "merges": [], "unk_token": "?" } }"#,
        "the tokenizer writes `?` for what it does not know",
    );
}

#[test]
fn a_merge_that_makes_no_token_is_refused() {
    let check = |merges: Value, prefix: Value| {
        let json = json!({ "model": { "type": "BPE", "vocab": { "ab": 0, "c": 1, "é": 2 },
            "continuing_subword_prefix": prefix, "merges": merges } });
        check_refused(
            &json.to_string(),
            "the file is JSON but not a tokenizer: no token is made of `ab` and `c`",
        );
    };
    check(json!(["ab c"]), Value::Null);
    check(json!([["ab", "c"]]), Value::Null);
    check(json!(["#version: 0.2", "ab c"]), json!("##"));
}

#[test]
fn reads_a_model_with_scores() {
    let json = json!({ "model": { "type": "Unigram", "unk_id": 0, "byte_fallback": false,
        "vocab": [["?", 0.0], ["a", -1.5], ["b", -2.25], ["ab", -1.0e-3]] } });
    assert_eq!(file(&json).count("abab"), 2);
}

#[test]
fn a_text_that_cannot_be_counted_never_fits() {
    let json = json!({ "model": { "type": "Unigram", "unk_id": null, "vocab": [["a", -1.0]] } });
    let counter = file(&json);
    assert_eq!(counter.count("aa"), 2);
    assert_eq!(counter.count("ab"), u64::MAX);
    assert_eq!(counter.count_up_to("ab", 10), None);
    assert_eq!(counter.truncate_to("ab", 10, Keep::Start), "a");
}

#[test]
fn ignores_how_a_file_pads_and_truncates() {
    let mut json = json!({
        "padding": { "strategy": { "Fixed": 64 }, "direction": "Right", "pad_to_multiple_of": null,
                     "pad_id": 0, "pad_type_id": 0, "pad_token": "a" },
        "truncation": { "direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0 },
    });
    json["model"] = merged(vec!['a', 'b'], "b");
    assert_eq!(file(&json).count("abab"), 4);
}
