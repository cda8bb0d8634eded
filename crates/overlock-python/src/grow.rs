//! Appends to a Python string in place, as `text += piece` does in Python.
//!
//! Otherwise every piece would copy the whole string. `PyO3` has no safe interface for this. All
//! `unsafe` code of the package is here and in `utf8`.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Appends `more` to a text. Only `more` is copied if there is no other reference to the text.
pub(crate) fn append<'py>(
    text: Bound<'py, PyString>,
    more: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyString>> {
    let py = text.py();
    let mut grown = text.into_ptr();
    // SAFETY: the interpreter is attached, as `py` shows. `grown` owns a string, which the call
    // consumes and replaces by an owned string, or by null after an error, which
    // `from_owned_ptr_or_err` handles. `more` is a borrowed string.
    let grown = unsafe {
        ffi::PyUnicode_Append(&raw mut grown, more.as_ptr());
        Bound::from_owned_ptr_or_err(py, grown)
    }?;
    Ok(grown.cast_into::<PyString>()?)
}
