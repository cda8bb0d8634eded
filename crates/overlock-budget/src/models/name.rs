//! Splits the name of a model into host, parts and release.
//!
//! All names here are in lower case.

const LATEST: &str = ":latest";

/// How much [`plain_forms`] removes at most.
pub(super) const LONGEST_ENDING: usize = LATEST.len() + "-2024-08-06".len();

/// The name, and its ends after each host or folder, the longest first: `a/b/c`, `b/c`, `c`. Those of
/// more than `limit` bytes are left out.
pub(super) fn tails(name: &str, limit: usize) -> impl Iterator<Item = &str> {
    // Text before the longest of them is not read, so a long name is cheap.
    let first = name.len().saturating_sub(limit);
    let is_start = move |start: &usize| *start == 0 || name.as_bytes()[start - 1] == b'/';
    (first..=name.len())
        .filter(is_start)
        .map(|start| &name[start..])
}

/// The name without any host.
pub(super) fn bare(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The name, the name without `:latest`, and that without its date.
pub(super) fn plain_forms(name: &str) -> impl Iterator<Item = &str> {
    let unpinned = name.strip_suffix(LATEST);
    let undated = without_date(unpinned.unwrap_or(name));
    [Some(name), unpinned, undated].into_iter().flatten()
}

/// The normalized name for all spellings: without `:latest` and date, and with `-` for `.`, `_` and
/// `@`.
///
/// A colon stays: `mistral:7b` is a model of Ollama, and `x:free` is not `x`. The host stays, because
/// hosts offer one model in different sizes.
pub(super) fn spelling(name: &str) -> String {
    let plain = plain_forms(name).last().unwrap_or(name);
    plain.replace(['.', '_', '@'], "-")
}

/// The beginnings of a name that consist of complete parts, the longest first.
///
/// A dot does not end a part: `gpt-4` is not a beginning of `gpt-4.1`.
pub(super) fn beginnings(bare: &str) -> impl Iterator<Item = &str> {
    bare.rmatch_indices(['-', ':', '@', '_'])
        .map(|(separator, _)| &bare[..separator])
        .filter(|beginning| !beginning.is_empty())
}

/// The name before `-2024-08-06`, `-20240806` or `@20240806`.
fn without_date(name: &str) -> Option<&str> {
    [("-", "-"), ("-", ""), ("@", "")]
        .iter()
        .find_map(|(before, between)| {
            let (rest, day) = split_digits(name, 2)?;
            let (rest, month) = split_digits(rest.strip_suffix(between)?, 2)?;
            let (rest, year) = split_digits(rest.strip_suffix(between)?, 4)?;
            let is_date = (1..=31).contains(&day)
                && (1..=12).contains(&month)
                && (2000..2100).contains(&year);
            rest.strip_suffix(before).filter(|_| is_date)
        })
}

/// The text before the last `count` characters, which must be digits, and their number.
fn split_digits(text: &str, count: usize) -> Option<(&str, u32)> {
    let (rest, digits) = text.split_at_checked(text.len().checked_sub(count)?)?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((rest, digits.parse().ok().filter(|_| all_digits)?))
}
