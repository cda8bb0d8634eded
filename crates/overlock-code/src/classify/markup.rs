//! Recognises the XML of .NET, other markup, and JSON.

use super::{Classification, Sample};
use crate::language::{Language, Syntax};

/// Classifies a text if its first characters and elements decide it.
pub(super) fn classify(sample: &Sample<'_>) -> Option<Classification> {
    let text = sample.parts.first()?.trim_start();
    let first = text.chars().next()?;
    match first {
        '<' => markup(text),
        '{' | '[' if is_json(text) => Some(known(Language::Unknown, None, "JSON")),
        _ => None,
    }
}

fn known(language: Language, syntax: Option<Syntax>, reason: &'static str) -> Classification {
    Classification {
        language,
        syntax,
        confidence: 0.97,
        reasons: vec![reason],
    }
}

fn is_json(text: &str) -> bool {
    let inside = text[1..].trim_start();
    let next = inside.chars().next();
    match (text.as_bytes()[0], next) {
        (b'{', Some('"')) => {
            let after = inside[1..]
                .find('"')
                .map_or("", |quote| &inside[quote + 2..]);
            after.trim_start().starts_with(':')
        }
        (b'{', Some('}')) | (b'[', Some('{' | '"' | '[' | ']' | '-' | '0'..='9')) => true,
        _ => false,
    }
}

/// Root elements of .NET files, each with text that only .NET files contain.
const PROJECT: [(&str, &[&str]); 4] = [
    (
        "<Project",
        &[
            "Sdk=",
            "<PropertyGroup",
            "<ItemGroup",
            "<Import ",
            "<Target ",
            "ToolsVersion=",
            "<UsingTask",
            "msbuild",
        ],
    ),
    (
        "<configuration",
        &[
            "<appSettings",
            "<connectionStrings",
            "<system.",
            "<startup",
            "<supportedRuntime",
            "<assemblyBinding",
            "<packageSources",
            "<configSections",
            "<runtime",
            "<entityFramework",
            "xdt:",
            "<log4net",
            "<location ",
            "<applicationSettings",
            "<userSettings",
            "<solution>",
            "<packageRestore",
            "<disabledPackageSources",
            "<uri>",
            "<dotnet",
            "<config>",
        ],
    ),
    (
        "<packages",
        &["<package id=", "</packages>", "<packages/>", "<packages />"],
    ),
    ("<package", &["nuspec.xsd"]),
];

fn markup(text: &str) -> Option<Classification> {
    if text.starts_with("<%@") || text.starts_with("<%--") {
        let lower = text.to_ascii_lowercase();
        let dotnet = [
            "language=\"c#\"",
            "language=\"vb\"",
            "inherits=",
            "codebehind=",
            "runat=\"server\"",
        ];
        let is_dotnet =
            dotnet.iter().any(|sign| lower.contains(sign)) && !lower.contains("import=\"java");
        return Some(if is_dotnet {
            known(Language::Dotnet, Some(Syntax::Razor), "an ASP.NET page")
        } else {
            known(Language::Unknown, None, "markup")
        });
    }
    if text.starts_with("<?php") {
        return Some(known(Language::Unknown, None, "PHP"));
    }
    let root = root(text);
    for (name, signs) in PROJECT {
        let is_root = root
            .strip_prefix(name)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()));
        if is_root && signs.iter().any(|sign| text.contains(sign)) {
            return Some(known(
                Language::Dotnet,
                Some(Syntax::Project),
                "a .NET project or configuration",
            ));
        }
    }
    // Attributes of Visual Basic are in angle brackets, and a query plan may precede SQL.
    if root.starts_with("<Assembly:") || root.starts_with("<assembly:") {
        return None;
    }
    if text.starts_with("<?xml") || root.starts_with("<!DOCTYPE html") && !has_razor(text) {
        return Some(known(Language::Unknown, None, "markup"));
    }
    let is_element = root[1.min(root.len())..]
        .starts_with(|next: char| next.is_alphabetic() || matches!(next, '!' | '?' | '/'));
    (is_element && !has_razor(text) && !has_visual_basic(text))
        .then(|| known(Language::Unknown, None, "markup"))
}

/// The text from its first element on, without the XML declaration and comments.
fn root(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let skipped = if rest.starts_with("<!--") {
            rest.find("-->").map(|end| end + 3)
        } else if rest.starts_with("<?") {
            rest.find("?>").map(|end| end + 2)
        } else {
            None
        };
        match skipped {
            Some(end) => rest = &rest[end..],
            None => return rest,
        }
    }
}

fn has_razor(text: &str) -> bool {
    text.contains('@') || text.contains("asp-")
}

fn has_visual_basic(text: &str) -> bool {
    text.contains("End Class") || text.contains("End Module") || text.contains("End Sub")
}
