//! Finds the nearest vectors in `PostgreSQL`, with pgvector.
//!
//! Few vectors are compared one by one. Many have an index for each model, which pgvector walks
//! through (HNSW): it finds almost all that are near, and far from all have to be looked at.

use std::fmt::Write;

use super::connection::Connection;
use super::nodes::repository;
use super::search::Place;
use super::text::{digest, given, kept};
use super::{graph, signed, unsigned};
use crate::error::StoreError;
use crate::nodes::{NodeId, Vector};
use crate::vectors::unit;

/// Keeps vectors, if the server can.
pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS vectors ( \
     model bigint NOT NULL, node bigint NOT NULL REFERENCES nodes (key) ON DELETE CASCADE, \
     vector vector NOT NULL, \
     PRIMARY KEY (model, node)); \
     CREATE INDEX IF NOT EXISTS vectors_by_node ON vectors (node)";

/// From so many vectors on a model has an index.
const MANY: i64 = 10_000;

/// The longest vectors that an index takes.
const LONGEST: usize = 2_000;

/// A model whose vectors are kept.
struct Model {
    key: i64,
    numbers: usize,
}

fn model(connection: &Connection, name: &str) -> Result<Option<Model>, StoreError> {
    let find = "SELECT key, numbers FROM models WHERE digest = $1";
    let row = connection.query_opt(find, &[&digest(name)])?;
    let model = row.map(|row| {
        let numbers = unsigned(row.try_get("numbers")?);
        Ok::<_, StoreError>(Model {
            key: row.try_get("key")?,
            numbers: usize::try_from(numbers).unwrap_or(usize::MAX),
        })
    });
    model.transpose()
}

/// Nodes that have no vector.
pub(super) fn without(
    connection: &Connection,
    repository: &str,
    model: &str,
    after: Option<&NodeId>,
    limit: u32,
) -> Result<Vec<(NodeId, String)>, StoreError> {
    let Some(repository) = self::repository(connection, repository)? else {
        return Ok(Vec::new());
    };
    let model = self::model(connection, model)?.map(|model| model.key);
    let after: Vec<&str> = after.map_or_else(Vec::new, |id| graph::texts(std::slice::from_ref(id)));
    let rows = connection.query(
        "SELECT nodes.id, nodes.text FROM nodes \
         WHERE nodes.key > coalesce((SELECT key FROM nodes WHERE id = ANY ($3)), 0) \
         AND nodes.repository = $1 \
         AND NOT EXISTS (SELECT 1 FROM vectors WHERE model = $2 AND node = nodes.key) \
         ORDER BY nodes.key LIMIT $4",
        &[&repository, &model, &after, &i64::from(limit)],
    )?;
    let nodes = rows.iter().map(|row| {
        let id = NodeId::from(row.try_get::<_, &str>("id")?);
        Ok((id, given(row.try_get("text")?)))
    });
    nodes.collect()
}

/// Keeps vectors.
pub(super) fn put(
    connection: &Connection,
    name: &str,
    vectors: &[(NodeId, &[f32])],
) -> Result<(), StoreError> {
    let Some((_, first)) = vectors.first() else {
        return Ok(());
    };
    connection.execute(
        "INSERT INTO models (name, digest, numbers) VALUES ($1, $2, $3) \
         ON CONFLICT (digest) DO NOTHING",
        &[&kept(name), &digest(name), &signed(first.len() as u64)],
    )?;
    let Some(model) = model(connection, name)? else {
        return Ok(());
    };
    let mut ids = Vec::with_capacity(vectors.len());
    let mut written = Vec::with_capacity(vectors.len());
    for (id, vector) in vectors {
        ids.push(id.clone());
        written.push(shown(&unit(name, model.numbers, vector)?));
    }
    // Of two for the same node the last is meant.
    connection.execute(
        "INSERT INTO vectors (model, node, vector) \
         SELECT DISTINCT ON (nodes.key) $1::bigint, nodes.key, new.vector::vector \
         FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS new (id, vector, place) \
         JOIN nodes ON nodes.id = new.id ORDER BY nodes.key, new.place DESC \
         ON CONFLICT (model, node) DO UPDATE SET vector = excluded.vector",
        &[&model.key, &graph::texts(&ids), &written],
    )?;
    index(connection, &model)
}

/// Makes an index for a model that has many vectors and none yet.
fn index(connection: &Connection, model: &Model) -> Result<(), StoreError> {
    let Model { key, numbers } = model;
    if *numbers > LONGEST {
        return Ok(());
    }
    let name = format!("vectors_of_{key}");
    let needs = || -> Result<bool, StoreError> {
        let needs = connection.query_one(
            "SELECT to_regclass($1) IS NULL \
             AND EXISTS (SELECT 1 FROM vectors WHERE model = $2 OFFSET $3) AS needs",
            &[&name, key, &MANY],
        )?;
        Ok(needs.try_get("needs")?)
    };
    if !needs()? {
        return Ok(());
    }
    // Another process may be just about to.
    let lock = "SELECT pg_advisory_xact_lock(hashtext($1), hashtext(current_schema()))";
    connection.execute(lock, &[&name])?;
    if needs()? {
        connection.batch(&format!(
            "CREATE INDEX IF NOT EXISTS {name} ON vectors \
             USING hnsw ((vector::vector({numbers})) vector_ip_ops) \
             WITH (m = 16, ef_construction = 128) WHERE model = {key}"
        ))?;
    }
    Ok(())
}

/// The nodes with the nearest vectors, the nearest first, with the cosines of their angles.
pub(super) fn nearest(
    connection: &Connection,
    vector: Vector<'_>,
    place: &Place,
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let Some(Model { key, numbers }) = model(connection, vector.model)? else {
        return Ok(Vec::new());
    };
    let unit = shown(&unit(vector.model, numbers, vector.numbers)?);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    // The model stands in the statement itself, or its index would not be seen to fit.
    let distance = format!("vector::vector({numbers}) <#> $1::text::vector({numbers})");
    let rows = if place.is_everywhere() {
        connection.query(
            &format!(
                "SELECT node, {distance} AS distance FROM vectors WHERE model = {key} \
                 ORDER BY {distance} LIMIT $2"
            ),
            &[&unit, &limit],
        )?
    } else {
        connection.query(
            &format!(
                "SELECT node, {distance} AS distance FROM vectors \
                 JOIN nodes ON nodes.key = vectors.node WHERE model = {key} \
                 AND ($3::bigint IS NULL OR nodes.repository = $3) \
                 AND ($4::text IS NULL OR nodes.language = $4) \
                 AND ($5::bigint[] IS NULL OR nodes.file = ANY ($5)) \
                 ORDER BY {distance} LIMIT $2"
            ),
            &[
                &unit,
                &limit,
                &place.repository,
                &place.language,
                &place.files,
            ],
        )?
    };
    let mut found: Vec<(i64, f64)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let distance: f64 = row.try_get("distance")?;
        found.push((row.try_get("node")?, -distance));
    }
    // Equals come in the same order each time.
    found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    Ok(found)
}

/// A vector as pgvector reads it.
fn shown(vector: &[f32]) -> String {
    let mut shown = String::with_capacity(12 * vector.len());
    for (place, number) in vector.iter().enumerate() {
        let sign = if place == 0 { '[' } else { ',' };
        let _ = write!(shown, "{sign}{number}"); // a string takes everything
    }
    shown.push(']');
    shown
}
