//! Which strategies have worked for models.

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
    let added: Result<(), StoreError> = store.together(add).expect("a transaction");
    added.expect("it is kept");
}

fn kept(store: &dyn Store, server: &str) -> Vec<StrategyResult> {
    store.strategy_results(server).expect("results")
}

pub(crate) fn results_of_a_server_come_back_in_their_order(fresh: &Fresh) {
    let store = &*fresh.store;
    let results = [result("b", 9), result("a", 3), result("b", 3)];
    add(store, "http://a/v1 vLLM 0.11.0", &results);
    add(store, "http://a/v1 vLLM 0.12.0", &results[..1]);
    assert_eq!(kept(store, "http://a/v1 vLLM 0.11.0"), results);
    assert_eq!(
        kept(&*fresh.again(), "http://a/v1 vLLM 0.12.0"),
        results[..1]
    );
    assert_eq!(kept(store, "http://a/v1 vLLM"), []);
}

pub(crate) fn the_oldest_results_of_a_model_are_dropped(fresh: &Fresh) {
    let store = &*fresh.store;
    add(store, "server", &[result("other", 0)]);
    add(store, "elsewhere", &[result("model", 0)]);
    let results: Vec<_> = (0..60).map(|at| result("model", at)).collect();
    add(store, "server", &results);
    let mut expected = vec![result("other", 0)];
    expected.extend_from_slice(&results[10..]);
    assert_eq!(kept(store, "server"), expected);
    assert_eq!(kept(store, "elsewhere").len(), 1);
}

pub(crate) fn made_up_models_fill_no_store(fresh: &Fresh) {
    let store = &*fresh.store;
    add(store, "server", &[result("first", 0)]);
    add(store, "server", &[result(&"x".repeat(257), 1)]);
    add(store, &"x".repeat(257), &[result("model", 1)]);
    let results = (0..5_000).map(|at| result(&format!("model-{at}"), at));
    add(store, "server", &results.collect::<Vec<_>>());
    let kept = kept(store, "server");
    assert_eq!(kept.len(), 5_000);
    assert_eq!(kept[0].model, "model-0");
}

pub(crate) fn a_busy_model_drops_no_results_of_others(fresh: &Fresh) {
    let store = &*fresh.store;
    add(store, "server", &[result("quiet", 0)]);
    let busy = (0..5_010).map(|at| result("busy", at));
    add(store, "server", &busy.collect::<Vec<_>>());
    let kept = kept(store, "server");
    assert_eq!(kept.len(), 51);
    assert_eq!(kept[0], result("quiet", 0));
}

pub(crate) fn several_processes_add_to_the_same_results(fresh: &Fresh) {
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
    let kept = kept(&*fresh.store, "server");
    let of = |model: &str| kept.iter().filter(|result| result.model == model).count();
    assert_eq!((of("one"), of("two")), (50, 50));
}
