//! Token budgets: requests that fit the window of a model.

use std::path::PathBuf;

use overlock_budget::{
    ChatCounter, ContextBlock, Extras, Found, History, Memory, MessageCountOptions, Models,
    NegotiateOptions, Plan, PlanError, PlanOptions, Trim,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::count::count;
use crate::error::Raise;
use crate::json::chosen;
use crate::request;
use crate::result::make;
use crate::tokens::Counter;

/// A model, its token counter, and the options for planning requests to it.
pub(crate) struct Planner {
    found: Found,
    counter: Counter,
    options: PlanOptions,
}

impl Planner {
    pub(crate) fn new(found: Found, counter: Counter, options: PlanOptions) -> Self {
        Self {
            found,
            counter,
            options,
        }
    }

    pub(crate) fn options(&self) -> &PlanOptions {
        &self.options
    }

    /// The counter for whole requests.
    pub(crate) fn chat_counter(&self) -> ChatCounter<'_> {
        if self.counter.is_stand_in {
            ChatCounter::for_model(&self.found)
        } else {
            ChatCounter::with_counter(&self.found, self.counter.tokens.as_ref())
        }
    }
}

/// Adjusts the requested length of an answer to the room that the input leaves.
///
///     >>> import overlock
///     >>> overlock.adjusted_max_tokens(model="gpt-3.5-turbo", messages=50, requested=5000).adjusted
///     3285
#[pyfunction]
#[pyo3(signature = (*, model = None, window = None, messages = None, tokens = None,
                    requested = 3000, system = 500, margin = 100, answer_cap = None,
                    grow = false))]
pub(crate) fn adjusted_max_tokens<'py>(
    py: Python<'py>,
    model: Option<&str>,
    #[pyo3(from_py_with = count)] window: Option<u64>,
    #[pyo3(from_py_with = count)] messages: Option<u64>,
    #[pyo3(from_py_with = count)] tokens: Option<u64>,
    #[pyo3(from_py_with = count)] requested: u64,
    #[pyo3(from_py_with = count)] system: u64,
    #[pyo3(from_py_with = count)] margin: u64,
    #[pyo3(from_py_with = count)] answer_cap: Option<u64>,
    grow: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let history = match (messages, tokens) {
        (Some(messages), None) => History::Estimated { messages },
        (None, Some(tokens)) => History::Counted { tokens },
        _ => {
            return Err(PyValueError::new_err(
                "give either `messages`, of which each counts 250 tokens, or their `tokens`",
            ));
        }
    };
    let options = NegotiateOptions {
        window: window_of(model, window).unwrap_or(overlock_budget::DEFAULT_WINDOW),
        answer_cap,
        requested,
        system,
        margin,
        grow,
    };
    let negotiation = overlock_budget::adjusted_max_tokens(history, &options);
    let fields = (
        negotiation.input,
        negotiation.available,
        negotiation.adjusted,
        negotiation.adjustment.name(),
        negotiation.overflow,
        negotiation.fits(),
    );
    make(py, "Negotiation", fields)
}

/// The number of newest messages that can safely be loaded before any is counted.
///
///     >>> import overlock
///     >>> overlock.safe_message_count(model="gpt-3.5-turbo", requested=5000)
///     34
#[pyfunction]
#[pyo3(signature = (*, model = None, window = None, max_messages = None, requested = 3000,
                    system = 500))]
pub(crate) fn safe_message_count(
    model: Option<&str>,
    #[pyo3(from_py_with = count)] window: Option<u64>,
    #[pyo3(from_py_with = count)] max_messages: Option<u64>,
    #[pyo3(from_py_with = count)] requested: u64,
    #[pyo3(from_py_with = count)] system: u64,
) -> u64 {
    overlock_budget::safe_message_count(&MessageCountOptions {
        max_messages,
        window: window_of(model, window),
        requested,
        system,
    })
}

fn window_of(model: Option<&str>, window: Option<u64>) -> Option<u64> {
    let of_model = |name| Models::default().find(name).model.window;
    window.or_else(|| model.map(of_model))
}

/// A memory: its text, importance and age in days.
type Remembered = (String, f64, f64);

/// Makes a chat request fit the window of its model.
///
/// The request is a `dict` in the form of OpenAI's chat completions. The answer is shortened first,
/// down to `answer_floor` (500), then the oldest messages are dropped. `memories` are tuples of text,
/// importance and age in days, `context` tuples of a name and a text. A request that cannot fit
/// raises `PlanError`, whose `help` says what to change.
///
///     >>> import overlock
///     >>> request = {"model": "gpt-4", "messages": [{"role": "user", "content": "Hi"}]}
///     >>> plan = overlock.plan(request, max_tokens=9000)
///     >>> plan.input_token_count, plan.adjusted_max_tokens
///     (8, 8134)
///     >>> plan.request["max_completion_tokens"]
///     8134
#[pyfunction]
#[pyo3(signature = (request, *, model = None, window = None, max_tokens = None, trim = "oldest",
                    margin = None, grow = false, answer_floor = None, drop_step = 1, memories = Vec::new(),
                    context = Vec::new(), tool_importance = Vec::new(), encoding = None,
                    tokenizer = None))]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    request: &Bound<'py, PyAny>,
    model: Option<String>,
    #[pyo3(from_py_with = count)] window: Option<u64>,
    #[pyo3(from_py_with = count)] max_tokens: Option<u64>,
    trim: &str,
    #[pyo3(from_py_with = count)] margin: Option<u64>,
    grow: bool,
    #[pyo3(from_py_with = count)] answer_floor: Option<u64>,
    #[pyo3(from_py_with = count)] drop_step: usize,
    memories: Vec<Remembered>,
    context: Vec<(String, String)>,
    tool_importance: Vec<f64>,
    encoding: Option<&str>,
    tokenizer: Option<PathBuf>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = request::read(py, request)?;
    let name = model.or_else(|| request.model().map(str::to_owned));
    let settings = Settings {
        model: name.as_deref(),
        window,
        max_tokens,
        trim,
        margin,
        grow,
        answer_floor,
        drop_step,
    };
    let planner = settings.planner(py, encoding, tokenizer)?;
    let memories: Vec<_> = memories
        .iter()
        .map(|(text, importance, age_days)| Memory {
            text,
            importance: *importance,
            age_days: *age_days,
        })
        .collect();
    let context: Vec<_> = context
        .iter()
        .map(|(name, text)| ContextBlock { name, text })
        .collect();
    let extras = Extras {
        memories: &memories,
        context: &context,
        tool_importance: &tool_importance,
    };
    let result = py.detach(|| {
        let counter = planner.chat_counter();
        overlock_budget::plan(&request, &extras, &counter, planner.options())
    });
    let plan = result.map_err(|error| plan_error(py, &error))?;
    let rewritten = request.rewrite(&plan);
    plan_object(py, &plan, &rewritten)
}

/// The options of a plan, as passed from Python.
pub(crate) struct Settings<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) window: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) trim: &'a str,
    pub(crate) margin: Option<u64>,
    pub(crate) grow: bool,
    pub(crate) answer_floor: Option<u64>,
    pub(crate) drop_step: usize,
}

impl Settings<'_> {
    pub(crate) fn planner(
        &self,
        py: Python<'_>,
        encoding: Option<&str>,
        tokenizer: Option<PathBuf>,
    ) -> PyResult<Planner> {
        let found = Models::default().find(self.model.unwrap_or_default());
        let usual = PlanOptions::for_model(&found.model);
        let trims = [Trim::Off, Trim::Oldest, Trim::Summary].map(|trim| (trim.name(), trim));
        let options = PlanOptions {
            window: self.window.unwrap_or(usual.window),
            requested: self.max_tokens.unwrap_or(usual.requested),
            trim: chosen("trim", self.trim, &trims)?,
            margin: self.margin,
            grow: self.grow,
            answer_floor: self.answer_floor.unwrap_or(usual.answer_floor),
            drop_step: self.drop_step.max(1),
            ..usual
        };
        let counter = Counter::named(py, self.model, encoding, tokenizer)?;
        Ok(Planner::new(found, counter, options))
    }
}

/// A plan as a Python object.
pub(crate) fn plan_object<'py>(
    py: Python<'py>,
    plan: &Plan,
    request: &serde_json::Value,
) -> PyResult<Bound<'py, PyAny>> {
    let parts = PyList::empty(py);
    for part in &plan.parts {
        let fields = (
            part.part.name(),
            part.asked,
            part.given,
            part.kept,
            part.dropped,
            part.dropped_names.clone(),
            part.explanation(),
        );
        parts.append(make(py, "PlannedPart", fields)?)?;
    }
    let figures = make(
        py,
        "Figures",
        (
            plan.window,
            plan.margin.tokens,
            plan.input_token_count,
            plan.available,
            plan.requested,
            plan.adjusted_max_tokens,
            plan.adjustment.name(),
            plan.counter.as_str(),
            plan.provenance.name(),
            plan.blocker.as_deref(),
        ),
    )?;
    let fields = (
        request::object(py, request)?,
        plan.adjusted_max_tokens,
        plan.input_token_count,
        plan.message_count,
        plan.memory_count,
        plan.kept_messages.clone(),
        plan.dropped_messages.clone(),
        figures,
        parts,
        plan.explanation(),
    );
    make(py, "Plan", fields)
}

/// The exception for a request that cannot fit.
pub(crate) fn plan_error(py: Python<'_>, error: &PlanError) -> PyErr {
    let raise = Raise::new("PlanError", "context-length-exceeded", error.to_string());
    let help = error.help().iter().map(ToString::to_string).collect();
    raise.with_help(help).into_error(py)
}
