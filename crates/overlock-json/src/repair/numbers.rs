//! Reads numbers in JSON and in other notations.
//!
//! Numbers are rewritten as text, so no digits are lost.

/// The length of the JSON number at the start of `text`; 0 if there is none.
#[inline]
pub(super) fn number_len(text: &[u8]) -> usize {
    let digits = |from: usize| {
        text[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let sign = usize::from(text.first() == Some(&b'-'));
    let whole = digits(sign);
    if whole == 0 || whole > 1 && text[sign] == b'0' {
        return 0;
    }
    let mut end = sign + whole;
    if text.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        if fraction == 0 {
            return 0;
        }
        end += 1 + fraction;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent == 0 {
            return 0;
        }
        end += 1 + sign + exponent;
    }
    end
}

/// Whether a token is a prefix of a JSON number.
pub(super) fn number_prefix(token: &[u8]) -> bool {
    // A prefix lacks at most one digit.
    let mut longer = token.to_vec();
    longer.push(b'1');
    number_len(&longer) == longer.len()
}

/// The JSON form of a number in another notation. Its digits are kept.
pub(super) fn number(token: &[u8]) -> Option<String> {
    let token = std::str::from_utf8(token).ok()?;
    let (sign, body) = match token.as_bytes().first()? {
        b'-' => ("-", &token[1..]),
        b'+' => ("", &token[1..]),
        _ => ("", token),
    };
    if let Some(value) = radix(body) {
        return Some(format!("{sign}{value}"));
    }
    let body = body.strip_suffix(['n', 'L']).unwrap_or(body);
    let between = |byte: u8| byte == b'_' || byte == b',';
    if !body
        .as_bytes()
        .first()
        .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.')
        || body.as_bytes().last().copied().is_some_and(between)
    {
        return None;
    }
    let body: String = body
        .chars()
        .filter(|&letter| letter != '_' && letter != ',')
        .collect();
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body.as_str(), None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole)
        || !fraction.is_none_or(all_digits)
        || whole.is_empty() && fraction.is_none_or(str::is_empty)
    {
        return None;
    }
    // Short numbers may be padded with zeros (`05`, `007`, `00.5`). Longer ones with leading zeros
    // are codes, versions or telephone numbers, which must keep them.
    let padded = whole.len() > 1 && whole.starts_with('0');
    let most = if fraction.is_some() { 2 } else { 3 };
    if padded && (whole.len() > most || exponent.is_some() || fraction == Some("")) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let mut json = format!("{sign}{whole}");
    if let Some(fraction) = fraction {
        json.push('.');
        json.push_str(if fraction.is_empty() { "0" } else { fraction });
    }
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if !all_digits(digits) {
            return None;
        }
        if !digits.is_empty() {
            json.push('e');
            json.push_str(exponent);
        }
    }
    Some(json)
}

/// The value of a number in another base.
fn radix(body: &str) -> Option<u128> {
    let (prefix, digits) = body.split_at_checked(2)?;
    let base = match prefix {
        "0x" | "0X" => 16,
        "0b" | "0B" => 2,
        "0o" | "0O" => 8,
        _ => return None,
    };
    u128::from_str_radix(digits, base).ok()
}
