//! Resolves mentions to edges in SQLite, as far as something has changed.

use std::collections::HashMap;

use rusqlite::{Transaction, params};

use super::{graph, nodes};
use crate::error::StoreError;
use crate::naming::{self, Candidate, Reference};
use crate::nodes::{Resolved, Scope};

/// The number of files, or names, in one transaction, which keeps other processes from writing.
const BATCH: i64 = 500;

/// Mentions of added or removed names, in files that were resolved before.
const CHANGED: &str = "SELECT mentions.number, mentions.node, nodes.qualified, mentions.kind, \
     mentions.is_near, mentions.name, mentions.last_name, 1, nodes.kind, files.imports \
     FROM (SELECT last_name FROM changed_names WHERE repository = ?1 LIMIT ?2) AS changed \
     JOIN mentions ON mentions.last_name = changed.last_name \
     JOIN nodes ON nodes.key = mentions.node JOIN files ON files.key = nodes.file \
     WHERE files.repository = ?1 AND files.is_resolved";

const CHANGED_DONE: &str = "DELETE FROM changed_names WHERE repository = ?1 AND last_name IN \
     (SELECT last_name FROM changed_names WHERE repository = ?1 LIMIT ?2)";

/// Forgets changed names while no file of the repository is resolved.
const CHANGED_FIRST: &str = "DELETE FROM changed_names WHERE repository = ?1 \
     AND NOT EXISTS (SELECT 1 FROM files WHERE repository = ?1 AND is_resolved)";

/// Mentions in new or changed files, which have no edges yet.
const NEW: &str = "SELECT mentions.number, mentions.node, nodes.qualified, mentions.kind, \
     mentions.is_near, mentions.name, mentions.last_name, 0, nodes.kind, new.imports \
     FROM (SELECT key, imports FROM files WHERE repository = ?1 AND NOT is_resolved LIMIT ?2) AS new \
     JOIN nodes ON nodes.file = new.key JOIN mentions ON mentions.node = nodes.key";

const NEW_DONE: &str = "UPDATE files SET is_resolved = 1 WHERE key IN \
     (SELECT key FROM files WHERE repository = ?1 AND NOT is_resolved LIMIT ?2)";

/// Resolves one batch of mentions; nothing if all are resolved. Changed names come before new files,
/// so that the mentions of a new file are resolved only once.
pub(super) fn resolve_some(
    transaction: &Transaction<'_>,
    repository: &str,
) -> Result<Option<Resolved>, StoreError> {
    let Some(repository) = nodes::repository(transaction, repository)? else {
        return Ok(None);
    };
    let execute = |statement: &str, values: &[i64]| {
        let values = rusqlite::params_from_iter(values);
        transaction.prepare_cached(statement)?.execute(values)
    };
    execute(CHANGED_FIRST, &[repository])?;
    for (select, done) in [(CHANGED, CHANGED_DONE), (NEW, NEW_DONE)] {
        let resolved = resolve_each(transaction, select, repository)?;
        if execute(done, &[repository, BATCH])? > 0 {
            return Ok(Some(resolved));
        }
    }
    Ok(None)
}

/// Resolves the mentions that a statement selects.
fn resolve_each(
    transaction: &Transaction<'_>,
    statement: &str,
    repository: i64,
) -> Result<Resolved, StoreError> {
    let mut resolved = Resolved::default();
    let mut lookup = CandidateLookup {
        transaction,
        known: HashMap::new(),
    };
    let mut remove = transaction
        .prepare_cached("DELETE FROM edges WHERE source = ?1 AND kind = ?2 AND mention = ?3")?;
    let mut insert = transaction.prepare_cached("INSERT INTO edges VALUES (?1, ?2, ?3, ?4)")?;
    let mut select = transaction.prepare_cached(statement)?;
    let mut rows = select.query([repository, BATCH])?;
    while let Some(row) = rows.next()? {
        let (mention, source): (i64, i64) = (row.get(0)?, row.get(1)?);
        let kind = graph::kind(row.get(3)?)?;
        let has_edges = row.get(7)?;
        if has_edges {
            for kind in [Some(kind), naming::alternative_kind(kind)]
                .into_iter()
                .flatten()
            {
                remove.execute(params![source, graph::number(kind), mention])?;
            }
        }
        let is_near: bool = row.get(4)?;
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        let reference = Reference {
            from: text(2)?,
            from_kind: nodes::parsed(row, 8)?,
            imports: text(9)?,
            kind,
            name: text(5)?,
            scope: if is_near {
                Scope::Nearest
            } else {
                Scope::Anywhere
            },
        };
        let candidates = lookup.candidates(row.get(6)?)?;
        for target in naming::targets(&reference, candidates) {
            // A node has no edge to itself.
            if target.key != source {
                let kind = graph::number(naming::edge_kind(&reference, target));
                insert.execute(params![source, kind, target.key, mention])?;
                resolved.edges += 1;
            }
        }
        resolved.mentions += 1;
    }
    Ok(resolved)
}

/// The nodes of each last name, read once.
struct CandidateLookup<'a> {
    transaction: &'a Transaction<'a>,
    known: HashMap<i64, Vec<Candidate>>,
}

impl CandidateLookup<'_> {
    fn candidates(&mut self, last_name: i64) -> Result<&[Candidate], StoreError> {
        if !self.known.contains_key(&last_name) {
            let found = self.read(last_name)?;
            self.known.insert(last_name, found);
        }
        Ok(&self.known[&last_name])
    }

    fn read(&self, last_name: i64) -> Result<Vec<Candidate>, StoreError> {
        let mut select = self.transaction.prepare_cached(
            "SELECT key, id, kind, qualified FROM nodes WHERE last_name = ?1 LIMIT ?2",
        )?;
        let mut rows = select.query(params![last_name, naming::MOST_CANDIDATES + 1])?;
        let mut candidates = Vec::new();
        while let Some(row) = rows.next()? {
            candidates.push(Candidate {
                key: row.get(0)?,
                id: row.get(1)?,
                kind: nodes::parsed(row, 2)?,
                qualified: row.get(3)?,
            });
        }
        Ok(candidates)
    }
}
