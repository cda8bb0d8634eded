//! Keyword search in SQLite, and the merge with vector search.
//!
//! The words of a node are in an FTS5 index with columns for its name, its text and its place. To rank
//! by a word, FTS5 counts all nodes that have it, so a common word makes a search slow without making
//! it better. So only rare words are ranked. Of the nodes that have only common words, a limited number
//! is ranked, those with the words in their name first.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{Transaction, params};

use super::nodes;
use super::vectors::{self, Codes};
use crate::error::StoreError;
use crate::fusion::{Tiers, ranked};
use crate::naming;
use crate::nodes::{Filter, Hit, NewNode, Query};
use crate::paths::{self, PathPattern};
use crate::words;

/// A word in more nodes than this is common.
const COMMON: u32 = 3_000;

/// The number of nodes that are ranked if all words are common.
const MOST_RANKED: u32 = 1_000;

/// A filter with more nodes than this is checked for each result instead of in the index.
const WIDE: u32 = 20_000;

/// The number of common words that are ranked.
const MOST_RANKED_WORDS: usize = 3;

/// The weights of the columns: a word in the name counts eight times as much as one in the text.
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

/// Removes a node from the index.
pub(super) fn remove(transaction: &Transaction<'_>, key: i64) -> Result<(), StoreError> {
    transaction
        .prepare_cached("DELETE FROM words WHERE rowid = ?1")?
        .execute([key])?;
    Ok(())
}

/// A hash of a text.
pub(super) fn hash(text: &str) -> i64 {
    naming::fingerprint("", text)
}

fn of_repository(key: i64) -> String {
    format!("r{key}")
}

fn of_language(language: &str) -> String {
    format!("l{:x}", hash(language))
}

fn of_extension(extension: &str) -> String {
    format!("x{:x}", hash(extension))
}

fn of_folder(path: &str) -> String {
    format!("f{:x}", hash(path))
}

/// A filter with the key of its repository.
pub(super) struct IndexFilter<'a> {
    repository: Option<i64>,
    language: Option<&'a str>,
    path: Option<&'a PathPattern>,
}

impl<'a> IndexFilter<'a> {
    /// Looks up the repository of a filter; nothing if it is unknown.
    fn new(transaction: &Transaction<'_>, filter: &Filter<'a>) -> Result<Option<Self>, StoreError> {
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

    fn is_empty(&self) -> bool {
        (self.repository, self.language).eq(&(None, None)) && self.path.is_none()
    }

    /// Whether a node matches.
    fn matches(&self, transaction: &Transaction<'_>, node: i64) -> Result<bool, StoreError> {
        if self.is_empty() {
            return Ok(true);
        }
        let mut select = transaction.prepare_cached(
            "SELECT files.repository, nodes.language, files.path \
             FROM nodes JOIN files ON files.key = nodes.file WHERE nodes.key = ?1",
        )?;
        let matches = select.query_row([node], |row| {
            let repository: i64 = row.get(0)?;
            let (language, path) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
            Ok(self.repository.is_none_or(|key| key == repository)
                && self.language.is_none_or(|name| name == language)
                && self.path.is_none_or(|pattern| pattern.matches(path)))
        });
        Ok(matches?)
    }

    /// An FTS5 query that restricts the results, as far as the index can; nothing if there are too many
    /// such nodes for it to save time.
    fn fts_query(&self, transaction: &Transaction<'_>) -> Result<Option<String>, StoreError> {
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

    /// The hash of the language.
    pub(super) fn language(&self) -> Option<i64> {
        self.language.map(hash)
    }

    /// The matching files; nothing if all match.
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

/// The best nodes for a query.
pub(super) fn search(
    transaction: &Transaction<'_>,
    codes: &Codes,
    query: &Query<'_>,
) -> Result<Vec<Hit>, StoreError> {
    let Some(filter) = IndexFilter::new(transaction, &query.filter)? else {
        return Ok(Vec::new());
    };
    let found = ranked(
        query,
        |text, count| by_words(transaction, text, &filter, count),
        |vector, count| vectors::nearest(transaction, codes, vector, &filter, count),
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

/// The nodes with the words of a query: first those with that name, then those with all words, then
/// those with any of the rarest words.
fn by_words(
    transaction: &Transaction<'_>,
    query: &str,
    filter: &IndexFilter<'_>,
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let words = words::of_query(query);
    if words.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let matches = |node| filter.matches(transaction, node);
    let mut list = Tiers::new(limit);
    list.add(with_name(transaction, query)?, matches)?;
    if list.is_full() {
        return Ok(list.nodes);
    }
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let counted = counted(transaction, &words)?;
    let rarest = rarest(&counted);
    if rarest.is_empty() {
        add_common(&mut list, transaction, filter, &counted)?;
        return Ok(list.nodes);
    }
    // Nodes with all words are among those with the rare ones.
    let found = rank(transaction, &rarest.join(" OR "), COMMON)?;
    let complete = find(transaction, &words.join(" AND "), COMMON)?;
    let (all, any): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|(node, _)| complete.contains(node));
    list.add(all, matches)?;
    list.add(any, matches)?;
    Ok(list.nodes)
}

/// Adds nodes if all words are common: first those with the words in their name, then those with all
/// words, then those with some.
fn add_common(
    list: &mut Tiers,
    transaction: &Transaction<'_>,
    filter: &IndexFilter<'_>,
    counted: &[(u32, &str)],
) -> Result<(), StoreError> {
    let words: Vec<&str> = counted.iter().map(|(_, word)| *word).collect();
    if words.is_empty() {
        return Ok(());
    }
    let matches = |node| filter.matches(transaction, node);
    let restriction = filter.fts_query(transaction)?;
    let restricted = |query: String| match &restriction {
        Some(restriction) => format!("{restriction} AND ({query})"),
        None => query,
    };
    let all = words.join(" AND ");
    let in_name = restricted(format!("name : ({all})"));
    list.add(rank(transaction, &in_name, MOST_RANKED)?, matches)?;
    if list.is_full() {
        return Ok(());
    }
    let ranked = &words[..words.len().min(MOST_RANKED_WORDS)];
    let all_ranked = restricted(ranked.join(" AND "));
    let mut found = rank(transaction, &all_ranked, MOST_RANKED)?;
    if words.len() > MOST_RANKED_WORDS {
        let complete = find(transaction, &restricted(all), COMMON)?;
        found.retain(|(node, _)| complete.contains(node));
    }
    list.add(found, matches)?;
    if list.is_full() || words.len() == 1 {
        return Ok(());
    }
    let any_ranked = restricted(ranked.join(" OR "));
    list.add(rank(transaction, &any_ranked, MOST_RANKED)?, matches)
}

/// The nodes with the query as their name.
fn with_name(transaction: &Transaction<'_>, query: &str) -> Result<Vec<(i64, f64)>, StoreError> {
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
            let nodes =
                select.query_map(params![name, MOST_RANKED], |row| Ok((row.get(0)?, 0.0)))?;
            found.extend(nodes.collect::<Result<Vec<_>, _>>()?);
        }
    }
    Ok(found)
}

/// The words that occur, the rarest first, with the number of nodes up to the limit for common words.
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

/// The rarest words, as many as can be ranked together.
fn rarest<'a>(counted: &[(u32, &'a str)]) -> Vec<&'a str> {
    let mut room = COMMON;
    let rarest = counted.iter().take_while(|(nodes, _)| {
        let fits = *nodes <= room;
        room = room.saturating_sub(*nodes);
        fits
    });
    rarest.map(|(_, word)| *word).collect()
}

/// The number of nodes that match an FTS5 query, up to a limit.
fn count(transaction: &Transaction<'_>, query: &str, limit: u32) -> Result<u32, StoreError> {
    let mut count = transaction.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?2)",
    )?;
    Ok(count.query_row(params![query, limit], |row| row.get(0))?)
}

/// The nodes that match an FTS5 query, by rank.
fn rank(
    transaction: &Transaction<'_>,
    query: &str,
    limit: u32,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let mut select = transaction.prepare_cached(&format!(
        "SELECT rowid, -bm25(words, {WEIGHTS}) FROM words WHERE words MATCH ?1 LIMIT ?2"
    ))?;
    let found = select.query_map(params![query, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut found: Vec<(i64, f64)> = found.collect::<Result<_, _>>()?;
    found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    Ok(found)
}

/// The nodes that match an FTS5 query.
fn find(
    transaction: &Transaction<'_>,
    query: &str,
    limit: u32,
) -> Result<HashSet<i64>, StoreError> {
    let mut select =
        transaction.prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1 LIMIT ?2")?;
    let found = select.query_map(params![query, limit], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}
