//! Converts chat requests from and to Python objects.

use overlock_llm::wire::RequestError;
use overlock_llm::wire::chat::ChatRequest;
use pyo3::prelude::*;
use serde::Serialize;

use crate::error::Raise;
use crate::utf8::Utf8;
use crate::whole;

/// Reads a request in the form of OpenAI's chat completions.
///
/// Python's `json` module serializes it, which supports all of Python's numbers and mappings and
/// names what it cannot serialize.
pub(crate) fn read(py: Python<'_>, request: &Bound<'_, PyAny>) -> PyResult<ChatRequest> {
    let written = py.import("json")?.call_method1("dumps", (request,))?;
    let written: Utf8 = written.extract()?;
    py.detach(|| ChatRequest::from_json(&written))
        .map_err(|error| bad_request(py, &error))
}

pub(crate) fn bad_request(py: Python<'_>, error: &RequestError) -> PyErr {
    Raise::bad_request("bad-request", error.to_string()).into_error(py)
}

/// Converts any serializable value to a Python object.
pub(crate) fn object<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let json = serde_json::to_string(value)
        .map_err(|error| Raise::bad_request("not-json", error.to_string()).into_error(py))?;
    whole::valid(py, &[&json])
}
