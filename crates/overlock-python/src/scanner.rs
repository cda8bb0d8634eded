//! A document that streams in, and its value at any time.

use overlock_json::{DocumentStart, SyntaxError, SyntaxErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::{Raise, no_json};
use crate::result::{self, make};
use crate::text::{Text, characters};
use crate::value::Builder;

/// A document that streams in: feed it text, ask for its value at any time.
///
/// The value is the same object every time and grows: what is finished is shared, and only the
/// value at the cut is ever touched again, so that asking after every piece costs no more than the
/// pieces. Copy it to keep it as it is. A text that breaks the grammar of JSON stops it: see
/// `syntax_error`.
///
/// With `extract` the text is an answer as models write it: a fence, talk and thoughts before the
/// document are left out, and so is what follows it. Who reads along cannot wait, as `loads` does,
/// to see which brackets have the most JSON in them: the document is what stands first in the text
/// or after a fence, an object on a line of its own, or an object or array in the talk with a string
/// after its brackets. So `use {name}` and `[1]` are talk, but JSON that is quoted in the talk without
/// backticks is taken for the document.
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
    /// Looks for the document in what comes before it.
    opening: DocumentStart,
    /// Where the document begins, once it has.
    start: Option<usize>,
    reading: overlock_json::Scanner,
    builder: Builder,
    /// In what offsets are told: in what was fed first.
    unit: Option<Unit>,
    /// How much of the text stands before the document.
    before: usize,
    /// How many characters of the document have been read, up to the first syntax error.
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

    /// Reads the next piece of the text. It costs what the piece is long.
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
            // What the document begins with may have come with earlier pieces.
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
        if let Some(syntax_error) = self.offends() {
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

    /// Where the document stops, if it is still open.
    fn cut<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        result::cut(py, self.reading.cut(), |_| self.offset())
    }

    /// What the text is in the middle of; `None` if it is whole or no JSON.
    #[getter]
    fn place(&self) -> Option<&'static str> {
        let place = self.reading.place().filter(|_| !self.is_complete());
        place.map(overlock_json::CutPlace::name)
    }

    /// The JSON Pointer of what is being written.
    #[getter]
    fn path(&self) -> String {
        self.reading.path()
    }

    /// How many objects and arrays are open.
    #[getter]
    fn depth(&self) -> usize {
        self.reading.depth()
    }

    /// How much was read, in characters of `str` or bytes of `bytes`.
    #[getter]
    fn offset(&self) -> usize {
        let read = match self.unit {
            Some(Unit::Characters) => self.characters,
            _ => self.reading.offset(),
        };
        self.before + read
    }

    /// Where the document begins in the text; `None` as long as it has not, with `extract`.
    #[getter]
    fn start(&self) -> Option<usize> {
        self.start
    }

    /// Whether there is a value to ask for.
    #[getter]
    fn has_value(&self) -> bool {
        // An open container has a value; what closes nothing else costs nothing to close.
        self.is_complete()
            || self.offends().is_none()
                && (self.reading.depth() > 0 || self.reading.closing(false).is_some())
    }

    /// Whether the document is whole.
    #[getter]
    fn is_complete(&self) -> bool {
        self.reading.is_complete() || self.has_followers()
    }

    /// The first thing in the text that the grammar of JSON forbids.
    #[getter]
    fn syntax_error<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let told = self.offends().map(|syntax_error| {
            let fields = (
                result::name_of(&syntax_error.kind),
                self.offset(),
                syntax_error.kind.to_string(),
            );
            make(py, "SyntaxErrorAt", fields)
        });
        told.transpose()
    }

    /// What closing the document here would shorten or leave out.
    #[pyo3(signature = (*, strict = false))]
    fn losses<'py>(&self, py: Python<'py>, strict: bool) -> PyResult<Bound<'py, PyAny>> {
        let losses = self.reading.losses(strict);
        make(py, "Losses", (losses.truncated, losses.dropped))
    }

    fn __repr__(&self) -> String {
        let read = self.offset();
        let stands = match (self.offends(), self.place()) {
            (Some(syntax_error), _) => format!("stopped: {}", syntax_error.kind),
            (None, Some(place)) => format!("in {place} at {:?}", self.path()),
            (None, None) => "complete".to_owned(),
        };
        format!("<overlock.Scanner, {read} read, {stands}>")
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

    /// The syntax error of the document itself.
    fn offends(&self) -> Option<&SyntaxError> {
        self.reading
            .syntax_error()
            .filter(|_| !self.has_followers())
    }

    /// Whether something follows the document that is to be left out.
    fn has_followers(&self) -> bool {
        let syntax_error = self.reading.syntax_error();
        self.extracts
            && syntax_error
                .is_some_and(|syntax_error| syntax_error.kind == SyntaxErrorKind::TrailingText)
    }
}
