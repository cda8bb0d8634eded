//! Conversations of one letter a message, and the laws of trimming.

use std::cell::Cell;
use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Note {
    role: Role,
    tokens: u64,
    calls: Vec<String>,
    answers: Vec<String>,
}

impl Message for Note {
    fn role(&self) -> Role {
        self.role
    }

    fn calls(&self) -> Vec<&str> {
        self.calls.iter().map(String::as_str).collect()
    }

    fn answers(&self) -> Vec<&str> {
        self.answers.iter().map(String::as_str).collect()
    }
}

/// Ten tokens for each message; a capital letter calls a tool, its lower case is the result.
///
/// `s` is a system prompt, `u` a question, `a` an answer, `t` a result that names no call.
fn conversation(letters: &str) -> Vec<Note> {
    let note = |letter: char| {
        let id = vec![letter.to_ascii_lowercase().to_string()];
        let (role, calls, answers) = match letter {
            's' => (Role::System, vec![], vec![]),
            'u' => (Role::User, vec![], vec![]),
            'a' => (Role::Assistant, vec![], vec![]),
            't' => (Role::Tool, vec![], vec![]),
            letter if letter.is_ascii_uppercase() => (Role::Assistant, id, vec![]),
            _ => (Role::Tool, vec![], id),
        };
        Note {
            role,
            tokens: 10,
            calls,
            answers,
        }
    };
    letters.chars().map(note).collect()
}

/// Adds messages up, with some tokens more or less for each that is sent with others.
#[derive(Default)]
struct Counter {
    joint: i64,
    counted: Cell<usize>,
}

impl CountMessages<Note> for Counter {
    fn message(&self, note: &Note, _limit: u64) -> u64 {
        self.counted.set(self.counted.get() + 1);
        note.tokens
    }

    fn conversation(&self, notes: &[&Note]) -> u64 {
        let sum: u64 = notes.iter().map(|note| note.tokens).sum();
        let joints = i64::try_from(notes.len()).expect("few notes") * self.joint;
        sum.saturating_add_signed(joints)
    }
}

#[track_caller]
fn check(letters: &str, limit: u64, expected: &str) {
    let messages = conversation(letters);
    let trimmed = trim(&messages, limit, &Counter::default()).expect("it fits");
    let places = |places: &[usize]| -> String {
        let letters: Vec<char> = letters.chars().collect();
        places.iter().map(|&place| letters[place]).collect()
    };
    assert_eq!(places(&trimmed.kept), expected, "{letters:?} in {limit}");
    assert_eq!(trimmed.kept.len() + trimmed.dropped.len(), messages.len());
}

#[track_caller]
fn check_refused(letters: &str, limit: u64) {
    let trimmed = trim(&conversation(letters), limit, &Counter::default());
    assert!(trimmed.is_err(), "{letters:?} in {limit}: {trimmed:?}");
}

#[test]
fn keeps_everything_that_fits() {
    check("suauau", 60, "suauau");
    check("", 0, "");
}

#[test]
fn drops_complete_turns_oldest_first() {
    check("suauau", 59, "suau");
    check("suauau", 40, "suau");
    check("suauau", 39, "su");
    check("suaaaau", 60, "su");
}

#[test]
fn the_system_prompt_and_the_last_question_stay() {
    check("suauau", 20, "su");
    check("uasuau", 20, "su");
}

#[test]
fn a_tool_call_is_never_separated_from_its_result() {
    check("suXxauau", 79, "suau");
    check("suXYxyauau", 99, "suau");
    check("suXttauau", 89, "suau");
}

#[test]
fn a_pending_tool_result_is_never_dropped() {
    check("suauXx", 40, "suXx");
    check_refused("suauXx", 39);
    // Several calls at once, and results that do not say of which call.
    check("suauXYxy", 60, "suXYxy");
    check_refused("suauXYxy", 59);
    check("suauXtt", 50, "suXtt");
    check_refused("suauXtt", 49);
    // Several rounds.
    check("suauXxYyZz", 80, "suXxYyZz");
    check_refused("suauXxYyZz", 79);
}

#[test]
fn every_message_after_the_last_question_stays() {
    // The beginning of the answer.
    check("uaua", 20, "ua");
    check_refused("uaua", 19);
    check("uauXxa", 40, "uXxa");
    check_refused("uauXxa", 39);
    // A system message between a call and its result.
    check("uauXsx", 40, "uXsx");
    check_refused("uauXsx", 39);
    // The result of a call that nobody made.
    check("uaux", 20, "ux");
    check_refused("uaux", 19);
}

#[test]
fn without_a_question_everything_stays() {
    check("sXxYya", 60, "sXxYya");
    check_refused("sXxYya", 59);
    check_refused("aa", 19);
}

#[test]
fn a_late_result_keeps_its_turn() {
    check("suauXuxa", 60, "suXuxa");
    check_refused("suauXuxa", 59);
}

#[test]
fn tool_results_in_user_messages_are_not_questions() {
    let mut messages = conversation("suauXx");
    messages[5].role = Role::User;
    let trimmed = trim(&messages, 40, &Counter::default()).expect("it fits");
    assert_eq!(trimmed.kept, [0, 3, 4, 5]);
    trim(&messages, 39, &Counter::default()).expect_err("the result must stay");
}

#[test]
fn refuses_if_required_messages_are_too_large() {
    let messages = conversation("suau");
    let error = trim(&messages, 15, &Counter::default()).expect_err("it does not fit");
    assert_eq!(
        error.to_string(),
        "the system prompt (10 tokens) and the open turn (10 tokens) are 5 tokens more than the \
         limit of 15"
    );
}

#[test]
fn counts_only_kept_messages_and_the_first_dropped_one() {
    let messages = conversation(&"ua".repeat(1000));
    let counter = Counter::default();
    let trimmed = trim(&messages, 100, &counter).expect("it fits");
    assert_eq!(trimmed.kept.len(), 10);
    assert!(
        counter.counted.get() <= 12,
        "counted {}",
        counter.counted.get()
    );
}

#[track_caller]
fn check_summary(lines: &[&str], limit: u64, expected: Option<&str>) {
    let count = |text: &str| text.chars().count() as u64;
    let summary = summarise(lines, limit, &count);
    let text = summary.as_ref().map(|summary| summary.text.as_str());
    assert_eq!(text, expected, "{lines:?} in {limit}");
}

#[test]
fn summarises_dropped_messages_in_order() {
    check_summary(&[], 100, None);
    check_summary(
        &["user: a", "assistant: b\nand more"],
        100,
        Some("[Earlier conversation (2 messages)]\nuser: a\nassistant: b"),
    );
    check_summary(
        &["user: a rather long question", "tool: b"],
        54,
        Some("[Earlier conversation (2 messages, 1 omitted)]\ntool: b"),
    );
    check_summary(
        &["user: a"],
        47,
        Some("[Earlier conversation (1 message)]\nuser: a"),
    );
    check_summary(&["user: a"], 20, None);
}

/// Conversations with system prompts anywhere, several calls at once, and results out of order,
/// some of which are sent as the user.
fn conversations() -> impl Strategy<Value = Vec<Note>> {
    let letters = prop::sample::select("suuaatXYZxyz".chars().collect::<Vec<_>>());
    prop::collection::vec((letters, 0..30_u64), 0..40).prop_map(|notes| {
        let letters: String = notes.iter().map(|(letter, _)| *letter).collect();
        let mut messages = conversation(&letters);
        for (message, (_, tokens)) in messages.iter_mut().zip(notes) {
            message.tokens = tokens;
            if !message.answers.is_empty() && tokens % 2 == 0 {
                message.role = Role::User;
            }
        }
        messages
    })
}

/// The pairs of the places of a call and of its result.
fn pairs(messages: &[Note]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (result, message) in messages.iter().enumerate() {
        for answer in &message.answers {
            let caller = messages[..result]
                .iter()
                .rposition(|caller| caller.calls.contains(answer));
            pairs.extend(caller.map(|caller| (caller, result)));
        }
    }
    pairs
}

/// Where the open turn begins: at the last question, or at an earlier one if a tool call before it
/// has its result behind it.
fn open_start(messages: &[Note]) -> usize {
    let question_in = |messages: &[Note]| {
        let is_question = |note: &Note| note.role == Role::User && note.answers.is_empty();
        messages.iter().rposition(is_question).unwrap_or(0)
    };
    let pairs = pairs(messages);
    let mut start = question_in(messages);
    let crosses = |start| move |(call, result): &&(usize, usize)| *call < start && start <= *result;
    while let Some(&(call, _)) = pairs.iter().find(crosses(start)) {
        start = question_in(&messages[..call]);
    }
    start
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_trimmed_conversation_fits_and_has_the_open_turn(
        messages in conversations(), limit in 0..400_u64, joint in -3..4_i64,
    ) {
        let counter = Counter { joint, ..Counter::default() };
        let open = open_start(&messages);
        let always = |place: usize| place >= open || messages[place].role == Role::System;
        let Ok(trimmed) = trim(&messages, limit, &counter) else {
            let required: Vec<_> = (0..messages.len()).filter(|&place| always(place)).collect();
            prop_assert!(counter.conversation(&select(&messages, &required)) > limit);
            return Ok(());
        };
        let kept: HashSet<usize> = trimmed.kept.iter().copied().collect();
        prop_assert!(trimmed.tokens <= limit);
        prop_assert_eq!(trimmed.tokens, counter.conversation(&select(&messages, &trimmed.kept)));
        prop_assert!(trimmed.kept.is_sorted() && trimmed.dropped.is_sorted());
        prop_assert!((0..messages.len()).all(|place| !always(place) || kept.contains(&place)));
        for (call, result) in pairs(&messages) {
            prop_assert_eq!(kept.contains(&call), kept.contains(&result));
        }
        // Of what may go, everything after the first that stays stays.
        let free = |places: &[usize]| places.iter().copied().filter(|&place| !always(place)).collect::<Vec<_>>();
        let oldest = free(&trimmed.kept).first().copied();
        let newest = trimmed.dropped.last().copied();
        prop_assert!(oldest.is_none() || newest < oldest);
    }

    #[test]
    fn trimming_is_idempotent_and_monotonic(
        messages in conversations(), limit in 0..400_u64, more in 0..100_u64,
    ) {
        let counter = Counter::default();
        let Ok(trimmed) = trim(&messages, limit, &counter) else {
            return Ok(());
        };
        let rest: Vec<Note> = trimmed.kept.iter().map(|&place| messages[place].clone()).collect();
        let again = trim(&rest, limit, &counter).expect("it fitted before");
        prop_assert_eq!(again.dropped, Vec::<usize>::new());

        let larger = trim(&messages, limit + more, &counter).expect("it fitted before");
        prop_assert!(trimmed.kept.iter().all(|place| larger.kept.contains(place)));
    }

    #[test]
    fn a_summary_is_within_its_limit(
        lines in proptest::collection::vec(any::<String>(), 0..20), limit in 0..200_u64,
    ) {
        let count = |text: &str| text.chars().count() as u64;
        if let Some(summary) = summarise(&lines, limit, &count) {
            prop_assert!(summary.tokens <= limit);
            prop_assert_eq!(summary.tokens, count(&summary.text));
            prop_assert_eq!(summary.text.matches('\n').count(), lines.len() - summary.omitted);
        }
    }
}
