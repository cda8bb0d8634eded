//! Which files a folder has, without those that are ignored.
//!
//! What `.gitignore` and `.ignore` leave out, hidden files and links are not the repository's own
//! sources. A link leads to a file that is found at its own place, out of the folder, or round in a
//! circle.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

/// A file, and how it is called in its repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) file: PathBuf,
    pub(crate) path: String,
    pub(crate) length: u64,
}

/// What is in a folder.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    /// By path.
    pub(crate) files: Vec<Source>,
    /// What could not be looked at.
    pub(crate) unseen: Vec<Unseen>,
}

/// Something that could not be looked at.
#[derive(Debug)]
pub(crate) struct Unseen {
    /// Its path; empty if not even that is known.
    pub(crate) path: String,
    /// Why not.
    pub(crate) reason: String,
    /// Whether it is a file, and not a folder, or rules on what is left out.
    pub(crate) is_file: bool,
}

impl Folder {
    pub(crate) fn of(root: &Path) -> Self {
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

    /// Whether a path may be there although it was not seen.
    pub(crate) fn may_hide(&self, path: &str) -> bool {
        self.unseen.iter().any(|unseen| {
            let below = path.strip_prefix(unseen.path.as_str());
            unseen.path.is_empty()
                || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    fn add(&mut self, root: &Path, entry: &ignore::DirEntry) {
        // A file of rules that cannot be read leaves out less than it should.
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
                reason: "its name is no UTF-8".to_owned(),
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

/// How a file is called in its repository, with `/` between folders.
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
    fn what_is_below_an_unseen_folder_may_be_there() {
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
        // Nobody knows where it is: it may be anywhere.
        assert!(unseen("").may_hide("a.cs"));
        assert!(!Folder::default().may_hide("a.cs"));
    }
}
