//! Exceptions raised by callables.

use std::sync::{Mutex, PoisonError};

use overlock_llm::BackendError;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;

/// Checks early that an argument is callable.
pub(crate) fn callable(name: &str, given: &Bound<'_, PyAny>) -> PyResult<()> {
    if given.is_callable() {
        return Ok(());
    }
    let kind = given.get_type().name()?;
    let message = format!("`{name}` must be callable, and `{kind}` is not");
    Err(PyTypeError::new_err(message))
}

/// The last exception of a callable. The crates get its message, the caller the exception itself.
#[derive(Default)]
pub(crate) struct Raised(Mutex<Option<PyErr>>);

impl Raised {
    /// Stores an exception, and returns it as an error of a model call.
    pub(crate) fn keep(&self, callable: &str, error: PyErr) -> BackendError {
        let reason = error.to_string();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        BackendError::Unreachable {
            host: callable.to_owned(),
            reason,
        }
    }

    /// The last exception. One that stops the program, such as Ctrl-C, is an error.
    pub(crate) fn into_last(self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        let raised = self.0.into_inner();
        match raised.unwrap_or_else(PoisonError::into_inner) {
            Some(error) if !error.is_instance_of::<PyException>(py) => Err(error),
            raised => Ok(raised),
        }
    }
}
