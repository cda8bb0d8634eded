//! A document that streams in.

use overlock_json::{DocumentStart, SyntaxError, SyntaxErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::{Raise, no_json};
use crate::result::{self, make};
use crate::text::{Text, characters};
use crate::value::Builder;

/// Reads a document that streams in: feed it text, and get its value at any time.
///
/// The value is the same growing object every time: finished parts are shared, and only the value
/// at the cut changes, so asking after every piece costs no more than the pieces. Copy it to keep
/// a snapshot. A syntax error stops the scanner: see `syntax_error`.
///
/// With `extract` the text is a model's answer: prose, thoughts and a fence before the document are
/// skipped, and so is everything after it. Unlike `loads`, which sees the whole text, the scanner
/// has to decide early where the document begins: at the start of the text or of a fence, at an
/// object on its own line, or at an object or array in prose that begins with a string. So
/// `use {name}` and `[1]` are prose, but JSON that is quoted in prose without backticks is read as
/// the document.
///
///     >>> import overlock
///     >>> scanner = overlock.Scanner()
///     >>> scanner.feed('{"name": "Ad')
///     >>> scanner.value(), scanner.path
///     ({'name': 'Ad'}, '/name')
///     >>> scanner.feed('a", "born": 1815}')
///     >>> scanner.value(), scanner.is_complete
///     ({'name': 'Ada', 'born': 1815}, True)
///     >>> scanner = overlock.Scanner(extract=True)
///     >>> for piece in ["Here you", " are:\n``", "`json\n[1, 2, 3", "]\n```\nAnything else?"]:
///     ...     scanner.feed(piece)
///     >>> scanner.value(), scanner.start
///     ([1, 2, 3], 22)
///     >>> scanner = overlock.Scanner(extract=True)
///     >>> for piece in ['For {name}: {', '"name": "Ad']:
///     ...     scanner.feed(piece)
///     >>> scanner.value(), scanner.start
///     ({'name': 'Ad'}, 12)
#[pyclass(module = "overlock")]
#[derive(Default)]
pub(crate) struct Scanner {
    extracts: bool,
    /// Finds where the document begins.
    opening: DocumentStart,
    /// The offset of the document, once it has begun.
    start: Option<usize>,
    reading: overlock_json::Scanner,
    builder: Builder,
    /// The unit of offsets, which the first piece determines.
    unit: Option<Unit>,
    /// The length of the text before the document.
    before: usize,
    /// The number of characters of the document read, up to the first syntax error.
    characters: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Characters,
    Bytes,
}

#[pymethods]
impl Scanner {
    #[new]
    #[pyo3(signature = (*, extract = false))]
    fn new(extract: bool) -> Self {
        Self {
            extracts: extract,
            opening: DocumentStart::within_lines(),
            start: (!extract).then_some(0),
            ..Self::default()
        }
    }

    /// Reads the next piece of the text, in time proportional to its length.
    fn feed(&mut self, py: Python<'_>, piece: Text) -> PyResult<()> {
        let unit = if piece.is_str() {
            Unit::Characters
        } else {
            Unit::Bytes
        };
        if *self.unit.get_or_insert(unit) != unit {
            return Err(PyTypeError::new_err(
                "a scanner is fed either `str` or bytes, not both",
            ));
        }
        let mut bytes = piece.bytes();
        if self.start.is_none() {
            let found = self.opening.feed(bytes);
            let (before, document) = bytes.split_at(found.unwrap_or(bytes.len()));
            self.before += match unit {
                Unit::Characters => characters(before),
                Unit::Bytes => before.len(),
            };
            if found.is_none() {
                return Ok(());
            }
            // The start of the document may have been held back from earlier pieces.
            let held = std::mem::take(&mut self.opening);
            self.before -= held.held().len();
            self.start = Some(self.before);
            self.read(py, held.held())?;
            bytes = document;
        }
        self.read(py, bytes)
    }

    /// The document so far, as `loads` would read it. Raises `NoJson` before it has begun, and
    /// `SyntaxError` if the text is not JSON.
    fn value<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(syntax_error) = self.own_syntax_error() {
            let raise = Raise::new(
                "JsonSyntaxError",
                "syntax_error",
                syntax_error.kind.to_string(),
            );
            return Err(raise.at(None, self.offset()).into_error(py));
        }
        let value = self.builder.value(py, &self.reading)?;
        value.ok_or_else(|| no_json(py, overlock_json::NoJson::Empty))
    }

    /// The position of the cut, if the document is still open.
    fn cut<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        result::cut(py, self.reading.cut(), |_| self.offset())
    }

    /// The kind of place at the cut; `None` if the document is complete or malformed.
    #[getter]
    fn place(&self) -> Option<&'static str> {
        let place = self.reading.place().filter(|_| !self.is_complete());
        place.map(overlock_json::CutPlace::name)
    }

    /// The JSON Pointer of the current value.
    #[getter]
    fn path(&self) -> String {
        self.reading.path()
    }

    /// The number of open objects and arrays.
    #[getter]
    fn depth(&self) -> usize {
        self.reading.depth()
    }

    /// The amount of text read, in characters of `str` or bytes of `bytes`.
    #[getter]
    fn offset(&self) -> usize {
        let read = match self.unit {
            Some(Unit::Characters) => self.characters,
            _ => self.reading.offset(),
        };
        self.before + read
    }

    /// The offset of the document in the text; with `extract`, `None` until it has begun.
    #[getter]
    fn start(&self) -> Option<usize> {
        self.start
    }

    /// Whether `value` would return a value.
    #[getter]
    fn has_value(&self) -> bool {
        // Computing the closing is cheap without open containers.
        self.is_complete()
            || self.own_syntax_error().is_none()
                && (self.reading.depth() > 0 || self.reading.closing(false).is_some())
    }

    /// Whether the document is complete.
    #[getter]
    fn is_complete(&self) -> bool {
        self.reading.is_complete() || self.has_followers()
    }

    /// The first syntax error.
    #[getter]
    fn syntax_error<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let error = self.own_syntax_error().map(|syntax_error| {
            let fields = (
                result::name_of(&syntax_error.kind),
                self.offset(),
                syntax_error.kind.to_string(),
            );
            make(py, "SyntaxErrorAt", fields)
        });
        error.transpose()
    }

    /// The values that closing the document now would shorten or drop.
    #[pyo3(signature = (*, strict = false))]
    fn losses<'py>(&self, py: Python<'py>, strict: bool) -> PyResult<Bound<'py, PyAny>> {
        let losses = self.reading.losses(strict);
        make(py, "Losses", (losses.truncated, losses.dropped))
    }

    fn __repr__(&self) -> String {
        let read = self.offset();
        let state = match (self.own_syntax_error(), self.place()) {
            (Some(syntax_error), _) => format!("stopped: {}", syntax_error.kind),
            (None, Some(place)) => format!("in {place} at {:?}", self.path()),
            (None, None) => "complete".to_owned(),
        };
        format!("<overlock.Scanner, {read} read, {state}>")
    }
}

impl Scanner {
    /// Reads the next piece of the document.
    fn read(&mut self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        let before = self.reading.offset();
        self.builder.feed(py, &mut self.reading, bytes)?;
        let read = self.reading.offset() - before;
        self.characters += characters(&bytes[..read]);
        Ok(())
    }

    /// The syntax error of the document, not of ignored text after it.
    fn own_syntax_error(&self) -> Option<&SyntaxError> {
        self.reading
            .syntax_error()
            .filter(|_| !self.has_followers())
    }

    /// Whether the document is followed by text to ignore.
    fn has_followers(&self) -> bool {
        let syntax_error = self.reading.syntax_error();
        self.extracts
            && syntax_error
                .is_some_and(|syntax_error| syntax_error.kind == SyntaxErrorKind::TrailingText)
    }
}
