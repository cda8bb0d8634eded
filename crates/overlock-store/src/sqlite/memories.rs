//! Stores memories in SQLite.

use rusqlite::params;

use super::Sqlite;
use crate::error::StoreError;
use crate::memories::{Importance, Memories, Memory, NewMemory, Recall};
use crate::store::{signed, unsigned};

impl Memories for Sqlite {
    fn remember(&self, memory: &NewMemory<'_>) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO memories (persona, importance, at, text) VALUES (?1, ?2, ?3, ?4)",
            )?;
            let importance = memory.importance.get();
            let at = signed(memory.at);
            insert.execute(params![memory.persona, importance, at, memory.text])?;
            Ok(())
        })
    }

    fn memories(&self, recall: &Recall<'_>) -> Result<Vec<Memory>, StoreError> {
        self.read(|transaction| {
            let mut select = transaction.prepare_cached(
                "SELECT text, importance, at FROM memories \
                 WHERE persona = ?1 AND importance >= ?2 AND at >= ?3 \
                 ORDER BY importance DESC, at DESC, key DESC LIMIT ?4",
            )?;
            let importance = recall.importance.get();
            let since = signed(recall.since);
            let mut rows =
                select.query(params![recall.persona, importance, since, recall.limit])?;
            let mut memories = Vec::new();
            while let Some(row) = rows.next()? {
                let importance = Importance::new(row.get(1)?)
                    .map_err(|error| StoreError::Database(error.into()))?;
                memories.push(Memory {
                    text: row.get(0)?,
                    importance,
                    at: unsigned(row.get(2)?),
                });
            }
            Ok(memories)
        })
    }
}
