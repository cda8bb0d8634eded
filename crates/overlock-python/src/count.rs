//! Reads counts from Python: integers that cannot be negative.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::error::Raise;

/// Longer numbers are not shown in errors, because Python refuses to format very long ones.
const MOST_DIGITS: usize = 30;

/// Reads a count, or an optional one. Python's traceback names the argument in a note.
pub(crate) fn count<'py, T: FromPyObjectOwned<'py>>(given: &Bound<'py, PyAny>) -> PyResult<T> {
    let py = given.py();
    given.extract().map_err(|error: T::Error| {
        let error: PyErr = error.into();
        if !error.is_instance_of::<PyOverflowError>(py) {
            return error;
        }
        let written = given.str().map(|written| written.to_string());
        let written = written.ok().filter(|written| written.len() <= MOST_DIGITS);
        let written = written.map_or_else(|| "this number".to_owned(), |it| format!("`{it}`"));
        let message = if given.lt(0).unwrap_or(false) {
            format!("a count must be 0 or more, not {written}")
        } else {
            format!("{written} is too large for a count")
        };
        Raise::bad_request("bad-count", message).into_error(py)
    })
}
