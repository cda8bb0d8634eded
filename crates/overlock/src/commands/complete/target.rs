//! Writes the document to a file, all of it or nothing.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::ending::Failure;

/// A file that was writable when it was checked.
pub(super) struct Target {
    path: PathBuf,
    /// Whether the document is written to a temporary file, which then replaces this one.
    replaces: bool,
}

impl Target {
    /// Checks that a file can be written, before the first paid call.
    pub(super) fn find(path: &Path) -> Result<Self, Failure> {
        let failed = |source| Failure::OutputUnwritable {
            path: path.to_owned(),
            source,
        };
        // A symbolic link stays; its target is written.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        // `/dev/stdout` may resolve to a regular file, which must not be replaced while it is open.
        let is_open = path.starts_with("/dev") || path.starts_with("/proc");
        let replaces = match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            // A device or a pipe is written to, not replaced.
            Ok(found) if is_open || !found.is_file() => false,
            found => {
                let temporary = temporary_path(&target);
                let created =
                    File::create_new(&temporary).and_then(|_| fs::remove_file(&temporary));
                match (created, found) {
                    (Ok(()), _) => true,
                    (Err(error), Err(_)) => return Err(failed(error)),
                    // The folder may be read-only while the file is writable.
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
        let temporary = temporary_path(&self.path);
        let replaced = self.replace(&temporary, document);
        if replaced.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        replaced
    }

    fn replace(&self, temporary: &Path, document: &str) -> io::Result<()> {
        let mut file = File::create_new(temporary)?;
        file.write_all(document.as_bytes())?;
        if let Ok(found) = fs::metadata(&self.path) {
            file.set_permissions(found.permissions())?;
        }
        file.sync_all()?;
        fs::rename(temporary, &self.path)
    }
}

/// A path in the same folder that no other process uses.
fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}
