//! Which name was probably meant?

/// How alike two names are that one would take for the other.
const ALIKE: f64 = 0.8;

/// The name that is most like `word`, if one is like it at all.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    several_nearest(word, names, 1).into_iter().next()
}

/// Up to `count` names that are like `word`: those that hold it first, then the most alike.
pub(crate) fn several_nearest<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let word = word.to_ascii_lowercase();
    let mut rated: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (likeness(&word, &name.to_ascii_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    // Of equals the shorter: it has the least that was not asked for.
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

fn likeness(word: &str, name: &str) -> f64 {
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
    fn finds_what_was_probably_meant() {
        check("modle", Some("model"));
        check("Max-Tokens", Some("max_tokens"));
        check("tokens", Some("max_tokens"));
        check("marign", Some("margin"));
    }

    #[test]
    fn does_not_suggest_what_is_not_alike() {
        check("upstream", None);
        check("", None);
        check("xq", None);
    }

    #[test]
    fn what_holds_the_word_comes_first() {
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
