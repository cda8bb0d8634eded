//! Shows the product at work with nothing set up: a model that is cut off again and
//! again, and a document that comes out whole.
//!
//! Only the model is played. [`play`] has a scripted one answer on this machine's own address,
//! and asks it over HTTP as `overlock complete` asks any other; what comes of it is a
//! [`Story`], and [`tell`](Teller::tell) tells it.

mod check;
mod listen;
mod tell;

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
pub(crate) use check::{Measures, whole_document};
use listen::Listener;
pub(crate) use tell::Teller;

/// The document that is played when no other is given.
pub(crate) const REPORT: &str = include_str!("report.json");

/// The name of the model. None is known by it, so that it gets the window of an unknown one.
pub(crate) const MODEL: &str = "overlock-demo";

/// What happened from the first call to the last.
pub(crate) struct Story<'a> {
    pub(crate) document: &'a str,
    pub(crate) seed: u64,
    pub(crate) calls: Vec<Call>,
    /// The document as it was stitched together.
    pub(crate) result: String,
    pub(crate) outcome: Outcome,
}

/// One call of the model, and what became of its answer.
pub(crate) struct Call {
    pub(crate) ask: NextCall,
    /// How the window was divided for it.
    pub(crate) plan: Plan,
    /// What the model did, which nobody but the script knows.
    pub(crate) behaviour: Behaviour,
    /// The answer as it came.
    pub(crate) text: String,
    /// Whether the server said that the model was cut off, rather than done.
    pub(crate) cut_off: bool,
    /// How it was joined; the first answer is the document.
    pub(crate) join: Join,
    /// How much of the document was there afterwards.
    pub(crate) base_len: usize,
    pub(crate) stop: Option<Stop>,
}

/// Where the document stood open after a call.
pub(crate) struct Stop {
    pub(crate) cut: Cut,
    /// What was open, as a trail.
    pub(crate) open: String,
    /// The last line of what has been delivered.
    pub(crate) delivered: Option<String>,
}

impl Story<'_> {
    pub(crate) fn is_identical(&self) -> bool {
        self.outcome == Outcome::Complete && self.result == self.document
    }
}

/// Has a model that is cut off write `document`, and stitches its answers. What happens is
/// recorded in the store, if there is one.
pub(crate) fn play<'a>(
    document: &'a str,
    seed: u64,
    store: Option<&dyn Store>,
) -> Result<Story<'a>, Failure> {
    let script = script(document, seed);
    let mut run = Continuation::new(options(&script));
    let request = request()?;
    let config = Config::default();
    let mut found = config.models().find(MODEL);
    if found.how == How::Default {
        // It is scripted, and takes what is assumed of those that nobody knows.
        found.model.window_source = WindowSource::Known;
    }
    let counter = Counter::for_model(MODEL, &found, &config)?;
    let mut listener = Listener::new(store, &found);
    listener.begin(&request, run.options())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let behaved = runtime.block_on(async {
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
        let driven = complete(&mut run, &drive, &mut listener).await;
        driven.map_err(|source| Failure::Run { source })?;
        Ok::<_, Failure>(server.behaved())
    })?;
    let outcome = run.outcome().cloned();
    let outcome = outcome.expect("a run that was driven has ended");
    listener.end(&outcome)?;
    Ok(Story {
        document,
        seed,
        calls: listener.into_calls(behaved),
        result: run.text().to_owned(),
        outcome,
    })
}

/// The tokens of one answer: enough for the longest breath, and for what is repeated before it.
const ANSWER_TOKENS: u64 = 4096;

fn script(document: &str, seed: u64) -> Script {
    const PIECES: usize = 6;
    const SHORTEST_BREATH: usize = 12;
    const LONGEST_BREATH: usize = 8000;
    let most = (document.len() / PIECES).clamp(SHORTEST_BREATH, LONGEST_BREATH);
    // A very short document is still cut once.
    let most = most.min(document.len() / 2);
    let behaviours = Behaviour::ALL.into_iter();
    Script {
        document: document.to_owned(),
        breath: (most / 2, most),
        // Where a document has hardly begun, foreign JSON could be the rest of it, and no blanks
        // can be remembered where nothing is put in the model's mouth.
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
        // Only what is repeated to the character comes out the same to the byte.
        ways: vec![Strategy::Overlap],
        // Half of the answers may bring nothing.
        max_iterations: u32::try_from(2 * pieces + 50).unwrap_or(u32::MAX),
        // A share of a hundred does not rise with every one of very many answers.
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
