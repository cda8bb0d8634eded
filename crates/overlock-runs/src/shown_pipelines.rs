//! Recorded pipeline runs, as they are shown.

use std::collections::BTreeMap;

use overlock_json::{Cut, Scanner};
use overlock_llm::{Step, StepResult, Usage};
use overlock_store::Run;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::cost::Pricing;
use crate::definitions::{Definitions, Graph};
use crate::pipelines::{Answered, PipelineOutcome, PipelineRun, StoredAnswer};
use crate::runs::{ListedRun, RunsError, Text};
use crate::state::State;
use crate::step::RecordedStep;
use crate::trace::TraceEvent;

/// One run of a pipeline.
#[derive(Debug, Serialize)]
pub struct ShownPipelineRun<'a> {
    /// The fields of a listed run.
    #[serde(flatten)]
    pub listed: ListedRun<'a>,
    /// The kind of run: `pipeline`.
    pub kind: &'static str,
    /// The pipeline file at the time of the run.
    pub definition: Definition,
    /// The user's question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// What it started with, except the file; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<PipelineRequest>,
    /// The graph of its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
    /// The step that failed, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What would help, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The state after its last step; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The events of its steps.
    pub trace: Vec<TraceEvent>,
    /// The model answers of an unfinished step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<UnfinishedStep>,
    /// The number of stored entries, from which a subscriber to its events continues.
    pub entries: u32,
    /// The command that resumes it, unless it is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
}

/// The model answers of an unfinished step. They are stored, so resuming does not repeat the calls.
#[derive(Debug, Serialize)]
pub struct UnfinishedStep {
    /// The step.
    pub step_id: String,
    /// The answers that extend a document.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RecordedStep>,
    /// The answers that extend a text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<Piece>,
    /// The usage of each answer.
    pub usage: Vec<Usage>,
}

impl UnfinishedStep {
    fn of(run: &PipelineRun, text: Text, definitions: &dyn Definitions) -> Option<Self> {
        let answered = run.unfinished();
        if answered.is_empty() {
            return None;
        }
        Some(Self {
            step_id: run.step_id(definitions)?,
            attempts: attempts(answered, text),
            pieces: pieces(answered, text),
            usage: answered.iter().map(|answered| answered.usage).collect(),
        })
    }
}

/// What a pipeline run started with.
#[derive(Debug, Serialize)]
pub struct PipelineRequest {
    /// The name of the pipeline.
    pub pipeline: String,
    /// The file that defines it.
    pub file: String,
    /// The settings given for this run.
    pub settings: Map<String, Value>,
    /// The prompt files that its steps name.
    pub prompts: BTreeMap<String, String>,
    /// The fields of the initial state that were set.
    pub state: Map<String, Value>,
}

/// The pipeline file of a run.
#[derive(Debug, Serialize)]
pub struct Definition {
    /// Its path.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// The keys of an event with text of a user or a model.
const TEXTS: [&str; 2] = ["query", "said"];

/// The key of an event shown only with its step, because it can be as long as a window.
const LONG: &str = "asked";

/// The state field whose changes are shown in the trace.
const SHOWN_CHANGE: &str = "context_blocks";

impl<'a> ShownPipelineRun<'a> {
    /// Shows a run; nothing if it is not a pipeline run.
    pub fn of(
        run: &'a Run,
        text: Text,
        definitions: &dyn Definitions,
    ) -> Option<Result<Self, RunsError>> {
        let pipeline_run = match read_pipeline_run(run)? {
            Ok(pipeline_run) => pipeline_run,
            Err(error) => return Some(Err(error)),
        };
        let outcome = run.summary.outcome.as_deref();
        let outcome = outcome.and_then(|outcome| serde_json::from_str(outcome).ok());
        let (step_id, error, hint) = match outcome {
            Some(PipelineOutcome::Failed {
                step_id,
                error,
                hint,
            }) => (Some(step_id), Some(error), hint),
            Some(PipelineOutcome::Cancelled { step_id }) => (Some(step_id), None, None),
            Some(PipelineOutcome::Complete) | None => (None, None, None),
        };
        let graph = definitions.graph(&pipeline_run.begun);
        let is_shown = text == Text::Shown;
        let listed = ListedRun::from(&run.summary);
        let listed = match listed.outcome {
            Some(_) => ListedRun {
                used: Some(pipeline_run.usage().models),
                ..listed
            },
            None => listed.so_far(pipeline_run.so_far(definitions)),
        };
        let begun = &pipeline_run.begun;
        let request = is_shown.then(|| PipelineRequest {
            pipeline: begun.name.clone(),
            file: begun.file.clone(),
            settings: begun.settings.clone(),
            prompts: begun.prompts.clone(),
            state: fields_set(&begun.state),
        });
        let unfinished = UnfinishedStep::of(&pipeline_run, text, definitions);
        let trace = pipeline_run.trace.into_iter().zip(pipeline_run.changes);
        let trace = trace.map(|(event, changed)| shown_event(event, changed, text));
        let trace = trace.collect();
        Some(Ok(Self {
            listed,
            kind: "pipeline",
            question: is_shown.then(|| pipeline_run.state.user_question.clone()),
            request,
            graph,
            definition: Definition {
                file: pipeline_run.begun.file,
                text: pipeline_run.begun.text,
            },
            step_id,
            error,
            hint,
            state: is_shown.then_some(pipeline_run.state),
            trace,
            unfinished,
            entries: pipeline_run.entries,
            resume: None,
        }))
    }
}

impl ShownPipelineRun<'_> {
    /// Adds the command that resumes it in this store; without a store, in the default one.
    #[must_use]
    pub fn resumed_in(mut self, store: Option<&str>) -> Self {
        let is_over = self.listed.outcome == Some(PipelineOutcome::Complete.name());
        let store = store.map_or(String::new(), |it| format!(" --store {}", quoted(it)));
        let command = format!("overlock run --resume {}{store}", self.listed.id);
        self.resume = Some(command).filter(|_| !is_over);
        self
    }

    /// Adds the cost of the run and of its steps.
    #[must_use]
    pub fn priced(mut self, pricing: &Pricing) -> Self {
        self.listed = self.listed.priced(pricing);
        for event in &mut self.trace {
            price(event, pricing);
        }
        self
    }
}

/// Quotes an argument for a shell, if necessary.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:@%+=,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Reads a pipeline run; nothing if it is another kind of run.
fn read_pipeline_run(run: &Run) -> Option<Result<PipelineRun, RunsError>> {
    match PipelineRun::read(run) {
        Err(RunsError::NotPipeline { .. }) => None,
        read => Some(read),
    }
}

/// The fields of a state that were set.
fn fields_set(state: &State) -> Map<String, Value> {
    let empty = json!(State::default());
    let Value::Object(mut fields) = json!(state) else {
        return Map::new();
    };
    fields.retain(|name, value| empty.get(name) != Some(value));
    fields
}

/// One step of a pipeline run, with the prompt and the answers of its model.
#[derive(Debug, Serialize)]
pub struct ShownStep {
    /// Its event.
    pub event: TraceEvent,
    /// The messages sent to the model, if it was called; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Value>,
    /// The answers that extend a document.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RecordedStep>,
    /// The answers that extend a text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<Piece>,
    /// The usage of each answer.
    pub usage: Vec<Usage>,
    /// The joined answer; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// One answer of a text that took several.
#[derive(Debug, Serialize)]
pub struct Piece {
    /// The text it added; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<String>,
    /// The length of that text in bytes.
    pub added_bytes: usize,
    /// Whether the text was still cut off after it.
    pub is_cut: bool,
}

impl ShownStep {
    /// The n-th step, counted from 1; nothing if the run has no such step or is no pipeline run.
    pub fn of(
        run: &Run,
        number: usize,
        text: Text,
        definitions: &dyn Definitions,
    ) -> Option<Result<Self, RunsError>> {
        let pipeline_run = match read_pipeline_run(run)? {
            Ok(pipeline_run) => pipeline_run,
            Err(error) => return Some(Err(error)),
        };
        let at = number.checked_sub(1)?;
        let event = pipeline_run.trace.get(at)?.clone();
        let answered = &pipeline_run.answered[at];
        let is_shown = text == Text::Shown;
        Some(Ok(Self {
            asked: (pipeline_run.asked(number, definitions)).filter(|_| is_shown),
            attempts: attempts(answered, text),
            pieces: pieces(answered, text),
            usage: answered.iter().map(|answered| answered.usage).collect(),
            answer: answer(answered, &pipeline_run.changes[at]).filter(|_| is_shown),
            event: shown_event(event, pipeline_run.changes[at].clone(), text),
        }))
    }

    /// Adds its cost.
    #[must_use]
    pub fn priced(mut self, pricing: &Pricing) -> Self {
        price(&mut self.event, pricing);
        self
    }
}

/// The answers that extend a document, each with the cut of the document after it.
fn attempts(answered: &[Answered], text: Text) -> Vec<RecordedStep> {
    let steps = answered
        .iter()
        .filter_map(|answered| match &answered.answer {
            StoredAnswer::Document(step) => Some(step.as_ref()),
            StoredAnswer::Text { .. } => None,
        });
    let steps: Vec<&Step> = steps.collect();
    let attempts = steps
        .iter()
        .zip(cuts(&steps))
        .map(|(step, cut)| RecordedStep {
            part: None,
            step: match text {
                Text::Shown => (*step).clone(),
                Text::LeftOut => step.without_text(),
            },
            budget: None,
            cut,
            at: None,
            plain_text: false,
            mended: None,
            reported: None,
            counted: None,
        });
    attempts.collect()
}

/// The cut of a document after each of its steps. There is none where the document is complete or
/// has not begun, nor from a step on that does not fit the steps before it.
fn cuts(steps: &[&Step]) -> Vec<Option<Cut>> {
    let mut offsets: Vec<usize> = Vec::with_capacity(steps.len());
    let mut least = usize::MAX;
    for step in steps.iter().rev() {
        offsets.push(least);
        if let StepResult::Grown { offset, .. } = &step.result {
            least = least.min(*offset);
        }
    }
    // The scanner reads each byte that no later step overwrites only once.
    let (mut settled, mut settled_len) = (Scanner::new(), 0);
    let mut document: Vec<u8> = Vec::new();
    let mut is_joined = true;
    let mut cuts = Vec::with_capacity(steps.len());
    for (step, kept_later) in steps.iter().zip(offsets.into_iter().rev()) {
        if let StepResult::Grown { offset, added, .. } = &step.result {
            is_joined &= *offset <= document.len();
            if is_joined {
                document.truncate(*offset);
                document.extend_from_slice(added.as_bytes());
            }
        }
        if !is_joined || document.is_empty() {
            cuts.push(None);
            continue;
        }
        let len = kept_later.min(document.len());
        settled.feed(&document[settled_len..len]);
        settled_len = len;
        let mut whole = settled.clone();
        whole.feed(&document[settled_len..]);
        cuts.push(whole.cut());
    }
    cuts
}

/// The answers that extend a text.
fn pieces(answered: &[Answered], text: Text) -> Vec<Piece> {
    let mut before = 0;
    let mut pieces = Vec::new();
    for answered in answered {
        let StoredAnswer::Text {
            text: whole,
            is_cut,
            ..
        } = &answered.answer
        else {
            continue;
        };
        let added = whole.get(before..).unwrap_or_default();
        before = whole.len();
        pieces.push(Piece {
            added: (text == Text::Shown).then(|| added.to_owned()),
            added_bytes: added.len(),
            is_cut: *is_cut,
        });
    }
    pieces
}

/// The answer of a step, or the text so far if it failed.
fn answer(answered: &[Answered], changed: &Map<String, Value>) -> Option<String> {
    let last = answered.last()?;
    match changed.get("last_model_response") {
        Some(Value::String(text)) => Some(text.clone()),
        _ => match &last.answer {
            StoredAnswer::Text { text, .. } => Some(text.clone()),
            StoredAnswer::Document(_) => None,
        },
    }
}

/// Adds the cost of a step's calls, if it is known.
pub fn price(event: &mut TraceEvent, pricing: &Pricing) {
    let model = event.get("model").and_then(Value::as_str);
    let usage = event.get("usage").map(Usage::deserialize);
    let (Some(model), Some(Ok(usage))) = (model, usage) else {
        return;
    };
    if let Some(cost) = pricing.of([(model, usage)]) {
        event.insert("cost".to_owned(), json!(cost));
    }
}

/// The event of a step with the changes shown in a trace, or without any text.
pub fn shown_event(
    mut event: TraceEvent,
    mut changed: Map<String, Value>,
    text: Text,
) -> TraceEvent {
    event.shift_remove(LONG);
    match text {
        Text::Shown => {
            changed.retain(|field, _| field == SHOWN_CHANGE);
            if !changed.is_empty() {
                event.insert("changed".to_owned(), Value::Object(changed));
            }
        }
        Text::LeftOut => event.retain(|key, _| !TEXTS.contains(&key.as_str())),
    }
    event
}

#[cfg(test)]
mod tests {
    use overlock_json::PartialDocument;
    use overlock_llm::{Continuation, ContinuationOptions, StepEnd, TextContinuation};

    use super::*;

    fn step(iteration: u32, at: usize, added: &str) -> Step {
        let mut step = TextContinuation::first_step(added, 1, StepEnd::default());
        step.iteration = iteration;
        if let StepResult::Grown { offset, .. } = &mut step.result {
            *offset = at;
        }
        step
    }

    #[test]
    fn quotes_a_store_address_for_a_shell() {
        for (word, written) in [
            ("sqlite:///var/lib/runs.db", "sqlite:///var/lib/runs.db"),
            (
                "sqlite:///my runs/it's.db",
                r"'sqlite:///my runs/it'\''s.db'",
            ),
            ("postgres://u@h/d?schema=a", "'postgres://u@h/d?schema=a'"),
        ] {
            assert_eq!(quoted(word), written);
        }
    }

    #[test]
    fn the_cut_after_each_step_is_that_of_the_steps_so_far() {
        let steps = [
            step(1, 0, r#"{"ports": ["Oslo", "Ber"#),
            step(2, 19, r#""Bergen", "Hull"#),
            step(3, 34, r#""], "count""#),
            step(4, 45, ": 3}"),
        ];
        let steps: Vec<&Step> = steps.iter().collect();
        let cuts = cuts(&steps);
        for (at, cut) in cuts.iter().enumerate() {
            let so_far = steps[..=at].iter().copied();
            let run = Continuation::resume(ContinuationOptions::default(), so_far);
            let run = run.expect("they are of a run");
            assert_eq!(
                *cut,
                run.base().and_then(PartialDocument::cut),
                "after step {at}"
            );
        }
        assert_eq!(cuts.last(), Some(&None), "it is whole");
    }

    #[test]
    fn a_step_that_does_not_fit_has_no_cut() {
        let steps = [step(1, 0, r#"{"a": 1"#), step(2, 99, "}")];
        let steps: Vec<&Step> = steps.iter().collect();
        let cuts = cuts(&steps);
        assert!(cuts[0].is_some() && cuts[1].is_none(), "{cuts:?}");
    }
}
