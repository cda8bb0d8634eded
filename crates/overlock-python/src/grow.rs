//! Lets a Python string grow in place, as `text += piece` does in Python.
//!
//! A string in a document that streams in would otherwise be copied whole for every piece. There
//! is no safe door to this in `PyO3`: here and in `utf8` is all the `unsafe` of the package.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The text with `more` at its end. If nobody else holds it, no more than `more` is copied.
pub(crate) fn append<'py>(
    text: Bound<'py, PyString>,
    more: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyString>> {
    let py = text.py();
    let mut grown = text.into_ptr();
    // SAFETY: the interpreter is attached, which `py` shows. `grown` is a string that is owned
    // here; it is taken, and what stands there afterwards is owned again: the string that has
    // grown, or null after an error, which `from_owned_ptr_or_err` reads. `more` is a string and
    // only borrowed.
    let grown = unsafe {
        ffi::PyUnicode_Append(&raw mut grown, more.as_ptr());
        Bound::from_owned_ptr_or_err(py, grown)
    }?;
    Ok(grown.cast_into::<PyString>()?)
}
