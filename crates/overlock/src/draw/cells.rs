//! Fits a text into columns, with control characters made visible.
//!
//! Only the part that can be drawn is read, so a line of a gigabyte costs no more than a short one.

use unicode_width::UnicodeWidthChar;

/// A drawn text and its number of columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub(crate) text: String,
    pub(crate) width: usize,
}

/// One drawn character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) width: usize,
}

/// The beginning of a text in at most `room` columns, with `…` for the rest.
pub(crate) fn head(text: &[u8], room: usize) -> Drawn {
    let reach = text.len().min(room.saturating_mul(BYTES_A_COLUMN));
    let cells = cells(&text[..reach]);
    let mut fitting = fit(cells.iter(), room);
    let whole = fitting == cells.len() && reach == text.len();
    if !whole {
        fitting = fit(cells.iter(), room.saturating_sub(1));
    }
    let mut drawn = draw(&cells[..fitting]);
    if !whole && room > 0 {
        drawn.text.push('…');
        drawn.width += 1;
    }
    drawn
}

/// The end of a text in at most `room` columns, with `…` for the rest.
pub(crate) fn tail(text: &[u8], room: usize) -> Drawn {
    let mut start = text.len() - text.len().min(room.saturating_mul(BYTES_A_COLUMN));
    // Skips the rest of a character.
    while start > 0 && start < text.len() && text[start] & 0xC0 == 0x80 {
        start += 1;
    }
    let cells = cells(&text[start..]);
    let mut fitting = fit(cells.iter().rev(), room);
    let whole = fitting == cells.len() && start == 0;
    if !whole {
        fitting = fit(cells.iter().rev(), room.saturating_sub(1));
    }
    let end = draw(&cells[cells.len() - fitting..]);
    if whole || room == 0 {
        return end;
    }
    Drawn {
        text: format!("…{}", end.text),
        width: end.width + 1,
    }
}

/// Wraps a text at its spaces.
pub(crate) fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let words: Vec<_> = text.split(' ').collect();
    wrap(&words, " ", width)
}

/// Puts as many entries into each line as fit.
pub(crate) fn wrap(entries: &[&str], between: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for entry in entries {
        let entry = head(entry.as_bytes(), width).text;
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            *line = entry;
        } else if line.chars().count() + between.len() + entry.chars().count() <= width {
            line.push_str(between);
            line.push_str(&entry);
        } else {
            lines.push(entry);
        }
    }
    lines
}

/// All characters of a line, for callers that wrap it.
pub(crate) fn line_cells(line: &[u8]) -> Vec<Cell> {
    cells(line)
}

/// All of a text on one line, with control characters made visible.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|character| visible(character).text)
        .collect()
}

/// A line of ours, with all control characters made visible except its styles.
pub(crate) fn escaped_except_styles(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        let length = style_len(rest).unwrap_or(0);
        if length > 0 {
            escaped.push_str(&rest[..length]);
            rest = &rest[length..];
        } else {
            escaped.push_str(&visible(character).text);
            rest = &rest[character.len_utf8()..];
        }
    }
    escaped
}

/// The length of the style at the start of a text.
fn style_len(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|character: char| !character.is_ascii_digit() && character != ';')?;
    let length = text.len() - numbers.len() + end + 1;
    numbers[end..].starts_with('m').then_some(length)
}

/// Enough for any character with one or two combining marks.
const BYTES_A_COLUMN: usize = 16;

fn fit<'a>(cells: impl Iterator<Item = &'a Cell>, room: usize) -> usize {
    let mut width = 0;
    cells
        .take_while(|cell| {
            width += cell.width;
            width <= room
        })
        .count()
}

fn draw(cells: &[Cell]) -> Drawn {
    Drawn {
        text: cells.iter().map(|cell| cell.text.as_str()).collect(),
        width: cells.iter().map(|cell| cell.width).sum(),
    }
}

fn cells(bytes: &[u8]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    // Indentation after a line break is dropped, because the lines are joined.
    let mut indenting = false;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if indenting && matches!(character, ' ' | '\t' | '\r' | '\n') {
                continue;
            }
            indenting = character == '\n';
            match visible(character) {
                // A combining mark belongs to the character before it.
                Cell { text, width: 0 } => match cells.last_mut() {
                    Some(last) => last.text.push_str(&text),
                    None => cells.push(Cell { text, width: 0 }),
                },
                cell => cells.push(cell),
            }
        }
        for _ in chunk.invalid() {
            cells.push(cell('\u{FFFD}'.into(), 1));
        }
    }
    cells
}

fn visible(character: char) -> Cell {
    match character {
        '\n' => cell('⏎'.into(), 1),
        '\t' => cell("    ".into(), 4),
        '\0'..='\x1f' => cell(picture(character), 1),
        '\x7f' => cell('␡'.into(), 1),
        // Characters that hide text or change its direction are spelled out.
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => {
            let spelled = format!("<{:x}>", u32::from(character));
            let width = spelled.len();
            cell(spelled, width)
        }
        _ => cell(character.into(), character.width().unwrap_or(0)),
    }
}

/// The Unicode symbol for a control character.
fn picture(control: char) -> String {
    char::from_u32(0x2400 + u32::from(control)).map_or_else(String::new, String::from)
}

fn cell(text: String, width: usize) -> Cell {
    Cell { text, width }
}

#[cfg(test)]
mod tests {
    use super::{escaped_except_styles, head, plain, tail};

    #[track_caller]
    fn check(text: &str, room: usize, expected_head: &str, expected_tail: &str) {
        let (head, tail) = (head(text.as_bytes(), room), tail(text.as_bytes(), room));
        assert_eq!(
            (&*head.text, &*tail.text),
            (expected_head, expected_tail),
            "{text:?} in {room}"
        );
        assert!(head.width <= room && tail.width <= room);
    }

    #[test]
    fn elides_what_does_not_fit() {
        check("abcdef", 6, "abcdef", "abcdef");
        check("abcdef", 4, "abc…", "…def");
        check("abcdef", 1, "…", "…");
        check("abcdef", 0, "", "");
        check("", 4, "", "");
    }

    #[test]
    fn counts_columns_and_not_characters() {
        check("日本語", 6, "日本語", "日本語");
        check("日本語", 5, "日本…", "…本語");
        check(
            "e\u{301}e\u{301}e\u{301}",
            3,
            "e\u{301}e\u{301}e\u{301}",
            "e\u{301}e\u{301}e\u{301}",
        );
    }

    #[test]
    fn escapes_terminal_commands() {
        check("\x1b[31m\x07", 20, "␛[31m␇", "␛[31m␇");
        check("a\u{202e}b", 20, "a<202e>b", "a<202e>b");
        check("{\n    \"a\"", 20, "{⏎\"a\"", "{⏎\"a\"");
    }

    #[test]
    fn keeps_only_the_styles_of_a_line() {
        let hostile = "a\x1b]0;owned\x07\nerror: b\x1b[2J\x1b[1;31mc\x1b[0m\r\x1b[";
        assert_eq!(
            escaped_except_styles(hostile),
            "a␛]0;owned␇⏎error: b␛[2J\x1b[1;31mc\x1b[0m␍␛["
        );
        assert_eq!(plain(hostile), "a␛]0;owned␇⏎error: b␛[2J␛[1;31mc␛[0m␍␛[");
    }

    #[test]
    fn reads_only_the_visible_part_of_a_long_line() {
        let line = "é".repeat(1 << 20);
        assert_eq!(tail(line.as_bytes(), 3).text, "…éé");
        assert_eq!(head(line.as_bytes(), 3).text, "éé…");
    }
}
