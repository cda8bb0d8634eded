//! Memories of personas.

use overlock_store::{Importance, NewMemory, Recall, Store};

use crate::engines::Fresh;
use crate::sketch::long_name;

fn importance(number: f64) -> Importance {
    Importance::new(number).expect("a number from 0 to 1")
}

fn remember(store: &dyn Store, persona: &str, text: &str, number: f64, at: u64) {
    let memory = NewMemory {
        persona,
        text,
        importance: importance(number),
        at,
    };
    store.remember(&memory).expect("a stored value");
}

fn recalled(store: &dyn Store, at_least: f64, since: u64, limit: u32) -> Vec<String> {
    let recall = Recall {
        persona: "ann",
        importance: importance(at_least),
        since,
        limit,
    };
    let memories = store.memories(&recall).expect("memories");
    memories.into_iter().map(|memory| memory.text).collect()
}

pub(crate) fn the_most_important_memories_come_first(fresh: &Fresh) {
    let store = &*fresh.store;
    for (text, number, at) in [
        ("low", 0.1, 9),
        ("old", 0.7, 1),
        ("high", 1.0, 1),
        ("new", 0.7, 2),
    ] {
        remember(store, "ann", text, number, at);
    }
    remember(store, "bob", "other", 1.0, 9);
    assert_eq!(recalled(store, 0.0, 0, 9), ["high", "new", "old", "low"]);
    assert_eq!(recalled(store, 0.0, 0, 2), ["high", "new"]);
}

pub(crate) fn old_and_unimportant_memories_are_left_out(fresh: &Fresh) {
    let store = &*fresh.store;
    for (text, number, at) in [("exactly", 0.6, 10), ("less", 0.59, 10), ("older", 0.9, 9)] {
        remember(store, "ann", text, number, at);
    }
    assert_eq!(recalled(store, 0.6, 10, 9), ["exactly"]);
    let memories = store.memories(&Recall {
        persona: "ann",
        importance: importance(0.9),
        since: 0,
        limit: 1,
    });
    let memory = &memories.expect("memories")[0];
    assert_eq!((memory.importance, memory.at), (importance(0.9), 9));
}

pub(crate) fn names_of_personas_have_any_length(fresh: &Fresh) {
    let store = &*fresh.store;
    let persona = long_name(1);
    remember(store, &persona, "this", 0.5, 1);
    remember(store, &long_name(2), "that", 0.5, 1);
    let recall = Recall {
        persona: &persona,
        importance: importance(0.1),
        since: 0,
        limit: 9,
    };
    let memories = store.memories(&recall).expect("memories");
    assert_eq!((memories.len(), &*memories[0].text), (1, "this"));
}
