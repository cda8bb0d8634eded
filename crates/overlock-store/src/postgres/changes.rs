//! Writes the files of a repository to `PostgreSQL`.
//!
//! Rows are passed as arrays of columns, so that one statement writes many: round trips to the server
//! take most of the time.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::pool::Connection;
use super::search;
use super::text::{digest, escaped, unescaped};
use crate::error::StoreError;
use crate::naming;
use crate::nodes::{EdgeKind, NewFile, NewNode, NodeId, PreviousNode, Scope};
use crate::store::signed;

/// The size of the texts in one statement, in bytes. The last node of a batch may exceed it.
const BATCH_SIZE: usize = 4 << 20;

/// Changes to the files of a repository.
pub(super) struct PostgresChanges<'a> {
    pub(super) connection: &'a Connection,
    pub(super) name: &'a str,
    pub(super) key: i64,
    pub(super) has_vectors: bool,
}

/// A new or changed node.
struct KeyedNode<'a> {
    key: i64,
    id: NodeId,
    file: i64,
    parent: Option<i64>,
    node: &'a NewNode,
}

impl PostgresChanges<'_> {
    pub(super) fn put(&self, files: &[&NewFile<'_>]) -> Result<(), StoreError> {
        let paths: Vec<&str> = files.iter().map(|file| file.path).collect();
        let known = self.files(&paths)?;
        self.remove_mentions(&known.values().copied().collect::<Vec<i64>>())?;
        let keys = self.put_names(files, &known)?;
        let mut before = self.previous_nodes(&keys)?;
        let new = self.new_keys(files, &before)?;
        let mut new = new.into_iter();
        let (mut added, mut changed, mut moved) = (Vec::new(), Vec::new(), Vec::new());
        let mut keys_of_files: Vec<Vec<i64>> = Vec::new();
        for (file, file_key) in files.iter().zip(&keys) {
            let mut keys: Vec<i64> = Vec::with_capacity(file.nodes.len());
            for (id, node) in file.ids(self.name).into_iter().zip(file.nodes) {
                let (list, key) = match before.remove(id.as_str()) {
                    None => (&mut added, new.next().unwrap_or_default()),
                    Some(known) if known.has_same_text(node) => (&mut moved, known.key),
                    Some(known) => (&mut changed, known.key),
                };
                list.push(KeyedNode {
                    key,
                    id,
                    file: *file_key,
                    parent: node.parent.map(|parent| keys[parent]),
                    node,
                });
                keys.push(key);
            }
            keys_of_files.push(keys);
        }
        self.add_nodes(&added)?;
        self.change_nodes(&changed)?;
        self.move_nodes(&moved)?;
        self.remove_nodes(
            &before
                .values()
                .map(|removed| removed.key)
                .collect::<Vec<i64>>(),
        )?;
        let all = [&added, &changed, &moved].into_iter().flatten();
        self.add_contains_edges(all)?;
        self.add_mentions(files, &keys_of_files)
    }

    pub(super) fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        let files: Vec<i64> = self.files(paths)?.into_values().collect();
        self.remove_mentions(&files)?;
        let rows = self
            .connection
            .query("SELECT key FROM nodes WHERE file = ANY ($1)", &[&files])?;
        let nodes: Vec<i64> = rows.iter().map(|row| row.get("key")).collect();
        self.remove_nodes(&nodes)?;
        let remove = "DELETE FROM files WHERE key = ANY ($1)";
        self.connection.execute(remove, &[&files])?;
        Ok(())
    }

    /// The keys of known files by the digests of their paths.
    fn files(&self, paths: &[&str]) -> Result<HashMap<Vec<u8>, i64>, StoreError> {
        let digests: Vec<Vec<u8>> = paths.iter().map(|path| digest(path)).collect();
        let rows = self.connection.query(
            "SELECT key, digest FROM files WHERE repository = $1 AND digest = ANY ($2)",
            &[&self.key, &digests],
        )?;
        let files = rows
            .iter()
            .map(|row| Ok((row.try_get("digest")?, row.try_get("key")?)));
        files.collect()
    }

    /// Removes the mentions and edges of the nodes of files.
    fn remove_mentions(&self, files: &[i64]) -> Result<(), StoreError> {
        for statement in [
            "DELETE FROM edges USING nodes WHERE nodes.file = ANY ($1) AND edges.source = nodes.key",
            "DELETE FROM mentions USING nodes WHERE nodes.file = ANY ($1) AND mentions.node = nodes.key",
        ] {
            self.connection.execute(statement, &[&files])?;
        }
        Ok(())
    }

    /// Writes files without their nodes. Returns their keys in the same order.
    fn put_names(
        &self,
        files: &[&NewFile<'_>],
        known: &HashMap<Vec<u8>, i64>,
    ) -> Result<Vec<i64>, StoreError> {
        let digests: Vec<Vec<u8>> = files.iter().map(|file| digest(file.path)).collect();
        let paths: Vec<_> = files.iter().map(|file| escaped(file.path)).collect();
        let hashes: Vec<_> = files.iter().map(|file| escaped(file.hash)).collect();
        let imports: Vec<String> = files
            .iter()
            .map(|file| escaped(&naming::joined_imports(file.imports)).into_owned())
            .collect();
        let rows = self.connection.query(
            "INSERT INTO files (repository, digest, path, hash, imports, is_resolved) \
             SELECT $1::bigint, digest, path, hash, imports, false \
             FROM unnest($2::bytea[], $3::text[], $4::text[], $5::text[]) \
             AS file (digest, path, hash, imports) \
             ON CONFLICT (repository, digest) DO UPDATE SET hash = excluded.hash, \
             imports = excluded.imports, is_resolved = false RETURNING key, digest",
            &[&self.key, &digests, &paths, &hashes, &imports],
        )?;
        let mut keys = known.clone();
        for row in &rows {
            keys.insert(row.try_get("digest")?, row.try_get("key")?);
        }
        Ok(digests.iter().map(|digest| keys[digest]).collect())
    }

    /// The previous nodes of files by their ids.
    fn previous_nodes(&self, files: &[i64]) -> Result<HashMap<String, PreviousNode>, StoreError> {
        let rows = self.connection.query(
            "SELECT id, key, name, language, text FROM nodes WHERE file = ANY ($1)",
            &[&files],
        )?;
        let before = rows.iter().map(|row| {
            let before = PreviousNode {
                key: row.try_get("key")?,
                name: unescaped(row.try_get("name")?),
                language: unescaped(row.try_get("language")?),
                text: unescaped(row.try_get("text")?),
            };
            Ok((row.try_get("id")?, before))
        });
        before.collect()
    }

    /// Keys for new nodes, so that parents and children can be written together.
    fn new_keys(
        &self,
        files: &[&NewFile<'_>],
        before: &HashMap<String, PreviousNode>,
    ) -> Result<Vec<i64>, StoreError> {
        let ids = files.iter().flat_map(|file| file.ids(self.name));
        let count = ids.filter(|id| !before.contains_key(id.as_str())).count();
        let rows = self.connection.query(
            "SELECT nextval(pg_get_serial_sequence('nodes', 'key')) AS key \
             FROM generate_series(1, $1::bigint)",
            &[&i64::try_from(count).unwrap_or(i64::MAX)],
        )?;
        Ok(rows.iter().map(|row| row.get("key")).collect())
    }

    fn add_nodes(&self, nodes: &[KeyedNode<'_>]) -> Result<(), StoreError> {
        for nodes in batches(nodes) {
            let columns = Columns::new(self.name, nodes);
            self.connection.execute(
                "INSERT INTO nodes (key, id, repository, file, parent, last_name, first_line, \
                 last_line, first_byte, last_byte, kind, name, qualified, language, metadata, \
                 words, text) \
                 SELECT key, id, $1::bigint, file, parent, last_name, first_line, last_line, first_byte, \
                 last_byte, kind, name, qualified, language, metadata, words::tsvector, text \
                 FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], \
                 $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], \
                 $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[]) \
                 AS node (key, id, file, parent, last_name, first_line, last_line, first_byte, \
                 last_byte, kind, name, qualified, language, metadata, words, text)",
                &[
                    &self.key,
                    &columns.keys,
                    &columns.ids,
                    &columns.files,
                    &columns.parents,
                    &columns.last_names,
                    &columns.first_lines,
                    &columns.last_lines,
                    &columns.first_bytes,
                    &columns.last_bytes,
                    &columns.kinds,
                    &columns.names,
                    &columns.qualified,
                    &columns.languages,
                    &columns.metadata,
                    &words(nodes),
                    &columns.texts,
                ],
            )?;
            self.names_changed(&columns.last_names)?;
        }
        Ok(())
    }

    /// Writes nodes whose text has changed.
    fn change_nodes(&self, nodes: &[KeyedNode<'_>]) -> Result<(), StoreError> {
        self.move_nodes(nodes)?;
        for nodes in batches(nodes) {
            let columns = Columns::new(self.name, nodes);
            self.connection.execute(
                "UPDATE nodes SET words = new.words::tsvector, text = new.text \
                 FROM unnest($1::bigint[], $2::text[], $3::text[]) AS new (key, words, text) \
                 WHERE nodes.key = new.key",
                &[&columns.keys, &words(nodes), &columns.texts],
            )?;
            self.remove_vectors(&columns.keys)?;
        }
        Ok(())
    }

    /// Writes the columns of nodes that may change while the text stays the same.
    fn move_nodes(&self, nodes: &[KeyedNode<'_>]) -> Result<(), StoreError> {
        for nodes in batches(nodes) {
            let columns = Columns::new(self.name, nodes);
            self.connection.execute(
                "UPDATE nodes SET parent = new.parent, first_line = new.first_line, \
                 last_line = new.last_line, first_byte = new.first_byte, \
                 last_byte = new.last_byte, name = new.name, language = new.language, \
                 metadata = new.metadata \
                 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], \
                 $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::text[]) \
                 AS new (key, parent, first_line, last_line, first_byte, last_byte, name, \
                 language, metadata) WHERE nodes.key = new.key",
                &[
                    &columns.keys,
                    &columns.parents,
                    &columns.first_lines,
                    &columns.last_lines,
                    &columns.first_bytes,
                    &columns.last_bytes,
                    &columns.names,
                    &columns.languages,
                    &columns.metadata,
                ],
            )?;
        }
        Ok(())
    }

    /// Removes nodes whose mentions are removed.
    fn remove_nodes(&self, keys: &[i64]) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        self.remove_vectors(keys)?;
        let remove_edges = "DELETE FROM edges WHERE target = ANY ($1)";
        self.connection.execute(remove_edges, &[&keys])?;
        let remove = "DELETE FROM nodes WHERE key = ANY ($1) RETURNING last_name";
        let removed = self.connection.query(remove, &[&keys])?;
        let names: Vec<i64> = removed.iter().map(|row| row.get("last_name")).collect();
        self.names_changed(&names)
    }

    fn remove_vectors(&self, keys: &[i64]) -> Result<(), StoreError> {
        if self.has_vectors {
            let remove = "DELETE FROM vectors WHERE node = ANY ($1)";
            self.connection.execute(remove, &[&keys])?;
        }
        Ok(())
    }

    fn names_changed(&self, last_names: &[i64]) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT INTO changed_names (repository, last_name) \
             SELECT DISTINCT $1::bigint, name FROM unnest($2::bigint[]) AS name \
             ON CONFLICT DO NOTHING",
            &[&self.key, &last_names],
        )?;
        Ok(())
    }

    /// Adds the edges from parents to their children.
    fn add_contains_edges<'a>(
        &self,
        nodes: impl Iterator<Item = &'a KeyedNode<'a>>,
    ) -> Result<(), StoreError> {
        let inside = nodes.filter_map(|node| Some((node.parent?, node.key)));
        let (parents, children): (Vec<i64>, Vec<i64>) = inside.unzip();
        self.connection.execute(
            "INSERT INTO edges (source, target, mention, kind) \
             SELECT source, target, 0, $3 FROM unnest($1::bigint[], $2::bigint[]) \
             AS inside (source, target)",
            &[&parents, &children, &EdgeKind::Contains.as_str()],
        )?;
        Ok(())
    }

    fn add_mentions(&self, files: &[&NewFile<'_>], keys: &[Vec<i64>]) -> Result<(), StoreError> {
        let (mut nodes, mut kinds, mut are_near) = (Vec::new(), Vec::new(), Vec::new());
        let (mut last_names, mut names) = (Vec::new(), Vec::new());
        for (file, keys) in files.iter().zip(keys) {
            let mentions: BTreeSet<_> = file.mentions.iter().collect();
            for mention in mentions {
                let last_name = naming::last_name(&mention.name);
                nodes.push(keys[mention.from]);
                kinds.push(mention.kind.as_str());
                are_near.push(mention.scope == Scope::Nearest);
                last_names.push(naming::fingerprint(self.name, &last_name));
                names.push(escaped(&mention.name));
            }
        }
        self.connection.execute(
            "INSERT INTO mentions (node, kind, is_near, last_name, name) \
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::boolean[], $4::bigint[], $5::text[])",
            &[&nodes, &kinds, &are_near, &last_names, &names],
        )?;
        Ok(())
    }
}

/// The columns of several nodes.
struct Columns<'a> {
    keys: Vec<i64>,
    ids: Vec<&'a str>,
    files: Vec<i64>,
    parents: Vec<Option<i64>>,
    last_names: Vec<i64>,
    first_lines: Vec<i64>,
    last_lines: Vec<i64>,
    first_bytes: Vec<i64>,
    last_bytes: Vec<i64>,
    kinds: Vec<&'static str>,
    names: Vec<Cow<'a, str>>,
    qualified: Vec<Cow<'a, str>>,
    languages: Vec<Cow<'a, str>>,
    metadata: Vec<Cow<'a, str>>,
    texts: Vec<Cow<'a, str>>,
}

impl<'a> Columns<'a> {
    fn new(repository: &str, nodes: &'a [KeyedNode<'_>]) -> Self {
        fn column<'a, T>(
            nodes: &'a [KeyedNode<'_>],
            value: impl Fn(&'a KeyedNode<'_>) -> T,
        ) -> Vec<T> {
            nodes.iter().map(value).collect()
        }
        let last_name = |node: &NewNode| naming::last_name(&node.qualified);
        Self {
            keys: column(nodes, |one| one.key),
            ids: column(nodes, |one| one.id.as_str()),
            files: column(nodes, |one| one.file),
            parents: column(nodes, |one| one.parent),
            last_names: column(nodes, |one| {
                naming::fingerprint(repository, &last_name(one.node))
            }),
            first_lines: column(nodes, |one| i64::from(one.node.lines.0)),
            last_lines: column(nodes, |one| i64::from(one.node.lines.1)),
            first_bytes: column(nodes, |one| signed(one.node.span.start)),
            last_bytes: column(nodes, |one| signed(one.node.span.end)),
            kinds: column(nodes, |one| one.node.kind.as_str()),
            names: column(nodes, |one| escaped(&one.node.name)),
            qualified: column(nodes, |one| escaped(&one.node.qualified)),
            languages: column(nodes, |one| escaped(&one.node.language)),
            metadata: column(nodes, |one| escaped(&one.node.metadata)),
            texts: column(nodes, |one| escaped(&one.node.text)),
        }
    }
}

/// The words of nodes for keyword search.
fn words(nodes: &[KeyedNode<'_>]) -> Vec<String> {
    nodes.iter().map(|one| search::words(one.node)).collect()
}

/// Splits nodes into batches, one for each statement.
fn batches<'a, 'b>(nodes: &'a [KeyedNode<'b>]) -> impl Iterator<Item = &'a [KeyedNode<'b>]> {
    let mut size = 0;
    nodes.chunk_by(move |one, _| {
        size += one.node.text.len() + 256;
        let is_room = size < BATCH_SIZE;
        if !is_room {
            size = 0;
        }
        is_room
    })
}
