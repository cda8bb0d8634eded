use super::*;
use crate::count::nasty::nasty_text;
use proptest::prelude::*;
use tiktoken_rs::CoreBPE;

fn oracle(encoding: Encoding) -> &'static CoreBPE {
    match encoding {
        Encoding::O200kBase => tiktoken_rs::o200k_base_singleton(),
        Encoding::O200kHarmony => tiktoken_rs::o200k_harmony_singleton(),
        Encoding::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
        Encoding::P50kBase => tiktoken_rs::p50k_base_singleton(),
        Encoding::R50kBase => tiktoken_rs::r50k_base_singleton(),
    }
}

#[track_caller]
fn check(text: &str) {
    for encoding in Encoding::ALL {
        let expected = oracle(encoding).encode_ordinary(text).len() as u64;
        assert_eq!(encoding.count(text), expected, "{encoding} counts {text:?}");
    }
}

#[test]
fn counts_what_tiktoken_counts() {
    proptest!(ProptestConfig::with_cases(2000), |(text in nasty_text(60))| check(&text));
}

#[test]
fn words_of_any_script_count_as_tiktoken_counts_them() {
    // Scripts whose characters are tokens, whose characters are torn by tokens, and both.
    let scripts = [
        '\u{c0}'..='\u{24f}',
        '\u{3b1}'..='\u{3c9}',
        '\u{430}'..='\u{45f}',
        '\u{561}'..='\u{586}',
        '\u{5d0}'..='\u{5ea}',
        '\u{620}'..='\u{64a}',
        '\u{900}'..='\u{97f}',
        '\u{e01}'..='\u{e3a}',
        '\u{10d0}'..='\u{10fa}',
        '\u{1e00}'..='\u{1eff}',
        '\u{3041}'..='\u{3096}',
        '\u{30a1}'..='\u{30fc}',
        '\u{4e00}'..='\u{9fff}',
        '\u{ac00}'..='\u{d7a3}',
        '\u{20000}'..='\u{20fff}',
    ];
    let script = prop::sample::select(scripts.to_vec());
    let words = script.prop_flat_map(|script| {
        let word = prop::collection::vec(prop::char::range(*script.start(), *script.end()), 1..70);
        let word = word.prop_map(String::from_iter);
        let before = prop::sample::select(vec!["", " ", "a", "の", "。", "о"]);
        let words = prop::collection::vec((before, word), 1..4);
        words.prop_map(|words| {
            let mut text = String::new();
            for (before, word) in words {
                text.push_str(before);
                text.push_str(&word);
            }
            text
        })
    });
    proptest!(ProptestConfig::with_cases(4000), |(text in words)| check(&text));
}

#[test]
fn tokens_in_any_order_count_as_tiktoken_counts_them() {
    let texts = (0..199_998).filter_map(|rank| {
        let bytes = oracle(Encoding::O200kBase).decode_bytes(&[rank]).ok()?;
        String::from_utf8(bytes)
            .ok()
            .filter(|text| !text.is_ascii())
    });
    let texts = prop::sample::select(texts.collect::<Vec<String>>());
    let texts = prop::collection::vec(texts, 1..20);
    proptest!(ProptestConfig::with_cases(4000), |(texts in texts)| check(&texts.concat()));
}

#[test]
fn every_token_counts_as_tiktoken_counts_it() {
    for encoding in Encoding::ALL {
        let oracle = oracle(encoding);
        for rank in 0..200_000 {
            let Ok(token) = oracle.decode(&[rank]) else {
                continue;
            };
            let expected = oracle.encode_ordinary(&token).len() as u64;
            assert_eq!(
                encoding.count(&token),
                expected,
                "{encoding} counts {token:?}"
            );
        }
    }
}

#[test]
fn text_that_looks_like_a_control_token_is_text() {
    check("<|endoftext|>");
    check("<|start|>assistant<|channel|>final<|message|>");
    assert!(Encoding::O200kHarmony.count("<|start|>") > 1);
}

#[test]
fn a_long_run_counts_as_tiktoken_counts_it() {
    for unit in [
        "a",
        "=",
        " ",
        "\n",
        "-",
        "\u{1f600}",
        "\u{65e5}",
        "1",
        "ab",
        "xyz",
        "\u{65e5}A",
        " \n",
    ] {
        check(&unit.repeat(700));
        check(&format!("{}!", unit.repeat(1003)));
    }
}

#[test]
fn finds_a_token_longer_than_the_window() {
    for unit in ["/", "=", "-", "*", " ", "\n", "#", "_"] {
        for len in 50..200 {
            check(&unit.repeat(len));
            check(&format!(" {}", unit.repeat(len)));
            check(&format!("a{}b", unit.repeat(len)));
        }
    }
}

#[test]
fn a_hundred_thousand_bytes_of_one_character_count_as_tiktoken_counts_them() {
    for unit in ["a", "=", "\u{1f600}", "\u{65e5}", "1"] {
        check(&unit.repeat(100_000 / unit.len()));
    }
}

#[test]
fn long_runs_of_one_character_count_in_proportion() {
    // Whole tokens of every length that such runs have, and whole groups of digits.
    const PART: usize = 3 << 15;
    for unit in ["a", "=", " ", "\n", "1"] {
        for encoding in [Encoding::O200kBase, Encoding::R50kBase] {
            let part = unit.repeat(PART);
            let expected = 6 * encoding.count(&part);
            assert_eq!(
                encoding.count(&part.repeat(6)),
                expected,
                "{encoding} counts {unit:?}"
            );
        }
    }
}

#[test]
fn long_runs_are_truncated_to_the_longest_part_that_fits() {
    for unit in ["a", "=", " ", " \n", "\u{65e5}", "\u{65e5}A"] {
        let text = format!("x{}y", unit.repeat(700 / unit.len()));
        for encoding in Encoding::ALL {
            let tokens = encoding.count(&text) / 2;
            for keep in [Keep::Start, Keep::End] {
                let part = encoding.truncate_to(&text, tokens, keep);
                let expected = longest_part(encoding, &text, tokens, keep);
                assert_eq!(
                    part.len(),
                    expected.len(),
                    "{encoding} keeps the {keep:?} of {unit:?}"
                );
            }
        }
    }
}

#[test]
fn stops_at_the_limit() {
    proptest!(ProptestConfig::with_cases(300), |(text in nasty_text(40), beyond in 0..3_u64)| {
        for encoding in Encoding::ALL {
            let count = encoding.count(&text);
            prop_assert_eq!(encoding.count_up_to(&text, count + beyond), Some(count));
            if let Some(less) = count.checked_sub(1 + beyond) {
                prop_assert_eq!(encoding.count_up_to(&text, less), None);
            }
        }
    });
}

/// The longest part that fits, found by trying all of them.
fn longest_part(encoding: Encoding, text: &str, tokens: u64, keep: Keep) -> &str {
    let fits = |part: &&str| encoding.count(part) <= tokens;
    let places = (0..=text.len()).filter(|place| text.is_char_boundary(*place));
    match keep {
        Keep::Start => places.rev().map(|end| &text[..end]).find(fits),
        Keep::End => places.map(|start| &text[start..]).find(fits),
    }
    .expect("nothing takes no token")
}

#[track_caller]
fn check_truncation(text: &str, tokens: u64) {
    for encoding in Encoding::ALL {
        for keep in [Keep::Start, Keep::End] {
            let part = encoding.truncate_to(text, tokens, keep);
            let expected = longest_part(encoding, text, tokens, keep);
            assert_eq!(
                part, expected,
                "{encoding} keeps {tokens} tokens at the {keep:?} of {text:?}"
            );
        }
    }
}

#[test]
fn truncation_keeps_the_longest_part_that_fits() {
    proptest!(crate::count::nasty::cases(250, 1000), |(text in nasty_text(30), hundredths in 0..110_u64)| {
        let tokens = Encoding::Cl100kBase.count(&text) * hundredths / 100;
        check_truncation(&text, tokens);
    });
}

#[test]
fn finds_encodings_by_name() {
    for encoding in Encoding::ALL {
        assert_eq!(Encoding::from_name(encoding.name()), Some(encoding));
        assert_eq!(encoding.to_string(), encoding.name());
    }
    assert_eq!(Encoding::from_name("o300k"), None);
}
