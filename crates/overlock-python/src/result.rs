//! Creates the named tuples of results.
//!
//! Their classes are defined in Python, in `overlock._results`, so that they print, compare, pickle,
//! unpack and type-check as usual.

use overlock_json::Fix;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;
use serde::Serialize;

use crate::text::Text;

/// Creates a result of this class.
pub(crate) fn make<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let classes =
        CLASSES.get_or_try_init(py, || py.import("overlock._results").map(Bound::unbind))?;
    classes.bind(py).getattr(class)?.call1(fields)
}

/// The name of a variant, as in JSON.
pub(crate) fn name_of(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// The repairs of a text.
pub(crate) fn fixes<'py>(
    py: Python<'py>,
    text: &Text,
    fixes: &[Fix],
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let mut offsets = text.offsets();
    for fix in fixes {
        let offset = offsets.at(fix.offset);
        list.append(make(py, "Fix", (name_of(&fix.kind), offset))?)?;
    }
    Ok(list)
}

/// The cut of a text.
pub(crate) fn cut(
    py: Python<'_>,
    cut: Option<overlock_json::Cut>,
    offset: impl FnOnce(usize) -> usize,
) -> PyResult<Option<Bound<'_, PyAny>>> {
    cut.map(|cut| make(py, "Cut", (offset(cut.offset), cut.path, cut.place.name())))
        .transpose()
}
