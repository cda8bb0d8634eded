//! Which name was probably meant?

/// How alike two names are that one would take for the other.
const ALIKE: f64 = 0.8;

/// The name that is most like `word`, if one is like it at all.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let rated = names.into_iter().map(|name| {
        (
            strsim::jaro_winkler(&word, &name.to_ascii_lowercase()),
            name,
        )
    });
    let alike = rated.filter(|(likeness, _)| *likeness >= ALIKE);
    let nearest = alike.max_by(|(one, _), (other, _)| one.total_cmp(other));
    nearest.map(|(_, name)| name)
}
