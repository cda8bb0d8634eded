//! Decodes the string literals of C#.

use tree_sitter::Node;

use super::super::strings::HOLE;

/// The content of a string, precise enough to read SQL in it.
pub(super) fn content(text: &str, node: Node<'_>) -> String {
    let literal = text.get(node.byte_range()).unwrap_or_default();
    match node.kind() {
        "string_literal" => unescaped(literal.trim_matches('"')),
        "verbatim_string_literal" => {
            let inside = literal.trim_start_matches('@');
            let inside = inside.strip_prefix('"').unwrap_or(inside);
            inside
                .strip_suffix('"')
                .unwrap_or(inside)
                .replace("\"\"", "\"")
        }
        "raw_string_literal" => literal.trim_matches('"').to_owned(),
        _ => {
            let mut content = String::new();
            let mut cursor = node.walk();
            let verbatim = literal[..literal.find('"').unwrap_or(0)].contains('@');
            let raw = literal.trim_start_matches(['$', '@']).starts_with("\"\"\"");
            for part in node.named_children(&mut cursor) {
                let piece = text.get(part.byte_range()).unwrap_or_default();
                match part.kind() {
                    "interpolation" => content.push_str(HOLE),
                    "string_content" if verbatim => content.push_str(&piece.replace("\"\"", "\"")),
                    "string_content" if raw => content.push_str(piece),
                    "string_content" => content.push_str(&unescaped(piece)),
                    _ => {}
                }
            }
            content
        }
    }
}

fn unescaped(piece: &str) -> String {
    let mut out = String::with_capacity(piece.len());
    let mut characters = piece.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n' | 'r') => out.push('\n'),
                Some('t') => out.push(' '),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}
