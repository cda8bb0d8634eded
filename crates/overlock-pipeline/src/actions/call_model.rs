//! `call_model`: calls a model with a prompt that fits its window, and completes the answer.

use indexmap::IndexMap;
use overlock_budget::{Extras, Memory, Plan, PlanError, plan};
use overlock_llm::wire::WireRequest;
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{
    Continuation, ContinuationOptions, Drive, DriveError, Outcome, StopCause, TextContinuation,
    TextOptions, age_in_days, complete, complete_text, first_text, name_for_api,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ActionError, KeyPath, Next, Perform, Target, Work, exclusive};
use crate::engine::ModelClient;
use crate::file::{Findings, Prompts};
use crate::source::Source;
use overlock_runs::State;
use overlock_runs::{ASKED, StoredAnswer};

/// Calls a model.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct CallModel {
    /// The system prompt.
    pub prompt: Option<String>,
    /// The file with the system prompt: `<settings.prompts_dir>/<prompt_key>.txt`.
    #[schemars(length(min = 1))]
    pub prompt_key: Option<String>,
    /// The parts of the user message, in order; by default the question.
    #[schemars(extend("minProperties" = 1))]
    pub user_parts: Option<IndexMap<String, UserPart>>,
    /// The maximum tokens of an answer.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// The nucleus sampling threshold.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1.0))]
    pub top_p: Option<f64>,
    /// The model, unless it is the one in the settings.
    #[schemars(length(min = 1))]
    pub model: Option<String>,
    /// Whether the answer is a text or one JSON document.
    #[serde(default)]
    pub response: ResponseKind,
    /// Whether to continue a text that was cut off. A document is always continued.
    #[serde(default)]
    pub continue_text: bool,
}

/// A part of the user message.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct UserPart {
    /// The field of the state to include.
    #[schemars(length(min = 1))]
    pub source: String,
    /// The text around it; `{}` is replaced by the field.
    #[serde(default = "template")]
    pub template: String,
}

fn template() -> String {
    "{}\n\n".to_owned()
}

/// The kind of answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseKind {
    /// A text.
    #[default]
    Text,
    /// One JSON document, continued until it is complete.
    Json,
}

/// The messages of a call.
pub(crate) struct Messages<'a> {
    /// The messages, in their order.
    pub(crate) list: Value,
    /// The parts of the user message that are empty.
    empty: Vec<&'a str>,
}

/// The maximum size of one answer in bytes.
const MOST_ANSWER_BYTES: usize = 64 << 20;

/// The maximum number of calls for one text.
const MOST_PIECES: u32 = 50;

impl Perform for CallModel {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    fn sources(&self) -> Vec<(KeyPath, &str)> {
        let parts = self.user_parts.iter().flatten();
        parts
            .map(|(name, part)| {
                let path = ["user_parts", name, "source"].map(str::to_owned);
                (KeyPath(path.to_vec()), part.source.as_str())
            })
            .collect()
    }

    fn check(&self, findings: &mut Findings<'_>) {
        match (&self.prompt, &self.prompt_key) {
            (Some(_), Some(_)) => exclusive(findings, "prompt", "prompt_key"),
            (None, None) => findings.error(
                &KeyPath::of("action"),
                "the step has no prompt",
                "add `prompt: …`, or a `prompt_key` that names a file in the prompts folder",
            ),
            _ => {}
        }
        if self.continue_text && self.response == ResponseKind::Json {
            findings.error(
                &KeyPath::of("continue_text"),
                "JSON documents are always continued",
                "remove `continue_text`",
            );
        }
        for (name, part) in self.user_parts.iter().flatten() {
            if !part.template.contains("{}") {
                let path = ["user_parts", name, "template"].map(str::to_owned);
                findings.error(
                    &KeyPath(path.to_vec()),
                    "the template has no `{}`, so it would not include the field",
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
        let client = world
            .models
            .client(model)
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
        let planned = self.plan(&request, &client, work)?;
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
            backend: client.backend,
            request: &request,
            counter: &client.counter,
            plan: &client.plan,
            deadline: None,
            most_answer_bytes: MOST_ANSWER_BYTES,
            live: false,
        };
        let answer = match self.response {
            ResponseKind::Text => self.text(&drive, work).await,
            ResponseKind::Json => document(&drive, client.continuation.clone(), work).await,
        };
        // A call without an answer uses no tokens.
        if !work.answers.is_empty() {
            work.note("input_tokens", planned.input_token_count);
        }
        work.state.last_model_response = Some(answer?);
        Ok(Next::Onward)
    }
}

impl CallModel {
    /// The system prompt, if it is known before the run.
    pub(crate) fn fixed<'a>(&'a self, prompts: &'a Prompts) -> Option<&'a str> {
        match (&self.prompt, &self.prompt_key) {
            (Some(prompt), _) => Some(prompt),
            (None, Some(key)) => prompts.get(key).map(String::as_str),
            (None, None) => None,
        }
    }

    /// Whether a field is a part of the user message.
    pub(crate) fn shows(&self, field: &str) -> bool {
        let mut parts = self.user_parts.iter().flatten();
        parts.any(|(_, part)| Source::read(&part.source).is_ok_and(|source| source.is(field)))
    }

    /// The messages before planning.
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
            messages.extend(state.history.iter().map(|turn| {
                let mut message = json!({ "role": turn.role.name() });
                if let Some(name) = &turn.name {
                    message["name"] = name_for_api(name).into();
                }
                message["content"] = turn.content.as_str().into();
                message
            }));
        }
        let (message, empty) = self.user_message(state)?;
        messages.push(json!({ "role": "user", "content": message }));
        Ok(Messages {
            list: messages.into(),
            empty,
        })
    }

    /// The request with these messages.
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

    /// The joined parts that are not empty, and the names of the empty ones.
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

    /// Plans the request into the window.
    fn plan(
        &self,
        request: &ChatRequest,
        client: &ModelClient<'_>,
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
        let mut options = client.plan.clone();
        // Memories were filtered when they were loaded.
        options.memory.importance = 0.0;
        options.memory.days = f64::INFINITY;
        options.memory.count = memories.len();
        plan(request, &extras, &client.counter, &options).map_err(|source| window(source, request))
    }

    async fn text(&self, drive: &Drive<'_>, work: &mut Work<'_>) -> Result<String, ActionError> {
        // One continuation at a time, so that each is recorded before the next call.
        let options = TextOptions {
            max_iterations: 2,
            max_output_tokens: u64::MAX,
            // Each continuation starts anew and would forget that the model rejects prefills.
            can_prefill: false,
        };
        let mut run = match work.answers.text() {
            Some((text, tokens, is_cut)) if is_cut => TextContinuation::new(text, tokens, options),
            Some((text, ..)) => return Ok(text),
            None => {
                let (run, end) = first_text(drive, options, &mut work.answers)
                    .await
                    .map_err(|cause| call_error(cause, drive))?;
                let usage = work.answers.usage_of_call(&end, run.output_tokens());
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
            let cause = complete_text(&mut run, drive, &mut work.answers)
                .await
                .map_err(drive_error)?;
            if let Some(cause) = cause {
                return Err(call_error(cause, drive));
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

/// Continues the document until it is complete.
async fn document(
    drive: &Drive<'_>,
    options: ContinuationOptions,
    work: &mut Work<'_>,
) -> Result<String, ActionError> {
    let stored = work.answers.steps();
    let mut run = Continuation::resume(options, stored.iter())
        .map_err(|error| ActionError::Incomplete(error.to_string()))?;
    if !stored.is_empty() {
        run.try_again();
    }
    let cause = complete(&mut run, drive, &mut work.answers)
        .await
        .map_err(drive_error)?;
    if let Some(results) = work.answers.learnt.take() {
        work.world.models.learnt(&work.answers.model, &results);
    }
    work.note("output_tokens", run.output_tokens());
    match (run.outcome(), cause) {
        (Some(Outcome::Complete), _) => Ok(run.text().to_owned()),
        (_, Some(cause)) => Err(call_error(cause, drive)),
        (outcome, None) => {
            let reason = outcome.and_then(Outcome::reason);
            let reason =
                reason.map_or_else(|| "it stopped".to_owned(), |reason| reason.to_string());
            Err(ActionError::Incomplete(reason))
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

fn window(source: PlanError, request: &dyn WireRequest) -> ActionError {
    ActionError::Window {
        model: request.model().unwrap_or_default().to_owned(),
        source,
    }
}

fn call_error(cause: StopCause, drive: &Drive<'_>) -> ActionError {
    match cause {
        StopCause::Backend { error, .. } => ActionError::Model(error),
        StopCause::Window(overlock_llm::PromptError::Window(source)) => {
            window(source, drive.request)
        }
        StopCause::Window(error) => ActionError::Request(error.to_string()),
    }
}

fn drive_error(error: DriveError) -> ActionError {
    match error {
        DriveError::Observe(source) => ActionError::Unrecorded(source),
        other => ActionError::Incomplete(other.to_string()),
    }
}
