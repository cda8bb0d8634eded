//! Exceptions with a code, a message and, where it applies, a path and an offset.
//!
//! The classes are defined in Python, where they can be subclassed and pickled.

use overlock_json::NoJson;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

/// An exception of the package, before it is raised.
pub(crate) struct Raise {
    /// The class in `overlock._errors`.
    class: &'static str,
    code: &'static str,
    message: String,
    path: Option<String>,
    offset: Option<usize>,
    /// Suggestions, one per item.
    help: Vec<String>,
}

impl Raise {
    pub(crate) fn new(class: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            class,
            code,
            message: message.into(),
            path: None,
            offset: None,
            help: Vec::new(),
        }
    }

    /// An invalid argument, or something that does not exist.
    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new("BadRequest", code, message)
    }

    pub(crate) fn at(mut self, path: Option<String>, offset: usize) -> Self {
        self.path = path;
        self.offset = Some(offset);
        self
    }

    pub(crate) fn with_help(mut self, help: Vec<String>) -> Self {
        self.help = help;
        self
    }

    /// Creates the exception; another one if that fails.
    pub(crate) fn into_error(self, py: Python<'_>) -> PyErr {
        self.made(py).map_or_else(|error| error, PyErr::from_value)
    }

    fn made(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
        let classes =
            CLASSES.get_or_try_init(py, || py.import("overlock._errors").map(Bound::unbind))?;
        let details = PyDict::new(py);
        details.set_item("code", self.code)?;
        details.set_item("path", self.path)?;
        details.set_item("offset", self.offset)?;
        details.set_item("help", PyTuple::new(py, self.help)?)?;
        let class = classes.bind(py).getattr(self.class)?;
        class.call((self.message,), Some(&details))
    }
}

/// The exception for a text without JSON.
pub(crate) fn no_json(py: Python<'_>, reason: NoJson) -> PyErr {
    Raise::new("NoJson", "no-json", reason.to_string()).into_error(py)
}
