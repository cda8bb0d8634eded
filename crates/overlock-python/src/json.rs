//! Functions for cut and malformed JSON.

use std::borrow::Cow;

use overlock_json::{
    Closing, ContextOptions, Cut, CutValue, Fix, Losses, Mismatch, NoJson, Outcome,
    PartialDocument, Protocol, RenderOptions, RepairOptions, Scanner, Several, StitchOptions,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::count::count;
use crate::error::{Raise, no_json};
use crate::result::{self, make};
use crate::text::Text;
use crate::value::{Builder, Hooks};
use crate::whole;

/// A text and how to close it, without copying it.
struct Read<'a> {
    base: PartialDocument<'a>,
    closing: Closing,
    losses: Losses,
}

impl<'a> Read<'a> {
    fn new(text: &'a Text, strict: bool) -> Result<Self, NoJson> {
        let base = PartialDocument::read(text.bytes())?;
        let closing = base.scanner().closing(strict).ok_or(NoJson::Absent)?;
        let losses = base.scanner().losses(strict);
        Ok(Self {
            base,
            closing,
            losses,
        })
    }

    fn kept(&self) -> &str {
        &self.base.text()[..self.closing.kept_len]
    }

    fn json(&self) -> Cow<'_, str> {
        if self.closing.closers.is_empty() {
            Cow::Borrowed(self.kept())
        } else {
            Cow::Owned([self.kept(), &self.closing.closers].concat())
        }
    }
}

/// Reads JSON as models write it: cut, malformed, in a fence, or with prose around it.
///
/// Valid JSON gives the same values as `json.loads`, except that `NaN` and `Infinity` become
/// `None`. Malformed JSON is repaired, and a cut text gives the part that is there. Nothing is
/// invented: a number that may have more digits and a key without a value are left out.
///
///     >>> import overlock
///     >>> overlock.loads('{"name": "Ada", "born": 18')
///     {'name': 'Ada'}
///     >>> overlock.loads("Sure! ```json\n{'ok': True, tags: ['a', 'b',]}\n```")
///     {'ok': True, 'tags': ['a', 'b']}
///
/// `report` adds what was missing and what was repaired:
///
///     >>> loaded = overlock.loads('{"name": "Ada", "born": 18', report=True)
///     >>> loaded.complete, loaded.dropped, loaded.cut.place
///     (False, '/born', 'number')
///
/// With `partial=False` a cut text raises `StillCut`. With `strict` a cut string is left out too.
/// The hooks are those of `json.loads`.
#[pyfunction]
#[pyo3(signature = (text, *, partial = true, strict = false, report = false, parse_float = None,
                    parse_int = None, object_hook = None, object_pairs_hook = None))]
pub(crate) fn loads(
    py: Python<'_>,
    text: Text,
    partial: bool,
    strict: bool,
    report: bool,
    parse_float: Option<Py<PyAny>>,
    parse_int: Option<Py<PyAny>>,
    object_hook: Option<Py<PyAny>>,
    object_pairs_hook: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyAny>> {
    let hooks = Hooks {
        parse_int,
        parse_float,
        object_hook,
        object_pairs_hook,
    };
    // Tries plain JSON first, which most texts are. Hooks must not see values that are discarded.
    let plain = if hooks.are_none() && !strict {
        plain(py, &text)?
    } else {
        None
    };
    let found = match plain {
        Some((value, _)) if partial && !report => return Ok(value),
        Some((value, scanner)) => Found::plain(value, &scanner, &text),
        None => Found::any(py, &text, strict, partial, hooks)?,
    };
    if let (false, Some(cut)) = (partial, &found.cut) {
        let message = format!("the JSON is cut off at `{}`", cut.path);
        let raise = Raise::new("StillCut", "cut", message);
        let raise = raise.at(Some(cut.path.clone()), text.offset(cut.offset));
        return Err(raise.into_error(py));
    }
    let value = found.value;
    if !report {
        return Ok(value);
    }
    let complete = found.cut.is_none();
    let fixes = result::fixes(py, &text, &found.fixes)?;
    let cut = result::cut(py, found.cut, |byte| text.offset(byte))?;
    let Losses { truncated, dropped } = found.losses;
    make(
        py,
        "Loaded",
        (value, complete, cut, truncated, dropped, fixes),
    )
}

/// The value of a text that is only JSON, complete or cut, in one pass.
fn plain<'py>(py: Python<'py>, text: &Text) -> PyResult<Option<(Bound<'py, PyAny>, Scanner)>> {
    let json = text.bytes();
    whole::read(py, json.strip_prefix("\u{feff}".as_bytes()).unwrap_or(json))
}

/// The document in a text.
struct Found<'py> {
    value: Bound<'py, PyAny>,
    cut: Option<Cut>,
    losses: Losses,
    fixes: Vec<Fix>,
}

impl<'py> Found<'py> {
    fn plain(value: Bound<'py, PyAny>, scanner: &Scanner, text: &Text) -> Self {
        let cut = scanner.cut().map(|cut| Cut {
            offset: text.bytes().len(),
            ..cut
        });
        Self {
            value,
            cut,
            losses: scanner.losses(false),
            fixes: Vec::new(),
        }
    }

    /// The document in any text, repaired if necessary. Without `partial` a cut document has no
    /// value.
    fn any(
        py: Python<'py>,
        text: &Text,
        strict: bool,
        partial: bool,
        hooks: Hooks,
    ) -> PyResult<Self> {
        let Read {
            base,
            closing,
            losses,
        } = py
            .detach(|| Read::new(text, strict))
            .map_err(|reason| no_json(py, reason))?;
        let cut = base.cut();
        let pieces = [&base.text()[..closing.kept_len], &closing.closers];
        let value = if cut.is_some() && !partial {
            py.None().into_bound(py)
        } else if hooks.are_none() {
            whole::valid(py, &pieces)?
        } else {
            Builder::with_hooks(hooks).whole(py, &pieces)?
        };
        Ok(Self {
            value,
            cut,
            losses,
            fixes: base.fixes().to_vec(),
        })
    }
}

/// Turns cut JSON into valid JSON without inventing data.
///
/// Prose and fences around the document are left out. Malformed JSON is repaired first.
///
///     >>> import overlock
///     >>> overlock.close('{"name": "Ada", "tags": ["math", "eng').json
///     '{"name": "Ada", "tags": ["math", "eng"]}'
///     >>> overlock.close('{"name": "Ada", "tags": ["math", "eng', strict=True).json
///     '{"name": "Ada", "tags": ["math"]}'
#[pyfunction]
#[pyo3(signature = (text, *, strict = false))]
pub(crate) fn close(py: Python<'_>, text: Text, strict: bool) -> PyResult<Bound<'_, PyAny>> {
    let read = py
        .detach(|| Read::new(&text, strict))
        .map_err(|reason| no_json(py, reason))?;
    let fixes = result::fixes(py, &text, read.base.fixes())?;
    let complete = read.base.is_complete();
    let Losses { truncated, dropped } = &read.losses;
    let fields = (read.json(), complete, truncated, dropped, fixes);
    make(py, "Closed", fields)
}

/// Turns malformed JSON into valid JSON and reports the changes.
///
/// Valid JSON comes back byte for byte. Several documents in a row become an array, or with
/// `several="first"` only the first is kept.
///
///     >>> import overlock
///     >>> repaired = overlock.repair("{name: 'Ada', tags: [1, 2,]")
///     >>> repaired.json
///     '{"name": "Ada", "tags": [1, 2]}'
///     >>> [fix.kind for fix in repaired.fixes][:2]
///     ['unquoted-key', 'quotes']
#[pyfunction]
#[pyo3(signature = (text, *, several = "array"))]
pub(crate) fn repair<'py>(
    py: Python<'py>,
    text: Text,
    several: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let several = chosen(
        "several",
        several,
        &[("array", Several::Array), ("first", Several::First)],
    )?;
    let options = RepairOptions { several };
    let repaired = py
        .detach(|| overlock_json::repair(text.bytes(), &options))
        .map_err(|reason| no_json(py, reason))?;
    let fixes = result::fixes(py, &text, &repaired.fixes)?;
    make(py, "Repaired", (repaired.json, fixes))
}

/// Finds the JSON document in a text, which may be cut or malformed; `None` if there is none.
///
///     >>> import overlock
///     >>> text = 'Use {curly} braces: {"a": 1}. Done.'
///     >>> found = overlock.extract(text)
///     >>> text[found.start:found.end]
///     '{"a": 1}'
#[pyfunction]
pub(crate) fn extract(py: Python<'_>, text: Text) -> PyResult<Option<Bound<'_, PyAny>>> {
    let found = py.detach(|| overlock_json::extract(text.bytes()));
    let Some(found) = found else {
        return Ok(None);
    };
    let mut offsets = text.offsets();
    let fields = (offsets.at(found.start), offsets.at(found.end));
    make(py, "Extracted", fields).map(Some)
}

/// The position of the cut of a document; `None` if it is complete.
///
///     >>> import overlock
///     >>> overlock.cut('{"rows": [1, 2, {"name": "Ad')
///     Cut(offset=28, path='/rows/2/name', place='string')
#[pyfunction]
pub(crate) fn cut(py: Python<'_>, text: Text) -> PyResult<Option<Bound<'_, PyAny>>> {
    let cut = py
        .detach(|| PartialDocument::read(text.bytes()).map(|base| base.cut()))
        .map_err(|reason| no_json(py, reason))?;
    result::cut(py, cut, |byte| text.offset(byte))
}

/// The parts of a cut document that a prompt for the rest needs.
///
///     >>> import overlock
///     >>> contexts = overlock.contexts('[{"id": 1}, {"id": 2}, {"id')
///     >>> contexts.complete_part
///     '[{"id": 1}, {"id": 2}, {}]'
///     >>> contexts.overlap_context
///     '[{"id": 1}, {"id": 2}, {"id'
#[pyfunction]
#[pyo3(signature = (text, *, budget = 500, cut_value = "hint", limit = None, answer_chars = None))]
pub(crate) fn contexts<'py>(
    py: Python<'py>,
    text: Text,
    #[pyo3(from_py_with = count)] budget: usize,
    cut_value: &str,
    #[pyo3(from_py_with = count)] limit: Option<usize>,
    #[pyo3(from_py_with = count)] answer_chars: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = ContextOptions {
        render: render_options(budget, cut_value, limit)?,
        answer_chars,
    };
    let contexts = py
        .detach(|| overlock_json::contexts(text.bytes(), &options))
        .map_err(|reason| no_json(py, reason))?;
    let cut = result::cut(py, contexts.cut, |byte| text.offset(byte))?;
    let fields = (
        contexts.overlap_context,
        contexts.hierarchy_context,
        contexts.hierarchy_context_for_prompt,
        contexts.complete_part,
        contexts.parsing_success,
        cut,
        contexts.cut_off_element,
        contexts.element_before_cutoff,
    );
    make(py, "Contexts", fields)
}

/// Renders a document from its root to its cut under a budget of characters, for a prompt.
///
///     >>> import overlock
///     >>> text = '{"meta": {"pages": 3}, "parts": [{"id": "one"}, {"id": "two", "text": "It was a'
///     >>> overlock.render(text, budget=10)
///     '{"meta": <object>, "parts": [<object>, {"id": <str>, "text": <str>'
#[pyfunction]
#[pyo3(signature = (text, *, budget = 500, cut_value = "hint", limit = None))]
pub(crate) fn render(
    py: Python<'_>,
    text: Text,
    #[pyo3(from_py_with = count)] budget: usize,
    cut_value: &str,
    #[pyo3(from_py_with = count)] limit: Option<usize>,
) -> PyResult<String> {
    let options = render_options(budget, cut_value, limit)?;
    py.detach(|| overlock_json::render(text.bytes(), &options))
        .map_err(|reason| no_json(py, reason))
}

fn render_options(budget: usize, cut_value: &str, limit: Option<usize>) -> PyResult<RenderOptions> {
    let names = [
        ("hint", CutValue::Hint),
        ("keep", CutValue::Keep),
        ("tail", CutValue::Tail),
    ];
    Ok(RenderOptions {
        budget,
        cut_value: chosen("cut_value", cut_value, &names)?,
        limit,
        ..RenderOptions::default()
    })
}

/// The expected overlap at the first seam, or at each.
#[derive(FromPyObject)]
pub(crate) enum Expected {
    One(String),
    Each(Vec<Option<String>>),
}

/// Joins the parts of a document from several answers.
///
/// `expected_overlap` is the text that the model was asked to repeat, for the first seam or, as a
/// list, for each. A part that cannot be joined with certainty is rejected, and its seam has the
/// reason.
///
///     >>> import overlock
///     >>> overlock.stitch('{"rows": ["alpha", "beta", "gam', '"beta", "gamma"]}').json
///     '{"rows": ["alpha", "beta", "gamma"]}'
#[pyfunction]
#[pyo3(signature = (*parts, expected_overlap = None, protocol = "auto"))]
pub(crate) fn stitch<'py>(
    py: Python<'py>,
    parts: Vec<Text>,
    expected_overlap: Option<Expected>,
    protocol: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let protocol = chosen(
        "protocol",
        protocol,
        &[
            ("auto", Protocol::Auto),
            ("overlap", Protocol::Overlap),
            ("prefill", Protocol::Prefill),
        ],
    )?;
    let expected = match expected_overlap {
        None => Vec::new(),
        Some(Expected::One(overlap)) => vec![Some(overlap)],
        Some(Expected::Each(overlaps)) => overlaps,
    };
    let Some((first, fragments)) = parts.split_first() else {
        return Err(PyValueError::new_err("there must be at least one part"));
    };
    if expected.len() > fragments.len() {
        let message = format!(
            "`expected_overlap` is for {} seams, but {} parts have {}",
            expected.len(),
            parts.len(),
            fragments.len()
        );
        return Err(PyValueError::new_err(message));
    }
    let stitched = py.detach(|| {
        let mut base = PartialDocument::read(first.bytes())?;
        let seams: Vec<_> = fragments
            .iter()
            .enumerate()
            .map(|(seam, fragment)| {
                let expected_overlap = expected.get(seam).and_then(Option::as_deref);
                let options = StitchOptions {
                    protocol,
                    expected_overlap,
                };
                overlock_json::stitch(&mut base, fragment.bytes(), &options)
            })
            .collect();
        Ok((base.into_owned(), seams))
    });
    let (base, seams) = stitched.map_err(|reason| no_json(py, reason))?;
    let list = PyList::empty(py);
    for seam in &seams {
        let reason = match &seam.outcome {
            Outcome::NoMatch(mismatch) => Some(Mismatch::to_string(mismatch)),
            Outcome::Ambiguous { shorter, longer } => Some(format!(
                "it may repeat {shorter} characters or {longer}, which gives different documents"
            )),
            _ => None,
        };
        let accepted = seam.outcome.is_accepted();
        let fields = (
            seam.outcome.name(),
            accepted,
            seam.overlap,
            seam.added,
            reason,
        );
        list.append(make(py, "Seam", fields)?)?;
    }
    let is_joined = seams.iter().any(|seam| seam.outcome.is_accepted());
    let suspicious = is_joined.then(|| base.suspicion());
    let suspicious = suspicious.flatten().map(|reason| reason.to_string());
    let fields = (base.text(), base.is_complete(), list, suspicious);
    make(py, "Stitched", fields)
}

/// Summarizes the contents of a document, which may be cut.
///
///     >>> import overlock
///     >>> print(overlock.delivered('{"rows": [{"id": 1}, {"id": 2}, {"id'))
///     - /rows with 2 records
#[pyfunction]
pub(crate) fn delivered(py: Python<'_>, text: Text) -> PyResult<Bound<'_, PyAny>> {
    let delivered = py
        .detach(|| PartialDocument::read(text.bytes()).map(|base| base.delivered()))
        .map_err(|reason| no_json(py, reason))?;
    make(
        py,
        "Delivered",
        (delivered.lines(), delivered.section_count()),
    )
}

/// Looks up an option by its name.
pub(crate) fn chosen<T: Copy>(option: &str, name: &str, names: &[(&str, T)]) -> PyResult<T> {
    if let Some((_, choice)) = names.iter().find(|(known, _)| *known == name) {
        return Ok(*choice);
    }
    let known: Vec<_> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
    let message = format!("`{option}` must be {}, not `{name}`", known.join(" or "));
    Err(PyValueError::new_err(message))
}
