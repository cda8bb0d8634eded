//! A request that cannot be made to fit: what is too large, by how much, and what would help.

use overlock_budget::{
    FlexError, Part, PlanError, PlanOptions, PlannedPart, Provenance, Sharing, least_parts,
};
use serde::Serialize;

use super::Fit;
use super::request::{AnswerPart, Asked, answer_part};
use crate::draw::{self, PartDrawing, Verdict, WindowDrawing, counted};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};

/// The answer to machines.
#[derive(Serialize)]
struct Answer<'a> {
    model: &'a str,
    window: u64,
    found: &'static str,
    fits: bool,
    overflow: u64,
    /// The least that the answer needs.
    adjusted_max_tokens: u64,
    requested: u64,
    available: i64,
    /// Of what must stay.
    input_token_count: u64,
    margin: u64,
    message_count: usize,
    memory_count: usize,
    counter: &'a str,
    provenance: &'static str,
    exact: bool,
    parts: Vec<AnswerPart<'a>>,
    error: Reason,
}

#[derive(Serialize)]
struct Reason {
    code: &'static str,
    message: String,
    help: Vec<String>,
}

pub(super) fn tell(
    fit: &Fit,
    asked: &Asked,
    options: &PlanOptions,
    error: PlanError,
    trimming_helps: bool,
    notes: &mut Notes,
) -> Result<Ending, Failure> {
    let trimming = trimming_helps.then(|| "let the oldest turns go with --trim oldest".to_owned());
    let help = error.help().iter().map(ToString::to_string);
    let help: Vec<String> = trimming.into_iter().chain(help).collect();
    let PlanError::Refused(reason) = &error;
    let (code, overflow, margin) = match reason {
        FlexError::TooLarge { over, gap, .. } => ("context-length-exceeded", *over, *gap),
        // Only the configuration can ask for what contradicts itself.
        FlexError::Contradiction { .. } => {
            return Err(Failure::Usage {
                message: error.to_string(),
                hint: "set `min` to no more than `max` under [budget] in overlock.toml".into(),
            });
        }
    };
    let provenance = asked.counter.provenance(asked.request);
    let least = Least::of(asked, options, margin);
    if fit.json {
        let kept = |part: Part| {
            let parts = least.parts.iter();
            let parts = parts.filter(|planned| planned.part == part);
            parts.map(|planned| planned.kept).sum::<usize>()
        };
        Results::new().object(&Answer {
            model: asked.model,
            window: options.window,
            found: asked.found.how.name(),
            fits: false,
            overflow,
            adjusted_max_tokens: least.answer,
            requested: least.requested,
            available: least.available,
            input_token_count: least.input,
            margin,
            message_count: kept(Part::Question) + kept(Part::History),
            memory_count: kept(Part::Memories),
            counter: asked.counter.name(),
            provenance: provenance.name(),
            exact: provenance == Provenance::Exact,
            parts: least.parts.iter().map(answer_part).collect(),
            error: Reason {
                code,
                message: error.to_string(),
                help: help.clone(),
            },
        })?;
    } else {
        let drawing = drawing(asked, options, &least, overflow);
        for line in drawing.lines(draw::terminal_width()) {
            notes.line(line);
        }
    }
    Err(Failure::Refused {
        source: Box::new(error),
        help,
    })
}

/// What must stay, and how far it is beyond the window.
fn drawing(asked: &Asked, options: &PlanOptions, least: &Least, over: u64) -> WindowDrawing {
    let parts = least.parts.iter();
    let parts = parts.filter(|part| part.asked > 0 || part.given > 0);
    let parts = parts.map(|part| PartDrawing {
        part: part.part,
        asked: part.asked,
        at_least: part.at_least,
        given: part.given,
        told: if part.dropped > 0 {
            "could go".into()
        } else {
            String::new()
        },
    });
    WindowDrawing {
        model: asked.model.to_owned(),
        counted: counted(
            asked.counter.name(),
            asked.counter.provenance(asked.request),
        ),
        window: options.window,
        parts: parts.collect(),
        margin: least.margin,
        input: least.input,
        available: least.available,
        requested: least.requested,
        adjusted: least.answer,
        verdict: Verdict::Over { by: over },
        shared: options.sharing == Sharing::Shared,
    }
}

/// A request from which all is gone that may go.
struct Least {
    parts: Vec<PlannedPart>,
    input: u64,
    margin: u64,
    available: i64,
    requested: u64,
    answer: u64,
}

impl Least {
    fn of(asked: &Asked, options: &PlanOptions, margin: u64) -> Self {
        let parts = least_parts(asked.request, asked.extras, asked.counter, options);
        let (mut input, mut answer, mut requested) = (0u64, 0, 0);
        for part in &parts {
            if part.part == Part::Completion {
                (answer, requested) = (part.given, part.asked);
            } else {
                input = input.saturating_add(part.given);
            }
        }
        let available = i128::from(options.window) - i128::from(input) - i128::from(margin);
        Self {
            parts,
            input,
            margin,
            available: i64::try_from(available).unwrap_or(i64::MIN),
            requested,
            answer,
        }
    }
}
