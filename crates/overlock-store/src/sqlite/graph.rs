//! Follows edges in SQLite. Edges connect the keys of nodes, which are internal.

use std::collections::HashSet;

use rusqlite::{CachedStatement, OptionalExtension, Transaction, params};

use crate::error::StoreError;
use crate::nodes::{Direction, Edge, EdgeKind, NodeId, Reached, Walk};

/// The stored number of a kind, which must never change.
pub(super) fn number(kind: EdgeKind) -> i64 {
    match kind {
        EdgeKind::Calls => 0,
        EdgeKind::References => 1,
        EdgeKind::Inherits => 2,
        EdgeKind::Implements => 3,
        EdgeKind::ReadsTable => 4,
        EdgeKind::WritesTable => 5,
        EdgeKind::Contains => 6,
    }
}

/// The kind with a stored number.
pub(super) fn kind(number: i64) -> Result<EdgeKind, StoreError> {
    let mut kinds = EdgeKind::ALL.iter().copied();
    kinds
        .find(|kind| self::number(*kind) == number)
        .ok_or_else(|| StoreError::Database(format!("unknown kind of edge: {number}").into()))
}

/// The keys of nodes, in the order of their ids. Unknown ids are left out.
pub(super) fn keys(transaction: &Transaction<'_>, ids: &[NodeId]) -> Result<Vec<i64>, StoreError> {
    let mut select = transaction.prepare_cached("SELECT key FROM nodes WHERE id = ?1")?;
    let found = ids.iter().map(|id| key(&mut select, id));
    found.filter_map(Result::transpose).collect()
}

fn key(select: &mut CachedStatement<'_>, id: &NodeId) -> Result<Option<i64>, StoreError> {
    let found = select.query_row([id.as_str()], |row| row.get(0));
    Ok(found.optional()?)
}

/// Keys as a JSON array, to pass any number of them in one parameter.
fn listed(keys: &[i64]) -> String {
    let keys: Vec<String> = keys.iter().map(i64::to_string).collect();
    format!("[{}]", keys.join(","))
}

/// The edges between these nodes.
pub(super) fn edges(
    transaction: &Transaction<'_>,
    among: &[NodeId],
) -> Result<Vec<Edge>, StoreError> {
    let keys = keys(transaction, among)?;
    let mut select = transaction.prepare_cached(
        "WITH among AS MATERIALIZED (SELECT DISTINCT value AS key FROM json_each(?1)) \
         SELECT DISTINCT source.id, edges.kind, target.id FROM among \
         CROSS JOIN edges ON edges.source = among.key \
         JOIN nodes AS source ON source.key = edges.source \
         JOIN nodes AS target ON target.key = edges.target \
         WHERE edges.target IN (SELECT key FROM among)",
    )?;
    let mut rows = select.query([listed(&keys)])?;
    let mut edges = Vec::new();
    while let Some(row) = rows.next()? {
        edges.push(Edge {
            from: NodeId::from(row.get::<_, String>(0)?),
            kind: kind(row.get(1)?)?,
            to: NodeId::from(row.get::<_, String>(2)?),
        });
    }
    edges.sort();
    Ok(edges)
}

/// The nodes that can be reached over edges.
pub(super) fn walk(
    transaction: &Transaction<'_>,
    from: &[NodeId],
    walk: &Walk<'_>,
) -> Result<Vec<Reached>, StoreError> {
    let count = usize::try_from(walk.count).unwrap_or(usize::MAX);
    let mut known = HashSet::new();
    let mut starts = keys(transaction, from)?;
    starts.retain(|key| known.insert(*key));
    starts.truncate(count);
    starts.push(DEPTH_END);
    let kinds = walk
        .kinds
        .iter()
        .fold(0, |set, kind| set | 1 << number(*kind));
    let kinds: i64 = if walk.kinds.is_empty() { -1 } else { kinds };
    let mut select = transaction.prepare_cached(&statement(walk.direction))?;
    // Up to `count` of the neighbours of a node may have been reached before.
    let neighbours = i64::from(walk.count).saturating_mul(2);
    let mut rows = select.query(params![listed(&starts), kinds, neighbours])?;
    let deepest = walk.depth.min(Walk::DEEPEST);
    let mut reached = Vec::new();
    let mut depth = 0;
    while reached.len() < count
        && let Some(row) = rows.next()?
    {
        match row
            .get_ref(0)?
            .as_str_or_null()
            .map_err(rusqlite::Error::from)?
        {
            Some(id) => reached.push(Reached {
                id: NodeId::from(String::from(id)),
                depth,
            }),
            None if depth == deepest => break,
            None => depth += 1,
        }
    }
    Ok(reached)
}

/// Marks the end of the nodes of one depth. No node has this key.
const DEPTH_END: i64 = -1;

/// A breadth-first search in one statement.
///
/// SQLite processes the rows of a recursion in order and returns each before it computes its
/// successors, so the caller can stop at any row. `UNION` drops duplicate rows, so a row cannot contain
/// its depth: [`DEPTH_END`] and the keys below it mark where the next depth begins. The number of
/// neighbours is limited, since a node can have any number of callers.
fn statement(direction: Direction) -> String {
    let forward = "SELECT target FROM edges WHERE source = reached.node AND (?2 >> kind) & 1";
    let backward = "SELECT source FROM edges WHERE target = reached.node AND (?2 >> kind) & 1";
    let next = match direction {
        Direction::Forward => forward.replacen("SELECT", "SELECT DISTINCT", 1),
        Direction::Backward => backward.replacen("SELECT", "SELECT DISTINCT", 1),
        Direction::Both => format!("{forward} UNION {backward}"),
    };
    format!(
        "WITH RECURSIVE reached (node) AS ( \
             SELECT value FROM json_each(?1) \
             UNION \
             SELECT nodes.key FROM reached CROSS JOIN nodes ON nodes.key IN ({next} LIMIT ?3) \
             UNION \
             SELECT node - 1 FROM reached WHERE node < 0) \
         SELECT nodes.id FROM reached LEFT JOIN nodes ON nodes.key = reached.node"
    )
}
