//! A request that cannot be made to fit: what is too large, by how much, and what would help.

use overlock_budget::{ChatRole, FlexError, Part, PlanError, PlanOptions, Sharing, Trim};
use serde::Serialize;

use super::Fit;
use super::request::{Asked, counted};
use crate::draw::{self, PartDrawing, Verdict, WindowDrawing};
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
    /// Of the request as it came.
    input_token_count: u64,
    margin: Option<u64>,
    counter: &'a str,
    provenance: &'static str,
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
        FlexError::TooLarge { over, gap, .. } => ("context-length-exceeded", *over, Some(*gap)),
        // Only the configuration can ask for what contradicts itself.
        FlexError::Contradiction { .. } => {
            return Err(Failure::Usage {
                message: error.to_string(),
                hint: "set `min` to no more than `max` under [budget] in overlock.toml".into(),
            });
        }
    };
    let provenance = asked.counter.provenance(asked.request);
    if fit.json {
        Results::new().object(&Answer {
            model: asked.model,
            window: options.window,
            found: asked.found.how.name(),
            fits: false,
            overflow,
            input_token_count: asked.counter.count(asked.request).tokens,
            margin,
            counter: asked.counter.name(),
            provenance: provenance.name(),
            error: Reason {
                code,
                message: error.to_string(),
                help: help.clone(),
            },
        })?;
    } else {
        let drawing = drawing(asked, options, margin.unwrap_or(0), overflow);
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
fn drawing(asked: &Asked, options: &PlanOptions, margin: u64, over: u64) -> WindowDrawing {
    let count = asked.counter.count(asked.request);
    let roles: Vec<ChatRole> = asked
        .request
        .messages()
        .map(|message| message.role())
        .collect();
    let last_user = roles.iter().rposition(|role| *role == ChatRole::User);
    let (mut system, mut question, mut history) = (0u64, 0u64, 0u64);
    for (place, (role, tokens)) in roles.iter().zip(&count.messages).enumerate() {
        let part = match role {
            ChatRole::System | ChatRole::Developer => &mut system,
            _ if Some(place) == last_user => &mut question,
            _ => &mut history,
        };
        *part = part.saturating_add(*tokens);
    }
    let requested = asked.request.requested().unwrap_or(options.requested);
    let floor = options
        .answer_floor
        .min(requested)
        .min(options.answer_cap.unwrap_or(u64::MAX));
    let untouched = options.trim == Trim::Off;
    let required = |part, asked| PartDrawing {
        part,
        asked,
        at_least: false,
        given: asked,
        told: String::new(),
    };
    let droppable = |part, asked: u64| PartDrawing {
        given: if untouched { asked } else { 0 },
        told: if untouched || asked == 0 {
            String::new()
        } else {
            "could go".into()
        },
        ..required(part, asked)
    };
    let mut parts = vec![
        required(Part::SystemPrompt, system),
        required(Part::Question, question),
        required(Part::Frame, count.frame),
        droppable(Part::Tools, count.tools),
        droppable(Part::History, history),
    ];
    parts.retain(|part| part.asked > 0);
    let input: u64 = parts
        .iter()
        .fold(0, |sum, part| sum.saturating_add(part.given));
    parts.push(PartDrawing {
        given: floor,
        ..required(Part::Completion, requested)
    });
    let available = i128::from(options.window) - i128::from(input) - i128::from(margin);
    WindowDrawing {
        model: asked.model.to_owned(),
        counted: counted(asked.counter.name(), count.provenance),
        window: options.window,
        parts,
        margin,
        input,
        available: i64::try_from(available).unwrap_or(i64::MIN),
        requested,
        adjusted: floor,
        verdict: Verdict::Over { by: over },
        shared: options.sharing == Sharing::Shared,
    }
}
