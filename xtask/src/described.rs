//! Installs schemathesis, and holds the gateway against its own description.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::shell::{cargo, target};
use crate::{count, packages};

/// Where the test finds it: a folder with an environment of Python.
const VARIABLE: &str = "OVERLOCK_SCHEMATHESIS";

/// The module of the test that needs it.
pub(crate) const TESTS: &str = "described::";

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
pub(crate) fn check() -> Result<String> {
    // All of the workspace is built as for the other tests, so that nothing is built twice.
    let mut command = cargo(["test", "--quiet", "--workspace", "--locked", "--test", "it"]);
    command.args(["--", "--ignored", "--nocapture", TESTS]);
    command.env(VARIABLE, install()?);
    let (count, result) = count::run(&mut command)?;
    result?;
    // A test that is not found is not run either.
    if count.passed != 1 || count.failed > 0 {
        bail!("{} of 1 tests passed", count.passed);
    }
    Ok("with schemathesis, all checks, a fixed seed".to_owned())
}
