//! Chooses among the lawful joins, or refuses to.

use std::cell::Cell;

use super::{Attempt, Candidate, Join, Mismatch, Outcome, Protocol, StitchOptions, unwrap};
use crate::cut::CutPlace;
use crate::partial_document::PartialDocument;
use crate::plain;
use crate::scan::{Container, Scanner, SyntaxErrorKind};
use crate::tokens::Tokens;

/// An overlap of fewer characters proves nothing by itself.
pub(super) const LONG_ENOUGH: usize = 8;
/// An overlap must be longer by so many characters than another that gives another document.
pub(super) const CLEAR_LEAD: usize = 24;
/// In a string, one or two equal characters are a coincidence that happens all the time.
const COINCIDENCE: usize = 2;
/// A fragment of at least so many bytes that stands in the base as a whole is no news.
const LONG_REPEAT: usize = 16;
/// A repeat is looked for in so many bytes at the end of the base.
const REPEAT_WINDOW: usize = 64 * 1024;

/// The join to make, or the outcome without one.
pub(super) fn decide<'f>(
    base: &PartialDocument<'_>,
    fragment: &'f str,
    options: &StitchOptions<'_>,
    scanned: &Cell<usize>,
) -> Result<Join<'f>, Outcome> {
    if base.is_complete() {
        return Err(Outcome::NoMatch(Mismatch::AlreadyWhole));
    }
    let readings = unwrap::readings(fragment);
    if readings.iter().any(|reading| reading.trim().is_empty()) {
        return Err(Outcome::Repeat);
    }
    if let Some(expected) = options.expected_overlap.filter(|text| !text.is_empty()) {
        for reading in &readings {
            let attempt = Attempt {
                base,
                fragment: reading,
                scanned,
            };
            if let Some(decision) = attempt.as_expected(expected) {
                return decision;
            }
        }
    }
    let attempt = Attempt {
        base,
        fragment,
        scanned,
    };
    if options.protocol == Protocol::AtCut
        && !attempt.begins_the_document_again()
        && let Ok(exact) = attempt.join(Outcome::Exact, base.text().len(), "", 0, 0)
    {
        return attempt.progress(exact);
    }
    let mut mismatch = None;
    for reading in readings {
        let attempt = Attempt {
            base,
            fragment: reading,
            scanned,
        };
        match attempt.by_evidence(options) {
            Err(Outcome::NoMatch(reason)) => mismatch = mismatch.or(Some(reason)),
            decision => return decision,
        }
    }
    Err(mismatch.map_or(Outcome::Repeat, Outcome::NoMatch))
}

impl<'f> Attempt<'_, 'f> {
    /// The fragment begins with what the model was asked to repeat.
    fn as_expected(&self, expected: &str) -> Option<Result<Join<'f>, Outcome>> {
        if !self.base.text().ends_with(expected) {
            return None;
        }
        // White space in front is easily lost on the way.
        let (said, at) = [expected, expected.trim_start()]
            .into_iter()
            .find_map(|said| {
                let at =
                    unwrap::after_preamble(self.fragment, said).filter(|_| !said.is_empty())?;
                Some((said, at))
            })?;
        // What looks like talk may be less of the overlap than was asked for, and then new text
        // that repeats itself.
        let is_other_overlap =
            |other: &Candidate<'_>| other.matched >= LONG_ENOUGH && other.from != at + said.len();
        if at > 0 && self.overlaps().iter().any(is_other_overlap) {
            return None;
        }
        let base_len = self.base.text().len();
        let repeated = said.chars().count();
        let join = self.join(Outcome::Overlap, base_len, "", at + said.len(), repeated);
        Some(self.progress(join.ok()?))
    }

    /// Nothing says how the fragment begins: what it has in common with the base must tell.
    fn by_evidence(&self, options: &StitchOptions<'_>) -> Result<Join<'f>, Outcome> {
        let base_len = self.base.text().len();
        let exact = self.join(Outcome::Exact, base_len, "", 0, 0);

        let (restarts, falls_short) = self.restarts();
        if matches!(options.protocol, Protocol::Prefill | Protocol::AtCut)
            && let Ok(exact) = exact
        {
            let repeats = falls_short.is_some_and(|matched| matched >= CLEAR_LEAD)
                && !self.is_period(0, self.fragment.len());
            if repeats {
                return Err(Outcome::Repeat);
            }
            let is_clear = |restart: &Candidate<'_>| {
                restart.join.outcome == Outcome::Resumed
                    && restart.matched >= CLEAR_LEAD
                    && !self.is_period(0, restart.from)
            };
            if let Some(restart) = restarts.into_iter().find(is_clear) {
                return self.progress(restart.join);
            }
            if self.base.scanner().is_in_string() && self.is_talk_at_once() {
                return Err(Outcome::NoMatch(Mismatch::Talk));
            }
            return self.progress(exact);
        }

        let mut candidates: Vec<Candidate<'f>> = Vec::new();
        for candidate in self.overlaps().into_iter().chain(restarts) {
            let place = self.place_in_document(&candidate);
            let known = candidates
                .iter_mut()
                .find(|known| self.place_in_document(known) == place);
            match known {
                Some(known) => known.matched = known.matched.max(candidate.matched),
                None => candidates.push(candidate),
            }
        }
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.matched));

        if falls_short.is_some() || self.is_repeat() {
            return Err(Outcome::Repeat);
        }
        if candidates
            .first()
            .is_some_and(|best| best.matched >= LONG_ENOUGH)
        {
            let expected = options.expected_overlap.filter(|text| !text.is_empty());
            if let Some(asked) = expected.and_then(|text| self.with_more(&mut candidates, text)) {
                return self.progress(asked.join);
            }
            return self.choose(candidates, exact.is_ok());
        }
        if let Some(decision) = self.remainder() {
            return decision.and_then(|remainder| self.progress(remainder.join));
        }
        match exact {
            Ok(exact) => self.by_position(exact, &candidates, options.protocol),
            Err(syntax_error) if candidates.is_empty() || self.stands_alone() => {
                Err(Outcome::NoMatch(Mismatch::NotJson(syntax_error)))
            }
            Err(_) => self.choose_short(candidates),
        }
    }

    /// Candidates with the same place in the fragment give the same document, whatever led to
    /// them and whoever writes the white space.
    fn place_in_document(&self, candidate: &Candidate<'_>) -> usize {
        let rewritten = self.base.text().len() - candidate.join.base_len;
        let place = candidate.from + rewritten;
        if self.ends_in_token() {
            place
        } else {
            plain::skip_white_space(self.fragment.as_bytes(), place)
        }
    }

    /// The only candidate that has repeated what was asked for, and more before it. Where the text
    /// repeats itself, that may as well be less of it and something new.
    fn with_more(
        &self,
        candidates: &mut Vec<Candidate<'f>>,
        expected: &str,
    ) -> Option<Candidate<'f>> {
        let has_expected = |candidate: &Candidate<'_>| {
            let repeated = &self.fragment[..candidate.from];
            candidate.join.outcome == Outcome::Overlap && repeated.ends_with(expected)
        };
        let at = candidates.iter().position(has_expected)?;
        let others = candidates
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        let is_only = others
            .into_iter()
            .all(|(_, other)| other.matched < LONG_ENOUGH);
        is_only.then(|| candidates.swap_remove(at))
    }

    /// Takes the longest candidate if nothing speaks for another one.
    fn choose(
        &self,
        candidates: Vec<Candidate<'f>>,
        exact_is_lawful: bool,
    ) -> Result<Join<'f>, Outcome> {
        let mut candidates = candidates.into_iter();
        let Some(best) = candidates.next() else {
            return Err(Outcome::Repeat);
        };
        let longer = best.matched;
        // What begins like the base's end may also be a document with only the missing items.
        let place = self.place_in_document(&best);
        if let Some(Ok(remainder)) = self.remainder()
            && self.place_in_document(&remainder) != place
            && longer < remainder.matched + CLEAR_LEAD
        {
            return Err(Outcome::Ambiguous {
                shorter: remainder.matched.min(longer),
                longer: remainder.matched.max(longer),
            });
        }
        let beginning = self.said_of_the_beginning();
        if beginning > longer {
            return Err(Outcome::Ambiguous {
                shorter: longer,
                longer: beginning,
            });
        }
        for rival in candidates {
            let lead = longer - rival.matched;
            let is_close = rival.matched >= LONG_ENOUGH && lead < CLEAR_LEAD;
            if is_close || self.is_period(rival.from, best.from) {
                return Err(Outcome::Ambiguous {
                    shorter: rival.matched,
                    longer,
                });
            }
        }
        let is_weak = best.join.outcome == Outcome::Reformatted && longer < 2 * LONG_ENOUGH;
        let is_digits = self.fragment[..best.from]
            .bytes()
            .all(|byte| byte.is_ascii_digit());
        let may_be_exact =
            exact_is_lawful && (is_weak || is_digits || self.is_period(0, best.from));
        if may_be_exact || self.begins_with_equal_items() {
            return Err(Outcome::Ambiguous { shorter: 0, longer });
        }
        self.progress(best.join)
    }

    /// How many characters of the base's very beginning the fragment begins with. If there are
    /// more than it has of the base's end, it is a document begun anew that says something else.
    fn said_of_the_beginning(&self) -> usize {
        let said = Tokens::new(self.base.text(), 0, false)
            .zip(Tokens::new(self.fragment, 0, false))
            .take_while(|(known, again)| known == again && !known.endless && !again.endless)
            .map(|(_, again)| again.characters())
            .sum();
        self.count(said);
        said
    }

    /// Takes the only short candidate, since no other join is lawful.
    fn choose_short(&self, candidates: Vec<Candidate<'f>>) -> Result<Join<'f>, Outcome> {
        let mut candidates = candidates.into_iter();
        match (candidates.next(), candidates.next()) {
            (Some(only), None)
                if self.base.scanner().is_in_string() && !self.leaves_the_string(&only.join) =>
            {
                Err(Outcome::NoMatch(Mismatch::NothingRepeated))
            }
            (Some(only), None) => self.progress(only.join),
            (Some(longer), Some(shorter)) => Err(Outcome::Ambiguous {
                shorter: shorter.matched,
                longer: longer.matched,
            }),
            _ => Err(Outcome::Repeat),
        }
    }

    /// A join that adds nothing is none.
    pub(super) fn progress(&self, join: Join<'f>) -> Result<Join<'f>, Outcome> {
        let is_blank = if self.base.scanner().is_in_string() {
            join.addition.is_empty()
        } else {
            join.addition.trim().is_empty()
        };
        // Half an escape that is only written anew is no news either.
        let rewrites = join.base_len < self.base.text().len();
        let is_repeat = is_blank || rewrites && join.end <= join.base_len;
        if is_repeat {
            Err(Outcome::Repeat)
        } else {
            Ok(join)
        }
    }

    /// Only the grammar speaks for joining the fragment right at the cut.
    fn by_position(
        &self,
        exact: Join<'f>,
        short: &[Candidate<'f>],
        protocol: Protocol,
    ) -> Result<Join<'f>, Outcome> {
        let place = self.base.scanner().place();
        let repeated = short.first().map_or(0, |candidate| candidate.matched);
        let ambiguous = Err(Outcome::Ambiguous {
            shorter: 0,
            longer: repeated,
        });
        match place {
            Some(CutPlace::String | CutPlace::Escape | CutPlace::Key)
                if protocol == Protocol::Overlap =>
            {
                if repeated > 0 {
                    return ambiguous;
                }
                Err(Outcome::NoMatch(Mismatch::NothingRepeated))
            }
            Some(CutPlace::String | CutPlace::Escape | CutPlace::Key)
                if !self.leaves_the_string(&exact) =>
            {
                Err(Outcome::NoMatch(Mismatch::NothingRepeated))
            }
            Some(CutPlace::String | CutPlace::Escape | CutPlace::Key) if repeated > COINCIDENCE => {
                ambiguous
            }
            Some(CutPlace::String | CutPlace::Escape | CutPlace::Key) => self.progress(exact),
            _ if repeated > 0 => ambiguous,
            _ if self.stands_alone() && !self.is_next_record() => {
                Err(Outcome::NoMatch(Mismatch::Foreign))
            }
            _ => self.progress(exact),
        }
    }

    /// Whether what a join adds ends the string in which the base stops and goes on with
    /// structure. Talk does not do that.
    fn leaves_the_string(&self, join: &Join<'_>) -> bool {
        let half_escape = &self.base.text()[self.base.scanner().whole_text_end()..join.base_len];
        let text = format!("{half_escape}{}", join.addition);
        let mut tokens = Tokens::new(&text, 0, true);
        let ends = tokens.next().is_some_and(|string| !string.endless);
        ends && tokens.next().is_some() && !unwrap::begins_with_talk(self.fragment)
    }

    /// Whether the fragment begins the way models talk about an answer, and not even with a blank
    /// after the words before it. A string may go on like this too, but nobody can tell.
    fn is_talk_at_once(&self) -> bool {
        !self.fragment.starts_with(char::is_whitespace) && unwrap::begins_with_talk(self.fragment)
    }

    /// Whether the fragment is JSON without the base: then the grammar does not tell that it
    /// belongs to it.
    pub(super) fn stands_alone(&self) -> bool {
        let mut scanner = Scanner::new();
        scanner.feed(self.fragment.as_bytes());
        self.count(self.fragment.len());
        let is_container = self.fragment.trim_start().starts_with(['{', '[']);
        match scanner.syntax_error() {
            None => is_container || scanner.is_complete(),
            Some(syntax_error) => {
                syntax_error.kind == SyntaxErrorKind::TrailingText
                    && unwrap::is_prose(&self.fragment[syntax_error.offset..])
            }
        }
    }

    /// Whether the fragment begins a record like the one before it in the same array.
    fn is_next_record(&self) -> bool {
        let scanner = self.base.scanner();
        let in_array = scanner
            .open_frames()
            .next()
            .is_some_and(|f| f.container == Container::Array);
        let Some((start, end)) = scanner.elements().1.filter(|_| in_array) else {
            return false;
        };
        let sibling = Tokens::new(&self.base.text()[..end], start, false);
        self.begins_like(sibling, 0)
    }

    /// Whether an object begins at a byte of the fragment with the same key as another object.
    pub(super) fn begins_like(&self, sibling: Tokens<'_>, at: usize) -> bool {
        let mut same = sibling
            .zip(Tokens::new(self.fragment, at, false))
            .map(|(a, b)| (a == b, b));
        same.next()
            .is_some_and(|(same, first)| same && first.is_mark("{"))
            && same
                .next()
                .is_some_and(|(same, key)| same && !key.is_mark("}"))
    }

    /// Whether the fragment begins like the whole document: a server whose grammar does not go on
    /// from the base makes the model begin again.
    fn begins_the_document_again(&self) -> bool {
        let fragment = self.fragment.trim_start().as_bytes();
        let base = self.base.text().trim_start().as_bytes();
        let same = fragment.iter().zip(base).take_while(|(a, b)| a == b);
        same.count() >= CLEAR_LEAD
    }

    /// Whether the whole fragment stands in the base already.
    fn is_repeat(&self) -> bool {
        let fragment = self.fragment.trim();
        let text = self.base.text();
        let window = &text[text.ceil_char_boundary(text.len().saturating_sub(REPEAT_WINDOW))..];
        self.count(window.len());
        fragment.len() >= LONG_REPEAT && (text.starts_with(fragment) || window.contains(fragment))
    }
}
