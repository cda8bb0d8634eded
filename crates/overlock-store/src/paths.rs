//! Path patterns.
//!
//! A pattern without `*` and `?` names a file, or a folder with all its files. Otherwise `?` matches
//! one character, `*` any number of them except `/`, and `**` any number of folders.

use std::fmt::{self, Display, Formatter};

/// A pattern for paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    /// The folders that the pattern begins with, or all of it if it has no wildcard.
    folder: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Char(char),
    /// One character except `/`.
    One,
    /// Any number of characters except `/`.
    Name,
    /// Any number of folders, each with its `/`.
    Folders,
    /// The rest of the path.
    Rest,
}

impl PathPattern {
    /// Reads a pattern; every text is valid. A leading `/` or `./` and a trailing `/` are ignored,
    /// since all paths begin at the root of their repository.
    pub fn new(text: &str) -> Self {
        let plain = text.trim_start_matches("./").trim_matches('/');
        let wild = plain.find(['*', '?']);
        let folder = match wild {
            Some(at) => plain[..at]
                .rsplit_once('/')
                .map_or("", |(folder, _)| folder),
            None => plain,
        };
        Self {
            text: text.to_owned(),
            folder: folder.to_owned(),
            pieces: wild.map_or_else(Vec::new, |_| pieces(plain)),
        }
    }

    /// The folder that contains all matches, or the file itself; empty for the root.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// Whether every path in that folder matches.
    pub fn is_folder(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The extension of all matching files, if the pattern has one.
    pub(crate) fn extension(&self) -> Option<&str> {
        let (_, end) = self.text.rsplit_once(['*', '?', '/'])?;
        extension(end).filter(|_| !self.is_folder())
    }

    /// Whether a path matches.
    pub fn matches(&self, path: &str) -> bool {
        if self.is_folder() {
            let rest = path.strip_prefix(&*self.folder);
            return self.folder.is_empty()
                || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        }
        let path: Vec<char> = path.chars().collect();
        // The positions in the path that the pieces so far can end at.
        let mut reached = vec![false; path.len() + 1];
        reached[0] = true;
        for piece in &self.pieces {
            reached = step(*piece, &reached, &path);
        }
        reached[path.len()]
    }
}

impl Display for PathPattern {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The extension of a file, without the dot.
pub(crate) fn extension(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let (_, extension) = name.rsplit_once('.')?;
    Some(extension).filter(|extension| !extension.is_empty())
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let starts_name = pieces.is_empty() || pieces.last() == Some(&Piece::Char('/'));
        let (piece, len) = match first {
            '*' if starts_name && rest.starts_with("**/") => (Piece::Folders, 3),
            '*' if starts_name && rest == "**" => (Piece::Rest, 2),
            '*' => (Piece::Name, 1),
            '?' => (Piece::One, 1),
            other => (Piece::Char(other), other.len_utf8()),
        };
        // Repeated wildcards match the same as one, and each would cost a pass over the path.
        if !matches!(piece, Piece::Name | Piece::Folders) || pieces.last() != Some(&piece) {
            pieces.push(piece);
        }
        rest = &rest[len..];
    }
    pieces
}

/// The positions that a piece leads to.
fn step(piece: Piece, reached: &[bool], path: &[char]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    let mut open = false;
    for (place, is_reached) in reached.iter().enumerate() {
        let character = path.get(place).copied();
        match piece {
            Piece::Char(wanted) if *is_reached && character == Some(wanted) => {
                next[place + 1] = true;
            }
            Piece::One if *is_reached && character.is_some_and(|found| found != '/') => {
                next[place + 1] = true;
            }
            Piece::Char(_) | Piece::One => {}
            Piece::Name => {
                open = *is_reached || open && place > 0 && path[place - 1] != '/';
                next[place] = open;
            }
            Piece::Folders => {
                next[place] = *is_reached || open && place > 0 && path[place - 1] == '/';
                open |= *is_reached;
            }
            Piece::Rest => {
                open |= *is_reached;
                next[place] = open;
            }
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let read = PathPattern::new(pattern);
        for path in matching {
            assert!(read.matches(path), "{path} matches {pattern}");
        }
        for path in others {
            assert!(!read.matches(path), "{path} does not match {pattern}");
        }
        // Every match has the folder and the extension.
        let folder = PathPattern::new(read.folder());
        assert!(matching.iter().all(|path| folder.matches(path)));
        if let Some(wanted) = read.extension() {
            assert!(matching.iter().all(|path| extension(path) == Some(wanted)));
        }
    }

    #[test]
    fn a_pattern_without_wildcards_is_a_file_or_a_folder() {
        check(
            "src/a",
            &["src/a", "src/a/b.cs"],
            &["src/ab", "src", "b/src/a"],
        );
        check("/src/a/", &["src/a/b.cs"], &["src/ab.cs"]);
        check("", &["a", "a/b"], &[]);
        check("a[1].cs", &["a[1].cs"], &["a1.cs"]);
    }

    #[test]
    fn one_star_stays_in_a_folder_and_two_do_not() {
        check("*.cs", &["a.cs", ".cs"], &["src/a.cs", "a.css"]);
        check("**/*.cs", &["a.cs", "src/a.cs", "src/b/a.cs"], &["a.sql"]);
        check("src/**", &["src/a", "src/a/b"], &["srcs/a"]);
        check("src/**/x.cs", &["src/x.cs", "src/a/b/x.cs"], &["src/ax.cs"]);
        check(
            "src/?.cs",
            &["src/a.cs", "src/ü.cs"],
            &["src/ab.cs", "src//.cs"],
        );
        check("s*c/*/b", &["src/a/b", "sc/a/b"], &["s/c/a/b", "src/b"]);
        check("a**b", &["ab", "axb"], &["a/b"]);
    }

    #[test]
    fn many_wildcards_do_not_backtrack() {
        let pattern = PathPattern::new(&"*a".repeat(2_000));
        assert!(!pattern.matches(&"a".repeat(1_999)));
        assert!(pattern.matches(&"a".repeat(2_000)));
    }
}
