//! Has a line vote for Visual Basic.

use super::super::votes::{For, Votes};
use super::{is_name, starts_upper};

/// Whether a line begins with a word that lines of Visual Basic begin with.
pub(in crate::classify) fn opens_line(line: &str) -> bool {
    let word = line
        .split(|next: char| !next.is_alphanumeric())
        .next()
        .unwrap_or_default();
    matches!(
        word,
        "Imports"
            | "Option"
            | "Namespace"
            | "Module"
            | "Class"
            | "Public"
            | "Private"
            | "Friend"
            | "Protected"
            | "Partial"
            | "End"
            | "Dim"
            | "If"
            | "Sub"
            | "Function"
            | "Inherits"
            | "Implements"
            | "Return"
            | "For"
            | "Try"
            | "Property"
    ) || line.starts_with('\'')
        || line.starts_with("<Assembly:")
}

/// Votes for Visual Basic as far as the line looks like it.
pub(super) fn vote(votes: &mut Votes, tokens: &[&str]) {
    let mut add = |weight, reason| votes.add(For::VisualBasic, weight, reason);
    let ends = tokens.last().copied().unwrap_or_default();
    if matches!(ends, ";" | "{" | "}") {
        return;
    }
    match tokens {
        ["Imports", name, ..] if is_name(name) => add(6, "imports"),
        ["Option", "Strict" | "Explicit" | "Infer" | "Compare", ..] => add(8, "options"),
        [
            "End",
            "Sub" | "Function" | "Class" | "Module" | "Namespace" | "Property" | "Get" | "Set"
            | "Enum" | "Structure" | "Interface" | "Using" | "SyncLock" | "Operator" | "Event",
        ] => {
            add(6, "ends of blocks");
        }
        ["End", "If" | "Select" | "Try" | "While" | "With"] => add(3, "ends of blocks"),
        ["Dim" | "ReDim", name, ..] if is_name(name) => add(5, "Dim"),
        ["Namespace" | "Module" | "Inherits" | "Implements", name, ..] if starts_upper(name) => {
            add(4, "declarations");
        }
        ["<", "Assembly" | "assembly", ":", ..] => add(8, "attributes of an assembly"),
        ["If" | "ElseIf", .., "Then"] => add(3, "conditions"),
        ["For", "Each", ..] => add(3, "loops"),
        [
            "Public" | "Private" | "Protected" | "Friend" | "Partial" | "Shared" | "Overrides"
            | "Overridable" | "Async" | "Namespace",
            ..,
        ] => {
            let declares = tokens.iter().any(|token| {
                matches!(
                    *token,
                    "Sub"
                        | "Function"
                        | "Class"
                        | "Module"
                        | "Property"
                        | "As"
                        | "Enum"
                        | "Structure"
                        | "Interface"
                )
            });
            if declares {
                add(5, "declarations");
            }
        }
        [
            "Sub" | "Function" | "Class" | "Structure" | "Enum" | "Interface",
            name,
            ..,
        ] if starts_upper(name) => add(3, "declarations"),
        [
            "Return" | "Throw" | "Try" | "Catch" | "Finally" | "Else" | "Next" | "Loop" | "Exit"
            | "RaiseEvent",
            ..,
        ] if tokens.len() < 12 => {
            add(1, "statements");
        }
        _ => {}
    }
    for pair in tokens.windows(2) {
        match pair {
            ["As", kind] if starts_upper(kind) => add(2, "types"),
            ["ByVal" | "ByRef", _] => add(3, "parameters"),
            ["AndAlso" | "OrElse" | "IsNot" | "AddressOf", _] => add(3, "operators"),
            ["Me" | "MyBase", "."] => add(2, "Me"),
            _ => {}
        }
    }
}
