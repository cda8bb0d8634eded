//! `overlock search`: where an index speaks of something.

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

/// Search what `overlock index` has kept
///
/// By words: those nodes first that have all of them, `order service` finds `OrderService`. By
/// meaning, or by both, if the index has vectors: give the model that made them with --embed.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock search 'close order'\n  \
    $ overlock search --type hybrid --embed nomic-embed-text --path 'src/**/*.cs' 'who is billed'\n\n\
    Exit codes: 0 found; 1 nothing found; 2 bad usage, or no such store or repository.")]
pub(crate) struct Search {
    /// What to look for
    #[arg(value_name = "QUERY")]
    query: String,
    /// How: by words, by meaning, or by both [default: keyword, with --embed hybrid]
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    kind: Option<Kind>,
    /// Only in this repository
    #[arg(long, value_name = "NAME")]
    repository: Option<String>,
    /// Only in this language: `sql`, `dotnet` or `unknown`
    #[arg(long, value_name = "LANGUAGE", value_parser = ["sql", "dotnet", "unknown"])]
    language: Option<String>,
    /// Only in files whose path is this, begins with this folder, or looks like this: `src/**/*.cs`;
    /// from the root of the repository on, or a whole path into the folder that was indexed
    #[arg(long, value_name = "PATTERN")]
    path: Option<String>,
    /// How many at most, from 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Where the index is kept [default: `store.url`, else runs.db in the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    embedding: EmbeddingSource,
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// By words
    Keyword,
    /// By meaning
    Semantic,
    /// By both
    Hybrid,
}

/// The answer to machines.
#[derive(Serialize)]
struct Answer<'a> {
    hits: Vec<FoundNode<'a>>,
}

#[derive(Serialize)]
struct FoundNode<'a> {
    id: &'a str,
    repository: &'a str,
    path: &'a str,
    /// Where it says what was looked for, else where it begins.
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

/// A line that holds some of what was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Match<'a> {
    /// Its number in the file, unless something was left out before it.
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
                message: "there is no word to look for".into(),
                hint: "give a word or more, as in `overlock search 'close order'`".into(),
            });
        }
        let embedder = self.embedding.open(&config)?;
        let kind = match (self.kind, &embedder) {
            (Some(Kind::Semantic | Kind::Hybrid), None) => {
                return Err(Failure::Usage {
                    message: "search by meaning needs the model that made the vectors".into(),
                    hint: "give it with --embed MODEL, or search by --type keyword".into(),
                });
            }
            (Some(kind), _) => kind,
            (None, Some(_)) => Kind::Hybrid,
            (None, None) => Kind::Keyword,
        };
        let store = runs::open_to_read(self.store.as_deref(), &config)?;
        let numbers = match &embedder {
            Some(embedder) if kind != Kind::Keyword => embedder
                .embed(&[&self.query])
                .map_err(|source| Failure::Upstream { source })?
                .swap_remove(0),
            _ => Vec::new(),
        };
        let vector = Vector {
            model: embedder.as_ref().map_or("", |embedder| &embedder.model),
            numbers: &numbers,
        };
        let whole = self.path.as_deref().map(Path::new);
        let whole = whole.filter(|path| path.is_absolute());
        let known = match (&store, whole) {
            (Some(store), Some(_)) => repositories(&**store)?,
            _ => Vec::new(),
        };
        let place = self.place(whole, &known);
        let query = Query {
            search: match kind {
                Kind::Keyword => How::Keyword(&self.query),
                Kind::Semantic => How::Semantic(vector),
                Kind::Hybrid => How::Hybrid(&self.query, vector),
            },
            filter: Filter {
                repository: place.repository,
                language: self.language.as_deref(),
                path: place.path.as_ref(),
            },
            limit: self.limit,
        };
        let hits = match &store {
            Some(store) => self.find(&**store, &query, embedder.as_ref())?,
            None => Vec::new(),
        };
        self.tell(&hits, &words)?;
        let is_by_meaning = hits.iter().any(|hit| hit.semantic.is_some());
        if let (Some(embedder), false) = (&embedder, kind == Kind::Keyword || is_by_meaning) {
            notes.note(format_args!(
                "nothing was found by meaning: there may be no vectors of `{}`",
                embedder.model
            ));
            notes.hint("`overlock index DIR --embed MODEL` makes them");
        } else if hits.is_empty() && !self.json {
            notes.note("nothing was found");
            notes.hint("`overlock index DIR` keeps what is searched");
        }
        Ok(Ending::whole_if(!hits.is_empty()))
    }

    /// Where to look. A whole path into a folder that was indexed is one of its repository.
    fn place<'a>(&'a self, whole: Option<&Path>, known: &'a [RepositorySummary]) -> Place<'a> {
        let repository = self.repository.as_deref();
        let whole = whole.map(|path| path.canonicalize().unwrap_or(path.into()));
        let owners = known
            .iter()
            .filter(|known| repository.is_none_or(|name| name == known.name));
        let owners = owners.filter_map(|known| {
            let inside = whole.as_ref()?.strip_prefix(known.folder.as_ref()?).ok()?;
            Some((known, inside.to_str()?))
        });
        // Of folders in one another the innermost, unless one of them is asked for.
        match owners.min_by_key(|(_, inside)| inside.len()) {
            Some((owner, inside)) => Place {
                repository: Some(&owner.name),
                path: Some(PathPattern::new(inside)),
            },
            None => Place {
                repository,
                path: self.path.as_deref().map(PathPattern::new),
            },
        }
    }

    /// What is found. That nothing is says little of a place that is not there.
    fn find(
        &self,
        store: &dyn Store,
        query: &Query<'_>,
        embedder: Option<&Embedder>,
    ) -> Result<Vec<Hit>, Failure> {
        let failed = |source| match embedder {
            Some(embedder) => embedder.unfit(source),
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
                return Err(no_path(asked));
            }
        }
        Ok(hits)
    }

    fn tell(&self, hits: &[Hit], words: &[String]) -> Result<(), Failure> {
        let mut results = Results::new();
        if self.json {
            let hits = hits.iter().map(|hit| FoundNode::new(hit, words)).collect();
            return results.object(&Answer { hits });
        }
        let first = hits.first().map(|hit| &hit.node.repository);
        let is_several = hits.iter().any(|hit| Some(&hit.node.repository) != first);
        for hit in hits {
            show(hit, words, is_several, &mut results)?;
        }
        Ok(())
    }
}

impl<'a> FoundNode<'a> {
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

/// Where to look.
struct Place<'a> {
    repository: Option<&'a str>,
    path: Option<PathPattern>,
}

/// No file is there, and what was given may mean something else than it was taken for.
fn no_path(asked: &str) -> Failure {
    let hint = if Path::new(asked).is_absolute() {
        "paths are relative to the folder that was indexed, as in `src/Order.cs`; no indexed folder \
         holds this one"
    } else if asked.contains(['[', ']', '{', '}', '!']) {
        "in a pattern `*`, `?` and `**` stand for others, as in `src/**/*.cs`; `[`, `{` and `!` only \
         for themselves"
    } else {
        "give a file, a folder or a pattern as it is seen from the folder that was indexed, as in \
         `src/**/*.cs`"
    };
    Failure::Usage {
        message: format!("no file that was indexed has a path like `{asked}`"),
        hint: hint.into(),
    }
}

/// The first line that holds what was looked for, if its number is known.
fn line_of(first: u32, matches: &[Match<'_>]) -> u32 {
    matches.iter().find_map(|one| one.line).unwrap_or(first)
}

fn show(
    hit: &Hit,
    words: &[String],
    is_several: bool,
    results: &mut Results,
) -> Result<(), Failure> {
    /// Enough to see what it is about.
    const SHOWN: usize = 3;
    let node = &hit.node;
    let matches = matches(&node.text, node.lines.0, words);
    let line = line_of(node.lines.0, &matches);
    let of = if is_several {
        format!("{}: ", draw::plain(&node.repository))
    } else {
        String::new()
    };
    results.line(&format!(
        "{STRONG}{of}{}:{line}{STRONG:#}  {} {}  {FAINT}{:.4}{FAINT:#}",
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

/// The lines of a text that hold some of the words, those with the most of them first.
fn matches<'a>(text: &'a str, first: u32, words: &[String]) -> Vec<Match<'a>> {
    /// More are no longer about what was looked for.
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
        // After what was left out nobody knows how many lines there were.
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

/// A line in which the words stand out.
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
    let mut was = false;
    for (character, &is) in line.chars().zip(&is_marked) {
        if is != was {
            out.push_str(&if is {
                NEW.render().to_string()
            } else {
                NEW.render_reset().to_string()
            });
            was = is;
        }
        out.push(character);
    }
    if was {
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
    fn words_stand_out_whatever_their_case() {
        let shown = marked("OrderÄ order", &words("order"));
        assert_eq!(
            anstream::adapter::strip_str(&shown).to_string(),
            "OrderÄ order"
        );
        assert_eq!(shown.matches("\u{1b}[32m").count(), 2);
        assert_eq!(marked("nothing", &words("order")), "nothing");
    }
}
