//! Builds the benchmark, which is a workspace of its own, and runs it.

use anyhow::Result;

use crate::postgres::{self, Disk, Server};
use crate::shell::{self, cargo};
use crate::{llama, python};

/// Passes all arguments on: the benchmark says itself what it understands. What is measured in
/// Python or with a real model is only run if it is asked for.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((first, rest)) if first == "python" => return python::bench(rest),
        Some((first, rest)) if first == "models" => return llama::bench(rest),
        _ => {}
    }
    let mut command = cargo([
        "run",
        "--quiet",
        "--profile",
        "dist",
        "--manifest-path",
        "bench/Cargo.toml",
    ]);
    command.arg("--").args(arguments);
    // It is there for as long as it is measured.
    let server = has_store(arguments).then(|| Server::start(Disk::Kept));
    let server = server.transpose()?;
    if let Some(server) = &server {
        command.env(postgres::VARIABLE, &server.address);
    }
    shell::run(&mut command)
}

/// Whether the store is to be measured.
fn has_store(arguments: &[String]) -> bool {
    // What follows these is no table.
    let mut before = None;
    let mut tables = Vec::new();
    for word in arguments {
        if !word.starts_with('-') && !matches!(before, Some("--data" | "--corpus")) {
            tables.push(word.as_str());
        }
        before = Some(word.as_str());
    }
    tables.is_empty() || tables.contains(&"store")
}
