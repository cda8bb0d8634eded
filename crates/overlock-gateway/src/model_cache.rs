//! A cache of the properties of models, by name.
//!
//! Names come from clients, so the cache is limited.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use overlock_budget::{ChatCounter, Found, How, PlanOptions, WindowSource};
use overlock_llm::wire::Protocol;
use overlock_llm::{Prefill, PrefillStyle, ServerInfo, Strategy};

use crate::demo;
use crate::record::RunInfo;
use crate::settings::Settings;

/// The most models in the cache.
const MOST: usize = 256;

/// The longest name in the cache.
const LONGEST_NAME: usize = 256;

/// What requests need to know about a model.
pub(crate) struct CachedModel {
    pub(crate) found: Found,
    /// How its window is divided.
    pub(crate) plan: PlanOptions,
    /// Counts the tokens of its requests.
    pub(crate) counter: ChatCounter<'static>,
    /// How its answer can be prefilled.
    pub(crate) prefill: Prefill,
    /// The record of a request without its text, for these strategies.
    pub(crate) metadata_info: OnceLock<(Vec<Strategy>, Arc<RunInfo>)>,
}

/// The requested models of a server.
#[derive(Default)]
pub(crate) struct ModelCache {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    models: HashMap<String, Arc<CachedModel>>,
    server: Arc<ServerInfo>,
}

impl ModelCache {
    /// The model of this name.
    pub(crate) fn get(&self, settings: &Settings, name: &str) -> Arc<CachedModel> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = state.models.get(name) {
            return Arc::clone(model);
        }
        let server = Arc::clone(&state.server);
        drop(state);
        let model = Arc::new(CachedModel::new(settings, &server, name));
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = Arc::ptr_eq(&state.server, &server);
        if is_same && state.models.len() < MOST && name.len() <= LONGEST_NAME {
            state.models.insert(name.to_owned(), Arc::clone(&model));
        }
        model
    }

    /// Updates the server; a change clears the cache.
    pub(crate) fn serve(&self, server: &Arc<ServerInfo>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.server != *server {
            state.models.clear();
            state.server = Arc::clone(server);
        }
    }
}

impl CachedModel {
    fn new(settings: &Settings, server: &ServerInfo, name: &str) -> Self {
        let mut found = settings.models.find(name);
        if let Some(window) = server.window(name).filter(|_| name != demo::MODEL) {
            found = found.served_with(window);
        }
        if name == demo::MODEL && found.how == How::Default {
            // The window assumed for unknown models is right for the scripted demo model.
            found.model.window_source = WindowSource::Known;
        }
        let learnt = server.learnt_window(name);
        if let Some(window) = learnt.filter(|_| name != demo::MODEL) {
            // No setting makes a server accept more than it reports.
            found.model.window = window.min(found.model.window);
            found = found.served_with(window);
        }
        let own = settings.counters.as_ref();
        let own = own.and_then(|counters| counters.for_model(&found));
        Self {
            plan: settings.plan_for(&found.model),
            counter: own.unwrap_or_else(|| ChatCounter::for_model(&found)),
            prefill: prefill_of(settings, server, &found),
            found,
            metadata_info: OnceLock::new(),
        }
    }
}

/// How an answer of a model can be prefilled. In Messages there is one way, which the grammar of a
/// format does not continue; the provider says it of its models only in its documentation.
fn prefill_of(settings: &Settings, server: &ServerInfo, found: &Found) -> Prefill {
    let is_messages = settings.upstream.api == Protocol::Messages;
    let is_last_message = server.prefill.style == PrefillStyle::LastMessage;
    match settings.upstream.prefill {
        Some(style) if !is_messages => Prefill::of_style(style),
        None if !is_messages => server.prefill,
        Some(PrefillStyle::LastMessage) => LAST_MESSAGE,
        None if found.model.prefill || is_last_message => LAST_MESSAGE,
        _ => Prefill::default(),
    }
}

const LAST_MESSAGE: Prefill = Prefill {
    style: PrefillStyle::LastMessage,
    keeps_format: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Upstream;

    #[test]
    fn a_model_is_looked_up_once() {
        let (settings, models) = (Settings::new(Upstream::none()), ModelCache::default());
        let [one, two] = ["gpt-4o"; 2].map(|name| models.get(&settings, name));
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(one.found.entry.as_deref(), Some("gpt-4o"));
    }

    #[test]
    fn the_window_of_the_demo_model_is_known() {
        let (settings, models) = (Settings::new(Upstream::none()), ModelCache::default());
        let source = |name| models.get(&settings, name).found.window_source();
        assert_eq!(source(demo::MODEL), WindowSource::Known);
        assert_eq!(source("unknown-model"), WindowSource::Assumed);
    }

    #[test]
    fn limits_the_cached_names() {
        let (settings, models) = (Settings::new(Upstream::none()), ModelCache::default());
        models.get(&settings, &"x".repeat(LONGEST_NAME + 1));
        for number in 0..2 * MOST {
            models.get(&settings, &format!("model-{number}"));
        }
        let served = models.state.read().expect("no panic");
        assert_eq!(served.models.len(), MOST);
        assert!(served.models.keys().all(|name| name.len() <= LONGEST_NAME));
    }
}
