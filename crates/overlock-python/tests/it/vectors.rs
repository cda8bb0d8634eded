//! One file of cases for both doors: here the crates answer them, in `tests/python` the package.
//!
//! A case is a function, its arguments by name, and what comes back. `OVERLOCK_WRITE_VECTORS=1`
//! writes what the crates answer into the file, to be reviewed like code.

use std::fs;
use std::path::Path;

use overlock_budget::{
    ChatCounter, CountTokens, Encoding, Extras, History, Keep, MessageCountOptions, Models,
    NegotiateOptions, PlanOptions, Sharing, Trim,
};
use overlock_code::{CompactOptions, Docs, Language, Level};
use overlock_json::{
    CloseOptions, ContextOptions, Cut, CutValue, Fix, Outcome, PartialDocument, Protocol,
    RenderOptions, RepairOptions, Several, StitchOptions,
};
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{Continuation, ContinuationOptions, ModelOutput};
use serde_json::{Map, Value, json};

#[test]
fn the_crates_answer_every_shared_case() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors.json");
    let text = fs::read_to_string(&path).expect("the cases are in the folder of this test");
    let mut cases: Vec<Value> = serde_json::from_str(&text).expect("the cases are JSON");
    assert_eq!(cases.len(), 192);
    let is_written = std::env::var_os("OVERLOCK_WRITE_VECTORS").is_some();
    for case in &mut cases {
        let function = case["function"].as_str().expect("a case names a function");
        let arguments = case["arguments"].as_object().expect("arguments have names");
        let answered = answer(function, &Arguments(arguments));
        if is_written {
            case["result"] = answered;
        } else {
            assert_eq!(answered, case["result"], "{function} of {arguments:?}");
        }
    }
    if is_written {
        let lines: Vec<_> = cases.iter().map(Value::to_string).collect();
        fs::write(path, format!("[\n{}\n]\n", lines.join(",\n")))
            .expect("the cases can be written");
    }
}

/// The arguments of a case.
struct Arguments<'a>(&'a Map<String, Value>);

impl Arguments<'_> {
    fn text(&self, name: &str) -> &str {
        self.maybe_text(name).expect("a text is given")
    }

    fn maybe_text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    fn size(&self, name: &str) -> Option<usize> {
        usize::try_from(self.number(name)?).ok()
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn texts(&self, name: &str) -> Vec<&str> {
        let items = self.0.get(name).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }
}

fn answer(function: &str, given: &Arguments<'_>) -> Value {
    match function {
        "loads" => loads(given),
        "close" => close(given),
        "repair" => repair(given),
        "extract" => extract(given),
        "cut" => match PartialDocument::read(given.text("text")) {
            Ok(base) => told_cut(given.text("text"), base.cut()),
            Err(_) => no_json(),
        },
        "contexts" => contexts(given),
        "render" => match overlock_json::render(given.text("text"), &render_options(given)) {
            Ok(rendered) => json!(rendered),
            Err(_) => no_json(),
        },
        "stitch" => stitch(given),
        "delivered" => match PartialDocument::read(given.text("text")) {
            Ok(base) => {
                let delivered = base.delivered();
                json!({"lines": delivered.lines(), "section_count": delivered.section_count()})
            }
            Err(_) => no_json(),
        },
        "count_tokens" => json!(encoding(given).count(given.text("text"))),
        "truncate_to_tokens" => {
            let keep = match given.maybe_text("keep") {
                Some("end") => Keep::End,
                _ => Keep::Start,
            };
            let tokens = given.number("tokens").expect("tokens are given");
            json!(encoding(given).truncate_to(given.text("text"), tokens, keep))
        }
        "model_info" => model_info(given),
        "adjusted_max_tokens" => adjusted_max_tokens(given),
        "safe_message_count" => {
            let usual = MessageCountOptions::default();
            json!(overlock_budget::safe_message_count(&MessageCountOptions {
                max_messages: given.number("max_messages"),
                window: window(given),
                requested: given.number("requested").unwrap_or(usual.requested),
                system: given.number("system").unwrap_or(usual.system),
            }))
        }
        "plan" => plan(given),
        "classify" => {
            let known = overlock_code::classify(given.text("text"));
            json!({
                "language": known.language.name(),
                "syntax": known.syntax.map(overlock_code::Syntax::name),
                "reasons": known.reasons,
            })
        }
        "compact" => compact(given),
        "continuation" => continuation(given),
        other => panic!("unknown function `{other}`"),
    }
}

fn no_json() -> Value {
    json!({"code": "no-json"})
}

/// Python counts characters.
fn characters(text: &str, byte: usize) -> usize {
    text[..byte].chars().count()
}

fn told_cut(text: &str, cut: Option<Cut>) -> Value {
    cut.map_or(Value::Null, |cut| {
        json!({
            "offset": characters(text, cut.offset),
            "path": cut.path,
            "place": cut.place.name(),
        })
    })
}

fn fixes_as_json(text: &str, fixes: &[Fix]) -> Value {
    let listed = fixes
        .iter()
        .map(|fix| json!({"kind": fix.kind, "offset": characters(text, fix.offset)}));
    listed.collect()
}

fn loads(given: &Arguments<'_>) -> Value {
    let text = given.text("text");
    let Ok(base) = PartialDocument::read(text) else {
        return no_json();
    };
    if given.0.get("partial") == Some(&Value::Bool(false)) && base.cut().is_some() {
        return json!({"code": "cut"});
    }
    let options = CloseOptions {
        strict: given.flag("strict"),
    };
    match base.close(&options) {
        Ok(closed) => serde_json::from_str(&closed.json).expect("closed JSON is JSON"),
        Err(_) => no_json(),
    }
}

fn close(given: &Arguments<'_>) -> Value {
    let text = given.text("text");
    let options = CloseOptions {
        strict: given.flag("strict"),
    };
    match overlock_json::close(text, &options) {
        Ok(closed) => json!({
            "json": closed.json,
            "complete": closed.complete,
            "truncated": closed.truncated,
            "dropped": closed.dropped,
            "fixes": fixes_as_json(text, &closed.fixes),
        }),
        Err(_) => no_json(),
    }
}

fn repair(given: &Arguments<'_>) -> Value {
    let text = given.text("text");
    let several = match given.maybe_text("several") {
        Some("first") => Several::First,
        _ => Several::Array,
    };
    match overlock_json::repair(text, &RepairOptions { several }) {
        Ok(repaired) => json!({
            "json": repaired.json,
            "fixes": fixes_as_json(text, &repaired.fixes),
        }),
        Err(_) => no_json(),
    }
}

fn extract(given: &Arguments<'_>) -> Value {
    let text = given.text("text");
    overlock_json::extract(text).map_or(Value::Null, |found| {
        json!({
            "start": characters(text, found.start),
            "end": characters(text, found.end),
        })
    })
}

fn render_options(given: &Arguments<'_>) -> RenderOptions {
    RenderOptions {
        budget: given.size("budget").unwrap_or(500),
        cut_value: match given.maybe_text("cut_value") {
            Some("keep") => CutValue::Keep,
            Some("tail") => CutValue::Tail,
            _ => CutValue::Hint,
        },
        limit: given.size("limit"),
        ..RenderOptions::default()
    }
}

fn contexts(given: &Arguments<'_>) -> Value {
    let text = given.text("text");
    let options = ContextOptions {
        render: render_options(given),
        answer_chars: given.size("answer_chars"),
    };
    let Ok(contexts) = overlock_json::contexts(text, &options) else {
        return no_json();
    };
    json!({
        "overlap_context": contexts.overlap_context,
        "hierarchy_context": contexts.hierarchy_context,
        "hierarchy_context_for_prompt": contexts.hierarchy_context_for_prompt,
        "complete_part": contexts.complete_part,
        "parsing_success": contexts.parsing_success,
        "cut": told_cut(text, contexts.cut),
        "cut_off_element": contexts.cut_off_element,
        "element_before_cutoff": contexts.element_before_cutoff,
    })
}

fn stitch(given: &Arguments<'_>) -> Value {
    let parts = given.texts("parts");
    let Ok(mut base) = PartialDocument::read(parts[0]) else {
        return no_json();
    };
    let options = StitchOptions {
        protocol: match given.maybe_text("protocol") {
            Some("overlap") => Protocol::Overlap,
            Some("prefill") => Protocol::Prefill,
            _ => Protocol::Auto,
        },
        expected_overlap: given.maybe_text("expected_overlap"),
    };
    let mut seams = Vec::new();
    for part in &parts[1..] {
        let seam = overlock_json::stitch(&mut base, part, &options);
        let is_refused = matches!(
            seam.outcome,
            Outcome::NoMatch(_) | Outcome::Ambiguous { .. }
        );
        seams.push(json!({
            "outcome": seam.outcome.name(),
            "accepted": seam.outcome.is_accepted(),
            "overlap": seam.overlap,
            "added": seam.added,
            "has_reason": is_refused,
        }));
    }
    let is_joined = seams.iter().any(|seam| seam["accepted"] == true);
    let suspicious = is_joined.then(|| base.suspicion()).flatten();
    json!({
        "json": base.text(),
        "complete": base.is_complete(),
        "seams": seams,
        "suspicious": suspicious.map(|reason| reason.to_string()),
    })
}

fn encoding(given: &Arguments<'_>) -> Encoding {
    Encoding::from_name(given.text("encoding")).expect("the encoding is known")
}

fn model_info(given: &Arguments<'_>) -> Value {
    let found = Models::default().find(given.text("name"));
    json!({
        "entry": found.entry,
        "how": found.how.name(),
        "window": found.model.window,
        "answer_cap": found.model.answer_cap,
        "shared": found.model.sharing == Sharing::Shared,
        "tokenizer": found.model.tokenizer,
        "prefill": found.model.prefill,
        "json": found.model.json,
        "tools": found.model.tools,
        "disputed": found.model.disputed,
    })
}

fn window(given: &Arguments<'_>) -> Option<u64> {
    let of_model = |name| Models::default().find(name).model.window;
    given
        .number("window")
        .or_else(|| given.maybe_text("model").map(of_model))
}

fn adjusted_max_tokens(given: &Arguments<'_>) -> Value {
    let usual = NegotiateOptions::default();
    let history = match (given.number("messages"), given.number("tokens")) {
        (Some(messages), _) => History::Estimated { messages },
        (None, tokens) => History::Counted {
            tokens: tokens.unwrap_or(0),
        },
    };
    let negotiation = overlock_budget::adjusted_max_tokens(
        history,
        &NegotiateOptions {
            window: window(given).unwrap_or(usual.window),
            requested: given.number("requested").unwrap_or(usual.requested),
            system: given.number("system").unwrap_or(usual.system),
            margin: given.number("margin").unwrap_or(usual.margin),
            answer_cap: given.number("answer_cap"),
            grow: given.flag("grow"),
        },
    );
    json!({
        "input": negotiation.input,
        "available": negotiation.available,
        "adjusted": negotiation.adjusted,
        "adjustment": negotiation.adjustment.name(),
        "overflow": negotiation.overflow,
        "fits": negotiation.fits(),
    })
}

fn plan(given: &Arguments<'_>) -> Value {
    let request = ChatRequest::from_value(given.0["request"].clone()).expect("it is a request");
    let found = Models::default().find(request.model().unwrap_or_default());
    let usual = PlanOptions::for_model(&found.model);
    let options = PlanOptions {
        window: given.number("window").unwrap_or(usual.window),
        requested: given.number("max_tokens").unwrap_or(usual.requested),
        trim: given
            .maybe_text("trim")
            .and_then(Trim::from_name)
            .unwrap_or_default(),
        ..usual
    };
    let counter = ChatCounter::for_model(&found);
    match overlock_budget::plan(&request, &Extras::default(), &counter, &options) {
        Ok(plan) => json!({
            "adjusted_max_tokens": plan.adjusted_max_tokens,
            "input_token_count": plan.input_token_count,
            "message_count": plan.message_count,
            "kept_messages": plan.kept_messages,
            "dropped_messages": plan.dropped_messages,
            "counter": plan.counter,
            "provenance": plan.provenance.name(),
            "explanation": plan.explanation(),
            "request": request.rewrite(&plan),
        }),
        Err(error) => json!({
            "code": "context-length-exceeded",
            "message": error.to_string(),
            "help": error.help().iter().map(ToString::to_string).collect::<Vec<_>>(),
        }),
    }
}

fn compact(given: &Arguments<'_>) -> Value {
    let text = given.text("text");
    let language = given.maybe_text("language").and_then(Language::from_name);
    let language = language.unwrap_or_else(|| overlock_code::classify(text).language);
    let options = CompactOptions {
        level: match given.maybe_text("level") {
            Some("outline") => Level::Outline,
            _ => Level::Lossless,
        },
        docs: match given.maybe_text("docs") {
            Some("keep") => Docs::Keep,
            _ => Docs::Drop,
        },
    };
    let compacted = overlock_code::compact(text, language, &options);
    json!({
        "text": compacted.text,
        "language": language.name(),
        "compacted": compacted.compacted,
        "reason": compacted.reason.name(),
    })
}

fn continuation(given: &Arguments<'_>) -> Value {
    let mut run = Continuation::new(ContinuationOptions::default());
    let mut asked = Vec::new();
    let mut steps = Vec::new();
    for text in given.texts("answers") {
        let ask = run.next().expect("the run has not ended");
        let answer = ModelOutput::new(text.as_bytes(), 10);
        steps.push(run.answered(&ask, &answer).expect("it is awaited"));
        asked.push(json!([ask.iteration, ask.strategy, ask.overlap]));
    }
    let outcome = run.outcome();
    json!({
        "asked": asked,
        "steps": steps,
        "outcome": outcome.map(overlock_llm::Outcome::name),
        "reason": outcome.and_then(overlock_llm::Outcome::reason),
        "text": run.text(),
        "closed": run.last_valid_complete_part(),
        "output_tokens": run.output_tokens(),
    })
}
