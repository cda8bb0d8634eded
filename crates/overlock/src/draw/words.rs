//! The words for cuts, fixes and numbers.

use overlock_json::{Cut, Fix};

use super::cells::{head, tail};

/// A JSON pointer in at most `room` columns, without its middle if it is longer.
pub(crate) fn path(pointer: &str, room: usize) -> String {
    if pointer.is_empty() {
        return "the root".into();
    }
    let start = head(pointer.as_bytes(), room);
    if !start.text.ends_with('…') {
        return start.text;
    }
    let start = head(pointer.as_bytes(), room / 2).text;
    let end = tail(pointer.as_bytes(), room / 2).text;
    format!(
        "{}…{}",
        start.trim_end_matches('…'),
        end.trim_start_matches('…')
    )
}

/// The columns of a pointer in a sentence.
pub(crate) const SENTENCE_COLUMNS: usize = 60;

/// Describes a cut in one line.
pub(crate) fn cut_sentence(cut: &Cut) -> String {
    format!(
        "{} at {}, after {} bytes",
        cut.place.phrase(),
        path(&cut.path, SENTENCE_COLUMNS),
        grouped(cut.offset)
    )
}

/// The number of fixes of each kind, in the order of the first occurrence.
pub(crate) fn fixes(fixes: &[Fix]) -> String {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for fix in fixes {
        let name = fix_name(*fix);
        match kinds.iter_mut().find(|(kind, _)| *kind == name) {
            Some((_, count)) => *count += 1,
            None => kinds.push((name, 1)),
        }
    }
    let kinds: Vec<_> = kinds
        .into_iter()
        .map(|(kind, count)| match count {
            1 => kind,
            _ => format!("{kind} ×{}", grouped(count)),
        })
        .collect();
    match fixes.len() {
        0 => "no fixes".into(),
        1 => format!("1 fix: {}", kinds.join(", ")),
        count => format!("{} fixes: {}", grouped(count), kinds.join(", ")),
    }
}

/// The name of a fix in JSON.
pub(crate) fn fix_name(fix: Fix) -> String {
    match serde_json::to_value(fix.kind) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{:?}", fix.kind),
    }
}

/// A number with commas between thousands.
pub(crate) fn grouped(number: usize) -> String {
    grouped_tokens(number as u64)
}

/// A number of tokens with commas between thousands.
pub(crate) fn grouped_tokens(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number with its noun: `1 file`, `2,000 files`.
pub(crate) fn amount(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {what}{s}", grouped_tokens(number))
}

#[cfg(test)]
mod tests {
    use super::{amount, grouped};

    #[test]
    fn uses_the_plural() {
        assert_eq!(amount(1, "file"), "1 file");
        assert_eq!(amount(0, "file"), "0 files");
        assert_eq!(amount(2000, "file"), "2,000 files");
    }

    #[test]
    fn separates_thousands() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), expected);
        }
    }
}
