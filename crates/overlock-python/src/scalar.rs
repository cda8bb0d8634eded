//! Makes Python's strings, numbers and literals of what JSON writes.

use overlock_json::clean_encoding;
use pyo3::exceptions::PyUnicodeDecodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use crate::decode::{Decoded, Until, decode};

/// A number of more digits may be larger than what is made without asking Python.
const MOST_PLAIN_DIGITS: usize = 18;

/// The powers of ten that a `f64` holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Integers up to this one are all exact as `f64`.
const LARGEST_EXACT: u64 = 1 << 53;

/// The number that is written so, which must be one of JSON's.
#[inline]
pub(crate) fn number<'py>(py: Python<'py>, written: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (is_negative, rest) = match written {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (integer, digits) = leading_digits(rest);
    if digits == rest.len() && digits <= MOST_PLAIN_DIGITS {
        let integer = integer.cast_signed();
        let signed = if is_negative { -integer } else { integer };
        return Ok(PyInt::new(py, signed).into_any());
    }
    if let Some(float) = plain_fraction(integer, digits, rest) {
        let signed = if is_negative { -float } else { float };
        return Ok(PyFloat::new(py, signed).into_any());
    }
    let is_float = is_float(written);
    let written = std::str::from_utf8(written).expect("numbers are ASCII");
    if is_float {
        return Ok(PyFloat::new(py, written.parse()?).into_any());
    }
    // Exact, however large; Python has a limit of its own against numbers made to be slow.
    py.get_type::<PyInt>().call1((written,))
}

pub(crate) fn is_float(written: &[u8]) -> bool {
    written
        .iter()
        .any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// A short fraction: both parts of the quotient are exact, so that it is rounded once, as it must.
#[inline]
fn plain_fraction(integer: u64, digits: usize, rest: &[u8]) -> Option<f64> {
    let after = rest.get(digits..)?.strip_prefix(b".")?;
    if digits + after.len() > MOST_PLAIN_DIGITS {
        return None;
    }
    let mut mantissa = integer;
    for byte in after {
        if !byte.is_ascii_digit() {
            return None;
        }
        mantissa = mantissa * 10 + u64::from(byte - b'0');
    }
    #[expect(clippy::cast_precision_loss, reason = "it is small enough to be exact")]
    (mantissa <= LARGEST_EXACT).then(|| mantissa as f64 / EXACT_POWERS[after.len()])
}

/// The digits at the front, as a number that wraps if there are too many, and how many they are.
#[inline]
fn leading_digits(written: &[u8]) -> (u64, usize) {
    if let Some(eight) = eight_digits(written) {
        return eight;
    }
    let mut integer: u64 = 0;
    for (at, byte) in written.iter().enumerate() {
        if !byte.is_ascii_digit() {
            return (integer, at);
        }
        integer = integer
            .wrapping_mul(10)
            .wrapping_add(u64::from(byte - b'0'));
    }
    (integer, written.len())
}

/// The same of four to eight characters that are all digits, at once.
#[inline]
fn eight_digits(written: &[u8]) -> Option<(u64, usize)> {
    let len = written.len();
    if len > 8 {
        return None;
    }
    let half = |four: &[u8; 4]| u64::from(u32::from_le_bytes(*four));
    let first = half(written.first_chunk()?);
    let last = half(written.last_chunk()?);
    // The first character is the lowest byte; what is missing of eight becomes leading zeros.
    let shift = 8 * (8 - len);
    let characters = (first | last << (8 * (len - 4))) << shift;
    // Of what a number is written with only digits have this bit.
    let each = u64::from_le_bytes([0x10; 8]) >> shift << shift;
    if characters & each != each {
        return None;
    }
    let ones = characters & u64::from_le_bytes([0x0F; 8]);
    let tens = (ones * 10 + (ones >> 8)) & u64::from_le_bytes([0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0]);
    let hundreds =
        (tens * 100 + (tens >> 16)) & u64::from_le_bytes([0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 0, 0]);
    Some((
        (hundreds * 10_000 + (hundreds >> 32)) & u64::from(u32::MAX),
        len,
    ))
}

/// The literal that begins like this: its first letter decides.
#[inline]
pub(crate) fn literal<'py>(py: Python<'py>, written: &[u8]) -> Bound<'py, PyAny> {
    match written.first() {
        Some(b't') => PyBool::new(py, true).to_owned().into_any(),
        Some(b'f') => PyBool::new(py, false).to_owned().into_any(),
        _ => py.None().into_bound(py),
    }
}

/// The whole string that is written so; an error if it is no UTF-8. `decoded` is room to work in.
#[inline]
pub(crate) fn whole_string<'py>(
    py: Python<'py>,
    raw: &[u8],
    decoded: &mut Vec<u8>,
) -> PyResult<Bound<'py, PyString>> {
    // Python looks at every character to see how wide it is, and tells if it is none.
    if memchr::memchr(b'\\', raw).is_none() {
        return PyString::from_bytes(py, raw);
    }
    Ok(string(py, raw, Until::End, decoded)?.0)
}

/// The string that is written so, and how much of it was read; an error if it is no UTF-8.
pub(crate) fn string<'py>(
    py: Python<'py>,
    raw: &[u8],
    until: Until,
    decoded: &mut Vec<u8>,
) -> PyResult<(Bound<'py, PyString>, usize)> {
    decoded.clear();
    let Decoded {
        read,
        has_surrogates,
    } = decode(raw, until, decoded);
    if !has_surrogates {
        return Ok((PyString::from_bytes(py, decoded)?, read));
    }
    // Where halves of pairs are let through, nothing else may be taken for one.
    PyString::from_bytes(py, &raw[..read])?;
    let bytes = PyBytes::new(py, decoded);
    let text = PyString::from_encoded_object(&bytes, Some(c"utf-8"), Some(c"surrogatepass"))?;
    Ok((text, read))
}

/// The same of any bytes: those that are no UTF-8 are left out.
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
