//! Builds Python objects from a complete text in one pass.
//!
//! Lists are created once their items are known, with the exact size. `value` builds documents that
//! grow; tests compare the two. Nothing recurses here either.

use overlock_json::{Container, CutPlace, Scalar, Scanner, Visitor};
use pyo3::exceptions::{PyRuntimeError, PyUnicodeDecodeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::decode::Until;
use crate::scalar::{literal, number, string, whole_string};
use crate::strings::{LONGEST_KEPT_VALUE, Strings};

/// The value of JSON, complete or cut, with the scanner at its end; nothing if it is malformed, not
/// UTF-8, or has no value.
pub(crate) fn read<'py>(
    py: Python<'py>,
    text: &[u8],
) -> PyResult<Option<(Bound<'py, PyAny>, Scanner)>> {
    let mut scanner = Scanner::new();
    let mut assembly = Assembly::new(py);
    scanner.feed_with(text, &mut assembly);
    if scanner.syntax_error().is_some() {
        return Ok(None);
    }
    match assembly.finish(&scanner) {
        Err(error) if error.is_instance_of::<PyUnicodeDecodeError>(py) => Ok(None),
        value => Ok(value?.map(|value| (value, scanner))),
    }
}

/// The value of a valid document in one or several pieces.
pub(crate) fn valid<'py>(py: Python<'py>, pieces: &[&str]) -> PyResult<Bound<'py, PyAny>> {
    let mut scanner = Scanner::new();
    let mut assembly = Assembly::new(py);
    for piece in pieces {
        scanner.feed_with(piece.as_bytes(), &mut assembly);
    }
    let value = assembly.finish(&scanner)?;
    value.ok_or_else(|| PyRuntimeError::new_err("the document has no value"))
}

/// A document in progress.
struct Assembly<'py> {
    py: Python<'py>,
    /// The items of all open arrays, or the finished root.
    items: Vec<Bound<'py, PyAny>>,
    open: Vec<OpenContainer<'py>>,
    strings: Strings,
    /// The part so far of a scalar that is split between pieces.
    text: Vec<u8>,
    bare: Vec<u8>,
    /// A buffer for decoding strings.
    decoded: Vec<u8>,
    error: Option<PyErr>,
}

/// An open container.
enum OpenContainer<'py> {
    /// An array, by the index of its first item in `items`.
    Array(usize),
    /// An object, with the name of its current member.
    Object(Bound<'py, PyDict>, Option<Bound<'py, PyString>>),
}

impl<'py> Assembly<'py> {
    fn new(py: Python<'py>) -> Self {
        Self {
            py,
            items: Vec::with_capacity(32),
            open: Vec::with_capacity(16),
            strings: Strings::borrow(),
            text: Vec::new(),
            bare: Vec::new(),
            decoded: Vec::new(),
            error: None,
        }
    }

    /// The document, with a cut value as closing would keep it.
    fn finish(mut self, scanner: &Scanner) -> PyResult<Option<Bound<'py, PyAny>>> {
        match scanner.place() {
            Some(CutPlace::String | CutPlace::Escape) => {
                let (text, _) = string(self.py, &self.text, Until::Now, &mut self.decoded)?;
                self.place(text.into_any());
            }
            Some(CutPlace::Literal) => self.place(literal(self.py, &self.bare)),
            // A number at the root has a value only if it is valid.
            Some(CutPlace::Number) if scanner.is_complete() => {
                self.place(number(self.py, &self.bare)?);
            }
            _ => {}
        }
        while !self.open.is_empty() {
            self.end();
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.items.pop()),
        }
    }

    #[inline]
    fn place(&mut self, value: Bound<'py, PyAny>) {
        let Some(OpenContainer::Object(members, name)) = self.open.last_mut() else {
            self.items.push(value);
            return;
        };
        if let Some(name) = name.take()
            && let Err(error) = members.set_item(name, value)
        {
            self.fail(error);
        }
    }

    #[inline]
    fn end(&mut self) {
        match self.open.pop() {
            None => {}
            Some(OpenContainer::Object(members, _)) => self.place(members.into_any()),
            Some(OpenContainer::Array(from)) => {
                match PyList::new(self.py, self.items.drain(from..)) {
                    Ok(list) => self.place(list.into_any()),
                    Err(error) => self.fail(error),
                }
            }
        }
    }

    /// Keeps the first error.
    #[cold]
    fn fail(&mut self, error: PyErr) {
        self.error.get_or_insert(error);
    }
}

impl Visitor for Assembly<'_> {
    #[inline]
    fn open(&mut self, container: Container) {
        self.open.push(match container {
            Container::Array => OpenContainer::Array(self.items.len()),
            Container::Object => OpenContainer::Object(PyDict::new(self.py), None),
        });
    }

    #[inline]
    fn close(&mut self, _: Container) {
        self.end();
    }

    #[inline]
    fn key(&mut self, raw: &[u8]) {
        let (py, decoded) = (self.py, &mut self.decoded);
        let made = || whole_string(py, raw, decoded);
        match self.strings.get(py, raw, made) {
            Err(error) => self.fail(error),
            Ok(known) => {
                if let Some(OpenContainer::Object(_, name)) = self.open.last_mut() {
                    *name = Some(known);
                }
            }
        }
    }

    #[inline]
    fn whole_scalar(&mut self, kind: Scalar, raw: &[u8]) {
        let (py, decoded) = (self.py, &mut self.decoded);
        let made = match kind {
            Scalar::String => {
                let mut made = || whole_string(py, raw, decoded);
                let text = if raw.len() <= LONGEST_KEPT_VALUE {
                    self.strings.get(py, raw, made)
                } else {
                    made()
                };
                text.map(Bound::into_any)
            }
            Scalar::Number => number(py, raw),
            Scalar::Bool | Scalar::Null => Ok(literal(py, raw)),
        };
        match made {
            Ok(value) => self.place(value),
            Err(error) => self.fail(error),
        }
    }

    fn text(&mut self, raw: &[u8]) {
        self.text.extend_from_slice(raw);
    }

    fn bare(&mut self, raw: &[u8]) {
        self.bare.extend_from_slice(raw);
    }

    fn scalar(&mut self, kind: Scalar) {
        let raw = match kind {
            Scalar::String => std::mem::take(&mut self.text),
            Scalar::Number | Scalar::Bool | Scalar::Null => std::mem::take(&mut self.bare),
        };
        self.whole_scalar(kind, &raw);
    }
}
