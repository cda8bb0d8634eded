//! Closes text that is known to be a valid JSON prefix, using only its brackets and quotes.
//!
//! Blocks of 64 bytes become bit masks, so only brackets outside of strings are visited one by one.
//! The last token is read backwards from the end. Nothing is validated: use
//! [`close`](crate::close) for text from an untrusted source.

use crate::close::Closing;
use crate::scan::Scanner;
use crate::vector::{self, Blocks, Portable};

/// Closes a cut text that is known to be well-formed, such as an accepted base or an answer that was
/// generated under a grammar.
///
/// The result is that of [`Scanner::closing`](crate::Scanner::closing), but computed many times
/// faster. For malformed text, the result is meaningless, but there is no panic.
///
/// ```
/// let text = br#"{"rows": [{"id": 1}, {"id": 2"#;
/// let closing = overlock_json::close_trusted(text).expect("a container has begun");
/// assert_eq!(&text[..closing.kept_len], br#"{"rows": [{"id": 1}, {"#);
/// assert_eq!(closing.closers, "}]}");
/// ```
pub fn close_trusted(text: &[u8]) -> Option<Closing> {
    #[cfg(target_arch = "x86_64")]
    if let Some(outline) = vector::with_avx2::<Outlining>(text) {
        return closing(text, &outline);
    }
    close_trusted_portable(text)
}

/// [`close_trusted`] without vector instructions, for comparison.
#[doc(hidden)]
pub fn close_trusted_portable(text: &[u8]) -> Option<Closing> {
    closing(text, &outline::<Portable>(text))
}

/// [`outline`] as work for both kinds of instructions.
struct Outlining;

impl vector::Work for Outlining {
    type Result = OpenAtEnd;

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is compiled anew for each instruction set"
    )]
    fn run<B: Blocks>(text: &[u8]) -> OpenAtEnd {
        outline::<B>(text)
    }
}

/// What is open at the end of a text.
struct OpenAtEnd {
    /// The openers of the open containers, outermost first.
    openers: Vec<u8>,
    /// The quote that opens the string in which the text ends.
    open_string: Option<usize>,
}

/// Finds what is open at the end of a text.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled anew for each instruction set"
)]
fn outline<B: Blocks>(text: &[u8]) -> OpenAtEnd {
    let mut openers = vec![0_u8; 4096];
    let mut depth = 0;
    let mut quotes = Quotes::default();

    let mut block = |at: usize, bytes: &[u8; 64]| {
        let masks = B::masks(bytes);
        let outside = !quotes.inside_of_strings::<B>(at, masks.quote, masks.backslash);
        let opens = masks.open & outside;
        let mut brackets = opens | masks.close & outside;
        if openers.len() < depth + 64 {
            openers.resize(openers.len() * 2, 0);
        }
        while brackets != 0 {
            let bit = brackets.trailing_zeros() as usize;
            brackets &= brackets - 1;
            if opens >> bit & 1 == 1 {
                openers[depth] = bytes[bit];
                depth += 1;
            } else {
                depth = depth.saturating_sub(1);
            }
        }
    };

    let (whole, rest) = text.as_chunks::<64>();
    for (number, bytes) in whole.iter().enumerate() {
        block(number * 64, bytes);
    }
    let mut padded = [b' '; 64];
    padded[..rest.len()].copy_from_slice(rest);
    block(whole.len() * 64, &padded);

    openers.truncate(depth);
    OpenAtEnd {
        openers,
        open_string: quotes.is_open().then_some(quotes.last),
    }
}

/// Which quotes open and close strings, carried from block to block.
#[derive(Default)]
struct Quotes {
    /// All ones while a string is open.
    carried: u64,
    /// One if the next byte is escaped.
    escaped: u64,
    /// The last quote that was not escaped.
    last: usize,
}

impl Quotes {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is compiled anew for each instruction set"
    )]
    fn inside_of_strings<B: Blocks>(&mut self, at: usize, quote: u64, backslash: u64) -> u64 {
        let quotes = quote & !self.escaped_bytes(backslash);
        if quotes != 0 {
            self.last = at + 63 - quotes.leading_zeros() as usize;
        }
        let inside = B::prefix_xor(quotes) ^ self.carried;
        self.carried = 0_u64.wrapping_sub(inside >> 63);
        inside
    }

    /// The bytes that are escaped by a backslash.
    #[inline]
    fn escaped_bytes(&mut self, backslash: u64) -> u64 {
        const EVEN: u64 = u64::MAX / 3;
        if backslash == 0 {
            return std::mem::take(&mut self.escaped);
        }
        // In a run of backslashes, every other one escapes the next byte. Adding the starts of runs
        // at odd positions carries through each run to its end.
        let backslash = backslash & !self.escaped;
        let follows = backslash << 1 | self.escaped;
        let odd_starts = backslash & !EVEN & !follows;
        let (sum, overflow) = odd_starts.overflowing_add(backslash);
        self.escaped = u64::from(overflow);
        (EVEN ^ (sum << 1)) & follows
    }

    fn is_open(&self) -> bool {
        self.carried != 0
    }
}

fn closing(text: &[u8], outline: &OpenAtEnd) -> Option<Closing> {
    let Some(innermost) = outline.openers.last() else {
        return close_without_containers(text, outline);
    };
    let (kept_len, mut closers) = match outline.open_string {
        Some(quote) => end_in_string(text, quote, *innermost),
        None => end_outside(text, *innermost),
    };
    // The code of a closing bracket is that of its opener plus two.
    closers.extend(
        outline
            .openers
            .iter()
            .rev()
            .map(|opener| char::from(opener + 2)),
    );
    Some(Closing { kept_len, closers })
}

/// Nothing is open: the root is complete, a scalar, or missing.
fn close_without_containers(text: &[u8], outline: &OpenAtEnd) -> Option<Closing> {
    let ends_container = matches!(trim_end(text).last(), Some(b'}' | b']'));
    if ends_container && outline.open_string.is_none() {
        return Some(Closing {
            kept_len: text.len(),
            closers: String::new(),
        });
    }
    let mut scanner = Scanner::new();
    scanner.feed(text);
    scanner.closing(false)
}

fn end_in_string(text: &[u8], quote: usize, innermost: u8) -> (usize, String) {
    let before = trim_end(&text[..quote]);
    if is_key(before, innermost) {
        return (before_element(before), String::new());
    }
    let mut string = Scanner::new();
    string.feed(&text[quote..]);
    (quote + string.whole_text_end(), "\"".to_owned())
}

fn end_outside(text: &[u8], innermost: u8) -> (usize, String) {
    let trimmed = trim_end(text);
    let kept = |len| (len, String::new());
    match trimmed.last() {
        None | Some(b'{' | b'[' | b'}' | b']') => kept(text.len()),
        Some(b',') => kept(trimmed.len() - 1),
        Some(b':') => kept(before_key(&trimmed[..trimmed.len() - 1])),
        Some(b'"') => {
            let before = before_string(trimmed);
            kept(if is_key(before, innermost) {
                before_element(before)
            } else {
                text.len()
            })
        }
        Some(_) => end_in_scalar(text, trimmed),
    }
}

/// The text ends in a number or literal, or in white space after one.
fn end_in_scalar(text: &[u8], trimmed: &[u8]) -> (usize, String) {
    let starts = |byte: &u8| {
        matches!(
            byte,
            b',' | b':' | b'[' | b'{' | b' ' | b'\n' | b'\r' | b'\t'
        )
    };
    let start = trimmed.iter().rposition(starts).map_or(0, |at| at + 1);
    let scalar = &trimmed[start..];
    for literal in ["true", "false", "null"] {
        if literal.as_bytes().starts_with(scalar) {
            return (text.len(), literal[scalar.len()..].to_owned());
        }
    }
    if trimmed.len() < text.len() {
        return (text.len(), String::new());
    }
    // Nothing follows the number, so it may be incomplete.
    let before = trim_end(&text[..start]);
    match before.strip_suffix(b":") {
        Some(key) => (before_key(key), String::new()),
        None => (before_element(before), String::new()),
    }
}

/// Whether a string in the innermost container, after `before`, is a key.
fn is_key(before: &[u8], innermost: u8) -> bool {
    innermost == b'{' && !before.ends_with(b":")
}

/// Where the text must end to drop the member whose key is at its end.
fn before_key(text: &[u8]) -> usize {
    before_element(before_string(trim_end(text)))
}

/// Where the text must end to drop the comma at its end.
fn before_element(before: &[u8]) -> usize {
    before.strip_suffix(b",").unwrap_or(before).len()
}

/// The text before the string at its end.
fn before_string(text: &[u8]) -> &[u8] {
    let mut rest = text.strip_suffix(b"\"").unwrap_or(text);
    while let Some(quote) = rest.iter().rposition(|byte| *byte == b'"') {
        rest = &rest[..quote];
        let backslashes = rest.iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 0 {
            break;
        }
    }
    trim_end(rest)
}

fn trim_end(text: &[u8]) -> &[u8] {
    let space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    &text[..text
        .iter()
        .rposition(|byte| !space(byte))
        .map_or(0, |at| at + 1)]
}
