//! Finds names that are similar to a mistyped one.

/// The similarity from which a name is suggested.
const SIMILAR: f64 = 0.8;

/// The most similar name, if one is similar enough.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    several_nearest(word, names, 1).into_iter().next()
}

/// Up to `count` similar names: first those that contain `word`, then the most similar.
pub(crate) fn several_nearest<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let word = word.to_ascii_lowercase();
    let mut rated: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (similarity(&word, &name.to_ascii_lowercase()), name))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .collect();
    // Of equally similar names the shortest first.
    rated.sort_by(|(one, first), (other, second)| {
        other
            .total_cmp(one)
            .then(first.len().cmp(&second.len()))
            .then(first.cmp(second))
    });
    rated
        .into_iter()
        .take(count)
        .map(|(_, name)| name)
        .collect()
}

fn similarity(word: &str, name: &str) -> f64 {
    if word.len() > 2 && name.contains(word) {
        return 1.0;
    }
    strsim::jaro_winkler(word, name)
}

#[cfg(test)]
mod tests {
    use super::{nearest, several_nearest};

    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        let names = ["model", "max_tokens", "margin", "trim", "grow"];
        assert_eq!(nearest(word, names), expected, "{word:?}");
    }

    #[test]
    fn finds_similar_names() {
        check("modle", Some("model"));
        check("Max-Tokens", Some("max_tokens"));
        check("tokens", Some("max_tokens"));
        check("marign", Some("margin"));
    }

    #[test]
    fn does_not_suggest_different_names() {
        check("upstream", None);
        check("", None);
        check("xq", None);
    }

    #[test]
    fn names_that_contain_the_word_come_first() {
        let names = [
            "claude-3-opus",
            "sonnet-like",
            "claude-3-5-sonnet",
            "sonett",
        ];
        assert_eq!(
            several_nearest("sonnet", names, 3),
            ["sonnet-like", "claude-3-5-sonnet", "sonett"]
        );
    }
}
