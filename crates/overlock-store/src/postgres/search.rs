//! Keyword search in `PostgreSQL`, and the merge with vector search.
//!
//! The words of a node are in a `tsvector`, in which words of its name weigh more than words of its
//! text. Common words would make a search slow without making it better, so only a limited number of
//! nodes is ranked, those with the words in their name first.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use tokio_postgres::Row;

use super::nodes::{self, NODE};
use super::pool::Connection;
use super::text::{escaped, unescaped};
use super::vectors;
use crate::error::StoreError;
use crate::fusion::{Tiers, ranked};
use crate::naming;
use crate::nodes::{Filter, Hit, NewNode, Query};
use crate::words;

/// The number of nodes that are ranked. A word in more nodes is common.
const MOST_RANKED: i64 = 1_000;

/// The number of nodes that are ranked if all words are common.
const MOST_RANKED_COMMON: i64 = 300;

/// The number of nodes from which a word counts little in the ranking.
const FREQUENT: f64 = 1_000.0;

/// A word with a higher estimate in the statistics of the server is not counted.
const SURELY_COMMON: i64 = 2 * MOST_RANKED;

/// The weight of a word in the text, and of one in the name.
const WEIGHTS: &str = "'{0.125, 0, 0, 1}'";

/// The most positions of one word.
const MOST_POSITIONS: usize = 16;

/// The greatest position in a `tsvector`.
const LAST_POSITION: usize = 16_383;

/// A little less than the size limit of a `tsvector`.
const MOST_BYTES: usize = 1_000_000;

/// The words of a node in the text format of a `tsvector`. Words beyond the size limit are left out.
pub(super) fn words(node: &NewNode) -> String {
    let name = words::of_name(&node.name);
    let body = words::of_text(&format!("{} {}", node.qualified, node.text));
    let prefixed: Vec<String> = name.split(' ').map(in_name).collect();
    let prefixed = prefixed.iter().map(|word| (word.as_str(), ""));
    let name = name.split(' ').map(|word| (word, "A"));
    let body = body.split(' ').map(|word| (word, ""));
    let mut known: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    let mut size = 0;
    for (position, (word, weight)) in (1..).zip(prefixed.chain(name).chain(body)) {
        if word.is_empty() || word == IN_NAME {
            continue;
        }
        let cost = if known.contains_key(word) {
            2
        } else {
            word.len() + 8
        };
        if size + cost > MOST_BYTES {
            continue;
        }
        let positions = known.entry(word).or_default();
        if positions.len() < MOST_POSITIONS {
            positions.push((position.min(LAST_POSITION), weight));
            size += cost;
        }
    }
    let mut written = String::with_capacity(2 * size);
    for (word, positions) in known {
        let _ = write!(written, "'{word}'"); // writing to a string cannot fail
        for (number, (position, weight)) in positions.into_iter().enumerate() {
            let sign = if number == 0 { ':' } else { ',' };
            let _ = write!(written, "{sign}{position}{weight}");
        }
        written.push(' ');
    }
    written
}

/// The prefix of words of a name. A GIN index does not contain weights, so a search for words in names
/// needs words of their own.
const IN_NAME: &str = "n.";

fn in_name(word: &str) -> String {
    format!("{IN_NAME}{word}")
}

/// A filter with the keys of its repository and files.
pub(super) struct RowFilter {
    pub(super) repository: Option<i64>,
    pub(super) language: Option<String>,
    /// The matching files, if the filter has a path.
    pub(super) files: Option<Vec<i64>>,
}

impl RowFilter {
    /// Looks up the keys of a filter; nothing if it matches no node.
    fn new(connection: &Connection, filter: &Filter<'_>) -> Result<Option<Self>, StoreError> {
        let repository = match filter.repository {
            Some(name) => match nodes::repository(connection, name)? {
                None => return Ok(None),
                found => found,
            },
            None => None,
        };
        let files = match filter.path {
            None => None,
            Some(pattern) => {
                let rows = connection.query(
                    "SELECT key, path FROM files WHERE $1::bigint IS NULL OR repository = $1",
                    &[&repository],
                )?;
                let mut files = Vec::new();
                for row in &rows {
                    if pattern.matches(&unescaped(row.try_get("path")?)) {
                        files.push(row.try_get("key")?);
                    }
                }
                if files.is_empty() {
                    return Ok(None);
                }
                Some(files)
            }
        };
        Ok(Some(Self {
            repository,
            language: filter
                .language
                .map(|language| escaped(language).into_owned()),
            files,
        }))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.repository.is_none() && self.language.is_none() && self.files.is_none()
    }
}

/// The condition of a [`RowFilter`], which is in the first three parameters.
const MATCHES_FILTER: &str = "($1::bigint IS NULL OR repository = $1) \
     AND ($2::text IS NULL OR language = $2) AND ($3::bigint[] IS NULL OR file = ANY ($3))";

/// The best nodes for a query.
pub(super) fn search(connection: &Connection, query: &Query<'_>) -> Result<Vec<Hit>, StoreError> {
    let Some(filter) = RowFilter::new(connection, &query.filter)? else {
        return Ok(Vec::new());
    };
    let found = ranked(
        query,
        |text, count| by_words(connection, text, &filter, count),
        |vector, count| vectors::nearest(connection, vector, &filter, count),
    )?;
    let keys: Vec<i64> = found.iter().map(|found| found.node).collect();
    let rows = connection.query(&format!("{NODE} WHERE nodes.key = ANY ($1)"), &[&keys])?;
    let mut nodes: HashMap<i64, &Row> = rows.iter().map(|row| (row.get("key"), row)).collect();
    // Nodes that were removed meanwhile are left out.
    let hits = found.into_iter().filter_map(|found| {
        let row = nodes.remove(&found.node)?;
        Some(nodes::node(row).map(|node| Hit {
            node,
            score: found.score,
            keyword: found.keyword,
            semantic: found.semantic,
        }))
    });
    hits.collect()
}

/// The nodes with the words of a query: first those with that name, then those with all words, then
/// those with any of the rarest words.
fn by_words(
    connection: &Connection,
    query: &str,
    filter: &RowFilter,
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let words = words::of_query(query);
    if words.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let index = WordIndex { connection, filter };
    let every = |_| Ok(true); // the statements contain the filter
    let mut list = Tiers::new(limit);
    list.add(index.with_name(query)?, every)?;
    let counted = index.count(&words)?;
    let are_common = counted
        .iter()
        .all(|(_, count)| *count == 0 || *count > MOST_RANKED);
    let most = if are_common {
        MOST_RANKED_COMMON
    } else {
        MOST_RANKED
    };
    if !list.is_full() && counted.iter().all(|(_, count)| *count > 0) {
        if are_common {
            let names: Vec<String> = words.iter().map(|word| in_name(word)).collect();
            list.add(index.rank(&all(&names), &counted, most)?, every)?;
        }
        if !list.is_full() {
            list.add(index.rank(&all(&words), &counted, most)?, every)?;
        }
    }
    let rarest = rarest(&counted);
    if !list.is_full() && words.len() > 1 && !rarest.is_empty() {
        list.add(index.rank(&rarest.join(" | "), &counted, most)?, every)?;
    }
    Ok(list.nodes)
}

/// A query for nodes that have all words.
fn all(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" & ")
}

/// A quoted word. It has only letters and digits, and a dot after [`IN_NAME`].
fn quoted(word: &str) -> String {
    format!("'{word}'")
}

/// As many of the rarest words as can be ranked.
fn rarest(counted: &[(String, i64)]) -> Vec<String> {
    let mut counted: Vec<&(String, i64)> = counted.iter().filter(|(_, count)| *count > 0).collect();
    counted.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    let mut room = MOST_RANKED;
    let mut rarest = Vec::new();
    for (word, count) in counted {
        if *count > room && !rarest.is_empty() {
            break;
        }
        room -= (*count).min(room);
        rarest.push(quoted(word));
    }
    rarest
}

/// The index of words, restricted by a filter.
struct WordIndex<'a> {
    connection: &'a Connection,
    filter: &'a RowFilter,
}

impl WordIndex<'_> {
    /// The nodes with the query as their name.
    fn with_name(&self, query: &str) -> Result<Vec<(i64, f64)>, StoreError> {
        let names = [naming::last_name(query.trim()), words::joined(query)];
        let names: HashSet<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let all = "SELECT key, name FROM repositories WHERE $1::bigint IS NULL OR key = $1";
        let mut wanted: Vec<i64> = Vec::new();
        for row in self.connection.query(all, &[&self.filter.repository])? {
            let repository = unescaped(row.try_get("name")?);
            wanted.extend(
                names
                    .iter()
                    .map(|name| naming::fingerprint(&repository, name)),
            );
        }
        let rows = self.connection.query(
            &format!(
                "SELECT key FROM nodes WHERE {MATCHES_FILTER} AND last_name = ANY ($4) \
                 ORDER BY key LIMIT {MOST_RANKED}"
            ),
            &[
                &self.filter.repository,
                &self.filter.language,
                &self.filter.files,
                &wanted,
            ],
        )?;
        Ok(rows.iter().map(|row| (row.get("key"), 0.0)).collect())
    }

    /// The number of nodes with each word in the whole store, up to the limit for common words.
    ///
    /// Even to count up to a limit, the server reads all index entries of a word. So words that are
    /// common according to its statistics are not counted.
    fn count(&self, words: &[String]) -> Result<Vec<(String, i64)>, StoreError> {
        let queries: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let most = MOST_RANKED + 1;
        let rows = self.connection.query(
            &format!(
                "WITH common AS MATERIALIZED (SELECT common.word FROM pg_stats, pg_class, \
                 unnest(most_common_elems::text::text[], most_common_elem_freqs) \
                 AS common (word, share) \
                 WHERE schemaname = current_schema() AND tablename = 'nodes' \
                 AND attname = 'words' AND pg_class.oid = 'nodes'::regclass \
                 AND common.share * reltuples > {SURELY_COMMON}) \
                 SELECT CASE WHEN query.word IN (SELECT word FROM common) THEN {most} \
                 ELSE (SELECT count(*) FROM (SELECT 1 FROM nodes \
                 WHERE words @@ query.query::tsquery LIMIT {most}) AS found) END AS count \
                 FROM unnest($1::text[], $2::text[]) WITH ORDINALITY \
                 AS query (word, query, number) ORDER BY number"
            ),
            &[&words, &queries],
        )?;
        let counts = rows.iter().map(|row| row.get("count"));
        Ok(words.iter().cloned().zip(counts).collect())
    }

    /// The nodes that match a query, by rank: the rarer a word, the more it counts.
    fn rank(
        &self,
        query: &str,
        counted: &[(String, i64)],
        most: i64,
    ) -> Result<Vec<(i64, f64)>, StoreError> {
        let queries: Vec<String> = counted.iter().map(|(word, _)| quoted(word)).collect();
        let weights = counted.iter().map(|(_, count)| {
            let count = f64::from(u32::try_from(*count).unwrap_or(u32::MAX));
            (1.0 + 2.0 * FREQUENT / (count + 0.5)).ln()
        });
        let weights: Vec<f64> = weights.collect();
        let rows = self.connection.query(
            &format!(
                "SELECT key, (SELECT sum(weight * ts_rank({WEIGHTS}, words, word::tsquery, 1)) \
                 FROM unnest($5::text[], $6::float8[]) AS query (word, weight)) AS rank \
                 FROM (SELECT key, words FROM nodes WHERE {MATCHES_FILTER} \
                 AND words @@ $4::text::tsquery LIMIT $7) AS found \
                 ORDER BY rank DESC, key"
            ),
            &[
                &self.filter.repository,
                &self.filter.language,
                &self.filter.files,
                &query,
                &queries,
                &weights,
                &most,
            ],
        )?;
        let found = rows
            .iter()
            .map(|row| Ok((row.try_get("key")?, row.try_get("rank")?)));
        found.collect()
    }
}
