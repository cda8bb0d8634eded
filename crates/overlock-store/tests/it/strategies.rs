//! Results of strategies.

use overlock_store::{Store, StoreError, StrategyResult, Writes};

use crate::engines::Fresh;

fn result(model: &str, at: u64) -> StrategyResult {
    StrategyResult {
        model: model.to_owned(),
        at,
        results: format!("{{\"overlap\":false}} {at} \0"),
    }
}

fn add(store: &dyn Store, server: &str, results: &[StrategyResult]) {
    let add = |writes: &mut dyn Writes| {
        let mut results = results.iter();
        results.try_for_each(|result| writes.add_strategy_result(server, result))
    };
    let added: Result<(), StoreError> = store.transaction(add).expect("a transaction");
    added.expect("a stored value");
}

fn stored(store: &dyn Store, server: &str) -> Vec<StrategyResult> {
    store.strategy_results(server).expect("results")
}

pub(crate) fn reads_the_results_of_a_server_in_order(fresh: &Fresh) {
    let store = &*fresh.store;
    let results = [result("b", 9), result("a", 3), result("b", 3)];
    add(store, "http://a/v1 vLLM 0.11.0", &results);
    add(store, "http://a/v1 vLLM 0.12.0", &results[..1]);
    assert_eq!(stored(store, "http://a/v1 vLLM 0.11.0"), results);
    assert_eq!(
        stored(&*fresh.again(), "http://a/v1 vLLM 0.12.0"),
        results[..1]
    );
    assert_eq!(stored(store, "http://a/v1 vLLM"), []);
}

pub(crate) fn the_oldest_results_of_a_model_are_dropped(fresh: &Fresh) {
    let store = &*fresh.store;
    add(store, "server", &[result("other", 0)]);
    add(store, "elsewhere", &[result("model", 0)]);
    let results: Vec<_> = (0..60).map(|at| result("model", at)).collect();
    add(store, "server", &results);
    let mut expected = vec![result("other", 0)];
    expected.extend_from_slice(&results[10..]);
    assert_eq!(stored(store, "server"), expected);
    assert_eq!(stored(store, "elsewhere").len(), 1);
}

pub(crate) fn the_number_of_results_is_bounded(fresh: &Fresh) {
    let store = &*fresh.store;
    add(store, "server", &[result("first", 0)]);
    add(store, "server", &[result(&"x".repeat(257), 1)]);
    add(store, &"x".repeat(257), &[result("model", 1)]);
    let results = (0..5_000).map(|at| result(&format!("model-{at}"), at));
    add(store, "server", &results.collect::<Vec<_>>());
    let stored = stored(store, "server");
    assert_eq!(stored.len(), 5_000);
    assert_eq!(stored[0].model, "model-0");
}

pub(crate) fn a_busy_model_does_not_displace_others(fresh: &Fresh) {
    let store = &*fresh.store;
    add(store, "server", &[result("quiet", 0)]);
    let busy = (0..5_010).map(|at| result("busy", at));
    add(store, "server", &busy.collect::<Vec<_>>());
    let stored = stored(store, "server");
    assert_eq!(stored.len(), 51);
    assert_eq!(stored[0], result("quiet", 0));
}

pub(crate) fn several_processes_can_add_results(fresh: &Fresh) {
    let stores = [fresh.again(), fresh.again()];
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                for at in 0..40 {
                    let results = [result("one", at), result("two", at)];
                    add(&**store, "server", &results);
                }
            });
        }
    });
    let results = stored(&*fresh.store, "server");
    let of = |model: &str| {
        results
            .iter()
            .filter(|result| result.model == model)
            .count()
    };
    assert_eq!((of("one"), of("two")), (50, 50));
}
