use proptest::prelude::*;

use super::*;
use overlock_runs::CallBudget;

const BUDGET: CallBudget = CallBudget {
    adjusted_max_tokens: 1,
    input_token_count: 1,
    message_count: 1,
    memory_count: 0,
    window: 9,
    margin: 1,
    parts: Vec::new(),
    basis: None,
    limit: None,
};

fn run(number: u64) -> RunId {
    RunId::new(1, number)
}

fn event(number: u64, bytes: usize) -> Event {
    let event = Event::asking(&run(number), 1, None, &BUDGET);
    Event {
        data: "x".repeat(bytes),
        ..event
    }
}

fn events() -> Arc<Events> {
    Arc::new(Events::new(7, false))
}

fn listen(events: &Arc<Events>) -> Reader {
    let (hang_up, _) = AbortHandle::new_pair();
    events.listen(99, hang_up).expect("there is room")
}

/// All that a reader hears before it would have to wait: the bytes of events, or nothing where it
/// lagged.
fn heard(reader: &mut Reader) -> Vec<Option<usize>> {
    let mut heard = Vec::new();
    while let Some(Heard::Event(..) | Heard::Lagged) = reader.look(None).inspect(|it| {
        heard.push(match it {
            Heard::Event(_, event) => Some(event.data.len()),
            Heard::Lagged | Heard::Closed => None,
        });
    }) {}
    heard
}

#[test]
fn nothing_is_made_while_nobody_listens() {
    let events = events();
    events.tell(|| panic!("nobody listens"));
    drop(events.tell_later(|| panic!("nobody listens")));
    let mut reader = listen(&events);
    assert_eq!(heard(&mut reader), []);
    events.tell(|| event(1, 5));
    assert_eq!(heard(&mut reader), [Some(5)]);
}

#[test]
fn an_event_that_waits_is_told_in_the_end_whatever_happens() {
    let events = events();
    let mut reader = listen(&events);
    let later = events.tell_later(|| event(1, 5));
    assert_eq!(heard(&mut reader), []);
    drop(later);
    assert_eq!(heard(&mut reader), [Some(5)]);
}

#[test]
fn who_comes_back_in_time_has_missed_nothing() {
    let events = events();
    let mut reader = listen(&events);
    events.tell(|| event(1, 1));
    let Some(Heard::Event(number, _)) = reader.look(None) else {
        panic!("it was told");
    };
    drop(reader);
    events.tell(|| event(1, 2));
    let mut reader = listen(&events);
    reader.go_on_after(number);
    events.tell(|| event(1, 3));
    assert_eq!(heard(&mut reader), [Some(2), Some(3)]);
    // A number that was never given is none to go on after.
    reader.go_on_after(u64::MAX);
    assert_eq!(heard(&mut reader), []);
}

#[test]
fn who_comes_back_too_late_is_told_so() {
    let events = events();
    let last = listen(&events).at - 1;
    let long_ago = Instant::now().checked_sub(2 * COMING_BACK);
    events.log().last_left = long_ago;
    events.tell(|| event(1, 1));
    events.tell(|| panic!("nobody listens any more"));
    let mut reader = listen(&events);
    reader.go_on_after(last);
    assert_eq!(heard(&mut reader), [None]);
    events.tell(|| event(1, 2));
    assert_eq!(heard(&mut reader), [Some(2)]);
}

#[test]
fn one_run_is_heard_without_the_others() {
    let events = events();
    let mut reader = listen(&events);
    for number in 0..9 {
        events.tell(|| event(number % 3, 1));
    }
    let mut count = 0;
    while let Some(Heard::Event(_, event)) = reader.look(Some(&run(1))) {
        assert_eq!(event.run, run(1));
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn there_is_room_for_so_many_and_for_another_when_one_leaves() {
    let events = events();
    let listen = || events.listen(2, AbortHandle::new_pair().0);
    let (one, two) = (listen(), listen());
    assert!(one.is_some() && two.is_some() && listen().is_none());
    drop(one);
    assert!(listen().is_some());
}

#[test]
fn a_connection_whose_stream_has_ended_is_closed_too_if_it_is_not_gone() {
    let events = events();
    let [left, read, unread] = [(); 3].map(|()| AbortHandle::new_pair().0);
    let listen = |hang_up: &AbortHandle| events.listen(99, hang_up.clone()).expect("room");
    drop(listen(&left));
    let (mut reading, _stuck) = (listen(&read), listen(&unread));
    events.close();
    // All has been said on this stream, but perhaps not been sent.
    assert!(matches!(reading.look(None), Some(Heard::Closed)));
    drop(reading);
    events.hang_up();
    let closed = [left, read, unread].map(|connection| connection.is_aborted());
    assert_eq!(closed, [false, true, true]);
}

#[tokio::test]
async fn who_waits_is_woken_by_an_event_and_by_the_end() {
    let events = events();
    let mut reader = listen(&events);
    let waiting = tokio::spawn(async move {
        let first = reader.next(None).await;
        let last = reader.next(None).await;
        matches!((first, last), (Heard::Event(..), Heard::Closed))
    });
    tokio::task::yield_now().await;
    events.tell(|| event(1, 1));
    tokio::task::yield_now().await;
    events.close();
    assert!(waiting.await.expect("it does not panic"));
    events.tell(|| panic!("nothing is told after the end"));
}

proptest! {
    /// However many events there are, however long, and however they are read: what is kept stays
    /// small, what is heard is in order, and nothing is left out without a word.
    #[test]
    fn nothing_is_left_out_without_a_word(
        script in prop::collection::vec((0..3_u8, 0..2_000_000_usize), 1..60),
    ) {
        let events = events();
        let mut reader = listen(&events);
        let mut told = Vec::new();
        let mut heard_at = 0;
        for (what, bytes) in script {
            if what > 0 {
                events.tell(|| event(1, bytes));
                told.push(bytes);
                let log = events.log();
                prop_assert!(log.events.len() == 1 || log.bytes <= MOST_BYTES);
                prop_assert_eq!(log.bytes, log.events.iter().map(|it| it.size()).sum::<usize>());
                continue;
            }
            for heard in heard(&mut reader) {
                match heard {
                    Some(bytes) => {
                        prop_assert_eq!(bytes, told[heard_at]);
                        heard_at += 1;
                    }
                    None => heard_at = told.len(),
                }
            }
            prop_assert_eq!(heard_at, told.len());
        }
    }

    #[test]
    fn so_many_events_are_kept_and_no_more(count in 0..3 * MOST_EVENTS) {
        let events = events();
        let mut reader = listen(&events);
        for _ in 0..count {
            events.tell(|| event(1, 1));
        }
        prop_assert!(events.log().events.len() <= MOST_EVENTS);
        let heard = heard(&mut reader);
        if count <= MOST_EVENTS {
            prop_assert_eq!(heard.len(), count);
        } else {
            prop_assert_eq!(heard, [None]);
        }
    }
}
