//! Installs the clients that programs ask models with, and has the gateway answer them.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::shell::target;
use crate::steps::Depth;
use crate::{packages, programs};

/// Where the tests find the clients: a folder with those of Python and those of Node.
const VARIABLE: &str = "OVERLOCK_CLIENTS";

/// The tests that need them.
pub(crate) const TESTS: &[&str] = &["clients::"];

/// Instructor and the newest `openai` cannot agree on a parser: this is the last that it takes.
const PYTHON_PACKAGES: &[&str] = &[
    "openai==3.3.0",
    "langchain-openai==1.7.3",
    "langchain-core==1.7.2",
    "instructor==1.17.0",
    "pydantic==2.14.3",
];

/// The last that run on Node 20; newer ones want 22.
const NODE_PACKAGES: &[&str] = &[
    "openai@6.49.0",
    "ai@6.0.326",
    "@ai-sdk/openai@3.0.139",
    "@ai-sdk/openai-compatible@2.0.87",
    "zod@4.6.7",
];

/// The folder with the clients, which are installed first if they are not there.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = target("clients");
    fs::create_dir_all(&folder)?;
    let needs = "real clients are run against the gateway, so `python3` with `venv`, `node` and \
                 `npm` must be installed";
    packages::python(&folder, PYTHON_PACKAGES, needs)?;
    packages::node(&folder.join("node"), NODE_PACKAGES, needs)?;
    Ok(folder)
}

/// Has every client ask for a document that is cut at every answer, and shows what each got.
pub(crate) fn check(_: Depth) -> Result<String> {
    let folder = install()?;
    programs::run_ignored(
        TESTS,
        &[(VARIABLE, folder.as_os_str())],
        &["--test-threads=1"],
    )?;
    Ok("of Python and of Node, without the gateway and through it".to_owned())
}
