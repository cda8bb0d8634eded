//! Has the released program bear a thousand streams at once.

use anyhow::{Result, bail};

use crate::count;
use crate::shell::{self, cargo, target};

/// Where the test finds the program.
const VARIABLE: &str = "OVERLOCK_RELEASED";

/// The module of the test that needs it.
pub(crate) const TESTS: &str = "load::";

/// Shows how many streams there were, and what they took.
pub(crate) fn check() -> Result<String> {
    // The demo has built it already, unless this step is run alone.
    shell::run(&mut cargo(["build", "--quiet", "--release", "--locked"]))?;
    // All of the workspace is built as for the other tests, so that nothing is built twice.
    let mut command = cargo(["test", "--quiet", "--workspace", "--locked", "--test", "it"]);
    command.args(["--", "--ignored", "--nocapture", "--test-threads=1", TESTS]);
    command.env(VARIABLE, target("release/overlock"));
    let (count, result) = count::run(&mut command)?;
    result?;
    // A test that is not found is not run either.
    if count.passed != 1 || count.failed > 0 {
        bail!("{} tests passed instead of one", count.passed);
    }
    Ok("a thousand streams at once, for a minute".to_owned())
}
