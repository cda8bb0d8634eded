//! Makes edges of mentions in `PostgreSQL`, as many as have changed.

use std::collections::{BTreeSet, HashMap};

use tokio_postgres::Row;

use super::connection::Connection;
use super::nodes;
use super::parsed;
use super::text::given;
use crate::error::StoreError;
use crate::naming::{self, Candidate, Wanted};
use crate::nodes::{Resolved, Scope};

/// So many files, and so many names, are looked at together.
const TOGETHER: usize = 1_000;

/// From so many files on the server is told to count again what it has, or it would not know how to
/// find anything in it, nor which words are everywhere.
const MANY: usize = 100;

/// What is known of a mention.
const MENTION: &str = "SELECT mentions.key, mentions.node, nodes.qualified, mentions.kind, \
     mentions.is_near, mentions.name, mentions.last_name, nodes.kind AS from_kind, files.imports \
     FROM mentions JOIN nodes ON nodes.key = mentions.node JOIN files ON files.key = nodes.file";

/// Mentions of files that came or changed, which have no edges yet.
const NEW: &str = "WHERE nodes.file = ANY ($1)";

/// Mentions of names that have come to be or are gone, in files that have not changed.
const CHANGED: &str =
    "WHERE mentions.last_name = ANY ($1) AND files.repository = $2 AND files.is_resolved";

/// Makes edges of mentions.
pub(super) fn resolve(connection: &Connection, repository: &str) -> Result<Resolved, StoreError> {
    let Some(repository) = nodes::repository(connection, repository)? else {
        return Ok(Resolved::default());
    };
    let keys = |statement: &str| -> Result<Vec<i64>, StoreError> {
        let rows = connection.query(statement, &[&repository])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    };
    let files = keys("SELECT key FROM files WHERE repository = $1 AND NOT is_resolved")?;
    // What no file was looked at for cannot have changed.
    let names = keys(
        "SELECT last_name FROM changed_names WHERE repository = $1 \
         AND EXISTS (SELECT 1 FROM files WHERE repository = $1 AND is_resolved)",
    )?;
    if files.len() >= MANY {
        connection.batch(
            "ANALYZE files, nodes (key, file, last_name, words), mentions (key, node, last_name), edges",
        )?;
    }
    let mut resolving = Resolving {
        connection,
        bearers: HashMap::new(),
        resolved: Resolved::default(),
    };
    for files in files.chunks(TOGETHER) {
        let rows = connection.query(&format!("{MENTION} {NEW}"), &[&files])?;
        resolving.take(&rows)?;
    }
    for names in names.chunks(TOGETHER) {
        let rows = connection.query(&format!("{MENTION} {CHANGED}"), &[&names, &repository])?;
        remove(connection, &rows)?;
        resolving.take(&rows)?;
    }
    for statement in [
        "UPDATE files SET is_resolved = true WHERE repository = $1 AND NOT is_resolved",
        "DELETE FROM changed_names WHERE repository = $1",
    ] {
        connection.execute(statement, &[&repository])?;
    }
    Ok(resolving.resolved)
}

/// What was done, and what is known by now.
struct Resolving<'a> {
    connection: &'a Connection,
    bearers: HashMap<i64, Vec<Candidate>>,
    resolved: Resolved,
}

impl Resolving<'_> {
    fn take(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        look_up(self.connection, rows, &mut self.bearers)?;
        self.resolved.mentions += rows.len() as u64;
        self.resolved.edges += add(self.connection, rows, &self.bearers)?;
        Ok(())
    }
}

/// Takes away what these mentions came to before.
fn remove(connection: &Connection, rows: &[Row]) -> Result<(), StoreError> {
    let sources: Vec<i64> = rows.iter().map(|row| row.get("node")).collect();
    let mentions: Vec<i64> = rows.iter().map(|row| row.get("key")).collect();
    connection.execute(
        "DELETE FROM edges USING unnest($1::bigint[], $2::bigint[]) AS gone (source, mention) \
         WHERE edges.source = gone.source AND edges.mention = gone.mention",
        &[&sources, &mentions],
    )?;
    Ok(())
}

/// Finds the nodes that bear the names of these mentions, each name once.
fn look_up(
    connection: &Connection,
    rows: &[Row],
    known: &mut HashMap<i64, Vec<Candidate>>,
) -> Result<(), StoreError> {
    let names = rows.iter().map(|row| row.get("last_name"));
    let wanted: BTreeSet<i64> = names.filter(|name| !known.contains_key(name)).collect();
    let wanted: Vec<i64> = wanted.into_iter().collect();
    known.extend(wanted.iter().map(|name| (*name, Vec::new())));
    let most = i64::from(naming::MOST_BEARERS) + 1;
    let rows = connection.query(
        "SELECT wanted.name AS last_name, bearer.key, bearer.id, bearer.kind, bearer.qualified \
         FROM unnest($1::bigint[]) AS wanted (name) CROSS JOIN LATERAL ( \
         SELECT key, id, kind, qualified FROM nodes WHERE last_name = wanted.name LIMIT $2) AS bearer",
        &[&wanted, &most],
    )?;
    for row in &rows {
        let bearers = known.entry(row.try_get("last_name")?).or_default();
        bearers.push(Candidate {
            key: row.try_get("key")?,
            id: row.try_get("id")?,
            kind: parsed(row, "kind")?,
            qualified: given(row.try_get("qualified")?),
        });
    }
    Ok(())
}

/// Adds the edges that mentions come to; how many.
fn add(
    connection: &Connection,
    rows: &[Row],
    bearers: &HashMap<i64, Vec<Candidate>>,
) -> Result<u64, StoreError> {
    let (mut sources, mut targets, mut mentions) = (Vec::new(), Vec::new(), Vec::new());
    let mut kinds: Vec<&str> = Vec::new();
    for row in rows {
        let source: i64 = row.try_get("node")?;
        let (from, name) = (
            given(row.try_get("qualified")?),
            given(row.try_get("name")?),
        );
        let is_near: bool = row.try_get("is_near")?;
        let imports = given(row.try_get("imports")?);
        let wanted = Wanted {
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
        let candidates = bearers.get(&last_name).map_or(&[][..], Vec::as_slice);
        for target in naming::meant(&wanted, candidates) {
            // Whoever speaks of itself leads nowhere.
            if target.key != source {
                sources.push(source);
                targets.push(target.key);
                mentions.push(row.try_get::<_, i64>("key")?);
                kinds.push(naming::said(&wanted, target).as_str());
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
