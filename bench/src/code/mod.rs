//! Checks classification, compaction and outlines on real repositories.
//!
//! `--corpus DIR` has one folder per repository. Labels come from file names. The references are the
//! leaves of tree-sitter for C# and the tokenizer of `sqlparser` for SQL. Files that the reference
//! cannot read are counted separately.

mod declarations;
mod repomix;
mod statements;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use overlock_budget::{CountTokens, Encoding};
use overlock_code::{CompactOptions, Language, Level, classify, compact};
use sqlparser::dialect::{Dialect, MsSqlDialect, MySqlDialect, OracleDialect, PostgreSqlDialect};
use sqlparser::tokenizer::{Token, Tokenizer};
use tree_sitter::{Node, Parser, Tree};

use crate::Options;
use crate::clock::{once, rate};
use crate::table::{Table, share};

/// Longer files are usually data, not code.
const LONGEST: usize = 64 * 1024;

/// Prints the tables, if there is a corpus.
pub(crate) fn run(options: &Options) -> Result<()> {
    let Some(corpus) = &options.corpus else {
        eprintln!("code: left out, since no `--corpus DIR` is given");
        return Ok(());
    };
    let mut repositories: Vec<PathBuf> = fs::read_dir(corpus)
        .with_context(|| format!("could not read `{}`", corpus.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    repositories.sort();
    let repositories: Vec<Repository> = repositories
        .iter()
        .map(|path| Repository::read(path))
        .collect();
    lossless(&repositories, options.differences);
    outlines(&repositories, options.differences);
    classification(&repositories, options.differences);
    Ok(())
}

struct Repository {
    root: PathBuf,
    name: String,
    files: Vec<File>,
}

struct File {
    path: PathBuf,
    /// The end of its name, in lower case.
    kind: String,
    text: String,
}

impl Repository {
    fn read(root: &Path) -> Self {
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_symlink() {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let kind = path
                    .extension()
                    .map(|kind| kind.to_string_lossy().to_lowercase());
                let text = fs::read(&path).ok().and_then(|bytes| decoded(&bytes));
                if let (Some(kind), Some(text)) = (kind, text)
                    && label(&kind).is_some()
                {
                    files.push(File { path, kind, text });
                }
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let name = root
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let root = root.to_owned();
        Self { root, name, files }
    }

    fn of(&self, language: &str) -> impl Iterator<Item = &File> {
        let kinds: &[&str] = if language == "C#" { &["cs"] } else { SQL };
        self.files
            .iter()
            .filter(move |file| kinds.contains(&file.kind.as_str()) && file.text.len() <= LONGEST)
    }

    /// The likely SQL dialect, by the name of the repository.
    fn dialect(&self) -> Box<dyn Dialect> {
        let name = self.name.to_lowercase();
        let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
        match () {
            () if is(&["mysql", "test_db"]) => Box::new(MySqlDialect {}),
            () if is(&["postgres", "pgtap", "timescale"]) => Box::new(PostgreSqlDialect {}),
            () if is(&["oracle", "utplsql", "db-sample"]) => Box::new(OracleDialect {}),
            () => Box::new(MsSqlDialect {}),
        }
    }
}

/// Decodes UTF-8, or UTF-16 with a byte order mark, as tools of Microsoft write it.
fn decoded(bytes: &[u8]) -> Option<String> {
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => {
            let units: Vec<u16> = rest
                .chunks_exact(2)
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                .collect();
            String::from_utf16(&units).ok()?
        }
        _ => String::from_utf8(bytes.to_vec()).ok()?,
    };
    Some(text.trim_start_matches('\u{feff}').to_owned())
}

const SQL: &[&str] = &["sql", "pks", "pkb", "pls", "prc", "fnc", "trg"];

/// The language of a file, by the end of its name.
fn label(kind: &str) -> Option<&'static str> {
    match kind {
        "cs" | "vb" | "csproj" | "vbproj" | "config" | "cshtml" | "razor" | "props" | "targets" => {
            Some("dotnet")
        }
        kind if SQL.contains(&kind) => Some("sql"),
        "java" | "kt" | "ts" | "tsx" | "js" | "py" | "rb" | "php" | "go" | "rs" | "c" | "h"
        | "sh" | "ps1" | "css" | "html" | "xml" | "json" | "yml" | "yaml" | "toml" | "ini"
        | "md" | "txt" | "log" => Some("unknown"),
        _ => None,
    }
}

fn lossless(repositories: &[Repository], differences: bool) {
    for language in ["C#", "SQL"] {
        let mut table = Table::new([
            "repository",
            "files",
            "other tokens",
            "no judge",
            "untouched",
            "saved",
            "MB/s",
        ]);
        let mut all = Sums::default();
        for repository in repositories {
            let mut sums = Sums::default();
            for file in repository.of(language) {
                sums.add_lossless(file, repository, language, differences);
            }
            if sums.files > 0 {
                table.row(sums.row(&repository.name));
                all.add(&sums);
            }
        }
        table.row(all.row("all"));
        table.print(&format!(
            "Lossless compaction of {language}, documentation dropped, files to 64 KB"
        ));
    }
}

#[derive(Default)]
struct Sums {
    files: usize,
    different: usize,
    without_judge: usize,
    untouched: usize,
    before: u64,
    after: u64,
    bytes: usize,
    time: Duration,
}

impl Sums {
    fn add_lossless(
        &mut self,
        file: &File,
        repository: &Repository,
        language: &str,
        differences: bool,
    ) {
        let options = CompactOptions::default();
        let (time, compacted) = once(|| compact(&file.text, spoken(language), &options));
        self.bytes += file.text.len();
        self.time += time;
        self.untouched += usize::from(!compacted.compacted);
        self.count(&file.text, &compacted.text);
        let judged = if language == "C#" {
            let (before, parsed) = leaves(&file.text);
            let same = before == leaves(&compacted.text).0;
            // Error recovery depends on white space, so a tree with errors is no reference.
            (same || parsed).then_some(same)
        } else {
            let dialect = repository.dialect();
            let before = sql_tokens(&file.text, dialect.as_ref());
            before.map(|before| Some(before) == sql_tokens(&compacted.text, dialect.as_ref()))
        };
        match judged {
            None => self.without_judge += 1,
            Some(true) => {}
            Some(false) => {
                self.different += 1;
                if differences {
                    println!("other tokens: {}", file.path.display());
                }
            }
        }
    }

    fn count(&mut self, before: &str, after: &str) {
        self.files += 1;
        self.before += Encoding::O200kBase.count(before);
        self.after += Encoding::O200kBase.count(after);
    }

    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.different += other.different;
        self.without_judge += other.without_judge;
        self.untouched += other.untouched;
        self.before += other.before;
        self.after += other.after;
        self.bytes += other.bytes;
        self.time += other.time;
    }

    fn saved(&self) -> String {
        format!(
            "{:.1} %",
            100.0 - 100.0 * self.after as f64 / self.before.max(1) as f64
        )
    }

    fn row(&self, name: &str) -> [String; 7] {
        [
            name.to_owned(),
            self.files.to_string(),
            self.different.to_string(),
            self.without_judge.to_string(),
            self.untouched.to_string(),
            self.saved(),
            format!("{:.0}", rate(self.bytes, self.time)),
        ]
    }
}

fn outlines(repositories: &[Repository], differences: bool) {
    for language in ["C#", "SQL"] {
        let mut table = Table::new(["repository", "files", "ours saves", "Repomix saves"]);
        let (mut all, mut of_peer) = (Sums::default(), Sums::default());
        let (mut kept, mut kept_by_peer) = (Kept::default(), Kept::default());
        for repository in repositories {
            let (mut sums, mut peer) = (Sums::default(), Sums::default());
            let compressed = match repository.of(language).next() {
                Some(_) => repomix::compressed(repository, language),
                None => continue,
            };
            for file in repository.of(language) {
                let options = CompactOptions {
                    level: Level::Outline,
                    ..CompactOptions::default()
                };
                let outline = compact(&file.text, spoken(language), &options);
                sums.count(&file.text, &outline.text);
                let theirs = compressed
                    .as_ref()
                    .ok()
                    .and_then(|files| files.get(&file.path));
                if let Some(theirs) = theirs {
                    peer.count(&file.text, theirs);
                }
                if language == "C#" {
                    let theirs = theirs.map(String::as_str);
                    declarations::compare(file, &outline.text, &mut kept, differences);
                    declarations::look_for(file, theirs, &mut kept_by_peer);
                } else {
                    let dialect = repository.dialect();
                    statements::compare(
                        file,
                        &outline.text,
                        dialect.as_ref(),
                        &mut kept,
                        differences,
                    );
                }
            }
            let saved_by_peer = match compressed {
                Ok(_) => peer.saved(),
                Err(error) => format!("{error:#}"),
            };
            table.row([
                repository.name.clone(),
                sums.files.to_string(),
                sums.saved(),
                saved_by_peer,
            ]);
            all.add(&sums);
            of_peer.add(&peer);
        }
        table.row([
            "all".to_owned(),
            all.files.to_string(),
            all.saved(),
            of_peer.saved(),
        ]);
        table.print(&format!(
            "Outline of {language}, documentation dropped, compared with Repomix {} --compress",
            repomix::VERSION
        ));
        kept.print(language, &kept_by_peer);
    }
}

/// The number of things of each kind in the files, and how many are lost.
#[derive(Default)]
struct Kept(BTreeMap<&'static str, (usize, usize)>);

impl Kept {
    fn note(&mut self, kind: &'static str, is_kept: bool) {
        let (all, lost) = self.0.entry(kind).or_default();
        *all += 1;
        *lost += usize::from(!is_kept);
    }

    fn print(&self, language: &str, peer: &Self) {
        let mut table = Table::new(["kept", "in the files", "in our outlines", "by Repomix"]);
        for (kind, (all, lost)) in &self.0 {
            let by_peer = peer.0.get(kind);
            table.row([
                (*kind).to_owned(),
                all.to_string(),
                share(all - lost, *all),
                by_peer.map_or_else(|| "–".to_owned(), |(all, lost)| share(all - lost, *all)),
            ]);
        }
        table.print(&format!(
            "Kept of {language}: ours parsed again, Repomix anywhere in the text"
        ));
    }
}

fn spoken(language: &str) -> Language {
    if language == "C#" {
        Language::Dotnet
    } else {
        Language::Sql
    }
}

fn parse(text: &str) -> Tree {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_c_sharp::LANGUAGE.into())
        .expect("the grammar and the library are of the same time");
    parser.parse(text, None).expect("the parser has no limit")
}

/// Visits nodes in the order of the text; the visitor says whether to go inside.
fn walk(tree: &Tree, mut enters: impl FnMut(Node<'_>) -> bool) {
    let mut cursor = tree.walk();
    loop {
        if enters(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

/// The tokens of tree-sitter without comments and regions, and whether there are no errors.
fn leaves(text: &str) -> (Vec<(u16, &str)>, bool) {
    let tree = parse(text);
    let mut leaves = Vec::new();
    walk(&tree, |node| {
        let kind = node.kind();
        if kind == "comment"
            || kind.starts_with("preproc_region")
            || kind.starts_with("preproc_endregion")
        {
            return false;
        }
        let piece = &text[node.byte_range()];
        let piece = if kind.starts_with("preproc") {
            piece.trim()
        } else {
            piece.trim_end_matches(['\r', '\n'])
        };
        if node.child_count() == 0 && !piece.is_empty() {
            leaves.push((node.kind_id(), piece));
        }
        true
    });
    (leaves, !tree.root_node().has_error())
}

fn sql_tokens(text: &str, dialect: &dyn Dialect) -> Option<Vec<Token>> {
    let tokens = Tokenizer::new(dialect, text)
        .with_unescape(false)
        .tokenize()
        .ok()?;
    Some(
        tokens
            .into_iter()
            .filter(|token| !matches!(token, Token::Whitespace(_)))
            .collect(),
    )
}

fn classification(repositories: &[Repository], differences: bool) {
    let mut table = Table::new(["label by the file's name", "files", "right"]);
    let mut sums: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for file in repositories.iter().flat_map(|repository| &repository.files) {
        let Some(label) = label(&file.kind).filter(|_| !file.text.trim().is_empty()) else {
            continue;
        };
        let found = classify(&file.text);
        let (files, right) = sums.entry(label).or_default();
        *files += 1;
        if found.language.rule_name() == label {
            *right += 1;
        } else if differences {
            println!(
                "{label} taken for {}: {}",
                found.language,
                file.path.display()
            );
        }
    }
    let (mut files, mut right) = (0, 0);
    for (label, (of, are_right)) in sums {
        table.row([label.to_owned(), of.to_string(), share(are_right, of)]);
        files += of;
        right += are_right;
    }
    table.row(["all".to_owned(), files.to_string(), share(right, files)]);
    table.print("Classification");
}
