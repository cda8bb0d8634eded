//! Lets a line vote for Razor: C# in markup, after an `@`.

use super::super::votes::{For, Votes};

/// Votes for Razor as far as the line looks like it.
pub(super) fn vote(votes: &mut Votes, line: &str) {
    for (at, _) in line.match_indices('@').take(8) {
        if at > 0 && line.as_bytes()[at - 1].is_ascii_alphanumeric() {
            continue;
        }
        let rest = &line[at + 1..];
        let word = rest
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        let after = rest[word.len()..].trim_start().bytes().next();
        let is_certain = match word {
            "" => at == 0 && rest.starts_with('*'),
            "T" => after == Some(b'('),
            "page" => after == Some(b'"') || after.is_none(),
            "code" | "functions" => at == 0 && (after == Some(b'{') || after.is_none()),
            "addTagHelper" | "RenderBody" | "RenderSection" => true,
            "await" => after.is_some_and(|byte| byte.is_ascii_uppercase()),
            "model" | "using" | "inherits" | "layout" | "namespace" | "inject" | "section"
            | "implements" => {
                at == 0
                    && after.is_some_and(|byte| byte.is_ascii_alphabetic())
                    && !line.ends_with(';')
            }
            "Html" | "Model" | "ViewBag" | "ViewData" | "Url" => {
                after == Some(b'.') || after == Some(b'[')
            }
            _ => false,
        };
        if is_certain {
            votes.add(For::Razor, 6, "directives of Razor");
        } else if matches!(word, "if" | "foreach" | "for" | "switch") && after == Some(b'(')
            || at == 0 && rest.starts_with('{')
        {
            votes.add(For::Razor, 2, "code of Razor");
        } else if line.starts_with('<') && word.starts_with(|c: char| c.is_alphabetic()) {
            votes.add(For::Razor, 1, "values in markup");
        }
    }
    if line.contains(" asp-")
        || line.contains("@bind")
        || line.contains("@onclick")
        || line.contains("=\"@")
        || line.contains("@rendermode")
    {
        votes.add(For::Razor, 3, "tag helpers");
    }
}
