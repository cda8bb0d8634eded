//! Indexes a folder of source code into a store.

use std::path::{Path, PathBuf};

use overlock_index::{IndexError, IndexOptions, Indexed, Observe, VectorsError, fill_vectors};
use overlock_store::Access;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::embedder::Embedder;
use crate::error::Raise;
use crate::raised::Raised;
use crate::result::make;
use crate::store;

/// Indexes a folder of source code for pipelines to search.
///
/// `store` is a file, `sqlite://FILE` or `postgres://…`. Only changed files are read again, and
/// deleted ones are removed. `repository` is the name of the folder in the store; `replace` allows
/// it to replace another folder of that name. With `embed`, a callable that takes a list of texts
/// and returns a list of vectors, searches can also be semantic; `embed_model` is the name of that
/// model.
///
///     >>> import overlock, pathlib, tempfile
///     >>> folder = pathlib.Path(tempfile.mkdtemp())
///     >>> _ = (folder / "Cart.cs").write_text("class Cart { int Total() { return 1; } }")
///     >>> indexed = overlock.index(folder, store=folder / "code.db", repository="shop")
///     >>> indexed.changed, indexed.nodes
///     (1, 3)
#[pyfunction]
#[pyo3(signature = (folder, *, store, repository = None, replace = false, embed = None,
                    embed_model = None))]
pub(crate) fn index(
    py: Python<'_>,
    folder: PathBuf,
    store: PathBuf,
    repository: Option<String>,
    replace: bool,
    embed: Option<Py<PyAny>>,
    embed_model: Option<String>,
) -> PyResult<Bound<'_, PyAny>> {
    let raised = Raised::default();
    let embedder = Embedder::new(py, embed, embed_model, &raised)?;
    let repository = repository.or_else(|| name_of(&folder));
    let repository = repository.filter(|name| !name.trim().is_empty());
    let repository = repository.ok_or_else(|| {
        let message = format!("no such folder: `{}`", folder.display());
        Raise::bad_request("folder", message).into_error(py)
    })?;
    let mut signals = Signals(None);
    let done = py.detach(|| {
        let options = IndexOptions {
            replace,
            ..IndexOptions::default()
        };
        fill(
            &store,
            &repository,
            &folder,
            options,
            &mut signals,
            embedder.as_ref(),
        )
    });
    drop(embedder);
    if let Some(interrupt) = signals.0 {
        return Err(interrupt);
    }
    if let Some(error) = raised.into_last(py)? {
        return Err(error);
    }
    let (indexed, vectors) = done.map_err(|raise| raise.into_error(py))?;
    let skipped = PyList::empty(py);
    for file in &indexed.skipped {
        let fields = (&file.path, file.why.to_string(), file.why.is_indexed());
        skipped.append(make(py, "SkippedFile", fields)?)?;
    }
    let fields = (
        repository,
        indexed.files,
        indexed.changed,
        indexed.unchanged,
        indexed.removed,
        indexed.nodes,
        indexed.edges,
        vectors,
        skipped,
    );
    make(py, "Indexed", fields)
}

/// The name of a folder, also for a path such as `.`.
fn name_of(folder: &Path) -> Option<String> {
    let path = folder.canonicalize().ok()?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// Indexes the folder, and returns the result with the number of vectors computed.
fn fill(
    store: &Path,
    repository: &str,
    folder: &Path,
    options: IndexOptions,
    signals: &mut Signals,
    embedder: Option<&Embedder<'_>>,
) -> Result<(Indexed, u64), Raise> {
    let store = store::open(&store.to_string_lossy(), Access::Create)?;
    let indexed = overlock_index::index(&*store, repository, folder, options, signals);
    let indexed = indexed.map_err(|error| match &error {
        IndexError::Store(error) => store::failed(error),
        IndexError::Folder { source, .. } => {
            Raise::bad_request("folder", format!("{error}: {source}"))
        }
        IndexError::OtherFolder { .. } => {
            let help = "use another `repository`, or `replace` the indexed folder";
            Raise::bad_request("folder", error.to_string()).with_help(vec![help.to_owned()])
        }
    })?;
    let Some(embedder) = embedder.filter(|_| !indexed.is_stopped) else {
        return Ok((indexed, 0));
    };
    let filled = fill_vectors(
        &*store,
        repository,
        overlock_pipeline::Embed::model(embedder),
        |texts| embedder.vectors(texts),
        |_| !signals.are_there(),
    );
    match filled {
        Ok(filled) => Ok((indexed, filled.vectors)),
        Err(VectorsError::Store(error)) => Err(store::failed(&error)),
        Err(VectorsError::Embed(error)) => Err(Raise::bad_request("embed", error.to_string())),
    }
}

/// Checks for Ctrl-C between files, and stores the exception.
struct Signals(Option<PyErr>);

impl Signals {
    fn are_there(&mut self) -> bool {
        if self.0.is_none() {
            self.0 = Python::attach(|py| py.check_signals().err());
        }
        self.0.is_some()
    }
}

impl Observe for Signals {
    fn advanced(&mut self, _: u64, _: u64) {
        self.are_there();
    }

    fn is_stopped(&self) -> bool {
        self.0.is_some()
    }
}
