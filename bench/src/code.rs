//! Classification, compaction and outlines of source text, on real repositories.
//!
//! `--corpus DIR` holds one folder for each repository. Labels come from the names of files, and
//! the judges from others: the leaves of tree-sitter for C#, the tokenizer of `sqlparser` for SQL.
//! Where a judge fails on the original there is nothing to compare, and that is counted.

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

/// Longer files are data, and say nothing about code.
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
        Self { name, files }
    }

    fn of(&self, language: &str) -> impl Iterator<Item = &File> {
        let kinds: &[&str] = if language == "C#" { &["cs"] } else { SQL };
        self.files
            .iter()
            .filter(move |file| kinds.contains(&file.kind.as_str()) && file.text.len() <= LONGEST)
    }

    /// Which SQL its files are most likely written in, told by its name.
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

/// UTF-8, or UTF-16 with its mark, as the tools of Microsoft write it.
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

/// What a file is, by the end of its name.
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
        let spoken = if language == "C#" {
            Language::Dotnet
        } else {
            Language::Sql
        };
        let options = CompactOptions::default();
        let (time, compacted) = once(|| compact(&file.text, spoken, &options));
        self.files += 1;
        self.bytes += file.text.len();
        self.time += time;
        self.untouched += usize::from(!compacted.compacted);
        self.before += Encoding::O200kBase.count(&file.text);
        self.after += Encoding::O200kBase.count(&compacted.text);
        let judged = if language == "C#" {
            let (before, parsed) = leaves(&file.text);
            let same = before == leaves(&compacted.text).0;
            // An error is recovered from as the white space has it, so a tree with one is no judge.
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
        let mut table = Table::new(["repository", "files", "saved"]);
        let mut all = Sums::default();
        let mut kept: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
        for repository in repositories {
            let mut sums = Sums::default();
            for file in repository.of(language) {
                let spoken = if language == "C#" {
                    Language::Dotnet
                } else {
                    Language::Sql
                };
                let options = CompactOptions {
                    level: Level::Outline,
                    ..CompactOptions::default()
                };
                let outline = compact(&file.text, spoken, &options);
                sums.files += 1;
                sums.before += Encoding::O200kBase.count(&file.text);
                sums.after += Encoding::O200kBase.count(&outline.text);
                if language == "C#" {
                    compare_declarations(file, &outline.text, &mut kept, differences);
                }
            }
            if sums.files > 0 {
                table.row([
                    repository.name.clone(),
                    sums.files.to_string(),
                    sums.saved(),
                ]);
                all.add(&sums);
            }
        }
        table.row(["all".to_owned(), all.files.to_string(), all.saved()]);
        table.print(&format!("Outline of {language}, documentation dropped"));
        if language == "C#" {
            let mut table = Table::new(["declarations of C#", "in the files", "in the outlines"]);
            for (kind, (all, lost)) in kept {
                table.row([kind.to_owned(), all.to_string(), share(all - lost, all)]);
            }
            table.print("What the outline keeps");
        }
    }
}

/// Notes which declarations of a file are in its outline, if the file parses.
fn compare_declarations(
    file: &File,
    outline: &str,
    kept: &mut BTreeMap<&'static str, (usize, usize)>,
    differences: bool,
) {
    let tree = parse(&file.text);
    if tree.root_node().has_error() {
        return;
    }
    let outline = without_marks(outline);
    let mut left: BTreeMap<Declaration, usize> = BTreeMap::new();
    for declaration in declarations(&parse(&outline), &outline) {
        *left.entry(declaration).or_default() += 1;
    }
    for declaration in declarations(&tree, &file.text) {
        let (all, lost) = kept.entry(declaration.0).or_default();
        *all += 1;
        if let Some(left) = left.get_mut(&declaration).filter(|left| **left > 0) {
            *left -= 1;
            continue;
        }
        *lost += 1;
        if differences {
            println!("lost: {declaration:?} of {}", file.path.display());
        }
    }
}

/// An outline that parses: a mark is no code, but a body without one is.
fn without_marks(outline: &str) -> String {
    let mut out = String::new();
    let mut rest = outline;
    while let Some((before, after)) = rest.split_once("… ") {
        out.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let unit = &after[digits..];
        match unit
            .strip_prefix(" lines")
            .or_else(|| unit.strip_prefix(" line"))
        {
            Some(after) if digits > 0 => {
                if !out.ends_with('{') {
                    out.push('x');
                }
                rest = after;
            }
            _ => rest = after,
        }
    }
    out + rest
}

fn parse(text: &str) -> Tree {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_c_sharp::LANGUAGE.into())
        .expect("the grammar and the library are of the same time");
    parser.parse(text, None).expect("nobody stops the parser")
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

/// What tree-sitter reads, without comments and regions; and whether it reads all of it.
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

/// A kind of declaration, and what is declared.
type Declaration = (&'static str, String);

fn declarations(tree: &Tree, text: &str) -> Vec<Declaration> {
    let mut found = Vec::new();
    walk(tree, |node| {
        let name = || {
            node.child_by_field_name("name")
                .map_or("", |name| &text[name.byte_range()])
                .to_owned()
        };
        match node.kind() {
            "class_declaration"
            | "struct_declaration"
            | "interface_declaration"
            | "record_declaration"
            | "enum_declaration"
            | "delegate_declaration" => found.push(("types", name())),
            "method_declaration"
            | "constructor_declaration"
            | "destructor_declaration"
            | "operator_declaration"
            | "conversion_operator_declaration" => found.push(("methods", name())),
            "property_declaration" | "indexer_declaration" | "event_declaration" => {
                found.push(("properties", name()));
            }
            "enum_member_declaration" => found.push(("enum members", name())),
            "variable_declarator" => found.push(("fields", name())),
            "parameter_list" | "bracketed_parameter_list" => {
                found.push(("parameter lists", flat(node, text)));
            }
            "type_parameter_list" | "type_parameter_constraints_clause" | "base_list" => {
                found.push(("type parameters and bases", flat(node, text)));
            }
            "attribute_list" => found.push(("attributes", flat(node, text))),
            _ => {}
        }
        let is_value = node.parent().is_some_and(|parent| {
            parent.kind() == "property_declaration"
                && parent.child_by_field_name("value") == Some(node)
        });
        let inside = matches!(
            node.kind(),
            "block"
                | "arrow_expression_clause"
                | "variable_declarator"
                | "parameter_list"
                | "bracketed_parameter_list"
                | "attribute_list"
                | "global_statement"
                | "comment"
                | "base_list"
                | "constructor_initializer"
        );
        !inside && !is_value
    });
    found
}

/// The tokens of a node on one line.
fn flat(node: Node<'_>, text: &str) -> String {
    let mut line = String::new();
    let mut nodes = vec![node];
    while let Some(node) = nodes.pop() {
        if node.kind() == "comment" {
            continue;
        }
        if node.child_count() == 0 {
            line.push_str(&text[node.byte_range()]);
            line.push(' ');
        }
        let mut cursor = node.walk();
        let children: Vec<_> = node.children(&mut cursor).collect();
        nodes.extend(children.into_iter().rev());
    }
    line
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
