//! Plays a model that is asked to go on after a cut, in the ways models really answer.

use std::fmt::Write;

use overlock_json::Protocol;

use crate::documents::{Layout, Value};

/// A way to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Behaviour {
    AsAsked,
    AsAskedInFence,
    AsAskedInOpenFence,
    AsAskedAfterTalk,
    AsAskedAfterTalkOnTheSameLine,
    AsAskedBeforeTalk,
    AsAskedAfterThoughts,
    AsAskedAfterProgress,
    AsAskedAndCutAgain,
    Prefilled,
    LongerOverlap,
    ShorterOverlap,
    OtherWhiteSpace,
    OtherEscapes,
    RootAgain,
    RootAgainInFence,
    RootReindented,
    RootReescaped,
    ItemAgain,
    ItemReindented,
    ItemReescaped,
    ContinuesUnasked,
    RemainingItemsInWrapper,
    RepeatsItself,
    FallsShort,
    Apologises,
    Refuses,
    SendsForeignJson,
    SendsNothing,
}

impl Behaviour {
    pub(crate) const ALL: [Self; 29] = [
        Self::AsAsked,
        Self::AsAskedInFence,
        Self::AsAskedInOpenFence,
        Self::AsAskedAfterTalk,
        Self::AsAskedAfterTalkOnTheSameLine,
        Self::AsAskedBeforeTalk,
        Self::AsAskedAfterThoughts,
        Self::AsAskedAfterProgress,
        Self::AsAskedAndCutAgain,
        Self::Prefilled,
        Self::LongerOverlap,
        Self::ShorterOverlap,
        Self::OtherWhiteSpace,
        Self::OtherEscapes,
        Self::RootAgain,
        Self::RootAgainInFence,
        Self::RootReindented,
        Self::RootReescaped,
        Self::ItemAgain,
        Self::ItemReindented,
        Self::ItemReescaped,
        Self::ContinuesUnasked,
        Self::RemainingItemsInWrapper,
        Self::RepeatsItself,
        Self::FallsShort,
        Self::Apologises,
        Self::Refuses,
        Self::SendsForeignJson,
        Self::SendsNothing,
    ];

    /// Whether the answer begins with what was asked for, so that it must always join.
    pub(crate) fn is_as_asked(self) -> bool {
        self <= Self::Prefilled
    }

    /// Whether the answer shows by itself where it joins, if the document does not repeat itself.
    pub(crate) fn is_decidable(self) -> bool {
        self < Self::ContinuesUnasked
    }

    /// Whether the answer has nothing that belongs to the document.
    pub(crate) fn has_nothing_new(self) -> bool {
        self >= Self::RepeatsItself
    }

    /// What the model was told about how to begin.
    pub(crate) fn protocol(self, number: usize) -> Protocol {
        match self {
            Self::Prefilled => Protocol::Prefill,
            Self::ContinuesUnasked => Protocol::Auto,
            _ if number.is_multiple_of(2) => Protocol::Overlap,
            _ => Protocol::Auto,
        }
    }
}

/// A document, where it was cut, and what the model was asked to repeat.
pub(crate) struct Question<'a> {
    pub(crate) document: &'a str,
    pub(crate) value: &'a Value,
    pub(crate) cut: usize,
    pub(crate) asked: &'a str,
    /// Something to choose by.
    pub(crate) number: usize,
}

impl Question<'_> {
    /// What the model sends; nothing if the behaviour is not possible at this cut.
    pub(crate) fn answer(&self, behaviour: Behaviour) -> Option<String> {
        let (document, cut) = (self.document, self.cut);
        let asked = format!("{}{}", self.asked, &document[cut..]);
        Some(match behaviour {
            Behaviour::AsAsked => asked,
            Behaviour::AsAskedInFence => format!("```json\n{asked}\n```"),
            Behaviour::AsAskedInOpenFence => format!("```\n{asked}"),
            Behaviour::AsAskedAfterTalk => format!("Sure, here is the rest:\n\n{asked}"),
            Behaviour::AsAskedAfterTalkOnTheSameLine => format!("Continuing: {asked}"),
            Behaviour::AsAskedBeforeTalk => format!("{asked}\n\nLet me know if you need more!"),
            Behaviour::AsAskedAfterThoughts => {
                format!("<think>I stopped at {{\"a\": [. Go on.</think>\n{asked}")
            }
            Behaviour::AsAskedAfterProgress => format!("PROGRESS: 45\n{asked}"),
            Behaviour::AsAskedAndCutAgain => {
                let end = document.floor_char_boundary(cut + (document.len() - cut) / 2);
                format!("{}{}", self.asked, &document[cut..end])
            }
            Behaviour::Prefilled | Behaviour::ContinuesUnasked => document[cut..].to_owned(),
            Behaviour::LongerOverlap => {
                let start = cut.checked_sub(self.asked.len() + 30 + self.number % 200)?;
                document[document.floor_char_boundary(start)..].to_owned()
            }
            Behaviour::ShorterOverlap => {
                let start = cut.checked_sub(24 + self.number % self.asked.len().max(1))?;
                document[document.ceil_char_boundary(start)..].to_owned()
            }
            Behaviour::OtherWhiteSpace => {
                let start = cut - self.asked.len();
                respaced(document, start, self.number.is_multiple_of(3))
            }
            Behaviour::OtherEscapes => reescaped(document, cut - self.asked.len()),
            Behaviour::RootAgain => document.to_owned(),
            Behaviour::RootAgainInFence => {
                format!("Here is it all:\n```json\n{document}\n```\nDone.")
            }
            Behaviour::RootReindented => {
                let layouts = [Layout::Compact, Layout::Spaced, Layout::Pretty];
                self.value.write(layouts[self.number % 3])
            }
            Behaviour::RootReescaped => reescaped(document, 0),
            Behaviour::ItemAgain => document[self.enclosing()?..].to_owned(),
            Behaviour::ItemReindented => {
                respaced(document, self.enclosing()?, self.number.is_multiple_of(2))
            }
            Behaviour::ItemReescaped => reescaped(document, self.enclosing()?),
            Behaviour::RemainingItemsInWrapper => {
                let wrapper = self.wrapper_of_array()?;
                format!("{wrapper}{}", document[cut..].trim_start())
            }
            Behaviour::RepeatsItself => self.asked.to_owned(),
            Behaviour::FallsShort => {
                let end = document.floor_char_boundary(cut - cut / 4);
                (end > 24).then(|| document[..end].to_owned())?
            }
            Behaviour::Apologises => {
                "I'm sorry, I seem to have been cut off. Here is the rest:".to_owned()
            }
            Behaviour::Refuses => {
                "I cannot continue \"this document\" because it is too long.\n\n- Please ask again."
                    .to_owned()
            }
            Behaviour::SendsForeignJson => {
                let foreign = [
                    r#"{"error": {"message": "overloaded", "type": "server_error"}}"#,
                    r#"[{"unrelated": 1}, {"unrelated": 2}]"#,
                    r#"{"status": "in progress", "detail": ["one", "tw"#,
                    r#""just a string""#,
                ];
                foreign[self.number % foreign.len()].to_owned()
            }
            Behaviour::SendsNothing => {
                ["", "\n", "```json\n```", "  \n\n "][self.number % 4].to_owned()
            }
        })
    }

    /// Whether the document says the same eight characters or more twice in a row, and is cut
    /// between: going on looks the same as repeating, and no reader could tell.
    pub(crate) fn doubles_at_the_cut(&self) -> bool {
        let (before, after) = self.document.split_at(self.cut);
        (8..=before.len().min(after.len()))
            .any(|len| before.as_bytes()[before.len() - len..] == after.as_bytes()[..len])
    }

    /// Whether the document goes on with the overlap once more.
    pub(crate) fn says_overlap_again(&self) -> bool {
        self.document[self.cut..]
            .trim_start()
            .starts_with(self.asked.trim_start())
    }

    /// The opener of a container, other than the root, that holds the cut and has said enough
    /// for a reader to know it again.
    fn enclosing(&self) -> Option<usize> {
        let open = open_containers(&self.document[..self.cut]);
        let said = |opener: usize| {
            self.document[opener..self.cut]
                .chars()
                .filter(|c| !c.is_whitespace())
        };
        let inner: Vec<usize> = open
            .into_iter()
            .skip(1)
            .filter(|opener| said(*opener).count() >= 8)
            .collect();
        inner.get(self.number.checked_rem(inner.len())?).copied()
    }

    /// `{"key":[`, if the cut is right after a comma in an array that is a member of the root.
    fn wrapper_of_array(&self) -> Option<String> {
        let before = &self.document[..self.cut];
        let open = open_containers(before);
        let is_between =
            before.ends_with(',') && open.len() == 2 && before.as_bytes()[open[1]] == b'[';
        let Value::Object(members) = self.value else {
            return None;
        };
        let outside = before.get(..*open.get(1)?)?;
        let (key, _) = members
            .iter()
            .rev()
            .find(|(key, _)| outside.trim_end().trim_end_matches(':').ends_with(key))?;
        is_between.then(|| format!("{{{key}:["))
    }
}

/// The openers of the containers that are open at the end of a text, outermost first.
pub(crate) fn open_containers(text: &str) -> Vec<usize> {
    let mut open = Vec::new();
    for (at, byte, in_string) in bytes_with_strings(text) {
        match byte {
            b'{' | b'[' if !in_string => open.push(at),
            b'}' | b']' if !in_string => drop(open.pop()),
            _ => {}
        }
    }
    open
}

/// The bytes of a document, each with whether it is inside a string (quotes count as inside).
fn bytes_with_strings(text: &str) -> impl Iterator<Item = (usize, u8, bool)> {
    let (mut in_string, mut escaped) = (false, false);
    text.bytes().enumerate().map(move |(at, byte)| {
        let was_in_string = in_string;
        if escaped {
            escaped = false;
        } else if in_string && byte == b'\\' {
            escaped = true;
        } else if byte == b'"' {
            in_string = !in_string;
        }
        (at, byte, was_in_string || in_string)
    })
}

/// The document from a byte on, with other white space between its tokens.
fn respaced(document: &str, start: usize, none: bool) -> String {
    let mut out = Vec::new();
    for (at, byte, in_string) in bytes_with_strings(document) {
        if at < start || (!in_string && b" \n\r\t".contains(&byte)) {
            continue;
        }
        out.push(byte);
        if !none && !in_string && b",:{[".contains(&byte) {
            out.extend_from_slice(b"\n   ");
        }
    }
    String::from_utf8(out).expect("only ASCII was left out")
}

/// The document from a byte on, with its characters escaped where they were not, and the other
/// way round.
fn reescaped(document: &str, start: usize) -> String {
    let strings: Vec<bool> = bytes_with_strings(document)
        .map(|(_, _, in_string)| in_string)
        .collect();
    let mut out = String::new();
    let mut at = start;
    while at < document.len() {
        let character = document[at..].chars().next().expect("there is more text");
        let rest = &document[at..];
        if strings[at] && rest.starts_with("\\u00e9") {
            out.push('é');
            at += 6;
        } else if strings[at] && rest.starts_with("\\/") {
            out.push('/');
            at += 2;
        } else if strings[at] && character == '\\' {
            let len = if rest.starts_with("\\u") { 6 } else { 2 };
            out.push_str(rest.get(..len).unwrap_or(rest));
            at += len;
        } else if strings[at] && !character.is_ascii() {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
            at += character.len_utf8();
        } else {
            out.push(character);
            at += character.len_utf8();
        }
    }
    out
}
