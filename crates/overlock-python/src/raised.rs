//! What a callable raised, on its way through the crates below.

use std::sync::{Mutex, PoisonError};

use overlock_llm::BackendError;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;

/// What is to be called must be callable, which is told before anything is done.
pub(crate) fn callable(name: &str, given: &Bound<'_, PyAny>) -> PyResult<()> {
    if given.is_callable() {
        return Ok(());
    }
    let kind = given.get_type().name()?;
    let told = format!("`{name}` must be callable, and `{kind}` is not");
    Err(PyTypeError::new_err(told))
}

/// The last exception of a callable: the crates are told what it says, the caller gets it.
#[derive(Default)]
pub(crate) struct Raised(Mutex<Option<PyErr>>);

impl Raised {
    /// Keeps what somebody raised, and says it as the crates read it.
    pub(crate) fn keep(&self, who: &str, error: PyErr) -> BackendError {
        let reason = error.to_string();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        BackendError::Unreachable {
            host: who.to_owned(),
            reason,
        }
    }

    /// What was raised last. Whoever pressed Ctrl-C means the program, and not the model: that is
    /// an error.
    pub(crate) fn into_last(self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        let raised = self.0.into_inner();
        match raised.unwrap_or_else(PoisonError::into_inner) {
            Some(error) if !error.is_instance_of::<PyException>(py) => Err(error),
            raised => Ok(raised),
        }
    }
}
