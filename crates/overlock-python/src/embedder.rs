//! A Python callable that computes vectors of texts.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, future};
use overlock_llm::BackendError;
use overlock_pipeline::Embed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::raised::{Raised, callable};

/// An embedding model: a callable that takes a list of texts and returns a list of vectors.
pub(crate) struct Embedder<'a> {
    call: Py<PyAny>,
    model: String,
    raised: &'a Raised,
}

impl<'a> Embedder<'a> {
    /// Wraps the callable, if there is one. The model's name is needed because vectors of different
    /// models cannot be compared; an adapter has it as `model`.
    pub(crate) fn new(
        py: Python<'_>,
        call: Option<Py<PyAny>>,
        model: Option<String>,
        raised: &'a Raised,
    ) -> PyResult<Option<Self>> {
        let Some(call) = call else {
            return match model {
                Some(_) => Err(PyValueError::new_err(
                    "`embed_model` needs `embed`, the callable of that model",
                )),
                None => Ok(None),
            };
        };
        callable("embed", call.bind(py))?;
        let of_adapter = || call.bind(py).getattr("model").ok()?.extract().ok();
        let model = model.or_else(of_adapter).ok_or_else(|| {
            PyValueError::new_err("`embed` needs `embed_model`, the name of its model")
        })?;
        Ok(Some(Self {
            call,
            model,
            raised,
        }))
    }

    /// A vector for each text.
    pub(crate) fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BackendError> {
        let vectors = Python::attach(|py| {
            let vectors = self.call.bind(py).call1((texts,))?;
            let vectors: Vec<Vec<f32>> = vectors.extract()?;
            if vectors.len() != texts.len() {
                return Err(PyValueError::new_err(format!(
                    "`embed` returned {} vectors for {} texts",
                    vectors.len(),
                    texts.len()
                )));
            }
            Ok(vectors)
        });
        vectors.map_err(|error| self.raised.keep("`embed`", error))
    }
}

impl Embed for Embedder<'_> {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<Vec<f32>, BackendError>> {
        let vectors = self.vectors(&[text]);
        future::ready(vectors.map(|mut vectors| vectors.swap_remove(0))).boxed()
    }
}
