//! Installs a browser, and has it look at the page.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::shell::target;
use crate::steps::{Depth, LONG_VARIABLE};
use crate::{packages, programs};

/// Where the test finds what drives the browser: a folder with packages of Node.
const VARIABLE: &str = "OVERLOCK_PAGE";

/// Names a browser of one's own. The one that is installed is for Linux on x86-64.
const BROWSER_VARIABLE: &str = "OVERLOCK_CHROMIUM";

/// The test that needs it.
pub(crate) const TESTS: &[&str] = &["page::every_view_works_in_a_browser"];

/// The browser is a package like the others, with the libraries it needs: nobody has to be root,
/// and everybody looks with the same one.
const PACKAGES: &[&str] = &[
    "playwright-core@1.65.0",
    "axe-core@4.14.0",
    "@sparticuz/chromium@147.0.0",
];

/// The folder with the browser, which is installed first if it is not there.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = target("page");
    // The browser is unpacked there.
    fs::create_dir_all(folder.join("unpacked"))?;
    let needs =
        "the page is looked at with Chromium from npm, so `node` and `npm` must be installed";
    packages::node(&folder, PACKAGES, needs)?;
    Ok(folder)
}

/// Has the browser look at every view.
pub(crate) fn check(depth: Depth) -> Result<String> {
    let is_packaged = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if !is_packaged && env::var_os(BROWSER_VARIABLE).is_none() {
        bail!(
            "there is no packaged browser for this system: name a Chromium in {BROWSER_VARIABLE}"
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
