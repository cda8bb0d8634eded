//! Fits a chat request: counted, planned, rewritten.

use std::fs;

use overlock_budget::{
    ChatCounter, ChatRequest, Extras, Found, Plan, PlanOptions, PlannedPart, Provenance,
    RequestError, Trim, plan,
};
use overlock_json::clean_encoding;
use serde::Serialize;
use serde_json::value::RawValue;

use super::extras::Owned;
use super::{Fit, no_model, refusal};
use crate::batch::Refusal;
use crate::commands::models::note_unknown;
use crate::config::Config;
use crate::draw::{self, WindowDrawing};
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// The answer to machines.
#[derive(Serialize)]
struct Answer<'a> {
    model: &'a str,
    window: u64,
    found: &'static str,
    fits: bool,
    overflow: u64,
    adjustment: &'static str,
    adjusted_max_tokens: u64,
    requested: u64,
    available: u64,
    input_token_count: u64,
    margin: u64,
    message_count: usize,
    memory_count: usize,
    dropped_messages: &'a [usize],
    counter: &'a str,
    provenance: &'static str,
    exact: bool,
    blocker: Option<&'a str>,
    parts: Vec<AnswerPart<'a>>,
    request: Box<RawValue>,
}

#[derive(Serialize)]
pub(super) struct AnswerPart<'a> {
    name: &'static str,
    asked: u64,
    /// Whether it asked for even more, which was not counted.
    at_least: bool,
    given: u64,
    kept: usize,
    dropped: usize,
    dropped_names: &'a [String],
    explanation: String,
}

/// What was asked, for what model, and who counts it.
pub(super) struct Asked<'a> {
    pub(super) model: &'a str,
    pub(super) found: &'a Found,
    pub(super) request: &'a ChatRequest,
    pub(super) extras: &'a Extras<'a>,
    /// The request as it came.
    text: &'a str,
    pub(super) counter: &'a ChatCounter<'a>,
}

pub(super) fn run(fit: &Fit, config: &Config, notes: &mut Notes) -> Result<Ending, Failure> {
    let (text, request) = read(fit, notes)?;
    let extras = Owned::read(fit, notes)?;
    let named = fit.model.as_deref().or(request.model());
    let Some(model) = named.or(config.budget.model.as_deref()) else {
        return Err(no_model());
    };
    let models = config.models();
    let found = models.find(model);
    note_unknown(model, &models, notes);
    let (counter, mut files) = fit.named.counter_for(model, &found, config)?;
    counter.note(notes);
    files.tokenizer_config = fit.tokenizer_config.as_deref().or(files.tokenizer_config);
    let template = counter.template(files)?;
    if template.is_none() && fit.tokenizer_config.is_some() {
        return Err(Failure::Usage {
            message: format!("`{model}` is not counted with a tokenizer file"),
            hint: "give the file that the configuration belongs to with --tokenizer FILE".into(),
        });
    }
    let chat = counter.of_requests(&found, template.as_ref());
    let extras = Extras {
        memories: &extras.memories(),
        context: &extras.context(),
        tool_importance: &[],
    };
    let asked = Asked {
        model,
        found: &found,
        request: &request,
        extras: &extras,
        text: &text,
        counter: &chat,
    };
    let mut options = fit.plan_options(&found.model, config);
    options.requested = fit.max_tokens.unwrap_or(options.requested);
    match plan(&request, &extras, &chat, &options) {
        Ok(plan) => answer(fit, &asked, &plan, notes),
        Err(error) => {
            let trimmed = PlanOptions {
                trim: Trim::Oldest,
                ..options.clone()
            };
            let trimming_helps =
                options.trim == Trim::Off && plan(&request, &extras, &chat, &trimmed).is_ok();
            refusal::tell(fit, &asked, &options, error, trimming_helps, notes)
        }
    }
}

/// The request, and its text.
fn read(fit: &Fit, notes: &mut Notes) -> Result<(String, ChatRequest), Failure> {
    let source = Source::from(fit.request.clone()).read(notes)?;
    let text = clean_encoding(&source.bytes).text;
    // An editor on Windows may have left a mark that is no part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let read = ChatRequest::from_json(text);
    let request = read.and_then(|request| match fit.max_tokens {
        Some(tokens) => with_length(request, tokens),
        None => Ok(request),
    });
    let request = request.map_err(|error| {
        if fit.json {
            // The failure that follows says the same; one that cannot be written adds nothing.
            let _ = Results::new().object(&Refusal::bad_request(error.to_string()));
        }
        Failure::Request {
            name: source.name,
            source: error,
        }
    })?;
    Ok((text.to_owned(), request))
}

/// The same request, as if it had asked for an answer of this length.
fn with_length(request: ChatRequest, tokens: u64) -> Result<ChatRequest, RequestError> {
    let mut whole = request.into_value();
    if let Some(members) = whole.as_object_mut() {
        for key in ["max_tokens", "max_completion_tokens"] {
            if let Some(asked) = members.get_mut(key).filter(|asked| !asked.is_null()) {
                *asked = tokens.into();
            }
        }
    }
    ChatRequest::from_value(whole)
}

fn answer(fit: &Fit, asked: &Asked, plan: &Plan, notes: &mut Notes) -> Result<Ending, Failure> {
    let rewritten = rewritten(asked, plan);
    let mut results = Results::new();
    if fit.json {
        results.object(&Answer {
            model: asked.model,
            window: plan.window,
            found: asked.found.how.name(),
            fits: plan.fits(),
            overflow: 0,
            adjustment: plan.adjustment.name(),
            adjusted_max_tokens: plan.adjusted_max_tokens,
            requested: plan.requested,
            available: plan.available,
            input_token_count: plan.input_token_count,
            margin: plan.margin.tokens,
            message_count: plan.message_count,
            memory_count: plan.memory_count,
            dropped_messages: &plan.dropped_messages,
            counter: &plan.counter,
            provenance: plan.provenance.name(),
            exact: plan.provenance == Provenance::Exact,
            blocker: plan.blocker.as_deref(),
            parts: plan.parts.iter().map(answer_part).collect(),
            request: on_one_line(&rewritten),
        })?;
        return Ok(Ending::Whole);
    }
    let lines = WindowDrawing::of(asked.model, plan).lines(draw::terminal_width());
    if let Some(path) = &fit.output {
        fs::write(path, &rewritten).map_err(|source| Failure::OutputUnwritable {
            path: path.clone(),
            source,
        })?;
    }
    if fit.output.is_some() || results.is_terminal() {
        for line in lines {
            results.line(&line)?;
        }
        if fit.output.is_none() {
            notes.hint("-o FILE keeps the fitted request, and so does `> FILE`");
        }
    } else {
        results.document(&[rewritten.as_bytes()])?;
        for line in lines {
            notes.line(line);
        }
    }
    Ok(Ending::Whole)
}

/// The request as it is to be sent, written as it came, with a line break at its end.
fn rewritten(asked: &Asked, plan: &Plan) -> String {
    let text = plan.rewrite_text(asked.text);
    let mut text = text.unwrap_or_else(|| plan.rewrite(asked.request.clone()).to_string());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// In JSON a line break is only ever between two values.
fn on_one_line(json: &str) -> Box<RawValue> {
    let line = json.replace(['\n', '\r'], "");
    RawValue::from_string(line).expect("what was read as JSON and rewritten is JSON")
}

pub(super) fn answer_part(part: &PlannedPart) -> AnswerPart<'_> {
    AnswerPart {
        name: part.part.name(),
        asked: part.asked,
        at_least: part.at_least,
        given: part.given,
        kept: part.kept,
        dropped: part.dropped,
        dropped_names: &part.dropped_names,
        explanation: part.explanation(),
    }
}
