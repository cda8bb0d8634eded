//! `call_model`: asks a model, with a prompt that fits and for an answer that is whole.

use indexmap::IndexMap;
use overlock_budget::{Extras, Memory, Plan, PlanError, plan};
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{
    Continuation, ContinuationOptions, Drive, DriveError, Outcome, StopCause, TextContinuation,
    TextOptions, age_in_days, complete, complete_text, first_text, persona_options,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ActionError, Next, Perform, Place, Target, Work, exclusive};
use crate::engine::Speaker;
use crate::file::{Findings, Prompts};
use crate::source::Source;
use overlock_runs::State;
use overlock_runs::{ASKED, StoredAnswer};

/// Asks a model.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct CallModel {
    /// What the model is told before anything else.
    pub prompt: Option<String>,
    /// The file with it: `<settings.prompts_dir>/<prompt_key>.txt`.
    #[schemars(length(min = 1))]
    pub prompt_key: Option<String>,
    /// What the user's message is made of, in this order; the question, if nothing is said.
    #[schemars(extend("minProperties" = 1))]
    pub user_parts: Option<IndexMap<String, UserPart>>,
    /// The tokens that an answer may have.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u64>,
    /// How freely the model chooses its words.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// From how many of the likeliest words it chooses.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1.0))]
    pub top_p: Option<f64>,
    /// The model, if it is not that of the settings.
    #[schemars(length(min = 1))]
    pub model: Option<String>,
    /// Whether the answer is a text or one JSON document.
    #[serde(default)]
    pub response: ResponseKind,
    /// Whether a text that was cut off is gone on with. A document always is.
    #[serde(default)]
    pub continue_text: bool,
}

/// A part of the user's message.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct UserPart {
    /// The field of the state that it shows.
    #[schemars(length(min = 1))]
    pub source: String,
    /// How: `{}` stands for the field.
    #[serde(default = "template")]
    pub template: String,
}

fn template() -> String {
    "{}\n\n".to_owned()
}

/// What an answer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseKind {
    /// A text.
    #[default]
    Text,
    /// One JSON document, asked for until it is whole.
    Json,
}

/// What a model is asked with.
pub(crate) struct Messages<'a> {
    /// The messages, in their order.
    pub(crate) list: Value,
    /// The parts of the user's message whose fields hold nothing.
    empty: Vec<&'a str>,
}

/// Of one answer no more than this is read.
const MOST_ANSWER_BYTES: usize = 64 << 20;

/// A text is gone on with so often at most.
const MOST_PIECES: u32 = 50;

impl Perform for CallModel {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    fn sources(&self) -> Vec<(Place, &str)> {
        let parts = self.user_parts.iter().flatten();
        parts
            .map(|(name, part)| {
                let place = ["user_parts", name, "source"].map(str::to_owned);
                (Place(place.to_vec()), part.source.as_str())
            })
            .collect()
    }

    fn check(&self, findings: &mut Findings<'_>) {
        match (&self.prompt, &self.prompt_key) {
            (Some(_), Some(_)) => exclusive(findings, "prompt", "prompt_key"),
            (None, None) => findings.error(
                &Place::of("action"),
                "the model is told nothing",
                "give the step a `prompt: …`, or a `prompt_key` that names a file in the folder of prompts",
            ),
            _ => {}
        }
        if self.continue_text && self.response == ResponseKind::Json {
            findings.error(
                &Place::of("continue_text"),
                "a document is always gone on with",
                "leave `continue_text` out",
            );
        }
        for (name, part) in self.user_parts.iter().flatten() {
            if !part.template.contains("{}") {
                let place = ["user_parts", name, "template"].map(str::to_owned);
                findings.error(
                    &Place(place.to_vec()),
                    "the template has no `{}`, so the field would not be in the prompt",
                    "put `{}` where the field belongs",
                );
            }
        }
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let model = self.model.as_deref().or(work.settings.model.as_deref());
        let model = model.ok_or_else(|| ActionError::MissingSetting {
            name: "model".to_owned(),
        })?;
        let world = work.world;
        let speaker = world
            .models
            .speaker(model)
            .map_err(|reason| ActionError::NoModel {
                model: model.to_owned(),
                reason,
            })?;
        work.note("model", model);
        model.clone_into(&mut work.answers.model);
        let messages = self.messages(work.world.prompts, work.state)?;
        if !messages.empty.is_empty() {
            work.note("empty_parts", &messages.empty);
        }
        let request = self.request(model, &messages.list)?;
        let planned = self.plan(&request, &speaker, work)?;
        note_plan(&planned, work);
        work.answers.asking = planned.input_token_count;
        work.answers.window = planned.window;
        let request = request.rewrite(&planned);
        if request["messages"] != messages.list {
            work.note(ASKED, &request["messages"]);
        }
        let request = ChatRequest::from_value(request);
        let request = request.map_err(|error| ActionError::Request(error.to_string()))?;
        let drive = Drive {
            backend: speaker.backend,
            request: &request,
            counter: &speaker.counter,
            plan: &speaker.plan,
            deadline: None,
            most_answer_bytes: MOST_ANSWER_BYTES,
            live: false,
        };
        let answer = match self.response {
            ResponseKind::Text => self.text(&drive, work).await,
            ResponseKind::Json => document(&drive, speaker.continuation.clone(), work).await,
        };
        // Of whom nobody answered, nothing was taken.
        if !work.answers.is_empty() {
            work.note("input_tokens", planned.input_token_count);
        }
        work.state.last_model_response = Some(answer?);
        Ok(Next::Onward)
    }
}

impl CallModel {
    /// What goes before everything else, as far as it is known before a run.
    pub(crate) fn fixed<'a>(&'a self, prompts: &'a Prompts) -> Option<&'a str> {
        match (&self.prompt, &self.prompt_key) {
            (Some(prompt), _) => Some(prompt),
            (None, Some(key)) => prompts.get(key).map(String::as_str),
            (None, None) => None,
        }
    }

    /// Whether a field is shown as a part of the user's message.
    pub(crate) fn shows(&self, field: &str) -> bool {
        let mut parts = self.user_parts.iter().flatten();
        parts.any(|(_, part)| Source::read(&part.source).is_ok_and(|source| source.is(field)))
    }

    /// All that wants to be in the request.
    pub(crate) fn messages(
        &self,
        prompts: &Prompts,
        state: &State,
    ) -> Result<Messages<'_>, ActionError> {
        let prompt = self.fixed(prompts).unwrap_or_default();
        let mut messages = Vec::new();
        if !prompt.trim().is_empty() {
            messages.push(json!({ "role": "system", "content": prompt }));
        }
        if !self.shows("history") {
            let turns = state.history.iter();
            messages.extend(
                turns.map(|turn| json!({ "role": turn.role.name(), "content": turn.content })),
            );
        }
        let (message, empty) = self.user_message(state)?;
        messages.push(json!({ "role": "user", "content": message }));
        Ok(Messages {
            list: messages.into(),
            empty,
        })
    }

    /// The request with these.
    fn request(&self, model: &str, messages: &Value) -> Result<ChatRequest, ActionError> {
        let mut request = json!({ "model": model, "messages": messages });
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                request[key] = value;
            }
        };
        set("max_tokens", self.max_output_tokens.map(Value::from));
        set("temperature", self.temperature.map(Value::from));
        set("top_p", self.top_p.map(Value::from));
        ChatRequest::from_value(request).map_err(|error| ActionError::Request(error.to_string()))
    }

    /// The parts whose fields hold something, one after the other, and the names of the others.
    fn user_message(&self, state: &State) -> Result<(String, Vec<&str>), ActionError> {
        let Some(parts) = &self.user_parts else {
            return Ok((state.user_question.clone(), Vec::new()));
        };
        let mut message = String::new();
        let mut empty = Vec::new();
        for (name, part) in parts {
            let text = Source::read(&part.source)?.text(state)?;
            if text.trim().is_empty() {
                empty.push(name.as_str());
                continue;
            }
            message.push_str(&part.template.replace("{}", &text));
        }
        Ok((message.trim_end().to_owned(), empty))
    }

    /// What of it goes into the window.
    fn plan(
        &self,
        request: &ChatRequest,
        speaker: &Speaker<'_>,
        work: &Work<'_>,
    ) -> Result<Plan, ActionError> {
        let now = work.world.began_at;
        let shown = self.shows("memories");
        let memories = work.state.memories.iter().filter(|_| !shown);
        let memories: Vec<Memory<'_>> = memories
            .map(|memory| Memory {
                text: &memory.text,
                importance: memory.importance,
                age_days: age_in_days(memory.at, now),
            })
            .collect();
        let extras = Extras {
            memories: &memories,
            ..Extras::default()
        };
        let mut options = persona_options(&speaker.plan);
        // Which memories are worth telling was decided when they were loaded.
        options.memory.importance = 0.0;
        options.memory.days = f64::INFINITY;
        options.memory.count = memories.len();
        plan(request, &extras, &speaker.counter, &options).map_err(|source| window(source, request))
    }

    async fn text(&self, drive: &Drive<'_>, work: &mut Work<'_>) -> Result<String, ActionError> {
        // One piece more at a time, so that each is kept before the next is asked for.
        let options = TextOptions {
            max_iterations: 2,
            max_output_tokens: u64::MAX,
            // A refusal would be forgotten with every piece.
            can_prefill: false,
        };
        let mut run = match work.answers.text() {
            Some((text, tokens, is_cut)) if is_cut => TextContinuation::new(text, tokens, options),
            Some((text, ..)) => return Ok(text),
            None => {
                let (run, end) = first_text(drive, options, &mut work.answers)
                    .await
                    .map_err(|obstacle| stopped(obstacle, drive))?;
                let usage = work.answers.took(&end, run.output_tokens());
                work.answers
                    .keep(StoredAnswer::of_text(&run), usage)
                    .map_err(ActionError::Store)?;
                work.note("finish", &end.finish);
                run
            }
        };
        let mut calls = 1;
        while self.continue_text && run.is_cut() && calls < MOST_PIECES {
            let (text, tokens) = (run.text().to_owned(), run.output_tokens());
            let length = text.len();
            run = TextContinuation::new(text, tokens, options);
            let obstacle = complete_text(&mut run, drive, &mut work.answers)
                .await
                .map_err(driven)?;
            if let Some(obstacle) = obstacle {
                return Err(stopped(obstacle, drive));
            }
            calls += 1;
            let used = work.answers.last;
            work.answers
                .keep(StoredAnswer::of_text(&run), used)
                .map_err(ActionError::Store)?;
            if run.text().len() == length {
                break;
            }
        }
        work.note("output_tokens", run.output_tokens());
        if run.is_cut() {
            work.warn("the answer was cut off at its limit");
        }
        Ok(run.text().to_owned())
    }
}

/// Asks until the document is whole.
async fn document(
    drive: &Drive<'_>,
    options: ContinuationOptions,
    work: &mut Work<'_>,
) -> Result<String, ActionError> {
    let stored = work.answers.steps();
    let mut run = Continuation::resume(options, stored.iter())
        .map_err(|error| ActionError::NotWhole(error.to_string()))?;
    if !stored.is_empty() {
        run.try_again();
    }
    let obstacle = complete(&mut run, drive, &mut work.answers)
        .await
        .map_err(driven)?;
    if let Some(results) = work.answers.learnt.take() {
        work.world.models.learnt(&work.answers.model, &results);
    }
    work.note("output_tokens", run.output_tokens());
    match (run.outcome(), obstacle) {
        (Some(Outcome::Complete), _) => Ok(run.text().to_owned()),
        (_, Some(obstacle)) => Err(stopped(obstacle, drive)),
        (outcome, None) => {
            let reason = outcome.and_then(Outcome::reason);
            let reason =
                reason.map_or_else(|| "it stopped".to_owned(), |reason| reason.to_string());
            Err(ActionError::NotWhole(reason))
        }
    }
}

fn note_plan(plan: &Plan, work: &mut Work<'_>) {
    let parts = plan
        .parts
        .iter()
        .filter(|part| part.asked > 0 || part.given > 0);
    let parts: Vec<Value> = parts
        .map(|part| json!({ "part": part.part.name(), "asked": part.asked, "given": part.given }))
        .collect();
    work.note(
        "window",
        json!({
            "tokens": plan.window,
            "input_token_count": plan.input_token_count,
            "adjusted_max_tokens": plan.adjusted_max_tokens,
            "requested": plan.requested,
            "margin": plan.margin.tokens,
            "counter": plan.counter,
            "provenance": plan.provenance.name(),
            "message_count": plan.message_count,
            "memory_count": plan.memory_count,
            "dropped_messages": plan.dropped_messages.len(),
            "parts": parts,
        }),
    );
}

fn window(source: PlanError, request: &ChatRequest) -> ActionError {
    ActionError::Window {
        model: request.model().unwrap_or_default().to_owned(),
        source,
    }
}

fn stopped(obstacle: StopCause, drive: &Drive<'_>) -> ActionError {
    match obstacle {
        StopCause::Backend { error, .. } => ActionError::Model(error),
        StopCause::Window(overlock_llm::PromptError::Window(source)) => {
            window(source, drive.request)
        }
        StopCause::Window(error) => ActionError::Request(error.to_string()),
    }
}

fn driven(error: DriveError) -> ActionError {
    match error {
        DriveError::Observe(source) => ActionError::Unrecorded(source),
        other => ActionError::NotWhole(other.to_string()),
    }
}
