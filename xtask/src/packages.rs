//! Installs Python and Node packages under `target/`, in fixed versions.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::{self, program};

/// Installs Python packages into a virtual environment if necessary, and returns its interpreter.
pub(crate) fn python(folder: &Path, packages: &[&str], needs: &'static str) -> Result<PathBuf> {
    let environment = folder.join("python");
    let interpreter = environment.join("bin/python");
    let done = environment.join("done");
    let wanted = packages.join("\n");
    if is_installed(&done, &wanted) {
        return Ok(interpreter);
    }
    eprintln!("   installing {}", packages.join(", "));
    let mut make = program("python3");
    make.args(["-m", "venv", "--clear"]).arg(&environment);
    shell::run(&mut make).context(needs)?;
    let mut install = program(&interpreter.to_string_lossy());
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    shell::run(install.args(packages)).context(needs)?;
    fs::write(done, wanted)?;
    Ok(interpreter)
}

/// Installs Node packages into a folder if necessary, for scripts that run in it.
pub(crate) fn node(folder: &Path, packages: &[&str], needs: &'static str) -> Result<()> {
    let done = folder.join("node_modules/.done");
    let wanted = packages.join("\n");
    if is_installed(&done, &wanted) {
        return Ok(());
    }
    eprintln!("   installing {}", packages.join(", "));
    fs::create_dir_all(folder)?;
    let mut install = program("npm");
    install.args([
        "install",
        "--silent",
        "--no-save",
        "--ignore-scripts",
        "--prefix",
    ]);
    shell::run(install.arg(folder).args(packages)).context(needs)?;
    fs::write(done, wanted)?;
    Ok(())
}

fn is_installed(done: &Path, wanted: &str) -> bool {
    fs::read_to_string(done).is_ok_and(|installed| installed == wanted)
}
