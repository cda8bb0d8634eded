//! Mends slips of syntax in what a fragment adds, read where the base stops.

use super::Attempt;
use crate::cut::CutPlace;
use crate::repair::{Fix, FixKind, repair_open};
use crate::scan::{Container, Frame, Scanner};

impl Attempt<'_, '_> {
    /// The addition as JSON, and what was mended; nothing if the slips leave a choice.
    pub(super) fn mended(&self, base_len: usize, addition: &str) -> Option<(String, Vec<Fix>)> {
        self.count(2 * addition.len());
        let context = self.context(base_len, addition)?;
        let text = format!("{context}{addition}");
        let (json, mut fixes) = repair_open(text.as_bytes());
        let mended = json.strip_prefix(&context)?.to_owned();
        // A line break may end a string whose quote never comes.
        let mut scanner = Scanner::new();
        scanner.feed(json.as_bytes());
        let is_in_string = scanner.is_in_string();
        for fix in &mut fixes {
            let is_closer =
                |offset: usize| matches!(text.as_bytes().get(offset), Some(b'}' | b']'));
            if is_in_string && fix.kind == FixKind::ControlCharacter {
                return None;
            }
            let is_clear = matches!(
                fix.kind,
                FixKind::Comment
                    | FixKind::TrailingComma
                    | FixKind::ExtraComma
                    | FixKind::Quotes
                    | FixKind::ControlCharacter
                    | FixKind::Literal
                    | FixKind::Prose
                    | FixKind::Fence
            ) || fix.kind == FixKind::ExtraBracket && is_closer(fix.offset);
            fix.offset = fix.offset.checked_sub(context.len()).filter(|_| is_clear)? + base_len;
        }
        Some((mended, fixes))
    }

    /// A short text that stops where the base does, in as many containers as the addition can
    /// close.
    fn context(&self, base_len: usize, addition: &str) -> Option<String> {
        let scanner = self.base.scanner();
        let text = self.base.text();
        let closers = addition.bytes().filter(|byte| matches!(byte, b'}' | b']'));
        let mut frames: Vec<Frame<'_>> = scanner.open_frames().take(closers.count() + 1).collect();
        frames.reverse();
        let mut context = String::new();
        for (level, frame) in frames.iter().enumerate() {
            let is_inner = level + 1 < frames.len();
            context.push_str(match frame.container {
                Container::Array => "[",
                Container::Object if is_inner => "{\"\":",
                Container::Object => "{",
            });
        }
        let in_object = frames.last()?.container == Container::Object;
        let key = if in_object { "\"\":" } else { "" };
        let element = || text.get(scanner.elements().0?..base_len);
        let half_escape = &text[scanner.whole_text_end().min(base_len)..base_len];
        match scanner.place()? {
            CutPlace::Root => return None,
            CutPlace::ContainerStart => {}
            CutPlace::AfterComma => context.extend([key, "\"\","]),
            CutPlace::AfterValue => context.extend([key, "\"\""]),
            CutPlace::AfterColon => context.push_str(key),
            CutPlace::AfterKey => context.push_str("\"\""),
            CutPlace::Key => context.extend(["\"", half_escape]),
            CutPlace::String | CutPlace::Escape => context.extend([key, "\"", half_escape]),
            // The value alone: its key is written above.
            CutPlace::Number | CutPlace::Literal => {
                let value = element()?.rsplit([' ', '\n', '\r', '\t', ':']).next()?;
                context.extend([key, value]);
            }
        }
        Some(context)
    }
}
