//! Joins one document from several answers; the caller makes the calls in Python.

use overlock_llm::{
    AnswerError, ContinuationOptions, FittedCall, Kpi, MeasuredKpi, ModelOutput, NextCall, Outcome,
    PromptError, Reason, Strategy, StreamingAnswer, Wants, after_echo,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde_json::Value;

use crate::budget::{self, Planner, Settings};
use crate::count::count;
use crate::error::Raise;
use crate::json::chosen;
use crate::request;
use crate::result::{self, make};
use crate::text::Text;
use crate::utf8::Utf8;
use crate::whole;

/// A long answer in progress: the state machine behind `complete`.
///
/// It never calls a model: it returns the next call, takes the answer, and decides what follows.
///
///     >>> import overlock
///     >>> run = overlock.Continuation()
///     >>> ask = run.next()
///     >>> step = run.answered(ask, '{"rows": ["alpha", "beta", "gam')
///     >>> ask = run.next()
///     >>> step = run.answered(ask, ask.overlap + 'ma"]}')
///     >>> run.outcome.name, run.value()
///     ('complete', {'rows': ['alpha', 'beta', 'gamma']})
///
/// `to_json` and `from_json` (and `pickle`) store it between two answers.
#[pyclass(module = "overlock")]
pub(crate) struct Continuation {
    run: overlock_llm::Continuation,
    /// The answer that is streaming, if any.
    listening: Option<StreamingAnswer>,
    /// The prefill of the current call. Some servers repeat it in the answer.
    prefill: Option<String>,
}

/// How the progress of the document is measured.
#[derive(FromPyObject)]
enum Progress<'py> {
    Named(String),
    Counted(Vec<Bound<'py, PyAny>>),
}

#[pymethods]
impl Continuation {
    #[new]
    #[pyo3(signature = (*, strategies = None, max_failures = 3, max_iterations = 50,
                        max_output_tokens = None, answer_chars = None, kpi = None,
                        kpi_patience = 3))]
    fn new(
        py: Python<'_>,
        strategies: Option<Vec<String>>,
        #[pyo3(from_py_with = count)] max_failures: u32,
        #[pyo3(from_py_with = count)] max_iterations: u32,
        #[pyo3(from_py_with = count)] max_output_tokens: Option<u64>,
        #[pyo3(from_py_with = count)] answer_chars: Option<usize>,
        kpi: Option<Progress<'_>>,
        #[pyo3(from_py_with = count)] kpi_patience: u32,
    ) -> PyResult<Self> {
        let names = [Strategy::Prefill, Strategy::Overlap, Strategy::Remainder]
            .map(|strategy| (strategy.name(), strategy));
        let usual = ContinuationOptions::default();
        let strategies = strategies.map(|strategies| {
            let strategies = strategies
                .iter()
                .map(|strategy| chosen("strategies", strategy, &names));
            strategies.collect::<PyResult<Vec<_>>>()
        });
        let options = ContinuationOptions {
            strategies: strategies.transpose()?.unwrap_or(usual.strategies),
            max_failures,
            max_iterations,
            max_output_tokens,
            answer_chars,
            kpi: kpi.map_or(Ok(usual.kpi), |kpi| kpi.read(py))?,
            kpi_patience,
        };
        Ok(Self {
            run: overlock_llm::Continuation::new(options),
            listening: None,
            prefill: None,
        })
    }

    /// The next call; `None` once the run has ended.
    ///
    /// `at_cut` asserts that the answer to a prefill starts exactly at its end, because the server
    /// continues the prefill under its grammar. Only then does a prefill keep its white space.
    #[pyo3(signature = (*, at_cut = false))]
    fn next<'py>(&mut self, py: Python<'py>, at_cut: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.run.set_at_cut(at_cut);
        let next = self.run.next().map(|ask| {
            let wants = match ask.wants {
                Wants::Document => "document",
                Wants::ProgressAndDocument => "progress-and-document",
                Wants::Kpis => "kpis",
                Wants::Text => "text",
            };
            let fields = (
                ask.iteration,
                ask.strategy.map(Strategy::name),
                ask.overlap,
                wants,
            );
            make(py, "NextCall", fields)
        });
        next.transpose()
    }

    /// The request for a call, planned into the window of the model.
    #[pyo3(signature = (ask, request, *, model = None, window = None, max_tokens = None,
                        trim = "oldest", margin = None))]
    fn next_call<'py>(
        &mut self,
        py: Python<'py>,
        ask: &Bound<'py, PyAny>,
        request: &Bound<'py, PyAny>,
        model: Option<String>,
        #[pyo3(from_py_with = count)] window: Option<u64>,
        #[pyo3(from_py_with = count)] max_tokens: Option<u64>,
        trim: &str,
        #[pyo3(from_py_with = count)] margin: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let request = request::read(py, request)?;
        self.run.set_request(&request);
        let ask = self.asked(py, ask)?;
        let name = model.or_else(|| request.model().map(str::to_owned));
        let settings = Settings {
            model: name.as_deref(),
            window,
            max_tokens,
            trim,
            margin,
            grow: false,
            answer_floor: None,
            drop_step: 1,
        };
        let planner: Planner = settings.planner(py, None, None)?;
        let run = &self.run;
        let fitted = py.detach(|| {
            let counter = planner.chat_counter();
            overlock_llm::next_call(run, &ask, &request, &counter, planner.options())
        });
        let FittedCall { call, plan } = fitted.map_err(|error| match error {
            PromptError::Window(error) => budget::plan_error(py, &error),
            PromptError::Request(error) => request::bad_request(py, &error),
        })?;
        self.prefill.clone_from(&call.prefill);
        let sent = Value::Object(call.request);
        let plan = budget::plan_object(py, &plan, &sent)?;
        make(
            py,
            "Call",
            (request::object(py, &sent)?, call.prefill, plan),
        )
    }

    /// Prepares for a streamed answer.
    fn listen(&mut self, py: Python<'_>, ask: &Bound<'_, PyAny>) -> PyResult<()> {
        let ask = self.asked(py, ask)?;
        // The document that `hear` returns cannot be revised later.
        self.run.set_streamed(true);
        self.listening = Some(StreamingAnswer::new(self.run.base(), &ask));
        Ok(())
    }

    /// Takes the next piece of the answer and returns the new stable part of the document.
    fn hear(&mut self, piece: Utf8) -> PyResult<String> {
        let listening = self.listening.as_mut();
        let listening = listening.ok_or_else(|| {
            PyValueError::new_err("call `listen` before the first piece of an answer")
        })?;
        Ok(listening.feed(&piece))
    }

    /// Whether the rest of the answer cannot belong to the document.
    #[getter]
    fn is_spoilt(&self) -> bool {
        self.listening
            .as_ref()
            .is_some_and(StreamingAnswer::is_spoilt)
    }

    /// Takes an answer and returns the step that it made.
    #[pyo3(signature = (ask, text, *, tokens = 0))]
    fn answered<'py>(
        &mut self,
        py: Python<'py>,
        ask: &Bound<'py, PyAny>,
        text: Text,
        #[pyo3(from_py_with = count)] tokens: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ask = self.asked(py, ask)?;
        let listened;
        let text = match (self.listening.take(), text.utf8(py)) {
            (Some(listening), Ok(text)) => {
                listened = listening.of_document(text.to_owned());
                listened.as_bytes()
            }
            _ => text.bytes(),
        };
        let prefill = self.prefill.take().unwrap_or_default();
        let after_echo = after_echo(text, &prefill);
        let answer = ModelOutput {
            text: after_echo.unwrap_or(text),
            tokens,
            is_at_cut: after_echo.is_some(),
        };
        let run = &mut self.run;
        let step = py.detach(|| run.answered(&ask, &answer));
        let step = step.map_err(|error| answer_error(py, error))?;
        request::object(py, &step)
    }

    /// Notes that the model rejected this kind of request.
    fn refused<'py>(
        &mut self,
        py: Python<'py>,
        ask: &Bound<'py, PyAny>,
        message: String,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let ask = self.asked(py, ask)?;
        let step = self.run.refused(&ask, message);
        step.map(|step| request::object(py, &step)).transpose()
    }

    /// Ends the run: `deadline`, `window`, `cancelled` or `model-error`.
    fn stop(&mut self, reason: &str) -> PyResult<()> {
        let reasons = [
            Reason::Deadline,
            Reason::Window,
            Reason::Cancelled,
            Reason::ModelError,
        ]
        .map(|reason| (reason.name(), reason));
        self.run.stop(chosen("reason", reason, &reasons)?);
        Ok(())
    }

    /// How the run ended, if it has.
    #[getter]
    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(outcome) = self.run.outcome() else {
            return Ok(None);
        };
        let stops = match outcome {
            Outcome::Partial { cut, .. } => Some(cut.clone()),
            Outcome::Complete | Outcome::Failed { .. } => None,
        };
        let text = self.run.text().as_bytes();
        let offset = |byte: usize| crate::text::characters(&text[..byte.min(text.len())]);
        let cut = result::cut(py, stops, offset)?;
        let reason = outcome.reason().map(Reason::name);
        make(py, "Outcome", (outcome.name(), reason, cut)).map(Some)
    }

    /// The document so far, up to its cut.
    #[getter]
    fn text(&self) -> &str {
        self.run.text()
    }

    /// The document without half an escape at its end, which the next answer may rewrite.
    #[getter]
    fn settled_text(&self) -> &str {
        let settled = self
            .run
            .base()
            .map_or(0, overlock_json::PartialDocument::settled_len);
        &self.run.text()[..settled]
    }

    /// The last answer, if none was JSON.
    #[getter]
    fn raw(&self) -> &str {
        self.run.raw()
    }

    /// The document so far, closed to valid JSON.
    #[getter]
    fn last_valid_complete_part(&self) -> Option<String> {
        self.run.last_valid_complete_part()
    }

    /// The same as a Python object.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let json = self.run.last_valid_complete_part();
        let value = json.map(|json| whole::valid(py, &[&json]));
        value.transpose()
    }

    /// Whether the first answer was cut, so that answers are joined.
    #[getter]
    fn is_accumulation_mode(&self) -> bool {
        self.run.is_accumulation_mode()
    }

    /// The number of calls so far.
    #[getter]
    fn iterations(&self) -> u32 {
        self.run.iterations()
    }

    /// The number of failed answers in a row.
    #[getter]
    fn merge_fail_count(&self) -> u32 {
        self.run.merge_fail_count()
    }

    /// The total tokens of all answers.
    #[getter]
    fn output_tokens(&self) -> u64 {
        self.run.output_tokens()
    }

    /// The percentage of the document that the model last reported.
    #[getter]
    fn last_kpi(&self) -> Option<u8> {
        self.run.last_kpi()
    }

    /// The contents of the document so far.
    #[getter]
    fn delivered<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let delivered = self.run.delivered().map(|delivered| {
            make(
                py,
                "Delivered",
                (delivered.lines(), delivered.section_count()),
            )
        });
        delivered.transpose()
    }

    /// The run as JSON, to be stored.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string(&self.run)
            .map_err(|error| Raise::bad_request("bad-run", error.to_string()).into_error(py))
    }

    /// Reads a stored run.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: Utf8) -> PyResult<Self> {
        let run = py.detach(|| serde_json::from_str(&text));
        let run = run.map_err(|error: serde_json::Error| {
            let message = format!("not a stored run: {error}");
            Raise::bad_request("bad-run", message).into_error(py)
        })?;
        Ok(Self {
            run,
            listening: None,
            prefill: None,
        })
    }

    fn __repr__(&self) -> String {
        let state = match self.run.outcome() {
            Some(outcome) => outcome.name(),
            None => "under way",
        };
        let (asked, written) = (self.run.iterations(), self.run.text().len());
        format!("<overlock.Continuation, {state}, {asked} answers, {written} bytes>")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let class = py.get_type::<Self>();
        Ok((class.getattr("from_json")?, (self.to_json(py)?,)))
    }
}

impl Continuation {
    /// The current call, if `ask` is it.
    fn asked(&self, py: Python<'_>, ask: &Bound<'_, PyAny>) -> PyResult<NextCall> {
        let iteration = ask.getattr("iteration");
        let iteration = iteration.and_then(|iteration| iteration.extract::<u32>());
        let iteration =
            iteration.map_err(|_| PyTypeError::new_err("`ask` must be the result of `next`"))?;
        let Some(ask) = self.run.next() else {
            return Err(answer_error(py, AnswerError::Ended));
        };
        if ask.iteration != iteration {
            let error = AnswerError::NotAwaited {
                answered: iteration,
                awaited: ask.iteration,
            };
            return Err(answer_error(py, error));
        }
        Ok(ask)
    }
}

impl Progress<'_> {
    fn read(self, py: Python<'_>) -> PyResult<Kpi> {
        match self {
            Self::Named(name) => {
                let named = [("ask", 0), ("measured", 1), ("off", 2)];
                Ok(match chosen("kpi", &name, &named)? {
                    0 => Kpi::Ask,
                    1 => Kpi::Measured(Vec::new()),
                    _ => Kpi::Off,
                })
            }
            Self::Counted(kpis) => {
                let written = py.import("json")?.call_method1("dumps", (kpis,))?;
                let written: Utf8 = written.extract()?;
                let kpis: Vec<MeasuredKpi> = serde_json::from_str(&written).map_err(|error| {
                    let message = format!("invalid `kpi`: {error}");
                    Raise::bad_request("bad-kpi", message).into_error(py)
                })?;
                Ok(Kpi::Measured(kpis))
            }
        }
    }
}

fn answer_error(py: Python<'_>, error: AnswerError) -> PyErr {
    Raise::bad_request("not-awaited", error.to_string()).into_error(py)
}
