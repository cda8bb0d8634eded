//! An adversary that knows the true document and joins fragments the way models misbehave.
//!
//! Each join is right, refused or silently wrong. Behaviours that leave the texts undecidable are
//! marked as such in the list, before anything is measured.

mod behaviours;
pub(crate) mod documents;
pub(crate) mod random;
pub(crate) mod value;

use std::collections::BTreeMap;

use overlock_json::{
    Arrival, PartialDocument, Protocol, Seam, StitchOptions, StreamingDocument, stitch,
};

use behaviours::Draft;
pub(crate) use behaviours::{BEHAVIOURS, Behaviour, Duty};
use random::Random;
use value::{Layout, Value};

/// What the model was asked to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// With the overlap.
    Asked,
    /// It is not known.
    Auto,
}

/// A cut document and what was asked.
pub(crate) struct Question<'a> {
    pub(crate) document: &'a str,
    pub(crate) value: &'a Value,
    pub(crate) layout: Layout,
    pub(crate) mode: Mode,
    pub(crate) cut: usize,
    /// How far the answer comes.
    pub(crate) end: usize,
    pub(crate) asked: &'a str,
}

impl Question<'_> {
    pub(crate) fn base(&self) -> &str {
        &self.document[..self.cut]
    }

    /// The bytes of what follows the cut that are outside of strings and wanted.
    fn body_places(&self, draft: &Draft, is_wanted: impl Fn(u8) -> bool) -> Vec<usize> {
        let before = match (self.is_body_in_string(draft), self.is_in_escape()) {
            (true, true) => "\"\\",
            (true, false) => "\"",
            (false, _) => "",
        };
        let places = outside_strings(&[before, &draft.body].concat(), false, is_wanted);
        let places = places.into_iter();
        places
            .filter_map(|at| at.checked_sub(before.len()))
            .collect()
    }

    /// Whether the body begins in a string.
    fn is_body_in_string(&self, draft: &Draft) -> bool {
        !draft.is_document && self.is_in_string()
    }

    pub(crate) fn is_last(&self) -> bool {
        self.end == self.document.len()
    }

    /// Whether the base ends between a backslash and what it escapes.
    pub(crate) fn is_in_escape(&self) -> bool {
        let base = self.base();
        !(base.len() - base.trim_end_matches('\\').len()).is_multiple_of(2)
    }

    pub(crate) fn is_in_string(&self) -> bool {
        self.is_in_string_at(self.cut)
    }

    pub(crate) fn is_in_string_at(&self, at: usize) -> bool {
        is_in_string(&self.document[..self.document.floor_char_boundary(at)])
    }

    /// Lets the answer begin with so many bytes of the base's end.
    fn overlap_of(&self, draft: &mut Draft, len: usize) -> Option<()> {
        let start = self.document.ceil_char_boundary(self.cut.checked_sub(len)?);
        self.document[start..self.cut].clone_into(&mut draft.overlap);
        Some(())
    }

    /// The answer of a model that does as it is asked, or as models do that are asked nothing.
    fn draft(&self, random: &mut Random) -> Draft {
        let mut draft = Draft {
            overlap: self.asked.to_owned(),
            body: self.document[self.cut..self.end].to_owned(),
            ..Draft::default()
        };
        if self.mode == Mode::Auto {
            match random.below(3) {
                0 => draft.overlap.clear(),
                1 => {
                    let len = 8 + random.below(200);
                    self.overlap_of(&mut draft, len.min(self.cut));
                }
                _ => {}
            }
        }
        draft
    }

    fn options(&self) -> StitchOptions<'_> {
        match self.mode {
            Mode::Asked => StitchOptions {
                protocol: Protocol::Overlap,
                expected_overlap: Some(self.asked),
            },
            Mode::Auto => StitchOptions::default(),
        }
    }
}

/// What became of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    /// The document's own text, but less of it than the answer brought.
    Short,
    Refused,
    Wrong,
}

/// How often each verdict was reached.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) joins: usize,
    pub(crate) right: usize,
    pub(crate) short: usize,
    pub(crate) refused: usize,
    pub(crate) wrong: usize,
    /// Joins that a stream would have made otherwise.
    pub(crate) streamed_otherwise: usize,
}

impl Tally {
    fn count(&mut self, verdict: Verdict) {
        self.joins += 1;
        match verdict {
            Verdict::Right => self.right += 1,
            Verdict::Short => self.short += 1,
            Verdict::Refused => self.refused += 1,
            Verdict::Wrong => self.wrong += 1,
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.joins += other.joins;
        self.right += other.right;
        self.short += other.short;
        self.refused += other.refused;
        self.wrong += other.wrong;
        self.streamed_otherwise += other.streamed_otherwise;
    }
}

/// A row of the table: the row of the list of failures, what was tried, and how it was asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) number: u8,
    pub(crate) name: String,
    pub(crate) mode: Mode,
}

/// What the adversary found.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) rows: BTreeMap<Row, Tally>,
    /// By mode and duty, single behaviours and compositions together.
    pub(crate) sums: BTreeMap<(Mode, &'static str), Tally>,
    /// Chains by mode: a chain is wrong if one of its joins is.
    pub(crate) chains: BTreeMap<Mode, Tally>,
    /// The first wrong joins and different streams, told.
    pub(crate) stories: Vec<String>,
}

/// Stories are told of so many failures.
const MOST_STORIES: usize = 2000;

/// So many cuts of each document are tried, with every behaviour.
const CUTS: usize = 6;

/// The row under which compositions of two behaviours are counted.
pub(crate) const PAIRS: u8 = 20;

/// Tries at least so many joins of pieces of documents.
pub(crate) fn run(
    document: impl Fn(&mut Random) -> (Value, Layout),
    joins: usize,
    seed: u64,
) -> Findings {
    let mut findings = Findings::default();
    let mut random = Random::new(seed);
    let mut done = 0;
    while done < joins {
        let (value, layout) = document(&mut random);
        let document = value.write(layout);
        for _ in 0..CUTS {
            let cut = cut_in(&document, &mut random);
            let mode = random.pick(&[Mode::Asked, Mode::Auto]);
            for index in 0..BEHAVIOURS.len() * 2 {
                let one = &BEHAVIOURS[index % BEHAVIOURS.len()];
                let other = (index >= BEHAVIOURS.len())
                    .then(|| &BEHAVIOURS[random.below(BEHAVIOURS.len())])
                    .filter(|other| other.layer != one.layer);
                if index >= BEHAVIOURS.len() && other.is_none() {
                    continue;
                }
                let end = end_after(&document, cut, &mut random);
                let single = Single {
                    document: &document,
                    value: &value,
                    layout,
                    mode,
                    cut,
                    end,
                };
                done += usize::from(single.run(one, other, &mut random, &mut findings).is_some());
            }
        }
        for mode in [Mode::Asked, Mode::Auto] {
            done += chain(&document, &value, layout, mode, &mut random, &mut findings);
        }
    }
    findings
}

/// Somewhere, and often where an element or a container begins or ends.
fn cut_in(document: &str, random: &mut Random) -> usize {
    let near = 1 + random.below(document.len() - 1);
    let near = document.ceil_char_boundary(near).min(document.len() - 1);
    if random.below(5) > 1 {
        return document.floor_char_boundary(near);
    }
    let places = outside_strings(document, false, |byte| b",[{}]:".contains(&byte));
    let at = places[random.below(places.len())] + 1;
    let blank = document[at..].len() - document[at..].trim_start().len();
    let at = if random.once_in(2) { at } else { at + blank };
    if at < document.len() {
        at
    } else {
        document.floor_char_boundary(near)
    }
}

/// The end of the document, or some place before it.
fn end_after(document: &str, cut: usize, random: &mut Random) -> usize {
    if random.once_in(4) {
        document.ceil_char_boundary(cut + 1 + random.below(document.len() - cut))
    } else {
        document.len()
    }
}

struct Single<'a> {
    document: &'a str,
    value: &'a Value,
    layout: Layout,
    mode: Mode,
    cut: usize,
    end: usize,
}

impl Single<'_> {
    /// One join; nothing if the behaviours make no sense here.
    fn run(
        &self,
        one: &Behaviour,
        other: Option<&Behaviour>,
        random: &mut Random,
        findings: &mut Findings,
    ) -> Option<()> {
        let base = PartialDocument::read(&self.document[..self.cut]).ok()?;
        (base.text().len() == self.cut && !base.is_complete()).then_some(())?;
        let asked = base.overlap_context(None).to_owned();
        let question = Question {
            document: self.document,
            value: self.value,
            layout: self.layout,
            mode: self.mode,
            cut: self.cut,
            end: self.end,
            asked: &asked,
        };
        let (answer, duty) = answer(&question, one, other, random)?;
        let (verdict, seam, joined) = join(&question, &base, &answer, duty);
        let name = match other {
            Some(_) => "two behaviours",
            None => one.name,
        };
        let row = Row {
            number: if other.is_some() { PAIRS } else { one.row },
            name: name.to_owned(),
            mode: self.mode,
        };
        let mut tally = Tally::default();
        tally.count(verdict);
        let names = || format!("{} + {}", one.name, other.map_or("", |it| it.name));
        let mut tell = |what: &str, joined: &str| {
            if findings.stories.len() < MOST_STORIES {
                let start = self
                    .document
                    .floor_char_boundary(self.cut.saturating_sub(300));
                let end = answer.floor_char_boundary(600);
                let at =
                    joined.floor_char_boundary(seam.offset.min(joined.len()).saturating_sub(60));
                let to = joined.floor_char_boundary((at + 260).min(joined.len()));
                findings.stories.push(format!(
                    "{what}: {} ({:?})\n  base …{:?}\n  asked {asked:?}\n  answer {:?}\n  {:?}\n  joined …{:?}\n",
                    names(), self.mode, &self.document[start..self.cut], &answer[..end],
                    seam.outcome, &joined[at..to],
                ));
            }
        };
        if verdict == Verdict::Wrong && duty != Duty::Undecidable {
            tell("wrong", &joined);
        }
        if self.mode == Mode::Asked
            && let Some(streamed) = streams_otherwise(&question, &base, &answer, &joined, random)
        {
            tally.streamed_otherwise += 1;
            tell("streamed otherwise", &streamed);
        }
        findings.rows.entry(row).or_default().add(tally);
        let duty = match duty {
            Duty::Join => "to join",
            Duty::Refuse => "to refuse",
            Duty::Undecidable => "undecidable",
        };
        findings
            .sums
            .entry((self.mode, duty))
            .or_default()
            .add(tally);
        Some(())
    }
}

/// What the model sends, and what is to become of it.
fn answer(
    question: &Question<'_>,
    one: &Behaviour,
    other: Option<&Behaviour>,
    random: &mut Random,
) -> Option<(String, Duty)> {
    let mut order: Vec<&Behaviour> = [one].into_iter().chain(other).collect();
    order.sort_by_key(|behaviour| behaviour.layer);
    let mut draft = question.draft(random);
    let mut duty = Duty::Join;
    for behaviour in order {
        (behaviour.apply)(&mut draft, question, random)?;
        duty = match (duty, behaviour.duty) {
            (Duty::Undecidable, _) | (_, Duty::Undecidable) => Duty::Undecidable,
            (Duty::Refuse, _) | (_, Duty::Refuse) => Duty::Refuse,
            _ => Duty::Join,
        };
    }
    // What stands before it must not be what was asked for.
    let asked = question.asked.trim_start();
    (!draft.before.trim_start().starts_with(asked)).then(|| (draft.text(), duty))
}

fn join(
    question: &Question<'_>,
    base: &PartialDocument<'_>,
    answer: &str,
    duty: Duty,
) -> (Verdict, Seam, String) {
    let mut joined = base.clone();
    let seam = stitch(&mut joined, answer, &question.options());
    let verdict = judge(question, &joined, seam.outcome.is_accepted(), duty);
    (verdict, seam, joined.text().to_owned())
}

fn judge(
    question: &Question<'_>,
    joined: &PartialDocument<'_>,
    accepted: bool,
    duty: Duty,
) -> Verdict {
    if !accepted {
        return match duty {
            Duty::Refuse => Verdict::Right,
            _ => Verdict::Refused,
        };
    }
    let (document, text) = (normalised(question.document), normalised(joined.text()));
    let is_prefix = if joined.is_complete() {
        document == text
    } else {
        document.starts_with(&text)
    };
    if !is_prefix {
        return Verdict::Wrong;
    }
    let wanted = normalised(&question.document[..question.end]).len();
    if duty == Duty::Join && text.len() + 8 < wanted {
        Verdict::Short
    } else {
        Verdict::Right
    }
}

/// The text that a stream comes to, if that is another one than of the whole answer.
fn streams_otherwise(
    question: &Question<'_>,
    base: &PartialDocument<'_>,
    answer: &str,
    joined: &str,
    random: &mut Random,
) -> Option<String> {
    let mut arriving = StreamingDocument::after(base, question.asked);
    let size = random.pick(&[1, 1, 7, 50]);
    let mut given = base.text()[..base.settled_len()].to_owned();
    let mut rest = answer;
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.ceil_char_boundary(size));
        given.push_str(&arriving.feed(piece));
        rest = later;
    }
    // A slip can only be mended in all of the answer.
    let document = match arriving.arrival() {
        Arrival::Spoilt => answer,
        _ => arriving.of_document(answer),
    };
    let mut streamed = base.clone();
    stitch(&mut streamed, document, &question.options());
    if streamed.text() != joined {
        return Some(streamed.text().to_owned());
    }
    (!joined.starts_with(&given)).then_some(given)
}

/// A document in 2 to 10 pieces, of which some are written badly; what is refused is asked again.
fn chain(
    document: &str,
    value: &Value,
    layout: Layout,
    mode: Mode,
    random: &mut Random,
    findings: &mut Findings,
) -> usize {
    let pieces = 2 + random.below(9);
    let mut ends: Vec<usize> = (1..pieces).map(|_| cut_in(document, random)).collect();
    ends.push(document.len());
    ends.sort_unstable();
    ends.dedup();
    let Ok(base) = PartialDocument::read(&document[..ends[0]]) else {
        return 0;
    };
    let mut base = base.into_owned();
    let (mut joins, mut refused) = (0, 0);
    let mut verdict = Verdict::Right;
    for end in &ends[1..] {
        let cut = base.text().len();
        if base.is_complete() || cut >= *end || !document.starts_with(base.text()) {
            // What was written in another way no longer has the document's own offsets.
            break;
        }
        let asked = base.overlap_context(None).to_owned();
        let question = Question {
            document,
            value,
            layout,
            mode,
            cut,
            end: *end,
            asked: &asked,
        };
        let one = &BEHAVIOURS[random.below(BEHAVIOURS.len())];
        let drawn = (one.duty == Duty::Join)
            .then(|| answer(&question, one, None, random))
            .flatten();
        let (text, duty) = drawn.unwrap_or_else(|| (question.draft(random).text(), Duty::Join));
        let (found, seam, joined) = join(&question, &base, &text, duty);
        joins += 1;
        if found == Verdict::Wrong {
            verdict = Verdict::Wrong;
            if findings.stories.len() < MOST_STORIES {
                let name = one.name;
                findings.stories.push(format!(
                    "wrong in a chain: {name} ({mode:?})\n  base …{:?}\n  answer {text:?}\n  {:?}\n  joined …{:?}\n",
                    &document[document.floor_char_boundary(cut.saturating_sub(300))..cut],
                    seam.outcome,
                    &joined[joined.floor_char_boundary(seam.offset.saturating_sub(60))..],
                ));
            }
            break;
        }
        if seam.outcome.is_accepted() {
            stitch(&mut base, &text, &question.options());
        } else {
            refused += 1;
            let again = format!("{asked}{}", &document[cut..*end]);
            let options = StitchOptions {
                protocol: Protocol::Overlap,
                expected_overlap: Some(&asked),
            };
            stitch(&mut base, &again, &options);
        }
    }
    if verdict == Verdict::Right && refused > 0 {
        verdict = Verdict::Refused;
    }
    findings.chains.entry(mode).or_default().count(verdict);
    joins
}

/// The bytes of a text outside of strings that are wanted.
fn outside_strings(
    text: &str,
    begins_in_string: bool,
    is_wanted: impl Fn(u8) -> bool,
) -> Vec<usize> {
    let (mut in_string, mut escaped) = (begins_in_string, false);
    let mut places = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        if escaped {
            escaped = false;
        } else if in_string && byte == b'\\' {
            escaped = true;
        } else if byte == b'"' {
            in_string = !in_string;
        } else if !in_string && is_wanted(byte) {
            places.push(at);
        }
    }
    places
}

fn is_in_string(text: &str) -> bool {
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        if escaped {
            escaped = false;
        } else if in_string && byte == b'\\' {
            escaped = true;
        } else if byte == b'"' {
            in_string = !in_string;
        }
    }
    in_string
}

/// The openers of the containers that are open at the end of a text, outermost first.
pub(crate) fn open_containers(text: &str) -> Vec<usize> {
    let mut open = Vec::new();
    for at in outside_strings(text, false, |byte| b"{}[]".contains(&byte)) {
        if matches!(text.as_bytes()[at], b'{' | b'[') {
            open.push(at);
        } else {
            open.pop();
        }
    }
    open
}

/// After the quote that ends the string in which a text begins.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The last whole element of the innermost array, if the text ends after its comma.
fn last_item(base: &str) -> Option<&str> {
    let opener = *open_containers(base).last()?;
    let before = base.trim_end().strip_suffix(',')?;
    (base.as_bytes()[opener] == b'[').then_some(())?;
    let inside = &before[opener + 1..];
    let mut depth = 0_usize;
    let mut start = 0;
    for at in outside_strings(inside, false, |byte| b"{}[],".contains(&byte)) {
        match inside.as_bytes()[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    Some(inside[start..].trim())
}

/// The key of the member of the root whose value opens at a byte.
fn wrapper(base: &str, opener: usize) -> Option<&str> {
    let before = base[..opener].trim_end().strip_suffix(':')?.trim_end();
    let start = before.strip_suffix('"')?.rfind('"')?;
    Some(&before[start..])
}

/// The quotes of strings as a word processor writes them.
fn retype_quotes(text: &str, begins_in_string: bool) -> String {
    let (mut in_string, mut escaped) = (begins_in_string, false);
    let mut out = String::new();
    for character in text.chars() {
        if escaped {
            escaped = false;
        } else if in_string && character == '\\' {
            escaped = true;
        } else if character == '"' {
            out.push(if in_string { '”' } else { '“' });
            in_string = !in_string;
            continue;
        }
        out.push(character);
    }
    out
}

/// A text with other white space between its tokens.
fn respaced(text: &str, begins_in_string: bool, style: &str) -> String {
    let (mut in_string, mut escaped) = (begins_in_string, false);
    let mut out = String::new();
    for character in text.chars() {
        if escaped {
            escaped = false;
        } else if in_string && character == '\\' {
            escaped = true;
        } else if character == '"' {
            in_string = !in_string;
        } else if !in_string && character.is_whitespace() {
            continue;
        }
        out.push(character);
        if !in_string && ",:{[".contains(character) {
            out.push_str(style);
        }
    }
    out
}

/// Between strings and in them: a mark that is no code unit.
const QUOTE: u32 = 0x11_0000;

/// A document without the white space and escapes that make no difference. Of half an escape at
/// its end nothing is left.
pub(crate) fn normalised(json: &str) -> Vec<u32> {
    let mut out = Vec::with_capacity(json.len());
    let mut characters = json.chars().peekable();
    let mut in_string = false;
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                in_string = !in_string;
                out.push(QUOTE);
            }
            '\\' if in_string => match characters.next() {
                Some('u') => {
                    let digits: String = characters.by_ref().take(4).collect();
                    if digits.len() == 4 {
                        out.extend(u32::from_str_radix(&digits, 16));
                    }
                }
                Some('n') => out.push(10),
                Some('t') => out.push(9),
                Some('r') => out.push(13),
                Some('b') => out.push(8),
                Some('f') => out.push(12),
                Some(other) => out.push(u32::from(other)),
                None => {}
            },
            _ if in_string => {
                out.extend(
                    character
                        .encode_utf16(&mut [0; 2])
                        .iter()
                        .map(|unit| u32::from(*unit)),
                );
            }
            _ if character.is_whitespace() => {}
            _ => out.push(u32::from(character)),
        }
    }
    out
}
