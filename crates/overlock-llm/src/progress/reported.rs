//! Reads the progress in percent that a model reports.

/// The label of the progress line that the prompt asks for.
const LABEL: &str = "progress";

/// The percentage in the lines of an answer before its JSON, if there is one: the last of `45%`,
/// `45 percent` and a bare `45` up to 100.
///
/// Text in the document is never taken for progress. Text that follows a part of the document is
/// not searched, because it may be data.
///
/// ```
/// use overlock_llm::extract_kpi;
///
/// assert_eq!(extract_kpi("PROGRESS: 45\n, {\"share\": \"80%\"}]"), Some(45));
/// assert_eq!(extract_kpi(r#"{"share": "80%"}"#), None);
/// ```
pub fn extract_kpi(answer: &str) -> Option<u8> {
    split_progress(answer, "").0
}

/// Whether the percentage rose; any first value is progress.
///
/// ```
/// use overlock_llm::validate_kpi_progression;
///
/// assert!(validate_kpi_progression(None, 0));
/// assert!(validate_kpi_progression(Some(45), 46));
/// assert!(!validate_kpi_progression(Some(45), 45));
/// ```
pub fn validate_kpi_progression(last: Option<u8>, current: u8) -> bool {
    last.is_none_or(|last| current > last)
}

/// The progress that an answer reports before its JSON or the overlap begins, and the answer
/// without its progress line.
pub(crate) fn split_progress<'a>(answer: &'a str, overlap: &str) -> (Option<u8>, &'a str) {
    if let Some((line, rest)) = split_label(answer) {
        return (last_percentage(line), rest);
    }
    let repeated = answer.find(overlap).filter(|_| !overlap.is_empty());
    let begins = answer.find(['{', '[', '"']).into_iter().chain(repeated);
    let before = begins.min().map_or("", |at| &answer[..at]);
    (last_percentage(lines_of_prose(before)), answer)
}

/// The complete lines at the start of an answer, if they cannot be part of a document: a JSON
/// string contains no line break, and values are separated by commas.
fn lines_of_prose(text: &str) -> &str {
    let lines = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    let is_data = lines.trim().starts_with([',', ':'])
        || lines.trim().ends_with(',')
        || lines.contains(['}', ']']);
    if is_data { "" } else { lines }
}

/// The progress line of an answer, if it is the first line, and the text after it.
///
/// A string of a document cannot continue like this, because line breaks in it are escaped.
pub(crate) fn split_label(answer: &str) -> Option<(&str, &str)> {
    let text = answer.trim_start();
    let (line, rest) = text.split_once('\n')?;
    let bare = line.trim_start_matches(['*', '_', '#', '>', ' ', '`']);
    let label = bare.get(..LABEL.len())?;
    let is_label = label.eq_ignore_ascii_case(LABEL)
        && !line.contains(['"', '{', '}', '[', ']'])
        && last_percentage(line).is_some();
    is_label.then_some((line, rest))
}

/// The last whole number up to 100 in a text that is not part of a longer word.
fn last_percentage(text: &str) -> Option<u8> {
    let is_part = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b',' | b'_' | b'-' | b'/')
    };
    text.as_bytes()
        .split(|byte| !is_part(byte))
        .filter_map(|word| {
            let word = word
                .strip_suffix(b".")
                .or(word.strip_suffix(b","))
                .unwrap_or(word);
            let word = word.strip_suffix(b"/100").unwrap_or(word);
            let digits = word.iter().all(u8::is_ascii_digit);
            let number: u8 = std::str::from_utf8(word).ok()?.parse().ok()?;
            (digits && number <= 100).then_some(number)
        })
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, kpi: Option<u8>) {
        assert_eq!(extract_kpi(answer), kpi, "{answer:?}");
    }

    #[test]
    fn reads_every_spelling_of_a_percentage() {
        check("PROGRESS: 45\n{\"a\": 1}", Some(45));
        check("PROGRESS: 45%\n{\"a\": 1}", Some(45));
        check("Progress: about 45 percent.\n{\"a\": 1}", Some(45));
        check("**PROGRESS:** 0\n{}", Some(0));
        check("PROGRESS: 100 %\n[1]", Some(100));
        check("PROGRESS: 45/100\n[1]", Some(45));
        check("45/100\n[1]", Some(45));
        check("Here is more (45%):\n```json\n{\"a\": 1}\n```", Some(45));
        check("About 45 % so far.\n{\"a\": 1}", Some(45));
        check("45\n{\"a\": 1}", Some(45));
    }

    #[test]
    fn the_last_one_counts() {
        check("PROGRESS: 40, no, 45\n{}", Some(45));
        check("12 done\nor rather 30%\n{\"a\": 1}", Some(30));
    }

    #[test]
    fn rejects_other_numbers() {
        check("PROGRESS: 101\n{}", None);
        check("PROGRESS: -5\n{}", None);
        check("PROGRESS: 45.5\n{}", None);
        check("PROGRESS: 2024-11-05\n{}", None);
        check("PROGRESS: unknown\n{}", None);
        check("Part 1/2\n{}", None);
        check("", None);
        check("45", None);
    }

    #[test]
    fn data_never_counts() {
        check(r#"{"share": "80%", "done": 45}"#, None);
        check("[45, 46", None);
        check("\"progress: 45\n\"]", None);
        check("45, 46,\n47,\n{\"a\": 1}", None);
        check("5\n],\n\"share\": 80", None);
        check(": 45,\n\"share\": 80", None);
        check("ow 45 people came\", \"and\": 80", None);
        check("{\"a\": 1}\nThat is 60 percent.", None);
    }

    #[test]
    fn progress_is_a_rise_of_one_at_least() {
        assert!(validate_kpi_progression(None, 0));
        assert!(validate_kpi_progression(Some(0), 1));
        assert!(!validate_kpi_progression(Some(0), 0));
        assert!(!validate_kpi_progression(Some(50), 49));
        assert!(validate_kpi_progression(Some(99), 100));
    }

    #[test]
    fn only_a_complete_first_line_is_split_off() {
        assert_eq!(
            split_label("PROGRESS: 45\nrest\n"),
            Some(("PROGRESS: 45", "rest\n"))
        );
        assert_eq!(split_label("PROGRESS: 45"), None);
        assert_eq!(split_label("progress\": 45,\n"), None);
        assert_eq!(split_label("Überall\n"), None);
    }

    #[test]
    fn numbers_in_the_overlap_never_count() {
        let reported = |answer, overlap| split_progress(answer, overlap).0;
        assert_eq!(reported("About 45 %:\n7, 8, 9, 10", "7, 8, 9"), Some(45));
        assert_eq!(reported("6, 7, 8, 9, 10", "7, 8, 9"), None);
        assert_eq!(reported("6,\n7,\n8,\n9", "8,\n9"), None);
        assert_eq!(reported("in 45 cases out of", "cases out of"), None);
    }
}
