//! Tables of character classes.

use std::collections::HashMap;

use regex_syntax::hir::{Class, HirKind};

/// Two levels: an index of blocks (two bytes each, little end first) and the blocks, a byte for a
/// character. The bits are those of `count/classes.rs`.
pub(crate) struct Classes {
    pub(crate) index: Vec<u8>,
    pub(crate) blocks: Vec<u8>,
}

const BLOCK: usize = 128;
const CHARACTERS: usize = 0x11_0000;

const PATTERNS: [(&str, u8); 6] = [
    (r"\p{L}", 1),
    (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", 2),
    (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", 4),
    (r"\p{N}", 8),
    (r"\s", 16),
    (r"[\r\n]", 32),
];
const OTHER: (&str, u8) = (r"[^\s\p{L}\p{N}]", 64);

pub(crate) fn classes() -> Classes {
    let mut bits = vec![0; CHARACTERS];
    for (pattern, bit) in PATTERNS.into_iter().chain([OTHER]) {
        for (first, last) in ranges(pattern) {
            bits[first as usize..=last as usize]
                .iter_mut()
                .for_each(|bits| *bits |= bit);
        }
    }
    let mut places = HashMap::new();
    let (mut index, mut blocks) = (Vec::new(), Vec::new());
    for block in bits.chunks(BLOCK) {
        let place = *places.entry(block).or_insert_with(|| {
            blocks.extend_from_slice(block);
            u16::try_from(blocks.len() / BLOCK - 1).expect("there are fewer blocks")
        });
        index.extend_from_slice(&place.to_le_bytes());
    }
    Classes { index, blocks }
}

fn ranges(pattern: &str) -> Vec<(char, char)> {
    let parsed = regex_syntax::parse(pattern).expect("the pattern is one class");
    match parsed.kind() {
        HirKind::Class(Class::Unicode(class)) => class
            .iter()
            .map(|range| (range.start(), range.end()))
            .collect(),
        other => panic!("`{pattern}` is not a class but {other:?}"),
    }
}
