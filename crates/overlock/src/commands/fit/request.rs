//! `overlock fit` with a chat request: counts, plans and rewrites it.

use std::fs;

use overlock_budget::Extras;
use overlock_json::{Refusal, clean_encoding};
use overlock_llm::wire::RequestError;
use overlock_llm::wire::chat::ChatRequest;
use overlock_runs::{FitRequest, Fitted};

use super::extras::ExtraTexts;
use super::{Fit, no_model, refusal};
use crate::commands::models::note_unknown;
use crate::config::Config;
use crate::draw::{self, WindowDrawing};
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

pub(super) fn run(fit: &Fit, config: &Config, notes: &mut Notes) -> Result<Ending, Failure> {
    let (text, request) = read(fit, notes)?;
    let extras = ExtraTexts::read(fit, notes)?;
    let given = fit.model.as_deref().or(request.model());
    let Some(model) = given.or(config.budget.model.as_deref()) else {
        return Err(no_model());
    };
    let models = config.models();
    let found = models.find(model);
    note_unknown(model, &models, notes);
    let (counter, mut files) = fit.encoding.counter_for(model, &found, config)?;
    counter.note(notes);
    files.tokenizer_config = fit.tokenizer_config.as_deref().or(files.tokenizer_config);
    let template = counter.template(files)?;
    if template.is_none() && fit.tokenizer_config.is_some() {
        return Err(Failure::Usage {
            message: format!("`{model}` is not counted with a tokenizer file"),
            hint: "give the tokenizer.json that belongs to the configuration with --tokenizer FILE"
                .into(),
        });
    }
    let chat = counter.of_requests(&found, template.as_ref());
    let extras = Extras {
        memories: &extras.memories(),
        context: &extras.context(),
        tool_importance: &[],
    };
    let asked = FitRequest {
        model,
        found: &found,
        request: &request,
        extras: &extras,
        text: &text,
        counter: &chat,
    };
    let mut options = fit.plan_options(&found.model, config);
    options.requested = fit.max_tokens.unwrap_or(options.requested);
    match asked.fit(options) {
        Ok(Ok(fitted)) => print(fit, &fitted, notes),
        Ok(Err(refused)) => refusal::fail(fit.json, *refused, notes),
        Err(error) => Err(refusal::contradiction(&error)),
    }
}

/// The request, and its text.
fn read(fit: &Fit, notes: &mut Notes) -> Result<(String, ChatRequest), Failure> {
    let source = Source::from(fit.request.clone()).read(notes)?;
    let text = clean_encoding(&source.bytes).text;
    // Some editors on Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let request = ChatRequest::from_json(text);
    let request = request.and_then(|request| match fit.max_tokens {
        Some(tokens) => with_max_tokens(request, tokens),
        None => Ok(request),
    });
    let request = request.map_err(|error| {
        if fit.json {
            // The failure below reports the same.
            let _ = Results::new().object(&Refusal::bad_request(error.to_string()));
        }
        Failure::Request {
            name: source.name,
            source: error,
        }
    })?;
    Ok((text.to_owned(), request))
}

/// The request with another answer length, if it has one.
fn with_max_tokens(request: ChatRequest, tokens: u64) -> Result<ChatRequest, RequestError> {
    let mut request = request.into_value();
    if let Some(members) = request.as_object_mut() {
        for key in ["max_tokens", "max_completion_tokens"] {
            if let Some(value) = members.get_mut(key).filter(|value| !value.is_null()) {
                *value = tokens.into();
            }
        }
    }
    ChatRequest::from_value(request)
}

fn print(fit: &Fit, fitted: &Fitted, notes: &mut Notes) -> Result<Ending, Failure> {
    let mut results = Results::new();
    if fit.json {
        results.object(&fitted.report())?;
        return Ok(Ending::Done);
    }
    let rewritten = &fitted.rewritten;
    let lines = WindowDrawing::of(fitted.asked.model, &fitted.plan).lines(draw::terminal_width());
    if let Some(path) = &fit.output {
        fs::write(path, rewritten).map_err(|source| Failure::OutputUnwritable {
            path: path.clone(),
            source,
        })?;
    }
    if fit.output.is_some() || results.is_terminal() {
        for line in lines {
            results.line(&line)?;
        }
        if fit.output.is_none() {
            notes.hint("to get the fitted request, use -o FILE or redirect the output");
        }
    } else {
        results.document(&[rewritten.as_bytes()])?;
        for line in lines {
            notes.line(line);
        }
    }
    Ok(Ending::Done)
}
