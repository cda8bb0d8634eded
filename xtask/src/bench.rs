//! Builds and runs the benchmarks, which are a separate workspace.

use anyhow::Result;

use crate::postgres::{self, Fsync, Server};
use crate::shell::{self, cargo};
use crate::{llama, python};

/// Passes all arguments to the benchmark. The benchmarks in Python and with a real model run only if
/// they are named.
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
    let server = measures_store(arguments).then(|| Server::start(Fsync::On));
    let server = server.transpose()?;
    if let Some(server) = &server {
        command.env(postgres::VARIABLE, &server.address);
    }
    shell::run(&mut command)
}

/// Whether the table `store` is selected.
fn measures_store(arguments: &[String]) -> bool {
    // The value of an option is not the name of a table.
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
