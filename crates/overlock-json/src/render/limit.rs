//! Holds a rendered document to a number of characters.
//!
//! The path to the cut has precedence over what stands beside it, and what is
//! near the cut over what is far from it. So the outer part of a path that is
//! too long goes first; then runs of siblings collapse, level by level from the
//! root, until the rest fits.

use super::spend::Shown;
use super::write::{MARK, Writer, Written};
use super::{CutValue, characters, token};

/// The text, or as much of it as `limit` characters can show.
pub(super) fn hold(
    written: Written,
    writer: &Writer<'_>,
    cut_value: CutValue,
    limit: usize,
) -> String {
    let total = characters(&written.text);
    if total <= limit {
        return written.text;
    }
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
    for (level, cost) in costs.iter().enumerate().skip(elided) {
        let parts = LevelParts::of(&written, level);
        text.push_str(parts.before);
        if len <= limit || cost.collapsed >= cost.beside {
            text.push_str(parts.beside);
        } else {
            let run = shortest_run(writer, level, len, limit);
            len = len - run.written_len + run.replaced_len();
            text.push_str(&run.name());
            text.push_str(&parts.beside[run.written_bytes..]);
        }
        text.push_str(parts.after);
    }
    text + &tail
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
        self.path + self.beside.min(self.collapsed)
    }
}

fn costs(written: &Written, writer: &Writer<'_>) -> Vec<Cost> {
    (0..written.levels.len())
        .map(|level| {
            let parts = LevelParts::of(written, level);
            let mut run = Run::new(writer, level);
            for item in writer.outline.beside(level) {
                run.count(item);
            }
            Cost {
                path: characters(parts.before) + characters(parts.after),
                beside: characters(parts.beside),
                collapsed: if run.count == 0 {
                    0
                } else {
                    run.replaced_len()
                },
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

/// The shortest run from the first item of a level that brings `len` down to `limit`, or all of them.
fn shortest_run<'a>(writer: &'a Writer<'a>, level: usize, len: usize, limit: usize) -> Run<'a> {
    let text = writer.outline.text;
    let mut run = Run::new(writer, level);
    let mut written = String::new();
    let mut end = None;
    for item in writer.outline.beside(level) {
        let (start, value) = writer.outline.item(level, item);
        written.clear();
        written.push_str(&text[end.unwrap_or(start)..start]);
        writer.write_item(level, item, &mut written);
        end = Some(value.end);
        run.count(item);
        run.written_bytes += written.len();
        run.written_len += characters(&written);
        if len - run.written_len + run.replaced_len() <= limit {
            break;
        }
    }
    run
}

/// Siblings that become one `<987 more objects>`.
struct Run<'a> {
    writer: &'a Writer<'a>,
    level: usize,
    count: usize,
    noun: Option<Noun>,
    /// What they take as they were written.
    written_bytes: usize,
    written_len: usize,
}

/// What the siblings of a run are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Noun {
    Member,
    Object,
    Array,
    String,
    Number,
    Value,
}

impl<'a> Run<'a> {
    fn new(writer: &'a Writer<'a>, level: usize) -> Self {
        Self {
            writer,
            level,
            count: 0,
            noun: None,
            written_bytes: 0,
            written_len: 0,
        }
    }

    fn count(&mut self, item: usize) {
        self.count += 1;
        let noun = self.noun_of(item);
        self.noun = match self.noun {
            None => Some(noun),
            Some(same) if same == noun => Some(same),
            Some(_) => Some(Noun::Value),
        };
    }

    fn noun_of(&self, item: usize) -> Noun {
        let outline = self.writer.outline;
        if outline.is_object(self.level) {
            return Noun::Member;
        }
        match outline.text.as_bytes()[outline.item_value(self.level, item)] {
            b'{' => Noun::Object,
            b'[' => Noun::Array,
            b'"' => Noun::String,
            b't' | b'f' | b'n' => Noun::Value,
            _ => Noun::Number,
        }
    }

    fn name(&self) -> String {
        let noun = match self.noun {
            Some(Noun::Member) => "member",
            Some(Noun::Object) => "object",
            Some(Noun::Array) => "array",
            Some(Noun::String) => "string",
            Some(Noun::Number) => "number",
            Some(Noun::Value) | None => "value",
        };
        let plural = if self.count == 1 { "" } else { "s" };
        format!("<{} more {noun}{plural}>", self.count)
    }

    fn replaced_len(&self) -> usize {
        // The name of a run is ASCII.
        self.name().len()
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
