//! Numbers that count something, as Python hands them over: nothing is less than none of it.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::error::Raise;

/// Longer numbers are not repeated to whoever gave them; Python itself refuses to write very long
/// ones.
const MOST_DIGITS: usize = 30;

/// Reads a count, or none where it may be left out. Which argument it was, Python's traceback says
/// in a note.
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
        let told = if given.lt(0).unwrap_or(false) {
            format!("a count must be 0 or more, and {written} is less")
        } else {
            format!("a count must be something that can be reached, and {written} is too large")
        };
        Raise::bad_request("bad-count", told).into_error(py)
    })
}
