//! Is the JSON in a first answer the document that was asked for?
//!
//! Prose contains brackets too, and some models write several documents. A document that makes up
//! the whole answer, apart from a code fence, reasoning and prose, is accepted. JSON inside a
//! sentence may be a footnote, an example or a first attempt.

use overlock_json::{Scanner, extract};

/// Whether a text with a complete document contains no other JSON that may be the intended
/// document.
pub(super) fn is_clearly_the_document(answer: &[u8]) -> bool {
    if is_whole(answer.trim_ascii()) {
        return true;
    }
    let Some(found) = extract(answer) else {
        return false;
    };
    let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    let before = text(&answer[..found.start]);
    let document = text(&answer[found.start..found.end]);
    let after = text(&answer[found.end..]);
    if is_fenced(&before) {
        return true;
    }
    let has_own_lines = before.trim_end_matches([' ', '\t']).ends_with(['\n', '>'])
        && after
            .lines()
            .next()
            .is_none_or(|line| line.trim().is_empty());
    let is_all = before.trim().is_empty() && after.trim().is_empty();
    (is_all || is_something(&document, has_own_lines)) && !is_json_like(&after)
}

fn is_whole(text: &[u8]) -> bool {
    let mut scanner = Scanner::new();
    scanner.feed(text);
    scanner.is_complete() && scanner.syntax_error().is_none()
}

/// Whether the last line of a text opens a fence.
fn is_fenced(before: &str) -> bool {
    let line = before.trim_end().lines().next_back().unwrap_or_default();
    line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")
}

/// Whether a document among words is more than empty brackets or a footnote such as `[1]`.
fn is_something(document: &str, has_own_lines: bool) -> bool {
    let inside = document.get(1..).unwrap_or_default().trim_start();
    let is_empty = inside.is_empty() || inside.starts_with(['}', ']']);
    let is_list_of_words_or_more =
        || document.starts_with('{') || inside.contains(['{', '[', '"', '\'']);
    !is_empty && (has_own_lines || is_list_of_words_or_more())
}

/// Whether the text after a document may be more of it, or another document. A reference such as
/// `[2]` within a line does not count.
fn is_json_like(after: &str) -> bool {
    let begins_list = |line: &str| {
        let mut rest = line;
        while let Some((before, inside)) = rest.split_once('[') {
            let begins_value = inside.trim_start().starts_with(['{', '[', '"']);
            if before.trim().is_empty() && rest.len() == line.len() || begins_value {
                return true;
            }
            rest = inside;
        }
        false
    };
    after.trim_start().starts_with([',', ':', '"'])
        || after.contains('{')
        || after.lines().any(begins_list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, expected: bool) {
        assert_eq!(
            is_clearly_the_document(answer.as_bytes()),
            expected,
            "{answer:?}"
        );
    }

    #[test]
    fn accepts_a_document_in_prose_or_a_fence() {
        check("[]", true);
        check(" {\"a\": 1}\n", true);
        check("{'a': 1,}", true);
        check("Sure:\n```json\n[1]\n```\nAs in {this}.", true);
        check("<think>[1, {</think>\n{\"a\": 1}", true);
        check("<think>hm</think>[1]", true);
        check("Here it is: {\"a\": 1}\nThat is all, see [2].", true);
        check("The primes:\n[2, 3, 5]\n", true);
        check("I choose [\"a\"] here.", true);
        check("{\"a\": 1}}", true);
    }

    #[test]
    fn rejects_json_that_may_be_part_of_the_prose() {
        check(
            "Sure! As described in [1], I will now write the report",
            false,
        );
        check("See [1, 2] and [].", false);
        check("It may be {} or so.", false);
        check("nothing", false);
    }

    #[test]
    fn rejects_one_document_of_several() {
        check("{\"a\": 1}\n{\"a\": 2", false);
        check("{\"error\": \"x\"} no wait: {\"rows\": [1", false);
        check("[1, 2]\n[3, 4", false);
        check("{\"a\": 1}, \"b\": 2", false);
        check("{\"a\": 1} or [\"b\"", false);
    }
}
