//! Detects and compacts source code for prompts.

use overlock_code::{CompactOptions, Docs, Language, Level};
use pyo3::prelude::*;

use crate::json::chosen;
use crate::result::make;
use crate::text::Text;

/// Detects from a text alone whether it is SQL, .NET or neither.
///
///     >>> import overlock
///     >>> overlock.classify("select 1").language
///     'sql'
#[pyfunction]
pub(crate) fn classify(py: Python<'_>, text: Text) -> PyResult<Bound<'_, PyAny>> {
    let text = text.utf8(py)?;
    let known = py.detach(|| overlock_code::classify(text));
    let fields = (
        known.language.name(),
        known.syntax.map(overlock_code::Syntax::name),
        known.confidence,
        known.reasons,
    );
    make(py, "Classification", fields)
}

/// Compacts source code for a prompt: without comments and extra whitespace, or as an outline.
///
///     >>> import overlock
///     >>> overlock.compact("SELECT *   -- all\nFROM Orders").text
///     'SELECT *\nFROM Orders'
#[pyfunction]
#[pyo3(signature = (text, *, language = None, level = "lossless", docs = "drop"))]
pub(crate) fn compact<'py>(
    py: Python<'py>,
    text: Text,
    language: Option<&str>,
    level: &str,
    docs: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let levels = [Level::Lossless, Level::Outline].map(|level| (level.name(), level));
    let options = CompactOptions {
        level: chosen("level", level, &levels)?,
        docs: chosen("docs", docs, &[("keep", Docs::Keep), ("drop", Docs::Drop)])?,
    };
    let languages = [
        Language::Sql,
        Language::Dotnet,
        Language::DotnetWithSql,
        Language::Unknown,
    ]
    .map(|language| (language.name(), language));
    let language = language
        .map(|name| chosen("language", name, &languages))
        .transpose()?;
    let text = text.utf8(py)?;
    let (language, compacted) = py.detach(|| {
        let language = language.unwrap_or_else(|| overlock_code::classify(text).language);
        (language, overlock_code::compact(text, language, &options))
    });
    let fields = (
        compacted.text,
        language.name(),
        compacted.compacted,
        compacted.reason.name(),
    );
    make(py, "Compacted", fields)
}
