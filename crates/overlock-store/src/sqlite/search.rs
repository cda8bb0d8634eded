//! Finds nodes in SQLite, by words, by vectors and by both.
//!
//! The words of a node are in an index of FTS5, which has columns for its name, its text, and for
//! where it is. To weigh a word, FTS5 counts all nodes that have it, so that a common one would make
//! a search slow without making it better: only rare words are weighed, and of nodes that have but
//! common words no more than so many, those first that are called so.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{Transaction, params};

use super::nodes;
use super::vectors::{self, Codes};
use crate::error::StoreError;
use crate::fusion::ranked;
use crate::naming;
use crate::nodes::{Filter, Hit, NewNode, Query};
use crate::paths::{self, PathPattern};
use crate::words;

/// A word that more nodes have is common: it tells hardly anything, and would be counted for long.
const COMMON: u32 = 3_000;

/// How many nodes are weighed where only common words say which.
const WEIGHED: u32 = 1_000;

/// A place that more nodes are in is wide: a node is looked at sooner than all of them are counted.
const WIDE: u32 = 20_000;

/// How many common words are weighed.
const WEIGHED_WORDS: usize = 3;

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

/// Where nodes are looked for, by the keys of what the filter names.
pub(super) struct Place<'a> {
    repository: Option<i64>,
    language: Option<&'a str>,
    path: Option<&'a PathPattern>,
}

impl<'a> Place<'a> {
    /// Reads a filter; nothing if there is no such place.
    fn of(transaction: &Transaction<'_>, filter: &Filter<'a>) -> Result<Option<Self>, StoreError> {
        let mut repository = None;
        if let Some(name) = filter.repository {
            repository = nodes::repository(transaction, name)?;
            if repository.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(Self {
            repository,
            language: filter.language,
            path: filter.path,
        }))
    }

    fn is_everywhere(&self) -> bool {
        (self.repository, self.language).eq(&(None, None)) && self.path.is_none()
    }

    /// Whether a node is here.
    fn holds(&self, transaction: &Transaction<'_>, node: i64) -> Result<bool, StoreError> {
        if self.is_everywhere() {
            return Ok(true);
        }
        let mut select = transaction.prepare_cached(
            "SELECT files.repository, nodes.language, files.path \
             FROM nodes JOIN files ON files.key = nodes.file WHERE nodes.key = ?1",
        )?;
        let holds = select.query_row([node], |row| {
            let repository: i64 = row.get(0)?;
            let (language, path) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
            Ok(self.repository.is_none_or(|wanted| wanted == repository)
                && self.language.is_none_or(|wanted| wanted == language)
                && self.path.is_none_or(|pattern| pattern.matches(path)))
        });
        Ok(holds?)
    }

    /// What the index is asked for to find only nodes of this place, as far as it can tell; nothing
    /// if that would take longer than it saves.
    fn words(&self, transaction: &Transaction<'_>) -> Result<Option<String>, StoreError> {
        let mut words: Vec<String> = Vec::new();
        words.extend(self.repository.map(of_repository));
        words.extend(self.language.map(of_language));
        if let Some(pattern) = self.path {
            let folder = Some(pattern.folder()).filter(|folder| !folder.is_empty());
            words.extend(folder.map(of_folder));
            words.extend(pattern.extension().map(of_extension));
        }
        if words.is_empty() {
            return Ok(None);
        }
        let words = format!("place : ({})", words.join(" AND "));
        let is_wide = count(transaction, &words, WIDE + 1)? > WIDE;
        Ok(Some(words).filter(|_| !is_wide))
    }

    /// The language, as it is kept with the codes of vectors.
    pub(super) fn language(&self) -> Option<i64> {
        self.language.map(number)
    }

    /// The files, if not all of them.
    pub(super) fn files(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<Option<HashSet<i64>>, StoreError> {
        if self.repository.is_none() && self.path.is_none() {
            return Ok(None);
        }
        let mut select = transaction
            .prepare_cached("SELECT key, path FROM files WHERE ?1 IS NULL OR repository = ?1")?;
        let mut rows = select.query([self.repository])?;
        let mut files = HashSet::new();
        while let Some(row) = rows.next()? {
            let path = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
            if self.path.is_none_or(|pattern| pattern.matches(path)) {
                files.insert(row.get(0)?);
            }
        }
        Ok(Some(files))
    }
}

/// The nodes that answer a query best.
pub(super) fn search(
    transaction: &Transaction<'_>,
    codes: &Codes,
    query: &Query<'_>,
) -> Result<Vec<Hit>, StoreError> {
    let Some(place) = Place::of(transaction, &query.filter)? else {
        return Ok(Vec::new());
    };
    let found = ranked(
        query,
        |text, count| by_words(transaction, text, &place, count),
        |vector, count| vectors::nearest(transaction, codes, vector, &place, count),
    )?;
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

/// The nodes with the words of a query: those that are called so, those with all of its words, and
/// those with any of the rarest.
fn by_words(
    transaction: &Transaction<'_>,
    query: &str,
    place: &Place<'_>,
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let words = words::of_query(query);
    if words.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let mut list = List {
        transaction,
        place,
        nodes: Vec::new(),
        known: HashSet::new(),
        limit,
        tier: 4.0,
    };
    list.add(called(transaction, query)?)?;
    if list.is_full() {
        return Ok(list.nodes);
    }
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let counted = counted(transaction, &words)?;
    let rarest = rarest(&counted);
    if rarest.is_empty() {
        add_common(&mut list, &counted)?;
        return Ok(list.nodes);
    }
    // All that have every word have the rare ones.
    let found = weigh(transaction, &rarest.join(" OR "), COMMON)?;
    let complete = find(transaction, &words.join(" AND "), COMMON)?;
    let (all, any): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|(node, _)| complete.contains(node));
    list.add(all)?;
    list.add(any)?;
    Ok(list.nodes)
}

/// Adds nodes with words that are all common: those that are called so, those with all of them, and
/// those with some.
fn add_common(list: &mut List<'_>, counted: &[(u32, &str)]) -> Result<(), StoreError> {
    let words: Vec<&str> = counted.iter().map(|(_, word)| *word).collect();
    if words.is_empty() {
        return Ok(());
    }
    let transaction = list.transaction;
    let place = list.place.words(transaction)?;
    let here = |wanted: String| match &place {
        Some(place) => format!("{place} AND ({wanted})"),
        None => wanted,
    };
    let all = words.join(" AND ");
    list.add(weigh(
        transaction,
        &here(format!("name : ({all})")),
        WEIGHED,
    )?)?;
    if list.is_full() {
        return Ok(());
    }
    let weighed = &words[..words.len().min(WEIGHED_WORDS)];
    let mut found = weigh(transaction, &here(weighed.join(" AND ")), WEIGHED)?;
    if words.len() > WEIGHED_WORDS {
        let complete = find(transaction, &here(all), COMMON)?;
        found.retain(|(node, _)| complete.contains(node));
    }
    list.add(found)?;
    if list.is_full() || words.len() == 1 {
        return Ok(());
    }
    list.add(weigh(transaction, &here(weighed.join(" OR ")), WEIGHED)?)
}

/// Nodes that come one after the other, each once, if it is in the right place.
struct List<'a> {
    transaction: &'a Transaction<'a>,
    place: &'a Place<'a>,
    nodes: Vec<(i64, f64)>,
    known: HashSet<i64>,
    limit: usize,
    tier: f64,
}

impl List<'_> {
    fn is_full(&self) -> bool {
        self.nodes.len() >= self.limit
    }

    /// Adds those that are not there yet behind those that are. Their scores are brought into a tier
    /// below that of the others, so that the order of the list is that of its scores.
    fn add(&mut self, nodes: Vec<(i64, f64)>) -> Result<(), StoreError> {
        for (node, score) in nodes {
            if self.is_full() {
                break;
            }
            if self.known.insert(node) && self.place.holds(self.transaction, node)? {
                self.nodes.push((node, self.tier + score / (1.0 + score)));
            }
        }
        self.tier -= 1.0;
        Ok(())
    }
}

/// The nodes that are called just as the query says.
fn called(transaction: &Transaction<'_>, query: &str) -> Result<Vec<(i64, f64)>, StoreError> {
    let mut select = transaction.prepare_cached("SELECT name FROM repositories ORDER BY key")?;
    let repositories = select.query_map([], |row| row.get(0))?;
    let repositories: Vec<String> = repositories.collect::<Result<_, _>>()?;
    let names = BTreeSet::from([naming::last_name(query.trim()), words::joined(query)]);
    let mut select = transaction
        .prepare_cached("SELECT key FROM nodes WHERE last_name = ?1 ORDER BY key LIMIT ?2")?;
    let mut found = Vec::new();
    for repository in &repositories {
        for name in &names {
            let name = naming::fingerprint(repository, name);
            let nodes = select.query_map(params![name, WEIGHED], |row| Ok((row.get(0)?, 0.0)))?;
            found.extend(nodes.collect::<Result<Vec<_>, _>>()?);
        }
    }
    Ok(found)
}

/// The words that some node has, with how many have them as far as that matters, the rarest first.
fn counted<'a>(
    transaction: &Transaction<'_>,
    words: &'a [String],
) -> Result<Vec<(u32, &'a str)>, StoreError> {
    let mut counted: Vec<(u32, &str)> = Vec::new();
    for word in words {
        counted.push((count(transaction, word, COMMON + 1)?, word));
    }
    counted.retain(|(nodes, _)| *nodes > 0);
    counted.sort_by_key(|(nodes, _)| *nodes);
    Ok(counted)
}

/// The words that are not common, as many of the rarest as can be weighed together.
fn rarest<'a>(counted: &[(u32, &'a str)]) -> Vec<&'a str> {
    let mut room = COMMON;
    let rarest = counted.iter().take_while(|(nodes, _)| {
        let fits = *nodes <= room;
        room = room.saturating_sub(*nodes);
        fits
    });
    rarest.map(|(_, word)| *word).collect()
}

/// How many nodes have what is wanted, as far as the limit.
fn count(transaction: &Transaction<'_>, wanted: &str, limit: u32) -> Result<u32, StoreError> {
    let mut count = transaction.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?2)",
    )?;
    Ok(count.query_row(params![wanted, limit], |row| row.get(0))?)
}

/// The nodes with what is wanted, by weight.
fn weigh(
    transaction: &Transaction<'_>,
    wanted: &str,
    limit: u32,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let mut select = transaction.prepare_cached(&format!(
        "SELECT rowid, -bm25(words, {WEIGHTS}) FROM words WHERE words MATCH ?1 LIMIT ?2"
    ))?;
    let found = select.query_map(params![wanted, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut found: Vec<(i64, f64)> = found.collect::<Result<_, _>>()?;
    found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    Ok(found)
}

/// The nodes with what is wanted.
fn find(
    transaction: &Transaction<'_>,
    wanted: &str,
    limit: u32,
) -> Result<HashSet<i64>, StoreError> {
    let mut select =
        transaction.prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1 LIMIT ?2")?;
    let found = select.query_map(params![wanted, limit], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}
