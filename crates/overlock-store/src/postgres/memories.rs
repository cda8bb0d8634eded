//! Stores memories in `PostgreSQL`.

use super::Postgres;
use super::text::{digest, escaped, unescaped};
use crate::error::StoreError;
use crate::memories::{Importance, Memories, Memory, NewMemory, Recall};
use crate::store::{signed, unsigned};

impl Memories for Postgres {
    fn remember(&self, memory: &NewMemory<'_>) -> Result<(), StoreError> {
        self.pool.write(|connection| {
            connection.execute(
                "INSERT INTO memories (persona, digest, importance, at, text) \
                 VALUES ($1, $2, $3, $4, $5)",
                &[
                    &escaped(memory.persona),
                    &digest(memory.persona),
                    &memory.importance.get(),
                    &signed(memory.at),
                    &escaped(memory.text),
                ],
            )?;
            Ok(())
        })
    }

    fn memories(&self, recall: &Recall<'_>) -> Result<Vec<Memory>, StoreError> {
        self.pool.read(|connection| {
            let rows = connection.query(
                "SELECT text, importance, at FROM memories \
                 WHERE digest = $1 AND importance >= $2 AND at >= $3 \
                 ORDER BY importance DESC, at DESC, key DESC LIMIT $4",
                &[
                    &digest(recall.persona),
                    &recall.importance.get(),
                    &signed(recall.since),
                    &i64::from(recall.limit),
                ],
            )?;
            let memories = rows.iter().map(|row| {
                let importance = Importance::new(row.try_get("importance")?);
                Ok(Memory {
                    text: unescaped(row.try_get("text")?),
                    importance: importance.map_err(|error| StoreError::Database(error.into()))?,
                    at: unsigned(row.try_get("at")?),
                })
            });
            memories.collect()
        })
    }
}
