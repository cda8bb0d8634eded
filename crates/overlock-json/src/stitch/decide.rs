//! Chooses among the lawful joins, or refuses to.

use std::cell::Cell;
use std::ops::ControlFlow;

use super::evidence::{ASKED, ENOUGH, Evidence, PREFILLED};
use super::remainder::read_value;
use super::{Attempt, Candidate, Join, Mismatch, Outcome, Protocol, StitchOptions, unwrap};
use crate::cut::CutPlace;
use crate::partial_document::PartialDocument;
use crate::plain;
use crate::scan::{Scanner, SyntaxErrorKind};
use crate::strings::code_points;
use crate::tokens::{Token, Tokens};

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
    let fragment = fragment.trim_start_matches('\u{feff}');
    let readings = unwrap::readings(fragment);
    if fragment.is_empty() || readings.iter().any(|reading| reading.trim().is_empty()) {
        return Err(Outcome::Repeat);
    }
    let evidence = &Evidence::new(base);
    let attempts = |mends| {
        readings.iter().map(move |reading| Attempt {
            base,
            fragment: reading,
            mends,
            evidence,
            protocol: options.protocol,
            scanned,
        })
    };
    let expected = options.expected_overlap;
    let expected = expected.filter(|text| !text.is_empty() && base.text().ends_with(text));
    let mut mismatch = None;
    if let Some(expected) = expected {
        // What stands before the overlap may be decoration, and nothing after it is.
        let begins = |reading: &&str| reading.trim_start().starts_with(expected.trim_start());
        let first = readings.iter().position(begins);
        let likely = first.map_or(readings.len(), |first| first + 1);
        for attempt in attempts(false)
            .take(likely)
            .chain(attempts(true).take(likely))
        {
            match attempt.as_asked(expected) {
                Some(Err(Outcome::NoMatch(reason))) => mismatch = Some(reason),
                Some(decision) => return decision,
                None => {}
            }
        }
        if let Some(reason) = mismatch {
            return Err(Outcome::NoMatch(reason));
        }
    }
    for raw in attempts(false).take(1) {
        if let Some(decision) = raw.at_the_cut(options.protocol) {
            return decision;
        }
    }
    let mut weak = None;
    // What is lawful at the cut has no slip that could be mended.
    let has_slip = attempts(false).take(1).any(|raw| {
        raw.join(Outcome::Exact, base.text().len(), "", 0, 0)
            .is_err()
    });
    for attempt in attempts(false).chain(attempts(true).filter(|_| has_slip)) {
        // All of the fragment may be new: then less speaks for what is left of it.
        let is_raw = attempt.fragment.len() == fragment.len();
        let enough = if is_raw || has_slip {
            ENOUGH
        } else {
            2 * ENOUGH
        };
        match attempt.by_evidence(enough, expected.is_some()) {
            ControlFlow::Break(decision) => return decision,
            ControlFlow::Continue(candidates) => weak = weak.or(Some(candidates)),
        }
    }
    for attempt in attempts(false) {
        if let Some(decision) = attempt.by_remainder() {
            return decision;
        }
    }
    // What was asked for and stands behind something else cannot be new.
    if let Some(asked) = expected.map(str::trim_start)
        && unwrap::find_in_head(fragment, asked).is_some()
    {
        let longer = asked.chars().count();
        return Err(Outcome::Ambiguous { shorter: 0, longer });
    }
    // What is left of a fragment without the text around it has to show where it belongs.
    let mut raw = attempts(false);
    let weak = weak.unwrap_or_default();
    raw.next().map_or(Err(Outcome::Repeat), |raw| {
        raw.by_position(weak, options.protocol)
    })
}

impl<'f> Attempt<'_, 'f> {
    /// The fragment begins with what the model was asked to repeat, perhaps after something that
    /// is no piece of a document.
    fn as_asked(&self, asked: &str) -> Option<Result<Join<'f>, Outcome>> {
        let base_len = self.base.text().len();
        // White space in front is easily lost on the way.
        let said = match asked.trim_start() {
            "" => asked,
            said => said,
        };
        let at = unwrap::find_in_head(self.fragment, said)?;
        let (before, from) = (&self.fragment[..at], at + said.len());
        let is_more = self.base.text().ends_with(&self.fragment[..from]);
        let said = if is_more {
            &self.fragment[..from]
        } else {
            said
        };
        let bits = self.evidence.since(base_len - said.len());
        if !before.trim().is_empty() {
            // What stands before it may be less of the overlap than was asked for, and then new
            // text that repeats itself.
            let is_other = |other: &Candidate<'_>| other.bits >= ENOUGH && other.from != from;
            let needed = match is_more {
                true if self.is_like_the_end(base_len - said.len()) => 3 * ENOUGH,
                true => ENOUGH,
                false => ENOUGH - ASKED,
            };
            if bits < needed
                || !is_more && !unwrap::is_decoration(before, said)
                || self.overlaps().iter().any(is_other)
            {
                return None;
            }
        }
        let blank = &asked[..asked.len() - asked.trim_start().len()];
        let written = at - before.strip_suffix(blank).map_or(0, |_| blank.len());
        let from = match self.after_doubling(from, &self.fragment[written..from], bits) {
            Ok(from) => from,
            Err(outcome) => return Some(Err(outcome)),
        };
        let repeated = said.chars().count();
        match self.join(Outcome::Overlap, base_len, "", from, repeated) {
            Ok(join) => Some(self.progress(join)),
            // Another reading may do, or with slips mended.
            Err(_) if !self.mends => None,
            Err(syntax_error) => {
                let join = self.join_up_to_slip(from, repeated).ok();
                let join = join.filter(|_| bits + ASKED >= ENOUGH);
                let join = join.and_then(|join| self.progress(join).ok());
                Some(join.ok_or(Outcome::NoMatch(Mismatch::NotJson(syntax_error))))
            }
        }
    }

    /// The answer is expected to start at the cut: only clear evidence speaks against that.
    fn at_the_cut(&self, protocol: Protocol) -> Option<Result<Join<'f>, Outcome>> {
        if !matches!(protocol, Protocol::Prefill | Protocol::AtCut) {
            return None;
        }
        let exact = self.join(Outcome::Exact, self.base.text().len(), "", 0, 0);
        let exact = exact.ok()?;
        if protocol == Protocol::AtCut && !self.begins_the_document_again() {
            return Some(self.progress(exact));
        }
        let (restarts, falls_short) = self.restarts();
        let repeats = falls_short.is_some_and(|bits| bits >= ENOUGH + PREFILLED)
            && !self.is_period(0, self.fragment.len());
        if repeats {
            return Some(Err(Outcome::Repeat));
        }
        let is_clear = |restart: &Candidate<'_>| {
            restart.join.outcome == Outcome::Resumed
                && restart.bits >= ENOUGH + PREFILLED
                && !self.is_period(0, restart.from)
        };
        if let Some(restart) = restarts.into_iter().find(is_clear) {
            return Some(self.progress(restart.join));
        }
        if self.base.scanner().is_in_string() && self.is_talk_at_once() {
            return Some(Err(Outcome::NoMatch(Mismatch::Talk)));
        }
        Some(self.progress(exact))
    }

    /// What the fragment has in common with the base decides, if it says enough; else the joins
    /// that say less are left.
    fn by_evidence(
        &self,
        enough: u32,
        was_asked: bool,
    ) -> ControlFlow<Result<Join<'f>, Outcome>, Vec<Candidate<'f>>> {
        let (candidates, falls_short) = self.candidates();
        if falls_short || self.is_repeat() {
            return ControlFlow::Break(Err(Outcome::Repeat));
        }
        // A slip may stand in the way of a longer overlap.
        let is_shorter = |best: &Candidate<'_>| {
            best.join.outcome == Outcome::Overlap && best.from < self.longest_overlap()
        };
        if candidates
            .first()
            .is_none_or(|best| best.bits < enough || is_shorter(best))
        {
            return ControlFlow::Continue(candidates);
        }
        ControlFlow::Break(self.choose(candidates, was_asked))
    }

    /// A document of the missing items, if little is in common otherwise.
    fn by_remainder(&self) -> Option<Result<Join<'f>, Outcome>> {
        let remainder = match self.remainder()? {
            Ok(remainder) => remainder,
            Err(outcome) => return Some(Err(outcome)),
        };
        let (candidates, _) = self.candidates();
        let place = self.place_in_document(&remainder);
        let rival = candidates.into_iter().find(|rival| {
            rival.join.repeated > COINCIDENCE
                && rival.bits + ENOUGH > remainder.bits
                && self.place_in_document(rival) != place
        });
        Some(match rival {
            Some(rival) => Err(Outcome::Ambiguous {
                shorter: remainder.join.repeated.min(rival.join.repeated),
                longer: remainder.join.repeated.max(rival.join.repeated),
            }),
            None => self.progress(remainder.join),
        })
    }

    /// All joins after something that the fragment has in common with the base, the one that says
    /// most first, and whether the fragment begins again and ends before the cut.
    fn candidates(&self) -> (Vec<Candidate<'f>>, bool) {
        let (restarts, falls_short) = self.restarts();
        let mut candidates: Vec<Candidate<'f>> = Vec::new();
        for candidate in self.overlaps().into_iter().chain(restarts) {
            let place = self.place_in_document(&candidate);
            let known = candidates
                .iter_mut()
                .find(|known| self.place_in_document(known) == place);
            match known {
                Some(known) => known.bits = known.bits.max(candidate.bits),
                None => candidates.push(candidate),
            }
        }
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.bits));
        (candidates, falls_short.is_some())
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

    /// Takes the candidate that says most if nothing speaks for another one.
    fn choose(&self, candidates: Vec<Candidate<'f>>, was_asked: bool) -> Result<Join<'f>, Outcome> {
        let mut candidates = candidates.into_iter();
        let Some(mut best) = candidates.next() else {
            return Err(Outcome::Repeat);
        };
        let longer = best.join.repeated;
        let ambiguous = |shorter| Err(Outcome::Ambiguous { shorter, longer });
        // What begins like the base's end may also be a document with only the missing items.
        let place = self.place_in_document(&best);
        if let Some(Ok(remainder)) = self.remainder()
            && self.place_in_document(&remainder) != place
            && best.bits < remainder.bits + ENOUGH
        {
            return ambiguous(remainder.join.repeated.min(longer));
        }
        if self.said_of_the_beginning() > best.bits {
            return ambiguous(0);
        }
        for rival in candidates {
            if best.bits < rival.bits + ENOUGH || self.is_period(rival.from, best.from) {
                return ambiguous(rival.join.repeated.min(longer));
            }
        }
        let exact = self.join(Outcome::Exact, self.base.text().len(), "", 0, 0);
        if exact.is_ok() {
            let is_next = best.join.outcome == Outcome::Overlap
                && self.is_like_the_end(self.base.text().len() - best.from);
            let is_reformatted = best.join.outcome == Outcome::Reformatted;
            let is_weak =
                is_next && best.bits < 3 * ENOUGH || is_reformatted && best.bits < 2 * ENOUGH;
            let is_digits = self.fragment[..best.from]
                .bytes()
                .all(|byte| byte.is_ascii_digit());
            // An item may be equal to the last one. The container around it is not.
            let start = self.base.text().len().checked_sub(best.from);
            let mut frames = self.base.scanner().open_frames();
            let is_container = best.join.outcome == Outcome::Resumed
                || frames.any(|frame| Some(frame.opener) == start);
            let is_item = !is_container
                && !self.ends_in_token()
                && self.base.scanner().is_in_array()
                && (was_asked || self.first_value_stands_before(best.from));
            if is_weak || is_digits || is_item || self.is_period(0, best.from) {
                return ambiguous(0);
            }
        }
        if self.begins_with_equal_items() {
            return ambiguous(0);
        }
        let from = self.after_doubling(best.from, &self.fragment[..best.from], best.bits)?;
        if from > best.from {
            if best.join.outcome != Outcome::Overlap {
                return ambiguous(2 * longer);
            }
            let base_len = self.base.text().len();
            let join = self.join(Outcome::Overlap, base_len, "", from, longer);
            best.join = join.map_err(|error| Outcome::NoMatch(Mismatch::NotJson(error)))?;
        }
        self.progress(best.join)
    }

    /// Whether the fragment's first value stands in the base before what the fragment repeats.
    fn first_value_stands_before(&self, repeated: usize) -> bool {
        let mut tokens = Tokens::new(self.fragment, 0, false);
        let Some((start, end)) = read_value(&mut tokens) else {
            return false;
        };
        let text = self.base.text();
        let window = text.ceil_char_boundary(text.len().saturating_sub(REPEAT_WINDOW));
        let before = text.floor_char_boundary(text.len().saturating_sub(repeated).max(window));
        self.count(before - window);
        text[window..before].contains(&self.fragment[start..end])
    }

    /// What the base's very beginning says as far as the fragment begins with it. If that is more
    /// than it has of the base's end, it is a document begun anew that says something else.
    fn said_of_the_beginning(&self) -> u32 {
        let said = Tokens::new(self.base.text(), 0, false)
            .zip(Tokens::new(self.fragment, 0, false))
            .take_while(|(known, again)| known == again && !known.endless && !again.endless)
            .last()
            .map_or(0, |(known, _)| known.end);
        self.count(said);
        self.evidence.of(0, said)
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
            (Some(_), None) if self.is_like_the_document() => {
                Err(Outcome::NoMatch(Mismatch::Restart))
            }
            (Some(only), None) if only.from < self.longest_overlap() => Err(Outcome::Ambiguous {
                shorter: only.join.repeated,
                longer: self.fragment[..self.longest_overlap()].chars().count(),
            }),
            (Some(only), None) => self.progress(only.join),
            (Some(longer), Some(shorter)) => Err(Outcome::Ambiguous {
                shorter: shorter.join.repeated,
                longer: longer.join.repeated,
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
        candidates: Vec<Candidate<'f>>,
        protocol: Protocol,
    ) -> Result<Join<'f>, Outcome> {
        // What is said again is no news, even if the join after it has a slip.
        let longest = self.longest_overlap();
        if self.evidence.since(self.base.text().len() - longest) >= ENOUGH {
            let longer = self.fragment[..longest].chars().count();
            return Err(Outcome::Ambiguous { shorter: 0, longer });
        }
        let exact = match self.join(Outcome::Exact, self.base.text().len(), "", 0, 0) {
            Ok(exact) => exact,
            Err(syntax_error) if candidates.is_empty() || self.stands_alone() => {
                return Err(Outcome::NoMatch(Mismatch::NotJson(syntax_error)));
            }
            Err(_) => return self.choose_short(candidates),
        };
        let place = self.base.scanner().place();
        let repeated = candidates.first().map_or(0, |short| short.join.repeated);
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
            Some(CutPlace::String | CutPlace::Escape | CutPlace::Key)
                if repeated > COINCIDENCE || self.begins_the_word_again() =>
            {
                ambiguous
            }
            Some(CutPlace::String | CutPlace::Escape | CutPlace::Key) => self.progress(exact),
            _ if repeated > 0 || self.may_begin_after_a_line() => ambiguous,
            _ if self.is_like_the_document() || self.said_of_the_beginning() >= ENOUGH => {
                Err(Outcome::NoMatch(Mismatch::Restart))
            }
            _ if self.may_stand_alone()
                && (protocol == Protocol::Overlap || !self.is_next_record()) =>
            {
                Err(Outcome::NoMatch(Mismatch::Foreign))
            }
            _ => self.progress(exact),
        }
    }

    /// Whether the fragment begins with the word in which the base stops, perhaps with escapes.
    fn begins_the_word_again(&self) -> bool {
        let text = self.base.text();
        let before = text.trim_end_matches(char::is_alphanumeric);
        let word = &text[before.len()..];
        let mut again = code_points(self.fragment);
        !word.is_empty()
            && code_points(word).all(|(wanted, _)| {
                again
                    .next()
                    .is_some_and(|(character, _)| character == wanted)
            })
    }

    /// Whether the fragment begins with a line that may be a value of the document, or be about the
    /// answer: it says how far that is, or what follows it belongs to the base's end.
    fn may_begin_after_a_line(&self) -> bool {
        let line = self.fragment.lines().next().unwrap_or_default();
        let rest = self.fragment[line.len()..].trim_start();
        if rest.is_empty() || line.trim().is_empty() {
            return false;
        }
        let after = Attempt {
            fragment: rest,
            ..*self
        };
        let base_len = self.base.text().len();
        let is_number = line.trim().parse().is_ok_and(|percent: u32| percent <= 100);
        let says_again = |candidate: &Candidate<'_>| candidate.bits >= ENOUGH;
        is_number && after.join(Outcome::Exact, base_len, "", 0, 0).is_ok()
            || after.candidates().0.first().is_some_and(says_again)
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
                    && unwrap::is_talk_after(self.fragment, syntax_error.offset)
            }
        }
    }

    /// Whether the fragment may be JSON without the base, perhaps with brackets that close too much:
    /// it begins with a container, or it is only a literal.
    fn may_stand_alone(&self) -> bool {
        let mut tokens = Tokens::new(self.fragment, 0, false);
        let first = tokens.next();
        let is_literal = |first: Token<'_>| matches!(first.raw, "true" | "false" | "null");
        match first {
            Some(first) if first.is_mark("{[") => true,
            Some(first) if is_literal(first) => tokens.all(|token| token.is_mark("}]")),
            _ => self.stands_alone(),
        }
    }

    /// Whether the fragment begins a record like the one before it in the same array.
    fn is_next_record(&self) -> bool {
        let scanner = self.base.scanner();
        let previous = scanner.elements().1.filter(|_| scanner.is_in_array());
        let Some((start, end)) = previous else {
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
        let blank = self.base.text().len() - base.len();
        self.evidence.of(blank, blank + same.count()) >= ENOUGH
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
