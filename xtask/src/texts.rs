//! The texts for comparing token counters.
//!
//! They contain what tokenizers treat differently: white space, contractions, runs, digits,
//! combining marks, scripts without spaces, and text that looks like a control token.

/// All texts, the same every time.
pub(crate) fn all() -> Vec<String> {
    let mut random = Random(0x5eed);
    let mut texts: Vec<String> = vec![String::new()];
    texts.extend(
        PIECES
            .iter()
            .flat_map(|pieces| pieces.iter())
            .map(|piece| (*piece).to_owned()),
    );
    texts.extend(runs());
    texts.extend((0..1200).map(|_| random.characters()));
    texts.extend((0..2600).map(|_| random.mixture()));
    texts.extend((0..1400).map(|_| random.prose()));
    texts.extend((0..4).map(|_| random.long()));
    texts
}

const WHITE_SPACE: &[&str] = &[
    " ", "  ", "   ", "        ", "\t", "\t\t", " \t", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n",
    "\r", " \n", "\n ", "  \n  ", "\n\n  ", "\u{a0}", "\u{2003}", "\u{2028}", "\u{2029}",
    "\u{3000}", "\u{b}", "\u{c}", "\u{85}", "\u{1680}", "\u{200b}", "\u{feff}", "\u{1f}",
];

const WORDS: &[&str] = &[
    "the",
    "The",
    "THE",
    "token",
    "tokenization",
    "antidisestablishmentarianism",
    "camelCase",
    "HTTPServer",
    "snake_case",
    "don't",
    "I'll",
    "we've",
    "they're",
    "it's",
    "IT'S",
    "I'M",
    "x'd",
    "'tis",
    "'re",
    "’s",
    "l'été",
    "naïve",
    "Straße",
    "İstanbul",
    "ſharp",
    "ﬁne",
    "Ǆ",
    "ǅ",
    "ª",
    "é",
    "e\u{301}",
    "A\u{30a}",
    "\u{212b}",
    "\u{1e9b}\u{323}",
    "Ωmega",
    "привет",
    "Ёлка",
    "γειά",
    "שלום",
    "مرحبا",
    "नमस्ते",
    "สวัสดี",
    "ជំរាបសួរ",
    "日本語",
    "テキスト",
    "ひらがな",
    "中文",
    "汉字。",
    "한국어",
    "\u{1112}\u{1161}\u{11ab}",
    "𝒜𝓫",
    "𠀀",
    "ⅷ",
    "②",
    "½",
];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "12",
    "123",
    "1234",
    "12345678901234567890",
    "3.14159",
    "1,000,000",
    "1e-10",
    "0xFF",
    "2024-11-16",
    "٣٤٥",
    "１２３",
    "1st",
    "v2.0",
    "10%",
    "-5",
    "²",
];

const MARKS: &[&str] = &[
    ".", "..", "...", "!", "?!", "!!!!", ",", ";", ":", "::", "->", "=>", "==", "!==", "//", "/*",
    "*/", "/", "\n/", "(", ")", "()", "{}", "[]", "({[", "<", ">", "</", "/>", "\"", "'", "''",
    "`", "```", "@", "#", "##", "$", "%", "^", "&", "&&", "*", "**", "-", "--", "---", "_", "__",
    "+", "=", "|", "||", "~", "\\", "\\n", "—", "…", "“", "”", "¿", "。", "、", "！", "€", "™",
    "°", "\u{ad}", "!\n", ".\r\n", ")\n\n", "?/\n",
];

const PICTURES: &[&str] = &[
    "😀",
    "👍🏽",
    "👨‍👩‍👧‍👦",
    "🏳️‍🌈",
    "🇨🇭",
    "🇨🇭🇯🇵",
    "❤️",
    "☃",
    "1️⃣",
    "🧑🏿‍🚀",
    "\u{1f3fb}",
    "\u{200d}",
    "\u{fe0f}",
    "\u{20e3}",
    "🫠",
];

const COMBINING: &[&str] = &[
    "\u{301}",
    "\u{308}\u{301}",
    "a\u{301}\u{327}",
    "Z\u{351}\u{36b}\u{343}",
    "\u{e0067}",
    "\u{5b0}",
    "\u{93c}",
    "\u{11a8}",
];

const CONTROL: &[&str] = &[
    "<|endoftext|>",
    "<|endofprompt|>",
    "<|fim_prefix|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|im_sep|>",
    "<|start|>",
    "<|channel|>",
    "<|message|>",
    "<|return|>",
    "<|begin_of_text|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|reserved_special_token_0|>",
    "<|python_tag|>",
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "<bos>",
    "<eos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "[INST]",
    "[/INST]",
    "[TOOL_CALLS]",
    "<<SYS>>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "<｜begin▁of▁sentence｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜end▁of▁sentence｜>",
    "<|vision_start|>",
    "<|",
    "|>",
    "<|endoftext",
    "endoftext|>",
    "<|end oftext|>",
    "<0x0A>",
    "<0xFF>",
    "▁",
    "▁▁",
    "Ġ",
    "Ċ",
    "\u{fffd}",
    "\0",
    "\u{1}\u{2}",
    "\u{fdd0}",
    "\u{e000}",
    "\u{10ffff}",
    "<table>",
    "<unused0>",
    "[@BOS@]",
];

const CODE: &[&str] = &[
    "fn main() {\n    println!(\"{}\", 1 + 2);\n}\n",
    "if (a == b && c != d) {\n\t\treturn;\n\t}\r\n",
    "SELECT * FROM [dbo].[Table] WHERE id IN (1, 2, 3);\n",
    "{\"a\": [1, 2.5, null], \"b\": {\"c\": \"d\\n\"}}",
    "    def __init__(self, *args, **kwargs):\n        super().__init__()\n",
    "<div class=\"a\">&nbsp;</div>",
    "https://example.com/a/b?c=d&e=f#g",
    "user@example.com",
    "C:\\Users\\name\\file.txt",
    "#!/bin/sh\nset -e\n",
    "const f = async (x) => await g(`${x}`);",
    "// comment\n/// doc\n/* block */\n",
    "x = y[::-1]  # reverse\n",
];

const PIECES: &[&[&str]] = &[
    WHITE_SPACE,
    WORDS,
    NUMBERS,
    MARKS,
    PICTURES,
    COMBINING,
    CONTROL,
    CODE,
];

/// Repeated pieces, in lengths around the powers of two.
fn runs() -> Vec<String> {
    let repeated = [
        "a",
        "A",
        "ab",
        " ",
        "\n",
        "\t",
        "\r\n",
        "=",
        "-",
        "!",
        "0",
        "9",
        "é",
        "日",
        "😀",
        "\u{301}",
        "▁",
        " a",
        "\n\n ",
        "the ",
        "<|endoftext|>",
        "'",
        "'s",
        "\0",
    ];
    let times = [
        2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 127, 129, 256, 1000,
    ];
    repeated
        .iter()
        .flat_map(|piece| times.iter().map(move |times| piece.repeat(*times)))
        .collect()
}

/// A deterministic random number generator: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound)).unwrap_or(0)
    }

    fn choose<'choice, T: ?Sized>(&mut self, choices: &[&'choice T]) -> &'choice T {
        let count = u32::try_from(choices.len()).unwrap_or(u32::MAX);
        choices[self.below(count) as usize]
    }

    /// A character from all of Unicode, or from one of its commonly used ranges.
    fn character(&mut self) -> char {
        let (from, to) = match self.below(12) {
            0 => (0, 0x11_0000),
            1 => (0, 0x20),
            2 | 3 => (0x20, 0x7f),
            4 => (0x80, 0x250),
            5 => (0x300, 0x370),
            6 => (0x370, 0x800),
            7 => (0x900, 0xe80),
            8 => (0x2000, 0x2c00),
            9 => (0x3000, 0xa000),
            10 => (0xac00, 0xd7a4),
            _ => (0x1f000, 0x20000),
        };
        char::from_u32(from + self.below(to - from)).unwrap_or('\u{fffd}')
    }

    fn characters(&mut self) -> String {
        let count = self.below(40);
        (0..count).map(|_| self.character()).collect()
    }

    fn mixture(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..=self.below(14) {
            match self.below(10) {
                0 => text.extend((0..=self.below(6)).map(|_| self.character())),
                1 => text.push_str(&self.choose(MARKS).repeat(1 + self.below(9) as usize)),
                2 => text.push_str(&self.choose(WHITE_SPACE).repeat(1 + self.below(5) as usize)),
                _ => {
                    let pieces = PIECES[self.below(8) as usize];
                    text.push_str(self.choose(pieces));
                }
            }
        }
        text
    }

    /// Words with white space and punctuation between them.
    fn prose(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(40) {
            text.push_str(match self.below(8) {
                0 => self.choose(NUMBERS),
                _ => self.choose(WORDS),
            });
            match self.below(8) {
                0 => text.push_str(self.choose(MARKS)),
                1 => text.push_str(self.choose(WHITE_SPACE)),
                2 => text.push_str(".\n"),
                _ => {}
            }
            text.push(' ');
        }
        text
    }

    /// A text that is long enough to be counted in several pieces.
    fn long(&mut self) -> String {
        (0..60).map(|_| self.prose() + &self.mixture()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generates_many_texts_deterministically() {
        let texts = all();
        assert!(texts.len() >= 5_000);
        assert_eq!(texts, all());
    }
}
