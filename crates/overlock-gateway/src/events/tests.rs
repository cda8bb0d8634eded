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

fn subscribe(events: &Arc<Events>) -> Subscription {
    let (hang_up, _) = AbortHandle::new_pair();
    events.subscribe(99, hang_up).expect("there is room")
}

/// All that is ready for a subscriber: the bytes of events, and `None` where events were lost.
fn received(subscription: &mut Subscription) -> Vec<Option<usize>> {
    let mut received = Vec::new();
    while let Some(Received::Event(..) | Received::Lagged) =
        subscription.poll_log(None).inspect(|it| {
            received.push(match it {
                Received::Event(_, event) => Some(event.data.len()),
                Received::Lagged | Received::Closed => None,
            });
        })
    {}
    received
}

#[test]
fn builds_no_event_without_a_subscriber() {
    let events = events();
    events.publish(|| panic!("no subscriber"));
    drop(events.publish_on_drop(|| panic!("no subscriber")));
    let mut subscription = subscribe(&events);
    assert_eq!(received(&mut subscription), []);
    events.publish(|| event(1, 5));
    assert_eq!(received(&mut subscription), [Some(5)]);
}

#[test]
fn a_pending_event_is_published_on_drop() {
    let events = events();
    let mut subscription = subscribe(&events);
    let pending = events.publish_on_drop(|| event(1, 5));
    assert_eq!(received(&mut subscription), []);
    drop(pending);
    assert_eq!(received(&mut subscription), [Some(5)]);
}

#[test]
fn a_subscriber_that_reconnects_in_time_loses_no_event() {
    let events = events();
    let mut subscription = subscribe(&events);
    events.publish(|| event(1, 1));
    let Some(Received::Event(number, _)) = subscription.poll_log(None) else {
        panic!("it was published");
    };
    drop(subscription);
    events.publish(|| event(1, 2));
    let mut subscription = subscribe(&events);
    subscription.resume_after(number);
    events.publish(|| event(1, 3));
    assert_eq!(received(&mut subscription), [Some(2), Some(3)]);
    // A number that no event has is ignored.
    subscription.resume_after(u64::MAX);
    assert_eq!(received(&mut subscription), []);
}

#[test]
fn a_subscriber_that_reconnects_too_late_is_notified() {
    let events = events();
    let last = subscribe(&events).at - 1;
    let long_ago = Instant::now().checked_sub(2 * RECONNECT_TIME);
    events.log().last_unsubscribed = long_ago;
    events.publish(|| event(1, 1));
    events.publish(|| panic!("no subscriber"));
    let mut subscription = subscribe(&events);
    subscription.resume_after(last);
    assert_eq!(received(&mut subscription), [None]);
    events.publish(|| event(1, 2));
    assert_eq!(received(&mut subscription), [Some(2)]);
}

#[test]
fn a_subscriber_of_one_run_gets_only_its_events() {
    let events = events();
    let mut subscription = subscribe(&events);
    for number in 0..9 {
        events.publish(|| event(number % 3, 1));
    }
    let mut count = 0;
    while let Some(Received::Event(_, event)) = subscription.poll_log(Some(&run(1))) {
        assert_eq!(event.run, run(1));
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn limits_the_subscribers() {
    let events = events();
    let subscribe = || events.subscribe(2, AbortHandle::new_pair().0);
    let (one, two) = (subscribe(), subscribe());
    assert!(one.is_some() && two.is_some() && subscribe().is_none());
    drop(one);
    assert!(subscribe().is_some());
}

#[test]
fn closes_an_open_connection_whose_stream_has_ended() {
    let events = events();
    let [left, read, unread] = [(); 3].map(|()| AbortHandle::new_pair().0);
    let subscribe = |hang_up: &AbortHandle| events.subscribe(99, hang_up.clone()).expect("room");
    drop(subscribe(&left));
    let (mut reading, _stuck) = (subscribe(&read), subscribe(&unread));
    events.close();
    // The stream is complete, but perhaps not sent.
    assert!(matches!(reading.poll_log(None), Some(Received::Closed)));
    drop(reading);
    events.hang_up();
    let closed = [left, read, unread].map(|connection| connection.is_aborted());
    assert_eq!(closed, [false, true, true]);
}

#[tokio::test]
async fn a_waiting_subscriber_wakes_for_an_event_and_for_the_end() {
    let events = events();
    let mut subscription = subscribe(&events);
    let waiting = tokio::spawn(async move {
        let first = subscription.next(None).await;
        let last = subscription.next(None).await;
        matches!((first, last), (Received::Event(..), Received::Closed))
    });
    tokio::task::yield_now().await;
    events.publish(|| event(1, 1));
    tokio::task::yield_now().await;
    events.close();
    assert!(waiting.await.expect("it does not panic"));
    events.publish(|| panic!("no event after the end"));
}

proptest! {
    /// For any events and any reading pace: the log stays small, events arrive in order, and lost
    /// events are reported.
    #[test]
    fn no_event_is_lost_without_notice(
        script in prop::collection::vec((0..3_u8, 0..2_000_000_usize), 1..60),
    ) {
        let events = events();
        let mut subscription = subscribe(&events);
        let mut published = Vec::new();
        let mut next = 0;
        for (what, bytes) in script {
            if what > 0 {
                events.publish(|| event(1, bytes));
                published.push(bytes);
                let log = events.log();
                prop_assert!(log.events.len() == 1 || log.bytes <= MOST_BYTES);
                prop_assert_eq!(log.bytes, log.events.iter().map(|it| it.size()).sum::<usize>());
                continue;
            }
            for received in received(&mut subscription) {
                match received {
                    Some(bytes) => {
                        prop_assert_eq!(bytes, published[next]);
                        next += 1;
                    }
                    None => next = published.len(),
                }
            }
            prop_assert_eq!(next, published.len());
        }
    }

    #[test]
    fn limits_the_number_of_events(count in 0..3 * MOST_EVENTS) {
        let events = events();
        let mut subscription = subscribe(&events);
        for _ in 0..count {
            events.publish(|| event(1, 1));
        }
        prop_assert!(events.log().events.len() <= MOST_EVENTS);
        let received = received(&mut subscription);
        if count <= MOST_EVENTS {
            prop_assert_eq!(received.len(), count);
        } else {
            prop_assert_eq!(received, [None]);
        }
    }
}
