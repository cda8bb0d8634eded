//! Stores nodes and their mentions in SQLite.

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;

use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{Sqlite, graph, resolve, search, vectors};
use crate::error::StoreError;
use crate::naming;
use crate::nodes::{
    Edge, EdgeKind, Hit, NewFile, NewNode, Node, NodeId, Nodes, PreviousNode, Query, Reached,
    RepositorySummary, Resolved, Scope, StoredFile, Walk,
};
use crate::store::{signed, unsigned};

/// The size of the page cache while nodes are written, in KiB. The default is too small, since writes
/// are spread over a whole index.
const CACHE_TO_WRITE: i64 = 96 * 1024;

/// The size of the page cache for searches, in KiB.
const CACHE: i64 = 32 * 1024;

/// The pages between two checkpoints of the log while nodes are written. Each checkpoint writes every
/// changed page again, and most of them will change once more.
const CHECKPOINT_PAGES: i64 = 10_000;

impl Nodes for Sqlite {
    fn repositories(&self) -> Result<Vec<RepositorySummary>, StoreError> {
        self.read(|transaction| {
            let mut select = transaction.prepare_cached(
                "SELECT name, folder, \
                 (SELECT count(*) FROM files WHERE repository = repositories.key), \
                 (SELECT count(*) FROM files JOIN nodes ON nodes.file = files.key \
                  WHERE repository = repositories.key), \
                 (SELECT count(*) FROM (SELECT DISTINCT source, edges.kind, target FROM files \
                  JOIN nodes ON nodes.file = files.key JOIN edges ON edges.source = nodes.key \
                  WHERE repository = repositories.key)) \
                 FROM repositories \
                 WHERE EXISTS (SELECT 1 FROM files WHERE repository = repositories.key) \
                 ORDER BY name",
            )?;
            let repositories = select.query_map([], |row| {
                Ok(RepositorySummary {
                    name: row.get(0)?,
                    folder: row.get(1)?,
                    files: unsigned(row.get(2)?),
                    nodes: unsigned(row.get(3)?),
                    edges: unsigned(row.get(4)?),
                })
            })?;
            Ok(repositories.collect::<Result<_, _>>()?)
        })
    }

    fn files(&self, repository: &str) -> Result<Vec<StoredFile>, StoreError> {
        self.read(|transaction| {
            let mut select = transaction.prepare_cached(
                "SELECT path, hash FROM files \
                 WHERE repository = (SELECT key FROM repositories WHERE name = ?1) ORDER BY path",
            )?;
            let files = select.query_map([repository], |row| {
                Ok(StoredFile {
                    path: row.get(0)?,
                    hash: row.get(1)?,
                })
            })?;
            Ok(files.collect::<Result<_, _>>()?)
        })
    }

    fn set_folder(
        &self,
        repository: &str,
        folder: &str,
        instead_of: Option<&str>,
    ) -> Result<String, StoreError> {
        self.write(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO repositories (name, folder) VALUES (?1, ?2) \
                     ON CONFLICT (name) DO UPDATE SET folder = ?2 \
                     WHERE folder IS NULL OR folder = ?3",
                )?
                .execute(params![repository, folder, instead_of])?;
            let mut select =
                transaction.prepare_cached("SELECT folder FROM repositories WHERE name = ?1")?;
            Ok(select.query_row([repository], |row| row.get(0))?)
        })
    }

    fn put_files(&self, repository: &str, files: &[NewFile<'_>]) -> Result<(), StoreError> {
        for file in files {
            file.check()?;
        }
        self.write(|transaction| {
            transaction.pragma_update(None, "cache_size", -CACHE_TO_WRITE)?;
            transaction.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
            let mut changes = SqliteChanges::new(transaction, repository)?;
            for file in files {
                changes.put(file)?;
            }
            changes.finish()
        })
    }

    fn remove_files(&self, repository: &str, paths: &[&str]) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut changes = SqliteChanges::new(transaction, repository)?;
            for path in paths {
                changes.remove(path)?;
            }
            changes.finish()
        })
    }

    fn resolve(&self, repository: &str) -> Result<Resolved, StoreError> {
        let mut resolved = Resolved::default();
        while let Some(some) = self.write(|transaction| {
            transaction.pragma_update(None, "cache_size", -CACHE_TO_WRITE)?;
            resolve::resolve_some(transaction, repository)
        })? {
            resolved.mentions += some.mentions;
            resolved.edges += some.edges;
        }
        Ok(resolved)
    }

    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<Node>, StoreError> {
        self.read(|transaction| {
            let keys = graph::keys(transaction, ids)?;
            keys.iter().map(|key| node(transaction, *key)).collect()
        })
    }

    fn edges(&self, among: &[NodeId]) -> Result<Vec<Edge>, StoreError> {
        self.read(|transaction| graph::edges(transaction, among))
    }

    fn without_vector(
        &self,
        repository: &str,
        model: &str,
        after: Option<&NodeId>,
        limit: u32,
    ) -> Result<Vec<(NodeId, String)>, StoreError> {
        self.read(|transaction| vectors::without(transaction, repository, model, after, limit))
    }

    fn put_vectors(&self, model: &str, vectors: &[(NodeId, &[f32])]) -> Result<(), StoreError> {
        self.write(|transaction| vectors::put(transaction, model, vectors))
    }

    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, StoreError> {
        self.read(|transaction| {
            transaction.pragma_update(None, "cache_size", -CACHE)?;
            search::search(transaction, &self.codes, query)
        })
    }

    fn walk(&self, from: &[NodeId], walk: &Walk<'_>) -> Result<Vec<Reached>, StoreError> {
        self.read(|transaction| graph::walk(transaction, from, walk))
    }
}

/// The key of a repository, if it is known.
pub(super) fn repository(
    transaction: &Transaction<'_>,
    name: &str,
) -> Result<Option<i64>, StoreError> {
    let mut select = transaction.prepare_cached("SELECT key FROM repositories WHERE name = ?1")?;
    Ok(select.query_row([name], |row| row.get(0)).optional()?)
}

/// A node by its key.
pub(super) fn node(transaction: &Transaction<'_>, key: i64) -> Result<Node, StoreError> {
    let mut select = transaction.prepare_cached(
        "SELECT nodes.id, repositories.name, files.path, nodes.kind, nodes.name, nodes.qualified, \
         parent.id, nodes.language, nodes.first_line, nodes.last_line, nodes.first_byte, \
         nodes.last_byte, nodes.text, nodes.metadata \
         FROM nodes JOIN files ON files.key = nodes.file \
         JOIN repositories ON repositories.key = files.repository \
         LEFT JOIN nodes AS parent ON parent.key = nodes.parent WHERE nodes.key = ?1",
    )?;
    let node = select.query_row([key], |row| {
        Ok(Node {
            id: NodeId::from(row.get::<_, String>(0)?),
            repository: row.get(1)?,
            path: row.get(2)?,
            kind: parsed(row, 3)?,
            name: row.get(4)?,
            qualified: row.get(5)?,
            parent: row.get::<_, Option<String>>(6)?.map(NodeId::from),
            language: row.get(7)?,
            lines: (row.get(8)?, row.get(9)?),
            span: unsigned(row.get(10)?)..unsigned(row.get(11)?),
            text: row.get(12)?,
            metadata: row.get(13)?,
        })
    })?;
    Ok(node)
}

/// Parses a text column.
pub(super) fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let name = row.get_ref(column)?.as_str()?;
    name.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
    })
}

/// Changes to the files of a repository.
struct SqliteChanges<'a> {
    transaction: &'a Transaction<'a>,
    name: &'a str,
    key: i64,
    models: Vec<i64>,
    /// The models with removed vectors.
    changed_models: BTreeSet<i64>,
}

impl<'a> SqliteChanges<'a> {
    fn new(transaction: &'a Transaction<'a>, name: &'a str) -> Result<Self, StoreError> {
        transaction
            .prepare_cached("INSERT INTO repositories (name) VALUES (?1) ON CONFLICT DO NOTHING")?
            .execute([name])?;
        let key = repository(transaction, name)?.unwrap_or_default();
        let mut select = transaction.prepare_cached("SELECT key FROM models")?;
        let models = select.query_map([], |row| row.get(0))?;
        Ok(Self {
            transaction,
            name,
            key,
            models: models.collect::<Result<_, _>>()?,
            changed_models: BTreeSet::new(),
        })
    }

    fn finish(self) -> Result<(), StoreError> {
        for model in &self.changed_models {
            self.execute(
                "UPDATE models SET changes = changes + 1 WHERE key = ?1",
                [model],
            )?;
        }
        // A repository without files does not exist.
        self.execute(
            "DELETE FROM repositories WHERE key = ?1 \
             AND NOT EXISTS (SELECT 1 FROM files WHERE repository = ?1)",
            [self.key],
        )?;
        Ok(())
    }

    fn put(&mut self, file: &NewFile<'_>) -> Result<(), StoreError> {
        let (key, mut before) = self.put_file(file)?;
        let mut keys: Vec<i64> = Vec::with_capacity(file.nodes.len());
        for (id, node) in file.ids(self.name).iter().zip(file.nodes) {
            let parent = node.parent.map(|parent| keys[parent]);
            let node_key = match before.remove(id.as_str()) {
                Some(before) => self.update(&before, parent, node, file.path)?,
                None => self.insert(key, id, parent, node, file.path)?,
            };
            if let Some(parent) = parent {
                let contains = graph::number(EdgeKind::Contains);
                self.execute(
                    "INSERT INTO edges VALUES (?1, ?2, ?3, 0)",
                    params![parent, contains, node_key],
                )?;
            }
            keys.push(node_key);
        }
        for removed in before.values() {
            self.remove_node(removed.key)?;
        }
        let mentions: BTreeSet<_> = file.mentions.iter().collect();
        for (number, mention) in (1_i64..).zip(mentions) {
            let last_name = naming::fingerprint(self.name, &naming::last_name(&mention.name));
            self.execute(
                "INSERT INTO mentions (node, number, kind, is_near, last_name, name) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    keys[mention.from],
                    number,
                    graph::number(mention.kind),
                    mention.scope == Scope::Nearest,
                    last_name,
                    mention.name
                ],
            )?;
        }
        Ok(())
    }

    /// Writes a file without its nodes and removes the mentions of its previous nodes. Returns its key
    /// and these nodes by their ids.
    fn put_file(
        &self,
        file: &NewFile<'_>,
    ) -> Result<(i64, HashMap<String, PreviousNode>), StoreError> {
        let imports = naming::joined_imports(file.imports);
        let Some(key) = self.file(file.path)? else {
            self.execute(
                "INSERT INTO files (repository, path, hash, imports, is_resolved) \
                 VALUES (?1, ?2, ?3, ?4, 0)",
                params![self.key, file.path, file.hash, imports],
            )?;
            return Ok((self.transaction.last_insert_rowid(), HashMap::new()));
        };
        self.execute(
            "UPDATE files SET hash = ?2, imports = ?3, is_resolved = 0 WHERE key = ?1",
            params![key, file.hash, imports],
        )?;
        self.remove_mentions(key)?;
        let mut select = self
            .transaction
            .prepare_cached("SELECT id, key, name, language, text FROM nodes WHERE file = ?1")?;
        let before = select.query_map([key], |row| {
            let before = PreviousNode {
                key: row.get(1)?,
                name: row.get(2)?,
                language: row.get(3)?,
                text: row.get(4)?,
            };
            Ok((row.get(0)?, before))
        })?;
        Ok((key, before.collect::<Result<_, _>>()?))
    }

    fn file(&self, path: &str) -> Result<Option<i64>, StoreError> {
        let mut select = self
            .transaction
            .prepare_cached("SELECT key FROM files WHERE repository = ?1 AND path = ?2")?;
        let found = select.query_row(params![self.key, path], |row| row.get(0));
        Ok(found.optional()?)
    }

    /// Removes the mentions and edges of the nodes of a file.
    fn remove_mentions(&self, file: i64) -> Result<(), StoreError> {
        for statement in [
            "DELETE FROM edges WHERE source IN (SELECT key FROM nodes WHERE file = ?1)",
            "DELETE FROM mentions WHERE node IN (SELECT key FROM nodes WHERE file = ?1)",
        ] {
            self.execute(statement, [file])?;
        }
        Ok(())
    }

    fn insert(
        &self,
        file: i64,
        id: &NodeId,
        parent: Option<i64>,
        node: &NewNode,
        path: &str,
    ) -> Result<i64, StoreError> {
        let last_name = self.last_name(node);
        self.execute(
            "INSERT INTO nodes (id, file, parent, last_name, kind, name, qualified, language, \
             first_line, last_line, first_byte, last_byte, metadata, text) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            params![
                id.as_str(),
                file,
                parent,
                last_name,
                node.kind.as_str(),
                node.name,
                node.qualified,
                node.language,
                node.lines.0,
                node.lines.1,
                signed(node.span.start),
                signed(node.span.end),
                node.metadata,
                node.text
            ],
        )?;
        let key = self.transaction.last_insert_rowid();
        self.name_changed(last_name)?;
        search::add(self.transaction, key, self.key, path, node)?;
        Ok(key)
    }

    fn update(
        &mut self,
        before: &PreviousNode,
        parent: Option<i64>,
        node: &NewNode,
        path: &str,
    ) -> Result<i64, StoreError> {
        let key = before.key;
        self.execute(
            "UPDATE nodes SET parent = ?2, name = ?3, language = ?4, first_line = ?5, \
             last_line = ?6, first_byte = ?7, last_byte = ?8, metadata = ?9 WHERE key = ?1",
            params![
                key,
                parent,
                node.name,
                node.language,
                node.lines.0,
                node.lines.1,
                signed(node.span.start),
                signed(node.span.end),
                node.metadata
            ],
        )?;
        if !before.has_same_text(node) {
            self.execute(
                "UPDATE nodes SET text = ?2 WHERE key = ?1",
                params![key, node.text],
            )?;
            self.drop_vectors(key)?;
            search::remove(self.transaction, key)?;
            search::add(self.transaction, key, self.key, path, node)?;
        }
        Ok(key)
    }

    fn remove(&mut self, path: &str) -> Result<(), StoreError> {
        let Some(file) = self.file(path)? else {
            return Ok(());
        };
        self.remove_mentions(file)?;
        let mut select = self
            .transaction
            .prepare_cached("SELECT key FROM nodes WHERE file = ?1")?;
        let nodes = select.query_map([file], |row| row.get(0))?;
        for key in nodes.collect::<Result<Vec<i64>, _>>()? {
            self.remove_node(key)?;
        }
        self.execute("DELETE FROM files WHERE key = ?1", [file])
    }

    /// Removes a node whose mentions are removed.
    fn remove_node(&mut self, key: i64) -> Result<(), StoreError> {
        self.drop_vectors(key)?;
        search::remove(self.transaction, key)?;
        self.execute("DELETE FROM edges WHERE target = ?1", [key])?;
        let last_name = self
            .transaction
            .prepare_cached("DELETE FROM nodes WHERE key = ?1 RETURNING last_name")?
            .query_row([key], |row| row.get(0))?;
        self.name_changed(last_name)
    }

    fn drop_vectors(&mut self, key: i64) -> Result<(), StoreError> {
        for model in &self.models {
            if vectors::remove(self.transaction, *model, key)? {
                self.changed_models.insert(*model);
            }
        }
        Ok(())
    }

    fn name_changed(&self, last_name: i64) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO changed_names VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            [self.key, last_name],
        )
    }

    fn last_name(&self, node: &NewNode) -> i64 {
        naming::fingerprint(self.name, &naming::last_name(&node.qualified))
    }

    fn execute(&self, statement: &str, values: impl rusqlite::Params) -> Result<(), StoreError> {
        self.transaction
            .prepare_cached(statement)?
            .execute(values)?;
        Ok(())
    }
}
