//! Tells what came of a run.

use std::fs;
use std::time::Duration;

use overlock_model::{
    BackendError, Continuation, Kpi, MeasuredKpi, Obstacle, Outcome, PromptError, Reason, Step,
};
use overlock_store::RunId;
use serde::Serialize;
use serde_json::value::RawValue;

use super::Complete;
use super::schema::Schema;
use crate::config::Progress;
use crate::draw::{grouped, grouped_tokens};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};

/// A run that has ended.
pub(super) struct Finished {
    pub(super) id: RunId,
    pub(super) model: String,
    pub(super) run: Continuation,
    pub(super) steps: Vec<Step>,
    pub(super) obstacle: Option<Obstacle>,
    pub(super) took: Duration,
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
    document: Option<&'a RawValue>,
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
    steps: &'a [Step],
}

#[derive(Serialize)]
struct SchemaAnswer {
    valid: bool,
    violations: Vec<Violation>,
}

#[derive(Serialize)]
struct Violation {
    path: String,
    message: String,
}

impl Finished {
    /// Prints the document, or its valid part, and says what there is to know about it.
    pub(super) fn tell(
        &self,
        complete: &Complete,
        schema: Option<&Schema>,
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
            _ => Vec::new(),
        };
        let ending = Ending::whole_if(is_whole && violations.is_empty());
        if complete.json {
            self.object(outcome, document.as_deref(), schema, &violations)?;
            return Ok(ending);
        }
        match (&complete.output, &document) {
            (Some(path), Some(document)) => {
                fs::write(path, document).map_err(|source| Failure::OutputUnwritable {
                    path: path.clone(),
                    source,
                })?;
            }
            (None, Some(document)) => Results::new().document(&[document.as_bytes()])?,
            (_, None) => {}
        }
        self.note(outcome, &violations, complete, notes);
        Ok(ending)
    }

    fn object(
        &self,
        outcome: &Outcome,
        document: Option<&str>,
        schema: Option<&Schema>,
        violations: &[(String, String)],
    ) -> Result<(), Failure> {
        let document = document.and_then(|document| serde_json::from_str(document).ok());
        let schema = schema.map(|_| SchemaAnswer {
            valid: *outcome == Outcome::Complete && violations.is_empty(),
            violations: violations
                .iter()
                .map(|(path, message)| Violation {
                    path: path.clone(),
                    message: message.clone(),
                })
                .collect(),
        });
        Results::new().object(&Answer {
            run: &self.id,
            model: &self.model,
            outcome,
            error: self.obstacle.as_ref().map(told),
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
        violations: &[(String, String)],
        complete: &Complete,
        notes: &mut Notes,
    ) {
        let answers = match self.run.iterations() {
            1 => "1 answer".to_owned(),
            count => format!("{count} answers"),
        };
        let figures = format!(
            "{answers}, {} tokens, {:.1} s",
            grouped_tokens(self.run.output_tokens()),
            self.took.as_secs_f32()
        );
        match outcome {
            Outcome::Complete => {
                let length = grouped(self.run.text().len());
                notes.line(format_args!("whole: {length} bytes from {figures}"));
            }
            Outcome::Partial { reason, cut } => {
                notes.line(format_args!("partial: {reason} ({figures})"));
                notes.note(format_args!("the document stops at {}", cut.path));
                self.note_obstacle(notes);
            }
            Outcome::Failed { reason } => {
                notes.line(format_args!("failed: {reason} ({figures})"));
                self.note_obstacle(notes);
                let raw: String = self.run.raw().chars().take(200).collect();
                if !raw.is_empty() {
                    notes.note(format_args!("the model said: {}", raw.trim()));
                }
            }
        }
        if let Some(reason) = outcome.reason() {
            // What was allowed is used up: the same run would end at once.
            if !matches!(reason, Reason::IterationLimit | Reason::TokenLimit) {
                notes.hint(self.way_on(reason, complete));
            }
        }
        for (path, message) in violations {
            let path = if path.is_empty() { "/" } else { path };
            notes.note(format_args!("against the schema at {path}: {message}"));
        }
    }

    /// What goes on with the run.
    fn way_on(&self, reason: Reason, complete: &Complete) -> String {
        let command = |kpi| complete.resuming(&self.id, kpi);
        match (reason, &self.run.options().kpi) {
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
            _ => format!("go on with: {}", command(None)),
        }
    }

    fn note_obstacle(&self, notes: &mut Notes) {
        if let Some(obstacle) = &self.obstacle {
            notes.note(told(obstacle));
            if matches!(
                obstacle,
                Obstacle::Backend(BackendError::Certificate { .. })
            ) {
                notes.hint(
                    "if that server is your own, set SSL_CERT_FILE to a PEM file with the \
                     certificate that it shows or that signed it",
                );
            }
        }
    }
}

fn told(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Backend(error) => error.to_string(),
        Obstacle::Window(PromptError::Window(error)) => error.to_string(),
        Obstacle::Window(PromptError::Request(error)) => error.to_string(),
    }
}
