//! Installs a browser, and tests the web page with it.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::shell::target;
use crate::steps::{Depth, LONG_VARIABLE};
use crate::{packages, programs};

/// The environment variable with the folder with the Node packages that control the browser.
const VARIABLE: &str = "OVERLOCK_PAGE";

/// The path of another browser. The installed one is for Linux on x86-64.
const BROWSER_VARIABLE: &str = "OVERLOCK_CHROMIUM";

/// The test that needs it.
pub(crate) const TESTS: &[&str] = &["page::every_view_works_in_a_browser"];

/// The browser is a package with all its libraries, so it needs no root, and its version is fixed.
const PACKAGES: &[&str] = &[
    "playwright-core@1.65.0",
    "axe-core@4.14.0",
    "@sparticuz/chromium@147.0.0",
];

/// Installs the browser if necessary, and returns its folder.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = target("page");
    // The browser is unpacked there.
    fs::create_dir_all(folder.join("unpacked"))?;
    let needs = "Chromium comes from the npm registry, so `node` and `npm` must be installed";
    packages::node(&folder, PACKAGES, needs)?;
    Ok(folder)
}

/// Tests every view in the browser.
pub(crate) fn check(depth: Depth) -> Result<String> {
    let is_packaged = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if !is_packaged && env::var_os(BROWSER_VARIABLE).is_none() {
        bail!(
            "no packaged browser for this system: set {BROWSER_VARIABLE} to the path of a Chromium"
        );
    }
    let folder = install()?;
    let mut variables = vec![(VARIABLE, folder.as_os_str())];
    if depth == Depth::Long {
        variables.push((LONG_VARIABLE, OsStr::new("1")));
    }
    programs::run_ignored(TESTS, &variables, &[])?;
    let screens = match depth {
        Depth::Quick | Depth::Gate => 3,
        Depth::Long => 9,
    };
    Ok(format!(
        "every view in Chromium on {screens} screens: policy, console, axe, keyboard"
    ))
}
