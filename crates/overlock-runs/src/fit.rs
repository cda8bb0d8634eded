//! Fits a request into the window of its model.

use overlock_budget::{
    ChatCounter, Extras, FlexError, Found, Part, Plan, PlanError, PlanOptions, PlannedPart,
    Provenance, Request, Trim, least_parts, plan,
};
use overlock_llm::wire::chat::{ChatRequest, rewrite_text};
use serde::Serialize;
use serde_json::value::RawValue;

/// A request to fit, its model and its counter.
#[derive(Clone, Copy)]
pub struct FitRequest<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// What the registry knows about the model.
    pub found: &'a Found,
    /// The request.
    pub request: &'a ChatRequest,
    /// The text of the request.
    pub text: &'a str,
    /// Memories and blocks to add to the prompt.
    pub extras: &'a Extras<'a>,
    /// The token counter.
    pub counter: &'a ChatCounter<'a>,
}

/// A request that fits.
pub struct Fitted<'a> {
    /// The original request.
    pub asked: FitRequest<'a>,
    /// The plan.
    pub plan: Plan,
    /// The request to send, in the layout of the original, with a line break at its end.
    pub rewritten: String,
}

/// A request that cannot be made to fit.
pub struct Refused<'a> {
    /// What was asked.
    pub asked: FitRequest<'a>,
    /// How the window was to be divided.
    pub options: PlanOptions,
    /// Why it cannot fit.
    pub error: PlanError,
    /// By how many tokens the required parts exceed the window.
    pub overflow: u64,
    /// The request with only its required parts.
    pub least: Least,
    /// Whether it would fit without its oldest turns.
    pub trimming_helps: bool,
}

/// A request reduced to the parts that must stay.
#[derive(Clone, Debug)]
pub struct Least {
    /// What remains of each part.
    pub parts: Vec<PlannedPart>,
    /// The tokens of all parts but the answer.
    pub input: u64,
    /// The tokens of the safety margin.
    pub margin: u64,
    /// The tokens left for the answer, which can be negative.
    pub available: i64,
    /// The tokens requested for the answer.
    pub requested: u64,
    /// The minimum tokens for the answer.
    pub answer: u64,
}

impl<'a> FitRequest<'a> {
    /// Fits the request. Contradictory options are an error.
    pub fn fit(
        self,
        options: PlanOptions,
    ) -> Result<Result<Fitted<'a>, Box<Refused<'a>>>, PlanError> {
        let planned = |options| plan(self.request, self.extras, self.counter, options);
        let error = match planned(&options) {
            Ok(plan) => return Ok(Ok(self.fitted(plan))),
            Err(error) => error,
        };
        let PlanError::Refused(FlexError::TooLarge { over, gap, .. }) = &error else {
            return Err(error);
        };
        let trimmed = PlanOptions {
            trim: Trim::Oldest,
            ..options.clone()
        };
        Ok(Err(Box::new(Refused {
            trimming_helps: options.trim == Trim::Off && planned(&trimmed).is_ok(),
            overflow: *over,
            least: Least::of(self.request, self.extras, self.counter, &options, *gap),
            asked: self,
            options,
            error,
        })))
    }

    fn fitted(self, plan: Plan) -> Fitted<'a> {
        let text = rewrite_text(self.text, &plan);
        let mut rewritten = text.unwrap_or_else(|| self.request.clone().rewrite(&plan).to_string());
        if !rewritten.ends_with('\n') {
            rewritten.push('\n');
        }
        Fitted {
            asked: self,
            plan,
            rewritten,
        }
    }
}

/// The JSON report of a request that fits.
#[derive(Debug, Serialize)]
pub struct FitReport<'a> {
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
    parts: Vec<PartReport<'a>>,
    request: Box<RawValue>,
}

/// How one part of a request fared.
#[derive(Debug, Serialize)]
pub struct PartReport<'a> {
    name: &'static str,
    asked: u64,
    /// Whether `asked` is a minimum.
    at_least: bool,
    given: u64,
    kept: usize,
    dropped: usize,
    dropped_names: &'a [String],
    explanation: String,
}

impl Fitted<'_> {
    /// The JSON report.
    pub fn report(&self) -> FitReport<'_> {
        let plan = &self.plan;
        FitReport {
            model: self.asked.model,
            window: plan.window,
            found: self.asked.found.how.name(),
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
            parts: plan.parts.iter().map(PartReport::from).collect(),
            request: on_one_line(&self.rewritten),
        }
    }
}

/// Puts JSON on one line: line breaks in it occur only between values.
fn on_one_line(json: &str) -> Box<RawValue> {
    let line = json.replace(['\n', '\r'], "");
    RawValue::from_string(line).expect("what was read as JSON and rewritten is JSON")
}

impl<'a> From<&'a PlannedPart> for PartReport<'a> {
    fn from(part: &'a PlannedPart) -> Self {
        Self {
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
}

/// The JSON report of a request that does not fit.
#[derive(Debug, Serialize)]
pub struct RefusalReport<'a> {
    model: &'a str,
    window: u64,
    found: &'static str,
    fits: bool,
    overflow: u64,
    /// The minimum for the answer.
    adjusted_max_tokens: u64,
    requested: u64,
    available: i64,
    /// The tokens of the required parts.
    input_token_count: u64,
    margin: u64,
    message_count: usize,
    memory_count: usize,
    counter: &'a str,
    provenance: &'static str,
    exact: bool,
    parts: Vec<PartReport<'a>>,
    error: RefusalReason,
}

#[derive(Debug, Serialize)]
struct RefusalReason {
    code: &'static str,
    message: String,
    help: Vec<String>,
}

impl Refused<'_> {
    /// Suggestions, one per item; `trimming` is the one for dropping the oldest turns.
    pub fn help(&self, trimming: &str) -> Vec<String> {
        let trimming = self.trimming_helps.then(|| trimming.to_owned());
        let help = self.error.help().iter().map(ToString::to_string);
        trimming.into_iter().chain(help).collect()
    }

    /// The JSON report.
    pub fn report(&self, help: Vec<String>) -> RefusalReport<'_> {
        let least = &self.least;
        let provenance = self.asked.counter.provenance(self.asked.request);
        RefusalReport {
            model: self.asked.model,
            window: self.options.window,
            found: self.asked.found.how.name(),
            fits: false,
            overflow: self.overflow,
            adjusted_max_tokens: least.answer,
            requested: least.requested,
            available: least.available,
            input_token_count: least.input,
            margin: least.margin,
            message_count: least.message_count(),
            memory_count: least.memory_count(),
            counter: self.asked.counter.name(),
            provenance: provenance.name(),
            exact: provenance == Provenance::Exact,
            parts: least.parts.iter().map(PartReport::from).collect(),
            error: RefusalReason {
                code: "context-length-exceeded",
                message: self.error.to_string(),
                help,
            },
        }
    }
}

impl Least {
    /// Reduces a request to its required parts, with a margin of so many tokens.
    pub fn of(
        request: &dyn Request,
        extras: &Extras<'_>,
        counter: &ChatCounter<'_>,
        options: &PlanOptions,
        margin: u64,
    ) -> Self {
        let parts = least_parts(request, extras, counter, options);
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

    /// The number of messages that must stay.
    pub fn message_count(&self) -> usize {
        let parts = [Part::LastUserMessage, Part::OpenTurn, Part::History];
        parts.map(|part| self.kept(part)).iter().sum()
    }

    /// The number of memories that must stay.
    pub fn memory_count(&self) -> usize {
        self.kept(Part::Memories)
    }

    fn kept(&self, part: Part) -> usize {
        let parts = self.parts.iter().filter(|planned| planned.part == part);
        parts.map(|planned| planned.kept).sum()
    }
}
