//! Repomix with `--compress`.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Repository, SQL};
use crate::outside::{node_package, peers_folder};

pub(super) const VERSION: &str = "1.14.0";

/// Its output for each file of a repository.
pub(super) fn compressed(
    repository: &Repository,
    language: &str,
) -> Result<HashMap<PathBuf, String>> {
    let folder = peers_folder()?;
    let prefix = node_package(&folder, "repomix", VERSION)?;
    let output = folder.join("repomix.json");
    let kinds: &[&str] = if language == "C#" { &["cs"] } else { SQL };
    let patterns: Vec<String> = kinds.iter().map(|kind| format!("**/*.{kind}")).collect();
    let status = Command::new("node")
        .arg(prefix.join("node_modules/repomix/bin/repomix.cjs"))
        .arg(&repository.root)
        .args([
            "--compress",
            "--remove-comments",
            "--quiet",
            "--style",
            "json",
        ])
        .args([
            "--no-security-check",
            "--no-gitignore",
            "--no-default-patterns",
        ])
        .arg("--include")
        .arg(patterns.join(","))
        .arg("--output")
        .arg(&output)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("`node` is missing")?;
    if !status.success() {
        bail!("failed");
    }
    let report: Value = serde_json::from_slice(&fs::read(&output)?)?;
    fs::remove_file(&output)?;
    let files = report["files"].as_object().context("no files")?;
    let text = |text: &Value| text.as_str().unwrap_or_default().to_owned();
    Ok(files
        .iter()
        .map(|(path, made)| (repository.root.join(path), text(made)))
        .collect())
}
