//! Suggests names for misspelt ones.

/// The minimum similarity of a suggestion.
const ALIKE: f64 = 0.8;

/// Longer names are not compared, because the time grows with the product of the lengths.
const LONGEST: usize = 64;

/// The name most similar to `word`, if one is similar enough.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let names = names.into_iter().filter(|name| name.len() <= LONGEST);
    let rated = names.map(|name| {
        (
            strsim::jaro_winkler(&word, &name.to_ascii_lowercase()),
            name,
        )
    });
    let alike = rated.filter(|(likeness, _)| *likeness >= ALIKE);
    let nearest = alike.max_by(|(one, _), (other, _)| one.total_cmp(other));
    nearest.map(|(_, name)| name)
}

/// Suggests the similar name, or lists all.
pub(crate) fn meant(word: &str, names: &[&str]) -> String {
    match nearest(word, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if names.is_empty() => "none are defined".to_owned(),
        None => format!("expected one of {}", listed(names)),
    }
}

/// Names as a list, shortened if there are many.
pub(crate) fn listed(names: &[&str]) -> String {
    const MOST: usize = 24;
    let shown: Vec<String> = names
        .iter()
        .take(MOST)
        .map(|name| format!("`{name}`"))
        .collect();
    let shown = shown.join(", ");
    match names.len().checked_sub(MOST) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
