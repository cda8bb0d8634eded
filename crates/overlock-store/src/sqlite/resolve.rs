//! Makes edges of mentions in SQLite, as many as have changed.

use std::collections::HashMap;

use rusqlite::{Transaction, params};

use super::{graph, nodes};
use crate::error::StoreError;
use crate::naming::{self, Candidate, Wanted};
use crate::nodes::{Resolved, Scope};

/// Mentions of files that came or changed, which have no edges yet.
const NEW: &str = "SELECT mentions.number, mentions.node, nodes.qualified, mentions.kind, \
     mentions.is_near, mentions.name, mentions.last_name, 0 \
     FROM files JOIN nodes ON nodes.file = files.key JOIN mentions ON mentions.node = nodes.key \
     WHERE files.repository = ?1 AND NOT files.is_resolved";

/// Mentions of names that have come to be or are gone, in files that have not changed.
const CHANGED: &str = "SELECT mentions.number, mentions.node, nodes.qualified, mentions.kind, \
     mentions.is_near, mentions.name, mentions.last_name, 1 \
     FROM changed_names JOIN mentions ON mentions.last_name = changed_names.last_name \
     JOIN nodes ON nodes.key = mentions.node JOIN files ON files.key = nodes.file \
     WHERE changed_names.repository = ?1 AND files.repository = ?1 AND files.is_resolved";

/// Makes edges of mentions.
pub(super) fn resolve(
    transaction: &Transaction<'_>,
    repository: &str,
) -> Result<Resolved, StoreError> {
    let mut resolved = Resolved::default();
    let Some(repository) = nodes::repository(transaction, repository)? else {
        return Ok(resolved);
    };
    let mut bearers = Bearers {
        transaction,
        known: HashMap::new(),
    };
    let mut remove = transaction
        .prepare_cached("DELETE FROM edges WHERE source = ?1 AND kind = ?2 AND mention = ?3")?;
    let mut insert = transaction.prepare_cached("INSERT INTO edges VALUES (?1, ?2, ?3, ?4)")?;
    for statement in [NEW, CHANGED] {
        let mut select = transaction.prepare_cached(statement)?;
        let mut rows = select.query([repository])?;
        while let Some(row) = rows.next()? {
            let (mention, source): (i64, i64) = (row.get(0)?, row.get(1)?);
            let kind: i64 = row.get(3)?;
            if row.get(7)? {
                remove.execute(params![source, kind, mention])?;
            }
            let is_near: bool = row.get(4)?;
            let wanted = Wanted {
                from: row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?,
                kind: graph::kind(kind)?,
                name: row.get_ref(5)?.as_str().map_err(rusqlite::Error::from)?,
                scope: if is_near {
                    Scope::Nearest
                } else {
                    Scope::Anywhere
                },
            };
            let candidates = bearers.of(row.get(6)?)?;
            for target in naming::meant(&wanted, candidates) {
                // Whoever speaks of itself leads nowhere.
                if target.key != source {
                    insert.execute(params![source, kind, target.key, mention])?;
                    resolved.edges += 1;
                }
            }
            resolved.mentions += 1;
        }
    }
    for statement in [
        "UPDATE files SET is_resolved = 1 WHERE repository = ?1 AND NOT is_resolved",
        "DELETE FROM changed_names WHERE repository = ?1",
    ] {
        transaction
            .prepare_cached(statement)?
            .execute([repository])?;
    }
    Ok(resolved)
}

/// The nodes that bear a name, each looked up once.
struct Bearers<'a> {
    transaction: &'a Transaction<'a>,
    known: HashMap<i64, Vec<Candidate>>,
}

impl Bearers<'_> {
    fn of(&mut self, last_name: i64) -> Result<&[Candidate], StoreError> {
        if !self.known.contains_key(&last_name) {
            let found = self.look_up(last_name)?;
            self.known.insert(last_name, found);
        }
        Ok(&self.known[&last_name])
    }

    fn look_up(&self, last_name: i64) -> Result<Vec<Candidate>, StoreError> {
        let mut select = self.transaction.prepare_cached(
            "SELECT key, id, kind, qualified FROM nodes WHERE last_name = ?1 LIMIT ?2",
        )?;
        let mut rows = select.query(params![last_name, naming::MOST_BEARERS + 1])?;
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
