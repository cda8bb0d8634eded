//! Which name was probably meant?

/// How alike two names are that one would take for the other.
const ALIKE: f64 = 0.8;

/// Nobody mistypes a longer name, and comparing takes the product of the lengths.
const LONGEST: usize = 64;

/// The name that is most like `word`, if one is like it at all.
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

/// The name that was probably meant, or all there are.
pub(crate) fn meant(word: &str, names: &[&str]) -> String {
    match nearest(word, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if names.is_empty() => "there are none".to_owned(),
        None => format!("there are {}", listed(names)),
    }
}

/// Names in a row, the first of many.
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
