//! Documents of the kinds that models are asked for.

use super::random::Random;
use super::value::{Layout, Value};

const WORDS: [&str; 48] = [
    "the",
    "report",
    "of",
    "water",
    "level",
    "and",
    "harbour",
    "measured",
    "in",
    "spring",
    "a",
    "value",
    "above",
    "mean",
    "tide",
    "station",
    "north",
    "with",
    "each",
    "hour",
    "delivery",
    "query",
    "improved",
    "between",
    "customer",
    "shows",
    "that",
    "pressure",
    "falls",
    "before",
    "storm",
    "quality",
    "check",
    "passed",
    "quarter",
    "revenue",
    "grew",
    "by",
    "percent",
    "because",
    "new",
    "contracts",
    "were",
    "signed",
    "late",
    "is",
    "it",
    "to",
];
const WORLD: [&str; 16] = [
    "Zürich",
    "naïve",
    "日本語",
    "の",
    "データ",
    "отчёт",
    "вода",
    "café",
    "größe",
    "مرحبا",
    "😀",
    "€",
    "München",
    "\\u00e9t\\u00e9",
    "한국어",
    "señor",
];

/// A document and the value in it.
pub(crate) fn document(random: &mut Random) -> (Value, Layout) {
    let value = match random.below(9) {
        0 => report(random),
        1 => table(random),
        2 => code(random),
        3 => base64(random),
        4 => log(random),
        5 => numbers(random),
        6 => nested(random, 9),
        7 => world(random),
        _ => records(random),
    };
    let layout = random.pick(&[Layout::Compact, Layout::Spaced, Layout::Pretty]);
    (value, layout)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "numbers and texts are given alike"
)]
fn leaf(text: impl ToString) -> Value {
    Value::Leaf(text.to_string())
}

fn quoted(text: impl std::fmt::Display) -> Value {
    Value::Leaf(format!("\"{text}\""))
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.map(|(key, value)| (format!("\"{key}\""), value));
    Value::Object(members.into())
}

fn list(count: usize, mut item: impl FnMut(usize) -> Value) -> Value {
    Value::Array((0..count).map(&mut item).collect())
}

fn words(random: &mut Random, count: usize) -> String {
    let words: Vec<&str> = (0..count).map(|_| random.pick(&WORDS)).collect();
    words.join(" ")
}

fn sentences(random: &mut Random, count: usize) -> String {
    let mut text = String::new();
    for _ in 0..count {
        let len = 5 + random.below(12);
        text.push_str(&words(random, len));
        text.push_str(random.pick(&[". ", ", ", ". ", "! ", ".\\n", " \\\"so\\\" "]));
    }
    text.trim_end().to_owned()
}

fn report(random: &mut Random) -> Value {
    let count = 2 + random.below(5);
    let sections = list(count, |number| {
        let content = 1 + random.below(5);
        let bullets = 1 + random.below(5);
        object([
            ("id", quoted(format_args!("section_{number}"))),
            ("title", quoted(words(random, 3))),
            ("content_type", quoted("paragraph")),
            ("content", quoted(sentences(random, content))),
            ("bullets", list(bullets, |_| quoted(words(random, 6)))),
        ])
    });
    object([
        ("title", quoted(words(random, 4))),
        ("version", leaf(random.below(9))),
        ("draft", leaf(random.once_in(2))),
        ("sections", sections),
        ("reviewed", leaf("null")),
    ])
}

/// Rows that differ in few cells, and now and then in none.
fn table(random: &mut Random) -> Value {
    let count = 4 + random.below(25);
    let with_keys = random.once_in(2);
    let rows = list(count, |_| {
        let city = quoted(random.pick(&["Oslo", "Bergen", "Oslo", "Tromsø"]));
        let state = quoted(random.pick(&["ok", "ok", "ok", "late"]));
        let number = leaf(random.pick(&[100, 100, 120, 95, 7]));
        if with_keys {
            object([("city", city), ("status", state), ("count", number)])
        } else {
            Value::Array(vec![city, state, number])
        }
    });
    object([
        ("headers", list(3, |n| quoted(format_args!("column {n}")))),
        ("rows", rows),
        ("total", leaf(count)),
    ])
}

fn code(random: &mut Random) -> Value {
    let count = 1 + random.below(4);
    let files = list(count, |number| {
        let mut text = String::new();
        for _ in 0..3 + random.below(12) {
            let name = random.pick(&WORDS);
            let line = match random.below(6) {
                0 => format!(
                    "fn {name}(x: u32) -> u32 {{\\n    x + {}\\n}}\\n",
                    random.below(90)
                ),
                1 => format!("    println!(\\\"{name}: {{}}\\\", {name});\\n"),
                2 => format!(
                    "\\tif ({name} == '{name}') {{ return [{}]; }}\\n",
                    random.below(9)
                ),
                3 => format!("// {}\\n", words(random, 5)),
                4 => format!("let {name} = \\\"C:\\\\\\\\{name}\\\\\\\\data\\\";\\n"),
                _ => "    }\\n}\\n\\n".to_owned(),
            };
            text.push_str(&line);
        }
        object([
            ("path", quoted(format_args!("src/file_{number}.rs"))),
            ("code", quoted(text)),
        ])
    });
    object([("files", files), ("language", quoted("rust"))])
}

fn base64(random: &mut Random) -> Value {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut blob = |len: usize| {
        let letters = (0..len).map(|_| char::from(random.pick(LETTERS)));
        letters.collect::<String>() + "=="
    };
    let (one, two) = (blob(700), blob(90));
    object([
        ("name", quoted("picture.png")),
        ("data", quoted(one)),
        ("thumbnail", quoted(two)),
        ("encoding", quoted("base64")),
    ])
}

fn log(random: &mut Random) -> Value {
    let count = 5 + random.below(25);
    let lines = list(count, |number| {
        let level = random.pick(&["INFO", "INFO", "WARN", "ERROR"]);
        let what = random.pick(&[
            "request served",
            "connection closed by peer",
            "retrying the call",
            "request served",
        ]);
        object([
            (
                "time",
                quoted(format_args!("2024-05-01T10:{:02}:00Z", number / 3)),
            ),
            ("level", quoted(level)),
            ("message", quoted(what)),
        ])
    });
    object([("service", quoted("gateway")), ("lines", lines)])
}

fn numbers(random: &mut Random) -> Value {
    let count = 20 + random.below(150);
    let style = random.below(4);
    let values = list(count, |number| match style {
        0 => leaf(number + 1),
        1 => leaf(random.below(10)),
        2 => leaf(format_args!(
            "{}.{:03}",
            random.below(30),
            random.below(1000)
        )),
        _ => leaf(random.below(100_000)),
    });
    object([
        ("sensor", quoted("kitchen")),
        ("unit", quoted("°C")),
        ("values", values),
        ("count", leaf(count)),
    ])
}

fn nested(random: &mut Random, depth: usize) -> Value {
    let count = random.below(3) + usize::from(depth > 6);
    let children = if depth == 0 { 0 } else { count };
    object([
        ("name", quoted(words(random, 2))),
        ("size", leaf(random.below(1000))),
        ("children", list(children, |_| nested(random, depth - 1))),
    ])
}

fn world(random: &mut Random) -> Value {
    let count = 3 + random.below(12);
    let entries = list(count, |number| {
        let text: Vec<&str> = (0..8)
            .map(|at| {
                if at % 2 == 0 {
                    random.pick(&WORLD)
                } else {
                    random.pick(&WORDS)
                }
            })
            .collect();
        object([("nr", leaf(number)), ("text", quoted(text.join(" ")))])
    });
    object([("größe", leaf(count)), ("entries", entries)])
}

fn records(random: &mut Random) -> Value {
    let count = 3 + random.below(15);
    let first = random.below(1000);
    let items = list(count, |number| {
        object([
            ("id", leaf(first + number)),
            ("name", quoted(words(random, 2))),
            (
                "price",
                leaf(format_args!("{}.{}", random.below(500), random.below(99))),
            ),
            ("active", leaf(random.once_in(2))),
            ("parent", leaf("null")),
            ("tags", list(2, |_| quoted(random.pick(&WORDS)))),
        ])
    });
    object([
        ("title", quoted(words(random, 3))),
        ("items", items),
        ("total", leaf(count)),
    ])
}
