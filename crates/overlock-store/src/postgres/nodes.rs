//! Stores nodes and their mentions in `PostgreSQL`.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::changes::PostgresChanges;
use super::locks::lock_key;
use super::pool::Connection;
use super::text::{digest, escaped, unescaped};
use super::{Postgres, graph, parsed, resolve, search, vectors};
use crate::error::StoreError;
use crate::nodes::{
    Edge, Hit, NewFile, Node, NodeId, Nodes, Query, Reached, RepositorySummary, Resolved, Search,
    StoredFile, Walk,
};
use crate::store::unsigned;

/// Settings for a transaction that writes an index, which takes longer than other transactions.
const BULK_SETTINGS: &str = "SET LOCAL statement_timeout = '15min'; SET LOCAL lock_timeout = '15min'; \
     SET LOCAL work_mem = '64MB'; SET LOCAL gin_pending_list_limit = '64MB'";

impl Nodes for Postgres {
    fn repositories(&self) -> Result<Vec<RepositorySummary>, StoreError> {
        self.pool.read(|connection| {
            let rows = connection.query(
                "SELECT name, folder, \
                 (SELECT count(*) FROM files WHERE repository = repositories.key) AS files, \
                 (SELECT count(*) FROM files JOIN nodes ON nodes.file = files.key \
                  WHERE files.repository = repositories.key) AS nodes, \
                 (SELECT count(*) FROM (SELECT DISTINCT source, edges.kind, target FROM files \
                  JOIN nodes ON nodes.file = files.key JOIN edges ON edges.source = nodes.key \
                  WHERE files.repository = repositories.key) AS different) AS edges \
                 FROM repositories \
                 WHERE EXISTS (SELECT 1 FROM files WHERE repository = repositories.key) \
                 ORDER BY name",
                &[],
            )?;
            let repositories = rows.iter().map(|row| {
                Ok(RepositorySummary {
                    name: unescaped(row.try_get("name")?),
                    folder: row.try_get::<_, Option<_>>("folder")?.map(unescaped),
                    files: unsigned(row.try_get("files")?),
                    nodes: unsigned(row.try_get("nodes")?),
                    edges: unsigned(row.try_get("edges")?),
                })
            });
            repositories.collect()
        })
    }

    fn files(&self, repository: &str) -> Result<Vec<StoredFile>, StoreError> {
        self.pool.read(|connection| {
            let rows = connection.query(
                "SELECT path, hash FROM files \
                 WHERE repository = (SELECT key FROM repositories WHERE digest = $1) ORDER BY path",
                &[&digest(repository)],
            )?;
            let files = rows.iter().map(|row| {
                Ok(StoredFile {
                    path: unescaped(row.try_get("path")?),
                    hash: unescaped(row.try_get("hash")?),
                })
            });
            files.collect()
        })
    }

    fn set_folder(
        &self,
        repository: &str,
        folder: &str,
        instead_of: Option<&str>,
    ) -> Result<String, StoreError> {
        self.pool.write(|connection| {
            self.lock_repository(connection, repository)?;
            let (digest, folder) = (digest(repository), escaped(folder));
            connection.execute(
                "INSERT INTO repositories (name, digest, folder) VALUES ($1, $2, $3) \
                 ON CONFLICT (digest) DO UPDATE SET folder = excluded.folder \
                 WHERE repositories.folder IS NULL OR repositories.folder = $4",
                &[
                    &escaped(repository),
                    &digest,
                    &folder,
                    &instead_of.map(escaped),
                ],
            )?;
            let find = "SELECT folder FROM repositories WHERE digest = $1";
            let row = connection.query_one(find, &[&digest])?;
            Ok(unescaped(row.try_get("folder")?))
        })
    }

    fn put_files(&self, repository: &str, files: &[NewFile<'_>]) -> Result<(), StoreError> {
        for file in files {
            file.check()?;
        }
        // Of two files with the same path the last one wins.
        let last: HashMap<&str, &NewFile<'_>> =
            files.iter().map(|file| (file.path, file)).collect();
        let files = files
            .iter()
            .filter(|file| std::ptr::eq(last[file.path], *file));
        let files: Vec<&NewFile<'_>> = files.collect();
        self.change(repository, |changes| changes.put(&files))
    }

    fn remove_files(&self, repository: &str, paths: &[&str]) -> Result<(), StoreError> {
        self.change(repository, |changes| changes.remove(paths))
    }

    fn resolve(&self, repository: &str) -> Result<Resolved, StoreError> {
        self.pool.write(|connection| {
            self.lock_repository(connection, repository)?;
            let resolved = resolve::resolve(connection, repository)?;
            // Every search scans the pending entries of the index.
            connection.execute("SELECT gin_clean_pending_list('nodes_by_words')", &[])?;
            Ok(resolved)
        })
    }

    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<Node>, StoreError> {
        self.pool.read(|connection| {
            let rows = connection.query(
                &format!(
                    "{NODE} JOIN unnest($1::text[]) WITH ORDINALITY AS wanted (id, number) \
                     ON wanted.id = nodes.id ORDER BY wanted.number"
                ),
                &[&graph::texts(ids)],
            )?;
            rows.iter().map(node).collect()
        })
    }

    fn edges(&self, among: &[NodeId]) -> Result<Vec<Edge>, StoreError> {
        self.pool.read(|connection| graph::edges(connection, among))
    }

    fn without_vector(
        &self,
        repository: &str,
        model: &str,
        after: Option<&NodeId>,
        limit: u32,
    ) -> Result<Vec<(NodeId, String)>, StoreError> {
        self.need_vectors()?;
        self.pool
            .read(|connection| vectors::without(connection, repository, model, after, limit))
    }

    fn put_vectors(&self, model: &str, vectors: &[(NodeId, &[f32])]) -> Result<(), StoreError> {
        self.need_vectors()?;
        self.pool.write(|connection| {
            connection.batch(BULK_SETTINGS)?;
            vectors::put(connection, model, vectors)
        })
    }

    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, StoreError> {
        if !matches!(query.search, Search::Keyword(_)) {
            self.need_vectors()?;
        }
        self.pool
            .read(|connection| search::search(connection, query))
    }

    fn walk(&self, from: &[NodeId], walk: &Walk<'_>) -> Result<Vec<Reached>, StoreError> {
        self.pool
            .read(|connection| graph::walk(connection, from, walk))
    }
}

impl Postgres {
    /// Returns an error if the server does not have pgvector.
    fn need_vectors(&self) -> Result<(), StoreError> {
        if self.has_vectors {
            return Ok(());
        }
        Err(StoreError::NoVectors {
            place: self.place.clone(),
        })
    }

    /// Changes the files of a repository.
    fn change(
        &self,
        repository: &str,
        work: impl FnOnce(&PostgresChanges<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.pool.write(|connection| {
            self.lock_repository(connection, repository)?;
            let add = "INSERT INTO repositories (name, digest) VALUES ($1, $2) \
                       ON CONFLICT DO NOTHING";
            connection.execute(add, &[&escaped(repository), &digest(repository)])?;
            let key = self::repository(connection, repository)?;
            let changes = PostgresChanges {
                connection,
                name: repository,
                key: key.unwrap_or_default(),
                has_vectors: self.has_vectors,
            };
            work(&changes)?;
            // A repository without files does not exist.
            connection.execute(
                "DELETE FROM repositories WHERE key = $1 \
                 AND NOT EXISTS (SELECT 1 FROM files WHERE repository = $1)",
                &[&changes.key],
            )?;
            Ok(())
        })
    }

    /// Locks a repository until this transaction ends.
    fn lock_repository(&self, connection: &Connection, name: &str) -> Result<(), StoreError> {
        connection.batch(BULK_SETTINGS)?;
        let lock = "SELECT pg_advisory_xact_lock($1)";
        connection.execute(lock, &[&lock_key(&self.schema, "repository", name)])?;
        Ok(())
    }
}

/// The key of a repository, if it is known.
pub(super) fn repository(connection: &Connection, name: &str) -> Result<Option<i64>, StoreError> {
    let find = "SELECT key FROM repositories WHERE digest = $1";
    let row = connection.query_opt(find, &[&digest(name)])?;
    Ok(row.map(|row| row.try_get("key")).transpose()?)
}

/// Selects the columns of a [`Node`].
pub(super) const NODE: &str = "SELECT nodes.key, nodes.id, repositories.name AS repository, files.path, \
     nodes.kind, nodes.name, nodes.qualified, parent.id AS parent, nodes.language, \
     nodes.first_line, nodes.last_line, nodes.first_byte, nodes.last_byte, nodes.text, \
     nodes.metadata FROM nodes JOIN files ON files.key = nodes.file \
     JOIN repositories ON repositories.key = nodes.repository \
     LEFT JOIN nodes AS parent ON parent.key = nodes.parent";

pub(super) fn node(row: &Row) -> Result<Node, StoreError> {
    let line = |column| -> Result<u32, StoreError> {
        let number: i64 = row.try_get(column)?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    };
    let parent: Option<&str> = row.try_get("parent")?;
    Ok(Node {
        id: NodeId::from(row.try_get::<_, &str>("id")?),
        repository: unescaped(row.try_get("repository")?),
        path: unescaped(row.try_get("path")?),
        kind: parsed(row, "kind")?,
        name: unescaped(row.try_get("name")?),
        qualified: unescaped(row.try_get("qualified")?),
        parent: parent.map(NodeId::from),
        language: unescaped(row.try_get("language")?),
        lines: (line("first_line")?, line("last_line")?),
        span: unsigned(row.try_get("first_byte")?)..unsigned(row.try_get("last_byte")?),
        text: unescaped(row.try_get("text")?),
        metadata: unescaped(row.try_get("metadata")?),
    })
}
