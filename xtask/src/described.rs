//! Installs schemathesis, and holds the gateway against its own description.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::shell::target;
use crate::steps::Depth;
use crate::{packages, programs};

/// Where the test finds it: a folder with an environment of Python.
const VARIABLE: &str = "OVERLOCK_SCHEMATHESIS";

/// The test that needs it.
pub(crate) const TESTS: &[&str] = &["described::"];

/// What draws the requests is fixed too, or the same seed would draw others.
const PACKAGES: &[&str] = &[
    "schemathesis==4.32.5",
    "hypothesis==6.170.15",
    "jsonschema_rs==0.60.3",
];

/// The folder with schemathesis, which is installed first if it is not there.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = target("schemathesis");
    fs::create_dir_all(&folder)?;
    let needs = "the gateway is held against its description by schemathesis from PyPI, so \
                 `python3` with `venv` must be installed";
    packages::python(&folder, PACKAGES, needs)?;
    Ok(folder)
}

/// Has requests drawn from the description, and every answer held against it.
pub(crate) fn check(_: Depth) -> Result<String> {
    let folder = install()?;
    programs::run_ignored(TESTS, &[(VARIABLE, folder.as_os_str())], &[])?;
    Ok("with schemathesis, all checks, a fixed seed".to_owned())
}
