//! Draws a cut: the line with a mark under it, the open containers, and the effect of closing.

use std::fmt;

use overlock_json::{Closing, Cut, CutPlace, PartialDocument};

use super::cells::{head, tail};
use super::trail::open_trail;
use super::words::{SENTENCE_COLUMNS, fixes, grouped, path};
use super::{CUT, FAINT, NEW, STRONG};

/// A text and its cut, if it has one.
pub(crate) struct CutDrawing<'a> {
    text: &'a [u8],
    base: &'a PartialDocument<'a>,
    cut: Option<Cut>,
}

impl<'a> CutDrawing<'a> {
    pub(crate) fn new(text: &'a [u8], base: &'a PartialDocument<'a>) -> Self {
        Self {
            text,
            base,
            cut: base.cut(),
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// `name: value` lines in a stable format.
    pub(crate) fn plain(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match &self.cut {
            None => {
                lines.push("status: complete".into());
                lines.push(format!("bytes: {}", self.base.text().len()));
            }
            Some(cut) => {
                let position = Position::of(self.text, cut.offset);
                lines.push("status: cut".into());
                lines.push(format!("place: {}", cut.place.name()));
                lines.push(format!("path: {}", pointer(&cut.path)));
                lines.push(format!("offset: {}", cut.offset));
                lines.push(format!("line: {}", position.line));
                lines.push(format!("column: {}", position.column));
                if let Some(closing) = self.base.scanner().closing(false) {
                    lines.push(format!("open: {}", open_trail(self.base, cut, &closing)));
                    lines.push(format!("closers: {}", closers(&closing)));
                }
                let losses = self.base.scanner().losses(false);
                let (truncated, dropped) = (losses.truncated, losses.dropped);
                lines.extend(truncated.map(|path| format!("truncated: {}", pointer(&path))));
                lines.extend(dropped.map(|path| format!("dropped: {}", pointer(&path))));
            }
        }
        if !self.base.fixes().is_empty() {
            lines.push(format!("fixes: {}", self.base.fixes().len()));
        }
        lines
    }

    /// A drawing of the cut.
    pub(crate) fn for_terminal(&self, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        match &self.cut {
            None => lines.push(format!(
                "{NEW}complete{NEW:#}: {} bytes, nothing is open",
                grouped(self.base.text().len())
            )),
            Some(cut) => self.draw_cut(cut, width, &mut lines),
        }
        if !self.base.fixes().is_empty() {
            lines.push(format!(
                "{FAINT}after repair{FAINT:#}  {}",
                fixes(self.base.fixes())
            ));
        }
        lines
    }

    fn draw_cut(&self, cut: &Cut, width: usize, lines: &mut Vec<String>) {
        let position = Position::of(self.text, cut.offset);
        lines.push(format!(
            "{CUT}cut{CUT:#} {} after {} bytes, {position}",
            cut.place.phrase(),
            grouped(cut.offset)
        ));
        lines.push(String::new());
        lines.extend(cut_lines(self.text, cut.offset, position.line, width));
        lines.push(String::new());
        lines.push(format!(
            "{FAINT}path {FAINT:#}  {STRONG}{}{STRONG:#}",
            path(&cut.path, width.saturating_sub(7))
        ));
        if let Some(closing) = self.base.scanner().closing(false) {
            lines.push(format!(
                "{FAINT}open {FAINT:#}  {}",
                open_trail(self.base, cut, &closing)
            ));
            lines.push(format!(
                "{FAINT}close{FAINT:#}  {}",
                closing_sentence(self.base, cut, &closing)
            ));
        }
    }
}

/// The line of the cut with a mark under it, after the two lines before it.
pub(crate) fn cut_lines(text: &[u8], offset: usize, line: usize, width: usize) -> Vec<String> {
    let offset = offset.min(text.len());
    let gutter = grouped(line).len();
    let room = width.saturating_sub(gutter + 4);
    let (mut before, current) = lines_up_to(&text[..offset], room);
    before.retain(|(_, line)| !line.trim_ascii().is_empty());
    let mut drawn: Vec<_> = before
        .iter()
        .map(|&(back, content)| {
            let number = grouped(line - back);
            let content = head(content, room).text;
            format!("{FAINT}{number:>gutter$} │ {content}{FAINT:#}")
        })
        .collect();
    let rest = &text[offset..];
    let rest = &rest[..rest
        .iter()
        .take(room * 16)
        .position(|&byte| byte == b'\n')
        .unwrap_or(rest.len().min(room * 16))];
    // The text after the cut gets a quarter of the line.
    let mark = "▲ the text stops here";
    let after = head(rest, room / 4);
    let current = tail(current, room.saturating_sub(after.width.max(1)));
    drawn.push(format!(
        "{FAINT}{:>gutter$} │{FAINT:#} {}{FAINT}{}{FAINT:#}",
        grouped(line),
        current.text,
        after.text
    ));
    let marked = if current.width + mark.chars().count() <= room {
        format!("{}{CUT}{mark}{CUT:#}", " ".repeat(current.width))
    } else {
        let mark = "the text stops here ▲";
        let indent = (current.width + 1).saturating_sub(mark.chars().count());
        format!("{}{CUT}{mark}{CUT:#}", " ".repeat(indent))
    };
    drawn.push(format!("{FAINT}{:>gutter$} │{FAINT:#} {marked}", ""));
    drawn
}

/// Describes the effect of closing the text.
fn closing_sentence(base: &PartialDocument<'_>, cut: &Cut, closing: &Closing) -> String {
    let mut parts = Vec::new();
    let removed = base.text().len() - closing.kept_len;
    if removed > 0 {
        parts.push(format!("removes {} bytes", grouped(removed)));
    }
    if !closing.closers.is_empty() {
        parts.push(format!("adds {NEW}{}{NEW:#}", closers(closing)));
    }
    let losses = base.scanner().losses(false);
    if losses.truncated.is_some() {
        parts.push("the string ends at the cut".into());
    }
    if let Some(dropped) = &losses.dropped {
        parts.push(match cut.place {
            CutPlace::Number => "the number is left out, since it may be incomplete".into(),
            _ => format!("{} is left out", path(dropped, SENTENCE_COLUMNS)),
        });
    }
    parts.join("; ")
}

/// The closers, with the middle left out if there are many.
fn closers(closing: &Closing) -> String {
    const SHOWN: usize = 40;
    let closers = closing.closers.as_str();
    if closers.len() <= SHOWN {
        return head(closers.as_bytes(), SHOWN).text;
    }
    let bytes = closers.as_bytes();
    let (start, end) = (&bytes[..SHOWN / 2], &bytes[bytes.len() - SHOWN / 2..]);
    format!(
        "{}…{} ({} in all)",
        String::from_utf8_lossy(start),
        String::from_utf8_lossy(end),
        grouped(bytes.len())
    )
}

/// A JSON pointer on one line, with control characters escaped.
fn pointer(path: &str) -> String {
    path.chars()
        .map(|character| {
            if character.is_control() {
                character.escape_default().to_string()
            } else {
                character.to_string()
            }
        })
        .collect()
}

/// A line and a column, counted from one; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Position {
    pub(crate) fn of(text: &[u8], offset: usize) -> Self {
        let before = &text[..offset.min(text.len())];
        let line_start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |newline| newline + 1);
        let is_start = |byte: &&u8| **byte & 0xC0 != 0x80;
        let is_break = |byte: &&u8| **byte == b'\n';
        Self {
            line: 1 + before.iter().filter(is_break).count(),
            column: 1 + before[line_start..].iter().filter(is_start).count(),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "line {}, column {}",
            grouped(self.line),
            grouped(self.column)
        )
    }
}

/// The lines before the last one, each with its distance to it, and the last line; only as much as
/// `room` columns can show.
fn lines_up_to(text: &[u8], room: usize) -> (Vec<(usize, &[u8])>, &[u8]) {
    const SHOWN: usize = 2;
    // Enough for all lines that are drawn.
    let reach = &text[text.len() - text.len().min(room * 16 * (SHOWN + 1))..];
    let mut lines = reach.rsplit(|&byte| byte == b'\n');
    let last = lines.next().unwrap_or_default();
    let mut before: Vec<_> = lines
        .take(SHOWN)
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .collect();
    before.reverse();
    (before, last)
}

#[cfg(test)]
mod tests {
    use super::{Position, cut_lines};

    fn drawn(text: &str, width: usize) -> Vec<String> {
        let position = Position::of(text.as_bytes(), text.len());
        cut_lines(text.as_bytes(), text.len(), position.line, width)
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect()
    }

    #[test]
    fn marks_the_column_after_the_last_character() {
        assert_eq!(
            drawn("{\n  \"a\": \"xy", 60),
            [
                "1 │ {",
                "2 │   \"a\": \"xy",
                "  │           ▲ the text stops here"
            ]
        );
    }

    #[test]
    fn a_wide_character_takes_two_columns() {
        assert_eq!(drawn("[\"日本", 60)[1], "  │       ▲ the text stops here");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 40..100 {
            for length in 0..120 {
                for line in drawn(&format!("[\"{}", "x".repeat(length)), width) {
                    assert!(line.chars().count() <= width, "{line:?} in {width}");
                }
            }
        }
    }

    #[test]
    fn positions_count_characters_from_one() {
        let at = |text: &str| {
            let position = Position::of(text.as_bytes(), text.len());
            (position.line, position.column)
        };
        assert_eq!(at(""), (1, 1));
        assert_eq!(at("[\"é"), (1, 4));
        assert_eq!(at("[\n\n"), (3, 1));
    }
}
