//! Token counts and model limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use overlock_budget::{
    Approximate, CountTokens, Encoding, Found, How, Keep, Models, Provenance, Sharing, StandIn,
    TokenizerFile,
};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::count::count;
use crate::error::Raise;
use crate::json::chosen;
use crate::result::make;
use crate::text::Text;

/// The encoding used without a model.
const STAND_IN: Encoding = Encoding::O200kBase;

/// A token counter and its accuracy.
pub(crate) struct Counter {
    pub(crate) tokens: Arc<dyn CountTokens>,
    pub(crate) provenance: Provenance,
    /// Whether it replaces a tokenizer that is not available.
    pub(crate) is_stand_in: bool,
}

impl Counter {
    /// The counter for a tokenizer file, an encoding or a model, in this order.
    pub(crate) fn named(
        py: Python<'_>,
        model: Option<&str>,
        encoding: Option<&str>,
        tokenizer: Option<PathBuf>,
    ) -> PyResult<Self> {
        if let Some(path) = tokenizer {
            return Self::from_file(py, &path);
        }
        if let Some(name) = encoding {
            return Self::built_in(name).ok_or_else(|| {
                let known: Vec<_> = Encoding::ALL.into_iter().map(Encoding::name).collect();
                let message = format!(
                    "unknown encoding `{name}`; expected one of {}, {}",
                    known.join(", "),
                    Approximate.name()
                );
                Raise::bad_request("unknown-encoding", message).into_error(py)
            });
        }
        Ok(match model {
            Some(name) => Self::for_model(&Models::default().find(name)),
            None => Self::stand_in(Arc::new(STAND_IN)),
        })
    }

    /// The best built-in counter for a model.
    pub(crate) fn for_model(found: &Found) -> Self {
        let built_in = found.model.tokenizer.as_deref().and_then(Self::built_in);
        let Some(counter) = built_in else {
            return Self::stand_in(Arc::new(StandIn::for_model(found)));
        };
        let provenance = match found.how {
            How::Exact | How::Alias => counter.provenance,
            How::Prefix => Provenance::Calibrated,
            How::Default => Provenance::Estimate,
        };
        Self {
            provenance,
            ..counter
        }
    }

    fn stand_in(tokens: Arc<dyn CountTokens>) -> Self {
        Self {
            tokens,
            provenance: Provenance::Estimate,
            is_stand_in: true,
        }
    }

    /// An encoding or the rule of thumb, by its name.
    pub(crate) fn built_in(name: &str) -> Option<Self> {
        let tokens: Arc<dyn CountTokens> = if name == Approximate.name() {
            Arc::new(Approximate)
        } else {
            Arc::new(Encoding::from_name(name)?)
        };
        let provenance = if tokens.is_exact() {
            Provenance::Exact
        } else {
            Provenance::Estimate
        };
        Some(Self {
            tokens,
            provenance,
            is_stand_in: false,
        })
    }

    fn from_file(py: Python<'_>, path: &Path) -> PyResult<Self> {
        let bytes = std::fs::read(path).map_err(|error| {
            // Python derives the exception class from the number.
            let (number, reason) = (error.raw_os_error(), error.kind().to_string());
            PyOSError::new_err((number, reason, path.to_owned()))
        })?;
        let read = py.detach(|| TokenizerFile::new(&bytes));
        let tokenizer = read.map_err(|error| {
            let message = format!(
                "`{}` cannot be used as a tokenizer: {error}",
                path.display()
            );
            Raise::bad_request("bad-tokenizer", message).into_error(py)
        })?;
        Ok(Self {
            tokens: Arc::new(tokenizer.named(path.display().to_string())),
            provenance: Provenance::Exact,
            is_stand_in: false,
        })
    }
}

/// Counts the tokens of a text, exactly if the tokenizer is known.
///
/// Pass the `model`, an `encoding`, or a `tokenizer`, the path of a Hugging Face `tokenizer.json`.
/// Control tokens in the text are counted as text. With `report` the result includes the counter
/// and its accuracy.
///
///     >>> import overlock
///     >>> overlock.count_tokens("Hello, world!", model="gpt-4o")
///     4
///     >>> overlock.count_tokens("Hello, world!", model="claude-3-opus", report=True).provenance
///     'estimate'
#[pyfunction]
#[pyo3(signature = (text, *, model = None, encoding = None, tokenizer = None, report = false))]
pub(crate) fn count_tokens<'py>(
    py: Python<'py>,
    text: Text,
    model: Option<&str>,
    encoding: Option<&str>,
    tokenizer: Option<PathBuf>,
    report: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let counter = Counter::named(py, model, encoding, tokenizer)?;
    let text = text.utf8(py)?;
    let tokens = py.detach(|| counter.tokens.count(text));
    if !report {
        return Ok(tokens.into_pyobject(py)?.into_any());
    }
    let fields = (tokens, counter.tokens.name(), counter.provenance.name());
    make(py, "TokenCount", fields)
}

/// Truncates a text to at most so many tokens, keeping its start or, with `keep="end"`, its end.
///
///     >>> import overlock
///     >>> overlock.truncate_to_tokens("one two three four", 2, encoding="o200k_base")
///     'one two'
///     >>> overlock.truncate_to_tokens("one two three four", 1, keep="end")
///     ' four'
#[pyfunction]
#[pyo3(signature = (text, tokens, *, keep = "start", model = None, encoding = None,
                    tokenizer = None))]
pub(crate) fn truncate_to_tokens<'py>(
    py: Python<'py>,
    text: Text,
    #[pyo3(from_py_with = count)] tokens: u64,
    keep: &str,
    model: Option<&str>,
    encoding: Option<&str>,
    tokenizer: Option<PathBuf>,
) -> PyResult<Bound<'py, PyString>> {
    let keep = chosen("keep", keep, &[("start", Keep::Start), ("end", Keep::End)])?;
    let counter = Counter::named(py, model, encoding, tokenizer)?;
    let text = text.utf8(py)?;
    let kept = py.detach(|| counter.tokens.truncate_to(text, tokens, keep));
    Ok(PyString::new(py, kept))
}

/// The limits and abilities of a model, and how its entry was found.
///
///     >>> import overlock
///     >>> info = overlock.model_info("openai/gpt-4o-2024-08-06")
///     >>> info.window, info.how
///     (128000, 'alias')
#[pyfunction]
pub(crate) fn model_info<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let found = Models::default().find(name);
    let model = found.model;
    let fields = (
        found.entry,
        found.how.name(),
        model.window,
        model.answer_cap,
        model.sharing == Sharing::Shared,
        model.tokenizer.as_deref(),
        model.prefill,
        model.json,
        model.tools,
        model.disputed,
    );
    make(py, "ModelInfo", fields)
}
