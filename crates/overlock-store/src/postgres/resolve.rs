//! Resolves mentions to edges in `PostgreSQL`, as far as something has changed.

use std::collections::{BTreeSet, HashMap};

use tokio_postgres::Row;

use super::nodes;
use super::parsed;
use super::pool::Connection;
use super::text::unescaped;
use crate::error::StoreError;
use crate::naming::{self, Candidate, Reference};
use crate::nodes::{Resolved, Scope};

/// The number of files, or names, in one statement.
const BATCH: usize = 1_000;

/// The number of changed files from which statistics are updated: the planner needs them, and keyword
/// search finds common words in them.
const ANALYZE_FILES: usize = 100;

/// Selects mentions.
const MENTION: &str = "SELECT mentions.key, mentions.node, nodes.qualified, mentions.kind, \
     mentions.is_near, mentions.name, mentions.last_name, nodes.kind AS from_kind, files.imports \
     FROM mentions JOIN nodes ON nodes.key = mentions.node JOIN files ON files.key = nodes.file";

/// Mentions in new or changed files, which have no edges yet.
const NEW: &str = "WHERE nodes.file = ANY ($1)";

/// Mentions of added or removed names, in files that have not changed.
const CHANGED: &str =
    "WHERE mentions.last_name = ANY ($1) AND files.repository = $2 AND files.is_resolved";

/// Resolves all mentions that need it.
pub(super) fn resolve(connection: &Connection, repository: &str) -> Result<Resolved, StoreError> {
    let Some(repository) = nodes::repository(connection, repository)? else {
        return Ok(Resolved::default());
    };
    let keys = |statement: &str| -> Result<Vec<i64>, StoreError> {
        let rows = connection.query(statement, &[&repository])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    };
    let files = keys("SELECT key FROM files WHERE repository = $1 AND NOT is_resolved")?;
    // Without resolved files, there are no edges to update.
    let names = keys(
        "SELECT last_name FROM changed_names WHERE repository = $1 \
         AND EXISTS (SELECT 1 FROM files WHERE repository = $1 AND is_resolved)",
    )?;
    if files.len() >= ANALYZE_FILES {
        connection.batch(
            "ANALYZE files, nodes (key, file, last_name, words), mentions (key, node, last_name), edges",
        )?;
    }
    let mut resolving = Resolving {
        connection,
        candidates: HashMap::new(),
        resolved: Resolved::default(),
    };
    for files in files.chunks(BATCH) {
        let rows = connection.query(&format!("{MENTION} {NEW}"), &[&files])?;
        resolving.resolve(&rows)?;
    }
    for names in names.chunks(BATCH) {
        let rows = connection.query(&format!("{MENTION} {CHANGED}"), &[&names, &repository])?;
        remove(connection, &rows)?;
        resolving.resolve(&rows)?;
    }
    for statement in [
        "UPDATE files SET is_resolved = true WHERE repository = $1 AND NOT is_resolved",
        "DELETE FROM changed_names WHERE repository = $1",
    ] {
        connection.execute(statement, &[&repository])?;
    }
    Ok(resolving.resolved)
}

/// The progress, with the nodes of each last name that was looked up.
struct Resolving<'a> {
    connection: &'a Connection,
    candidates: HashMap<i64, Vec<Candidate>>,
    resolved: Resolved,
}

impl Resolving<'_> {
    fn resolve(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        look_up(self.connection, rows, &mut self.candidates)?;
        self.resolved.mentions += rows.len() as u64;
        self.resolved.edges += add(self.connection, rows, &self.candidates)?;
        Ok(())
    }
}

/// Removes the edges of these mentions.
fn remove(connection: &Connection, rows: &[Row]) -> Result<(), StoreError> {
    let sources: Vec<i64> = rows.iter().map(|row| row.get("node")).collect();
    let mentions: Vec<i64> = rows.iter().map(|row| row.get("key")).collect();
    connection.execute(
        "DELETE FROM edges USING unnest($1::bigint[], $2::bigint[]) AS removed (source, mention) \
         WHERE edges.source = removed.source AND edges.mention = removed.mention",
        &[&sources, &mentions],
    )?;
    Ok(())
}

/// Looks up the nodes with the last names of these mentions, each name once.
fn look_up(
    connection: &Connection,
    rows: &[Row],
    known: &mut HashMap<i64, Vec<Candidate>>,
) -> Result<(), StoreError> {
    let names = rows.iter().map(|row| row.get("last_name"));
    let wanted: BTreeSet<i64> = names.filter(|name| !known.contains_key(name)).collect();
    let wanted: Vec<i64> = wanted.into_iter().collect();
    known.extend(wanted.iter().map(|name| (*name, Vec::new())));
    let most = i64::from(naming::MOST_CANDIDATES) + 1;
    let rows = connection.query(
        "SELECT wanted.name AS last_name, node.key, node.id, node.kind, node.qualified \
         FROM unnest($1::bigint[]) AS wanted (name) CROSS JOIN LATERAL ( \
         SELECT key, id, kind, qualified FROM nodes WHERE last_name = wanted.name LIMIT $2) AS node",
        &[&wanted, &most],
    )?;
    for row in &rows {
        let candidates = known.entry(row.try_get("last_name")?).or_default();
        candidates.push(Candidate {
            key: row.try_get("key")?,
            id: row.try_get("id")?,
            kind: parsed(row, "kind")?,
            qualified: unescaped(row.try_get("qualified")?),
        });
    }
    Ok(())
}

/// Adds the edges of mentions and returns their number.
fn add(
    connection: &Connection,
    rows: &[Row],
    candidates: &HashMap<i64, Vec<Candidate>>,
) -> Result<u64, StoreError> {
    let (mut sources, mut targets, mut mentions) = (Vec::new(), Vec::new(), Vec::new());
    let mut kinds: Vec<&str> = Vec::new();
    for row in rows {
        let source: i64 = row.try_get("node")?;
        let (from, name) = (
            unescaped(row.try_get("qualified")?),
            unescaped(row.try_get("name")?),
        );
        let is_near: bool = row.try_get("is_near")?;
        let imports = unescaped(row.try_get("imports")?);
        let reference = Reference {
            from: &from,
            from_kind: parsed(row, "from_kind")?,
            imports: &imports,
            kind: parsed(row, "kind")?,
            name: &name,
            scope: if is_near {
                Scope::Nearest
            } else {
                Scope::Anywhere
            },
        };
        let last_name: i64 = row.try_get("last_name")?;
        let candidates = candidates.get(&last_name).map_or(&[][..], Vec::as_slice);
        for target in naming::targets(&reference, candidates) {
            // A node has no edge to itself.
            if target.key != source {
                sources.push(source);
                targets.push(target.key);
                mentions.push(row.try_get::<_, i64>("key")?);
                kinds.push(naming::edge_kind(&reference, target).as_str());
            }
        }
    }
    let added = connection.execute(
        "INSERT INTO edges (source, target, mention, kind) \
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])",
        &[&sources, &targets, &mentions, &kinds],
    )?;
    Ok(added)
}
