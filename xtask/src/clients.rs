//! Installs real client libraries and tests the gateway with them.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::shell::target;
use crate::steps::Depth;
use crate::{packages, programs};

/// The environment variable with the folder with the clients for Python and Node.
const VARIABLE: &str = "OVERLOCK_CLIENTS";

/// The tests that need them.
pub(crate) const TESTS: &[&str] = &["clients::"];

/// The newest `openai` that Instructor works with.
const PYTHON_PACKAGES: &[&str] = &[
    "anthropic==2.10.0",
    "openai==3.3.0",
    "langchain-openai==1.7.3",
    "langchain-core==1.7.2",
    "instructor==1.17.0",
    "pydantic==2.14.3",
];

/// The last versions that run on Node 20; newer ones need 22.
const NODE_PACKAGES: &[&str] = &[
    "@anthropic-ai/claude-code@2.1.197",
    "openai@6.49.0",
    "ai@6.0.326",
    "@ai-sdk/openai@3.0.139",
    "@ai-sdk/openai-compatible@2.0.87",
    "zod@4.6.7",
];

/// Codex CLI, in its own folder because it is large.
const CODEX: &[&str] = &["@openai/codex@0.169.0"];

/// Installs the clients if necessary, and returns their folder.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = target("clients");
    fs::create_dir_all(&folder)?;
    let needs = "real clients are run against the gateway, so `python3` with `venv`, `node` and \
                 `npm` must be installed";
    packages::python(&folder, PYTHON_PACKAGES, needs)?;
    packages::node(&folder.join("node"), NODE_PACKAGES, needs)?;
    packages::node(&folder.join("codex"), CODEX, needs)?;
    Ok(folder)
}

/// Has every client request a document whose answers are all cut, and shows what each got.
pub(crate) fn check(_: Depth) -> Result<String> {
    let folder = install()?;
    programs::run_ignored(
        TESTS,
        &[(VARIABLE, folder.as_os_str())],
        &["--test-threads=1"],
    )?;
    Ok("for Python, Node and Codex, with and without the gateway".to_owned())
}
