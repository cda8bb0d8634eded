//! Texts that are hard to split and to count.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Fragments that patterns treat differently, and fragments that look different but are treated alike.
const FRAGMENTS: &[&str] = &[
    "a",
    "e",
    "s",
    "t",
    "the",
    "hello",
    "ing",
    " world",
    "A",
    "B",
    "HTML",
    "Hello",
    "camelCase",
    "XMLHttp",
    "'",
    "'s",
    "'S",
    "'\u{17f}",
    "'t",
    "'re",
    "'RE",
    "'ll",
    "'lL",
    "'ve",
    "'d",
    "'M",
    "''",
    "\u{2019}s",
    "\u{212a}",
    "0",
    "7",
    "42",
    "123",
    "2024",
    "\u{663}",
    "\u{96a}",
    "\u{b2}",
    "\u{2167}",
    "\u{1d7d9}",
    " ",
    "  ",
    "   ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    " \n",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{a0}",
    "\u{2003}",
    "\u{2028}",
    "\u{2029}",
    "\u{3000}",
    "\u{200b}",
    "\u{feff}",
    "\u{0}",
    "\u{1c}",
    ".",
    ",",
    "!",
    "/",
    "//",
    "/\n",
    "=",
    "==",
    "---",
    "(",
    "){",
    "_",
    "#",
    "$",
    "+",
    "<|endoftext|>",
    "<|im_start|>",
    "\u{e9}",
    "\u{c9}",
    "e\u{301}",
    "\u{301}",
    "\u{20d0}",
    "\u{1c5}",
    "\u{2b0}",
    "\u{aa}",
    "\u{df}",
    "\u{130}",
    "\u{65e5}",
    "\u{672c}\u{8a9e}",
    "\u{4f60}\u{597d}",
    "\u{3002}",
    "\u{30ab}\u{30bf}",
    "\u{d55c}\u{ad6d}",
    "\u{627}\u{644}",
    "\u{5d0}",
    "\u{928}\u{94d}",
    "\u{e01}\u{e34}",
    "\u{3b1}",
    "\u{3a9}",
    "\u{44f}",
    "\u{416}",
    "\u{1f600}",
    "\u{1f468}\u{200d}\u{1f469}",
    "\u{1f1e9}\u{1f1ea}",
    "\u{fe0f}",
    "\u{10400}",
    "\u{20000}",
    "\u{10ffff}",
];

/// Up to so many fragments, one after the other: known ones, any character, and runs.
pub(crate) fn nasty_text(fragments: usize) -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        12 => select(FRAGMENTS).prop_map(str::to_owned),
        2 => any::<char>().prop_map(String::from),
        1 => (select(FRAGMENTS), 2..40usize).prop_map(|(fragment, times)| fragment.repeat(times)),
        1 => "[ -~]{1,12}",
    ];
    let mixed = vec(fragment, 0..=fragments).prop_map(|fragments| fragments.concat());
    // Few different fragments make long pieces, with borders that hang on what follows.
    let few = (
        vec(select(FRAGMENTS), 1..4),
        vec(0..4usize, 0..=3 * fragments),
    )
        .prop_map(|(fragments, choices)| {
            choices
                .into_iter()
                .map(|choice| fragments[choice % fragments.len()])
                .collect()
        });
    prop_oneof![2 => mixed, 1 => few]
}

/// So many cases in the gate, and so many where tests are run at length.
pub(crate) fn cases(gate: u32, long: u32) -> ProptestConfig {
    let is_long = std::env::var_os("OVERLOCK_LONG").is_some();
    ProptestConfig::with_cases(if is_long { long } else { gate })
}
