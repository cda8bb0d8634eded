//! The C# declarations that an outline keeps.

use std::collections::BTreeMap;

use tree_sitter::{Node, Tree};

use super::{File, Kept, parse, walk};

/// Records which declarations of a file are in its outline, if the file parses.
pub(super) fn compare(file: &File, outline: &str, kept: &mut Kept, differences: bool) {
    let tree = parse(&file.text);
    if tree.root_node().has_error() {
        return;
    }
    let outline = without_marks(outline);
    let mut left: BTreeMap<Declaration, usize> = BTreeMap::new();
    for declaration in declarations(&parse(&outline), &outline) {
        *left.entry(declaration).or_default() += 1;
    }
    for declaration in declarations(&tree, &file.text) {
        let left = left.get_mut(&declaration).filter(|left| **left > 0);
        kept.note(declaration.0, left.is_some());
        match left {
            Some(left) => *left -= 1,
            None if differences => println!("lost: {declaration:?} of {}", file.path.display()),
            None => {}
        }
    }
}

/// The outline as valid C#: marks are replaced by empty bodies.
fn without_marks(outline: &str) -> String {
    let mut out = String::new();
    let mut rest = outline;
    while let Some((before, after)) = rest.split_once("… ") {
        out.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let unit = &after[digits..];
        match unit
            .strip_prefix(" lines")
            .or_else(|| unit.strip_prefix(" line"))
        {
            Some(after) if digits > 0 => {
                if !out.ends_with('{') {
                    out.push('x');
                }
                rest = after;
            }
            _ => rest = after,
        }
    }
    out + rest
}

/// Records which declarations of a file are anywhere in a text, ignoring white space.
pub(super) fn look_for(file: &File, made: Option<&str>, kept: &mut Kept) {
    let tree = parse(&file.text);
    let Some(made) = made.filter(|_| !tree.root_node().has_error()) else {
        return;
    };
    let solid = |text: &str| text.split_whitespace().collect::<String>();
    let made = solid(made);
    for (kind, text) in declarations(&tree, &file.text) {
        kept.note(kind, made.contains(&solid(&text)));
    }
}

/// A kind of declaration, and the declaration.
type Declaration = (&'static str, String);

fn declarations(tree: &Tree, text: &str) -> Vec<Declaration> {
    let mut found = Vec::new();
    walk(tree, |node| {
        let field = |name| {
            node.child_by_field_name(name)
                .map_or("", |field| &text[field.byte_range()])
        };
        let name = || field("name").to_owned();
        let typed = || {
            let types = ["returns", "type"].map(|name| {
                node.child_by_field_name(name)
                    .map_or_else(String::new, |field| flat(field, text))
            });
            types.concat() + field("name")
        };
        match node.kind() {
            "class_declaration"
            | "struct_declaration"
            | "interface_declaration"
            | "record_declaration"
            | "enum_declaration"
            | "delegate_declaration" => found.push(("types", name())),
            "method_declaration"
            | "constructor_declaration"
            | "destructor_declaration"
            | "operator_declaration"
            | "conversion_operator_declaration" => found.push(("methods", typed())),
            "property_declaration" | "indexer_declaration" | "event_declaration" => {
                found.push(("properties", typed()));
            }
            "enum_member_declaration" => found.push(("enum members", name())),
            "variable_declarator" => found.push(("fields", name())),
            "parameter_list" | "bracketed_parameter_list" => {
                found.push(("parameter lists", flat(node, text)));
            }
            "type_parameter_list" | "type_parameter_constraints_clause" | "base_list" => {
                found.push(("type parameters and bases", flat(node, text)));
            }
            "attribute_list" => found.push(("attributes", flat(node, text))),
            _ => {}
        }
        let is_value = node.parent().is_some_and(|parent| {
            parent.kind() == "property_declaration"
                && parent.child_by_field_name("value") == Some(node)
        });
        let inside = matches!(
            node.kind(),
            "block"
                | "arrow_expression_clause"
                | "variable_declarator"
                | "parameter_list"
                | "bracketed_parameter_list"
                | "attribute_list"
                | "global_statement"
                | "comment"
                | "base_list"
                | "constructor_initializer"
        );
        !inside && !is_value
    });
    found
}

/// The tokens of a node on one line.
fn flat(node: Node<'_>, text: &str) -> String {
    let mut line = String::new();
    let mut nodes = vec![node];
    while let Some(node) = nodes.pop() {
        if node.kind() == "comment" {
            continue;
        }
        if node.child_count() == 0 {
            line.push_str(&text[node.byte_range()]);
            line.push(' ');
        }
        let mut cursor = node.walk();
        let children: Vec<_> = node.children(&mut cursor).collect();
        nodes.extend(children.into_iter().rev());
    }
    line
}
