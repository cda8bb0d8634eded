//! Goes on with an answer that is no document.
//!
//! Nothing in a plain text tells whether it is whole: the provider must say that it was cut off.
//! Where the server goes on from a prefill, what comes back is put after the text. Elsewhere nothing
//! proves a seam: it is joined where it repeats enough of the end, and else put after it.

use std::ops::RangeInclusive;

use overlock_budget::{Extras, plan};

use crate::backend::Usage;
use crate::complete::{CallEnd, Collected, Drive, Observe, SHORTEST_ECHO, StopCause, after_echo};
use crate::continuation::blank::{after_blank, split_blank};
use crate::continuation::{
    FIRST_SEAM, Failure, NextCall, Progress, Reason, Step, StepEnd, StepResult, Wants,
};
use crate::marker::Marker;
use crate::prompt::{FittedCall, PromptError, first_call, text_call, text_prefill_call};
use crate::strategy::Strategy;
use crate::streaming_answer::StreamingAnswer;
use crate::wire::chat::ChatRequest;

/// How many characters of the end the model is asked to repeat.
const ASKED: usize = 200;

/// So many bytes of an answer may be a repetition.
pub(crate) const LONGEST_REPETITION: usize = 1000;

/// A repetition of fewer characters may be a coincidence.
const LEAST_REPETITION: usize = 16;

/// A text that was cut off, and how far it has come.
#[derive(Clone, Debug)]
pub struct TextContinuation {
    text: String,
    is_cut: bool,
    iterations: u32,
    usage: Usage,
    options: TextOptions,
    /// How it is asked for.
    way: Strategy,
    /// Why nobody went on with it, if that is not one of its limits.
    stopped: Option<Reason>,
    marker: Marker,
}

/// How long a text is gone on with.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// How often the model is asked, the first time included.
    pub max_iterations: u32,
    /// How many tokens all answers may have together.
    pub max_output_tokens: u64,
    /// Whether the server goes on from a prefill, as far as that is known.
    pub can_prefill: bool,
}

/// The beginning that was put in the model's mouth, and the white space after it that was not.
#[derive(Clone, Debug)]
pub(crate) struct TextPrefill {
    prefill: String,
    blank: String,
}

impl TextPrefill {
    /// What of a text was put in the model's mouth.
    fn new(prefill: &str, text: &str) -> Self {
        Self {
            prefill: prefill.to_owned(),
            blank: split_blank(text).1.to_owned(),
        }
    }

    /// Whether the beginning of an answer may still be a repetition, and nothing else.
    pub(crate) fn may_repeat(&self, answer: &str) -> bool {
        let may_echo = self.prefill.len() >= SHORTEST_ECHO;
        may_echo && self.prefill.starts_with(answer)
            || self.blank.starts_with(self.without_echo(answer))
    }

    /// An answer without an echo of the prefill, and without white space that is there already.
    pub(crate) fn new_text<'a>(&self, answer: &'a str) -> &'a str {
        self.without_blank(self.without_echo(answer))
    }

    fn without_blank<'a>(&self, answer: &'a str) -> &'a str {
        let rest = after_blank(answer.as_bytes(), &self.blank).len();
        &answer[answer.len() - rest..]
    }

    fn without_echo<'a>(&self, answer: &'a str) -> &'a str {
        let rest = after_echo(answer.as_bytes(), &self.prefill);
        rest.map_or(answer, |rest| &answer[answer.len() - rest.len()..])
    }
}

impl TextContinuation {
    /// A text of so many tokens that its provider says was cut off.
    pub fn new(text: String, tokens: u64, options: TextOptions) -> Self {
        Self {
            text,
            is_cut: true,
            iterations: 1,
            usage: Usage {
                input: 0,
                output: tokens,
                cached: None,
            },
            way: if options.can_prefill {
                Strategy::Prefill
            } else {
                Strategy::Overlap
            },
            options,
            stopped: None,
            marker: Marker::default(),
        }
    }

    /// A text as far as these steps brought it, from its [first](Self::first_step) on; nothing if
    /// they do not go together.
    pub fn resume<'a>(
        steps: impl IntoIterator<Item = &'a Step>,
        options: TextOptions,
    ) -> Option<Self> {
        let mut run = Self::new(String::new(), 0, options);
        run.iterations = 0;
        for step in steps {
            run.iterations += 1;
            if step.is_turned_down() {
                run.way = Strategy::Overlap;
                continue;
            }
            run.usage.output = run.usage.output.saturating_add(step.tokens);
            run.is_cut = is_cut(step.end.finish.as_deref(), step.end.broken.is_some());
            if let StepResult::Grown { offset, added, .. } = &step.result {
                if *offset != run.text.len() {
                    return None;
                }
                run.text.push_str(added);
            }
            run.stopped = run.stopped_by(step);
            run.is_cut |= run.stopped == Some(Reason::MergeFailures);
        }
        Some(run)
    }

    /// What became of an answer of so many tokens that is the beginning of a text.
    pub fn first_step(text: &str, tokens: u64, end: StepEnd) -> Step {
        step(1, None, tokens, grown(FIRST_SEAM, 0, 0, text), end)
    }

    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the provider says that there is more of it.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Why there is no more of it; nothing if the provider calls it whole.
    pub fn reason(&self) -> Option<Reason> {
        let at_limit = || {
            if self.usage.output >= self.options.max_output_tokens {
                Reason::TokenLimit
            } else {
                Reason::IterationLimit
            }
        };
        self.stopped.or_else(|| self.is_cut.then(at_limit))
    }

    /// How often the model has been asked.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// How many tokens all answers had together.
    pub fn output_tokens(&self) -> u64 {
        self.usage.output
    }

    /// The end of the text, which the model is asked to repeat.
    pub(crate) fn overlap(&self) -> &str {
        asked_overlap(&self.text)
    }

    /// What marks the parts of its prompts.
    pub(crate) fn marker(&self) -> &Marker {
        &self.marker
    }

    /// The call for the rest.
    pub(crate) fn next_call(&self, drive: &Drive<'_>) -> Result<FittedCall, PromptError> {
        if self.way == Strategy::Prefill {
            return text_prefill_call(&self.text, drive.request, drive.counter, drive.plan);
        }
        text_call(self, drive.request, |request| {
            plan(request, &Extras::default(), drive.counter, drive.plan)
        })
    }

    fn may_go_on(&self) -> bool {
        let TextOptions {
            max_iterations,
            max_output_tokens,
            ..
        } = self.options;
        self.is_cut && self.iterations < max_iterations && self.usage.output < max_output_tokens
    }

    /// Takes what marks the parts of the prompts. A run that was stopped before gets another chance.
    pub(crate) fn set_request(&mut self, request: &ChatRequest) {
        self.marker = Marker::of_request(request);
        if self.may_go_on() {
            self.stopped = None;
        }
    }

    /// What to ask next; nothing once the run has ended.
    pub(crate) fn next(&self) -> Option<NextCall> {
        (self.may_go_on() && self.stopped.is_none()).then(|| NextCall {
            iteration: self.iterations + 1,
            way: Some(self.way),
            overlap: String::new(),
            wants: Wants::Text,
            marker: self.marker.clone(),
        })
    }

    /// Takes note that the server refuses the call. If it had a prefill, the next one has none.
    pub(crate) fn refused(&mut self, ask: &NextCall, message: String) -> Option<Step> {
        let way = ask.way.filter(|way| *way == Strategy::Prefill);
        way?;
        self.iterations += 1;
        self.way = Strategy::Overlap;
        let result = StepResult::Failed {
            failure: Failure::Refused { message },
            raw: None,
        };
        Some(step(self.iterations, way, 0, result, StepEnd::default()))
    }

    /// Ends the run for a reason that it cannot know of itself.
    pub(crate) fn stop(&mut self, reason: Reason) {
        self.stopped.get_or_insert(reason);
    }

    /// Listens to the answer to a call with this prefill.
    pub(crate) fn arriving(&self, prefill: Option<&str>) -> StreamingAnswer {
        match prefill {
            Some(prefill) => StreamingAnswer::after_prefill(TextPrefill::new(prefill, &self.text)),
            None => StreamingAnswer::of_text(&self.text, &self.marker),
        }
    }

    /// Takes an answer as far as it arrived.
    pub(crate) fn take_answer(
        &mut self,
        drive: &Drive<'_>,
        prefill: Option<&str>,
        collected: &mut Collected,
    ) -> Step {
        let counted = drive.counter.tokens().count(&collected.text);
        collected.end.counted = Some(counted);
        let tokens = collected.end.usage.map_or(counted, |usage| usage.output);
        // What stopped before its end was cut, unless the provider had said by then how it ends.
        let is_broken = collected.broken.is_some() || collected.is_cut_at_marker;
        let prefill = prefill.map(|prefill| TextPrefill::new(prefill, &self.text));
        let is_stopped = is_broken || drive.is_late();
        self.take(collected, prefill.as_ref(), tokens, is_stopped)
    }

    /// Takes what came back for the rest; what became of it. What the answer was begun with tells
    /// what of it is new.
    fn take(
        &mut self,
        collected: &Collected,
        prefill: Option<&TextPrefill>,
        tokens: u64,
        is_stopped: bool,
    ) -> Step {
        self.iterations += 1;
        self.usage.output = self.usage.output.saturating_add(tokens);
        let end = collected.step_end();
        self.is_cut = is_cut(end.finish.as_deref(), is_stopped);
        if let Some(prefill) = prefill {
            let news = prefill.without_blank(&collected.text);
            let result = if news.is_empty() {
                let raw = (!collected.text.is_empty()).then(|| collected.text.clone());
                let failure = match end.refusal {
                    Some(_) => Failure::Declined,
                    None => Failure::Empty,
                };
                StepResult::Failed { failure, raw }
            } else {
                grown("end-to-end", 0, self.text.len(), news)
            };
            self.text.push_str(news);
            let step = step(
                self.iterations,
                Some(Strategy::Prefill),
                tokens,
                result,
                end,
            );
            self.stopped = self.stopped_by(&step);
            return step;
        }
        let head = self.marker.strip_head(collected.text.as_bytes()).len();
        let answer = &collected.text[collected.text.len() - head..];
        if self.marker.is_in(answer.as_bytes()) {
            // The rest is still missing, whatever the provider says of an answer that is refused.
            self.is_cut = true;
            let result = StepResult::Failed {
                failure: Failure::MarkerInAnswer,
                raw: Some(answer.to_owned()),
            };
            let step = step(
                self.iterations,
                Some(Strategy::Overlap),
                tokens,
                result,
                end,
            );
            self.stopped = self.stopped_by(&step);
            return step;
        }
        let (repeated, news) = answer.split_at(repeated_len(&self.text, answer));
        let fail = |failure| StepResult::Failed {
            failure,
            raw: (!repeated.is_empty()).then(|| repeated.to_owned()),
        };
        let result = match (repeated.is_empty(), news.is_empty()) {
            (true, true) if end.refusal.is_some() => fail(Failure::Declined),
            (true, true) => fail(Failure::Empty),
            (false, true) => fail(Failure::Repeat),
            (is_appended, false) => {
                let seam = if is_appended { "end-to-end" } else { "overlap" };
                grown(seam, repeated.chars().count(), self.text.len(), news)
            }
        };
        self.text.push_str(news);
        let step = step(
            self.iterations,
            Some(Strategy::Overlap),
            tokens,
            result,
            end,
        );
        self.stopped = self.stopped_by(&step);
        step
    }

    /// Why nobody goes on after this step, which was the last so far, whatever the limits are.
    fn stopped_by(&self, step: &Step) -> Option<Reason> {
        if step.end.finish.as_deref() == Some("content_filter") {
            return Some(Reason::ContentFilter);
        }
        match &step.result {
            StepResult::Failed {
                failure: Failure::MarkerInAnswer,
                ..
            } => Some(Reason::MergeFailures),
            StepResult::Failed { .. } => self.is_cut.then_some(Reason::NoProgress),
            StepResult::Grown { .. } => None,
        }
    }
}

fn step(
    iteration: u32,
    way: Option<Strategy>,
    tokens: u64,
    result: StepResult,
    end: StepEnd,
) -> Step {
    Step {
        iteration,
        way,
        tokens,
        kpi: None,
        kpis: None,
        progress: Progress::Unknown,
        is_looping: false,
        result,
        end,
    }
}

fn grown(seam: &str, overlap: usize, offset: usize, added: &str) -> StepResult {
    StepResult::Grown {
        seam: seam.to_owned(),
        overlap,
        offset,
        added_bytes: added.len(),
        added: added.to_owned(),
        half_character: Vec::new(),
        scanned: 0,
    }
}

/// Makes the caller's own call, and gives what came of it: a text, whole or cut off.
pub async fn first_text(
    drive: &Drive<'_>,
    options: TextOptions,
    observer: &mut dyn Observe,
) -> Result<(TextContinuation, CallEnd), StopCause> {
    let FittedCall { call, plan } =
        first_call(drive.request, drive.counter, drive.plan).map_err(StopCause::Window)?;
    let most_bytes = drive.most_bytes(&plan);
    let (collected, _) = drive.listen(call, most_bytes, None, observer).await;
    let is_stopped = collected.broken.is_some() || drive.is_late();
    if let Some(obstacle) = collected.obstacle().filter(|_| collected.text.is_empty()) {
        return Err(obstacle);
    }
    let usage = collected.end.usage;
    let tokens = usage.map_or_else(
        || drive.counter.tokens().count(&collected.text),
        |usage| usage.output,
    );
    let mut run = TextContinuation::new(collected.text, tokens, options);
    run.is_cut = is_cut(collected.end.finish.as_deref(), is_stopped);
    Ok((run, collected.end))
}

/// Whether an answer was cut off, as far as the provider says.
fn is_cut(finish: Option<&str>, is_stopped: bool) -> bool {
    finish == Some("length") || finish.is_none() && is_stopped
}

/// The end of a text, which the model is asked to repeat.
pub(crate) fn asked_overlap(text: &str) -> &str {
    let start = text.char_indices().rev().nth(ASKED - 1);
    &text[start.map_or(0, |(at, _)| at)..]
}

/// How many bytes an answer has first that a text ends with, if they are too many to be so by
/// chance. A text that repeats itself can be repeated in several ways: then what was asked for is
/// meant, and no more than that if there is less of it.
pub(crate) fn repeated_len(text: &str, answer: &str) -> usize {
    let asked = asked_overlap(text);
    if answer.starts_with(asked) {
        return asked.len();
    }
    let most = LONGEST_REPETITION.min(text.len()).min(answer.len());
    let is_repeated = |len: &usize| {
        answer.is_char_boundary(*len) && text.as_bytes().ends_with(&answer.as_bytes()[..*len])
    };
    let is_enough = |len: &usize| answer[..*len].chars().nth(LEAST_REPETITION - 1).is_some();
    let longest = |lengths: RangeInclusive<usize>| lengths.rev().find(is_repeated);
    let within = longest(1..=most.min(asked.len())).filter(is_enough);
    let len = within.or_else(|| longest(asked.len() + 1..=most).filter(is_enough));
    len.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::error::Error;
    use std::sync::Mutex;

    use futures_util::future::{self, BoxFuture};
    use futures_util::{FutureExt, StreamExt, stream};
    use overlock_budget::{ChatCounter, Models, PlanOptions};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::backend::{Backend, BackendError, Call, Event, Events};
    use crate::complete::complete_text;
    use crate::run::Run;
    use crate::strategy::Strategy;

    const OPTIONS: TextOptions = TextOptions {
        max_iterations: 9,
        max_output_tokens: 1000,
        can_prefill: false,
    };

    fn collected(text: &str, finish: Option<&str>) -> Collected {
        Collected {
            text: text.to_owned(),
            end: CallEnd {
                finish: finish.map(str::to_owned),
                usage: None,
                counted: None,
            },
            ..Collected::default()
        }
    }

    #[track_caller]
    fn check_step(answer: &str, finish: &str, seam: &str, reason: Option<Reason>) {
        let begin = "It was a dark and stormy night";
        let mut run = TextContinuation::new(begin.to_owned(), 7, OPTIONS);
        let step = run.take(&collected(answer, Some(finish)), None, 5, false);
        let told = match &step.result {
            StepResult::Grown { seam, .. } => seam.as_str(),
            StepResult::Failed { failure, .. } => failure.name(),
        };
        assert_eq!((told, run.reason()), (seam, reason), "{answer:?}, {finish}");
    }

    #[test]
    fn what_became_of_an_answer_is_told() {
        let repeated = "a dark and stormy night; the rain fell";
        check_step(repeated, "stop", "overlap", None);
        check_step("; the rain fell", "stop", "end-to-end", None);
        let filtered = Some(Reason::ContentFilter);
        check_step("; the rain", "content_filter", "end-to-end", filtered);
        let stuck = Some(Reason::NoProgress);
        check_step("a dark and stormy night", "length", "repeat", stuck);
        check_step("", "length", "empty", stuck);
    }

    #[test]
    fn a_text_at_its_limit_says_which() {
        let text = || "It was a".to_owned();
        let run = TextContinuation::new(text(), 1000, OPTIONS);
        assert_eq!(run.reason(), Some(Reason::TokenLimit));
        let options = TextOptions {
            max_iterations: 1,
            ..OPTIONS
        };
        let run = TextContinuation::new(text(), 7, options);
        assert_eq!(run.reason(), Some(Reason::IterationLimit));
    }

    #[test]
    fn steps_that_do_not_go_together_make_no_text() {
        let first = TextContinuation::first_step("It was", 2, StepEnd::default());
        assert!(TextContinuation::resume([&first, &first], OPTIONS).is_none());
    }

    /// A model that gives these answers in turn, piece by piece, and says after each that it is done.
    struct Answers(Mutex<VecDeque<Vec<String>>>);

    impl Backend for Answers {
        fn call(&self, _call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
            let pieces = self.0.lock().expect("one caller").pop_front();
            let pieces = pieces.expect("an answer for every call").into_iter();
            let events = pieces.map(Event::Text);
            let events = events.chain([Event::Finish("stop".to_owned())]);
            let events = stream::iter(events.map(Ok).collect::<Vec<_>>());
            future::ready(Ok(events.boxed())).boxed()
        }
    }

    /// Keeps the streamed text and the steps.
    #[derive(Default)]
    struct Listener {
        told: String,
        steps: Vec<Step>,
    }

    impl Observe for Listener {
        fn certain<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
            self.told.push_str(text);
            future::ready(()).boxed()
        }

        fn stepped<'a>(
            &'a mut self,
            _run: Run<'a>,
            step: &'a Step,
            _end: &'a CallEnd,
        ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
            self.steps.push(step.clone());
            future::ready(Ok(())).boxed()
        }
    }

    /// A text that is continued by an answer with a marker after its new words, or with the
    /// beginning of one.
    async fn with_marker(live: bool, max_iterations: u32, is_half: bool) -> TextContinuation {
        let found = Models::default().find("gpt-4o");
        let counter = ChatCounter::for_model(&found);
        let request =
            json!({ "model": "gpt-4o", "messages": [{ "role": "user", "content": "x" }] });
        let marker = Marker::from_seed(request.to_string().as_bytes());
        let request = ChatRequest::from_value(request).expect("a request");
        let begun = "It was a dark and stormy night";
        let close = marker.close("overlap");
        let tail = if is_half {
            vec![&close[..close.len() - 5]]
        } else {
            vec![close.as_str(), " and"]
        };
        let first = [begun, "; the rain fell"].into_iter().chain(tail);
        let first = first.map(str::to_owned).collect();
        let second = vec![format!("{begun}; the rain fell in torrents.")];
        let backend = Answers(Mutex::new(VecDeque::from([first, second])));
        let drive = Drive {
            backend: &backend,
            request: &request,
            counter: &counter,
            plan: &PlanOptions::for_model(&found.model),
            deadline: None,
            most_answer_bytes: 1 << 20,
            live,
        };
        let options = TextOptions {
            max_iterations,
            ..OPTIONS
        };
        let end = StepEnd {
            finish: Some("length".to_owned()),
            ..StepEnd::default()
        };
        let mut run = TextContinuation::new(begun.to_owned(), 7, options);
        let mut listener = Listener::default();
        listener
            .steps
            .push(TextContinuation::first_step(begun, 7, end));
        let driven = complete_text(&mut run, &drive, &mut listener).await;
        assert_eq!(driven.expect("nothing is recorded that could fail"), None);
        if live {
            assert_eq!(format!("{begun}{}", listener.told), run.text());
        }
        let resumed = TextContinuation::resume(&listener.steps, options).expect("one text");
        assert_eq!(resumed.text(), run.text());
        assert_eq!(resumed.is_cut(), run.is_cut());
        assert_eq!(resumed.reason(), run.reason());
        run
    }

    #[tokio::test]
    async fn a_text_that_is_cut_at_a_marker_is_not_whole() {
        for is_half in [false, true] {
            for live in [false, true] {
                let cut = with_marker(live, 2, is_half).await;
                assert_eq!(cut.text(), "It was a dark and stormy night; the rain fell");
                assert_eq!(cut.reason(), Some(Reason::IterationLimit));
                let whole = with_marker(live, 3, is_half).await;
                let text = "It was a dark and stormy night; the rain fell in torrents.";
                assert_eq!((whole.text(), whole.reason()), (text, None));
            }
        }
    }

    fn finishes() -> impl proptest::strategy::Strategy<Value = &'static str> {
        prop::sample::select(vec!["length", "stop", "content_filter"])
    }

    #[test]
    fn a_refused_prefill_is_remembered_and_ends_nothing() {
        let options = TextOptions {
            can_prefill: true,
            ..OPTIONS
        };
        let end = StepEnd {
            finish: Some("length".to_owned()),
            ..StepEnd::default()
        };
        let first = TextContinuation::first_step("It was ", 7, end);
        let mut run = TextContinuation::resume([&first], options).expect("a text");
        assert_eq!(run.way, Strategy::Prefill);
        let ask = run.next().expect("there is more of it");
        let refused = run
            .refused(&ask, "no prefill".to_owned())
            .expect("there is another way");
        let resumed = TextContinuation::resume([&first, &refused], options).expect("a text");
        for run in [run, resumed] {
            assert_eq!((run.way, run.iterations), (Strategy::Overlap, 2));
            assert!(run.next().is_some());
        }
    }

    proptest! {
        #[test]
        fn what_goes_on_from_a_prefill_is_told_as_it_comes_and_joined_the_same(
            text in "[ab ]{0,30}",
            rest in "[ab ]{0,30}",
            is_echoed in any::<bool>(),
            size in 1_usize..9,
        ) {
            let prefill = TextPrefill::new(text.trim_end(), &text);
            let echo = if is_echoed { text.trim_end() } else { "" };
            let answer = format!("{echo}{rest}");
            let mut arriving = StreamingAnswer::after_prefill(prefill.clone());
            let characters: Vec<char> = answer.chars().collect();
            let pieces = characters.chunks(size).map(String::from_iter);
            let told: String = pieces.map(|piece: String| arriving.feed(&piece)).collect();
            let options = TextOptions { can_prefill: true, ..OPTIONS };
            let mut run = TextContinuation::new(text.clone(), 7, options);
            let mut collected = collected(&answer, Some("stop"));
            collected.remove_echo(text.trim_end());
            run.take(&collected, Some(&prefill), 5, false);
            let news = run.text().strip_prefix(text.as_str()).expect("it only grows");
            prop_assert!(news.starts_with(&told));
            if is_echoed && text.trim_end().len() >= SHORTEST_ECHO {
                prop_assert_eq!(news.trim_start(), rest.trim_start());
            }
        }

        #[test]
        fn the_steps_of_a_text_make_the_same_text_again(
            first in "[a-cé ]{0,30}",
            answers in prop::collection::vec(("[a-cé ]{0,40}", any::<bool>(), finishes()), 0..6),
        ) {
            let end = StepEnd { finish: Some("length".to_owned()), ..StepEnd::default() };
            let mut run = TextContinuation::new(first.clone(), 3, OPTIONS);
            let mut steps = vec![TextContinuation::first_step(&first, 3, end)];
            for (answer, repeats, finish) in answers {
                let answer = if repeats { format!("{}{answer}", run.overlap()) } else { answer };
                steps.push(run.take(&collected(&answer, Some(finish)), None, 5, false));
            }
            let resumed = TextContinuation::resume(&steps, OPTIONS).expect("one text");
            prop_assert_eq!(resumed.text(), run.text());
            prop_assert_eq!(resumed.is_cut(), run.is_cut());
            prop_assert_eq!(resumed.reason(), run.reason());
            prop_assert_eq!(resumed.iterations(), run.iterations());
            prop_assert_eq!(resumed.output_tokens(), run.output_tokens());
        }
    }

    proptest! {
        #[test]
        fn an_answer_that_repeats_what_it_was_asked_to_is_joined_exactly(
            unit in "[ab\n]{1,9}|[a-zé ]{10,60}", times in 1..300_usize, news in "[ab\n]{1,300}|[a-zé ]{1,90}",
        ) {
            let text = unit.repeat(times);
            // What may begin a marker is held back to the end, and a dot never does.
            let news = news + ".";
            let mut run = TextContinuation::new(text.clone(), 7, OPTIONS);
            let answer = format!("{}{news}", run.overlap());
            let mut arriving = StreamingAnswer::of_text(&text, &Marker::default());
            let mut told = String::new();
            for piece in answer.split_inclusive(' ') {
                told.push_str(&arriving.feed(piece));
            }
            run.take(&collected(&answer, Some("stop")), None, 5, false);
            prop_assert_eq!(run.text(), format!("{text}{news}"));
            // What was asked for is known when it is there, and the rest passed on as it comes.
            prop_assert_eq!(told, news);
        }
    }

    #[test]
    fn a_repetition_is_found_if_it_is_long_enough() {
        let text = "It was a dark and stormy night; the rain fell in torrents";
        let check = |answer: &str, repeated: &str| {
            assert_eq!(&answer[..repeated_len(text, answer)], repeated);
        };
        check(
            "the rain fell in torrents, except",
            "the rain fell in torrents",
        );
        check("torrents, except", "");
        check(", except at occasional intervals", "");
        check("", "");
        check(text, text);
        assert_eq!(repeated_len("Hello wor", "Hello world."), 9);
        assert_eq!(repeated_len("Hello wor", "world."), 0);
        assert_eq!(repeated_len("", "Hello"), 0);
    }
}
