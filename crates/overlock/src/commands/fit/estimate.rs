//! `overlock fit --messages`: an estimate from the number of messages alone.

use overlock_budget::{
    Adjustment, History, MessageCountOptions, NegotiateOptions, Negotiation, Part, Provenance,
    TOKENS_PER_MESSAGE, adjusted_max_tokens, safe_message_count,
};
use serde::Serialize;

use super::Fit;
use crate::commands::models::note_unknown;
use crate::config::Config;
use crate::draw::{self, NO_MORE_ROOM, PartDrawing, Verdict, WindowDrawing};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};

/// The output of `--json`.
#[derive(Serialize)]
struct EstimateReport<'a> {
    model: &'a str,
    window: u64,
    found: &'static str,
    fits: bool,
    overflow: u64,
    adjustment: &'static str,
    adjusted_max_tokens: u64,
    requested: u64,
    available: i64,
    input_token_count: u64,
    margin: u64,
    message_count: u64,
    memory_count: u64,
    safe_message_count: u64,
    counter: String,
    provenance: &'static str,
    parts: [EstimatePart; 3],
}

#[derive(Serialize)]
struct EstimatePart {
    name: &'static str,
    asked: u64,
    given: u64,
}

pub(super) fn run(
    fit: &Fit,
    messages: u64,
    config: &Config,
    notes: &mut Notes,
) -> Result<Ending, Failure> {
    let Some(model) = fit.model.as_deref().or(config.budget.model.as_deref()) else {
        return Err(super::no_model());
    };
    let models = config.models();
    let found = models.find(model);
    note_unknown(model, &models, notes);
    let planned = fit.plan_options(&found.model, config);
    let options = NegotiateOptions {
        window: planned.window,
        // The documented formula has no limit but the window.
        answer_cap: None,
        requested: fit.max_tokens.unwrap_or(planned.requested),
        system: fit.system_tokens,
        margin: planned.margin.unwrap_or(NegotiateOptions::default().margin),
        grow: planned.grow,
    };
    let message_count = messages.min(fit.max_messages.unwrap_or(u64::MAX));
    let history = History::Estimated {
        messages: message_count,
    };
    let negotiation = adjusted_max_tokens(history, &options);
    let history = message_count.saturating_mul(TOKENS_PER_MESSAGE);
    let mut results = Results::new();
    if fit.json {
        let same = |name, tokens| EstimatePart {
            name,
            asked: tokens,
            given: tokens,
        };
        results.object(&EstimateReport {
            model,
            window: options.window,
            found: found.how.name(),
            fits: negotiation.fits(),
            overflow: negotiation.overflow,
            adjustment: negotiation.adjustment.name(),
            adjusted_max_tokens: negotiation.adjusted,
            requested: options.requested,
            available: negotiation.available,
            input_token_count: negotiation.input,
            margin: options.margin,
            message_count,
            memory_count: 0,
            safe_message_count: safe_message_count(&MessageCountOptions {
                max_messages: fit.max_messages,
                window: Some(options.window),
                requested: options.requested,
                system: options.system,
            }),
            counter: format!("{TOKENS_PER_MESSAGE}/message"),
            provenance: Provenance::Estimate.name(),
            parts: [
                same(Part::SystemPrompt.name(), options.system),
                same(Part::History.name(), history),
                EstimatePart {
                    name: Part::Completion.name(),
                    asked: options.requested,
                    given: negotiation.adjusted,
                },
            ],
        })?;
    } else {
        let drawing = drawing(model, history, &options, &negotiation);
        for line in drawing.lines(draw::terminal_width()) {
            results.line(&line)?;
        }
    }
    Ok(Ending::done_if(negotiation.fits()))
}

fn drawing(
    model: &str,
    history: u64,
    options: &NegotiateOptions,
    negotiation: &Negotiation,
) -> WindowDrawing {
    let part = |part, asked, given| PartDrawing {
        part,
        asked,
        at_least: false,
        given,
        note: String::new(),
    };
    WindowDrawing {
        model: model.to_owned(),
        counted: format!("estimated at {TOKENS_PER_MESSAGE} tokens per message"),
        window: options.window,
        parts: vec![
            part(Part::SystemPrompt, options.system, options.system),
            part(Part::History, history, history),
            part(Part::Completion, options.requested, negotiation.adjusted),
        ],
        margin: options.margin,
        input: negotiation.input,
        available: negotiation.available,
        requested: options.requested,
        adjusted: negotiation.adjusted,
        verdict: match negotiation.adjustment {
            Adjustment::Granted => Verdict::Granted,
            Adjustment::Grown => Verdict::Grown,
            Adjustment::Reduced | Adjustment::Capped => Verdict::Reduced(NO_MORE_ROOM.into()),
            Adjustment::Floor => Verdict::Over {
                by: negotiation.overflow,
            },
        },
        shared: true,
    }
}
