use proptest::prelude::*;
use proptest::strategy::Strategy as _;

use super::step::READABLE;
use super::*;
use crate::strategy::Strategy;
use crate::wire::chat::ChatRequest;

const DOCUMENT: &str = r#"{"title": "Rivers", "sections": [{"content_type": "table", "elements": [{"rows": [["Nile", 6650], ["Amazon", 6400], ["Yangtze", 6300]]}]}, {"content_type": "code", "elements": [{"code": "fn main() {\n    println!(\"hi\");\n}"}]}]}"#;

fn run() -> Continuation {
    Continuation::new(ContinuationOptions::default())
}

fn run_with(strategies: Vec<Strategy>) -> Continuation {
    Continuation::new(ContinuationOptions {
        strategies,
        ..ContinuationOptions::default()
    })
}

fn reason(run: &Continuation) -> Option<Reason> {
    run.outcome().and_then(Outcome::reason)
}

/// Answers the next call; returns the call and the step.
fn answer(run: &mut Continuation, text: &str) -> (NextCall, Step) {
    let ask = run.next().expect("it has not ended");
    let answer = ModelOutput::new(text.as_bytes(), 10);
    let step = run.answered(&ask, &answer).expect("it was asked");
    (ask, step)
}

fn failure(step: &Step) -> Option<&Failure> {
    match &step.result {
        StepResult::Failed { failure, .. } => Some(failure),
        StepResult::Grown { .. } => None,
    }
}

/// A run whose first answer was cut after this many bytes.
fn cut_at(at: usize) -> Continuation {
    let mut run = run();
    answer(&mut run, &DOCUMENT[..at]);
    assert_eq!(run.outcome(), None);
    run
}

// The steps of a run.

#[test]
fn a_first_answer_that_parses_is_the_result() {
    let mut run = run();
    let (ask, step) = answer(&mut run, DOCUMENT);
    assert_eq!((ask.iteration, ask.strategy), (1, None));
    assert_eq!(failure(&step), None);
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
    assert_eq!(run.text(), DOCUMENT);
    assert_eq!(run.next(), None);
}

#[test]
fn a_repaired_complete_answer_is_the_result() {
    let mut run = run();
    answer(&mut run, r#"{"title": "Rivers", "open": True,}"#);
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
    assert_eq!(run.text(), r#"{"title": "Rivers", "open": true}"#);
}

#[test]
fn a_cut_answer_is_kept_and_continued() {
    let mut run = cut_at(120);
    assert_eq!(run.text(), &DOCUMENT[..120]);
    let part = run.last_valid_complete_part().expect("there is a part");
    serde_json::from_str::<serde_json::Value>(&part).expect("the fallback is valid");
    let ask = run.next().expect("there is more");
    assert_eq!((ask.iteration, ask.strategy), (2, Some(Strategy::Overlap)));
    assert!(DOCUMENT[..120].ends_with(&ask.overlap) && !ask.overlap.is_empty());

    // The document stays cut, so that the next answer is joined to it and not to the closed part.
    let rest = format!("{}{}", ask.overlap, &DOCUMENT[120..]);
    answer(&mut run, &rest);
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
    assert_eq!(run.text(), DOCUMENT);
}

#[test]
fn a_failed_merge_changes_nothing_and_is_retried() {
    let mut run = cut_at(120);
    let (_, step) = answer(&mut run, "I am sorry, I cannot go on.");
    assert!(failure(&step).is_some());
    assert_eq!(run.merge_fail_count(), 1);
    assert_eq!((run.text(), run.outcome()), (&DOCUMENT[..120], None));
}

#[test]
fn a_successful_merge_resets_the_failure_count() {
    let mut run = cut_at(120);
    answer(&mut run, "Sorry.");
    answer(&mut run, "Sorry.");
    let overlap = run.next().expect("two are not three").overlap;
    assert!(
        !overlap.is_empty(),
        "the overlap strategy comes again after the other failed"
    );
    answer(&mut run, &format!("{overlap}{}", &DOCUMENT[120..150]));
    assert_eq!(run.merge_fail_count(), 0);
    assert_eq!(run.text(), &DOCUMENT[..150]);
}

#[test]
fn a_third_failure_ends_the_run_with_the_valid_part() {
    let mut run = cut_at(120);
    for _ in 0..3 {
        answer(&mut run, "Sorry.");
    }
    let Some(Outcome::Partial { reason, cut }) = run.outcome() else {
        panic!("{:?}", run.outcome());
    };
    assert_eq!(*reason, Reason::MergeFailures);
    assert!(cut.path.starts_with("/sections/0"), "{cut:?}");
    let part = run.last_valid_complete_part().expect("nothing is lost");
    assert!(part.contains("Rivers"));
}

#[test]
fn a_failed_run_can_be_resumed() {
    let mut run = cut_at(120);
    for _ in 0..3 {
        answer(&mut run, "Sorry.");
    }
    assert_eq!(run.next(), None);
    run.try_again();
    let overlap = run.next().expect("it continues").overlap;
    answer(&mut run, &format!("{overlap}{}", &DOCUMENT[120..]));
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
    run.try_again();
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
}

#[test]
fn an_answer_without_json_fails_and_the_prompt_is_sent_again() {
    let mut run = run();
    let (_, step) = answer(&mut run, "Let me think about that.");
    assert_eq!(failure(&step), Some(&Failure::NoJson));
    let (ask, _) = answer(&mut run, DOCUMENT);
    assert_eq!(
        (ask.iteration, ask.strategy),
        (2, None),
        "the caller's own prompt again"
    );
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
}

#[test]
fn three_answers_without_json_fail_with_the_last_answer() {
    let mut run = run();
    for text in ["", "No.", "I cannot help with that."] {
        answer(&mut run, text);
    }
    let failed = Outcome::Failed {
        reason: Reason::MergeFailures,
    };
    assert_eq!(run.outcome(), Some(&failed));
    assert_eq!(run.raw(), "I cannot help with that.");
    assert_eq!(run.last_valid_complete_part(), None);
}

#[test]
fn a_model_that_writes_only_white_space_makes_no_progress() {
    let mut run = run();
    for text in ["", "\n    \t \t", "\n"] {
        let (ask, step) = answer(&mut run, text);
        assert_eq!(
            (ask.strategy, failure(&step)),
            (None, Some(&Failure::Empty))
        );
    }
    let failed = Outcome::Failed {
        reason: Reason::NoProgress,
    };
    assert_eq!(run.outcome(), Some(&failed));
}

#[test]
fn a_failed_answer_is_recorded_and_changes_nothing() {
    let long = "é".repeat(READABLE);
    let odd = format!("x{long}");
    for (text, recorded) in [
        ("Shall I go on?", "Shall I go on?"),
        (long.as_str(), &long[..READABLE]),
        // A character is not cut.
        (odd.as_str(), &odd[..READABLE - 1]),
    ] {
        let mut run = cut_at(120);
        let (_, step) = answer(&mut run, text);
        let StepResult::Failed { raw, .. } = &step.result else {
            panic!("{step:?}");
        };
        assert_eq!(raw.as_deref(), Some(recorded));
        assert_eq!((run.text(), run.raw()), (&DOCUMENT[..120], ""));
    }
    let mut run = cut_at(120);
    let steps = ["Shall I go on?", " \n"].map(|text| answer(&mut run, text).1);
    let nothing = StepResult::Failed {
        failure: Failure::Empty,
        raw: None,
    };
    assert_eq!(steps[1].result, nothing);
}

#[test]
fn repeated_text_and_later_prompts_are_overhead() {
    let mut run = run();
    let (_, first) = answer(&mut run, &DOCUMENT[..40]);
    assert_eq!(first.overhead_tokens(100), 0);
    let (_, failed) = answer(&mut run, "Sorry.");
    assert_eq!(failed.overhead_tokens(100), 100 + failed.tokens);
    let (_, mut rest) = answer(&mut run, &DOCUMENT[20..]);
    let bytes = (DOCUMENT.len() - 20) as u64;
    rest.end.answer_bytes = Some(bytes);
    rest.tokens = bytes;
    assert_eq!(rest.overhead_tokens(100), 100 + 20);
}

#[test]
fn an_answer_that_only_repeats_is_no_progress() {
    let mut run = cut_at(120);
    for _ in 0..3 {
        let overlap = run.next().expect("it continues").overlap;
        let text = if overlap.is_empty() {
            &DOCUMENT[..120]
        } else {
            &overlap
        };
        let (_, step) = answer(&mut run, text);
        assert_eq!(failure(&step), Some(&Failure::Repeat));
    }
    assert_eq!(reason(&run), Some(Reason::NoProgress));
}

#[test]
fn a_later_answer_that_turns_into_prose_changes_nothing() {
    let mut run = run();
    answer(&mut run, r#"{"rows": [["Nile", 6650], ["Amazon", 6400], "#);
    let before = (run.text().to_owned(), run.last_valid_complete_part());
    let overlap = run.next().expect("it is cut").overlap;
    let (_, step) = answer(&mut run, &format!("{overlap}and so on, as you know."));
    assert!(
        matches!(failure(&step), Some(Failure::NoMatch { .. })),
        "{step:?}"
    );
    let after = (run.text().to_owned(), run.last_valid_complete_part());
    assert_eq!(after, before);
    assert_eq!((run.merge_fail_count(), run.outcome()), (1, None));
}

#[test]
fn brackets_in_prose_are_not_a_document() {
    for text in [
        "Sure! As described in [1], I will now write the report",
        "{\"a\": 1}\n{\"a\": 2",
        r#"{"error": "x"} no wait: {"rows": [1"#,
    ] {
        let mut run = run();
        let (_, step) = answer(&mut run, text);
        assert_eq!(failure(&step), Some(&Failure::Unclear), "{text}");
        assert_eq!((run.outcome(), run.raw()), (None, text));
        answer(&mut run, DOCUMENT);
        assert_eq!(run.outcome(), Some(&Outcome::Complete));
        assert!(!run.is_accumulation_mode(), "one answer was enough");
    }
}

#[test]
fn an_answer_is_accepted_once_and_only_when_expected() {
    let mut run = run_with(vec![Strategy::Prefill]);
    answer(&mut run, "[1");
    let (ask, _) = answer(&mut run, ", 2");
    let again = ModelOutput::new(b", 2", 1);
    let not_awaited = AnswerError::NotAwaited {
        answered: 2,
        awaited: 3,
    };
    assert_eq!(run.answered(&ask, &again), Err(not_awaited));
    assert_eq!(run.refused(&ask, "no".to_owned()), None);
    assert_eq!((run.text(), run.iterations()), ("[1, 2", 2));

    let ask = run.next().expect("it is cut");
    run.stop(Reason::Cancelled);
    assert_eq!(run.answered(&ask, &again), Err(AnswerError::Ended));
    assert_eq!(run.text(), "[1, 2");
}

// Recorded runs.

/// A run in three answers, and its steps.
fn recorded() -> (Continuation, Vec<Step>) {
    let mut run = run_with(vec![Strategy::Prefill]);
    let texts = [&DOCUMENT[..100], &DOCUMENT[100..140], &DOCUMENT[140..]];
    let steps = texts.map(|text| answer(&mut run, text).1).to_vec();
    assert_eq!(run.text(), DOCUMENT);
    (run, steps)
}

#[test]
fn a_correction_replaces_the_document_once_and_can_be_resumed() {
    let other = r#"{"title": "Lakes"}"#;
    let unchanged = Err("it is no better".to_owned());
    for (correction, text) in [(Ok(other.to_owned()), other), (unchanged, DOCUMENT)] {
        let (mut run, mut steps) = recorded();
        assert!(run.can_be_corrected());
        steps.push(run.corrected(correction, other, 4));
        let resumed = Continuation::resume(run.options().clone(), &steps).expect("its steps");
        for run in [run, resumed] {
            assert_eq!(
                (run.text(), run.outcome()),
                (text, Some(&Outcome::Complete))
            );
            assert_eq!(run.iterations(), 4);
            assert!(!run.can_be_corrected());
        }
    }
}

#[test]
fn only_a_complete_document_within_the_limits_can_be_corrected() {
    assert!(!cut_at(100).can_be_corrected());
    let limited = |options| {
        let mut run = Continuation::new(options);
        answer(&mut run, DOCUMENT);
        run.can_be_corrected()
    };
    let options = ContinuationOptions::default();
    assert!(limited(options.clone()));
    assert!(!limited(ContinuationOptions {
        max_iterations: 1,
        ..options.clone()
    }));
    assert!(!limited(ContinuationOptions {
        max_output_tokens: Some(1),
        ..options
    }));
}

#[track_caller]
fn check_damaged(steps: &[Step], error: ResumeError) {
    let resumed = Continuation::resume(ContinuationOptions::default(), steps);
    assert_eq!(resumed.map(|run| run.text().to_owned()), Err(error));
}

#[test]
fn a_run_with_a_step_missing_is_not_resumed() {
    let (_, steps) = recorded();
    let gap = |expected, found| ResumeError::Gap { expected, found };
    check_damaged(&steps[1..], gap(1, 2));
    check_damaged(&[steps[0].clone(), steps[2].clone()], gap(2, 3));
    check_damaged(&[steps[0].clone(), steps[0].clone()], gap(2, 1));
}

#[test]
fn steps_that_do_not_fit_together_are_not_resumed() {
    let (_, mut steps) = recorded();
    let without_text: Vec<Step> = steps.iter().map(Step::without_text).collect();
    check_damaged(&without_text, ResumeError::Unjoined { iteration: 1 });
    steps.remove(1);
    steps[1].iteration = 2;
    check_damaged(&steps, ResumeError::Unjoined { iteration: 2 });
    if let StepResult::Grown { offset, .. } = &mut steps[1].result {
        *offset = 100;
    }
    check_damaged(&steps, ResumeError::NotADocument);
}

#[test]
fn a_character_split_between_answers_is_joined() {
    let document = "{\"river\": \"Düna\", \"rows\": [1]}".as_bytes();
    let at = document.iter().position(|byte| *byte > 127).expect("an ü") + 1;
    let options = ContinuationOptions {
        strategies: vec![Strategy::Prefill],
        ..ContinuationOptions::default()
    };
    let mut run = Continuation::new(options.clone());
    let take = |run: &mut Continuation, text: &[u8]| {
        let ask = run.next().expect("it has not ended");
        run.answered(&ask, &ModelOutput::new(text, 1))
            .expect("it was asked")
    };
    let first = take(&mut run, &document[..at]);
    assert_eq!(run.text(), "{\"river\": \"D");
    let resumed = Continuation::resume(options, [&first]).expect("all steps are there");
    let stored = serde_json::to_string(&run).expect("a run can be written");
    let stored = serde_json::from_str(&stored).expect("and read");
    for mut run in [run, resumed, stored] {
        take(&mut run, &document[at..]);
        assert_eq!(run.text().as_bytes(), document);
        assert_eq!(run.outcome(), Some(&Outcome::Complete));
    }
}

#[test]
fn a_stored_outcome_is_checked_against_the_document() {
    let run = cut_at(120);
    let mut stored = serde_json::to_value(&run).expect("a run can be written");
    let read = |stored: &serde_json::Value| serde_json::from_value::<Continuation>(stored.clone());
    stored["outcome"] = serde_json::json!({ "outcome": "complete" });
    let restored = read(&stored).expect("it can be read");
    assert_eq!(restored.outcome(), None, "it is cut");

    stored["outcome"] = serde_json::json!({ "outcome": "failed", "reason": "deadline" });
    let stopped = read(&stored).expect("it can be read");
    assert!(matches!(
        stopped.outcome(),
        Some(Outcome::Partial {
            reason: Reason::Deadline,
            ..
        })
    ));

    stored["text"] = DOCUMENT.into();
    let complete = read(&stored).expect("it can be read");
    assert_eq!(complete.outcome(), Some(&Outcome::Complete));
    for text in ["Here: {\"a\": 1}", "{'a': 1}", "", "no"] {
        stored["text"] = text.into();
        assert!(read(&stored).is_err(), "{text:?}");
    }
}

// Accumulation.

#[test]
fn complete_json_on_the_first_iteration_does_not_accumulate() {
    let mut run = run();
    answer(&mut run, DOCUMENT);
    assert!(!run.is_accumulation_mode());
    assert_eq!(run.delivered().map(Delivered::section_count), Some(2));
}

#[test]
fn incomplete_json_on_the_first_iteration_accumulates() {
    let run = cut_at(100);
    assert!(run.is_accumulation_mode());
    assert_eq!(run.text(), &DOCUMENT[..100]);
}

#[test]
fn an_exact_continuation_is_joined_without_doubling() {
    let mut run = run_with(vec![Strategy::Prefill]);
    answer(&mut run, &DOCUMENT[..100]);
    answer(&mut run, &DOCUMENT[100..]);
    assert_eq!(
        (run.outcome(), run.text()),
        (Some(&Outcome::Complete), DOCUMENT)
    );
}

#[test]
fn a_repeated_overlap_is_removed() {
    let mut run = cut_at(100);
    answer(&mut run, &DOCUMENT[60..]);
    assert_eq!(
        (run.outcome(), run.text()),
        (Some(&Outcome::Complete), DOCUMENT)
    );
}

#[test]
fn a_full_overlap_adds_nothing() {
    let mut run = cut_at(150);
    let (_, step) = answer(&mut run, &DOCUMENT[60..140]);
    assert!(failure(&step).is_some());
    assert_eq!(run.text(), &DOCUMENT[..150]);
}

#[test]
fn several_iterations_accumulate() {
    let mut run = cut_at(80);
    let mut at = 80;
    while run.outcome().is_none() {
        let overlap = run.next().expect("it continues").overlap;
        let end = (at + 30).min(DOCUMENT.len());
        answer(&mut run, &format!("{overlap}{}", &DOCUMENT[at..end]));
        assert_eq!(run.text(), &DOCUMENT[..end]);
        at = end;
    }
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
    assert_eq!(run.delivered().map(Delivered::section_count), Some(2));
}

// Strategies.

#[test]
fn the_next_strategy_is_tried_after_a_failure_and_kept_if_it_works() {
    let mut run = run_with(vec![
        Strategy::Prefill,
        Strategy::Overlap,
        Strategy::Remainder,
    ]);
    answer(&mut run, r#"{"rows": [{"id": 1}, {"id": 2}, "#);
    let (ask, _) = answer(&mut run, "I cannot do that.");
    assert_eq!(ask.strategy, Some(Strategy::Prefill));
    let (ask, _) = answer(&mut run, "I cannot do that either.");
    assert_eq!(ask.strategy, Some(Strategy::Overlap));
    let (ask, step) = answer(&mut run, r#"{"rows": [{"id": 3}, {"id": 4"#);
    assert_eq!(ask.strategy, Some(Strategy::Remainder));
    assert_eq!(failure(&step), None, "{step:?}");
    assert_eq!(
        run.next().and_then(|ask| ask.strategy),
        Some(Strategy::Remainder)
    );
}

#[test]
fn an_ambiguous_join_is_retried_with_a_longer_overlap() {
    let text = format!("[{}", "[0, 0], ".repeat(600));
    let mut run = run();
    answer(&mut run, &text);
    let (first, step) = answer(&mut run, "[0, 0], [0, 0], [1]]");
    assert_eq!(failure(&step), Some(&Failure::Ambiguous), "{step:?}");
    let second = run.next().expect("it is asked again");
    assert_eq!(second.strategy, Some(Strategy::Overlap));
    assert!(second.overlap.len() > first.overlap.len());

    let added = format!("{}[1], [2, 3], [4", second.overlap);
    let (_, step) = answer(&mut run, &added);
    assert_eq!(failure(&step), None, "{step:?}");
    let third = run.next().expect("it is cut").overlap;
    let usual = run.base().map(|base| base.overlap_context(None).to_owned());
    assert_eq!(Some(third), usual, "the usual overlap comes back");
}

fn reject(run: &mut Continuation) -> NextCall {
    let ask = run.next().expect("it has not ended");
    let step = run.refused(&ask, "no such thing".to_owned());
    let step = step.expect("another strategy may be left");
    let refused = Failure::Refused {
        message: "no such thing".to_owned(),
    };
    assert_eq!(failure(&step), Some(&refused));
    ask
}

#[test]
fn a_rejected_strategy_is_not_tried_again() {
    let options = ContinuationOptions {
        strategies: vec![Strategy::Prefill, Strategy::Overlap, Strategy::Remainder],
        ..ContinuationOptions::default()
    };
    let mut run = Continuation::new(options.clone());
    let (_, first) = answer(&mut run, &DOCUMENT[..120]);
    let ask = run.next().expect("it is cut");
    let refused = run.refused(&ask, "no prefill".to_owned()).expect("a step");
    assert_eq!(
        (refused.strategy, refused.tokens),
        (Some(Strategy::Prefill), 0)
    );
    assert_eq!((run.iterations(), run.merge_fail_count()), (2, 1));

    let resumed = Continuation::resume(options, [&first, &refused]);
    let mut resumed = resumed.expect("all steps are there");
    assert_eq!(resumed.next(), run.next());
    resumed.try_again();
    for strategy in [Strategy::Overlap, Strategy::Remainder, Strategy::Overlap] {
        let ask = resumed.next().expect("it continues");
        assert_eq!(
            ask.strategy,
            Some(strategy),
            "a rejected strategy is remembered"
        );
        resumed.try_again();
        answer(&mut resumed, "Sorry.");
    }
}

#[test]
fn if_every_strategy_is_rejected_the_run_ends_with_a_model_error() {
    let mut run = Continuation::new(ContinuationOptions {
        max_failures: 10,
        ..ContinuationOptions::default()
    });
    answer(&mut run, &DOCUMENT[..120]);
    assert_eq!(reject(&mut run).strategy, Some(Strategy::Overlap));
    assert_eq!(reject(&mut run).strategy, Some(Strategy::Remainder));
    let reason = reason(&run);
    assert_eq!(reason, Some(Reason::ModelError));
    assert!(run.last_valid_complete_part().is_some());
    run.try_again();
    assert_eq!(
        run.next().and_then(|ask| ask.strategy),
        Some(Strategy::Overlap)
    );
}

#[test]
fn the_callers_own_prompt_has_no_alternative() {
    let mut run = run();
    let ask = run.next().expect("nothing was asked");
    assert_eq!(run.refused(&ask, "no".to_owned()), None);
    assert_eq!((run.iterations(), run.outcome()), (0, None));
}

#[test]
fn a_prefill_does_not_end_with_white_space() {
    for repeats in [true, false] {
        let mut run = measured("$.rows[*]");
        answer(&mut run, "{\"rows\": [\"two ");
        let ask = run.next().expect("it is cut");
        assert_eq!(ask.overlap, "{\"rows\": [\"two");
        let blank = if repeats { " " } else { "" };
        answer(&mut run, &format!("{blank}words\"]}}"));
        assert_eq!(run.text(), "{\"rows\": [\"two words\"]}");
    }
}

#[test]
fn a_prefill_is_the_exact_document_where_the_answer_starts_after_it() {
    for rest in [" words\"]}", "words\"]}"] {
        let mut run = measured("$.rows[*]");
        run.set_at_cut(true);
        answer(&mut run, "{\"rows\": [\"two ");
        let ask = run.next().expect("it is cut");
        assert_eq!(ask.overlap, run.text());
        answer(&mut run, rest);
        assert_eq!(run.text(), format!("{{\"rows\": [\"two {rest}"));
    }
}

/// The request with this answer limit, if any.
fn limited(max_tokens: Option<u64>) -> ChatRequest {
    let mut request = serde_json::json!({ "messages": [{ "role": "user", "content": "Write." }] });
    if let Some(limit) = max_tokens {
        request["max_tokens"] = limit.into();
    }
    ChatRequest::from_value(request).expect("a request")
}

#[test]
fn a_continuation_of_only_white_space_is_requested_again_with_a_longer_answer() {
    for strategy in [Strategy::Prefill, Strategy::Overlap, Strategy::Remainder] {
        let mut run = run_with(vec![strategy, Strategy::Overlap]);
        run.set_request(&limited(Some(16)));
        answer(&mut run, &DOCUMENT[..60]);
        let (first, step) = answer(&mut run, "\n  \t \t");
        assert_eq!(failure(&step), Some(&Failure::Empty));
        assert_eq!(run.short_answers(), 1);
        let again = run.next().expect("it has not ended");
        assert_eq!(
            (again.strategy, &again.overlap),
            (Some(strategy), &first.overlap)
        );
        let rest = format!("{}{}", again.overlap, &DOCUMENT[60..120]);
        let rest = match strategy {
            Strategy::Overlap => &rest,
            _ => &DOCUMENT[60..120],
        };
        answer(&mut run, rest);
        assert_eq!(run.text(), &DOCUMENT[..120], "{strategy:?}");
        assert_eq!(run.short_answers(), 0);
    }
}

#[test]
fn without_an_answer_limit_a_call_answered_with_white_space_is_changed() {
    for strategy in [Strategy::Prefill, Strategy::Overlap, Strategy::Remainder] {
        let mut run = run_with(vec![strategy]);
        run.set_request(&limited(None));
        answer(&mut run, &DOCUMENT[..60]);
        let (first, _) = answer(&mut run, "\n ");
        let next = run.next().expect("it has not ended");
        assert_ne!(
            (next.strategy, next.overlap),
            (first.strategy, first.overlap)
        );
    }
}

// Progress.

#[track_caller]
fn check_claims(patience: u32, claims: &[&str], ended_after: Option<usize>) {
    let mut run = Continuation::new(ContinuationOptions {
        kpi_patience: patience,
        ..ContinuationOptions::default()
    });
    answer(&mut run, "[0");
    for (index, claim) in claims.iter().enumerate() {
        let ask = run.next().expect("it continues");
        assert!(ask.wants == Wants::ProgressAndDocument);
        let (_, step) = answer(&mut run, &format!("{claim}{}, {index}", ask.overlap));
        assert_eq!(failure(&step), None, "{step:?}");
        let ended = reason(&run) == Some(Reason::KpiStalled);
        assert_eq!(ended, ended_after == Some(index + 1), "after {claim:?}");
        if ended {
            break;
        }
    }
}

#[test]
fn a_percentage_that_does_not_rise_ends_the_run() {
    let claims = [
        "PROGRESS: 10\n",
        "PROGRESS: 10\n",
        "PROGRESS: 9\n",
        "PROGRESS: 10%\n",
    ];
    check_claims(3, &claims, Some(4));
    check_claims(1, &claims, Some(2));
}

#[test]
fn a_percentage_that_falls_causes_a_warning() {
    let mut run = run();
    answer(&mut run, "[0");
    for (share, warnings) in [(40, 0), (30, 1), (30, 1), (41, 0)] {
        let overlap = run.next().expect("it continues").overlap;
        let (_, step) = answer(&mut run, &format!("PROGRESS: {share}\n{overlap}, 1"));
        assert_eq!(step.warnings().len(), warnings, "{share}: {step:?}");
    }
    assert_eq!(run.outcome(), None);
}

#[test]
fn a_longer_overlap_leaves_room_for_the_answer() {
    let text = format!("[{}", "[0, 0], ".repeat(600));
    let mut run = run();
    answer(&mut run, &text);
    run.expect_answer_chars(400);
    let usual = run.next().expect("it is cut").overlap;
    assert!(usual.len() <= 100, "{}", usual.len());
    let (_, step) = answer(&mut run, "[0, 0], [0, 0], [1]]");
    assert_eq!(failure(&step), Some(&Failure::Ambiguous), "{step:?}");
    let longer = run.next().expect("it is asked again").overlap;
    assert!(longer.len() <= 100, "{}", longer.len());
}

#[test]
fn progress_resets_the_stall_count() {
    check_claims(
        2,
        &[
            "PROGRESS: 10\n",
            "PROGRESS: 10\n",
            "PROGRESS: 12\n",
            "PROGRESS: 12\n",
            "PROGRESS: 11\n",
        ],
        Some(5),
    );
}

#[test]
fn an_answer_without_progress_line_is_not_a_stall() {
    check_claims(1, &["PROGRESS: 10\n", "", "", "", "PROGRESS: 11\n"], None);
}

#[test]
fn progress_in_prose_before_the_overlap_counts() {
    check_claims(
        1,
        &[
            "That is about 10 % so far.\n",
            "We are at 10 percent now.\n",
        ],
        Some(2),
    );
}

#[test]
fn numbers_in_the_document_are_not_progress() {
    let row = |number: usize| format!(r#"{{"name": "row {number}", "score": 7}}"#);
    let rows: Vec<_> = (0..200).map(row).collect();
    let document = format!("[{}]", rows.join(", "));
    let mut run = run();
    let mut end = 0;
    while run.outcome().is_none() {
        end = (end + 700).min(document.len());
        let (_, step) = answer(&mut run, &document[..end]);
        assert_eq!((failure(&step), step.kpi), (None, None), "{step:?}");
    }
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
    assert_eq!(run.text(), document);
}

#[test]
fn a_count_that_falls_ends_the_run() {
    let mut run = measured("$.rows[*]");
    let (_, first) = answer(&mut run, r#"{"rows": [1, 2, "#);
    let (_, mut second) = answer(&mut run, "3, ");
    second.progress = Progress::Fell;
    let resumed = Continuation::resume(run.options().clone(), [&first, &second]);
    let resumed = resumed.expect("all steps are there");
    let reason = reason(&resumed);
    assert_eq!(reason, Some(Reason::KpiStalled));
}

#[test]
fn a_hundred_percent_is_not_a_stall_while_the_text_grows() {
    check_claims(
        1,
        &["PROGRESS: 100\n", "PROGRESS: 100\n", "PROGRESS: 100\n"],
        None,
    );
}

fn measured(path: &str) -> Continuation {
    let kpi = MeasuredKpi::new("rows", "rows written", path, 10).expect("a path");
    Continuation::new(ContinuationOptions {
        kpi: Kpi::Measured(vec![kpi]),
        kpi_patience: 2,
        strategies: vec![Strategy::Prefill],
        ..ContinuationOptions::default()
    })
}

#[test]
fn counts_kpis_in_the_document() {
    let mut run = measured("$.rows[*]");
    answer(&mut run, r#"{"rows": [1, 2, "#);
    assert_eq!(run.kpis()[0].current_value, 2);
    let (ask, step) = answer(&mut run, "3, 4, ");
    assert_eq!(ask.wants, Wants::Document);
    assert_eq!(step.progress, Progress::Rose);
    assert_eq!(run.kpis()[0].current_value, 4);
    answer(&mut run, "5");
    assert_eq!(run.outcome(), None);
    answer(&mut run, "6");
    let reason = reason(&run);
    assert_eq!(
        reason,
        Some(Reason::KpiStalled),
        "56 is one row, and incomplete"
    );
}

/// A run that asks the model for KPIs next.
fn asked_to_measure() -> (Continuation, Step) {
    let mut run = Continuation::new(ContinuationOptions {
        kpi: Kpi::Measured(Vec::new()),
        kpi_patience: 2,
        strategies: vec![Strategy::Prefill],
        ..ContinuationOptions::default()
    });
    let (_, first) = answer(&mut run, r#"{"title": "T", "rows": [1, 2, "#);
    (run, first)
}

const ROWS: &str = r#"{"kpis": [{"id": "rows", "json_path": "$.rows[*]", "target_value": 9}, {"id": "title", "json_path": "$.title", "target_value": 5}]}"#;

#[test]
fn the_model_is_asked_once_which_kpis_to_count() {
    let (mut run, _) = asked_to_measure();
    let (ask, step) = answer(&mut run, ROWS);
    assert_eq!(
        (ask.wants, ask.strategy, ask.iteration),
        (Wants::Kpis, None, 2)
    );
    assert_eq!(failure(&step), None);
    let ids: Vec<_> = run.kpis().iter().map(|kpi| kpi.id.clone()).collect();
    assert_eq!(ids, ["rows"], "the title is already complete");
    assert_eq!(run.kpis()[0].current_value, 2);
    assert_eq!(run.text(), r#"{"title": "T", "rows": [1, 2, "#);
    assert_eq!((run.output_tokens(), run.iterations()), (20, 2));

    let (ask, step) = answer(&mut run, "3, ");
    assert_eq!(
        (ask.wants, ask.strategy),
        (Wants::Document, Some(Strategy::Prefill))
    );
    assert_eq!(step.progress, Progress::Rose);
    answer(&mut run, "4");
    answer(&mut run, "5");
    let reason = reason(&run);
    assert_eq!(reason, Some(Reason::KpiStalled));
}

#[test]
fn a_resumed_run_does_not_ask_for_kpis_again() {
    for reply in [ROWS, "I cannot say."] {
        let (mut run, first) = asked_to_measure();
        let mut steps = vec![first, answer(&mut run, reply).1];
        steps.push(answer(&mut run, "3, ").1);
        let resumed = Continuation::resume(run.options().clone(), &steps);
        let resumed = resumed.expect("all steps are there");
        assert_eq!((resumed.next(), resumed.kpis()), (run.next(), run.kpis()));
        assert_eq!(resumed.output_tokens(), 30);
        let stored = serde_json::to_string(&run).expect("a run can be written");
        let read: Continuation = serde_json::from_str(&stored).expect("and read");
        assert_eq!((read.next(), read.kpis()), (run.next(), run.kpis()));
    }
}

#[test]
fn an_answer_without_usable_kpis_is_not_a_failure_of_the_run() {
    for reply in [
        "",
        "I cannot say.",
        r#"[{"json_path": "$.title", "target_value": 3}]"#,
        r#"[{"json_path": "$.rows", "target_value": 2}]"#,
    ] {
        let (mut run, _) = asked_to_measure();
        let (_, step) = answer(&mut run, reply);
        assert!(
            matches!(failure(&step), Some(Failure::NoKpis { .. })),
            "{reply}: {step:?}"
        );
        assert_eq!((run.merge_fail_count(), run.outcome()), (0, None));
        for text in ["3", "3", "3", "3"] {
            let (ask, step) = answer(&mut run, text);
            assert_eq!(ask.strategy, Some(Strategy::Prefill));
            assert_eq!(step.progress, Progress::Unknown);
        }
        assert_eq!(run.outcome(), None);
    }
    let (mut run, _) = asked_to_measure();
    let ask = run.next().expect("it is cut");
    let step = run.refused(&ask, "too busy".to_owned()).expect("a step");
    assert!(matches!(failure(&step), Some(Failure::NoKpis { .. })));
    assert_eq!(run.next().map(|ask| ask.wants), Some(Wants::Document));
}

#[test]
fn a_first_answer_that_is_complete_is_not_measured() {
    let mut run = Continuation::new(ContinuationOptions {
        kpi: Kpi::Measured(Vec::new()),
        ..ContinuationOptions::default()
    });
    answer(&mut run, DOCUMENT);
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
}

// Limits.

#[test]
fn a_limit_of_zero_ends_the_run_at_once() {
    for (options, reason) in [
        (
            ContinuationOptions {
                max_output_tokens: Some(0),
                ..ContinuationOptions::default()
            },
            Reason::TokenLimit,
        ),
        (
            ContinuationOptions {
                max_iterations: 0,
                ..ContinuationOptions::default()
            },
            Reason::IterationLimit,
        ),
    ] {
        let run = Continuation::new(options);
        assert_eq!(run.next(), None);
        assert_eq!(run.outcome(), Some(&Outcome::Failed { reason }));
    }
}

#[test]
fn ends_at_the_limit_of_iterations() {
    let mut run = Continuation::new(ContinuationOptions {
        max_iterations: 3,
        strategies: vec![Strategy::Prefill],
        ..ContinuationOptions::default()
    });
    for text in ["[1", ", 2", ", 3"] {
        answer(&mut run, text);
    }
    let reason = reason(&run);
    assert_eq!(reason, Some(Reason::IterationLimit));
    assert_eq!(run.last_valid_complete_part().as_deref(), Some("[1, 2]"));
}

#[test]
fn ends_at_the_limit_of_tokens() {
    let mut run = Continuation::new(ContinuationOptions {
        max_output_tokens: Some(20),
        strategies: vec![Strategy::Prefill],
        ..ContinuationOptions::default()
    });
    answer(&mut run, "[1");
    assert_eq!(run.outcome(), None);
    answer(&mut run, ", 2");
    assert_eq!(reason(&run), Some(Reason::TokenLimit));
}

#[test]
fn a_last_answer_that_completes_the_document_takes_precedence_over_limits() {
    let mut run = Continuation::new(ContinuationOptions {
        max_iterations: 1,
        max_output_tokens: Some(1),
        ..ContinuationOptions::default()
    });
    answer(&mut run, DOCUMENT);
    assert_eq!(run.outcome(), Some(&Outcome::Complete));
}

#[test]
fn a_stopped_run_keeps_its_document() {
    let mut run = cut_at(120);
    run.stop(Reason::Deadline);
    assert_eq!(reason(&run), Some(Reason::Deadline));
    assert!(run.last_valid_complete_part().is_some());
    run.stop(Reason::Cancelled);
    assert_eq!(reason(&run), Some(Reason::Deadline));

    let mut nothing = self::run();
    nothing.stop(Reason::ModelError);
    assert_eq!(nothing.outcome().map(Outcome::name), Some("failed"));
}

#[test]
fn the_cost_of_a_step_does_not_depend_on_the_length_of_the_document() {
    const FRAGMENTS: usize = 1000;
    let row = r#"{"id": 12345, "name": "Ada", "notes": ["first", "second", "ünïcödé"]}, "#;
    let rows = 20_000_000 / FRAGMENTS / row.len();
    let mut run = Continuation::new(ContinuationOptions {
        max_iterations: u32::MAX,
        kpi: Kpi::Off,
        ..ContinuationOptions::default()
    });
    let mut text = "{\"rows\": [".to_owned();
    for fragment in 0..FRAGMENTS {
        let ask = run.next().expect("it continues");

        let new = row
            .repeat(rows)
            .replace("12345", &(10_000 + fragment).to_string());
        text = if fragment == 0 {
            text + &new
        } else {
            ask.overlap.clone() + &new
        };
        let step = run.answered(&ask, &ModelOutput::new(text.as_bytes(), 1));
        let step = step.expect("it was asked");
        let StepResult::Grown { scanned, .. } = step.result else {
            panic!("{:?}", step.result);
        };
        assert!(
            scanned <= 4 * text.len() + 20_000,
            "step {fragment} scanned {scanned} bytes of {}",
            text.len()
        );
    }
    assert!(run.text().len() > 19_000_000);
}

/// A model's answer, good or bad.
#[derive(Clone, Debug)]
enum SimulatedAnswer {
    /// The expected answer with this many new bytes.
    Good(usize),
    /// The document from its start, with this many bytes beyond the cut.
    Restart(usize),
    Repeat,
    Empty,
    Apology,
    Garbage(String),
    Foreign,
    /// No answer: the upstream rejects the call.
    Refused,
}

fn replies() -> impl proptest::strategy::Strategy<Value = SimulatedAnswer> {
    prop_oneof![
        4 => (1..60_usize).prop_map(SimulatedAnswer::Good),
        1 => (1..60_usize).prop_map(SimulatedAnswer::Restart),
        1 => Just(SimulatedAnswer::Repeat),
        1 => Just(SimulatedAnswer::Empty),
        1 => Just(SimulatedAnswer::Apology),
        // A single `n` could start a valid `null`, and an `e` could continue a number.
        1 => "[a-dg-mo-su-z<>|;=+][a-z<>|;=+ ]{0,40}".prop_map(SimulatedAnswer::Garbage),
        1 => Just(SimulatedAnswer::Foreign),
        1 => Just(SimulatedAnswer::Refused),
    ]
}

impl SimulatedAnswer {
    fn text(&self, ask: &NextCall, at: usize) -> Vec<u8> {
        let document = DOCUMENT.as_bytes();
        let upto = |more: usize| (at + more).min(document.len());
        match self {
            Self::Good(more) => match ask.strategy {
                None => document[..upto(*more + 2)].to_vec(),
                // The prefill has no white space at its end.
                Some(Strategy::Prefill) => {
                    document[DOCUMENT[..at].trim_end().len()..upto(*more)].to_vec()
                }
                Some(Strategy::Overlap) => {
                    [ask.overlap.as_bytes(), &document[at..upto(*more)]].concat()
                }
                Some(Strategy::Remainder) => document[..upto(*more + 40)].to_vec(),
            },
            Self::Restart(more) => document[..upto(*more + 40)].to_vec(),
            Self::Repeat => document[..at].to_vec(),
            Self::Empty | Self::Refused => Vec::new(),
            Self::Apology => b"I'm sorry, I cannot continue.".to_vec(),
            Self::Garbage(text) => text.clone().into_bytes(),
            Self::Foreign => br#"{"unrelated": {"entirely": ["different"]}}"#.to_vec(),
        }
    }
}

const KPIS: &str = r#"{"kpis": [{"json_path": "$.sections[*]", "target_value": 2}, {"json_path": "$.sections[*].elements[*].rows[*]", "target_value": 3}]}"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// With any answers, a run ends within its limits and never loses or changes accepted text.
    #[test]
    fn any_answers_end_in_a_correct_outcome(
        replies in prop::collection::vec(replies(), 60),
        prefill: bool,
        is_measured: bool,
        max_iterations in 1..40_u32,
        max_failures in 1..5_u32,
    ) {
        let mut strategies = vec![Strategy::Overlap, Strategy::Remainder];
        if prefill {
            strategies.insert(0, Strategy::Prefill);
        }
        let kpi = if is_measured { Kpi::Measured(Vec::new()) } else { Kpi::Ask };
        let options = ContinuationOptions { strategies, max_failures, max_iterations, kpi, ..ContinuationOptions::default() };
        let mut run = Continuation::new(options.clone());
        let mut steps = Vec::new();
        for reply in &replies {
            let Some(ask) = run.next() else { break };
            let before = run.text().to_owned();
                        // Any first answer is accepted, and any answer to a prefill, unless it
                        // repeats enough of the document to be recognised. Such wrong answers are
                        // left out.
                        let is_undetectable = match ask.strategy {
                None => matches!(reply, SimulatedAnswer::Foreign | SimulatedAnswer::Garbage(_)),
                Some(Strategy::Prefill) => match reply {
                    SimulatedAnswer::Good(_) => false,
                    SimulatedAnswer::Restart(_) => before.len() < 40,
                    _ => true,
                },
                Some(_) => false,
            };
            let reply = if is_undetectable { &SimulatedAnswer::Empty } else { reply };
            let text = match (ask.wants, reply) {
                (Wants::Kpis, SimulatedAnswer::Good(_)) => KPIS.as_bytes().to_vec(),
                _ => reply.text(&ask, before.len()),
            };
            let refused = match reply {
                SimulatedAnswer::Refused => run.refused(&ask, "no".to_owned()),
                _ => None,
            };
            let answer = ModelOutput::new(&text, 5);
            let step = refused.unwrap_or_else(|| run.answered(&ask, &answer).expect("it was asked"));
            prop_assert!(run.answered(&ask, &answer).is_err(), "an answer counts once");
            if ask.wants == Wants::Kpis {
                prop_assert_eq!(run.text(), before.as_str());
            }
            prop_assert!(DOCUMENT.starts_with(run.text()), "{reply:?} made {}", run.text());
            prop_assert!(run.text().len() >= before.trim_end_matches('\\').len());
            if let StepResult::Failed { .. } = step.result {
                prop_assert_eq!(run.text(), before);
            }
            steps.push(step);

            let resumed = Continuation::resume(options.clone(), &steps).expect("all steps are there");
            prop_assert_eq!(resumed.text(), run.text());
            prop_assert_eq!(resumed.next(), run.next());
            prop_assert_eq!(resumed.outcome(), run.outcome());
            prop_assert_eq!(resumed.delivered(), run.delivered());
            prop_assert_eq!(resumed.kpis(), run.kpis());
            let stored = serde_json::to_string(&run).expect("a run can be written");
            let read: Continuation = serde_json::from_str(&stored).expect("and read");
            prop_assert_eq!((read.text(), read.next()), (run.text(), run.next()));
            prop_assert_eq!(read.outcome(), run.outcome());
            prop_assert_eq!(read.kpis(), run.kpis());
        }
        prop_assert!(run.iterations() <= max_iterations);
        prop_assert!(run.merge_fail_count() <= max_failures);
        let outcome = run.outcome().expect("sixty answers are more than any limit");
        prop_assert_eq!(matches!(outcome, Outcome::Complete), run.text() == DOCUMENT);
        prop_assert_eq!(matches!(outcome, Outcome::Failed { .. }), run.text().is_empty());
        if let Some(part) = run.last_valid_complete_part() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&part).is_ok());
        }
    }
}

// Prompt markers.

fn marked(strategies: Vec<Strategy>) -> Continuation {
    let mut run = Continuation::new(ContinuationOptions {
        strategies,
        kpi: Kpi::Off,
        ..ContinuationOptions::default()
    });
    run.marker = Marker::from_seed(b"a request");
    run
}

#[test]
fn a_marker_at_the_head_of_an_answer_is_removed() {
    let mut run = marked(vec![Strategy::Overlap]);
    answer(&mut run, &DOCUMENT[..120]);
    let ask = run.next().expect("it is cut");
    let (open, rest) = (ask.marker.open("overlap"), &DOCUMENT[120..]);
    answer(&mut run, &format!("{open}\n{}{rest}", ask.overlap));
    assert_eq!(
        (run.text(), run.outcome()),
        (DOCUMENT, Some(&Outcome::Complete))
    );
}

// Retries.

#[test]
fn a_failed_prefill_is_not_sent_again_unchanged() {
    let mut run = marked(vec![Strategy::Prefill]);
    answer(&mut run, &DOCUMENT[..120]);
    let asked: Vec<_> = (0..3)
        .map(|_| answer(&mut run, "").0)
        .map(|ask| (ask.strategy, ask.overlap))
        .collect();
    assert!(
        asked[0] != asked[1] && asked[1] != asked[2] && asked[0] != asked[2],
        "{asked:?}"
    );
}

// Loops.

const RIVER: &str =
    r#" {"name": "Nile", "sentence": "It is the longest of them all.", "rank": 1},"#;

/// Answers a prefill run with the pieces of a text until it ends.
fn run_in_pieces(text: &str, piece: usize, is_streamed: bool) -> (Continuation, Vec<Step>) {
    let mut run = marked(vec![Strategy::Prefill]);
    run.set_streamed(is_streamed);
    let mut steps = Vec::new();
    for piece in text.as_bytes().chunks(piece) {
        if run.outcome().is_some() {
            break;
        }
        let piece = str::from_utf8(piece).expect("ASCII");
        steps.push(answer(&mut run, piece).1);
    }
    (run, steps)
}

#[test]
fn a_loop_ends_the_run_and_is_removed() {
    let head = r#"{"rivers": [ {"name": "Rhine"},"#;
    let text = format!("{head}{}", RIVER.repeat(60));
    for piece in [50, 200, 333] {
        let (run, steps) = run_in_pieces(&text, piece, false);
        let reason = reason(&run);
        assert_eq!(reason, Some(Reason::Repeating), "{piece}");
        assert_eq!(run.text(), format!("{head}{}", RIVER.trim_end_matches(',')));
        let resumed = Continuation::resume(run.options().clone(), &steps).expect("its steps");
        assert_eq!(
            (resumed.text(), resumed.outcome()),
            (run.text(), run.outcome())
        );
    }
}

#[test]
fn equal_items_that_a_schema_requires_are_not_a_loop() {
    let schema = serde_json::json!({ "properties": { "rows": { "minItems": 60 } } });
    let format = serde_json::json!({ "type": "json_schema", "json_schema": { "schema": schema } });
    let message = serde_json::json!({ "role": "user", "content": "List the rivers." });
    let request = serde_json::json!({ "messages": [message], "response_format": format });
    let request = ChatRequest::from_value(request).expect("a request");
    let text = format!("[{}", RIVER.repeat(59));
    let mut run = marked(vec![Strategy::Prefill]);
    run.set_request(&request);
    for piece in text.as_bytes().chunks(200) {
        answer(&mut run, str::from_utf8(piece).expect("ASCII"));
    }
    assert_eq!(run.outcome(), None);
    assert_eq!(run.text(), text);
}

#[test]
fn a_streamed_loop_is_not_removed() {
    let text = format!("[{}", RIVER.repeat(60));
    let (run, steps) = run_in_pieces(&text, 200, true);
    let reason = reason(&run);
    assert_eq!(reason, Some(Reason::Repeating));
    assert_eq!(run.text(), &text[..200 * steps.len()]);
}

#[test]
fn tables_with_equal_rows_are_not_a_loop() {
    let row = |id| format!(r#"{{"id": {id}, "name": "same", "value": 0}},"#);
    let counted: String = (0..90).map(row).collect();
    let equal = "0, 0, 0, 0, ".repeat(200);
    let few = RIVER.repeat(23);
    for text in [counted, equal, few] {
        let (run, _) = run_in_pieces(&format!("[{text}"), 100, false);
        let reason = reason(&run);
        assert_ne!(reason, Some(Reason::Repeating), "{}", run.text());
    }
}

proptest! {
    #[test]
    fn an_answer_with_a_marker_inside_never_yields_a_document_with_it(
        cut in 30..DOCUMENT.len() - 1,
        at in 0_usize..300,
        name in prop::sample::select(crate::marker::BLOCK_NAMES.to_vec()),
        closes in any::<bool>(),
        strategy in prop::sample::select(vec![Strategy::Prefill, Strategy::Overlap, Strategy::Remainder]),
    ) {
        let mut run = marked(vec![strategy]);
        answer(&mut run, &DOCUMENT[..cut]);
        let before = run.text().to_owned();
        let ask = run.next().expect("it is cut");
        let leak = if closes { ask.marker.close(name) } else { ask.marker.open(name) };
        let repeated = if strategy == Strategy::Overlap { ask.overlap.as_str() } else { "" };
        let mut text = format!("{repeated}{}", &DOCUMENT[cut..]);
        let at = at.min(text.len());
        // White space before a marker belongs to the head, where markers are stripped.
        let is_head = text[..at].trim_ascii().is_empty();
        text.insert_str(at, &leak);
        let (_, step) = answer(&mut run, &text);
        prop_assert!(!run.text().contains(&leak));
        if !is_head {
            prop_assert_eq!(failure(&step), Some(&Failure::MarkerInAnswer));
            prop_assert_eq!(run.text(), before);
        }
    }

    #[test]
    fn a_call_after_a_failure_is_never_the_call_that_failed(
        cut in 1..DOCUMENT.len() - 1,
        strategies in prop::collection::vec(
            prop::sample::select(vec![Strategy::Prefill, Strategy::Overlap, Strategy::Remainder]), 0..4),
        answer_chars in prop::option::of(40_usize..4000),
        answers in prop::collection::vec(prop::sample::select(vec!["", "Sorry.", "{\"a\": 1}"]), 1..12),
    ) {
        let mut run = Continuation::new(ContinuationOptions {
            strategies,
            answer_chars,
            max_failures: 20,
            kpi: Kpi::Off,
            ..ContinuationOptions::default()
        });
        answer(&mut run, &DOCUMENT[..cut]);
        let mut failed: Option<(Option<Strategy>, String)> = None;
        for text in answers {
            if run.outcome().is_some() {
                break;
            }
            let (ask, step) = answer(&mut run, text);
            let asked = (ask.strategy, ask.overlap);
            prop_assert_ne!(Some(&asked), failed.as_ref());
            failed = failure(&step).map(|_| asked);
        }
    }
}
