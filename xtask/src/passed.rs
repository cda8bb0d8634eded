//! Records which test programs have passed, so that unchanged ones are not run again.
//!
//! A record under `target/` has one hash for each test program that passed. The hash covers the
//! executable, the programs of its package, the files that its tests may read (those of its crate, of
//! the crates it depends on, and of `examples`), and the variables that change what tests do.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::programs::{Built, TestProgram};
use crate::shell::{self, cargo, root, target};

const RECORD: &str = "passed-tests";

/// Prefixes of variables that change what tests do.
const VARIABLES: &[&str] = &["CI", "OVERLOCK_", "PROPTEST_", "RUST_"];

/// The test programs that passed, with their hashes.
pub(crate) struct Passed {
    record: PathBuf,
    hashes: BTreeMap<String, String>,
}

impl Passed {
    /// Reads the record, which may be missing.
    pub(crate) fn load() -> Self {
        let record = target(RECORD);
        let text = fs::read_to_string(&record).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let hashes = lines.map(|(name, hash)| (name.to_owned(), hash.to_owned()));
        Self {
            hashes: hashes.collect(),
            record,
        }
    }

    pub(crate) fn contains(&self, program: &TestProgram, hash: &str) -> bool {
        self.hashes.get(&program.name).is_some_and(|it| it == hash)
    }

    /// Writes the record at once, so that it has this program even if the next one fails.
    pub(crate) fn insert(&mut self, program: &TestProgram, hash: &str) -> Result<()> {
        self.hashes.insert(program.name.clone(), hash.to_owned());
        let mut text = String::new();
        for (name, hash) in &self.hashes {
            writeln!(text, "{name} {hash}")?;
        }
        fs::write(&self.record, text)
            .with_context(|| format!("could not write `{}`", self.record.display()))
    }
}

/// The environment variables that change what tests do.
fn variables() -> BTreeSet<(OsString, OsString)> {
    let changes_tests = |(name, _): &(OsString, OsString)| {
        let name = name.to_string_lossy();
        VARIABLES.iter().any(|prefix| name.starts_with(prefix))
    };
    std::env::vars_os().filter(changes_tests).collect()
}

/// The hash of each test program, by its name. A package outside `crates` has none: the tests of
/// the chores may read any file.
pub(crate) fn hashes(built: &Built) -> Result<BTreeMap<String, String>> {
    let metadata = shell::output(&mut cargo(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata = serde_json::from_slice(&metadata.stdout)?;
    let dependencies = dependencies(&metadata);
    let mut contents = BTreeMap::new();
    let mut hashes = BTreeMap::new();
    for program in &built.programs {
        if program.folder.parent() != Some(&root().join("crates")) {
            continue;
        }
        let mut files = BTreeSet::from([program.path.clone()]);
        let binaries = built.binaries.iter();
        files.extend(
            binaries
                .filter(|(folder, _)| *folder == program.folder)
                .map(|(_, path)| path.clone()),
        );
        let mut folders = closure(&dependencies, &program.folder);
        folders.insert(root().join("examples"));
        for folder in &folders {
            add_files(folder, &mut files)?;
        }
        hashes.insert(program.name.clone(), hash(&files, &mut contents)?);
    }
    Ok(hashes)
}

/// Hashes the variables and the files. `contents` caches the hash of each file.
fn hash(files: &BTreeSet<PathBuf>, contents: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<String> {
    let mut hash = Sha256::new();
    for (name, value) in variables() {
        for part in [name, value] {
            hash.update(part.as_encoded_bytes());
            hash.update([0]);
        }
    }
    for file in files {
        if !contents.contains_key(file) {
            let bytes = fs::read(file);
            let bytes = bytes.with_context(|| format!("could not read `{}`", file.display()))?;
            contents.insert(file.clone(), Sha256::digest(bytes).to_vec());
        }
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(&contents[file]);
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

/// The folder of each crate of this workspace, with the folders of its direct dependencies.
fn dependencies(metadata: &Value) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter_map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str()?);
            let dependencies = package["dependencies"].as_array()?;
            let folders = dependencies.iter().filter_map(|it| it["path"].as_str());
            let folders = folders.map(PathBuf::from).collect();
            Some((manifest.parent()?.to_owned(), folders))
        })
        .collect()
}

/// The folder of a crate and those of all its dependencies, including indirect ones.
fn closure(
    dependencies: &BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    folder: &Path,
) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![folder];
    while let Some(folder) = waiting.pop() {
        if found.insert(folder.to_owned()) {
            let next = dependencies.get(folder).into_iter().flatten();
            waiting.extend(next.map(PathBuf::as_path));
        }
    }
    found
}

fn add_files(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("could not read `{}`", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            add_files(&entry.path(), files)?;
        } else {
            files.insert(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_indirect_dependencies() {
        let metadata = serde_json::json!({ "packages": [
            { "manifest_path": "/w/a/Cargo.toml", "dependencies": [{ "path": "/w/b" }, {}] },
            { "manifest_path": "/w/b/Cargo.toml", "dependencies": [{ "path": "/w/c" }] },
            { "manifest_path": "/w/c/Cargo.toml", "dependencies": [{ "path": "/w/b" }] },
            { "manifest_path": "/w/d/Cargo.toml", "dependencies": [{ "path": "/w/a" }] },
        ]});
        let dependencies = dependencies(&metadata);
        let check = |folder: &str, expected: &[&str]| {
            let found = closure(&dependencies, Path::new(folder));
            assert!(found.iter().eq(expected.iter().map(Path::new)), "{folder}");
        };
        check("/w/a", &["/w/a", "/w/b", "/w/c"]);
        check("/w/c", &["/w/b", "/w/c"]);
        check("/w/d", &["/w/a", "/w/b", "/w/c", "/w/d"]);
    }

    #[test]
    fn a_change_of_a_file_changes_the_hash() {
        let folder = target("hashed-by-a-test");
        let write = |name: &str, text: &str| {
            fs::create_dir_all(&folder).expect("a folder can be made");
            fs::write(folder.join(name), text).expect("a file can be written");
        };
        let hash = || {
            let mut files = BTreeSet::new();
            add_files(&folder, &mut files).expect("the folder can be read");
            hash(&files, &mut BTreeMap::new()).expect("the files can be read")
        };
        let mut seen = BTreeSet::new();
        for (name, text) in [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")] {
            write(name, text);
            assert!(seen.insert(hash()), "{name} {text}");
        }
        write("b", "1");
        assert!(seen.contains(&hash()));
        fs::remove_dir_all(&folder).expect("the folder can be removed");
    }
}
