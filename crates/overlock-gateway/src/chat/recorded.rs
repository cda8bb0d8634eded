//! What is recorded of a request before it is answered.

use std::sync::Arc;

use overlock_store::RunId;
use serde_json::json;

use super::context::RequestContext;
use crate::body::text_of;
use crate::record::{Recording, RunInfo};
use overlock_runs::Conditions;
use overlock_runs::Record;
use overlock_runs::to_json;

/// How others see whether somebody works on a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held<'a> {
    /// It is held itself, since it has a key.
    Itself,
    /// By whether this is, where anything is.
    ByWorker(Option<&'a RunId>),
}

impl RequestContext {
    /// What is kept of the request itself.
    pub(super) fn about(&self, text: &str, held: Held<'_>) -> RunInfo {
        let (is_keyed, worker) = match held {
            Held::Itself => (true, None),
            Held::ByWorker(worker) => (false, worker),
        };
        let settings = &self.gateway.settings;
        let options = self.wish.continuation(&self.gateway);
        // Who asks the same again must find what was asked.
        let has_text = is_keyed || settings.record == Record::Full;
        let schema = self.wish.schema.as_ref().filter(|_| has_text);
        let conditions = Conditions {
            // A query may hold a key.
            upstream: self.base.split('?').next().map(str::to_owned),
            schema: schema.map(|schema| schema.bounded.value().clone()),
            is_held: is_keyed,
            worker: worker.map(ToString::to_string),
        };
        let request = if has_text {
            text.to_owned()
        } else {
            let message = json!({ "role": "user", "content": "" });
            json!({ "model": self.wish.model, "messages": [message] }).to_string()
        };
        RunInfo {
            model: self.wish.model.clone(),
            request,
            options: to_json(&options),
            conditions: to_json(&conditions),
        }
    }

    /// Begins to keep what is to be kept of a request without a key.
    pub(super) async fn begin_recording(&self) -> Option<Recording> {
        match self.gateway.settings.record {
            Record::Off => None,
            Record::Metadata => self.story(),
            Record::Full => Box::pin(self.recorded()).await,
        }
    }

    /// A recording of all there is. An answer does not depend on whether it can be kept.
    async fn recorded(&self) -> Option<Recording> {
        let recorder = self.gateway.recorder.as_ref()?;
        let held = Held::ByWorker(recorder.locked_worker().await);
        let about = self.about(text_of(&self.wish.text).ok()?, held);
        Recording::begin(recorder, Arc::new(about)).await.ok()
    }

    /// A recording without the text. What that is about is the same for most requests to a model,
    /// as long as nothing is learnt about its strategies.
    fn story(&self) -> Option<Recording> {
        let recorder = self.gateway.recorder.as_ref()?;
        let about = || Arc::new(self.about("", Held::ByWorker(None)));
        let strategies = self.wish.strategies(&self.gateway);
        let is_common = self.wish.max_total_tokens == self.gateway.settings.max_total_tokens;
        let story = &self.wish.known.metadata_info;
        let common = is_common.then(|| story.get_or_init(|| (strategies.to_vec(), about())));
        let about = match common {
            Some((known, about)) if known == strategies => Arc::clone(about),
            _ => about(),
        };
        Some(Recording::metadata(recorder, about))
    }
}
