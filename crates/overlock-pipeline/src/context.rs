//! The format of the context in a prompt, shared by the code that counts it and that sends it.

/// The first line of a node's block.
pub(crate) const MARKER: &str = "--- NODE ---";

/// Whether a line can separate older and newer blocks without being mistaken for part of one.
pub(crate) fn can_divide(divider: &str) -> bool {
    let divider = divider.trim();
    let is_header = |key: &str| divider.starts_with(key);
    let headers = ["id:", "path:", "language:", "compact:", "text:"];
    !divider.is_empty()
        && divider != MARKER
        && !headers.into_iter().any(is_header)
        && one_line(divider) == divider
}

/// Joins blocks with a blank line between them. Blocks are trimmed, and blank ones left out.
///
/// ```
/// assert_eq!(overlock_pipeline::joined(["\n a ", "", "b"]), "a\n\nb");
/// ```
pub fn joined<'a>(blocks: impl IntoIterator<Item = &'a str>) -> String {
    let blocks = blocks.into_iter().map(str::trim);
    let blocks: Vec<&str> = blocks.filter(|block| !block.is_empty()).collect();
    blocks.join("\n\n")
}

/// A node's block in the context.
pub(crate) struct Block<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) path: Option<&'a str>,
    pub(crate) language: &'a str,
    pub(crate) compact: bool,
    pub(crate) text: &'a str,
}

impl Block<'_> {
    /// Formats the block. Lines of the text that look like the start of a block or the divider are
    /// escaped.
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

/// The id of the node in a block, if it is a node's block.
pub(crate) fn shown_node(block: &str) -> Option<&str> {
    let mut lines = block.trim_start().lines();
    let is_marked = lines.next().is_some_and(|line| line.trim() == MARKER);
    let id = lines.next()?.strip_prefix("id:")?.trim();
    (is_marked && !id.is_empty()).then_some(id)
}

/// The older context without earlier dividers.
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
    // Includes every character that a model may read as a line end.
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

/// Replaces line ends, so that a name stays on its line.
fn one_line(text: &str) -> String {
    let ends_line =
        |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    text.split(ends_line).collect::<Vec<_>>().join(" ")
}
