//! Makes Python's strings, numbers and literals of what JSON writes.

use overlock_json::clean_encoding;
use pyo3::exceptions::PyUnicodeDecodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use crate::decode::{Decoded, Until, decode};

/// A number of more digits may be larger than what is made without asking Python.
const MOST_PLAIN_DIGITS: usize = 18;

/// The powers of ten up to the number of digits that a `f64` always holds exactly.
const EXACT_POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// The number that is written so, which must be one of JSON's.
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

/// An integer of no more than eight digits, without a look at each of them.
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
    // The first character is the lowest byte; what is missing of eight becomes leading zeros.
    let shift = 8 * (8 - len);
    let characters = characters << shift;
    // Of what a number is written with only digits have this bit.
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

/// A number that is negative, a fraction, or large.
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
        // Both parts of the quotient are exact, so that it is rounded once, as it must be.
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
    // Exact, however large; Python has a limit of its own against numbers made to be slow.
    py.get_type::<PyInt>().call1((written,))
}

/// All digits of a fraction, and how many of them are after its point; nothing if it has an
/// exponent.
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
    let Some(plain) = memchr::memchr(b'\\', raw) else {
        // Python looks at every character to see how wide it is, and tells if it is none.
        return PyString::from_bytes(py, raw);
    };
    Ok(string_from(py, raw, plain, Until::End, decoded)?.0)
}

/// The string that is written so, and how much of it was read; an error if it is no UTF-8.
pub(crate) fn string<'py>(
    py: Python<'py>,
    raw: &[u8],
    until: Until,
    decoded: &mut Vec<u8>,
) -> PyResult<(Bound<'py, PyString>, usize)> {
    string_from(py, raw, 0, until, decoded)
}

/// The same of one that is known to have no escape in its first `plain` bytes.
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
