//! Python strings, numbers and literals from JSON.

use overlock_json::clean_encoding;
use pyo3::exceptions::PyUnicodeDecodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use crate::decode::{Decoded, Until, decode};

/// Integers with more digits may not fit an `i64`.
const MOST_PLAIN_DIGITS: usize = 18;

/// The powers of ten up to the number of digits that an `f64` represents exactly.
const EXACT_POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// Converts a JSON number.
#[inline]
pub(crate) fn number<'py>(py: Python<'py>, written: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match short_integer(written) {
        Some(integer) => Ok(PyInt::new(py, integer).into_any()),
        None => other_number(py, written),
    }
}

pub(crate) fn is_float(written: &[u8]) -> bool {
    written
        .iter()
        .any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// Parses an integer of up to eight digits without a loop.
#[inline]
fn short_integer(written: &[u8]) -> Option<u32> {
    let len = written.len();
    let characters = match len {
        4..=8 => {
            let half = |four: &[u8; 4]| u64::from(u32::from_le_bytes(*four));
            half(written.first_chunk()?) | half(written.last_chunk()?) << (8 * (len - 4))
        }
        1..4 => {
            let at = |place: usize| u64::from(written[place]);
            at(0) | at(len / 2) << (8 * (len / 2)) | at(len - 1) << (8 * (len - 1))
        }
        _ => return None,
    };
    // The first character is in the lowest byte. Missing characters become leading zeros.
    let shift = 8 * (8 - len);
    let characters = characters << shift;
    // Of the characters in a number only digits have this bit.
    let each = u64::from_le_bytes([0x10; 8]) >> shift << shift;
    if characters & each != each {
        return None;
    }
    let ones = characters & u64::from_le_bytes([0x0F; 8]);
    let pairs =
        (ones * 10 + (ones >> 8)) & u64::from_le_bytes([0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0]);
    let fours =
        (pairs * 100 + (pairs >> 16)) & u64::from_le_bytes([0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 0, 0]);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "eight digits are in the lower half"
    )]
    Some((fours * 10_000 + (fours >> 32)) as u32)
}

/// Converts a number that is negative, fractional or long.
#[inline(never)]
fn other_number<'py>(py: Python<'py>, written: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (sign, rest) = match written {
        [b'-', rest @ ..] => (-1, rest),
        rest => (1, rest),
    };
    let is_float = is_float(rest);
    if is_float
        && rest.len() < EXACT_POWERS.len()
        && let Some((digits, places)) = plain_fraction(rest)
    {
        // Both operands are exact, so the quotient is rounded only once.
        #[expect(clippy::cast_precision_loss, reason = "fifteen digits are exact")]
        let quotient = digits as f64 / EXACT_POWERS[places];
        return Ok(PyFloat::new(py, quotient * f64::from(sign)).into_any());
    }
    if !is_float && rest.len() <= MOST_PLAIN_DIGITS {
        let integer = rest.iter().fold(0, |integer, digit| {
            integer * 10 + i64::from(digit.wrapping_sub(b'0'))
        });
        return Ok(PyInt::new(py, integer * i64::from(sign)).into_any());
    }
    let written = std::str::from_utf8(written).expect("numbers are ASCII");
    if is_float {
        return Ok(PyFloat::new(py, written.parse()?).into_any());
    }
    // Exact for any size. Python limits the number of digits against slow conversions.
    py.get_type::<PyInt>().call1((written,))
}

/// The digits of a decimal fraction, and how many follow the point; nothing if it has an exponent.
fn plain_fraction(written: &[u8]) -> Option<(i64, usize)> {
    let (mut digits, mut places) = (0, 0);
    for (at, byte) in written.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digits = digits * 10 + i64::from(byte - b'0'),
            b'.' => places = written.len() - at - 1,
            _ => return None,
        }
    }
    Some((digits, places))
}

/// Converts a literal by its first letter, as the rest may be missing.
#[inline]
pub(crate) fn literal<'py>(py: Python<'py>, written: &[u8]) -> Bound<'py, PyAny> {
    match written.first() {
        Some(b't') => PyBool::new(py, true).to_owned().into_any(),
        Some(b'f') => PyBool::new(py, false).to_owned().into_any(),
        _ => py.None().into_bound(py),
    }
}

/// Converts a complete string; an error if it is not UTF-8. `decoded` is a buffer.
#[inline]
pub(crate) fn whole_string<'py>(
    py: Python<'py>,
    raw: &[u8],
    decoded: &mut Vec<u8>,
) -> PyResult<Bound<'py, PyString>> {
    let Some(plain) = memchr::memchr(b'\\', raw) else {
        // Python checks the encoding while it determines the width of the characters.
        return PyString::from_bytes(py, raw);
    };
    Ok(string_from(py, raw, plain, Until::End, decoded)?.0)
}

/// Converts a string, and returns how much of it was read; an error if it is not UTF-8.
pub(crate) fn string<'py>(
    py: Python<'py>,
    raw: &[u8],
    until: Until,
    decoded: &mut Vec<u8>,
) -> PyResult<(Bound<'py, PyString>, usize)> {
    string_from(py, raw, 0, until, decoded)
}

/// The same for a string without escapes in its first `plain` bytes.
fn string_from<'py>(
    py: Python<'py>,
    raw: &[u8],
    plain: usize,
    until: Until,
    decoded: &mut Vec<u8>,
) -> PyResult<(Bound<'py, PyString>, usize)> {
    decoded.clear();
    decoded.extend_from_slice(&raw[..plain]);
    let Decoded {
        read,
        has_surrogates,
    } = decode(&raw[plain..], until, decoded);
    let read = plain + read;
    if !has_surrogates {
        return Ok((PyString::from_bytes(py, decoded)?, read));
    }
    // `surrogatepass` would accept surrogates in the raw bytes too, so these are checked first.
    PyString::from_bytes(py, &raw[..read])?;
    let bytes = PyBytes::new(py, decoded);
    let text = PyString::from_encoded_object(&bytes, Some(c"utf-8"), Some(c"surrogatepass"))?;
    Ok((text, read))
}

/// The same for any bytes; those that are not UTF-8 are left out.
pub(crate) fn cleaned_string<'py>(
    py: Python<'py>,
    raw: &[u8],
    until: Until,
    decoded: &mut Vec<u8>,
) -> PyResult<(Bound<'py, PyString>, usize)> {
    match string(py, raw, until, decoded) {
        Err(error) if error.is_instance_of::<PyUnicodeDecodeError>(py) => {
            decoded.clear();
            let read = decode(raw, until, decoded).read;
            let cleaned = clean_encoding(&raw[..read]);
            let (text, _) = string(py, cleaned.text.as_bytes(), Until::End, decoded)?;
            Ok((text, read))
        }
        other => other,
    }
}
