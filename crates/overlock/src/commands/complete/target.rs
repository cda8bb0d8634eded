//! The file that a document goes to: can it be written, and is it all there in the end?

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::ending::Failure;

/// A file that can be written, as far as one can know.
pub(super) struct Target {
    path: PathBuf,
    /// Whether the document is written beside it first, and then put in its place.
    replaces: bool,
}

impl Target {
    /// Looks before anything is paid for whether a file can be written.
    pub(super) fn find(path: &Path) -> Result<Self, Failure> {
        let failed = |source| Failure::OutputUnwritable {
            path: path.to_owned(),
            source,
        };
        // A link stays one: what it leads to is written.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        // What a process has open, such as `/dev/stdout`, may be a file with a name of its own.
        let is_open = path.starts_with("/dev") || path.starts_with("/proc");
        let replaces = match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            // A device or a pipe is there to be written to, not to be replaced.
            Ok(found) if is_open || !found.is_file() => false,
            found => {
                let beside = part(&target);
                let made = File::create_new(&beside).and_then(|_| fs::remove_file(&beside));
                match (made, found) {
                    (Ok(()), _) => true,
                    (Err(error), Err(_)) => return Err(failed(error)),
                    // The folder may be shut while the file in it is not.
                    (Err(_), Ok(_)) => {
                        let opened = File::options().append(true).open(&target);
                        opened.map_err(failed)?;
                        false
                    }
                }
            }
        };
        Ok(Self {
            path: target,
            replaces,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&self, document: &str) -> io::Result<()> {
        if !self.replaces {
            return fs::write(&self.path, document);
        }
        let beside = part(&self.path);
        let replaced = self.replace(&beside, document);
        if replaced.is_err() {
            // What is left of it is of no use to anybody.
            let _ = fs::remove_file(&beside);
        }
        replaced
    }

    fn replace(&self, beside: &Path, document: &str) -> io::Result<()> {
        let mut file = File::create_new(beside)?;
        file.write_all(document.as_bytes())?;
        if let Ok(found) = fs::metadata(&self.path) {
            file.set_permissions(found.permissions())?;
        }
        file.sync_all()?;
        fs::rename(beside, &self.path)
    }
}

/// A name beside a file that no other process takes.
fn part(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}
