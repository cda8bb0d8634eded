//! Finds nodes in SQLite, by words, by vectors and by both.
//!
//! The words of a node are in an index of FTS5, which has columns for its name, its text, and for
//! where it is, so that a filter costs no more than another word. Words that are everywhere would
//! make a search slow without making it better: no more than so many nodes are weighed, and those
//! are taken first that are called as the query says.

use std::collections::{HashMap, HashSet};

use rusqlite::{Transaction, params};

use super::nodes;
use super::vectors::{self, Codes};
use crate::error::StoreError;
use crate::naming;
use crate::nodes::{Filter, Hit, NewNode, Query, Search, Vector};
use crate::paths::{self, PathPattern};
use crate::words;

/// How many nodes are weighed against one another.
const WEIGHED: u32 = 3_000;

/// How many nodes are looked at for those in the right files, if the index cannot tell.
const LOOKED_AT: u32 = 20_000;

/// How many of each list come into the common one, at least.
const FUSED: usize = 60;

/// How much less the first places of a list mean (reciprocal rank fusion).
const DAMPING: f64 = 60.0;

/// A word in the name of a node counts as much as so many in its text.
const WEIGHTS: &str = "0.0, 8.0, 1.0";

/// Adds a node to the index.
pub(super) fn add(
    transaction: &Transaction<'_>,
    key: i64,
    repository: i64,
    path: &str,
    node: &NewNode,
) -> Result<(), StoreError> {
    let mut places = vec![of_repository(repository), of_language(&node.language)];
    places.extend(paths::extension(path).map(of_extension));
    let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
    places.extend(folders.chain([path]).map(of_folder));
    let name = words::of_name(&node.name);
    let body = words::of_text(&format!("{} {}", node.qualified, node.text));
    transaction
        .prepare_cached("INSERT INTO words (rowid, place, name, body) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![key, places.join(" "), name, body])?;
    Ok(())
}

/// Takes a node out of the index.
pub(super) fn remove(transaction: &Transaction<'_>, key: i64) -> Result<(), StoreError> {
    transaction
        .prepare_cached("DELETE FROM words WHERE rowid = ?1")?
        .execute([key])?;
    Ok(())
}

/// A number for a text, which few others have.
pub(super) fn number(text: &str) -> i64 {
    naming::fingerprint("", text)
}

fn of_repository(key: i64) -> String {
    format!("r{key}")
}

fn of_language(language: &str) -> String {
    format!("l{:x}", number(language))
}

fn of_extension(extension: &str) -> String {
    format!("x{:x}", number(extension))
}

fn of_folder(path: &str) -> String {
    format!("f{:x}", number(path))
}

/// Where nodes are looked for.
pub(super) struct Place {
    /// The words of the index that say so.
    words: Vec<String>,
    language: Option<i64>,
    /// The files, if words cannot say which.
    files: Option<HashSet<i64>>,
}

impl Place {
    /// Reads a filter; nothing if it lets nothing through.
    fn of(
        transaction: &Transaction<'_>,
        filter: &Filter<'_>,
        needs_files: bool,
    ) -> Result<Option<Self>, StoreError> {
        let mut place = Self {
            words: Vec::new(),
            language: filter.language.map(number),
            files: None,
        };
        let mut repository = None;
        if let Some(name) = filter.repository {
            repository = nodes::repository(transaction, name)?;
            let Some(key) = repository else {
                return Ok(None);
            };
            place.words.push(of_repository(key));
        }
        place.words.extend(filter.language.map(of_language));
        if let Some(pattern) = filter.path {
            if !pattern.folder().is_empty() {
                place.words.push(of_folder(pattern.folder()));
            }
            place.words.extend(pattern.extension().map(of_extension));
        }
        let is_plain = filter.path.is_none_or(PathPattern::is_folder);
        if !is_plain || needs_files && (filter.path.is_some() || repository.is_some()) {
            let files = files(transaction, repository, filter.path)?;
            if files.is_empty() {
                return Ok(None);
            }
            place.files = Some(files);
        }
        Ok(Some(place))
    }

    /// Whether a node of this file and language is looked for.
    pub(super) fn holds(&self, file: i64, language: i64) -> bool {
        self.language.is_none_or(|wanted| wanted == language)
            && self
                .files
                .as_ref()
                .is_none_or(|files| files.contains(&file))
    }

    /// What the index is asked for: nodes in this place with what is wanted of them.
    fn and(&self, wanted: &str) -> String {
        let places = self.words.iter().map(|word| format!("place : {word} AND "));
        format!("{}({wanted})", places.collect::<String>())
    }
}

fn files(
    transaction: &Transaction<'_>,
    repository: Option<i64>,
    pattern: Option<&PathPattern>,
) -> Result<HashSet<i64>, StoreError> {
    let mut select = transaction
        .prepare_cached("SELECT key, path FROM files WHERE ?1 IS NULL OR repository = ?1")?;
    let mut rows = select.query([repository])?;
    let mut files = HashSet::new();
    while let Some(row) = rows.next()? {
        let path = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        if pattern.is_none_or(|pattern| pattern.matches(path)) {
            files.insert(row.get(0)?);
        }
    }
    Ok(files)
}

/// The nodes that answer a query best.
pub(super) fn search(
    transaction: &Transaction<'_>,
    codes: &Codes,
    query: &Query<'_>,
) -> Result<Vec<Hit>, StoreError> {
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let keyword = |text: &str, count| {
        let place = Place::of(transaction, &query.filter, false)?;
        place.map_or(Ok(Vec::new()), |place| {
            by_words(transaction, text, &place, &query.filter, count)
        })
    };
    let semantic = |vector: Vector<'_>, count| {
        let place = Place::of(transaction, &query.filter, true)?;
        place.map_or(Ok(Vec::new()), |place| {
            vectors::nearest(transaction, codes, vector, &place, count)
        })
    };
    let mut found = match query.search {
        Search::Keyword(text) => ranked(&keyword(text, limit)?, &[], |_, score| score),
        Search::Semantic(vector) => ranked(&[], &semantic(vector, limit)?, |_, score| score),
        Search::Hybrid(text, vector) => {
            let count = limit.max(FUSED);
            ranked(
                &keyword(text, count)?,
                &semantic(vector, count)?,
                |rank, _| 1.0 / (DAMPING + f64::from(rank)),
            )
        }
    };
    found.truncate(limit);
    let hits = found.into_iter().map(|found| {
        Ok(Hit {
            node: nodes::node(transaction, found.node)?,
            score: found.score,
            keyword: found.keyword,
            semantic: found.semantic,
        })
    });
    hits.collect()
}

/// A node that was found by one list or by both.
struct Found {
    node: i64,
    score: f64,
    keyword: Option<u32>,
    semantic: Option<u32>,
}

/// One list of two, by the sum of what each place and its score are worth.
fn ranked(
    by_words: &[(i64, f64)],
    by_vectors: &[(i64, f64)],
    worth: impl Fn(u32, f64) -> f64,
) -> Vec<Found> {
    let mut places: HashMap<i64, usize> = HashMap::new();
    let mut found: Vec<Found> = Vec::new();
    for (is_by_words, list) in [(true, by_words), (false, by_vectors)] {
        for (rank, (node, score)) in (1..).zip(list) {
            let place = *places.entry(*node).or_insert(found.len());
            if place == found.len() {
                found.push(Found {
                    node: *node,
                    score: 0.0,
                    keyword: None,
                    semantic: None,
                });
            }
            let found = &mut found[place];
            found.score += worth(rank, *score);
            let list = if is_by_words {
                &mut found.keyword
            } else {
                &mut found.semantic
            };
            *list = Some(rank);
        }
    }
    // Equals stay in the order they were found in.
    found.sort_by(|one, other| other.score.total_cmp(&one.score));
    found
}

/// The nodes with the words of a query: those that are called so, those with all of its words, and
/// those with any of the rarest.
fn by_words(
    transaction: &Transaction<'_>,
    query: &str,
    place: &Place,
    filter: &Filter<'_>,
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let words = words::of_query(query);
    if words.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let index = Index { transaction, place };
    let mut list = List::new(limit);
    list.add(3.0, called(transaction, query, place, filter, limit)?);
    let all = quoted(&words).join(" AND ");
    let is_everywhere = index.count(&all)? > WEIGHED;
    if is_everywhere {
        list.add(2.0, index.weigh(&format!("name : ({all})"))?);
    }
    if !list.is_full() {
        list.add(1.0, index.weigh(&all)?);
    }
    if !list.is_full() && words.len() > 1 {
        let rarest = index.rarest(&words)?;
        if !rarest.is_empty() {
            list.add(0.0, index.weigh(&rarest.join(" OR "))?);
        }
    }
    Ok(list.nodes)
}

/// Words as the index takes them for nothing else.
fn quoted(words: &[String]) -> Vec<String> {
    words.iter().map(|word| format!("\"{word}\"")).collect()
}

/// Nodes that come one after the other, each once.
struct List {
    nodes: Vec<(i64, f64)>,
    known: HashSet<i64>,
    limit: usize,
}

impl List {
    fn new(limit: usize) -> Self {
        Self {
            nodes: Vec::new(),
            known: HashSet::new(),
            limit,
        }
    }

    fn is_full(&self) -> bool {
        self.nodes.len() >= self.limit
    }

    /// Adds those that are not there yet behind those that are. Their scores are brought to less
    /// than 1 above the base, so that the order of the list is that of its scores.
    fn add(&mut self, base: f64, nodes: Vec<(i64, f64)>) {
        for (node, score) in nodes {
            if self.is_full() {
                return;
            }
            if self.known.insert(node) {
                self.nodes.push((node, base + score / (1.0 + score)));
            }
        }
    }
}

/// The nodes that are called just as the query says.
fn called(
    transaction: &Transaction<'_>,
    query: &str,
    place: &Place,
    filter: &Filter<'_>,
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let mut select = transaction.prepare_cached("SELECT name FROM repositories")?;
    let all = select.query_map([], |row| row.get(0))?;
    let repositories: Vec<String> = match filter.repository {
        Some(repository) => vec![repository.to_owned()],
        None => all.collect::<Result<_, _>>()?,
    };
    let names = HashSet::from([naming::last_name(query.trim()), words::joined(query)]);
    let mut found = Vec::new();
    let mut select = transaction.prepare_cached(
        "SELECT nodes.key, nodes.file, nodes.language, files.path FROM nodes \
         JOIN files ON files.key = nodes.file WHERE last_name = ?1 ORDER BY nodes.key LIMIT ?2",
    )?;
    for repository in &repositories {
        for name in &names {
            let name = naming::fingerprint(repository, name);
            let mut rows = select.query(params![name, WEIGHED])?;
            while let Some(row) = rows.next()? {
                let language = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
                let path = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
                let is_there = place.holds(row.get(1)?, number(language))
                    && filter.path.is_none_or(|pattern| pattern.matches(path));
                if is_there && found.len() < limit {
                    found.push((row.get(0)?, 0.0));
                }
            }
        }
    }
    Ok(found)
}

/// The index of words, as far as it is about a place.
struct Index<'a> {
    transaction: &'a Transaction<'a>,
    place: &'a Place,
}

impl Index<'_> {
    /// How many nodes are found, as far as that matters.
    fn count(&self, wanted: &str) -> Result<u32, StoreError> {
        let mut count = self.transaction.prepare_cached(
            "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?2)",
        )?;
        let wanted = self.place.and(wanted);
        Ok(count.query_row(params![wanted, WEIGHED + 1], |row| row.get(0))?)
    }

    /// As many of the rarest words as can be weighed.
    fn rarest(&self, words: &[String]) -> Result<Vec<String>, StoreError> {
        let mut counted = Vec::new();
        for word in quoted(words) {
            counted.push((self.count(&word)?, word));
        }
        counted.retain(|(count, _)| *count > 0);
        counted.sort();
        let mut room = WEIGHED;
        let mut rarest = Vec::new();
        for (count, word) in counted {
            if count > room && !rarest.is_empty() {
                break;
            }
            room = room.saturating_sub(count);
            rarest.push(word);
        }
        Ok(rarest)
    }

    /// The nodes that are found, by weight.
    fn weigh(&self, wanted: &str) -> Result<Vec<(i64, f64)>, StoreError> {
        let wanted = self.place.and(wanted);
        let mut found: Vec<(i64, f64)> = match &self.place.files {
            None => {
                let mut select = self.transaction.prepare_cached(&format!(
                    "SELECT rowid, -bm25(words, {WEIGHTS}) FROM words WHERE words MATCH ?1 LIMIT ?2"
                ))?;
                let found = select.query_map(params![wanted, WEIGHED], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
                found.collect::<Result<_, _>>()?
            }
            Some(files) => self.weigh_in(files, &wanted)?,
        };
        found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        Ok(found)
    }

    fn weigh_in(&self, files: &HashSet<i64>, wanted: &str) -> Result<Vec<(i64, f64)>, StoreError> {
        let mut select = self.transaction.prepare_cached(&format!(
            "SELECT words.rowid, nodes.file, -bm25(words, {WEIGHTS}) FROM words \
             CROSS JOIN nodes ON nodes.key = words.rowid WHERE words MATCH ?1 LIMIT ?2"
        ))?;
        let mut rows = select.query(params![wanted, LOOKED_AT])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            if files.contains(&row.get(1)?) {
                found.push((row.get(0)?, row.get(2)?));
                if found.len() == WEIGHED as usize {
                    break;
                }
            }
        }
        Ok(found)
    }
}
