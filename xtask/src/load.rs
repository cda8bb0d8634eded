//! Runs the load test: a thousand streams at once through the release build.

use std::ffi::OsStr;

use anyhow::Result;

use crate::programs;
use crate::shell::{self, cargo, target};
use crate::steps::{Depth, LONG_VARIABLE};

/// The environment variable with the path of the program.
const VARIABLE: &str = "OVERLOCK_RELEASED";

/// The test that needs it.
pub(crate) const TESTS: &[&str] = &["load::"];

/// Builds the program and runs the test, which prints its figures.
pub(crate) fn check(depth: Depth) -> Result<String> {
    // The step `demo` has built it already, unless this step runs alone.
    shell::run(&mut cargo(["build", "--quiet", "--release", "--locked"]))?;
    let program = target("release/overlock");
    let mut variables = vec![(VARIABLE, program.as_os_str())];
    if depth == Depth::Long {
        variables.push((LONG_VARIABLE, OsStr::new("1")));
    }
    programs::run_ignored(TESTS, &variables, &[])?;
    Ok("a thousand streams at once".to_owned())
}
