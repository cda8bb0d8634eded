//! Writes a document in a limited number of characters.
//!
//! The path to the cut has precedence over siblings, and levels near the cut over distant ones. So
//! the outer part of a path that is too long is elided first; then runs of siblings collapse, level
//! by level from the root, until the rest fits. In the last level to collapse, the members of an
//! object lose their values before their names.
//!
//! The levels are measured from the cut outwards, only as many as may fit. Nothing is written that
//! is removed again.

use super::levels::Levels;
use super::outline::{Item, Items, Level};
use super::run::{Run, unread_items};
use super::spend::Shown;
use super::write::{Length, MARK, Sink, Treatment, Writer};
use super::{CutValue, characters, token};
use crate::packed::{read_number, write_number};

/// Writes the document, or as much of it as `limit` characters can show.
pub(super) fn write_within(writer: &Writer<'_>, cut_value: CutValue, limit: usize) -> String {
    let outline = writer.outline;
    let mut path = Path::measure(writer, limit);
    let end = ending(writer, &path, cut_value, limit);
    let end_len = characters(&end);
    let Some(elided) = path.elide(end_len, limit) else {
        return end_of(&end, limit);
    };

    let mut text = elision(elided);
    let mut len = characters(&text) + path.full + end_len;
    let worthwhile = if len - path.worthwhile <= limit {
        worthwhile_saving(limit)
    } else {
        1
    };
    if elided == 0 {
        text.push_str(outline.before_root());
    }
    while let Some((level, cost)) = path.next() {
        let mut items = WrittenItems::new(writer, level);
        text.push_str(items.before());
        if len > limit && cost.saving() >= worthwhile {
            let collapsed = collapse(&mut items, len, limit);
            len = len - collapsed.written_len + characters(&collapsed.text);
            text.push_str(&collapsed.text);
        } else {
            text.push_str(items.unread);
        }
        while items.write_next(&mut text).is_some() {}
        text.push_str(&outline.text[items.at..level.next]);
    }
    text + &end
}

/// The sizes of the levels near the cut, as many as may fit.
struct Path {
    levels: Levels,
    costs: Vec<u8>,
    /// How many levels were not measured, because they cannot fit.
    beyond: usize,
    /// The size of the others in full, at least, and what collapsing the large ones would save.
    full: usize,
    least: usize,
    worthwhile: usize,
    limit: usize,
}

impl Path {
    fn measure(writer: &Writer<'_>, limit: usize) -> Self {
        let mut path = Self {
            levels: Levels::default(),
            costs: Vec::new(),
            beyond: writer.outline.depth(),
            full: 0,
            least: 0,
            worthwhile: 0,
            limit,
        };
        for level in writer.outline.levels() {
            path.beyond -= 1;
            let cost = Cost::measure(writer, &level, path.beyond == 0);
            for number in [cost.collapsed, cost.siblings, cost.path] {
                write_number(&mut path.costs, number);
            }
            path.levels.push(&level);
            path.full += cost.full();
            path.least += cost.least();
            path.worthwhile += path.worthwhile_part(&cost);
            if path.least > limit {
                break;
            }
        }
        path
    }

    /// Elides as many outer levels as necessary for the path to fit together with `end` other
    /// characters; returns how many, or none if it never fits.
    fn elide(&mut self, end: usize, limit: usize) -> Option<usize> {
        let mut elided = self.beyond;
        while self.least + end + characters(&elision(elided)) > limit {
            self.next()?;
            elided += 1;
        }
        Some(elided)
    }

    /// Removes the outermost level.
    fn next(&mut self) -> Option<(Level, Cost)> {
        let level = self.levels.next()?;
        let mut rest = &self.costs[..];
        let cost = Cost {
            path: read_number(&mut rest),
            siblings: read_number(&mut rest),
            collapsed: read_number(&mut rest),
        };
        let left = rest.len();
        self.costs.truncate(left);
        self.full -= cost.full();
        self.least -= cost.least();
        self.worthwhile -= self.worthwhile_part(&cost);
        Some((level, cost))
    }

    fn worthwhile_part(&self, cost: &Cost) -> usize {
        let saving = cost.saving();
        if saving >= worthwhile_saving(self.limit) {
            saving
        } else {
            0
        }
    }
}

/// The least saving for which a level collapses, as long as the other levels save enough.
fn worthwhile_saving(limit: usize) -> usize {
    limit / 20
}

/// The number of characters of a level.
struct Cost {
    /// Its bracket, the path to the next level, and the white space, except that at the cut.
    path: usize,
    /// All siblings of the path.
    siblings: usize,
    /// The siblings, collapsed into one run.
    collapsed: usize,
}

impl Cost {
    fn measure(writer: &Writer<'_>, level: &Level, is_root: bool) -> Self {
        let outline = writer.outline;
        let text = outline.text;
        let mut run = Run::new(outline, level);
        let mut siblings = Length(characters(unread_items(outline, level)));
        let mut before = level.open..level.open;
        let mut end = None;
        if level.has_unread_items() {
            before.end = level.open + 1;
            end = Some(level.from);
        }
        for item in outline.siblings(level) {
            match end {
                None => before.end = item.start,
                Some(end) => siblings.push_str(&text[end..item.start]),
            }
            writer.write_item(level, &item, &mut siblings);
            run.count(&item);
            end = Some(item.value.end);
        }
        let after = end.unwrap_or(level.open)..level.next;
        let root = if is_root { outline.before_root() } else { "" };
        Self {
            path: characters(root) + characters(&text[before]) + characters(&text[after]),
            siblings: siblings.0,
            collapsed: run.len(),
        }
    }

    fn full(&self) -> usize {
        self.path + self.siblings
    }

    fn least(&self) -> usize {
        self.full() - self.saving()
    }

    /// The saving from collapsing.
    fn saving(&self) -> usize {
        self.siblings.saturating_sub(self.collapsed)
    }
}

/// The unfinished item at the cut and the white space after it.
///
/// The value at the cut is shortened if it does not fit together with the path, or with half of the
/// limit if the path takes more. White space that takes more than half of the limit is dropped,
/// because degenerate models write endless blanks.
fn ending(writer: &Writer<'_>, path: &Path, cut_value: CutValue, limit: usize) -> String {
    let outline = writer.outline;
    let (item, mut blanks) = (outline.unfinished_item(), outline.blanks());
    let Some(value) = &outline.cut_value else {
        let len = path.full + characters(item) + characters(blanks);
        if (path.beyond > 0 || len > limit) && blanks.len() > limit / 2 {
            blanks = "";
        }
        return format!("{item}{blanks}");
    };
    let before = &outline.text[outline.tail..value.span.start];
    let mut value_len = Length::default();
    writer.write_cut_value(&writer.spending.cut_value, &mut value_len);
    let len = path.full + characters(before) + value_len.0 + characters(blanks);
    if (path.beyond > 0 || len > limit) && blanks.len() > limit / 2 {
        blanks = "";
    }
    let around = path.least + characters(before) + characters(blanks);
    let room = limit - around.min(limit / 2);
    let mut text = before.to_owned();
    if value_len.0 <= room {
        writer.write_cut_value(&writer.spending.cut_value, &mut text);
    } else if cut_value == CutValue::Hint {
        writer.write_cut_value(&Shown::Hint, &mut text);
    } else {
        let content = token::end_within(&outline.text[value.content.clone()], outline.look_back);
        // Room for two quotes and the mark around the tail.
        let tail = token::longest_tail(content, &|tail| characters(tail) + 3 <= room);
        writer.write_cut_value(&Shown::Tail(value.content.end - tail.len()), &mut text);
    }
    text + blanks
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
    /// Their size in full.
    written_len: usize,
}

/// Collapses as few of the first items of a level as necessary to reduce `len` to `limit`, or all.
fn collapse(items: &mut WrittenItems<'_>, len: usize, limit: usize) -> Collapsed {
    let outline = items.writer.outline;
    if outline.is_object(&items.level) {
        let mut members = items.clone();
        if let Some(names) = collapse_to_names(&mut members, len, limit) {
            *items = members;
            return names;
        }
    }
    let mut run = Run::new(outline, &items.level);
    let mut written = Length(characters(items.unread));
    while let Some(item) = items.write_next(&mut written) {
        run.count(&item);
        if len - written.0 + run.len() <= limit {
            break;
        }
    }
    Collapsed {
        text: run.name(),
        written_len: written.0,
    }
}

/// Omits the values of the first members of an object, if that is enough.
fn collapse_to_names(
    members: &mut WrittenItems<'_>,
    len: usize,
    limit: usize,
) -> Option<Collapsed> {
    let mut text = members.unread.to_owned();
    let mut names_len = characters(&text);
    let mut written = Length(names_len);
    while let Some(member) = members.write_next(&mut written) {
        let start = text.len();
        text.push_str(members.gap());
        let writer = members.writer;
        writer.write_item_as(&Treatment::Structure, &member, &mut text);
        names_len += characters(&text[start..]);
        if len - written.0 + names_len <= limit {
            return Some(Collapsed {
                text,
                written_len: written.0,
            });
        }
        if names_len > limit {
            break;
        }
    }
    None
}

/// Writes the items of a level one at a time, each with the white space before it.
#[derive(Clone)]
struct WrittenItems<'a> {
    writer: &'a Writer<'a>,
    level: Level,
    items: Items<'a>,
    /// Replaces the items that were not read.
    unread: &'static str,
    /// Where the first item starts, or the text in place of unread items.
    first: usize,
    /// The range of the gap before the last written item.
    gap: (usize, usize),
    /// Where that item ends, or the first starts, or the level if it has none.
    at: usize,
}

impl<'a> WrittenItems<'a> {
    fn new(writer: &'a Writer<'a>, level: Level) -> Self {
        let mut items = writer.outline.siblings(&level);
        let (first, at) = if level.has_unread_items() {
            (level.open + 1, level.from)
        } else {
            let first = items.next_start().unwrap_or(level.open);
            (first, first)
        };
        Self {
            writer,
            level,
            items,
            unread: unread_items(writer.outline, &level),
            first,
            gap: (at, at),
            at,
        }
    }

    /// The text before the first item.
    fn before(&self) -> &'a str {
        &self.writer.outline.text[self.level.open..self.first]
    }

    /// The text between the last written item and the one before it.
    fn gap(&self) -> &'a str {
        &self.writer.outline.text[self.gap.0..self.gap.1]
    }

    fn write_next(&mut self, out: &mut impl Sink) -> Option<Item> {
        let item = self.items.next()?;
        self.gap = (self.at, item.start);
        self.at = item.value.end;
        out.push_str(self.gap());
        self.writer.write_item(&self.level, &item, out);
        Some(item)
    }
}

/// The mark and the last characters of a text.
fn end_of(text: &str, limit: usize) -> String {
    let start = text
        .char_indices()
        .rev()
        .take(limit - 1)
        .last()
        .map_or(text.len(), |(start, _)| start);
    format!("{MARK}{}", &text[start..])
}
