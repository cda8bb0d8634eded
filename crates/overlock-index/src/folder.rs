//! Lists the files of a folder that are not ignored.
//!
//! Files excluded by `.gitignore` or `.ignore`, hidden files and symbolic links are skipped. A link
//! may point to a file that is listed anyway, outside the folder, or back to a parent.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

/// A file and its path in the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) file: PathBuf,
    pub(crate) path: String,
    pub(crate) length: u64,
}

/// The files of a folder.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    /// Sorted by path.
    pub(crate) files: Vec<Source>,
    /// What could not be read.
    pub(crate) unseen: Vec<Unseen>,
}

/// A file or folder that could not be read, or an ignore file with an error.
#[derive(Debug)]
pub(crate) struct Unseen {
    /// Its path; empty if unknown.
    pub(crate) path: String,
    /// The error.
    pub(crate) reason: String,
    /// Whether it is a source file, not a folder or an ignore file.
    pub(crate) is_file: bool,
}

impl Folder {
    pub(crate) fn read(root: &Path) -> Self {
        let mut folder = Self::default();
        let walk = WalkBuilder::new(root)
            .require_git(false)
            .sort_by_file_path(Path::cmp)
            .build();
        for entry in walk {
            match entry {
                Ok(entry) => folder.add(root, &entry),
                Err(error) => folder.unseen(root, &error),
            }
        }
        folder.files.sort_by(|one, other| one.path.cmp(&other.path));
        folder
    }

    /// Whether a file may exist although it was not listed.
    pub(crate) fn may_hide(&self, path: &str) -> bool {
        self.unseen.iter().any(|unseen| {
            let below = path.strip_prefix(unseen.path.as_str());
            unseen.path.is_empty()
                || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    fn add(&mut self, root: &Path, entry: &ignore::DirEntry) {
        // An ignore file with an error excludes less than it should.
        if let Some(error) = entry.error() {
            self.unseen.push(Unseen {
                path: name(root, entry.path()),
                reason: error.to_string(),
                is_file: false,
            });
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            return;
        }
        let path = name(root, entry.path());
        if entry.path().to_str().is_none() {
            self.unseen.push(Unseen {
                path,
                reason: "its name is not UTF-8".to_owned(),
                is_file: true,
            });
            return;
        }
        match entry.metadata() {
            Ok(metadata) => self.files.push(Source {
                file: entry.path().to_owned(),
                path,
                length: metadata.len(),
            }),
            Err(error) => self.unseen.push(Unseen {
                path,
                reason: error.to_string(),
                is_file: true,
            }),
        }
    }

    fn unseen(&mut self, root: &Path, error: &ignore::Error) {
        let path = path_of(error).map_or(String::new(), |path| name(root, path));
        let reason = error
            .io_error()
            .map_or_else(|| error.to_string(), ToString::to_string);
        self.unseen.push(Unseen {
            path,
            reason,
            is_file: false,
        });
    }
}

/// The path of a file in its repository, with `/` between folders.
fn name(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts = below
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        ignore::Error::Partial(errors) => errors.iter().find_map(path_of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Folder, Unseen};

    #[test]
    fn files_below_an_unreadable_folder_may_exist() {
        let unseen = |path: &str| Folder {
            files: Vec::new(),
            unseen: vec![Unseen {
                path: path.to_owned(),
                reason: "no right to read it".to_owned(),
                is_file: false,
            }],
        };
        let closed = unseen("src");
        assert!(closed.may_hide("src/a.cs") && closed.may_hide("src"));
        assert!(!closed.may_hide("srcs/a.cs") && !closed.may_hide("a.cs"));
        // An unknown path may be anywhere.
        assert!(unseen("").may_hide("a.cs"));
        assert!(!Folder::default().may_hide("a.cs"));
    }
}
