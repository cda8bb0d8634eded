//! Follows edges in `PostgreSQL`.

use super::pool::Connection;
use crate::error::StoreError;
use crate::nodes::{Direction, Edge, NodeId, Reached, Walk};

/// Ids as texts for a parameter.
pub(super) fn texts(ids: &[NodeId]) -> Vec<&str> {
    // `PostgreSQL` rejects the character 0, which is in no id.
    let ids = ids.iter().map(NodeId::as_str);
    ids.map(|id| if id.contains('\0') { "" } else { id })
        .collect()
}

/// The edges between these nodes.
pub(super) fn edges(connection: &Connection, among: &[NodeId]) -> Result<Vec<Edge>, StoreError> {
    let rows = connection.query(
        "WITH among AS MATERIALIZED (SELECT key, id FROM nodes WHERE id = ANY ($1)) \
         SELECT DISTINCT source.id AS source, edges.kind, target.id AS target \
         FROM among AS source JOIN edges ON edges.source = source.key \
         JOIN among AS target ON target.key = edges.target",
        &[&texts(among)],
    )?;
    let edges = rows.iter().map(|row| {
        Ok(Edge {
            from: NodeId::from(row.try_get::<_, &str>("source")?),
            kind: super::parsed(row, "kind")?,
            to: NodeId::from(row.try_get::<_, &str>("target")?),
        })
    });
    let mut edges: Vec<Edge> = edges.collect::<Result<_, StoreError>>()?;
    edges.sort();
    Ok(edges)
}

/// The nodes that can be reached over edges.
pub(super) fn walk(
    connection: &Connection,
    from: &[NodeId],
    walk: &Walk<'_>,
) -> Result<Vec<Reached>, StoreError> {
    let kinds: Vec<&str> = walk.kinds.iter().map(|kind| kind.as_str()).collect();
    let kinds = (!kinds.is_empty()).then_some(kinds);
    let depth = i64::from(walk.depth.min(Walk::DEEPEST));
    let count = i64::from(walk.count);
    let rows = connection.query(
        &statement(walk.direction),
        &[
            &texts(from),
            &kinds,
            &depth,
            // The recursion returns a node at most once for each depth, so these rows contain `count`
            // different nodes.
            &count.saturating_mul(depth + 1),
            &count,
        ],
    )?;
    let reached = rows.iter().map(|row| {
        let depth: i64 = row.try_get("depth")?;
        Ok(Reached {
            id: NodeId::from(row.try_get::<_, &str>("id")?),
            depth: u32::try_from(depth).unwrap_or(u32::MAX),
        })
    });
    reached.collect()
}

/// A breadth-first search in one statement: the rows of a recursion come depth by depth, and the
/// recursion stops at the limit.
fn statement(direction: Direction) -> String {
    let forward = "SELECT target FROM edges WHERE source = reached.node \
                   AND ($2::text[] IS NULL OR kind = ANY ($2))";
    let backward = "SELECT source FROM edges WHERE target = reached.node \
                    AND ($2::text[] IS NULL OR kind = ANY ($2))";
    let next = match direction {
        Direction::Forward => forward.to_owned(),
        Direction::Backward => backward.to_owned(),
        Direction::Both => format!("{forward} UNION ALL {backward}"),
    };
    format!(
        "WITH RECURSIVE start (node, place) AS MATERIALIZED ( \
             SELECT nodes.key, min(place) FROM unnest($1::text[]) \
             WITH ORDINALITY AS wanted (id, place) JOIN nodes ON nodes.id = wanted.id \
             GROUP BY nodes.key ORDER BY 2 LIMIT $5::bigint), \
         reached (node, depth) AS ( \
             SELECT node, 0::bigint FROM start \
             UNION \
             SELECT next.node, reached.depth + 1 FROM reached \
             CROSS JOIN LATERAL ({next}) AS next (node) WHERE reached.depth < $3), \
         some_reached AS MATERIALIZED (SELECT node, depth FROM reached LIMIT $4::bigint), \
         nearest AS (SELECT node, min(depth) AS depth FROM some_reached GROUP BY node) \
         SELECT nodes.id, nearest.depth FROM nearest \
         JOIN nodes ON nodes.key = nearest.node \
         LEFT JOIN start ON start.node = nearest.node \
         ORDER BY nearest.depth, start.place, nodes.id LIMIT $5"
    )
}
