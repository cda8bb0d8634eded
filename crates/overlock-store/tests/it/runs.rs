//! Runs, and the right to write to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use overlock_store::{Access, Begun, Claim, EndedRun, NewRun, Run, RunId, Store, StoreError, open};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::engines::Fresh;

fn new_run(id: &RunId, at: u64) -> NewRun<'_> {
    NewRun {
        id,
        at,
        model: "a-model",
        request: r#"{"messages": []}"#,
        options: "{}",
        conditions: r#"{"upstream": "here"}"#,
    }
}

fn begin(store: &dyn Store, at: u64) -> Claim {
    let id = RunId::new(at, at);
    store.begin(&new_run(&id, at)).expect("a run begins")
}

fn read(store: &dyn Store, id: &RunId) -> Run {
    store.run(id).expect("a store").expect("a recorded value")
}

fn begin_once(store: &dyn Store, at: u64, key: &str, digest: &str) -> Begun {
    let id = RunId::new(at, at);
    let begun = store.transaction(|writes| writes.begin_once(key, digest, &new_run(&id, at)));
    begun.expect("a store").expect("a write")
}

pub(crate) fn reads_what_was_written(fresh: &Fresh) {
    let store = fresh.again();
    let claim = begin(&*store, 1000);
    for number in 1..=3 {
        store
            .add_step(&claim, number, &format!("step {number}"))
            .expect("a step");
    }
    store.end(&claim, 2000, "complete").expect("an end");
    let run = read(&*store, claim.id());
    assert_eq!(run.steps, ["step 1", "step 2", "step 3"]);
    assert_eq!(run.conditions, r#"{"upstream": "here"}"#);
    assert_eq!(run.summary.outcome.as_deref(), Some("complete"));
    assert_eq!(
        (run.summary.began_at, run.summary.ended_at),
        (1000, Some(2000))
    );
    assert_eq!(run.summary.steps, 3);
}

pub(crate) fn steps_are_recorded_once_and_without_gaps(fresh: &Fresh) {
    let store = fresh.again();
    let claim = begin(&*store, 1000);
    store.add_step(&claim, 1, "first").expect("a step");
    for number in [0, 1, 3] {
        let error = store.add_step(&claim, number, "other").expect_err("no");
        assert!(
            matches!(error, StoreError::OutOfOrder { number: found, .. } if found == number),
            "{error}"
        );
    }
    assert_eq!(read(&*store, claim.id()).steps, ["first"]);
}

pub(crate) fn a_stale_claim_cannot_write(fresh: &Fresh) {
    let [one, other] = [(); 2].map(|()| fresh.again());
    let late = begin(&*one, 1000);
    one.add_step(&late, 1, "step").expect("a step");
    let (run, claim) = other
        .take_up(late.id())
        .expect("a claim")
        .expect("a recorded value");
    assert_eq!(run.steps, ["step"]);

    let refused = [
        one.add_step(&late, 2, "late").expect_err("no"),
        one.end(&late, 2000, "partial").expect_err("no"),
    ];
    for error in refused {
        assert!(matches!(error, StoreError::Superseded { .. }), "{error}");
    }
    other.add_step(&claim, 2, "step").expect("a step");
    other.end(&claim, 3000, "complete").expect("an end");
    one.end(&late, 4000, "partial").expect_err("no");
    let run = read(&*one, claim.id());
    assert_eq!(run.steps.len(), 2);
    assert_eq!(run.summary.outcome.as_deref(), Some("complete"));
    assert_eq!(run.summary.ended_at, Some(3000));
}

pub(crate) fn a_run_is_locked_once(fresh: &Fresh) {
    let [one, other] = [(); 2].map(|()| fresh.again());
    let work_on = |store: &dyn Store, id| store.work_on(id).expect("a lock");
    let [id, another] = [1, 2].map(|at| RunId::new(at, at));
    let work = work_on(&*one, &id).expect("an unlocked run");
    assert!(work.is_held());
    assert!(work_on(&*other, &id).is_none());
    assert!(work_on(&*one, &id).is_none());
    assert!(work_on(&*other, &another).is_some());
    drop(work);
    assert!(work_on(&*other, &id).is_some());
}

pub(crate) fn lists_locked_runs(fresh: &Fresh) {
    let [one, other] = [(); 2].map(|()| fresh.again());
    let ids = [1, 2, 3].map(|at| RunId::new(at, at));
    let worked_on = |store: &dyn Store| {
        let mut held: Vec<RunId> = store
            .worked_on(&ids)
            .expect("a store")
            .into_iter()
            .collect();
        held.sort_unstable();
        held
    };
    assert_eq!(worked_on(&*one), []);
    let works = [0, 2].map(|at| one.work_on(&ids[at]).expect("a lock"));
    for store in [&one, &other] {
        // The test does not take the lock.
        assert_eq!(worked_on(&**store), [ids[0].clone(), ids[2].clone()]);
        assert!(store.work_on(&ids[0]).expect("a lock").is_none());
        assert_eq!(store.worked_on(&[]).expect("a store").len(), 0);
    }
    drop(works);
    assert_eq!(worked_on(&*other), []);
}

pub(crate) fn reads_only_new_steps(fresh: &Fresh) {
    let [one, other] = [(); 2].map(|()| fresh.again());
    let claim = begin(&*one, 1000);
    let since = |steps| {
        let since = other.since(claim.id(), steps).expect("a store");
        since.expect("a recorded value")
    };
    assert_eq!(since(0).steps, [""; 0]);
    for number in 1..=4_u32 {
        let body = format!("step {number}\0");
        one.add_step(&claim, number, &body).expect("a step");
        let new = since(number - 1);
        assert_eq!((new.steps, new.summary.steps), (vec![body], number.into()));
        assert_eq!(since(number).steps, [""; 0]);
    }
    assert_eq!(since(0).steps, read(&*other, claim.id()).steps);
    assert_eq!(since(1).steps, read(&*other, claim.id()).steps[1..]);
    one.end(&claim, 2000, "an outcome").expect("an end");
    assert_eq!(since(4).summary, read(&*other, claim.id()).summary);
    let nothing = other.since(&RunId::new(7, 7), 0);
    assert_eq!(nothing.expect("a store"), None);
}

pub(crate) fn concurrent_locks_of_a_run_exclude_each_other(fresh: &Fresh) {
    let (id, working) = (RunId::new(1, 1), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = fresh.again();
                for _ in 0..500 {
                    if let Some(work) = store.work_on(&id).expect("a lock") {
                        assert_eq!(working.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        working.fetch_sub(1, Ordering::SeqCst);
                        drop(work);
                    }
                }
            });
        }
    });
}

pub(crate) fn an_unknown_run_cannot_be_claimed(fresh: &Fresh) {
    let store = fresh.again();
    let id = RunId::new(1, 1);
    assert_eq!(store.take_up(&id).expect("a store"), None);
}

pub(crate) fn lists_those_before_a_run(fresh: &Fresh) {
    let store = fresh.again();
    let ids = (10..17).map(|at| begin(&*store, at).id().clone());
    let ids: Vec<RunId> = ids.collect();
    let listed = |before: Option<&RunId>, count| {
        let runs = store.before(before, count).expect("a list");
        runs.into_iter().map(|run| run.id).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    while let Some(next) = Some(listed(all.last(), 3)).filter(|next| !next.is_empty()) {
        all.extend(next);
    }
    all.reverse();
    assert_eq!(all, ids);
    // The id does not have to exist.
    let between = RunId::new(12, 99);
    assert_eq!(listed(Some(&between), 1), [ids[2].clone()]);
    assert_eq!(listed(Some(&ids[0]), 9), []);
}

pub(crate) fn lists_the_latest_first(fresh: &Fresh) {
    let store = fresh.again();
    let claims = [10, 30, 20].map(|at| begin(&*store, at));
    let latest = store.latest(2).expect("a list");
    let latest: Vec<&RunId> = latest.iter().map(|run| &run.id).collect();
    assert_eq!(latest, [claims[1].id(), claims[2].id()]);
}

pub(crate) fn runs_can_begin_concurrently(fresh: &Fresh) {
    thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                let store = fresh.again();
                let claim = begin(&*store, number);
                store.add_step(&claim, 1, "step").expect("a step");
            });
        }
    });
    let store = open(&fresh.address, Access::Read).expect("a store");
    assert_eq!(store.latest(20).expect("a list").len(), 8);
}

pub(crate) fn an_ended_run_equals_one_recorded_step_by_step(fresh: &Fresh) {
    let store = fresh.again();
    let claim = begin(&*store, 1000);
    for (number, body) in [(1, "one"), (2, "two")] {
        store.add_step(&claim, number, body).expect("a step");
    }
    store.end(&claim, 2000, "an outcome").expect("an end");
    let recorded = read(&*store, claim.id());

    let id = RunId::new(3000, 1);
    let ended = EndedRun {
        begun: NewRun {
            id: &id,
            at: recorded.summary.began_at,
            model: &recorded.summary.model,
            request: &recorded.request,
            options: &recorded.summary.options,
            conditions: &recorded.conditions,
        },
        steps: &recorded.steps,
        at: 2000,
        outcome: "an outcome",
    };
    store
        .transaction(|writes| writes.add_ended(&ended))
        .and_then(|added| added)
        .expect("a recorded run");
    let mut read = read(&*store, &id);
    read.summary.id = recorded.summary.id.clone();
    assert_eq!(read, recorded);
}

pub(crate) fn ended_runs_in_one_transaction_do_not_mix(fresh: &Fresh) {
    let store = fresh.again();
    // The texts change at different runs, and some ids are used twice.
    let texts = |number: u32| [1, 2, 3, 4, 5].map(|every| (number / every % 3).to_string());
    let ids = [0, 1, 2, 2, 4, 5, 5, 7, 8, 8, 10, 11].map(|at| RunId::new(at, 0));
    let added = store.transaction(|writes| {
        let mut added = Vec::new();
        for (number, id) in (0..).zip(&ids) {
            let [model, request, options, conditions, outcome] = texts(number);
            let run = EndedRun {
                begun: NewRun {
                    id,
                    at: number.into(),
                    model: &model,
                    request: &request,
                    options: &options,
                    conditions: &conditions,
                },
                steps: &[],
                at: u64::from(number) + 1,
                outcome: &outcome,
            };
            added.push(writes.add_ended(&run).is_ok());
        }
        added
    });
    let added = added.expect("a commit");
    for (number, id) in (0..).zip(&ids) {
        let is_first = ids.iter().position(|it| it == id) == Some(number);
        assert_eq!(added[number], is_first, "run {number}");
        if !is_first {
            continue;
        }
        let run = read(&*store, id);
        let number = u32::try_from(number).expect("a few runs");
        let outcome = run.summary.outcome.expect("an end");
        let stored = [
            run.summary.model,
            run.request,
            run.summary.options,
            run.conditions,
            outcome,
        ];
        assert_eq!(stored, texts(number), "run {number}");
        assert_eq!(run.summary.began_at, u64::from(number));
        assert_eq!(run.summary.ended_at, Some(u64::from(number) + 1));
    }
}

pub(crate) fn a_key_begins_one_run(fresh: &Fresh) {
    let store = fresh.again();
    let begin_once = |at, key, digest| begin_once(&*store, at, key, digest);
    let Begun::Started(claim) = begin_once(1000, "key", "this") else {
        panic!("a new key");
    };
    assert_eq!(
        begin_once(2000, "key", "this"),
        Begun::Exists(claim.id().clone())
    );
    assert_eq!(begin_once(3000, "key", "that"), Begun::Mismatch);
    assert!(matches!(
        begin_once(4000, "other", "that"),
        Begun::Started(_)
    ));
    assert_eq!(store.latest(10).expect("a list").len(), 2);
}

pub(crate) fn keys_have_any_length(fresh: &Fresh) {
    let [key, other] = [1, 2].map(crate::sketch::long_name);
    let begin_once = |at, key| begin_once(&*fresh.store, at, key, "this");
    let Begun::Started(claim) = begin_once(1000, &key) else {
        panic!("a new key");
    };
    assert_eq!(begin_once(2000, &key), Begun::Exists(claim.id().clone()));
    assert!(matches!(begin_once(3000, &other), Begun::Started(_)));
}

pub(crate) fn a_rejected_write_does_not_affect_others_in_its_transaction(fresh: &Fresh) {
    let store = fresh.again();
    let [one, two] = [1000, 2000].map(|at| begin(&*store, at));
    let results = store.transaction(|writes| {
        [
            writes.add_step(&one, 1, "one"),
            writes.add_step(&two, 5, "out of order"),
            writes.store_answer(&one, "the answer"),
            writes.end(&one, 3000, "complete"),
        ]
        .map(|result| result.is_ok())
    });
    assert_eq!(results.expect("a commit"), [true, false, true, true]);
    let run = read(&*store, one.id());
    assert_eq!(run.steps, ["one"]);
    assert_eq!(run.answer.as_deref(), Some("the answer"));
    assert_eq!(run.summary.outcome.as_deref(), Some("complete"));
}

pub(crate) fn stores_any_text(fresh: &Fresh) {
    let store = fresh.again();
    let mut count = 0;
    let texts = prop::collection::vec("([\0\u{1}\u{FFFE}\u{10FFFF}'\\\\%\"01]|\\PC|.){0,20}", 7);
    let law = |texts: Vec<String>| {
        count += 1;
        let id = RunId::new(count, 1);
        let run = NewRun {
            model: &texts[0],
            request: &texts[1],
            options: &texts[2],
            conditions: &texts[3],
            ..new_run(&id, count)
        };
        let claim = store.begin(&run).expect("a run begins");
        store.add_step(&claim, 1, &texts[4]).expect("a step");
        store.end(&claim, count, &texts[5]).expect("an end");
        let stored = store.transaction(|writes| writes.store_answer(&claim, &texts[6]));
        stored.expect("a commit").expect("an answer");
        let read = read(&*store, &id);
        let read = [
            read.summary.model,
            read.request,
            read.summary.options,
            read.conditions,
            read.steps[0].clone(),
            read.summary.outcome.expect("an outcome"),
            read.answer.expect("an answer"),
        ];
        assert_eq!(read, *texts);
        Ok(())
    };
    let law = std::cell::RefCell::new(law);
    let mut runner = TestRunner::new(Config::with_cases(64));
    runner
        .run(&texts, |texts| (law.borrow_mut())(texts))
        .expect("any texts");
}

pub(crate) fn an_id_is_used_once(fresh: &Fresh) {
    let store = fresh.again();
    let claim = begin(&*store, 1000);
    let run = new_run(claim.id(), 2000);
    let ended = EndedRun {
        begun: run,
        steps: &["step".to_owned()],
        at: 3000,
        outcome: "complete",
    };
    let other = RunId::new(5000, 5000);
    let results = store.transaction(|writes| {
        [
            writes.begin(&run).map(drop),
            writes.begin_once("key", "digest", &run).map(drop),
            writes.add_ended(&ended),
            // The rejected writes do not affect this one.
            writes.begin(&new_run(&other, 5000)).map(drop),
        ]
    });
    let [begun, once, ended, other_begun] = results.expect("a commit");
    for result in [begun, once, ended] {
        let error = result.expect_err("the id exists");
        assert!(
            matches!(&error, StoreError::RunExists { id } if id == claim.id()),
            "{error}"
        );
    }
    other_begun.expect("another run begins");
    assert_eq!(read(&*store, claim.id()).summary.began_at, 1000);
    assert_eq!(read(&*store, claim.id()).steps.len(), 0);
    read(&*store, &other);
    assert!(matches!(
        begin_once(&*store, 9000, "key", "digest"),
        Begun::Started(_)
    ));
}

pub(crate) fn concurrent_begins_with_one_key_begin_one_run(fresh: &Fresh) {
    for round in 0..20 {
        let stores = [(); 3].map(|()| fresh.again());
        let key = format!("key-{round}");
        let begun: Vec<Begun> = thread::scope(|scope| {
            let threads = stores.iter().zip(0_u64..).map(|(store, number)| {
                let (key, at) = (&key, 1 + 10 * round + number);
                scope.spawn(move || begin_once(&**store, at, key, "digest"))
            });
            let threads: Vec<_> = threads.collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        let now: Vec<&Claim> = begun
            .iter()
            .filter_map(|begun| match begun {
                Begun::Started(claim) => Some(claim),
                _ => None,
            })
            .collect();
        assert_eq!(now.len(), 1, "{begun:?}");
        for begun in &begun {
            match begun {
                Begun::Started(_) | Begun::Concurrent => {}
                Begun::Exists(id) => assert_eq!(id, now[0].id()),
                Begun::Mismatch => panic!("the digests are equal"),
            }
        }
        // Afterwards the key is known everywhere.
        let again = begin_once(&*stores[0], 900_000 + round, &key, "digest");
        assert_eq!(again, Begun::Exists(now[0].id().clone()));
    }
}

pub(crate) fn keys_in_different_order_do_not_deadlock(fresh: &Fresh) {
    let keys: Vec<String> = (0..20).map(|number| format!("key-{number}")).collect();
    let stores = [(); 2].map(|()| fresh.again());
    let barrier = std::sync::Barrier::new(2);
    let results: Vec<Vec<Begun>> = thread::scope(|scope| {
        let threads = stores
            .iter()
            .zip([false, true])
            .map(|(store, is_reversed)| {
                let (keys, barrier) = (&keys, &barrier);
                scope.spawn(move || {
                    let mut keys: Vec<&String> = keys.iter().collect();
                    if is_reversed {
                        keys.reverse();
                    }
                    barrier.wait();
                    let begun = store.transaction(|writes| {
                        let begun = keys.iter().zip(1_u64..).map(|(key, number)| {
                            let at = number + 1000 * u64::from(is_reversed);
                            let id = RunId::new(at, at);
                            let begun = writes.begin_once(key, "digest", &new_run(&id, at));
                            begun.expect("a write")
                        });
                        begun.collect()
                    });
                    begun.expect("a commit")
                })
            });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let now = results.iter().flatten();
    let now = now
        .filter(|begun| matches!(begun, Begun::Started(_)))
        .count();
    assert_eq!(now, keys.len(), "{results:?}");
}

pub(crate) fn a_claim_sees_all_earlier_writes(fresh: &Fresh) {
    let [one, other] = [(); 2].map(|()| fresh.again());
    for round in 1..=5 {
        let late = begin(&*one, round);
        let written = AtomicU32::new(0);
        let (run, claim) = thread::scope(|scope| {
            let writing = scope.spawn(|| {
                for number in 1..=100 {
                    match one.add_step(&late, number, "step") {
                        Ok(()) => written.store(number, Ordering::SeqCst),
                        Err(error) => {
                            assert!(matches!(error, StoreError::Superseded { .. }), "{error}");
                            return;
                        }
                    }
                }
            });
            while written.load(Ordering::SeqCst) < 3 && !writing.is_finished() {
                thread::yield_now();
            }
            let claimed = other.take_up(late.id()).expect("a store");
            claimed.expect("a recorded run")
        });
        assert_eq!(run.steps.len(), written.into_inner() as usize);
        let next = u32::try_from(run.steps.len()).expect("a few") + 1;
        other.add_step(&claim, next, "step").expect("a step");
    }
}

pub(crate) fn other_processes_read_acknowledged_writes(fresh: &Fresh) {
    let [one, other] = [(); 2].map(|()| fresh.again());
    let claim = begin(&*one, 1000);
    for number in 1..=50_u32 {
        one.add_step(&claim, number, "step").expect("a step");
        assert_eq!(read(&*other, claim.id()).steps.len(), number as usize);
    }
}

pub(crate) fn a_reader_changes_nothing(fresh: &Fresh) {
    let claim = begin(&*fresh.again(), 1000);
    let reader: Arc<dyn Store> = open(&fresh.address, Access::Read).expect("a store");
    reader
        .add_step(&claim, 1, "step")
        .expect_err("a read-only store");
    assert_eq!(read(&*reader, claim.id()).steps.len(), 0);
    let writer = open(&fresh.address, Access::Write).expect("a store");
    writer.add_step(&claim, 1, "step").expect("a step");
}
