//! Builds the benchmark, which is a workspace of its own, and runs it.

use anyhow::Result;

use crate::shell::{self, cargo};

/// Passes all arguments on: the benchmark says itself what it understands.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut command = cargo([
        "run",
        "--quiet",
        "--release",
        "--manifest-path",
        "bench/Cargo.toml",
    ]);
    shell::run(command.arg("--").args(arguments))
}
