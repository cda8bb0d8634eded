//! Writes values like Python.
//!
//! Templates are written for Python, where `true` is `True`, floats have another notation, and JSON
//! has a space after every comma.

use std::fmt::Write;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, Output, State};

/// How deep a value may be nested to be written.
const DEPTH: usize = 150;

/// Writes the value of an expression in double braces.
pub(super) fn write(
    output: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Bool | ValueKind::None | ValueKind::Number | ValueKind::Seq | ValueKind::Map => {
            let mut text = String::new();
            write_plain(&mut text, value, DEPTH)?;
            output.write_str(&text).map_err(Error::from)
        }
        _ => minijinja::escape_formatter(output, state, value),
    }
}

/// The filter `tojson`, which is `json.dumps` without escaping non-ASCII characters.
#[expect(
    clippy::needless_pass_by_value,
    reason = "minijinja hands arguments over"
)]
pub(super) fn to_json(value: &Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let style = Json {
        indent,
        comma: match (separators.as_deref(), indent) {
            (Some([comma, _]), _) => comma.clone(),
            (_, Some(_)) => ",".to_owned(),
            (_, None) => ", ".to_owned(),
        },
        colon: match separators.as_deref() {
            Some([_, colon]) => colon.clone(),
            _ => ": ".to_owned(),
        },
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        ensure_ascii: options
            .get::<Option<bool>>("ensure_ascii")?
            .unwrap_or(false),
    };
    options.assert_all_used()?;
    let mut text = String::new();
    style.write(&mut text, value, 0)?;
    Ok(text)
}

/// The format of JSON.
struct Json {
    indent: Option<usize>,
    comma: String,
    colon: String,
    sort_keys: bool,
    ensure_ascii: bool,
}

impl Json {
    fn write(&self, text: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > DEPTH {
            return Err(too_deep());
        }
        match value.kind() {
            ValueKind::None => text.push_str("null"),
            ValueKind::Bool if value.is_true() => text.push_str("true"),
            ValueKind::Bool => text.push_str("false"),
            ValueKind::Number => write_number(text, value),
            ValueKind::String => self.write_string(text, value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.write_items(text, ['[', ']'], &items, depth, |text, item| {
                    self.write(text, item, depth + 1)
                })?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                self.write_items(text, ['{', '}'], &keys, depth, |text, key| {
                    self.write_string(text, &key.to_string());
                    text.push_str(&self.colon);
                    self.write(text, &value.get_item(key)?, depth + 1)
                })?;
            }
            kind => {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("{kind} cannot be written as JSON"),
                ));
            }
        }
        Ok(())
    }

    fn write_items(
        &self,
        text: &mut String,
        [open, close]: [char; 2],
        items: &[Value],
        depth: usize,
        mut write: impl FnMut(&mut String, &Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        text.push(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                text.push_str(&self.comma);
            }
            self.write_line_break(text, depth + 1);
            write(text, item)?;
        }
        if !items.is_empty() {
            self.write_line_break(text, depth);
        }
        text.push(close);
        Ok(())
    }

    fn write_line_break(&self, text: &mut String, depth: usize) {
        if let Some(indent) = self.indent {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent.min(64) * depth));
        }
    }

    fn write_string(&self, text: &mut String, string: &str) {
        let quoted = serde_json::Value::from(string).to_string();
        if !self.ensure_ascii {
            text.push_str(&quoted);
            return;
        }
        for character in quoted.chars() {
            if character.is_ascii() {
                text.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
}

/// Writes a value as `str` does in Python, and as `repr` does within lists and dictionaries.
fn write_plain(text: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    let Some(deeper) = depth.checked_sub(1) else {
        return Err(too_deep());
    };
    match value.kind() {
        ValueKind::None => text.push_str("None"),
        ValueKind::Bool if value.is_true() => text.push_str("True"),
        ValueKind::Bool => text.push_str("False"),
        ValueKind::Number => write_number(text, value),
        ValueKind::String => write_quoted(text, value.as_str().unwrap_or_default()),
        ValueKind::Seq => {
            text.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_plain(text, &item, deeper)?;
            }
            text.push(']');
        }
        ValueKind::Map => {
            text.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_plain(text, &key, deeper)?;
                text.push_str(": ");
                write_plain(text, &value.get_item(&key)?, deeper)?;
            }
            text.push('}');
        }
        _ => text.push_str(&value.to_string()),
    }
    Ok(())
}

fn write_number(text: &mut String, value: &Value) {
    match f64::try_from(value.clone()) {
        Ok(number) if !value.is_integer() => text.push_str(&float(number)),
        _ => text.push_str(&value.to_string()),
    }
}

/// A float in the shortest notation that reads back, with an exponent where Python has one.
fn float(number: f64) -> String {
    if !number.is_finite() {
        let name = if number.is_nan() { "NaN" } else { "Infinity" };
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}{name}");
    }
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{number}");
        return if plain.contains('.') {
            plain
        } else {
            plain + ".0"
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A string in single quotes, or in double ones if it contains single ones.
fn write_quoted(text: &mut String, string: &str) {
    let quote = if string.contains('\'') && !string.contains('"') {
        '"'
    } else {
        '\''
    };
    text.push(quote);
    for character in string.chars() {
        match character {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\\' => text.push_str("\\\\"),
            _ if character == quote => text.extend(['\\', character]),
            _ if character.is_ascii_control() => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\x{:02x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text.push(quote);
}

fn too_deep() -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("a value nested more than {DEPTH} deep cannot be written"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_float(number: f64, written: &str) {
        assert_eq!(float(number), written);
    }

    #[test]
    fn writes_floats_as_python_does() {
        check_float(1.0, "1.0");
        check_float(-0.25, "-0.25");
        check_float(0.0001, "0.0001");
        check_float(0.000_01, "1e-05");
        check_float(1e15, "1000000000000000.0");
        check_float(1e16, "1e+16");
        check_float(1.5e300, "1.5e+300");
        check_float(f64::NEG_INFINITY, "-Infinity");
    }
}
