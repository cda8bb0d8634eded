//! The demo: a model whose answers are cut off again and again, and the complete document.
//!
//! Only the model is simulated. [`play`] starts a scripted model on a local port and calls it over
//! HTTP, as `overlock complete` calls any model. The result is a [`DemoRun`], which
//! [`DemoOutput::print`] shows.

mod check;
mod observe;
mod output;

use overlock_budget::{How, Plan, WindowSource};
use overlock_json::Cut;
use overlock_llm::testing::{Behaviour, Script, ScriptedServer};
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{
    Continuation, ContinuationOptions, Drive, Http, Kpi, NextCall, OpenAi, Outcome, Prefill,
    Retrying, Strategy, complete,
};
use overlock_store::Store;
use serde_json::json;

use crate::config::Config;
use crate::counter::Counter;
use crate::draw::Join;
use crate::ending::Failure;
use crate::runs;
pub(crate) use check::{DocumentStats, complete_document};
use observe::DemoObserver;
pub(crate) use output::DemoOutput;

/// The default document.
pub(crate) const REPORT: &str = include_str!("report.json");

/// The name of the model. It is not in the table, so the model gets the default window.
pub(crate) const MODEL: &str = "overlock-demo";

/// A finished run.
pub(crate) struct DemoRun<'a> {
    pub(crate) document: &'a str,
    pub(crate) seed: u64,
    pub(crate) calls: Vec<DemoCall>,
    /// The stitched document.
    pub(crate) result: String,
    pub(crate) outcome: Outcome,
}

/// One call of the model.
pub(crate) struct DemoCall {
    pub(crate) ask: NextCall,
    pub(crate) plan: Plan,
    /// What the script made the model do.
    pub(crate) behaviour: Behaviour,
    /// The answer.
    pub(crate) text: String,
    /// Whether the finish reason was `length`.
    pub(crate) cut_off: bool,
    pub(crate) join: Join,
    /// The length of the document after this call.
    pub(crate) base_len: usize,
    pub(crate) cut: Option<CutState>,
}

/// The cut of the document after a call.
pub(crate) struct CutState {
    pub(crate) cut: Cut,
    /// The open containers, as a trail.
    pub(crate) open: String,
    /// The last line that describes the text so far.
    pub(crate) delivered: Option<String>,
}

impl DemoRun<'_> {
    pub(crate) fn is_identical(&self) -> bool {
        self.outcome == Outcome::Complete && self.result == self.document
    }
}

/// Has a scripted model write `document` in cut answers, and stitches them. The run is recorded if
/// there is a store.
pub(crate) fn play<'a>(
    document: &'a str,
    seed: u64,
    store: Option<&dyn Store>,
) -> Result<DemoRun<'a>, Failure> {
    let script = script(document, seed);
    let mut run = Continuation::new(options(&script));
    let request = request()?;
    let config = Config::default();
    let mut found = config.models().find(MODEL);
    if found.how == How::Default {
        // The scripted model really has the default window.
        found.model.window_source = WindowSource::Known;
    }
    let counter = Counter::for_model(MODEL, &found, &config)?;
    let mut observer = DemoObserver::new(store, &found);
    observer.begin(&request, run.options())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let behaviours = runtime.block_on(async {
        let server = ScriptedServer::start(script, &[]).await?;
        let failed = |source| Failure::Upstream { source };
        let http = Http::new(config.upstream.timeouts()).map_err(failed)?;
        let client = OpenAi::new(http, &server.base(), None, Prefill::default()).map_err(failed)?;
        let drive = Drive {
            backend: &Retrying::new(client, config.upstream.retry_policy()),
            request: &request,
            counter: &counter.of_requests(&found, None),
            plan: &config.budget.plan_options(&found.model),
            deadline: None,
            most_answer_bytes: runs::MOST_ANSWER_BYTES,
            live: false,
        };
        let driven = complete(&mut run, &drive, &mut observer).await;
        driven.map_err(|source| Failure::Run { source })?;
        Ok::<_, Failure>(server.behaved())
    })?;
    let outcome = run.outcome().cloned();
    let outcome = outcome.expect("a run that was driven has ended");
    observer.end(&outcome)?;
    Ok(DemoRun {
        document,
        seed,
        calls: observer.into_calls(behaviours),
        result: run.text().to_owned(),
        outcome,
    })
}

/// The tokens of one answer: enough for the longest new part and the overlap before it.
const ANSWER_TOKENS: u64 = 4096;

fn script(document: &str, seed: u64) -> Script {
    const PIECES: usize = 6;
    const SHORTEST: usize = 12;
    const LONGEST: usize = 8000;
    let most = (document.len() / PIECES).clamp(SHORTEST, LONGEST);
    // A very short document is still cut once.
    let most = most.min(document.len() / 2);
    let behaviours = Behaviour::ALL.into_iter();
    Script {
        document: document.to_owned(),
        breath: (most / 2, most),
        // Foreign JSON could be a valid continuation of a document that has hardly begun, and
        // remembered blanks need prefill.
        behaviours: behaviours
            .filter(|behaviour| {
                !matches!(
                    behaviour,
                    Behaviour::SendsForeignJson | Behaviour::RemembersBlanks
                )
            })
            .collect(),
        seed,
    }
}

fn options(script: &Script) -> ContinuationOptions {
    let pieces = script.document.len() / script.breath.0.max(1);
    ContinuationOptions {
        // The result must be identical to the byte, so the repeated text must be exact.
        strategies: vec![Strategy::Overlap],
        // Up to half of the answers may add nothing.
        max_iterations: u32::try_from(2 * pieces + 50).unwrap_or(u32::MAX),
        // With very many answers a percentage does not rise each time.
        kpi: if pieces > 50 { Kpi::Off } else { Kpi::Ask },
        ..ContinuationOptions::default()
    }
}

fn request() -> Result<ChatRequest, Failure> {
    let request = json!({
        "model": MODEL,
        "max_tokens": ANSWER_TOKENS,
        "messages": [{ "role": "user", "content": "Write the whole document, as JSON." }],
    });
    ChatRequest::from_value(request).map_err(|source| Failure::Request {
        name: "the prompt".into(),
        source,
    })
}
