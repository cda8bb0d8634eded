//! `overlock search`: searches indexed source code.

use std::path::Path;

use clap::{Args, ValueEnum};
use overlock_pipeline::check_repository;
use overlock_store::{
    Filter, Hit, PathPattern, Query, RepositorySummary, Search as How, Store, Vector,
};
use serde::Serialize;

use crate::config::ConfigSource;
use crate::draw::{self, FAINT, NEW, STRONG};
use crate::embedding::{Embedder, EmbeddingSource};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};
use crate::runs;

/// Search indexed source code
///
/// A keyword search ranks code that contains all words first; `order service` finds `OrderService`.
/// A semantic or hybrid search needs an index with vectors and --embed with the same model.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock search 'close order'\n  \
    $ overlock search --type hybrid --embed nomic-embed-text --path 'src/**/*.cs' 'who is billed'\n\n\
    Exit codes: 0 found; 1 nothing found; 2 bad usage, or no such store or repository.")]
pub(crate) struct Search {
    /// The words to search for
    #[arg(value_name = "QUERY")]
    query: String,
    /// The type of search [default: keyword, with --embed hybrid]
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    kind: Option<SearchKind>,
    /// Search only this repository
    #[arg(long, value_name = "NAME")]
    repository: Option<String>,
    /// Search only files in this language
    #[arg(long, value_name = "LANGUAGE", value_parser = ["sql", "dotnet", "unknown"])]
    language: Option<String>,
    /// Search only this file, this folder, or files that match this pattern, such as `src/**/*.cs`;
    /// relative to the root of the repository, or an absolute path
    #[arg(long, value_name = "PATTERN")]
    path: Option<String>,
    /// The largest number of hits, from 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// The store with the index, `sqlite://FILE` or `postgres://…` [default: `store.url`, else
    /// runs.db in the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    embedding: EmbeddingSource,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SearchKind {
    /// By words
    Keyword,
    /// By meaning, with vectors
    Semantic,
    /// By both
    Hybrid,
}

/// The output of `--json`.
#[derive(Serialize)]
struct SearchReport<'a> {
    hits: Vec<HitReport<'a>>,
}

#[derive(Serialize)]
struct HitReport<'a> {
    id: &'a str,
    repository: &'a str,
    path: &'a str,
    /// The first line with a match, else the first line of the node.
    line: u32,
    first_line: u32,
    last_line: u32,
    kind: &'static str,
    name: &'a str,
    qualified: &'a str,
    language: &'a str,
    score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyword_rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    semantic_rank: Option<u32>,
    matches: Vec<Match<'a>>,
    text: &'a str,
}

/// A line that contains some of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Match<'a> {
    /// Its number in the file, unless lines were left out before it.
    line: Option<u32>,
    text: &'a str,
}

impl Search {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let words = words(&self.query);
        if words.is_empty() {
            return Err(Failure::Usage {
                message: "the query has no words".into(),
                hint: "give one or more words, as in `overlock search 'close order'`".into(),
            });
        }
        let embedder = self.embedding.open(&config)?;
        let kind = match (self.kind, &embedder) {
            (Some(SearchKind::Semantic | SearchKind::Hybrid), None) => {
                return Err(Failure::Usage {
                    message: "a semantic search needs the model that made the vectors".into(),
                    hint: "give it with --embed MODEL, or use --type keyword".into(),
                });
            }
            (Some(kind), _) => kind,
            (None, Some(_)) => SearchKind::Hybrid,
            (None, None) => SearchKind::Keyword,
        };
        let store = runs::open_to_read(self.store.as_deref(), &config)?;
        let numbers = match &embedder {
            Some(embedder) if kind != SearchKind::Keyword => embedder
                .embed(&[&self.query])
                .map_err(|source| Failure::Upstream { source })?
                .swap_remove(0),
            _ => Vec::new(),
        };
        let vector = Vector {
            model: embedder.as_ref().map_or("", |embedder| &embedder.model),
            numbers: &numbers,
        };
        let absolute = self.path.as_deref().map(Path::new);
        let absolute = absolute.filter(|path| path.is_absolute());
        let known = match (&store, absolute) {
            (Some(store), Some(_)) => repositories(&**store)?,
            _ => Vec::new(),
        };
        let scope = self.scope(absolute, &known);
        let query = Query {
            search: match kind {
                SearchKind::Keyword => How::Keyword(&self.query),
                SearchKind::Semantic => How::Semantic(vector),
                SearchKind::Hybrid => How::Hybrid(&self.query, vector),
            },
            filter: Filter {
                repository: scope.repository,
                language: self.language.as_deref(),
                path: scope.path.as_ref(),
            },
            limit: self.limit,
        };
        let hits = match &store {
            Some(store) => self.find(&**store, &query, embedder.as_ref())?,
            None => Vec::new(),
        };
        self.print(&hits, &words)?;
        let has_semantic_hit = hits.iter().any(|hit| hit.semantic.is_some());
        if let (Some(embedder), false) =
            (&embedder, kind == SearchKind::Keyword || has_semantic_hit)
        {
            notes.note(format_args!(
                "no semantic hits: the index may have no vectors of `{}`",
                embedder.model
            ));
            notes.hint("create vectors with `overlock index DIR --embed MODEL`");
        } else if hits.is_empty() && !self.json {
            notes.note("nothing found");
            notes.hint("index source code with `overlock index DIR`");
        }
        Ok(Ending::done_if(!hits.is_empty()))
    }

    /// The repository and path to search. An absolute path is mapped to its repository.
    fn scope<'a>(
        &'a self,
        absolute: Option<&Path>,
        known: &'a [RepositorySummary],
    ) -> SearchScope<'a> {
        let repository = self.repository.as_deref();
        let absolute = absolute.map(|path| path.canonicalize().unwrap_or(path.into()));
        let owners = known
            .iter()
            .filter(|known| repository.is_none_or(|name| name == known.name));
        let owners = owners.filter_map(|known| {
            let inside = absolute
                .as_ref()?
                .strip_prefix(known.folder.as_ref()?)
                .ok()?;
            Some((known, inside.to_str()?))
        });
        // The innermost of nested folders, unless a repository is given.
        match owners.min_by_key(|(_, inside)| inside.len()) {
            Some((owner, inside)) => SearchScope {
                repository: Some(&owner.name),
                path: Some(PathPattern::new(inside)),
            },
            None => SearchScope {
                repository,
                path: self.path.as_deref().map(PathPattern::new),
            },
        }
    }

    /// Searches. Without hits, a repository or path that does not exist is an error.
    fn find(
        &self,
        store: &dyn Store,
        query: &Query<'_>,
        embedder: Option<&Embedder>,
    ) -> Result<Vec<Hit>, Failure> {
        let failed = |source| match embedder {
            Some(embedder) => embedder.store_failure(source),
            None => Failure::Store { source },
        };
        let hits = store.search(query).map_err(failed)?;
        if !hits.is_empty() {
            return Ok(hits);
        }
        let repository = query.filter.repository;
        if repository.is_some() {
            check_repository(store, repository)?;
        }
        let known = repositories(store)?;
        let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
        if let (Some(pattern), Some(asked)) = (query.filter.path, &self.path) {
            let searched = names
                .iter()
                .filter(|name| repository.is_none_or(|asked| asked == **name));
            for name in searched {
                let files = store.files(name).map_err(failed)?;
                if files.iter().any(|file| pattern.matches(&file.path)) {
                    return Ok(hits);
                }
            }
            if !names.is_empty() {
                return Err(unknown_path(asked));
            }
        }
        Ok(hits)
    }

    fn print(&self, hits: &[Hit], words: &[String]) -> Result<(), Failure> {
        let mut results = Results::new();
        if self.json {
            let hits = hits.iter().map(|hit| HitReport::new(hit, words)).collect();
            return results.object(&SearchReport { hits });
        }
        let first = hits.first().map(|hit| &hit.node.repository);
        let names_repository = hits.iter().any(|hit| Some(&hit.node.repository) != first);
        for hit in hits {
            print_hit(hit, words, names_repository, &mut results)?;
        }
        Ok(())
    }
}

impl<'a> HitReport<'a> {
    fn new(hit: &'a Hit, words: &[String]) -> Self {
        let node = &hit.node;
        let matches = matches(&node.text, node.lines.0, words);
        Self {
            id: node.id.as_str(),
            repository: &node.repository,
            path: &node.path,
            line: line_of(node.lines.0, &matches),
            first_line: node.lines.0,
            last_line: node.lines.1,
            kind: node.kind.as_str(),
            name: &node.name,
            qualified: &node.qualified,
            language: &node.language,
            score: hit.score,
            keyword_rank: hit.keyword,
            semantic_rank: hit.semantic,
            matches,
            text: &node.text,
        }
    }
}

fn repositories(store: &dyn Store) -> Result<Vec<RepositorySummary>, Failure> {
    let all = store.repositories();
    all.map_err(|source| Failure::Store { source })
}

struct SearchScope<'a> {
    repository: Option<&'a str>,
    path: Option<PathPattern>,
}

/// No indexed file matches the path; the hint explains how paths are read.
fn unknown_path(path: &str) -> Failure {
    let hint = if Path::new(path).is_absolute() {
        "no indexed folder contains this path; give a path relative to the indexed folder, as in \
         `src/Order.cs`"
    } else if path.contains(['[', ']', '{', '}', '!']) {
        "in a pattern, `*`, `?` and `**` are wildcards, as in `src/**/*.cs`; `[`, `{` and `!` are not"
    } else {
        "give a file, a folder or a pattern relative to the indexed folder, as in `src/**/*.cs`"
    };
    Failure::Usage {
        message: format!("no indexed file matches the path `{path}`"),
        hint: hint.into(),
    }
}

/// The first line with a match, if its number is known.
fn line_of(first: u32, matches: &[Match<'_>]) -> u32 {
    matches.iter().find_map(|one| one.line).unwrap_or(first)
}

fn print_hit(
    hit: &Hit,
    words: &[String],
    names_repository: bool,
    results: &mut Results,
) -> Result<(), Failure> {
    const SHOWN: usize = 3;
    let node = &hit.node;
    let matches = matches(&node.text, node.lines.0, words);
    let line = line_of(node.lines.0, &matches);
    let repository = if names_repository {
        format!("{}: ", draw::plain(&node.repository))
    } else {
        String::new()
    };
    results.line(&format!(
        "{STRONG}{repository}{}:{line}{STRONG:#}  {} {}  {FAINT}{:.4}{FAINT:#}",
        draw::plain(&node.path),
        node.kind,
        draw::plain(&node.qualified),
        hit.score
    ))?;
    let room = draw::terminal_width().saturating_sub(10);
    for found in matches.iter().take(SHOWN) {
        let number = found.line.map_or(String::new(), |line| line.to_string());
        let text = draw::head(found.text.trim().as_bytes(), room).text;
        results.line(&format!(
            "{FAINT}{number:>7}{FAINT:#}  {}",
            marked(&text, words)
        ))?;
    }
    Ok(())
}

/// The words of a query, in lower case.
fn words(query: &str) -> Vec<String> {
    let words = query.split(|c: char| !c.is_alphanumeric() && c != '_');
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// The lines of a text that contain some of the words, those with the most words first.
fn matches<'a>(text: &'a str, first: u32, words: &[String]) -> Vec<Match<'a>> {
    const MOST: usize = 20;
    let mut number = Some(first);
    let mut found = Vec::new();
    for line in text.lines() {
        let lower = line.to_lowercase();
        let count = words
            .iter()
            .filter(|word| lower.contains(word.as_str()))
            .count();
        if count > 0 {
            found.push((
                count,
                Match {
                    line: number,
                    text: line,
                },
            ));
        }
        // `… 4 lines` replaces a body, so the line numbers after it are unknown.
        let is_known = !line.contains("… ");
        number = number
            .filter(|_| is_known)
            .and_then(|number| number.checked_add(1));
    }
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    found
        .into_iter()
        .take(MOST)
        .map(|(_, found)| found)
        .collect()
}

/// The line with the words highlighted.
fn marked(line: &str, words: &[String]) -> String {
    let lower: Vec<char> = line
        .chars()
        .map(|c| c.to_lowercase().next().unwrap_or(c))
        .collect();
    let mut is_marked = vec![false; lower.len()];
    for word in words {
        let word: Vec<char> = word.chars().collect();
        let starts = lower
            .windows(word.len())
            .enumerate()
            .filter(|(_, window)| **window == *word);
        for (start, _) in starts {
            is_marked[start..start + word.len()].fill(true);
        }
    }
    let mut out = String::with_capacity(line.len());
    let mut in_mark = false;
    for (character, &is_marked) in line.chars().zip(&is_marked) {
        if is_marked != in_mark {
            out.push_str(&if is_marked {
                NEW.render().to_string()
            } else {
                NEW.render_reset().to_string()
            });
            in_mark = is_marked;
        }
        out.push(character);
    }
    if in_mark {
        out.push_str(&NEW.render_reset().to_string());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Match, marked, matches, words};

    #[test]
    fn lines_with_the_most_words_come_first() {
        let text = "class Order\n{\n    void Close(Order order) { … 4 lines }\n    int Order;\n}";
        let found = matches(text, 10, &words("close order"));
        let expected = [
            (Some(12), "    void Close(Order order) { … 4 lines }"),
            (Some(10), "class Order"),
            (None, "    int Order;"),
        ];
        assert_eq!(found, expected.map(|(line, text)| Match { line, text }));
    }

    #[test]
    fn highlights_words_in_any_case() {
        let shown = marked("OrderÄ order", &words("order"));
        assert_eq!(
            anstream::adapter::strip_str(&shown).to_string(),
            "OrderÄ order"
        );
        assert_eq!(shown.matches("\u{1b}[32m").count(), 2);
        assert_eq!(marked("nothing", &words("order")), "nothing");
    }
}
