//! Recorded runs of pipelines, as they are shown.

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
    /// What a list shows of it.
    #[serde(flatten)]
    pub listed: ListedRun<'a>,
    /// What kind of run it is: `pipeline`.
    pub kind: &'static str,
    /// The file it was read from, as it was then.
    pub definition: Definition,
    /// What the user asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// All that it was begun with, besides the file; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<PipelineRequest>,
    /// How its steps lead on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
    /// The step that failed, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    /// Why it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What would help, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the run knew after its last step; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// What its steps told.
    pub trace: Vec<TraceEvent>,
    /// What models have answered in a step that is not done, if they have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<UnfinishedStep>,
    /// How many things are recorded of it: events up to that number are in what is told here.
    pub entries: u32,
    /// The command that goes on with it, unless it came to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
}

/// What models have answered in a step that is not done: it is kept, and nobody is asked for it
/// again.
#[derive(Debug, Serialize)]
pub struct UnfinishedStep {
    /// The step.
    pub step_id: String,
    /// What each answer did for the document, if one was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RecordedStep>,
    /// What each answer added to the text, if one was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<Piece>,
    /// What each answer took.
    pub usage: Vec<Usage>,
}

impl UnfinishedStep {
    fn of(taken: &PipelineRun, text: Text, definitions: &dyn Definitions) -> Option<Self> {
        let answered = taken.unfinished();
        if answered.is_empty() {
            return None;
        }
        Some(Self {
            step_id: taken.step_id(definitions)?,
            attempts: attempts(answered, text),
            pieces: pieces(answered, text),
            usage: answered.iter().map(|answered| answered.usage).collect(),
        })
    }
}

/// What a run of a pipeline was begun with.
#[derive(Debug, Serialize)]
pub struct PipelineRequest {
    /// What the pipeline is called.
    pub pipeline: String,
    /// The file it was read from.
    pub file: String,
    /// The settings that were set for this run.
    pub settings: Map<String, Value>,
    /// The prompts that its steps name.
    pub prompts: BTreeMap<String, String>,
    /// What the run knew at first, as far as that was anything.
    pub state: Map<String, Value>,
}

/// A pipeline as it was run.
#[derive(Debug, Serialize)]
pub struct Definition {
    /// The file it was read from.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// What of an event is in the words of a user or of a model.
const TEXTS: [&str; 2] = ["query", "said"];

/// What of an event is told with its step only: it may be as long as a window.
const LONG: &str = "asked";

/// What of the state a reader of the trace wants to see change.
const SHOWN_CHANGE: &str = "context_blocks";

impl<'a> ShownPipelineRun<'a> {
    /// The run, if it is one of a pipeline.
    pub fn of(
        run: &'a Run,
        text: Text,
        definitions: &dyn Definitions,
    ) -> Option<Result<Self, RunsError>> {
        PipelineRun::pipeline_name(&run.summary.options)?;
        let taken = match taken(run)? {
            Ok(taken) => taken,
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
        let graph = definitions.graph(&taken.begun);
        let is_shown = text == Text::Shown;
        let listed = ListedRun::from(&run.summary);
        let listed = match listed.outcome {
            Some(_) => ListedRun {
                used: Some(taken.took().models),
                ..listed
            },
            None => listed.so_far(taken.so_far(definitions)),
        };
        let request = is_shown.then(|| PipelineRequest {
            pipeline: taken.begun.name.clone(),
            file: taken.begun.file.clone(),
            settings: taken.begun.settings.clone(),
            prompts: taken.begun.prompts.clone().into_iter().collect(),
            state: what_is_there(&taken.begun.state),
        });
        let unfinished = UnfinishedStep::of(&taken, text, definitions);
        let trace = taken.trace.into_iter().zip(taken.changes);
        let trace = trace.map(|(event, changed)| shown_event(event, changed, text));
        let trace = trace.collect();
        Some(Ok(Self {
            listed,
            kind: "pipeline",
            question: is_shown.then(|| taken.state.user_question.clone()),
            request,
            graph,
            definition: Definition {
                file: taken.begun.file,
                text: taken.begun.text,
            },
            step_id,
            error,
            hint,
            state: is_shown.then_some(taken.state),
            trace,
            unfinished,
            entries: taken.entries,
            resume: None,
        }))
    }
}

impl ShownPipelineRun<'_> {
    /// The same run with the command that goes on with it in this store; without one it is where
    /// commands look by themselves.
    #[must_use]
    pub fn resumed_in(mut self, store: Option<&str>) -> Self {
        let is_over = self.listed.outcome == Some(PipelineOutcome::Complete.name());
        let store = store.map_or(String::new(), |it| format!(" --store {}", quoted(it)));
        let command = format!("overlock run --resume {}{store}", self.listed.id);
        self.resume = Some(command).filter(|_| !is_over);
        self
    }

    /// The same run with what it cost, and what each of its steps did.
    #[must_use]
    pub fn priced(mut self, pricing: &Pricing) -> Self {
        self.listed = self.listed.priced(pricing);
        for event in &mut self.trace {
            price(event, pricing);
        }
        self
    }
}

/// A word of a command as a shell has to be given it.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:@%+=,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A run of a pipeline as it was recorded; nothing if it is another kind of run.
fn taken(run: &Run) -> Option<Result<PipelineRun, RunsError>> {
    match PipelineRun::read(run) {
        Err(RunsError::NotPipeline { .. }) => None,
        read => Some(read),
    }
}

/// The fields of a state that hold anything.
fn what_is_there(state: &State) -> Map<String, Value> {
    let empty = json!(State::default());
    let Value::Object(mut fields) = json!(state) else {
        return Map::new();
    };
    fields.retain(|name, value| empty.get(name) != Some(value));
    fields
}

/// One step of a run of a pipeline, with what a model was asked in it and what it answered.
#[derive(Debug, Serialize)]
pub struct ShownStep {
    /// What it told.
    pub event: TraceEvent,
    /// The messages that the model was asked with, if it was; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Value>,
    /// What each answer did for the document, if one was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RecordedStep>,
    /// What each answer added to the text, if one was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<Piece>,
    /// What each answer took.
    pub usage: Vec<Usage>,
    /// What came of all answers; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// A piece of a text that came in several.
#[derive(Debug, Serialize)]
pub struct Piece {
    /// What it added; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<String>,
    /// How many bytes that are.
    pub added_bytes: usize,
    /// Whether the provider said that there is more.
    pub is_cut: bool,
}

impl ShownStep {
    /// The n-th step of a run, counted from 1; nothing if it has none of a pipeline.
    pub fn of(
        run: &Run,
        number: usize,
        text: Text,
        definitions: &dyn Definitions,
    ) -> Option<Result<Self, RunsError>> {
        let taken = match taken(run)? {
            Ok(taken) => taken,
            Err(error) => return Some(Err(error)),
        };
        let at = number.checked_sub(1)?;
        let event = taken.trace.get(at)?.clone();
        let answered = &taken.answered[at];
        let is_shown = text == Text::Shown;
        Some(Ok(Self {
            asked: taken.asked(number, definitions).filter(|_| is_shown),
            attempts: attempts(answered, text),
            pieces: pieces(answered, text),
            usage: answered.iter().map(|answered| answered.usage).collect(),
            answer: answer(answered, &taken.changes[at]).filter(|_| is_shown),
            event: shown_event(event, taken.changes[at].clone(), text),
        }))
    }
}

impl ShownStep {
    /// The same step with what it cost.
    #[must_use]
    pub fn priced(mut self, pricing: &Pricing) -> Self {
        price(&mut self.event, pricing);
        self
    }
}

/// The answers on the way to a document, each with where the document stood after it.
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
            told: None,
            counted: None,
        });
    attempts.collect()
}

/// Where a document was cut after each of its steps; nothing where it was whole, or had not begun,
/// nor from a step on that does not go on from those before it.
fn cuts(steps: &[&Step]) -> Vec<Option<Cut>> {
    let mut offsets: Vec<usize> = Vec::with_capacity(steps.len());
    let mut least = usize::MAX;
    for step in steps.iter().rev() {
        offsets.push(least);
        if let StepResult::Grown { offset, .. } = &step.result {
            least = least.min(*offset);
        }
    }
    // What no later step writes anew is read once.
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

/// The answers that are a text together.
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

/// What a step took for the answer, or what had come of it when it failed.
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

/// Adds what the calls of a step cost, if that is known.
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

/// What a step told, with what a reader wants to see change, or without any text.
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
    fn a_shell_reads_the_address_of_a_store_as_one_word() {
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
    fn the_cut_after_each_step_is_that_of_the_steps_up_to_it() {
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
    fn a_step_that_does_not_go_on_has_no_cut_and_spoils_none_before_it() {
        let steps = [step(1, 0, r#"{"a": 1"#), step(2, 99, "}")];
        let steps: Vec<&Step> = steps.iter().collect();
        let cuts = cuts(&steps);
        assert!(cuts[0].is_some() && cuts[1].is_none(), "{cuts:?}");
    }
}
