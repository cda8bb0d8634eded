//! The gap between two documents that belong together: items of a list, or documents in fences.

use super::finder::{begins_value, skip_fence};

/// Where the next document begins, if the one from `start` to `end` is an item of a list or stands in
/// a fence, and so does the next.
pub(crate) fn next_apart(text: &[u8], start: usize, end: usize) -> Option<usize> {
    if is_item(text, start) {
        next_item(text, end)
    } else {
        next_in_fence(text, end)
    }
}

fn next_item(text: &[u8], end: usize) -> Option<usize> {
    let rest = &text[end..];
    let gap = rest
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b';'))
        .count();
    let start = end + gap + marker_len(&rest[gap..]);
    let opens = text.get(start) == Some(&b'{') && begins_value(&text[start + 1..], b'{');
    (opens && is_item(text, start)).then_some(start)
}

/// Whether the document at `start` is an item of a list: only a marker stands before it on its line.
fn is_item(text: &[u8], start: usize) -> bool {
    let from = start.saturating_sub(LONGEST_MARKER);
    let before = &text[from..start];
    let line = before.iter().rposition(|&byte| byte == b'\n');
    let line = match line {
        Some(line) => &before[line + 1..],
        None if from == 0 => before,
        None => return false,
    };
    let line = line.trim_ascii_start();
    !line.is_empty() && marker_len(line) == line.len()
}

/// Where the document in the next fence begins. Prose without brackets may stand between the fences.
fn next_in_fence(text: &[u8], end: usize) -> Option<usize> {
    let rest = &text[end..];
    let close = rest.len() - rest.trim_ascii_start().len();
    let ticks = rest[close..]
        .iter()
        .take_while(|&&byte| byte == b'`')
        .count();
    if ticks < 3 {
        return None;
    }
    let prose = end + close + ticks;
    let open = prose
        + text[prose..]
            .iter()
            .position(|byte| matches!(byte, b'`' | b'{' | b'[' | b'<'))?;
    if !text[open..].starts_with(b"```") {
        return None;
    }
    let body = &text[skip_fence(text, open)..];
    let start = text.len() - body.trim_ascii_start().len();
    let opener = *text.get(start)?;
    let opens = matches!(opener, b'{' | b'[') && begins_value(&text[start + 1..], opener);
    opens.then_some(start)
}

const LONGEST_MARKER: usize = 40;

/// The length of a list marker with the spaces after it; 0 if there is none.
fn marker_len(text: &[u8]) -> usize {
    let digits = text
        .iter()
        .take(6)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let marker = match text[digits..] {
        [b'.' | b')', ..] if digits > 0 => digits + 1,
        [b'-' | b'*' | b'+', ..] if digits == 0 => 1,
        _ => return 0,
    };
    let spaces = text[marker..]
        .iter()
        .take(LONGEST_MARKER)
        .take_while(|&&byte| byte == b' ')
        .count();
    if spaces == 0 { 0 } else { marker + spaces }
}
