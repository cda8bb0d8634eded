//! Installs schemathesis, and tests the gateway against its description.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::shell::target;
use crate::steps::Depth;
use crate::{packages, programs};

/// The environment variable with the folder with the Python environment.
const VARIABLE: &str = "OVERLOCK_SCHEMATHESIS";

/// The test that needs it.
pub(crate) const TESTS: &[&str] = &["described::"];

/// The version of hypothesis is fixed too, because it generates the requests from the seed.
const PACKAGES: &[&str] = &[
    "schemathesis==4.32.5",
    "hypothesis==6.170.15",
    "jsonschema_rs==0.60.3",
];

/// Installs schemathesis if necessary, and returns its folder.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = target("schemathesis");
    fs::create_dir_all(&folder)?;
    let needs = "schemathesis comes from PyPI, so `python3` with `venv` must be installed";
    packages::python(&folder, PACKAGES, needs)?;
    Ok(folder)
}

/// Generates requests from the description, and checks every response against it.
pub(crate) fn check(_: Depth) -> Result<String> {
    let folder = install()?;
    programs::run_ignored(TESTS, &[(VARIABLE, folder.as_os_str())], &[])?;
    Ok("with schemathesis, all checks, a fixed seed".to_owned())
}
