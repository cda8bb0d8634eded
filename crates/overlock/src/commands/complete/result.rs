//! Prints the result of a run.

use std::time::Duration;

use overlock_llm::{
    BackendError, Continuation, Kpi, MeasuredKpi, Outcome, PromptError, Reason, Retried, StopCause,
};
use overlock_runs::RecordedStep;
use overlock_store::RunId;
use serde::Serialize;
use serde_json::value::RawValue;

use super::Complete;
use super::schema::{DocumentSchema, Violations};
use super::target::Target;
use crate::config::ProgressSetting;
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
    pub(super) address: Option<Address>,
    pub(super) stop_cause: Option<StopCause>,
    /// Why the run could not be recorded completely.
    pub(super) unrecorded: Option<String>,
    pub(super) took: Option<Duration>,
}

/// The output of `--json`.
#[derive(Serialize)]
struct CompleteReport<'a> {
    run: &'a RunId,
    model: &'a str,
    #[serde(flatten)]
    outcome: &'a Outcome,
    error: Option<String>,
    document: Option<Box<RawValue>>,
    /// The output of the model, if it contained no JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'a str>,
    iterations: u32,
    output_tokens: u64,
    /// Counts in the document.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kpis: Vec<&'a MeasuredKpi>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<SchemaReport>,
    steps: &'a [RecordedStep],
}

#[derive(Serialize)]
struct SchemaReport {
    valid: bool,
    /// How many violations there are.
    count: usize,
    /// The first ones.
    violations: Vec<Violation>,
}

#[derive(Serialize)]
struct Violation {
    path: String,
    message: String,
}

impl Finished {
    /// A recorded run that has already ended.
    pub(super) fn already_ended(id: RunId, model: String, run: Continuation) -> Self {
        Self {
            id,
            model,
            run,
            steps: Vec::new(),
            address: None,
            stop_cause: None,
            unrecorded: None,
            took: None,
        }
    }

    /// Prints the document or its valid part, and notes about it.
    pub(super) fn print(
        &self,
        complete: &Complete,
        schema: Option<&DocumentSchema>,
        target: Option<&Target>,
        notes: &mut Notes,
    ) -> Result<Ending, Failure> {
        let outcome = self.run.outcome().expect("a run that was driven has ended");
        let is_complete = *outcome == Outcome::Complete;
        let document = if is_complete {
            Some(self.run.text().to_owned())
        } else {
            self.run.last_valid_complete_part()
        };
        let violations = match (schema, &document) {
            (Some(schema), Some(document)) if is_complete => schema.violations(document),
            _ => Violations::default(),
        };
        let is_recorded = self.unrecorded.is_none();
        let mut ending = Ending::done_if(is_complete && violations.count == 0 && is_recorded);
        if complete.json {
            self.print_json(outcome, document.as_deref(), schema, &violations)?;
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

    fn print_json(
        &self,
        outcome: &Outcome,
        document: Option<&str>,
        schema: Option<&DocumentSchema>,
        violations: &Violations,
    ) -> Result<(), Failure> {
        let document =
            document.and_then(|document| RawValue::from_string(on_one_line(document)).ok());
        let schema = schema.map(|_| SchemaReport {
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
        Results::new().object(&CompleteReport {
            run: &self.id,
            model: &self.model,
            outcome,
            error: self.stop_cause.as_ref().map(describe).or(unrecorded),
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
            Some(_) => "could not be recorded".to_owned(),
            None => reason.to_string(),
        };
        match outcome {
            Outcome::Complete => {
                let length = grouped(self.run.text().len());
                notes.line(format_args!("complete: {length} bytes from {figures}"));
            }
            Outcome::Partial { reason, cut } => {
                notes.line(format_args!("partial: {} ({figures})", why(reason)));
                let path = draw::path(&cut.path, draw::SENTENCE_COLUMNS);
                notes.note(format_args!("the document stops at {path}"));
                self.note_stop_cause(notes);
            }
            Outcome::Failed { reason } => {
                notes.line(format_args!("failed: {} ({figures})", why(reason)));
                self.note_stop_cause(notes);
                let raw: String = self.run.raw().chars().take(200).collect();
                if !raw.is_empty() {
                    notes.note(format_args!("the model said: {}", raw.trim()));
                }
            }
        }
        if let Some(reason) = &self.unrecorded {
            notes.note(format_args!("not recorded: {reason}"));
            notes.hint(
                "the store does not have everything that is printed here; `overlock inspect` shows \
                 what it has",
            );
        } else if let Some(reason) = outcome.reason() {
            notes.hint(self.resume_hint(reason, complete));
        }
        for (path, message) in &violations.first {
            let path = draw::path(path, draw::SENTENCE_COLUMNS);
            notes.note(format_args!("schema violation at {path}: {message}"));
        }
        if violations.count > violations.first.len() {
            let more = grouped(violations.count - violations.first.len());
            notes.note(format_args!("{more} more schema violations"));
        }
    }

    fn resume_hint(&self, reason: Reason, complete: &Complete) -> String {
        let command = |kpi| complete.resume_command(&self.id, kpi);
        let options = self.run.options();
        match (reason, &options.kpi) {
            (Reason::KpiStalled, Kpi::Ask) => format!(
                "in a very long document one answer may add less than 1 %; resume without asking \
                 for progress: {}; or count in the document: {}",
                command(Some(ProgressSetting::Off)),
                command(Some(ProgressSetting::Measured))
            ),
            (Reason::KpiStalled, _) => {
                let command = command(Some(ProgressSetting::Off));
                format!("resume without measuring progress: {command}")
            }
            // With the same limits the run would end at once.
            (Reason::IterationLimit, _) => format!(
                "raise the limit and resume with: OVERLOCK_COMPLETE_MAX_ITERATIONS={} {}",
                options.max_iterations.saturating_mul(2),
                command(None)
            ),
            (Reason::TokenLimit, _) => format!(
                "raise the limit and resume with: {} --max-output {}",
                command(None),
                self.run.output_tokens().saturating_mul(2)
            ),
            _ => format!("resume with: {}", command(None)),
        }
    }

    fn note_stop_cause(&self, notes: &mut Notes) {
        if let Some(stop_cause) = &self.stop_cause {
            notes.note(describe(stop_cause));
            if let (StopCause::Backend { error, .. }, Some(address)) = (stop_cause, &self.address)
                && let Some(hint) = address.hint(error)
            {
                notes.hint(hint);
            }
            if matches!(
                stop_cause,
                StopCause::Backend {
                    error: BackendError::Certificate { .. },
                    ..
                }
            ) {
                notes.hint(
                    "if you run that server, set SSL_CERT_FILE to a PEM file with its certificate \
                     or that of its issuer",
                );
            }
        }
    }
}

fn describe(stop_cause: &StopCause) -> String {
    match stop_cause {
        StopCause::Backend { error, retried } => match retried {
            Some(Retried { times, .. }) => {
                format!("{error}; tried {} times", u64::from(*times) + 1)
            }
            None => error.to_string(),
        },
        StopCause::Window(PromptError::Window(error)) => error.to_string(),
        StopCause::Window(PromptError::Request(error)) => error.to_string(),
    }
}
