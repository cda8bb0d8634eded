//! Has the released program serve a thousand streams at once.

use std::ffi::OsStr;

use anyhow::Result;

use crate::programs;
use crate::shell::{self, cargo, target};
use crate::steps::{Depth, LONG_VARIABLE};

/// Where the test finds the program.
const VARIABLE: &str = "OVERLOCK_RELEASED";

/// The test that needs it.
pub(crate) const TESTS: &[&str] = &["load::"];

/// Shows how many streams there were, and what they took.
pub(crate) fn check(depth: Depth) -> Result<String> {
    // The demo has built it already, unless this step is run alone.
    shell::run(&mut cargo(["build", "--quiet", "--release", "--locked"]))?;
    let program = target("release/overlock");
    let mut variables = vec![(VARIABLE, program.as_os_str())];
    if depth == Depth::Long {
        variables.push((LONG_VARIABLE, OsStr::new("1")));
    }
    programs::run_ignored(TESTS, &variables, &[])?;
    Ok("a thousand streams at once".to_owned())
}
