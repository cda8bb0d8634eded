//! A Python callable that makes vectors of texts.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, future};
use overlock_llm::BackendError;
use overlock_pipeline::Embed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::raised::{Raised, callable};

/// The callable takes a list of texts and gives back a list of vectors.
pub(crate) struct Embedder<'a> {
    call: Py<PyAny>,
    model: String,
    raised: &'a Raised,
}

impl<'a> Embedder<'a> {
    /// The callable that was given, if one was, with the name of its model: vectors of one model
    /// say nothing about those of another. An adapter has the name with it.
    pub(crate) fn new(
        py: Python<'_>,
        call: Option<Py<PyAny>>,
        model: Option<String>,
        raised: &'a Raised,
    ) -> PyResult<Option<Self>> {
        let Some(call) = call else {
            return match model {
                Some(_) => Err(PyValueError::new_err(
                    "`embed_model` names the model of `embed`, which is missing",
                )),
                None => Ok(None),
            };
        };
        callable("embed", call.bind(py))?;
        let of_adapter = || call.bind(py).getattr("model").ok()?.extract().ok();
        let model = model.or_else(of_adapter).ok_or_else(|| {
            PyValueError::new_err("say in `embed_model` which model `embed` makes vectors with")
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
                    "`embed` gave back {} vectors for {} texts",
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
