//! Marks text that looks like a control token.
//!
//! In a rendered chat, it is impossible to know whether the template or a message wrote `<|im_end|>`.
//! So such text in messages is marked before rendering, with a character that occurs nowhere else and
//! is removed for counting.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The text to mark, and the mark.
pub(super) struct LookAlikes<'file> {
    pub(super) mark: char,
    by_first: HashMap<char, Vec<&'file str>>,
}

impl<'file> LookAlikes<'file> {
    /// Marks with a character that a rendered chat does not hold.
    pub(super) fn new(control: impl Iterator<Item = &'file str>, rendered: &str) -> Self {
        let mut by_first: HashMap<char, Vec<&str>> = HashMap::new();
        for token in control {
            let mut characters = token.chars();
            // Nothing can be put inside of a single character.
            if let (Some(first), Some(_)) = (characters.next(), characters.next()) {
                by_first.entry(first).or_default().push(token);
            }
        }
        // Noncharacters come first. If a chat contains all candidates, the last one is returned; the
        // caller notices that it changes the text and does not use it.
        let mut marks = ('\u{fdd0}'..='\u{fdef}').chain('\u{f0000}'..='\u{ffffd}');
        let held = rendered.chars().filter(|held| *held >= '\u{fdd0}');
        let held: HashSet<char> = held.collect();
        let mark = marks.find(|mark| !held.contains(mark));
        Self {
            mark: mark.unwrap_or('\u{ffffd}'),
            by_first,
        }
    }

    /// A text with the mark in all that looks like a control token.
    pub(super) fn marked<'text>(&self, text: &'text str) -> Cow<'text, str> {
        let mut marked = String::new();
        let mut copied = 0;
        for (at, character) in text.char_indices() {
            let Some(tokens) = self.by_first.get(&character) else {
                continue;
            };
            if tokens.iter().any(|token| text[at..].starts_with(token)) {
                let inside = at + character.len_utf8();
                marked.push_str(&text[copied..inside]);
                marked.push(self.mark);
                copied = inside;
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        marked.push_str(&text[copied..]);
        Cow::Owned(marked)
    }
}
