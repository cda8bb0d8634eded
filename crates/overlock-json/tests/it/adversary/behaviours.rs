//! The ways in which models misbehave when they are asked to go on.
//!
//! An answer has four parts, and a behaviour changes one or two of them, so that two behaviours of
//! different layers can be put together.

use std::fmt::Write;

use super::random::Random;
use super::value::{Layout, Value};
use super::{Mode, Question};

/// Which part of an answer a behaviour changes. They are applied in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// How it begins.
    Head,
    /// How it is written.
    Writing,
    /// What stands around it.
    Around,
}

/// What joining an answer has to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// To the document.
    Join,
    /// To a refusal: there is nothing in it that can be joined.
    Refuse,
    /// To anything: the texts do not tell. Fixed by the list of behaviours, not by results.
    Undecidable,
}

/// An answer in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) before: String,
    pub(crate) overlap: String,
    pub(crate) body: String,
    pub(crate) after: String,
    /// Whether the body is a document of its own, and does not go on where the base ends.
    pub(crate) is_document: bool,
}

impl Draft {
    pub(crate) fn text(&self) -> String {
        [&*self.before, &self.overlap, &self.body, &self.after].concat()
    }
}

/// One way to misbehave.
pub(crate) struct Behaviour {
    /// The row of the table of failures that it comes from; 0 for what earlier tests knew.
    pub(crate) row: u8,
    pub(crate) name: &'static str,
    pub(crate) layer: Layer,
    pub(crate) duty: Duty,
    /// Changes the answer; nothing if that makes no sense here.
    pub(crate) apply: fn(&mut Draft, &Question<'_>, &mut Random) -> Option<()>,
}

const fn behaviour(
    row: u8,
    name: &'static str,
    layer: Layer,
    duty: Duty,
    apply: fn(&mut Draft, &Question<'_>, &mut Random) -> Option<()>,
) -> Behaviour {
    Behaviour {
        row,
        name,
        layer,
        duty,
        apply,
    }
}

use Duty::{Join, Refuse, Undecidable};
use Layer::{Around, Head, Writing};

pub(crate) const BEHAVIOURS: &[Behaviour] = &[
    behaviour(0, "as it should", Head, Join, |_, _, _| Some(())),
    behaviour(0, "no overlap", Head, Join, |draft, question, _| {
        (question.mode == Mode::Asked).then(|| draft.overlap.clear())
    }),
    behaviour(
        0,
        "shorter overlap",
        Head,
        Join,
        |draft, question, random| {
            let len = 24 + random.below(question.asked.len().max(25));
            question.overlap_of(draft, len.min(question.asked.len().checked_sub(1)?))
        },
    ),
    behaviour(
        0,
        "longer overlap",
        Head,
        Join,
        |draft, question, random| {
            question.overlap_of(draft, question.asked.len() + 1 + random.below(200))
        },
    ),
    behaviour(
        0,
        "restart at the root",
        Head,
        Join,
        |draft, question, _| question.overlap_of(draft, question.cut),
    ),
    behaviour(
        0,
        "restart at the root, other layout",
        Head,
        Join,
        |draft, question, random| {
            question.is_last().then_some(())?;
            let layouts = [Layout::Compact, Layout::Spaced, Layout::Pretty];
            let others: Vec<Layout> = layouts
                .into_iter()
                .filter(|it| *it != question.layout)
                .collect();
            draft.overlap.clear();
            draft.body = question.value.write(random.pick(&others));
            draft.is_document = true;
            Some(())
        },
    ),
    behaviour(
        0,
        "restart at an element",
        Head,
        Join,
        |draft, question, random| {
            let open = super::open_containers(question.base());
            let opener = open[random.below(open.len())];
            question.overlap_of(draft, question.cut - opener)
        },
    ),
    behaviour(
        0,
        "remaining items in a wrapper",
        Head,
        Join,
        remaining_items,
    ),
    behaviour(
        0,
        "other white space",
        Writing,
        Join,
        |draft, question, random| {
            let style = random.pick(&[" ", "\n    ", ""]);
            draft.respace(question, style)
        },
    ),
    behaviour(0, "other escapes", Writing, Join, Draft::reescape),
    behaviour(
        1,
        "restart with a reworded beginning",
        Head,
        Refuse,
        |draft, question, random| restart(draft, question, random, reword),
    ),
    behaviour(
        1,
        "restart with other numbers",
        Head,
        Refuse,
        |draft, question, random| restart(draft, question, random, renumber),
    ),
    behaviour(
        1,
        "restart in another order",
        Head,
        Refuse,
        |draft, question, random| restart(draft, question, random, reorder),
    ),
    behaviour(
        1,
        "restart without the first items",
        Head,
        Refuse,
        |draft, question, random| {
            restart(draft, question, random, |value, random| {
                let items = first_array(value)?;
                (items.len() > 4).then(|| drop(items.drain(..=random.below(2))))
            })
        },
    ),
    behaviour(
        2,
        "overlap written twice",
        Head,
        Join,
        |draft, question, random| {
            let between = if question.is_in_string() {
                ""
            } else {
                random.pick(&["", "\n", " "])
            };
            (draft.overlap.len() >= 8).then_some(())?;
            draft.overlap = format!("{}{between}{}", draft.overlap, draft.overlap);
            Some(())
        },
    ),
    behaviour(
        2,
        "overlap twice, on two lines",
        Head,
        Join,
        |draft, question, _| {
            (draft.overlap.len() >= 8 && question.mode == Mode::Asked).then_some(())?;
            draft.overlap = format!("{}\n\n{}", draft.overlap, draft.overlap);
            Some(())
        },
    ),
    behaviour(3, "dots before", Around, Join, |draft, _, random| {
        draft.before += random.pick(&["... ", "…", "…\n", "...", "(…) ", "[...]\n", "// ...\n"]);
        Some(())
    }),
    behaviour(3, "talk before", Around, Join, |draft, _, random| {
        draft.before = random
            .pick(&[
                "Sure! Here is the rest:\n\n",
                "Here is the continuation of the JSON:\n",
                "Continuing from where I left off:\n\n",
                "(continued)\n",
                "Continuing: ",
                "Of course. ",
                "I will continue {exactly} where \"I\" stopped:\n",
                "Voici la suite :\n\n",
                "<think>It stopped at [1, {\"a\".</think>\n",
            ])
            .to_owned()
            + &draft.before;
        Some(())
    }),
    behaviour(3, "talk after", Around, Join, |draft, question, random| {
        question.is_last().then_some(())?;
        draft.after += random.pick(&[
            "\n\nLet me know if you need more!",
            "\n\nThat is all {really}.",
            "\n\n[End of document]",
            "\n---\nDone.",
        ]);
        Some(())
    }),
    behaviour(
        3,
        "a fence around",
        Around,
        Join,
        |draft, question, random| {
            draft.before += random.pick(&["```json\n", "```\n", "Here:\n\n```json\n"]);
            if question.is_last() {
                draft.after = "\n```".to_owned() + &draft.after;
            }
            Some(())
        },
    ),
    behaviour(
        4,
        "trailing comma",
        Writing,
        Join,
        |draft, question, random| {
            draft.edit_body(
                question,
                random,
                |byte| matches!(byte, b'}' | b']'),
                |closer, random| format!("{}{closer}", random.pick(&[",", ", ", ",\n"])),
            )
        },
    ),
    behaviour(
        4,
        "closer too many",
        Writing,
        Join,
        |draft, question, random| {
            // After nothing at all, a closer may be text.
            (!draft.body.is_empty()).then_some(())?;
            if question.is_last() && random.once_in(2) {
                draft.body += random.pick(&["}", "]", "\n}", "]}"]);
                return Some(());
            }
            draft.edit_body(
                question,
                random,
                |byte| matches!(byte, b'}' | b']'),
                |closer, _| format!("{closer}{closer}"),
            )?;
            // Where a second closer is lawful, no reader could tell.
            let mut scanner = overlock_json::Scanner::new();
            if !draft.is_document {
                scanner.feed(question.base().as_bytes());
            }
            scanner.feed(draft.body.as_bytes());
            scanner.syntax_error().map(|_| ())
        },
    ),
    behaviour(
        4,
        "raw line break in a string",
        Writing,
        Join,
        |draft, _, random| {
            let places: Vec<usize> = draft.body.match_indices("\\n").map(|(at, _)| at).collect();
            let places: Vec<usize> = places
                .into_iter()
                .filter(|at| !draft.body[..*at].ends_with('\\'))
                .collect();
            let at = *places.get(random.below(places.len().max(1)))?;
            draft.body.replace_range(at..at + 2, "\n");
            Some(())
        },
    ),
    behaviour(4, "Python literals", Writing, Join, |draft, question, _| {
        let mut changed = false;
        for (json, python) in [("true", "True"), ("false", "False"), ("null", "None")] {
            changed |= draft.replace_outside_strings(question, json, python);
        }
        changed.then_some(())
    }),
    behaviour(4, "a comment", Writing, Join, |draft, question, random| {
        draft.edit_body(
            question,
            random,
            |byte| byte == b',',
            |comma, random| {
                let comment =
                    random.pick(&[" // and so on\n", " /* the next one */ ", "\n// more\n"]);
                format!("{comma}{comment}")
            },
        )
    }),
    behaviour(4, "single quotes", Writing, Join, Draft::single_quotes),
    behaviour(5, "progress before", Around, Join, |draft, _, random| {
        draft.before += random.pick(&[
            "45%\n",
            "45\n",
            "45 percent\n",
            "45/100\n",
            "PROGRESS: 45\n",
            "Progress: 45 %\n\n",
            "**PROGRESS:** 45%\n",
            "About 45 % done.\n",
            "PROGRESS: 45/100\n",
        ]);
        Some(())
    }),
    behaviour(6, "our marker before", Around, Join, |draft, _, random| {
        draft.before += random.pick(&["[[overlap]]\n", "[[overlap]]", "[[/overlap]]\n"]);
        Some(())
    }),
    behaviour(
        6,
        "a list, heading or greeting before",
        Around,
        Join,
        |draft, _, random| {
            draft.before = random
                .pick(&[
                    "- the overlap, word for word\n- then the rest\n\n",
                    "1. Repeat: done\n2. Continue:\n",
                    "# Continuation\n\n",
                    "## JSON, part 2\n",
                    "Hello! ",
                    "Hi there,\n\n",
                    "> \"Repeat the text\", you said:\n",
                    "{\"note\": \"continuing\"}\n",
                ])
                .to_owned()
                + &draft.before;
            Some(())
        },
    ),
    behaviour(
        7,
        "an equal row follows",
        Head,
        Join,
        |draft, question, _| {
            // The item that follows the cut is the one before it once more.
            let base = question.base();
            let item = super::last_item(base)?;
            let rest = draft.body.trim_start();
            (rest.starts_with(item) && item.len() >= 3).then(|| draft.overlap.clear())
        },
    ),
    behaviour(
        8,
        "typographic quotes",
        Writing,
        Join,
        |draft, question, _| {
            (!question.is_in_escape()).then_some(())?;
            let (overlap, body) = (
                super::retype_quotes(
                    &draft.overlap,
                    question.is_in_string_at(question.cut - draft.overlap.len().min(question.cut)),
                ),
                super::retype_quotes(&draft.body, question.is_body_in_string(draft)),
            );
            let changed = overlap != draft.overlap || body != draft.body;
            (draft.overlap, draft.body) = (overlap, body);
            changed.then_some(())
        },
    ),
    behaviour(8, "byte-order mark", Around, Join, |draft, _, _| {
        draft.before = format!("\u{feff}{}", draft.before);
        Some(())
    }),
    behaviour(8, "CRLF", Writing, Join, |draft, _, _| {
        let crlf = |text: &str| text.replace('\n', "\r\n");
        let changed = draft.overlap.contains('\n') || draft.body.contains('\n');
        (draft.overlap, draft.body) = (crlf(&draft.overlap), crlf(&draft.body));
        changed.then_some(())
    }),
    behaviour(8, "the cut word again", Head, Join, |draft, question, _| {
        let word = question
            .base()
            .trim_end_matches(|c: char| c.is_alphanumeric());
        let len = question.cut - word.len();
        (len > 0 && question.is_in_string()).then_some(())?;
        question.overlap_of(draft, len)
    }),
    behaviour(
        9,
        "overlap reworded",
        Head,
        Undecidable,
        |draft, _, random| {
            let places: Vec<(usize, char)> = draft
                .overlap
                .char_indices()
                .filter(|(_, c)| c.is_ascii_alphanumeric())
                .collect();
            let (at, old) = *places.get(random.below(places.len().max(1)))?;
            let new = match random.below(3) {
                0 => String::new(),
                1 => format!("{old}x"),
                _ => if old.is_ascii_digit() { "4" } else { "e" }.to_owned(),
            };
            (new != old.to_string()).then_some(())?;
            draft.overlap.replace_range(at..=at, &new);
            Some(())
        },
    ),
    behaviour(
        10,
        "content left out",
        Writing,
        Undecidable,
        |draft, question, random| {
            let commas = question.body_places(draft, |b| b == b',');
            (commas.len() > 3).then_some(())?;
            let from = random.below(commas.len() - 2);
            let to = from + 1 + random.below(2);
            draft.body.replace_range(commas[from]..commas[to], "");
            Some(())
        },
    ),
    behaviour(
        10,
        "closed early",
        Writing,
        Undecidable,
        |draft, question, random| {
            let commas = question.body_places(draft, |b| b == b',');
            let at = *commas.get(random.below(commas.len().max(1)))?;
            draft.body.truncate(at);
            let text = format!("{}{}", question.base(), draft.body);
            for opener in super::open_containers(&text).into_iter().rev() {
                draft.body.push(if text.as_bytes()[opener] == b'{' {
                    '}'
                } else {
                    ']'
                });
            }
            Some(())
        },
    ),
    behaviour(
        11,
        "an apology and no more",
        Head,
        Refuse,
        |draft, question, random| {
            draft.overlap.clear();
            random
            .pick(&[
                "I'm sorry, I seem to have been cut off. Here is the rest:",
                "I cannot continue \"this document\" because it is too long.\n\n- Please ask again.",
                "The JSON is already complete.",
                "As an AI model, I have no memory of it.",
                "{\"error\": {\"message\": \"overloaded\", \"type\": \"server_error\"}}",
                "[{\"unrelated\": 1}, {\"unrelated\": 2}]",
                "null",
                "{}",
            ])
            .clone_into(&mut draft.body);
            draft.is_document = true;
            // It may be what was asked for.
            (!draft.body.starts_with(question.asked)).then_some(())
        },
    ),
    behaviour(
        11,
        "the overlap and no more",
        Head,
        Refuse,
        |draft, _, _| {
            draft.body.clear();
            (draft.overlap.len() >= 8).then_some(())
        },
    ),
];

/// The missing items as a document of their own, in the keys that lead to the cut.
fn remaining_items(draft: &mut Draft, question: &Question<'_>, _: &mut Random) -> Option<()> {
    let base = question.base();
    let open = super::open_containers(base);
    let is_between = base.trim_end().ends_with(',') && base.as_bytes()[*open.last()?] == b'[';
    (is_between && open.len() == 2 && question.mode == Mode::Auto).then_some(())?;
    let wrapper = super::wrapper(base, open[1])?;
    draft.overlap.clear();
    draft.body = format!("{{{wrapper}:[{}", draft.body.trim_start());
    draft.is_document = true;
    Some(())
}

/// A complete new version of the document that differs near its beginning.
fn restart(
    draft: &mut Draft,
    question: &Question<'_>,
    random: &mut Random,
    change: fn(&mut Value, &mut Random) -> Option<()>,
) -> Option<()> {
    let mut value = question.value.clone();
    change(&mut value, random)?;
    (value != *question.value).then_some(())?;
    let text = value.write(question.layout);
    // The difference must lie before the cut, or it is the document's own rest.
    let same = text
        .bytes()
        .zip(question.base().bytes())
        .take_while(|(a, b)| a == b)
        .count();
    (same + 2 < question.cut).then_some(())?;
    draft.overlap.clear();
    draft.body = text;
    draft.is_document = true;
    if !question.is_last() {
        let end = draft.body.floor_char_boundary(question.end);
        draft.body.truncate(end);
    }
    Some(())
}

fn first_array(value: &mut Value) -> Option<&mut Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        Value::Object(members) => members.iter_mut().find_map(|(_, value)| first_array(value)),
        Value::Leaf(_) => None,
    }
}

fn leaves<'a>(value: &'a mut Value, found: &mut Vec<&'a mut String>) {
    match value {
        Value::Leaf(text) => found.push(text),
        Value::Array(items) => items.iter_mut().for_each(|item| leaves(item, found)),
        Value::Object(members) => members
            .iter_mut()
            .for_each(|(_, value)| leaves(value, found)),
    }
}

/// Changes one or two of the first texts.
fn reword(value: &mut Value, random: &mut Random) -> Option<()> {
    let mut found = Vec::new();
    leaves(value, &mut found);
    let texts = found
        .into_iter()
        .filter(|leaf| leaf.starts_with('"') && leaf.len() > 4);
    let mut texts: Vec<&mut String> = texts.take(6).collect();
    let count = texts.len();
    for _ in 0..=random.below(2) {
        let text = texts.get_mut(random.below(count.max(1)))?;
        match random.below(4) {
            0 => text.insert_str(1, "a "),
            1 => text.insert(text.len() - 1, '.'),
            2 => text.insert_str(1, "The "),
            _ => {
                **text = text
                    .to_uppercase()
                    .replace("\\N", "\\n")
                    .replace("\\U", "\\u");
            }
        }
    }
    Some(())
}

fn renumber(value: &mut Value, random: &mut Random) -> Option<()> {
    let mut found = Vec::new();
    leaves(value, &mut found);
    let is_number = |leaf: &&mut String| leaf.starts_with(|c: char| c.is_ascii_digit());
    let mut numbers: Vec<&mut String> = found.into_iter().filter(is_number).take(4).collect();
    let count = numbers.len();
    let number = numbers.get_mut(random.below(count.max(1)))?;
    number.insert(0, random.pick(&['1', '2', '7']));
    Some(())
}

fn reorder(value: &mut Value, random: &mut Random) -> Option<()> {
    if random.once_in(2)
        && let Value::Object(members) = value
        && members.len() > 2
    {
        members.swap(0, 1);
        return Some(());
    }
    let items = first_array(value)?;
    (items.len() > 2).then(|| items.swap(0, 1))
}

impl Draft {
    /// Changes one byte of the body outside of strings.
    fn edit_body(
        &mut self,
        question: &Question<'_>,
        random: &mut Random,
        is_wanted: impl Fn(u8) -> bool,
        edit: impl Fn(&str, &mut Random) -> String,
    ) -> Option<()> {
        let places = question.body_places(self, is_wanted);
        let at = *places.get(random.below(places.len().max(1)))?;
        let new = edit(&self.body[at..=at], random);
        self.body.replace_range(at..=at, &new);
        Some(())
    }

    fn replace_outside_strings(&mut self, question: &Question<'_>, old: &str, new: &str) -> bool {
        let first = old.as_bytes()[0];
        let places = question.body_places(self, |b| b == first);
        let mut changed = false;
        for at in places.into_iter().rev() {
            if self.body[at..].starts_with(old) {
                self.body.replace_range(at..at + old.len(), new);
                changed = true;
            }
        }
        changed
    }

    fn single_quotes(&mut self, question: &Question<'_>, _: &mut Random) -> Option<()> {
        (!question.is_in_escape()).then_some(())?;
        // Only strings that begin in the body, and only plain ones.
        let mut out = String::new();
        let mut rest = &*self.body;
        let mut changed = false;
        if question.is_body_in_string(self) {
            let end = super::string_end(rest)?;
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        while let Some(start) = rest.find('"') {
            out.push_str(&rest[..start]);
            let inside = &rest[start + 1..];
            let Some(end) = super::string_end(inside) else {
                rest = &rest[start..];
                break;
            };
            let text = &inside[..end - 1];
            let is_plain = !text.contains(['\'', '\\', '"']);
            changed |= is_plain;
            let quote = if is_plain { '\'' } else { '"' };
            let _ = write!(out, "{quote}{text}{quote}");
            rest = &inside[end..];
        }
        out.push_str(rest);
        self.body = out;
        changed.then_some(())
    }

    fn respace(&mut self, question: &Question<'_>, style: &str) -> Option<()> {
        (!question.is_in_escape()).then_some(())?;
        let start = question.cut.checked_sub(self.overlap.len())?;
        (self.overlap.len() >= 40 && question.base().ends_with(&self.overlap)).then_some(())?;
        let in_string = question.is_in_string_at(start);
        let overlap = super::respaced(&self.overlap, in_string, style);
        let body = super::respaced(&self.body, question.is_body_in_string(self), style);
        let changed = overlap != self.overlap;
        (self.overlap, self.body) = (overlap, body);
        changed.then_some(())
    }

    fn reescape(&mut self, question: &Question<'_>, _: &mut Random) -> Option<()> {
        question.base().ends_with(&self.overlap).then_some(())?;
        let escaped = |text: &str| {
            let mut out = String::new();
            for character in text.chars() {
                if character.is_ascii() {
                    out.push(character);
                } else {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
            }
            out
        };
        let (overlap, body) = (escaped(&self.overlap), escaped(&self.body));
        let changed = overlap != self.overlap;
        (self.overlap, self.body) = (overlap, body);
        changed.then_some(())
    }
}
