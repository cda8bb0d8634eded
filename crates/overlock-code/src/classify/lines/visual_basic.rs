//! Lets a line vote for Visual Basic.

use super::super::votes::{For, Votes};
use super::pattern::{Pattern, first_match, pattern};
use super::{is_word, starts_upper};

/// Whether a line begins like a statement of Visual Basic.
pub(in crate::classify) fn opens_line(line: &str) -> bool {
    const WORDS: &str = "Imports Option Namespace Module Class Public Private Friend Protected \
        Partial End Dim If Sub Function Inherits Implements Return For Try Property";
    let word = line
        .split(|next: char| !next.is_alphanumeric())
        .next()
        .unwrap_or_default();
    WORDS.split(' ').any(|first| first == word)
        || line.starts_with('\'')
        || line.starts_with("<Assembly:")
}

/// What a line counts by its first tokens.
const BEGINNINGS: &[Pattern] = &[
    pattern("Imports NAME ..", 6, "imports"),
    pattern("Option Strict|Explicit|Infer|Compare ..", 8, "options"),
    pattern(
        "End Sub|Function|Class|Module|Namespace|Property|Get|Set|Enum|Structure|Interface|Using|\
         SyncLock|Operator|Event",
        6,
        "ends of blocks",
    ),
    pattern("End If|Select|Try|While|With", 3, "ends of blocks"),
    pattern("Dim|ReDim NAME ..", 5, "Dim"),
    pattern(
        "Namespace|Module|Inherits|Implements UPPER ..",
        4,
        "declarations",
    ),
    pattern("< Assembly|assembly : ..", 8, "attributes of an assembly"),
    pattern("If|ElseIf .. Then", 3, "conditions"),
    pattern("For Each ..", 3, "loops"),
    pattern(
        "Public|Private|Protected|Friend|Partial|Shared|Overrides|Overridable|Async|Namespace ..",
        5,
        "declarations",
    )
    .contains("Sub|Function|Class|Module|Property|As|Enum|Structure|Interface"),
    pattern(
        "Sub|Function|Class|Structure|Enum|Interface UPPER ..",
        3,
        "declarations",
    ),
    pattern(
        "Return|Throw|Try|Catch|Finally|Else|Next|Loop|Exit|RaiseEvent ..",
        1,
        "statements",
    )
    .max_tokens(11),
];

/// Votes for Visual Basic as far as the line looks like it.
pub(super) fn vote(votes: &mut Votes, tokens: &[&str]) {
    let mut add = |weight, reason| votes.add(For::VisualBasic, weight, reason);
    let ends = tokens.last().copied().unwrap_or_default();
    if matches!(ends, ";" | "{" | "}") {
        return;
    }
    if let Some((weight, reason)) = first_match(BEGINNINGS, tokens, is_word) {
        add(weight, reason);
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
