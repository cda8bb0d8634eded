//! Fits a chat request: counted, planned, rewritten.

use std::fs;

use overlock_budget::Extras;
use overlock_json::{Refusal, clean_encoding};
use overlock_llm::wire::chat::{ChatRequest, RequestError};
use overlock_runs::{Asked, Fitted};

use super::extras::Owned;
use super::{Fit, no_model, refusal};
use crate::commands::models::note_unknown;
use crate::config::Config;
use crate::draw::{self, WindowDrawing};
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

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
    match asked.fit(options) {
        Ok(Ok(fitted)) => answer(fit, &fitted, notes),
        Ok(Err(refused)) => refusal::tell(fit.json, *refused, notes),
        // Only the configuration can ask for what contradicts itself.
        Err(error) => Err(Failure::Usage {
            message: error.to_string(),
            hint: "set `min` to no more than `max` under [budget] in overlock.toml".into(),
        }),
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

fn answer(fit: &Fit, fitted: &Fitted, notes: &mut Notes) -> Result<Ending, Failure> {
    let mut results = Results::new();
    if fit.json {
        results.object(&fitted.told())?;
        return Ok(Ending::Whole);
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
