//! Checks that the paths and commands in the documents exist.
//!
//! A path is anything in backticks or in a link that looks like one. The documents write other
//! things with a slash (a media type, a JSON Pointer) with a leading slash or a space.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::shell::{output, program, root};
use crate::steps::Depth;

/// The first command in the README.
pub(crate) const DEMO: &str = "cargo run --release -- demo";

const TEST: &str = "cargo xtask test";

const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/benchmarks.md",
    "docs/commands.md",
    "docs/design.md",
    "docs/gateway.md",
];

/// The files in which `unsafe` is allowed; ARCHITECTURE.md names them.
const UNSAFE: &[&str] = &[
    "crates/overlock-json/src/vector.rs",
    "crates/overlock-python/src/grow.rs",
    "crates/overlock-python/src/utf8.rs",
];

/// How long a document may be, in lines and in bytes.
const LIMITS: &[(&str, usize, usize)] = &[
    ("README.md", 150, 12 << 10),
    ("ARCHITECTURE.md", 150, 12 << 10),
];

/// Files of users that are not in this repository.
const ELSEWHERE: &[&str] = &["overlock.toml"];

/// Fails with all paths that do not exist.
pub(crate) fn check(_: Depth) -> Result<String> {
    let mut missing = Vec::new();
    let mut checked = 0;
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document))
            .with_context(|| format!("could not read `{document}`"))?;
        let folder = root().join(document);
        let folder = folder.parent().context("a document is in a folder")?;
        for path in paths(&text) {
            checked += 1;
            let exists = root().join(path).exists() || folder.join(path).exists();
            if !ELSEWHERE.contains(&path) && !exists {
                missing.push(format!("`{path}` in {document} does not exist"));
            }
        }
        if let Some((_, lines, bytes)) = LIMITS.iter().find(|(name, ..)| name == document)
            && (text.lines().count() > *lines || text.len() > *bytes)
        {
            missing.push(format!(
                "{document} has more than {lines} lines or {bytes} bytes"
            ));
        }
        if *document == "README.md" {
            for command in [DEMO, TEST] {
                if !text.lines().any(|line| line.trim().starts_with(command)) {
                    missing.push(format!(
                        "README.md has no line that starts with `{command}`"
                    ));
                }
            }
        }
    }
    missing.extend(unexpected_unsafe()?);
    if !missing.is_empty() {
        bail!("{}", missing.join("\n"));
    }
    Ok(format!("{checked} paths"))
}

/// Files with an `unsafe` block that are not in [`UNSAFE`].
fn unexpected_unsafe() -> Result<Vec<String>> {
    let listed = output(program("git").args(["ls-files", "crates/*.rs"]))?;
    let mut found = Vec::new();
    for path in String::from_utf8_lossy(&listed.stdout).lines() {
        let text = fs::read_to_string(root().join(path))?;
        let is_unsafe =
            |line: &str| line.trim_start().starts_with("unsafe ") || line.contains(" unsafe {");
        if text.lines().any(is_unsafe) && !UNSAFE.contains(&path) {
            found.push(format!("`{path}` has an `unsafe` block"));
        }
    }
    Ok(found)
}

/// All paths in a Markdown text, outside of code blocks.
fn paths(text: &str) -> Vec<&str> {
    let mut paths = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            paths.extend(
                line.split('`')
                    .skip(1)
                    .step_by(2)
                    .filter(|span| is_path(span)),
            );
            let links = line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split_once(')'));
            paths.extend(links.map(|(link, _)| link).filter(|link| is_path(link)));
        }
    }
    paths
}

fn is_path(span: &str) -> bool {
    let plain = |character: char| character.is_ascii_alphanumeric() || "._-/".contains(character);
    let named_file = [".md", ".rs", ".toml", ".lock"]
        .iter()
        .any(|ending| span.ends_with(ending));
    span.chars().all(plain) && !span.starts_with('/') && (span.contains('/') || named_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_paths(text: &str, expected: &[&str]) {
        assert_eq!(paths(text), expected, "reading {text:?}");
    }

    #[test]
    fn finds_paths_in_backticks_and_links() {
        check_paths(
            "See `crates/overlock-json`, [the map](ARCHITECTURE.md) and `deny.toml`.",
            &["crates/overlock-json", "deny.toml", "ARCHITECTURE.md"],
        );
    }

    #[test]
    fn ignores_commands_pointers_and_addresses() {
        check_paths(
            "`cargo xtask test`, `/a/0`, `close`, [a page](https://example.com/a)",
            &[],
        );
    }

    #[test]
    fn ignores_code_blocks() {
        check_paths("```\n`not/here`\n```\n`but/here`", &["but/here"]);
    }
}
