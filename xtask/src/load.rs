//! Has the released program serve a thousand streams at once.

use anyhow::Result;

use crate::programs;
use crate::shell::{self, cargo, target};
use crate::steps::Depth;

/// Where the test finds the program.
const VARIABLE: &str = "OVERLOCK_RELEASED";

/// The test that needs it.
pub(crate) const TESTS: &[&str] = &["load::"];

/// Shows how many streams there were, and what they took.
pub(crate) fn check(_: Depth) -> Result<String> {
    // The demo has built it already, unless this step is run alone.
    shell::run(&mut cargo(["build", "--quiet", "--release", "--locked"]))?;
    let program = target("release/overlock");
    programs::run_ignored(TESTS, &[(VARIABLE, program.as_os_str())], &[])?;
    Ok("a thousand streams at once, for a minute".to_owned())
}
