//! Builds the Python package as a wheel, installs it, and tests it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::{self, program, root, target};
use crate::steps::Depth;
use crate::{judges, packages};

/// The tools, and the clients that the package has adapters for.
const PACKAGES: &[&str] = &[
    "maturin==1.16.0",
    "mypy==2.4.1",
    "pytest==9.2.0",
    "openai==3.49.0",
    "anthropic==2.8.0",
    "langchain-core==1.7.2",
];

const NEEDS: &str =
    "the Python package is built and tested, so `python3` with `venv` must be installed";

const PACKAGE: &str = "crates/overlock-python";

/// Installs these packages if necessary, and returns the interpreter.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = target("python-package");
    fs::create_dir_all(&folder)?;
    packages::python(&folder, PACKAGES, NEEDS)
}

/// Builds, installs and tests the package, runs the examples, and checks the types.
pub(crate) fn check(_: Depth) -> Result<String> {
    let python = install()?;
    build(&python, Profile::Dev)?;
    let package = root().join(PACKAGE);
    let in_package = |arguments: &[&str]| -> Result<()> {
        let mut command = program(&python.to_string_lossy());
        command.current_dir(&package).args(arguments);
        // No bytecode files in the source tree.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        shell::run(&mut command)
    };
    in_package(&[
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/python",
    ])?;
    let examples = examples(&package.join("examples"))?;
    for example in &examples {
        in_package(&[&example.to_string_lossy()])?;
    }
    let cache = target("python-package/mypy");
    let cache = cache.to_string_lossy();
    let mypy = ["-m", "mypy", "--strict", "--cache-dir", &cache];
    in_package(&[&mypy[..], &["-p", "overlock"]].concat())?;
    in_package(&[&mypy[..], &["examples", "tests/python"]].concat())?;
    // The stubs must match the native module.
    in_package(&["-m", "mypy.stubtest", "overlock"])?;
    Ok(format!(
        "a wheel, its tests, {} examples, types",
        examples.len()
    ))
}

/// The peers in the benchmark.
const PEERS: &[&str] = &[
    "maturin==1.16.0",
    "jiter==0.19.0",
    "json_repair==0.64.2",
    "langchain-core==1.7.2",
    "partial-json-parser==0.2.1.1.post7",
    "pydantic_core==2.50.4",
    "tiktoken==0.14.0",
];

/// Measures the released build of the package and its peers.
pub(crate) fn bench(arguments: &[String]) -> Result<()> {
    let folder = target("python-bench");
    fs::create_dir_all(&folder)?;
    let python = packages::python(&folder, PEERS, NEEDS)?;
    build(&python, Profile::Dist)?;
    let mut command = program(&python.to_string_lossy());
    command
        .arg("bench/python/beside.py")
        .arg(judges::vocabularies()?);
    shell::run(command.args(arguments))
}

/// The build profile of the native module.
#[derive(Clone, Copy)]
enum Profile {
    /// As in all other tests.
    Dev,
    /// As users get it.
    Dist,
}

/// Builds the wheel and installs it for the interpreter.
fn build(python: &Path, profile: Profile) -> Result<()> {
    let wheels = target("python-package/wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let mut build = program(&python.to_string_lossy());
    build.args([
        "-m",
        "maturin",
        "build",
        "--quiet",
        "--locked",
        "--manifest-path",
    ]);
    build.arg(root().join(PACKAGE).join("Cargo.toml"));
    build.arg("--out").arg(&wheels);
    build.arg("--interpreter").arg(python);
    match profile {
        Profile::Dev => build.args(["--profile", "dev"]),
        Profile::Dist => build.args(["--profile", "dist"]),
    };
    shell::run(&mut build)?;
    let wheel = fs::read_dir(&wheels)?
        .next()
        .context("maturin created no wheel")??;
    let mut install = program(&python.to_string_lossy());
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    install
        .args(["--no-deps", "--no-index", "--force-reinstall"])
        .arg(wheel.path());
    shell::run(&mut install)
}

fn examples(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut examples = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            examples.push(path);
        }
    }
    if examples.is_empty() {
        bail!("no examples in `{}`", folder.display());
    }
    examples.sort();
    Ok(examples)
}
