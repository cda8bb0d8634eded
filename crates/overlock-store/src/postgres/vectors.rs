//! Stores and searches vectors in `PostgreSQL` with pgvector.
//!
//! The vectors of a model with few of them are compared one by one; a model with many has an HNSW index,
//! which finds almost all near vectors without reading all of them.

use std::fmt::Write;

use super::graph;
use super::nodes::repository;
use super::pool::Connection;
use super::search::RowFilter;
use super::text::{digest, escaped, unescaped};
use crate::error::StoreError;
use crate::nodes::{NodeId, Vector};
use crate::store::{signed, unsigned};
use crate::vectors::unit;

/// Created only if the server has pgvector.
pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS vectors ( \
     model bigint NOT NULL, node bigint NOT NULL REFERENCES nodes (key) ON DELETE CASCADE, \
     vector vector NOT NULL, \
     PRIMARY KEY (model, node)); \
     CREATE INDEX IF NOT EXISTS vectors_by_node ON vectors (node)";

/// The number of vectors from which a model has an index.
const MANY: i64 = 10_000;

/// The most components that an index supports.
const LONGEST: usize = 2_000;

/// An embedding model with vectors.
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

/// Nodes without a vector.
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
        Ok((id, unescaped(row.try_get("text")?)))
    });
    nodes.collect()
}

/// Stores vectors.
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
        &[&escaped(name), &digest(name), &signed(first.len() as u64)],
    )?;
    let Some(model) = model(connection, name)? else {
        return Ok(());
    };
    let mut ids = Vec::with_capacity(vectors.len());
    let mut written = Vec::with_capacity(vectors.len());
    for (id, vector) in vectors {
        ids.push(id.clone());
        written.push(to_text(&unit(name, model.numbers, vector)?));
    }
    // Of two vectors for the same node the last one wins.
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

/// Creates the index of a model when it has enough vectors.
fn index(connection: &Connection, model: &Model) -> Result<(), StoreError> {
    let Model { key, numbers } = model;
    if *numbers > LONGEST {
        return Ok(());
    }
    let name = format!("vectors_of_{key}");
    let is_missing = || -> Result<bool, StoreError> {
        let row = connection.query_one(
            "SELECT to_regclass($1) IS NULL \
             AND EXISTS (SELECT 1 FROM vectors WHERE model = $2 OFFSET $3) AS is_missing",
            &[&name, key, &MANY],
        )?;
        Ok(row.try_get("is_missing")?)
    };
    if !is_missing()? {
        return Ok(());
    }
    // Another process may be creating it.
    let lock = "SELECT pg_advisory_xact_lock(hashtext($1), hashtext(current_schema()))";
    connection.execute(lock, &[&name])?;
    if is_missing()? {
        connection.batch(&format!(
            "CREATE INDEX IF NOT EXISTS {name} ON vectors \
             USING hnsw ((vector::vector({numbers})) vector_ip_ops) \
             WITH (m = 16, ef_construction = 128) WHERE model = {key}"
        ))?;
    }
    Ok(())
}

/// The nodes with the nearest vectors and their cosine similarity, the nearest first.
pub(super) fn nearest(
    connection: &Connection,
    vector: Vector<'_>,
    filter: &RowFilter,
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let Some(Model { key, numbers }) = model(connection, vector.model)? else {
        return Ok(Vec::new());
    };
    let unit = to_text(&unit(vector.model, numbers, vector.numbers)?);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    // The model is not a parameter, or the planner would not use its partial index.
    let distance = format!("vector::vector({numbers}) <#> $1::text::vector({numbers})");
    let rows = if filter.is_empty() {
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
                &filter.repository,
                &filter.language,
                &filter.files,
            ],
        )?
    };
    let mut found: Vec<(i64, f64)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let distance: f64 = row.try_get("distance")?;
        found.push((row.try_get("node")?, -distance));
    }
    // Makes the order of equal distances deterministic.
    found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    Ok(found)
}

/// A vector in the text format of pgvector.
fn to_text(vector: &[f32]) -> String {
    let mut text = String::with_capacity(12 * vector.len());
    for (index, number) in vector.iter().enumerate() {
        let sign = if index == 0 { '[' } else { ',' };
        let _ = write!(text, "{sign}{number}"); // writing to a string cannot fail
    }
    text.push(']');
    text
}
