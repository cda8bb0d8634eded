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
use crate::wire::chat::ChatRequest;

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
    let result = match &step.result {
        StepResult::Grown { seam, .. } => seam.as_str(),
        StepResult::Failed { failure, .. } => failure.name(),
    };
    assert_eq!(
        (result, run.reason()),
        (seam, reason),
        "{answer:?}, {finish}"
    );
}

#[test]
fn a_step_records_how_its_answer_was_joined() {
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
fn the_reason_names_the_limit() {
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
fn steps_that_do_not_fit_together_are_rejected() {
    let first = TextContinuation::first_step("It was", 2, StepEnd::default());
    assert!(TextContinuation::resume([&first, &first], OPTIONS).is_none());
}

/// A model that sends these answers in turn, piece by piece, each with the finish reason
/// `stop`.
struct PiecewiseAnswers(Mutex<VecDeque<Vec<String>>>);

impl Backend for PiecewiseAnswers {
    fn call(&self, _call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let pieces = self.0.lock().expect("one caller").pop_front();
        let pieces = pieces.expect("an answer for every call").into_iter();
        let events = pieces.map(Event::Text);
        let events = events.chain([Event::Finish("stop".to_owned())]);
        let events = stream::iter(events.map(Ok).collect::<Vec<_>>());
        future::ready(Ok(events.boxed())).boxed()
    }
}

/// Records the streamed text and the steps.
#[derive(Default)]
struct StepRecorder {
    streamed: String,
    steps: Vec<Step>,
}

impl Observe for StepRecorder {
    fn stable<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        self.streamed.push_str(text);
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

/// Continues a text with an answer that has a marker, or the start of one, after its new text.
async fn with_marker(live: bool, max_iterations: u32, is_half: bool) -> TextContinuation {
    let model = Models::default().find("gpt-4o");
    let counter = ChatCounter::for_model(&model);
    let request = json!({ "model": "gpt-4o", "messages": [{ "role": "user", "content": "x" }] });
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
    let backend = PiecewiseAnswers(Mutex::new(VecDeque::from([first, second])));
    let drive = Drive {
        backend: &backend,
        request: &request,
        counter: &counter,
        plan: &PlanOptions::for_model(&model.model),
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
    let mut recorder = StepRecorder::default();
    recorder
        .steps
        .push(TextContinuation::first_step(begun, 7, end));
    let driven = complete_text(&mut run, &drive, &mut recorder).await;
    assert_eq!(driven.expect("nothing is recorded that could fail"), None);
    if live {
        assert_eq!(format!("{begun}{}", recorder.streamed), run.text());
    }
    let resumed = TextContinuation::resume(&recorder.steps, options).expect("one text");
    assert_eq!(resumed.text(), run.text());
    assert_eq!(resumed.is_cut(), run.is_cut());
    assert_eq!(resumed.reason(), run.reason());
    run
}

#[tokio::test]
async fn a_text_that_is_cut_at_a_marker_is_incomplete() {
    for is_half in [false, true] {
        for live in [false, true] {
            let cut = with_marker(live, 2, is_half).await;
            assert_eq!(cut.text(), "It was a dark and stormy night; the rain fell");
            assert_eq!(cut.reason(), Some(Reason::IterationLimit));
            let complete = with_marker(live, 3, is_half).await;
            let text = "It was a dark and stormy night; the rain fell in torrents.";
            assert_eq!((complete.text(), complete.reason()), (text, None));
        }
    }
}

fn finishes() -> impl proptest::strategy::Strategy<Value = &'static str> {
    prop::sample::select(vec!["length", "stop", "content_filter"])
}

#[test]
fn a_rejected_prefill_is_not_sent_again() {
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
    assert_eq!(run.strategy, Strategy::Prefill);
    let ask = run.next().expect("there is more of it");
    let refused = run
        .refused(&ask, "no prefill".to_owned())
        .expect("the overlap is left");
    let resumed = TextContinuation::resume([&first, &refused], options).expect("a text");
    for run in [run, resumed] {
        assert_eq!((run.strategy, run.iterations), (Strategy::Overlap, 2));
        assert!(run.next().is_some());
    }
}

proptest! {
    #[test]
    fn the_stream_after_a_prefill_is_a_prefix_of_the_joined_text(
        text in "[ab ]{0,30}",
        rest in "[ab ]{0,30}",
        is_echoed in any::<bool>(),
        size in 1_usize..9,
    ) {
        let prefill = TextPrefill::new(text.trim_end(), &text);
        let echo = if is_echoed { text.trim_end() } else { "" };
        let answer = format!("{echo}{rest}");
        let mut streaming = StreamingAnswer::after_prefill(prefill.clone());
        let characters: Vec<char> = answer.chars().collect();
        let pieces = characters.chunks(size).map(String::from_iter);
        let streamed: String = pieces.map(|piece: String| streaming.feed(&piece)).collect();
        let options = TextOptions { can_prefill: true, ..OPTIONS };
        let mut run = TextContinuation::new(text.clone(), 7, options);
        let mut collected = collected(&answer, Some("stop"));
        collected.remove_echo(text.trim_end());
        run.take(&collected, Some(&prefill), 5, false);
        let news = run.text().strip_prefix(text.as_str()).expect("it only grows");
        prop_assert!(news.starts_with(&streamed));
        if is_echoed && text.trim_end().len() >= SHORTEST_ECHO {
            prop_assert_eq!(news.trim_start(), rest.trim_start());
        }
    }

    #[test]
    fn the_steps_of_a_text_restore_it(
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
    fn an_answer_that_repeats_the_overlap_is_joined_exactly(
        unit in "[ab\n]{1,9}|[a-zé ]{10,60}", times in 1..300_usize, news in "[ab\n]{1,300}|[a-zé ]{1,90}",
    ) {
        let text = unit.repeat(times);
        // Text that may begin a marker is held back until the end; a dot never begins one.
        let news = news + ".";
        let mut run = TextContinuation::new(text.clone(), 7, OPTIONS);
        let answer = format!("{}{news}", run.overlap());
        let mut streaming = StreamingAnswer::of_text(&text, &Marker::default());
        let mut streamed = String::new();
        for piece in answer.split_inclusive(' ') {
            streamed.push_str(&streaming.feed(piece));
        }
        run.take(&collected(&answer, Some("stop")), None, 5, false);
        prop_assert_eq!(run.text(), format!("{text}{news}"));
                    // Text after the overlap is streamed at once.
                    prop_assert_eq!(streamed, news);
    }
}

#[test]
fn a_repetition_is_recognised_if_it_is_long_enough() {
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
