//! Tells what came of a run.

use std::time::Duration;

use overlock_llm::{
    BackendError, Continuation, Kpi, MeasuredKpi, Outcome, PromptError, Reason, Retried, StopCause,
};
use overlock_runs::RecordedStep;
use overlock_store::RunId;
use serde::Serialize;
use serde_json::value::RawValue;

use super::Complete;
use super::schema::{Schema, Violations};
use super::target::Target;
use crate::config::Progress;
use crate::draw::{self, grouped, grouped_tokens};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results, on_one_line};
use crate::upstream::Address;

/// A run that has ended.
pub(super) struct Finished {
    pub(super) id: RunId,
    pub(super) model: String,
    pub(super) run: Continuation,
    /// The steps of this process.
    pub(super) steps: Vec<RecordedStep>,
    /// Who was asked.
    pub(super) address: Option<Address>,
    pub(super) obstacle: Option<StopCause>,
    /// Why not all of it is in the store.
    pub(super) unrecorded: Option<String>,
    pub(super) took: Option<Duration>,
}

/// The answer to machines.
#[derive(Serialize)]
struct Answer<'a> {
    run: &'a RunId,
    model: &'a str,
    #[serde(flatten)]
    outcome: &'a Outcome,
    /// What stood in the way, if something did.
    error: Option<String>,
    document: Option<Box<RawValue>>,
    /// What the model said, where none of it was JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'a str>,
    iterations: u32,
    output_tokens: u64,
    /// What was counted in the document.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kpis: Vec<&'a MeasuredKpi>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<SchemaAnswer>,
    steps: &'a [RecordedStep],
}

#[derive(Serialize)]
struct SchemaAnswer {
    valid: bool,
    /// How many violations there are.
    count: usize,
    /// The first of them.
    violations: Vec<Violation>,
}

#[derive(Serialize)]
struct Violation {
    path: String,
    message: String,
}

impl Finished {
    /// A run that had ended before: nobody has to be asked.
    pub(super) fn before(id: RunId, model: String, run: Continuation) -> Self {
        Self {
            id,
            model,
            run,
            steps: Vec::new(),
            address: None,
            obstacle: None,
            unrecorded: None,
            took: None,
        }
    }

    /// Prints the document, or its valid part, and says what there is to know about it.
    pub(super) fn tell(
        &self,
        complete: &Complete,
        schema: Option<&Schema>,
        target: Option<&Target>,
        notes: &mut Notes,
    ) -> Result<Ending, Failure> {
        let outcome = self.run.outcome().expect("a run that was driven has ended");
        let is_whole = *outcome == Outcome::Complete;
        let document = if is_whole {
            Some(self.run.text().to_owned())
        } else {
            self.run.last_valid_complete_part()
        };
        let violations = match (schema, &document) {
            (Some(schema), Some(document)) if is_whole => schema.violations(document),
            _ => Violations::default(),
        };
        let is_kept = self.unrecorded.is_none();
        let mut ending = Ending::whole_if(is_whole && violations.count == 0 && is_kept);
        if complete.json {
            self.object(outcome, document.as_deref(), schema, &violations)?;
            return Ok(ending);
        }
        if let Some(document) = &document {
            let unwritten = target.and_then(|target| Some((target, target.write(document).err()?)));
            if let Some((target, error)) = &unwritten {
                let path = target.path().display();
                notes.note(format_args!(
                    "could not write `{path}`: {error}; the document is on standard output"
                ));
                ending = Ending::Partial;
            }
            if target.is_none() || unwritten.is_some() {
                Results::new().document(&[document.as_bytes()])?;
            }
        }
        self.note(outcome, &violations, complete, notes);
        Ok(ending)
    }

    fn object(
        &self,
        outcome: &Outcome,
        document: Option<&str>,
        schema: Option<&Schema>,
        violations: &Violations,
    ) -> Result<(), Failure> {
        let document =
            document.and_then(|document| RawValue::from_string(on_one_line(document)).ok());
        let schema = schema.map(|_| SchemaAnswer {
            valid: *outcome == Outcome::Complete && violations.count == 0,
            count: violations.count,
            violations: violations
                .first
                .iter()
                .map(|(path, message)| Violation {
                    path: path.clone(),
                    message: message.clone(),
                })
                .collect(),
        });
        let unrecorded = self.unrecorded.as_ref();
        let unrecorded = unrecorded.map(|reason| format!("not recorded: {reason}"));
        Results::new().object(&Answer {
            run: &self.id,
            model: &self.model,
            outcome,
            error: self.obstacle.as_ref().map(told).or(unrecorded),
            document,
            raw: matches!(outcome, Outcome::Failed { .. }).then(|| self.run.raw()),
            iterations: self.run.iterations(),
            output_tokens: self.run.output_tokens(),
            kpis: self.run.kpis(),
            schema,
            steps: &self.steps,
        })
    }

    fn note(
        &self,
        outcome: &Outcome,
        violations: &Violations,
        complete: &Complete,
        notes: &mut Notes,
    ) {
        let answers = match self.run.iterations() {
            1 => "1 answer".to_owned(),
            count => format!("{count} answers"),
        };
        let tokens = grouped_tokens(self.run.output_tokens());
        let took = self
            .took
            .map(|took| format!(", {:.1} s", took.as_secs_f32()));
        let figures = format!("{answers}, {tokens} tokens{}", took.unwrap_or_default());
        let why = |reason: &Reason| match self.unrecorded {
            Some(_) => "it could not be recorded".to_owned(),
            None => reason.to_string(),
        };
        match outcome {
            Outcome::Complete => {
                let length = grouped(self.run.text().len());
                notes.line(format_args!("whole: {length} bytes from {figures}"));
            }
            Outcome::Partial { reason, cut } => {
                notes.line(format_args!("partial: {} ({figures})", why(reason)));
                let path = draw::path(&cut.path, draw::SENTENCE_COLUMNS);
                notes.note(format_args!("the document stops at {path}"));
                self.note_obstacle(notes);
            }
            Outcome::Failed { reason } => {
                notes.line(format_args!("failed: {} ({figures})", why(reason)));
                self.note_obstacle(notes);
                let raw: String = self.run.raw().chars().take(200).collect();
                if !raw.is_empty() {
                    notes.note(format_args!("the model said: {}", raw.trim()));
                }
            }
        }
        if let Some(reason) = &self.unrecorded {
            notes.note(format_args!("not recorded: {reason}"));
            notes.hint(
                "what is printed here is not all in the store; `overlock inspect` shows what is",
            );
        } else if let Some(reason) = outcome.reason() {
            notes.hint(self.way_on(reason, complete));
        }
        for (path, message) in &violations.first {
            let path = draw::path(path, draw::SENTENCE_COLUMNS);
            notes.note(format_args!("against the schema at {path}: {message}"));
        }
        if violations.count > violations.first.len() {
            let more = grouped(violations.count - violations.first.len());
            notes.note(format_args!("against the schema in {more} more places"));
        }
    }

    /// What goes on with the run.
    fn way_on(&self, reason: Reason, complete: &Complete) -> String {
        let command = |kpi| complete.resuming(&self.id, kpi);
        let options = self.run.options();
        match (reason, &options.kpi) {
            (Reason::KpiStalled, Kpi::Ask) => format!(
                "a very long document may grow by less than a hundredth with an answer; go on \
                 without that question: {}; or count in the document: {}",
                command(Some(Progress::Off)),
                command(Some(Progress::Measured))
            ),
            (Reason::KpiStalled, _) => {
                let command = command(Some(Progress::Off));
                format!("go on without that measure: {command}")
            }
            // What was allowed is used up: the same run would end at once.
            (Reason::IterationLimit, _) => format!(
                "allow more and go on with: OVERLOCK_COMPLETE_MAX_ITERATIONS={} {}",
                options.max_iterations.saturating_mul(2),
                command(None)
            ),
            (Reason::TokenLimit, _) => format!(
                "allow more and go on with: {} --max-output {}",
                command(None),
                self.run.output_tokens().saturating_mul(2)
            ),
            _ => format!("go on with: {}", command(None)),
        }
    }

    fn note_obstacle(&self, notes: &mut Notes) {
        if let Some(obstacle) = &self.obstacle {
            notes.note(told(obstacle));
            if let (StopCause::Backend { error, .. }, Some(address)) = (obstacle, &self.address)
                && let Some(hint) = address.hint(error)
            {
                notes.hint(hint);
            }
            if matches!(
                obstacle,
                StopCause::Backend {
                    error: BackendError::Certificate { .. },
                    ..
                }
            ) {
                notes.hint(
                    "if that server is your own, set SSL_CERT_FILE to a PEM file with the \
                     certificate that it shows or that signed it",
                );
            }
        }
    }
}

fn told(obstacle: &StopCause) -> String {
    match obstacle {
        StopCause::Backend { error, retried } => match retried {
            Some(Retried { times, .. }) => {
                format!("{error}; it was asked {} times", u64::from(*times) + 1)
            }
            None => error.to_string(),
        },
        StopCause::Window(PromptError::Window(error)) => error.to_string(),
        StopCause::Window(PromptError::Request(error)) => error.to_string(),
    }
}
