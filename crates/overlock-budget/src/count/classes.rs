//! The classes of characters in the patterns of tokenizers.
//!
//! They use the same Unicode version as the regular expressions of tiktoken. The build script makes
//! the tables.

/// `\p{L}`
pub(crate) const LETTER: u8 = 1;
/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`: what the upper-case part of a word may hold.
pub(crate) const UPPER: u8 = 2;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`: what the lower-case part of a word may hold.
pub(crate) const LOWER: u8 = 4;
/// `\p{N}`
pub(crate) const NUMBER: u8 = 8;
/// `\s`
pub(crate) const SPACE: u8 = 16;
/// `[\r\n]`
pub(crate) const NEWLINE: u8 = 32;
/// `[^\s\p{L}\p{N}]`
pub(crate) const OTHER: u8 = 64;
/// Not a class: in [`FIRST_BYTE`], the first byte of a longer character.
const LONGER: u8 = 128;

static INDEX: &[[u8; 2]] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.index"))
    .as_chunks()
    .0;
static BLOCKS: &[[u8; 128]] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.blocks"))
    .as_chunks()
    .0;

/// The classes of the character that is this byte.
static FIRST_BYTE: [u8; 256] = {
    let mut classes = [LONGER; 256];
    let mut byte = 0;
    let block = &BLOCKS[u16::from_le_bytes(INDEX[0]) as usize];
    while byte < 128 {
        classes[byte] = block[byte];
        byte += 1;
    }
    classes
};

/// The classes of the character at a place, and its length; no class and no length at the end.
#[inline]
pub(crate) fn class_at(text: &[u8], at: usize) -> (u8, usize) {
    let Some(&first) = text.get(at) else {
        return (0, 0);
    };
    match FIRST_BYTE[usize::from(first)] {
        LONGER => longer(text, at),
        class => (class, 1),
    }
}

/// Where the run of characters of these classes ends that begins at a place.
#[inline]
pub(crate) fn run(text: &[u8], mut at: usize, classes: u8) -> usize {
    while let Some(&first) = text.get(at) {
        let class = FIRST_BYTE[usize::from(first)];
        if class & classes != 0 {
            at += 1;
        } else if class == LONGER
            && let (class, len) = longer(text, at)
            && class & classes != 0
        {
            at += len;
        } else {
            break;
        }
    }
    at
}

/// The classes of a character of two bytes or more, and its length.
#[inline]
fn longer(text: &[u8], at: usize) -> (u8, usize) {
    let bits = |at: usize| u32::from(text.get(at).copied().unwrap_or(0) & 0x3F);
    let first = u32::from(text[at]);
    let (character, len) = match first {
        0..0xE0 => ((first & 0x1F) << 6 | bits(at + 1), 2),
        0xE0..0xF0 => ((first & 0x0F) << 12 | bits(at + 1) << 6 | bits(at + 2), 3),
        _ => {
            let high = (first & 0x07) << 18 | bits(at + 1) << 12;
            (high | bits(at + 2) << 6 | bits(at + 3), 4)
        }
    };
    (class_of(character), len)
}

#[inline]
fn class_of(character: u32) -> u8 {
    let block = INDEX.get(character as usize / 128);
    let block = block.map_or(0, |block| usize::from(u16::from_le_bytes(*block)));
    BLOCKS[block][character as usize % 128]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_classed_as_by_the_regular_expressions() {
        let patterns = [
            (r"^\p{L}", LETTER),
            (r"^[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", UPPER),
            (r"^[\p{Ll}\p{Lm}\p{Lo}\p{M}]", LOWER),
            (r"^\p{N}", NUMBER),
            (r"^\s", SPACE),
            (r"^[\r\n]", NEWLINE),
            (r"^[^\s\p{L}\p{N}]", OTHER),
        ];
        let patterns = patterns.map(|(pattern, class)| {
            let pattern = fancy_regex::Regex::new(pattern).expect("the pattern is valid");
            (pattern, class)
        });
        for character in '\0'..=char::MAX {
            let text = character.to_string();
            let expected = patterns.iter().fold(0, |classes, (pattern, class)| {
                let matches = pattern.is_match(&text).expect("the pattern is simple");
                if matches { classes | class } else { classes }
            });
            assert_eq!(
                class_at(text.as_bytes(), 0),
                (expected, text.len()),
                "{character:?}"
            );
        }
    }
}
