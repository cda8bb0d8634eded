//! Counts items in the document as a measure of progress.
//!
//! A path names an array, an object or a value, and the complete elements in it are counted. The
//! count follows the scan, so its cost is linear in the new text.

use overlock_json::{Container, Scalar, Visitor};
use serde::{Deserialize, Serialize};

/// A count of elements in a document, with a target.
///
/// ```
/// use overlock_llm::MeasuredKpi;
///
/// let kpi = MeasuredKpi::new("sections", "sections written", "$.sections[*]", 12)?;
/// assert_eq!(kpi.current_value, 0);
/// # Ok::<(), overlock_llm::KpiPathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "KpiFields")]
pub struct MeasuredKpi {
    /// The name.
    pub id: String,
    /// A description for the user.
    pub description: String,
    json_path: String,
    /// The target.
    pub target_value: u64,
    /// The current count.
    pub current_value: u64,
    #[serde(skip_serializing)]
    path: Path,
}

/// Why a path is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{path}` is not a supported path: expected `$` followed by `.name`, `['name']`, `[3]` or \
    	 `[*]`, but character {at} does not match"
)]
pub struct KpiPathError {
    /// The path.
    pub path: String,
    /// The first invalid character, from 1.
    pub at: usize,
}

impl MeasuredKpi {
    /// How much of the target is reached.
    pub(crate) fn percent(&self) -> u8 {
        let percent = u128::from(self.current_value) * 100 / u128::from(self.target_value.max(1));
        u8::try_from(percent.min(100)).unwrap_or(100)
    }

    /// A count by a path such as `$.sections[*].items`.
    pub fn new(
        id: impl Into<String>,
        description: impl Into<String>,
        json_path: impl Into<String>,
        target_value: u64,
    ) -> Result<Self, KpiPathError> {
        let json_path = json_path.into();
        Ok(Self {
            id: id.into(),
            description: description.into(),
            target_value,
            current_value: 0,
            path: parse(&json_path)?,
            json_path,
        })
    }

    /// The path as passed to [`new`](Self::new).
    pub fn json_path(&self) -> &str {
        &self.json_path
    }
}

/// The JSON form of a KPI, before its path is parsed.
#[derive(Deserialize)]
struct KpiFields {
    id: String,
    #[serde(default)]
    description: String,
    json_path: String,
    target_value: u64,
    #[serde(default)]
    current_value: u64,
}

impl TryFrom<KpiFields> for MeasuredKpi {
    type Error = KpiPathError;

    fn try_from(fields: KpiFields) -> Result<Self, KpiPathError> {
        let kpi = Self::new(
            fields.id,
            fields.description,
            fields.json_path,
            fields.target_value,
        )?;
        Ok(Self {
            current_value: fields.current_value,
            ..kpi
        })
    }
}

/// A parsed `json_path`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Path {
    /// The steps from the root. A last `[*]` is left out, because an array and all of its items are
    /// the same count.
    parts: Vec<Part>,
    /// Whether a last `[*]` was left out: a scalar then does not count.
    names_items: bool,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Name(String),
    Index(usize),
    All,
}

fn parse(path: &str) -> Result<Path, KpiPathError> {
    let mut parts = Vec::new();
    let error = |rest: &str| KpiPathError {
        path: path.to_owned(),
        at: path[..path.len() - rest.len()].chars().count() + 1,
    };
    let mut rest = path.strip_prefix('$').ok_or_else(|| error(path))?;
    while !rest.is_empty() {
        let (part, after) = next_part(rest).ok_or_else(|| error(rest))?;
        parts.push(part);
        rest = after;
    }
    let names_items = parts.pop_if(|part| *part == Part::All).is_some();
    Ok(Path { parts, names_items })
}

fn next_part(rest: &str) -> Option<(Part, &str)> {
    if let Some(name) = rest.strip_prefix('.') {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (name, after) = name.split_at(end);
        let part = match name {
            "" => return None,
            "*" => Part::All,
            name => Part::Name(name.to_owned()),
        };
        return Some((part, after));
    }
    let inside = rest.strip_prefix('[')?;
    for quote in ['\'', '"'] {
        if let Some(name) = inside.strip_prefix(quote) {
            let (name, after) = name.split_once(quote)?;
            return Some((Part::Name(name.to_owned()), after.strip_prefix(']')?));
        }
    }
    let (inside, after) = inside.split_once(']')?;
    let part = match inside {
        "*" => Part::All,
        index => Part::Index(index.parse().ok()?),
    };
    Some((part, after))
}

/// Counts along one path while a document is scanned.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    kpi: MeasuredKpi,
    /// How many containers are open.
    depth: usize,
    /// The open containers on the path, outermost first, with the current element of each.
    on_path: Vec<Element>,
}

/// The current element of a container.
#[derive(Clone, Debug)]
enum Element {
    Member(Vec<u8>),
    Item(usize),
}

impl Measure {
    /// A count that starts at 0.
    pub(crate) fn new(kpi: &MeasuredKpi) -> Self {
        Self {
            kpi: MeasuredKpi {
                current_value: 0,
                ..kpi.clone()
            },
            depth: 0,
            on_path: Vec::new(),
        }
    }

    pub(crate) fn kpi(&self) -> &MeasuredKpi {
        &self.kpi
    }

    /// Whether the count can still rise, judging by the part that was scanned.
    pub(crate) fn can_rise(&self) -> bool {
        let Some((element, around)) = self.on_path.split_last() else {
            return false;
        };
        let parts = &self.kpi.path.parts;
        if self.is_target() || parts[..around.len()].contains(&Part::All) {
            return true;
        }
        match (&parts[around.len()], element) {
            (Part::All, _) => true,
            // Keys are unique, so the value must not have been counted yet.
            (Part::Name(_), Element::Member(_)) => self.kpi.current_value == 0,
            (Part::Index(wanted), Element::Item(index)) => index <= wanted,
            _ => false,
        }
    }

    /// Whether the innermost open container is on the path, or nothing is open yet.
    fn is_on_path(&self) -> bool {
        self.depth == self.on_path.len()
    }

    /// Whether the next element is on the path too.
    fn is_next_on_path(&self) -> bool {
        let Some(element) = self.on_path.last() else {
            return true;
        };
        match (self.kpi.path.parts.get(self.on_path.len() - 1), element) {
            (Some(Part::All), _) => true,
            (Some(Part::Name(name)), Element::Member(key)) => is_name(key, name),
            (Some(Part::Index(wanted)), Element::Item(index)) => wanted == index,
            _ => false,
        }
    }

    /// Whether the innermost container on the path is the one whose elements are counted.
    fn is_target(&self) -> bool {
        self.on_path.len() == self.kpi.path.parts.len() + 1
    }

    /// An element of the innermost container on the path is complete.
    fn element_ended(&mut self) {
        if self.is_target() {
            self.kpi.current_value += 1;
        }
        if let Some(Element::Item(index)) = self.on_path.last_mut() {
            *index += 1;
        }
    }
}

impl Visitor for Measure {
    fn open(&mut self, container: Container) {
        if self.is_on_path() && !self.is_target() && self.is_next_on_path() {
            self.on_path.push(match container {
                Container::Object => Element::Member(Vec::new()),
                Container::Array => Element::Item(0),
            });
        }
        self.depth += 1;
    }

    fn close(&mut self, _container: Container) {
        self.depth = self.depth.saturating_sub(1);
        self.on_path.truncate(self.depth);
        if self.is_on_path() {
            self.element_ended();
        }
    }

    fn key(&mut self, raw: &[u8]) {
        if self.is_on_path()
            && let Some(Element::Member(key)) = self.on_path.last_mut()
        {
            raw.clone_into(key);
        }
    }

    fn scalar(&mut self, _kind: Scalar) {
        if !self.is_on_path() {
            return;
        }
        let is_last = self.on_path.len() == self.kpi.path.parts.len();
        if is_last && self.is_next_on_path() && !self.kpi.path.names_items {
            self.kpi.current_value += 1;
        }
        self.element_ended();
    }
}

/// Whether a raw key, perhaps with escapes, is this name.
fn is_name(raw: &[u8], name: &str) -> bool {
    if !raw.contains(&b'\\') {
        return raw == name.as_bytes();
    }
    let quoted = [b"\"", raw, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|key| key == name)
}

#[cfg(test)]
mod tests {
    use overlock_json::Scanner;
    use proptest::prelude::*;

    use super::*;

    fn count(path: &str, pieces: &[&str]) -> u64 {
        let kpi = MeasuredKpi::new("id", "", path, 1).expect("the path can be read");
        let mut measure = Measure::new(&kpi);
        let mut scanner = Scanner::new();
        for piece in pieces {
            scanner.feed_with(piece.as_bytes(), &mut measure);
        }
        measure.kpi().current_value
    }

    #[track_caller]
    fn check(path: &str, text: &str, expected: u64) {
        assert_eq!(count(path, &[text]), expected, "{path} in {text}");
    }

    const TEXT: &str = r#"{"title": "T", "sections": [
        {"items": [1, 2, 3], "more": {"items": [9]}},
        {"items": [4, {"items": [5, 6]}]},
        {"items": [7, 8"#;

    #[test]
    fn counts_complete_elements() {
        check("$.sections", TEXT, 2);
        check("$.sections[*]", TEXT, 2);
        check("$['sections'][*]", TEXT, 2);
        check("$.sections[*].items", TEXT, 6);
        check("$.sections[*].items[*]", TEXT, 6);
        check("$.sections[0].items", TEXT, 3);
        check("$.sections[1]", TEXT, 1);
        check("$.sections[0].more.items", TEXT, 1);
        check("$", TEXT, 1);
        check("$.title", TEXT, 1);
        check("$.absent", TEXT, 0);
        check("$.items", TEXT, 0);
    }

    #[test]
    fn counts_members_and_reads_escaped_names() {
        check("$", r#"{"a": 1, "b": [2, 3], "c": 4"#, 2);
        check("$", "[[1], [2], 3, ", 3);
        check("$.naïve", r#"{"na\u00efve": [1, 2]}"#, 2);
        check("$[*][*]", "[[1, 2], [3], 4]", 3);
    }

    #[test]
    fn knows_which_counts_can_still_rise() {
        for (path, expected) in [
            ("$", true),
            ("$.sections", true),
            ("$.sections[*].items", true),
            ("$.sections[*].more.items", true),
            ("$.sections[2].items", true),
            ("$.sections[7]", true),
            ("$.appendix[*]", true),
            ("$.sections[0].items", false),
            ("$.title", false),
            ("$[*].id", true),
            ("$[3]", false),
        ] {
            let kpi = MeasuredKpi::new("id", "", path, 1).expect("the path can be read");
            let mut measure = Measure::new(&kpi);
            Scanner::new().feed_with(TEXT.as_bytes(), &mut measure);
            assert_eq!(measure.can_rise(), expected, "{path}");
        }
    }

    #[test]
    fn reports_the_first_invalid_character_of_a_path() {
        for (path, at) in [
            ("items", 1),
            ("$items", 2),
            ("$.a[x]", 4),
            ("$.", 2),
            ("$.a[", 4),
            ("$..a", 2),
        ] {
            let error = MeasuredKpi::new("id", "", path, 1).expect_err("the path is invalid");
            assert_eq!(error.at, at, "{error}");
        }
    }

    proptest! {
        #[test]
        fn the_count_does_not_depend_on_the_pieces(at in 0..TEXT.len(), path in 0..4_usize) {
            let path = ["$.sections", "$.sections[*].items", "$.sections[0].items", "$"][path];
            prop_assert_eq!(count(path, &[&TEXT[..at], &TEXT[at..]]), count(path, &[TEXT]));
        }
    }
}
