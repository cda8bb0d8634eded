//! Text arguments: `str` or bytes, borrowed where possible.
//!
//! Offsets are converted to the unit in which the caller slices: characters of a `str`, bytes of
//! `bytes`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView, PyString};

use crate::error::Raise;
use crate::utf8::Utf8;

/// A text that can be read without holding the interpreter.
pub(crate) enum Text {
    /// A `str`.
    Characters(Utf8),
    /// A `str` with lone surrogates, which UTF-8 cannot encode. Readers drop them like other
    /// invalid bytes.
    Surrogates(PyBackedBytes),
    /// `bytes` or `bytearray`.
    Bytes(PyBackedBytes),
}

impl Text {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Characters(text) => text.as_bytes(),
            Self::Surrogates(text) | Self::Bytes(text) => text,
        }
    }

    /// The text as UTF-8; an error if it is not.
    pub(crate) fn utf8(&self, py: Python<'_>) -> PyResult<&str> {
        std::str::from_utf8(self.bytes()).map_err(|error| {
            let raise = Raise::bad_request("not-utf-8", "the text is not UTF-8");
            let offset = self.offset(error.valid_up_to());
            raise.at(None, offset).into_error(py)
        })
    }

    /// Converts an offset to the caller's unit.
    pub(crate) fn offset(&self, byte: usize) -> usize {
        self.offsets().at(byte)
    }

    /// Converts several offsets in one pass.
    pub(crate) fn offsets(&self) -> Offsets<'_> {
        Offsets {
            text: self,
            byte: 0,
            character: 0,
        }
    }

    /// Whether the caller's unit is characters.
    pub(crate) fn is_str(&self) -> bool {
        !matches!(self, Self::Bytes(_))
    }
}

/// Converts offsets in one pass.
pub(crate) struct Offsets<'a> {
    text: &'a Text,
    byte: usize,
    character: usize,
}

impl Offsets<'_> {
    /// Converts an offset. Smaller ones than the last are allowed but slower.
    pub(crate) fn at(&mut self, byte: usize) -> usize {
        if !self.text.is_str() {
            return byte;
        }
        let byte = byte.min(self.text.bytes().len());
        if byte < self.byte {
            (self.byte, self.character) = (0, 0);
        }
        self.character += characters(&self.text.bytes()[self.byte..byte]);
        self.byte = byte;
        self.character
    }
}

impl FromPyObject<'_, '_> for Text {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = given.cast::<PyString>() {
            if let Ok(text) = text.extract::<Utf8>() {
                return Ok(Self::Characters(text));
            }
            let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
            return Ok(Self::Surrogates(bytes.extract()?));
        }
        if given.is_instance_of::<PyMemoryView>() {
            let bytes = given.py().get_type::<PyBytes>().call1((given,))?;
            return Ok(Self::Bytes(bytes.extract()?));
        }
        let bytes = given.extract::<PyBackedBytes>().map_err(|_| {
            let kind = given.get_type().name();
            let kind = kind.map_or_else(|_| "something else".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "the text must be `str`, `bytes`, `bytearray` or `memoryview`, not `{kind}`"
            ))
        })?;
        Ok(Self::Bytes(bytes))
    }
}

/// The number of characters that begin in these bytes.
pub(crate) fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}
