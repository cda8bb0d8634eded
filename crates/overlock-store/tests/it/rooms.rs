//! Messages in rooms.

use std::thread;

use overlock_store::{Message, NewMessage, Store};

use crate::engines::Fresh;
use crate::sketch::long_name;

fn message(text: &str, at: u64) -> NewMessage<'_> {
    NewMessage {
        sender: "ann",
        role: "user",
        text,
        at,
    }
}

fn texts(store: &dyn Store, room: &str, last: u32) -> Vec<String> {
    let messages = store.messages(room, last).expect("messages");
    messages.into_iter().map(|message| message.text).collect()
}

pub(crate) fn reads_the_last_messages_in_order(fresh: &Fresh) {
    let store = &*fresh.store;
    // The order does not depend on the clock.
    store
        .post("hall", &[message("one", 5), message("two", 3)])
        .expect("a message");
    store
        .post("hall", &[message("three", 4)])
        .expect("a message");
    store
        .post("attic", &[message("boo", 9)])
        .expect("a message");
    assert_eq!(texts(store, "hall", 2), ["two", "three"]);
    assert_eq!(texts(store, "hall", 9), ["one", "two", "three"]);
    assert_eq!(texts(store, "hall", 0), [""; 0]);
    assert_eq!(texts(store, "cellar", 9), [""; 0]);
    let expected = Message {
        number: 2,
        sender: "ann".to_owned(),
        role: "user".to_owned(),
        text: "two".to_owned(),
        at: 3,
    };
    assert_eq!(store.messages("hall", 2).expect("messages")[0], expected);
}

pub(crate) fn messages_of_one_call_stay_together(fresh: &Fresh) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = fresh.again();
                for _ in 0..10 {
                    let turn = [message("question", 1), message("answer", 2)];
                    store.post("hall", &turn).expect("a message");
                }
            });
        }
    });
    let texts = texts(&*fresh.store, "hall", 100);
    assert_eq!(texts.len(), 80);
    assert!(texts.chunks(2).all(|turn| turn == ["question", "answer"]));
}

pub(crate) fn rooms_are_listed(fresh: &Fresh) {
    let store = &*fresh.store;
    assert!(store.rooms().expect("rooms").is_empty());
    store
        .post("hall", &[message("one", 5), message("two", 3)])
        .expect("a message");
    store
        .post("attic", &[message("boo", 9)])
        .expect("a message");
    let rooms = store.rooms().expect("rooms");
    let rooms: Vec<_> = rooms
        .iter()
        .map(|room| (&*room.name, room.messages, room.last_at))
        .collect();
    assert_eq!(rooms, [("attic", 1, 9), ("hall", 2, 3)]);
}

pub(crate) fn names_of_rooms_have_any_length(fresh: &Fresh) {
    let store = &*fresh.store;
    let [hall, attic] = [1, 2].map(long_name);
    store.post(&hall, &[message("one", 1)]).expect("a message");
    store
        .post(&hall, &[message("two", 2), message("three", 3)])
        .expect("a message");
    store.post(&attic, &[message("boo", 9)]).expect("a message");
    assert_eq!(texts(store, &hall, 2), ["two", "three"]);
    let rooms = store.rooms().expect("rooms");
    let known = rooms.iter().find(|room| room.name == hall);
    assert_eq!(known.map(|room| room.messages), Some(3));
    assert_eq!(rooms.len(), 2);
}
