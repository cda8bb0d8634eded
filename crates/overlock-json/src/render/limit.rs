//! Holds a rendered document to a number of characters.
//!
//! The path to the cut has precedence over what stands beside it, and what is
//! near the cut over what is far from it. So the outer part of a path that is
//! too long goes first; then runs of siblings collapse, level by level from the
//! root, until the rest fits. The last level to collapse may get by with less:
//! the members of an object lose their values before they lose their names.

use std::ops::Range;

use super::run::Run;
use super::spend::Shown;
use super::write::{MARK, Treatment, Writer, Written};
use super::{CutValue, characters, token};

/// The text, or as much of it as `limit` characters can show.
pub(super) fn hold(
    mut written: Written,
    writer: &Writer<'_>,
    cut_value: CutValue,
    limit: usize,
) -> String {
    if characters(&written.text) <= limit {
        return written.text;
    }
    drop_endless_space(&mut written, limit);
    let costs = costs(&written, writer);
    let path: usize = costs.iter().map(Cost::least).sum();
    let tail = tail_within(&written, writer, cut_value, path, limit);
    let tail_len = characters(&tail);

    let Some(elided) = elided_levels(&costs, path + tail_len, limit) else {
        return end_of(&tail, limit);
    };
    let mut text = elision(elided);
    let full: usize = costs[elided..].iter().map(Cost::full).sum();
    let mut len = characters(&text) + full + tail_len;
    let worthwhile = worthwhile_saving(&costs[elided..], len, limit);
    for (level, cost) in costs.iter().enumerate().skip(elided) {
        let parts = LevelParts::of(&written, level);
        text.push_str(parts.before);
        if len <= limit || cost.saving() < worthwhile {
            text.push_str(parts.beside);
        } else {
            let collapsed = collapse(writer, level, len, limit);
            len = len - collapsed.written_len + characters(&collapsed.text);
            text.push_str(&collapsed.text);
            text.push_str(&parts.beside[collapsed.written_bytes..]);
        }
        text.push_str(parts.after);
    }
    text + &tail
}

/// Drops the white space at the cut if it takes more than half of the limit.
///
/// Models that have lost their way write blanks until they are stopped.
fn drop_endless_space(written: &mut Written, limit: usize) {
    let kept = written.text.trim_end().len();
    if written.text.len() - kept > limit / 2 {
        written.text.truncate(kept);
        written.tail = written.tail.min(kept);
    }
}

/// How many characters a level takes.
struct Cost {
    /// Its bracket, the way to the next level, and the white space.
    path: usize,
    /// All that stands beside the path.
    beside: usize,
    /// The same, collapsed into one run.
    collapsed: usize,
}

impl Cost {
    fn full(&self) -> usize {
        self.path + self.beside
    }

    fn least(&self) -> usize {
        self.full() - self.saving()
    }

    /// What collapsing saves.
    fn saving(&self) -> usize {
        self.beside.saturating_sub(self.collapsed)
    }
}

/// The least saving for which a level collapses: a level that has little to give is spared as
/// long as the others have enough.
fn worthwhile_saving(costs: &[Cost], len: usize, limit: usize) -> usize {
    let worthwhile = limit / 20;
    let savings = costs.iter().map(Cost::saving);
    let enough: usize = savings.filter(|saving| *saving >= worthwhile).sum();
    if len - enough <= limit { worthwhile } else { 1 }
}

fn costs(written: &Written, writer: &Writer<'_>) -> Vec<Cost> {
    (0..written.levels.len())
        .map(|level| {
            let parts = LevelParts::of(written, level);
            let mut run = Run::new(writer.outline, level);
            for item in writer.outline.beside(level) {
                run.count(item);
            }
            Cost {
                path: characters(parts.before) + characters(parts.after),
                beside: characters(parts.beside),
                collapsed: run.len(),
            }
        })
        .collect()
}

/// The text of one level, up to the bracket of the next or to the tail.
struct LevelParts<'a> {
    before: &'a str,
    beside: &'a str,
    after: &'a str,
}

impl<'a> LevelParts<'a> {
    fn of(written: &'a Written, level: usize) -> Self {
        let text = &written.text;
        let here = &written.levels[level];
        let start = if level == 0 { 0 } else { here.open };
        let end = written
            .levels
            .get(level + 1)
            .map_or(written.tail, |inner| inner.open);
        Self {
            before: &text[start..here.beside.start],
            beside: &text[here.beside.clone()],
            after: &text[here.beside.end..end],
        }
    }
}

/// The unfinished item at the cut, its value shortened if it does not fit beside
/// the path, or beside half the limit if the path takes more.
fn tail_within(
    written: &Written,
    writer: &Writer<'_>,
    cut_value: CutValue,
    path: usize,
    limit: usize,
) -> String {
    let text = &written.text;
    let (Some(span), Some(value)) = (&written.cut_value, &writer.outline.cut_value) else {
        return text[written.tail..].to_owned();
    };
    let (before, after) = (&text[written.tail..span.start], &text[span.end..]);
    let around = path + characters(before) + characters(after);
    let room = limit - around.min(limit / 2);
    if characters(&text[span.clone()]) <= room {
        return text[written.tail..].to_owned();
    }
    let shown = if cut_value == CutValue::Hint {
        Shown::Hint
    } else {
        let content = &writer.outline.text[value.content.clone()];
        // Two quotes and the mark stand around the tail.
        let tail = token::longest_tail(content, &|tail| characters(tail) + 3 <= room);
        Shown::Tail(value.content.end - tail.len())
    };
    let mut tail = before.to_owned();
    writer.write_cut_value(&shown, &mut tail);
    tail + after
}

/// How many outer levels must go for the path to fit, or nothing if it never does.
fn elided_levels(costs: &[Cost], path: usize, limit: usize) -> Option<usize> {
    let mut left = path;
    for elided in 0..=costs.len() {
        if left + characters(&elision(elided)) <= limit {
            return Some(elided);
        }
        left -= costs.get(elided).map_or(0, Cost::least);
    }
    None
}

fn elision(levels: usize) -> String {
    match levels {
        0 => String::new(),
        1 => format!("{MARK} 1 level {MARK}"),
        _ => format!("{MARK} {levels} levels {MARK}"),
    }
}

/// The first items of a level, collapsed.
#[derive(Default)]
struct Collapsed {
    text: String,
    /// What they took as they were written.
    written_bytes: usize,
    written_len: usize,
}

/// Collapses as few of the first items of a level as bring `len` down to `limit`, or all of them.
fn collapse(writer: &Writer<'_>, level: usize, len: usize, limit: usize) -> Collapsed {
    if writer.outline.is_object(level)
        && let Some(names) = collapse_to_names(writer, level, len, limit)
    {
        return names;
    }
    let mut collapsed = Collapsed::default();
    let mut run = Run::new(writer.outline, level);
    let mut items = WrittenItems::new(writer, level);
    while let Some((item, written)) = items.next() {
        run.count(item);
        collapsed.written_bytes += written.len();
        collapsed.written_len += characters(written);
        if len - collapsed.written_len + run.len() <= limit {
            break;
        }
    }
    collapsed.text = run.name();
    collapsed
}

/// Leaves the first members of an object without their values, if that is enough.
fn collapse_to_names(
    writer: &Writer<'_>,
    level: usize,
    len: usize,
    limit: usize,
) -> Option<Collapsed> {
    let mut collapsed = Collapsed::default();
    let mut names_len = 0;
    let mut items = WrittenItems::new(writer, level);
    while let Some((item, written)) = items.next() {
        collapsed.written_bytes += written.len();
        collapsed.written_len += characters(written);
        let start = collapsed.text.len();
        collapsed.text.push_str(items.gap());
        writer.write_item_as(&Treatment::Structure, level, item, &mut collapsed.text);
        names_len += characters(&collapsed.text[start..]);
        if len - collapsed.written_len + names_len <= limit {
            return Some(collapsed);
        }
    }
    None
}

/// Writes the items of a level again, one at a time, each with the gap before it.
struct WrittenItems<'a> {
    writer: &'a Writer<'a>,
    level: usize,
    items: Range<usize>,
    gap: Range<usize>,
    end: Option<usize>,
    written: String,
}

impl<'a> WrittenItems<'a> {
    fn new(writer: &'a Writer<'a>, level: usize) -> Self {
        Self {
            writer,
            level,
            items: writer.outline.beside(level),
            gap: 0..0,
            end: None,
            written: String::new(),
        }
    }

    fn next(&mut self) -> Option<(usize, &str)> {
        let item = self.items.next()?;
        let (start, value) = self.writer.outline.item(self.level, item);
        self.gap = self.end.unwrap_or(start)..start;
        self.end = Some(value.end);
        self.written.clear();
        self.written
            .push_str(&self.writer.outline.text[self.gap.clone()]);
        self.writer.write_item(self.level, item, &mut self.written);
        Some((item, &self.written))
    }

    /// What stands between the last item and the one before it.
    fn gap(&self) -> &'a str {
        &self.writer.outline.text[self.gap.clone()]
    }
}

/// The last characters of a text, after a mark.
fn end_of(text: &str, limit: usize) -> String {
    let start = text
        .char_indices()
        .rev()
        .take(limit - 1)
        .last()
        .map_or(text.len(), |(start, _)| start);
    format!("{MARK}{}", &text[start..])
}
