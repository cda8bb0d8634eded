//! Finds nodes in `PostgreSQL`, by words, by vectors and by both.
//!
//! The words of a node are a `tsvector`, made here as every engine makes them: those of its name
//! weigh more than those of its text. Words that are everywhere would make a search slow without
//! making it better: no more than so many nodes are weighed, and those are taken first that are
//! called as the query says.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use tokio_postgres::Row;

use super::connection::Connection;
use super::nodes::{self, NODE};
use super::text::{given, kept};
use super::vectors;
use crate::error::StoreError;
use crate::fusion::ranked;
use crate::naming;
use crate::nodes::{Filter, Hit, NewNode, Query};
use crate::words;

/// How many nodes are weighed against one another.
const WEIGHED: i64 = 1_000;

/// How many are if all words of a query are everywhere, and tell hardly anything.
const FEW: i64 = 300;

/// So many nodes have a word that says little.
const MANY: f64 = 1_000.0;

/// A word that so many nodes are thought to have is not counted: what the server thinks rests on a
/// sample, and is not far off.
const SURELY_MANY: i64 = 2 * WEIGHED;

/// What a word is worth in the text of a node, and in its name.
const WEIGHTS: &str = "'{0.125, 0, 0, 1}'";

/// More of the same word says no more.
const MOST_PLACES: usize = 16;

/// The last place that a `tsvector` can tell.
const LAST_PLACE: usize = 16_383;

/// So many bytes of words a `tsvector` takes, with a little room.
const MOST_BYTES: usize = 1_000_000;

/// The words of a node as `PostgreSQL` reads them. Of a text that has more different words than can
/// be kept the first are.
pub(super) fn words(node: &NewNode) -> String {
    let name = words::of_name(&node.name);
    let body = words::of_text(&format!("{} {}", node.qualified, node.text));
    let marked: Vec<String> = name.split(' ').map(named).collect();
    let marked = marked.iter().map(|word| (word.as_str(), ""));
    let called = name.split(' ').map(|word| (word, "A"));
    let said = body.split(' ').map(|word| (word, ""));
    let mut known: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    let mut size = 0;
    for (place, (word, weight)) in (1..).zip(marked.chain(called).chain(said)) {
        if word.is_empty() || word == NAMED {
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
        let places = known.entry(word).or_default();
        if places.len() < MOST_PLACES {
            places.push((place.min(LAST_PLACE), weight));
            size += cost;
        }
    }
    let mut written = String::with_capacity(2 * size);
    for (word, places) in known {
        let _ = write!(written, "'{word}'"); // a string takes everything
        for (number, (place, weight)) in places.into_iter().enumerate() {
            let sign = if number == 0 { ':' } else { ',' };
            let _ = write!(written, "{sign}{place}{weight}");
        }
        written.push(' ');
    }
    written
}

/// What stands before a word of a name, to be looked for without looking at the node: an index does
/// not know weights.
const NAMED: &str = "n.";

fn named(word: &str) -> String {
    format!("{NAMED}{word}")
}

/// Where nodes are looked for.
pub(super) struct Place {
    pub(super) repository: Option<i64>,
    pub(super) language: Option<String>,
    /// The files, if a path is asked for.
    pub(super) files: Option<Vec<i64>>,
}

impl Place {
    /// Reads a filter; nothing if it lets nothing through.
    fn of(connection: &Connection, filter: &Filter<'_>) -> Result<Option<Self>, StoreError> {
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
                    if pattern.matches(&given(row.try_get("path")?)) {
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
            language: filter.language.map(|language| kept(language).into_owned()),
            files,
        }))
    }

    pub(super) fn is_everywhere(&self) -> bool {
        self.repository.is_none() && self.language.is_none() && self.files.is_none()
    }
}

/// What a place is to a statement, after its other values.
const IN_PLACE: &str = "($1::bigint IS NULL OR repository = $1) \
     AND ($2::text IS NULL OR language = $2) AND ($3::bigint[] IS NULL OR file = ANY ($3))";

/// The nodes that answer a query best.
pub(super) fn search(connection: &Connection, query: &Query<'_>) -> Result<Vec<Hit>, StoreError> {
    let Some(place) = Place::of(connection, &query.filter)? else {
        return Ok(Vec::new());
    };
    let found = ranked(
        query,
        |text, count| by_words(connection, text, &place, count),
        |vector, count| vectors::nearest(connection, vector, &place, count),
    )?;
    let keys: Vec<i64> = found.iter().map(|found| found.node).collect();
    let rows = connection.query(&format!("{NODE} WHERE nodes.key = ANY ($1)"), &[&keys])?;
    let mut nodes: HashMap<i64, &Row> = rows.iter().map(|row| (row.get("key"), row)).collect();
    // What is gone since it was found is left out.
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

/// The nodes with the words of a query: those that are called so, those with all of its words, and
/// those with any of the rarest.
fn by_words(
    connection: &Connection,
    query: &str,
    place: &Place,
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let words = words::of_query(query);
    if words.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let index = Index { connection, place };
    let mut list = List {
        nodes: Vec::new(),
        known: HashSet::new(),
        limit,
    };
    list.add(3.0, index.called(query)?);
    let counted = index.count(&words)?;
    let is_there = counted.iter().all(|(_, count)| *count > 0);
    if !list.is_full() && is_there {
        let is_everywhere = counted.iter().all(|(_, count)| *count > WEIGHED);
        if is_everywhere {
            let names: Vec<String> = words.iter().map(|word| named(word)).collect();
            list.add(2.0, index.weigh(&all(&names), &counted, FEW)?);
        }
        if !list.is_full() {
            let most = if is_everywhere { FEW } else { WEIGHED };
            list.add(1.0, index.weigh(&all(&words), &counted, most)?);
        }
    }
    if !list.is_full() && words.len() > 1 {
        let rarest = rarest(&counted);
        if !rarest.is_empty() {
            let is_everywhere = counted
                .iter()
                .all(|(_, count)| *count == 0 || *count > WEIGHED);
            let most = if is_everywhere { FEW } else { WEIGHED };
            list.add(0.0, index.weigh(&rarest.join(" | "), &counted, most)?);
        }
    }
    Ok(list.nodes)
}

/// A query for nodes that have all words.
fn all(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" & ")
}

/// A word as it is taken for nothing else; it has only letters and figures, and a dot if it is one of
/// a name.
fn quoted(word: &str) -> String {
    format!("'{word}'")
}

/// As many of the rarest words as can be weighed.
fn rarest(counted: &[(String, i64)]) -> Vec<String> {
    let mut counted: Vec<&(String, i64)> = counted.iter().filter(|(_, count)| *count > 0).collect();
    counted.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    let mut room = WEIGHED;
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

/// Nodes that come one after the other, each once.
struct List {
    nodes: Vec<(i64, f64)>,
    known: HashSet<i64>,
    limit: usize,
}

impl List {
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

/// The index of words, as far as it is about a place.
struct Index<'a> {
    connection: &'a Connection,
    place: &'a Place,
}

impl Index<'_> {
    /// The nodes that are called just as the query says.
    fn called(&self, query: &str) -> Result<Vec<(i64, f64)>, StoreError> {
        let names = [naming::last_name(query.trim()), words::joined(query)];
        let names: HashSet<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let all = "SELECT key, name FROM repositories WHERE $1::bigint IS NULL OR key = $1";
        let mut wanted: Vec<i64> = Vec::new();
        for row in self.connection.query(all, &[&self.place.repository])? {
            let repository = given(row.try_get("name")?);
            wanted.extend(
                names
                    .iter()
                    .map(|name| naming::fingerprint(&repository, name)),
            );
        }
        let rows = self.connection.query(
            &format!(
                "SELECT key FROM nodes WHERE {IN_PLACE} AND last_name = ANY ($4) \
                 ORDER BY key LIMIT {WEIGHED}"
            ),
            &[
                &self.place.repository,
                &self.place.language,
                &self.place.files,
                &wanted,
            ],
        )?;
        Ok(rows.iter().map(|row| (row.get("key"), 0.0)).collect())
    }

    /// How many nodes have each word, wherever they are, as far as that matters.
    ///
    /// Even to count up to a limit the server reads all that its index has of a word. So it is only
    /// asked to count words that it does not know to be common since it last looked.
    fn count(&self, words: &[String]) -> Result<Vec<(String, i64)>, StoreError> {
        let queries: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let most = WEIGHED + 1;
        let rows = self.connection.query(
            &format!(
                "WITH common AS MATERIALIZED (SELECT common.word FROM pg_stats, pg_class, \
                 unnest(most_common_elems::text::text[], most_common_elem_freqs) \
                 AS common (word, share) \
                 WHERE schemaname = current_schema() AND tablename = 'nodes' \
                 AND attname = 'words' AND pg_class.oid = 'nodes'::regclass \
                 AND common.share * reltuples > {SURELY_MANY}) \
                 SELECT CASE WHEN wanted.word IN (SELECT word FROM common) THEN {most} \
                 ELSE (SELECT count(*) FROM (SELECT 1 FROM nodes \
                 WHERE words @@ wanted.query::tsquery LIMIT {most}) AS found) END AS count \
                 FROM unnest($1::text[], $2::text[]) WITH ORDINALITY \
                 AS wanted (word, query, place) ORDER BY place"
            ),
            &[&words, &queries],
        )?;
        let counts = rows.iter().map(|row| row.get("count"));
        Ok(words.iter().cloned().zip(counts).collect())
    }

    /// The nodes that are found, by weight: the rarer a word, the more it counts.
    fn weigh(
        &self,
        wanted: &str,
        counted: &[(String, i64)],
        most: i64,
    ) -> Result<Vec<(i64, f64)>, StoreError> {
        let queries: Vec<String> = counted.iter().map(|(word, _)| quoted(word)).collect();
        let worth = counted.iter().map(|(_, count)| {
            let count = f64::from(u32::try_from(*count).unwrap_or(u32::MAX));
            (1.0 + 2.0 * MANY / (count + 0.5)).ln()
        });
        let worth: Vec<f64> = worth.collect();
        let rows = self.connection.query(
            &format!(
                "SELECT key, (SELECT sum(worth * ts_rank({WEIGHTS}, words, word::tsquery, 1)) \
                 FROM unnest($5::text[], $6::float8[]) AS wanted (word, worth)) AS weight \
                 FROM (SELECT key, words FROM nodes WHERE {IN_PLACE} \
                 AND words @@ $4::text::tsquery LIMIT $7) AS found \
                 ORDER BY weight DESC, key"
            ),
            &[
                &self.place.repository,
                &self.place.language,
                &self.place.files,
                &wanted,
                &queries,
                &worth,
                &most,
            ],
        )?;
        let found = rows
            .iter()
            .map(|row| Ok((row.try_get("key")?, row.try_get("weight")?)));
        found.collect()
    }
}
