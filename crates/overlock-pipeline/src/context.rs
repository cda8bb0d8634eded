//! The context as it goes into a prompt.
//!
//! Whoever counts it and whoever sends it must write it alike, so there is one place for it.

/// The first line of a block that shows a node.
pub(crate) const MARKER: &str = "--- NODE ---";

/// Whether a line can stand between older and newer blocks without being taken for a line of one.
pub(crate) fn can_divide(divider: &str) -> bool {
    let divider = divider.trim();
    let is_header = |key: &str| divider.starts_with(key);
    let headers = ["id:", "path:", "language:", "compact:", "text:"];
    !divider.is_empty()
        && divider != MARKER
        && !headers.into_iter().any(is_header)
        && one_line(divider) == divider
}

/// The blocks as one text: without white space around them, with a blank line between them; blank
/// blocks are left out.
///
/// ```
/// assert_eq!(overlock_pipeline::joined(["\n a ", "", "b"]), "a\n\nb");
/// ```
pub fn joined<'a>(blocks: impl IntoIterator<Item = &'a str>) -> String {
    let blocks = blocks.into_iter().map(str::trim);
    let blocks: Vec<&str> = blocks.filter(|block| !block.is_empty()).collect();
    blocks.join("\n\n")
}

/// A node as it is shown to the model.
pub(crate) struct Block<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) path: Option<&'a str>,
    pub(crate) language: &'a str,
    pub(crate) compact: bool,
    pub(crate) text: &'a str,
}

impl Block<'_> {
    /// The block as it stands in the context. No line of the text can be taken for the beginning
    /// of another block, or for the divider.
    pub(crate) fn format(&self, divider: Option<&str>) -> String {
        let Self {
            id,
            path,
            language,
            compact,
            text,
        } = self;
        let (id, path) = (
            one_line(id.unwrap_or_default()),
            one_line(path.unwrap_or_default()),
        );
        let text = escaped(text, divider);
        format!(
            "{MARKER}\nid: {id}\npath: {path}\nlanguage: {language}\ncompact: {compact}\ntext:\n{text}"
        )
    }
}

/// The node that a block shows, if it shows one.
pub(crate) fn shown_node(block: &str) -> Option<&str> {
    let mut lines = block.trim_start().lines();
    let is_marked = lines.next().is_some_and(|line| line.trim() == MARKER);
    let id = lines.next()?.strip_prefix("id:")?.trim();
    (is_marked && !id.is_empty()).then_some(id)
}

/// The older context without the lines that divided it from what was new then.
pub(crate) fn without_divider(blocks: &[String], divider: Option<&str>) -> Vec<String> {
    let Some(divider) = divider.map(str::trim) else {
        return blocks.to_vec();
    };
    let has_divider = |block: &String| block.lines().any(|line| line.trim() == divider);
    let blocks = blocks.iter().filter_map(|block| {
        if !has_divider(block) {
            return Some(block.clone());
        }
        let lines = block.lines().filter(|line| line.trim() != divider);
        let rest = lines.collect::<Vec<_>>().join("\n");
        (!rest.trim().is_empty()).then_some(rest)
    });
    blocks.collect()
}

fn escaped(text: &str, divider: Option<&str>) -> String {
    let divider = divider.map(str::trim);
    let forges = |line: &str| {
        let line = line.trim();
        line == MARKER || divider == Some(line)
    };
    // Everything that a reader may take for the end of a line is one here.
    let mut lines = text.split_inclusive([
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ]);
    lines
        .by_ref()
        .fold(String::with_capacity(text.len()), |mut escaped, line| {
            if forges(line) {
                escaped.push('\\');
            }
            escaped + line
        })
}

/// A name cannot bring lines of its own.
fn one_line(text: &str) -> String {
    let ends_line =
        |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    text.split(ends_line).collect::<Vec<_>>().join(" ")
}
