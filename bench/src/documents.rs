//! Documents as models write them, the same in every run.

use std::fmt::Write;

use crate::random::Random;

const WORDS: &[&str] = &[
    "the", "report", "of", "water", "level", "and", "harbour", "measured", "in", "spring", "a",
    "value", "above", "mean", "tide", "station", "north", "with", "each", "hour", "café", "Zürich",
    "naïve", "€", "data", "shows", "that", "pressure", "falls", "before", "storm", "日本",
    "quality", "check", "passed",
];

/// A report of about `size` bytes, whole, written without white space.
///
/// Sections of paragraphs, tables and records, with some escapes and some text beyond ASCII.
pub(crate) fn report(size: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = String::with_capacity(size + 4096);
    text.push_str(
        r#"{"metadata":{"title":"Tides and harbours","version":3,"draft":false},"sections":["#,
    );
    let mut number = 0;
    loop {
        section(&mut text, number, &mut random);
        number += 1;
        if text.len() >= size {
            break;
        }
        text.push(',');
    }
    text.push_str("]}");
    text
}

/// The beginning of a report: exactly `size` bytes or a few less, ending inside a string.
pub(crate) fn cut_report(size: usize) -> String {
    let mut text = report(size, 7);
    // Ends within a sentence, which is in a string.
    let mut end = text[..size.min(text.len())]
        .rfind("the ")
        .map_or(0, |at| at + 4);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

fn section(text: &mut String, number: usize, random: &mut Random) {
    let _ = write!(text, r#"{{"id":"section_{number}","title":""#);
    sentence(text, 4, random);
    match number % 4 {
        0 => {
            text.push_str(r#"","content_type":"paragraph","elements":["#);
            for index in 0..3 {
                text.push_str(if index == 0 {
                    r#"{"text":""#
                } else {
                    r#",{"text":""#
                });
                sentence(text, 60, random);
                text.push_str(r#""}"#);
            }
            text.push(']');
        }
        1 => {
            text.push_str(
                r#"","content_type":"table","headers":["hour","level","trend","note"],"rows":["#,
            );
            for row in 0..24 {
                let comma = if row == 0 { "" } else { "," };
                let level = random.below(900);
                let _ = write!(
                    text,
                    r#"{comma}[{row},{}.{:02},-{}e-3,""#,
                    level / 100,
                    level % 100,
                    random.below(99)
                );
                sentence(text, 3, random);
                text.push_str(r#""]"#);
            }
            text.push(']');
        }
        2 => {
            text.push_str(r#"","content_type":"records","records":["#);
            for record in 0..12 {
                let comma = if record == 0 { "" } else { "," };
                let id = number * 100 + record;
                let (flag, price) = (random.below(2) == 0, random.below(100_000));
                let _ = write!(
                    text,
                    r#"{comma}{{"id":{id},"active":{flag},"price":{price},"parent":null,"name":""#
                );
                sentence(text, 5, random);
                text.push_str(r#"","tags":["a","b"]}"#);
            }
            text.push(']');
        }
        _ => {
            text.push_str(r#"","content_type":"code_block","code":""#);
            for _ in 0..8 {
                text.push_str(
                    r#"fn main() {\n\tprintln!(\"caf\u00e9: {}\", r\"C:\\tides\\data\");\n}\n"#,
                );
            }
            text.push('"');
        }
    }
    text.push('}');
}

fn sentence(text: &mut String, words: usize, random: &mut Random) {
    for index in 0..words {
        if index > 0 {
            text.push(' ');
        }
        text.push_str(random.pick(WORDS));
        if random.below(40) == 0 {
            text.push_str(random.pick(&[r#"\"quoted\""#, r"\n", r"\u2014", r"\\"]));
        }
    }
}

/// Small documents of many kinds to cut everywhere. Keys are unique in their object, because most
/// peers read objects into maps.
pub(crate) fn small(count: usize) -> Vec<String> {
    (0..count)
        .map(|index| small_document(index as u64))
        .collect()
}

fn small_document(seed: u64) -> String {
    let mut random = Random::new(seed.wrapping_mul(977) + 5);
    let mut text = String::new();
    let layout = match seed % 3 {
        0 => Layout {
            indent: None,
            space: "",
        },
        1 => Layout {
            indent: None,
            space: " ",
        },
        _ => Layout {
            indent: Some(2),
            space: " ",
        },
    };
    let size = 300 + random.below(500);
    container(&mut text, 0, size, &layout, &mut random);
    text
}

/// How a document is laid out.
struct Layout {
    indent: Option<usize>,
    space: &'static str,
}

fn container(text: &mut String, depth: usize, size: usize, layout: &Layout, random: &mut Random) {
    let is_object = random.below(3) > 0;
    let begun = text.len();
    text.push(if is_object { '{' } else { '[' });
    let mut index = 0;
    while text.len() - begun < size {
        if index > 0 {
            text.push(',');
            if layout.indent.is_none() {
                text.push_str(layout.space);
            }
        }
        new_line(text, depth + 1, layout);
        if is_object {
            let key = random.pick(&[
                "name",
                "value",
                "größe",
                "a b",
                "id",
                "data",
                r"k\u00e9y",
                "x/y",
                "~",
            ]);
            let _ = write!(text, "\"{key}{index}\":{}", layout.space);
        }
        if size > 60 && random.below(3) == 0 {
            container(text, depth + 1, size / 2, layout, random);
        } else {
            scalar(text, random);
        }
        index += 1;
    }
    if index > 0 {
        new_line(text, depth, layout);
    }
    text.push(if is_object { '}' } else { ']' });
}

fn new_line(text: &mut String, depth: usize, layout: &Layout) {
    if let Some(indent) = layout.indent {
        let _ = write!(text, "\n{:1$}", "", depth * indent);
    }
}

fn scalar(text: &mut String, random: &mut Random) {
    match random.below(12) {
        0..=6 => {
            text.push('"');
            for _ in 0..random.below(8) {
                // Most text of models is plain; closing fails on the rest.
                text.push_str(match random.below(24) {
                    0 => random.pick(&[r#"\""#, r"\\", r"\u00e9", r"\ud83c\udf0a", r"\n"]),
                    1 => random.pick(&["{", "]", ", ", ": ", "/"]),
                    2 => random.pick(&["é ", "🌊", "日本"]),
                    _ => random.pick(&["tide ", "harbour ", "mean ", "level ", "of ", "spring "]),
                });
            }
            text.push('"');
        }
        7..=9 => text.push_str(random.pick(&[
            "0",
            "7",
            "-12",
            "1250",
            "3.14159",
            "-1.5e-7",
            "1E+2",
            "12345678901234567890",
            "0.001",
            "99999",
        ])),
        10 => text.push_str(random.pick(&["true", "false", "null"])),
        _ => text.push_str(random.pick(&["{}", "[]", r#""""#])),
    }
}
