//! Keeps nodes and what they mention in `PostgreSQL`.
//!
//! What is written is written as whole columns, a statement for as many rows as there are: what
//! takes time is the way to the server and back.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use tokio_postgres::Row;

use super::connection::Connection;
use super::locks::number as lock_number;
use super::text::{digest, given, kept};
use super::{Postgres, graph, parsed, resolve, search, signed, unsigned, vectors};
use crate::error::StoreError;
use crate::naming;
use crate::nodes::{
    Edge, EdgeKind, Hit, KeptFile, NewFile, NewNode, Node, NodeId, Nodes, Query, Reached,
    RepositorySummary, Resolved, Scope, Walk,
};

/// So many bytes of text are written by one statement, and one node more.
const TOGETHER: usize = 4 << 20;

/// An index takes longer than what somebody waits for, and is written faster in large portions.
const PATIENCE: &str = "SET LOCAL statement_timeout = '15min'; SET LOCAL lock_timeout = '15min'; \
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
                    name: given(row.try_get("name")?),
                    folder: row.try_get::<_, Option<_>>("folder")?.map(given),
                    files: unsigned(row.try_get("files")?),
                    nodes: unsigned(row.try_get("nodes")?),
                    edges: unsigned(row.try_get("edges")?),
                })
            });
            repositories.collect()
        })
    }

    fn files(&self, repository: &str) -> Result<Vec<KeptFile>, StoreError> {
        self.pool.read(|connection| {
            let rows = connection.query(
                "SELECT path, hash FROM files \
                 WHERE repository = (SELECT key FROM repositories WHERE digest = $1) ORDER BY path",
                &[&digest(repository)],
            )?;
            let files = rows.iter().map(|row| {
                Ok(KeptFile {
                    path: given(row.try_get("path")?),
                    hash: given(row.try_get("hash")?),
                })
            });
            files.collect()
        })
    }

    fn settle(
        &self,
        repository: &str,
        folder: &str,
        instead_of: Option<&str>,
    ) -> Result<String, StoreError> {
        self.pool.write(|connection| {
            self.have_to_oneself(connection, repository)?;
            let (digest, folder) = (digest(repository), kept(folder));
            connection.execute(
                "INSERT INTO repositories (name, digest, folder) VALUES ($1, $2, $3) \
                 ON CONFLICT (digest) DO UPDATE SET folder = excluded.folder \
                 WHERE repositories.folder IS NULL OR repositories.folder = $4",
                &[&kept(repository), &digest, &folder, &instead_of.map(kept)],
            )?;
            let find = "SELECT folder FROM repositories WHERE digest = $1";
            let row = connection.query_one(find, &[&digest])?;
            Ok(given(row.try_get("folder")?))
        })
    }

    fn put_files(&self, repository: &str, files: &[NewFile<'_>]) -> Result<(), StoreError> {
        for file in files {
            file.check()?;
        }
        // Of two with the same path the last is meant.
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
            self.have_to_oneself(connection, repository)?;
            let resolved = resolve::resolve(connection, repository)?;
            // What waits to become part of the index is looked through by every search.
            connection.execute("SELECT gin_clean_pending_list('nodes_by_words')", &[])?;
            Ok(resolved)
        })
    }

    fn nodes(&self, ids: &[NodeId]) -> Result<Vec<Node>, StoreError> {
        self.pool.read(|connection| {
            let rows = connection.query(
                &format!(
                    "{NODE} JOIN unnest($1::text[]) WITH ORDINALITY AS wanted (id, place) \
                     ON wanted.id = nodes.id ORDER BY wanted.place"
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
            connection.batch(PATIENCE)?;
            vectors::put(connection, model, vectors)
        })
    }

    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, StoreError> {
        if !matches!(query.search, crate::nodes::Search::Keyword(_)) {
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
    /// Says so if there is nothing that vectors could be kept in.
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
        work: impl FnOnce(&Changes<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.pool.write(|connection| {
            self.have_to_oneself(connection, repository)?;
            let add = "INSERT INTO repositories (name, digest) VALUES ($1, $2) \
                       ON CONFLICT DO NOTHING";
            connection.execute(add, &[&kept(repository), &digest(repository)])?;
            let key = self::repository(connection, repository)?;
            let changes = Changes {
                connection,
                name: repository,
                key: key.unwrap_or_default(),
                has_vectors: self.has_vectors,
            };
            work(&changes)?;
            // A repository without files is none.
            connection.execute(
                "DELETE FROM repositories WHERE key = $1 \
                 AND NOT EXISTS (SELECT 1 FROM files WHERE repository = $1)",
                &[&changes.key],
            )?;
            Ok(())
        })
    }

    /// Keeps everybody else from changing a repository until this transaction ends.
    fn have_to_oneself(&self, connection: &Connection, name: &str) -> Result<(), StoreError> {
        connection.batch(PATIENCE)?;
        let lock = "SELECT pg_advisory_xact_lock($1)";
        let number = lock_number(&self.schema, "repository", name);
        connection.execute(lock, &[&number])?;
        Ok(())
    }
}

/// The key of a repository, if something is kept of it.
pub(super) fn repository(connection: &Connection, name: &str) -> Result<Option<i64>, StoreError> {
    let find = "SELECT key FROM repositories WHERE digest = $1";
    let row = connection.query_opt(find, &[&digest(name)])?;
    Ok(row.map(|row| row.try_get("key")).transpose()?)
}

/// What a [`Node`] is read from.
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
        repository: given(row.try_get("repository")?),
        path: given(row.try_get("path")?),
        kind: parsed(row, "kind")?,
        name: given(row.try_get("name")?),
        qualified: given(row.try_get("qualified")?),
        parent: parent.map(NodeId::from),
        language: given(row.try_get("language")?),
        lines: (line("first_line")?, line("last_line")?),
        span: unsigned(row.try_get("first_byte")?)..unsigned(row.try_get("last_byte")?),
        text: given(row.try_get("text")?),
        metadata: given(row.try_get("metadata")?),
    })
}

/// Changes to the files of a repository.
struct Changes<'a> {
    connection: &'a Connection,
    name: &'a str,
    key: i64,
    has_vectors: bool,
}

/// A node as it was before.
struct Before {
    key: i64,
    name: String,
    language: String,
    text: String,
}

/// A node that is written.
struct Written<'a> {
    key: i64,
    id: NodeId,
    file: i64,
    parent: Option<i64>,
    node: &'a NewNode,
}

impl Changes<'_> {
    fn put(&self, files: &[&NewFile<'_>]) -> Result<(), StoreError> {
        let paths: Vec<&str> = files.iter().map(|file| file.path).collect();
        let known = self.files(&paths)?;
        self.silence(&known.values().copied().collect::<Vec<i64>>())?;
        let keys = self.put_names(files, &known)?;
        let mut before = self.before(&keys)?;
        let new = self.new_keys(files, &before)?;
        let mut new = new.into_iter();
        let (mut added, mut changed, mut moved) = (Vec::new(), Vec::new(), Vec::new());
        let mut keys_of_files: Vec<Vec<i64>> = Vec::new();
        for (file, file_key) in files.iter().zip(&keys) {
            let mut keys: Vec<i64> = Vec::with_capacity(file.nodes.len());
            for (id, node) in file.ids(self.name).into_iter().zip(file.nodes) {
                let known = before.remove(id.as_str());
                let (list, key) = match known {
                    None => (&mut added, new.next().unwrap_or_default()),
                    Some(known) => {
                        let is_same = (&known.name, &known.language, &known.text)
                            == (&node.name, &node.language, &node.text);
                        let list = if is_same { &mut moved } else { &mut changed };
                        (list, known.key)
                    }
                };
                list.push(Written {
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
        self.remove_nodes(&before.values().map(|gone| gone.key).collect::<Vec<i64>>())?;
        let all = [&added, &changed, &moved].into_iter().flatten();
        self.contain(all)?;
        self.mention(files, &keys_of_files)
    }

    fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        let files: Vec<i64> = self.files(paths)?.into_values().collect();
        self.silence(&files)?;
        let rows = self
            .connection
            .query("SELECT key FROM nodes WHERE file = ANY ($1)", &[&files])?;
        let nodes: Vec<i64> = rows.iter().map(|row| row.get("key")).collect();
        self.remove_nodes(&nodes)?;
        let remove = "DELETE FROM files WHERE key = ANY ($1)";
        self.connection.execute(remove, &[&files])?;
        Ok(())
    }

    /// The files that are there, by the digests of their paths.
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

    /// Takes away what the nodes of files speak of.
    fn silence(&self, files: &[i64]) -> Result<(), StoreError> {
        for statement in [
            "DELETE FROM edges USING nodes WHERE nodes.file = ANY ($1) AND edges.source = nodes.key",
            "DELETE FROM mentions USING nodes WHERE nodes.file = ANY ($1) AND mentions.node = nodes.key",
        ] {
            self.connection.execute(statement, &[&files])?;
        }
        Ok(())
    }

    /// Writes the files themselves; their keys, in their order.
    fn put_names(
        &self,
        files: &[&NewFile<'_>],
        known: &HashMap<Vec<u8>, i64>,
    ) -> Result<Vec<i64>, StoreError> {
        let digests: Vec<Vec<u8>> = files.iter().map(|file| digest(file.path)).collect();
        let paths: Vec<_> = files.iter().map(|file| kept(file.path)).collect();
        let hashes: Vec<_> = files.iter().map(|file| kept(file.hash)).collect();
        let imports: Vec<String> = files
            .iter()
            .map(|file| kept(&naming::kept_imports(file.imports)).into_owned())
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

    /// The nodes that files had, by their ids.
    fn before(&self, files: &[i64]) -> Result<HashMap<String, Before>, StoreError> {
        let rows = self.connection.query(
            "SELECT id, key, name, language, text FROM nodes WHERE file = ANY ($1)",
            &[&files],
        )?;
        let before = rows.iter().map(|row| {
            let before = Before {
                key: row.try_get("key")?,
                name: given(row.try_get("name")?),
                language: given(row.try_get("language")?),
                text: given(row.try_get("text")?),
            };
            Ok((row.try_get("id")?, before))
        });
        before.collect()
    }

    /// Keys for the nodes that were not there, so that their children can be written with them.
    fn new_keys(
        &self,
        files: &[&NewFile<'_>],
        before: &HashMap<String, Before>,
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

    fn add_nodes(&self, nodes: &[Written<'_>]) -> Result<(), StoreError> {
        for nodes in portions(nodes) {
            let columns = Columns::of(self.name, nodes);
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

    /// Writes nodes that say something else than before.
    fn change_nodes(&self, nodes: &[Written<'_>]) -> Result<(), StoreError> {
        self.move_nodes(nodes)?;
        for nodes in portions(nodes) {
            let columns = Columns::of(self.name, nodes);
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

    /// Writes where nodes are by now, and what is known of them besides their texts.
    fn move_nodes(&self, nodes: &[Written<'_>]) -> Result<(), StoreError> {
        for nodes in portions(nodes) {
            let columns = Columns::of(self.name, nodes);
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

    /// Removes nodes that speak of nothing any more.
    fn remove_nodes(&self, keys: &[i64]) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        self.remove_vectors(keys)?;
        let remove_edges = "DELETE FROM edges WHERE target = ANY ($1)";
        self.connection.execute(remove_edges, &[&keys])?;
        let remove = "DELETE FROM nodes WHERE key = ANY ($1) RETURNING last_name";
        let gone = self.connection.query(remove, &[&keys])?;
        let names: Vec<i64> = gone.iter().map(|row| row.get("last_name")).collect();
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
    fn contain<'a>(&self, nodes: impl Iterator<Item = &'a Written<'a>>) -> Result<(), StoreError> {
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

    fn mention(&self, files: &[&NewFile<'_>], keys: &[Vec<i64>]) -> Result<(), StoreError> {
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
                names.push(kept(&mention.name));
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

/// Nodes as columns.
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
    fn of(repository: &str, nodes: &'a [Written<'_>]) -> Self {
        fn column<'a, T>(nodes: &'a [Written<'_>], value: impl Fn(&'a Written<'_>) -> T) -> Vec<T> {
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
            names: column(nodes, |one| kept(&one.node.name)),
            qualified: column(nodes, |one| kept(&one.node.qualified)),
            languages: column(nodes, |one| kept(&one.node.language)),
            metadata: column(nodes, |one| kept(&one.node.metadata)),
            texts: column(nodes, |one| kept(&one.node.text)),
        }
    }
}

/// The words that nodes are found by.
fn words(nodes: &[Written<'_>]) -> Vec<String> {
    nodes.iter().map(|one| search::words(one.node)).collect()
}

/// Nodes in portions that one statement can take.
fn portions<'a, 'b>(nodes: &'a [Written<'b>]) -> impl Iterator<Item = &'a [Written<'b>]> {
    let mut size = 0;
    nodes.chunk_by(move |one, _| {
        size += one.node.text.len() + 256;
        let is_room = size < TOGETHER;
        if !is_room {
            size = 0;
        }
        is_room
    })
}
